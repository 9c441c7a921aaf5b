"""Insight: who is worst off under a model, and how badly off anyone can be."""

from drosurv.repairs.insight.certificate import Certificate, certify
from drosurv.repairs.insight.findings import Estimate, Finding, WorstOff
from drosurv.repairs.insight.rules import Condition, Rule
from drosurv.repairs.insight.subgroup_curve import SubgroupCurve
from drosurv.repairs.insight.worst_off import worst_off

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
