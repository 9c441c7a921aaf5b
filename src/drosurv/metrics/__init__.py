"""Metrics of accuracy and fairness for any survival model, with confidence intervals and tests.

The paper's disparities, which stand in :mod:`drosurv.paper`, can be imported from here too.
"""

from importlib import import_module
from typing import Any

from drosurv.metrics.brier import brier_skill, integrated_brier_score
from drosurv.metrics.calibration import calibration_at, d_calibration, integrated_calibration_index
from drosurv.metrics.calibration_slope import (
    calibration_slope,
    calibration_slope_interval,
    calibration_slope_of_curves,
)
from drosurv.metrics.competing_risks import brier_score_by_cause, calibration_by_cause, concordance_by_cause
from drosurv.metrics.concordance import concordance_index, cross_group_concordance, uno_concordance
from drosurv.metrics.decisions import decisions
from drosurv.metrics.dynamic_auc import dynamic_auc
from drosurv.metrics.follow_up import FollowUp, compare_follow_up, default_horizon, median_follow_up
from drosurv.metrics.intervals import observed_over_expected
from drosurv.metrics.likelihood_gain import likelihood_gain
from drosurv.metrics.log_rank import log_rank_test
from drosurv.metrics.nonparametric import aalen_johansen
from drosurv.metrics.partial_likelihood import gain_over_null, log_partial_likelihood, share_of_gain
from drosurv.metrics.random_intercept import random_intercept

__all__ = [
    "FollowUp",
    "aalen_johansen",
    "brier_score_by_cause",
    "brier_skill",
    "calibration_at",
    "calibration_by_cause",
    "calibration_slope",
    "calibration_slope_interval",
    "calibration_slope_of_curves",
    "compare_follow_up",
    "concordance_by_cause",
    "concordance_index",
    "cross_group_concordance",
    "d_calibration",
    "decisions",
    "default_horizon",
    "dynamic_auc",
    "gain_over_null",
    "integrated_brier_score",
    "integrated_calibration_index",
    "likelihood_gain",
    "log_partial_likelihood",
    "log_rank_test",
    "median_follow_up",
    "observed_over_expected",
    "random_intercept",
    "share_of_gain",
    "uno_concordance",
]


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        paper = import_module("drosurv.paper")
        if name in paper.__all__:
            return getattr(paper, name)
    raise AttributeError(f"module 'drosurv.metrics' has no attribute {name!r}")
