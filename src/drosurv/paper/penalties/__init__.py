"""Disparities between patients or groups as penalties in training."""

from drosurv.paper.penalties.censoring_aware import RPGroup, RPIndividual
from drosurv.paper.penalties.group import KeyaGroup, KeyaIntersectional
from drosurv.paper.penalties.pairs import KeyaIndividual
from drosurv.solvers.penalty import PENALTIES, Penalty

__all__ = [
    "PENALTIES",
    "KeyaGroup",
    "KeyaIndividual",
    "KeyaIntersectional",
    "Penalty",
    "RPGroup",
    "RPIndividual",
]
