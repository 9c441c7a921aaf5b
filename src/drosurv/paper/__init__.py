"""What only the paper needs: its disparities as metrics and as penalties, models with penalties, and its datasets.

The robust models, :class:`drosurv.DROCox` and :class:`drosurv.DROCoxSplit`, are among the other models.
"""

from drosurv.datasets import load_flc, load_seer, load_support
from drosurv.paper.disparities import (
    average_disparity,
    censored_group_disparity,
    censored_individual_disparity,
    concordance_fractions,
    concordance_imparity,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
)
from drosurv.paper.penalties import Penalty
from drosurv.paper.regularized_cox import RegularizedCox

__all__ = [
    "Penalty",
    "RegularizedCox",
    "average_disparity",
    "censored_group_disparity",
    "censored_individual_disparity",
    "concordance_fractions",
    "concordance_imparity",
    "group_disparity",
    "individual_disparity",
    "intersectional_disparity",
    "load_flc",
    "load_seer",
    "load_support",
]
