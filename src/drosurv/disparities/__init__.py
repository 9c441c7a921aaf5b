"""Disparities between patients or groups: penalties in training, metrics in evaluation."""

from drosurv.disparities.censoring_aware import RPGroup, RPIndividual, censored_event_hinge_sum
from drosurv.disparities.group import KeyaGroup, KeyaIntersectional, group_gap, log_ratio_gap
from drosurv.disparities.pairs import KeyaIndividual, pairwise_hinge_sum, unit_rows
from drosurv.disparities.penalty import PENALTIES, Penalty

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
