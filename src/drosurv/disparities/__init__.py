"""Definitions of unfairness, one per file: penalties in training, metrics in evaluation."""

from drosurv.disparities.censoring_aware import RPGroup, RPIndividual, censored_event_hinge_sum
from drosurv.disparities.group import KeyaGroup, group_gap
from drosurv.disparities.hinge_scan import unit_rows
from drosurv.disparities.individual import KeyaIndividual, pairwise_hinge_sum
from drosurv.disparities.intersectional import KeyaIntersectional, log_ratio_gap
from drosurv.disparities.penalty import Penalty
from drosurv.disparities.registry import PENALTIES

__all__ = [
    "PENALTIES",
    "KeyaGroup",
    "KeyaIndividual",
    "KeyaIntersectional",
    "Penalty",
    "RPGroup",
    "RPIndividual",
    "censored_event_hinge_sum",
    "group_gap",
    "log_ratio_gap",
    "pairwise_hinge_sum",
    "unit_rows",
]
