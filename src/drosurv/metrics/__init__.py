"""Metrics: accuracy, fairness and their uncertainty, for any survival model."""

from drosurv.metrics.brier import brier_contributions, integrated_brier_score
from drosurv.metrics.concordance import concordance_counts, concordance_index, cross_group_concordance
from drosurv.metrics.dynamic_auc import AUCCurve, dynamic_auc, dynamic_auc_curve
from drosurv.metrics.fairness import (
    average_disparity,
    censored_group_disparity,
    censored_individual_disparity,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
)
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.groups import Groups, parse_groups
from drosurv.metrics.imparity import (
    CutPointGaps,
    concordance_fractions,
    concordance_imparity,
    concordance_imparity_over_cuts,
)
from drosurv.metrics.pair_order import PairCounts
from drosurv.metrics.partial_likelihood import log_partial_likelihood
from drosurv.metrics.uno import uno_concordance

__all__ = [
    "AUCCurve",
    "CutPointGaps",
    "FollowUp",
    "Groups",
    "PairCounts",
    "average_disparity",
    "brier_contributions",
    "censored_group_disparity",
    "censored_individual_disparity",
    "concordance_counts",
    "concordance_fractions",
    "concordance_imparity",
    "concordance_imparity_over_cuts",
    "concordance_index",
    "cross_group_concordance",
    "dynamic_auc",
    "dynamic_auc_curve",
    "group_disparity",
    "individual_disparity",
    "integrated_brier_score",
    "intersectional_disparity",
    "log_partial_likelihood",
    "parse_groups",
    "uno_concordance",
]
