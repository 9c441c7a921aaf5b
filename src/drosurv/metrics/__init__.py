"""Metrics of accuracy and fairness for any survival model, with confidence intervals and tests."""

from drosurv.curves import parse_survival
from drosurv.groups import Groups, parse_groups
from drosurv.metrics.brier import (
    BrierAgainstNull,
    brier_against_null,
    brier_contributions,
    brier_skill,
    brier_weight_error,
    integrated_brier_score,
)
from drosurv.metrics.calibration import (
    DCalibration,
    calibration_at,
    calibration_slope,
    calibration_slope_interval,
    calibration_slope_of_curves,
    d_calibration,
    integrated_calibration_index,
)
from drosurv.metrics.competing_risks import (
    brier_score_by_cause,
    calibration_by_cause,
    concordance_by_cause,
)
from drosurv.metrics.concordance import (
    concordance_counts,
    concordance_index,
    cross_group_concordance,
    uno_concordance,
)
from drosurv.metrics.decisions import Decisions, decisions
from drosurv.metrics.disparities import (
    average_disparity,
    censored_group_disparity,
    censored_individual_disparity,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
    sampled_individual_disparity,
)
from drosurv.metrics.dynamic_auc import AUCCurve, dynamic_auc, dynamic_auc_curve
from drosurv.metrics.follow_up import (
    FollowUp,
    FollowUpComparison,
    GroupFollowUp,
    compare_follow_up,
    default_horizon,
    median_follow_up,
)
from drosurv.metrics.imparity import (
    CaseMixTest,
    concordance_case_mix_test,
    concordance_fractions,
    concordance_imparity,
)
from drosurv.metrics.inference import (
    Interval,
    PairedComparison,
    PermutationTest,
    Replicates,
    bootstrap,
    observed_over_expected,
    paired_comparison,
    permutation_test,
)
from drosurv.metrics.likelihood_gain import likelihood_gain, likelihood_gains
from drosurv.metrics.nonparametric import CumulativeIncidence, KaplanMeier, aalen_johansen
from drosurv.metrics.pair_order import PairCounts
from drosurv.metrics.partial_likelihood import gain_over_null, log_partial_likelihood, share_of_gain

__all__ = [
    "AUCCurve",
    "BrierAgainstNull",
    "CaseMixTest",
    "CumulativeIncidence",
    "DCalibration",
    "Decisions",
    "FollowUp",
    "FollowUpComparison",
    "GroupFollowUp",
    "Groups",
    "Interval",
    "KaplanMeier",
    "PairCounts",
    "PairedComparison",
    "PermutationTest",
    "Replicates",
    "aalen_johansen",
    "average_disparity",
    "bootstrap",
    "brier_against_null",
    "brier_contributions",
    "brier_score_by_cause",
    "brier_skill",
    "brier_weight_error",
    "calibration_at",
    "calibration_by_cause",
    "calibration_slope",
    "calibration_slope_interval",
    "calibration_slope_of_curves",
    "censored_group_disparity",
    "censored_individual_disparity",
    "compare_follow_up",
    "concordance_by_cause",
    "concordance_case_mix_test",
    "concordance_counts",
    "concordance_fractions",
    "concordance_imparity",
    "concordance_index",
    "cross_group_concordance",
    "d_calibration",
    "decisions",
    "default_horizon",
    "dynamic_auc",
    "dynamic_auc_curve",
    "gain_over_null",
    "group_disparity",
    "individual_disparity",
    "integrated_brier_score",
    "integrated_calibration_index",
    "intersectional_disparity",
    "likelihood_gain",
    "likelihood_gains",
    "log_partial_likelihood",
    "median_follow_up",
    "observed_over_expected",
    "paired_comparison",
    "parse_groups",
    "parse_survival",
    "permutation_test",
    "sampled_individual_disparity",
    "share_of_gain",
    "uno_concordance",
]
