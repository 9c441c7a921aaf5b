"""Patients that settings are scored on: what does not change from one setting to the next is prepared once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.estimators.baseline import Baseline
from drosurv.groups import ratio_by_group
from drosurv.inference import largest_gap
from drosurv.metrics import (
    FollowUp,
    Groups,
    Replicates,
    bootstrap,
    calibration_slope,
    concordance_index,
    dynamic_auc,
    gap_intervals,
    group_disparity,
    individual_disparity,
    integrated_brier_score,
    intersectional_disparity,
    log_partial_likelihood,
    parse_groups,
)
from drosurv.metrics.pair_disparities import Convention
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.time_grid import Grid, brier_times
from drosurv.target import FloatArray, parse_target

if TYPE_CHECKING:
    import pandas as pd

OVERALL_METRICS = (
    "concordance_index",
    "dynamic_auc",
    "log_partial_likelihood",
    "null_log_partial_likelihood",
    "calibration_slope",
    "integrated_brier_score",
    "individual_disparity",
    "intersectional_disparity",
)
ATTRIBUTE_METRICS = ("group_disparity", "concordance_imparity")
# Metrics that compare hazards exp(f), which overflow where training has run away.
_OF_HAZARDS = ("individual_disparity", "intersectional_disparity", "group_disparity")


class HeldOut:
    """Held-out patients with everything that scoring them needs of the training patients.

    Parameters
    ----------
    y_train : structured array
        Target of the training patients.
    X : (n, d) array
        Features of the held-out patients, standardised by the training patients' mean and deviation.
    y : structured array, (n,)
        Their target.
    sensitive_features : DataFrame (n, J), optional
        One column of labels per attribute; without it disparities between groups have no value.
    convention : "paper" or "table"
        Convention of the disparities.
    grid : "inside" or "table"
        Times of dynamic AUC and IBS.
    """

    def __init__(
        self,
        y_train: Any,
        X: Any,
        y: Any,
        sensitive_features: pd.DataFrame | None = None,
        *,
        convention: Convention = "paper",
        grid: Grid = "inside",
    ) -> None:
        self.train_target = parse_target(y_train, name="y_train")
        self.follow_up = FollowUp.parse(self.train_target)
        self.X = np.asarray(X, dtype=np.float64)
        self.target = parse_target(y, require_event=False)
        self.convention, self.grid = convention, grid
        self.groups: dict[str, Groups] = {}
        self.intersections: Groups | None = None
        if sensitive_features is not None:
            n = len(self.target)
            self.groups = {
                str(name): parse_groups(sensitive_features[name], n, name=str(name), at_least=1)
                for name in sensitive_features.columns
            }
            self.intersections = parse_groups(sensitive_features, n, at_least=1)

    def overall(
        self, risk: FloatArray, train_risk: FloatArray, metrics: Collection[str] = OVERALL_METRICS
    ) -> dict[str, float]:
        """Metrics of all patients together.

        Parameters
        ----------
        risk : (n,) array
            Risk scores of the held-out patients.
        train_risk : (m,) array
            Risk scores of the training patients, from which the baseline hazard follows.
        metrics : collection of str
            Which of ``OVERALL_METRICS``.

        Returns
        -------
        dict of str to float; NaN where a metric has no value.
        """
        found: dict[str, Callable[[], float]] = {
            "concordance_index": lambda: concordance_index(self.target, risk),
            "dynamic_auc": lambda: dynamic_auc(self.follow_up, self.target, risk, grid=self.grid),
            "log_partial_likelihood": lambda: log_partial_likelihood(self.target, risk),
            "null_log_partial_likelihood": lambda: log_partial_likelihood(self.target, 0 * risk),
            "calibration_slope": lambda: calibration_slope(self.target, risk),
            "integrated_brier_score": lambda: self._brier(risk, train_risk),
            "individual_disparity": lambda: individual_disparity(risk, self.X, convention=self.convention),
            "intersectional_disparity": lambda: self._intersectional(risk),
        }
        return {name: self._value(name, found[name], risk) for name in OVERALL_METRICS if name in metrics}

    def by_attribute(
        self, risk: FloatArray, metrics: Collection[str] = ATTRIBUTE_METRICS
    ) -> dict[str, dict[str, float]]:
        """Metrics that compare the groups of one attribute, for every attribute.

        Parameters
        ----------
        risk : (n,) array
            Risk scores.
        metrics : collection of str
            Which of ``ATTRIBUTE_METRICS``.

        Returns
        -------
        dict of attribute to dict of str to float
        """
        out: dict[str, dict[str, float]] = {name: {} for name in self.groups}
        counts = None
        for name, groups in self.groups.items():
            if "group_disparity" in metrics:
                # Without a second group there is nothing to compare: no value, rather than a perfect one.
                gap = (
                    _undefined
                    if len(groups) < 2
                    else partial(group_disparity, risk, groups, convention=self.convention)
                )
                out[name]["group_disparity"] = self._value("group_disparity", gap, risk)
            if "concordance_imparity" in metrics:
                # The sweep over pairs serves every attribute: each only sums its patients' counts.
                counts = counts or PairOrder.for_imparity(self.target, risk).imparity_counts(
                    np.ones(len(risk))
                )
                fractions = ratio_by_group(groups, counts.numerator, counts.denominator)
                out[name]["concordance_imparity"] = float(largest_gap(fractions))
        return out

    def imparity_intervals(
        self, risk: FloatArray, *, replicates: int, random_state: int = 0
    ) -> dict[str, dict[str, float]]:
        """Bootstrap standard error and interval of every attribute's concordance imparity.

        One weighted sweep per replicate serves all attributes.

        Parameters
        ----------
        risk : (n,) array
            Risk scores.
        replicates : int
            Number of replicates.
        random_state : int
            Seed; the same seed draws the same patients for every setting, so that settings compare paired.

        Returns
        -------
        dict of attribute to ``concordance_imparity_se``, ``_low`` and ``_high``
        """
        order = PairOrder.for_imparity(self.target, risk)
        parsed = list(self.groups.values())

        def fractions(weight: FloatArray) -> FloatArray:
            counts = order.imparity_counts(weight)
            return np.concatenate([ratio_by_group(g, counts.numerator, counts.denominator) for g in parsed])

        # One thread: settings and folds are what runs in parallel.
        draws = bootstrap(fractions, len(risk), replicates=replicates, random_state=random_state, threads=1)
        out, start = {}, 0
        for name, groups in self.groups.items():
            columns = slice(start, start + len(groups))
            own = Replicates(draws.estimate[columns], draws.draws[:, columns])
            gap = gap_intervals(own, groups.labels).gap
            out[name] = {
                "concordance_imparity_se": gap.standard_error,
                "concordance_imparity_low": gap.low,
                "concordance_imparity_high": gap.high,
            }
            start += len(groups)
        return out

    def concordance_interval(
        self, risk: FloatArray, *, replicates: int, random_state: int = 0
    ) -> dict[str, float]:
        """Bootstrap standard error and interval of the c-index: ``concordance_index_se``, ``_low``, ``_high``."""
        order = PairOrder.for_harrell(self.target, risk)

        def index(weight: FloatArray) -> float:
            concordant, comparable = order.harrell_sums(weight)
            return concordant / comparable if comparable else np.nan

        draws = bootstrap(index, len(risk), replicates=replicates, random_state=random_state, threads=1)
        interval = draws.interval()
        return {
            "concordance_index_se": interval.standard_error,
            "concordance_index_low": interval.low,
            "concordance_index_high": interval.high,
        }

    def _value(self, name: str, compute: Callable[[], float], risk: FloatArray) -> float:
        # Beyond this exp(f) is infinite, and a difference of hazards has no value.
        if name in _OF_HAZARDS and float(np.max(risk)) > np.log(np.finfo(np.float64).max):
            return float("nan")
        return float(compute())

    def _brier(self, risk: FloatArray, train_risk: FloatArray) -> float:
        at = brier_times(self.follow_up, self.target, None, self.grid)
        if len(at) == 0:
            return float("nan")
        hazard = Baseline.breslow(self.train_target, train_risk).cumulative_hazard(risk, at)
        return integrated_brier_score(self.follow_up, self.target, np.exp(-hazard), times=at)

    def _intersectional(self, risk: FloatArray) -> float:
        if self.intersections is None or len(self.intersections) < 2:
            return float("nan")
        return intersectional_disparity(risk, self.intersections, convention=self.convention)


def _undefined() -> float:
    return float("nan")


def standardise(X_train: FloatArray, *others: FloatArray) -> tuple[FloatArray, ...]:
    """Features scaled to mean 0 and deviation 1 by the training patients; a constant feature becomes 0.

    Parameters
    ----------
    X_train : (m, d) array
        Features of the training patients.
    *others : (n, d) arrays
        Features of others, scaled alike.

    Returns
    -------
    tuple of arrays, the training patients' first
    """
    centre, spread = X_train.mean(axis=0), X_train.std(axis=0)
    # A column that only rounding keeps from being constant would be blown up to noise.
    constant = spread <= 1e-12 * np.maximum(np.abs(centre), 1.0)
    spread = np.where(constant, 1.0, spread)
    return tuple(np.where(constant, 0.0, (X - centre) / spread) for X in (X_train, *others))
