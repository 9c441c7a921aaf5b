"""Metrics: accuracy, fairness and their uncertainty, for any survival model."""

from drosurv.metrics.concordance import concordance_counts, concordance_index, cross_group_concordance
from drosurv.metrics.groups import Groups, parse_groups
from drosurv.metrics.imparity import (
    CutPointGaps,
    concordance_fractions,
    concordance_imparity,
    concordance_imparity_over_cuts,
)
from drosurv.metrics.pair_sweep import PairCounts

__all__ = [
    "CutPointGaps",
    "Groups",
    "PairCounts",
    "concordance_counts",
    "concordance_fractions",
    "concordance_imparity",
    "concordance_imparity_over_cuts",
    "concordance_index",
    "cross_group_concordance",
    "parse_groups",
]
