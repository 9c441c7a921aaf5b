"""Insight: who is worst off under a model, and how badly off anyone can be."""

from drosurv.insight.certificate import Certificate, certify
from drosurv.insight.findings import Estimate, Finding, WorstOff
from drosurv.insight.rules import Condition, Rule
from drosurv.insight.subgroup_curve import SubgroupCurve
from drosurv.insight.worst_off import worst_off

__all__ = [
    "Certificate",
    "Condition",
    "Estimate",
    "Finding",
    "Rule",
    "SubgroupCurve",
    "WorstOff",
    "certify",
    "worst_off",
]
