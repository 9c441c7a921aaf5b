"""Disparities between patients or groups: penalties in training, metrics in evaluation."""

from drosurv.disparities.censoring_aware import RPGroup, RPIndividual
from drosurv.disparities.group import KeyaGroup, KeyaIntersectional, group_gap, log_ratio_gap
from drosurv.disparities.pairs import KeyaIndividual, unit_rows
from drosurv.disparities.penalty import PENALTIES, Penalty

__all__ = [
    "PENALTIES",
    "KeyaGroup",
    "KeyaIndividual",
    "KeyaIntersectional",
    "Penalty",
    "RPGroup",
    "RPIndividual",
    "group_gap",
    "log_ratio_gap",
    "unit_rows",
]
