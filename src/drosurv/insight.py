"""Subgroups that a model predicts worst, and bounds on its error in all subgroups."""

from typing import Any

from drosurv.repairs.findings import Estimate, Finding, WorstOff
from drosurv.repairs.rules import Condition, Rule
from drosurv.repairs.subgroup_bounds import SubgroupBounds, certify
from drosurv.repairs.worst_off import worst_off

__all__ = [
    "Condition",
    "Estimate",
    "Finding",
    "Rule",
    "SubgroupBounds",
    "WorstOff",
    "certify",
    "worst_off",
]


def __getattr__(name: str) -> Any:
    from drosurv import missing_name

    raise missing_name(__name__, name)
