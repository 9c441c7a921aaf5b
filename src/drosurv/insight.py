"""Subgroups that a model serves worst, and bounds on how wrong it can be for them."""

from drosurv.repairs.insight import (
    Certificate,
    Condition,
    Estimate,
    Finding,
    Rule,
    SubgroupCurve,
    WorstOff,
    certify,
    worst_off,
)

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
