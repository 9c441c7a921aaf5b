"""What metrics are computed from: outcomes and predictions of all patients, and of any subset of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drosurv.curves import SurvivalCurves
from drosurv.errors import ArgumentError
from drosurv.groups import Groups
from drosurv.metrics import FollowUp
from drosurv.metrics.brier import BrierAgainstNull, brier_against_null, weight_error
from drosurv.metrics.disparities import Convention
from drosurv.metrics.dynamic_auc import SortedByRisk
from drosurv.metrics.expected_events import ExpectedEvents, expected_events
from drosurv.metrics.follow_up import Grid, GroupFollowUp, auc_times, auc_times_of, brier_times
from drosurv.metrics.likelihood_gain import gain_times, likelihood_gains
from drosurv.metrics.nonparametric import share_of_ties
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.predictions import Predicted
from drosurv.target import FloatArray, IntArray, Target, as_numbers

# Points of the mean survival curves that plots show.
_CURVE_POINTS = 100
_LEAST_HAZARD = 1e-12
# From this share of tied events among the patients at risk, a Cox slope is too small by more than one in a hundred.
_MANY_TIES = 0.02


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Outcomes of all patients and the predictions of one model, each computed when a metric first needs it.

    Time grids, Brier scores and likelihood gains of each patient are computed here, before groups are formed, so that
    they use the same times in all groups.

    By default `y_train` is the follow-up that the model kept. `given_horizon` is the horizon of the group table, and
    `horizons` are further times of the calibration table. Distances between patients are taken in the standardised
    `features` (n, d). The `convention` is that of disparities and time grids: as the paper prints them, or as its
    published tables use them. `pairs` of patients in disparities are all, or this many random ones.
    """

    predicted: Predicted
    target: Target
    y_train: Any = None
    horizons: Any = None
    given_horizon: float | None = None
    reference: Predicted | None = None
    convention: Convention = "paper"
    features: FloatArray | None = None
    pairs: Pairs = "auto"

    @property
    def has_risk(self) -> bool:
        """Whether the model gives risk scores."""
        return self.predicted.has_risk

    @property
    def has_log_hazards(self) -> bool:
        """Whether the model gives risk scores that are log hazards."""
        return self.predicted.has_log_hazards

    @cached_property
    def slope_of_scores(self) -> bool:
        """Whether the calibration slope is that of the scores, and not of the survival curves.

        With many tied events Breslow's partial likelihood is biased towards a slope of 0. So where predictions are
        known only at some times, such as whole years, and events are tied, the slope comes from the curves.
        """
        if not self.has_log_hazards or not self.has_curves:
            return self.has_log_hazards
        return self.model_curves.curve_type != "points" or share_of_ties(self.target) < _MANY_TIES

    @property
    def risk(self) -> FloatArray:
        """Risk scores."""
        return self.predicted.risk

    @property
    def reference_risk(self) -> FloatArray | None:
        """Risk scores of the reference; None without a reference whose scores are log hazards."""
        compared = self.reference is not None and self.reference.has_log_hazards
        return self.reference.risk if self.reference is not None and compared else None

    @cached_property
    def follow_up(self) -> FollowUp:
        """Follow-up of the training patients."""
        kept = self.y_train if self.y_train is not None else self.predicted.follow_up
        if kept is None:
            raise ArgumentError(
                "y_train",
                f"{self.predicted.title} keeps no follow_up_ of its training patients, which censoring weights "
                f"need: build the scorer with y_train=..., or use an estimator of drosurv.",
            )
        return FollowUp.parse(kept)

    @property
    def grid(self) -> Grid:
        """Rule for the times of AUC and Brier scores."""
        return "table" if self.convention == "table" else "inside"

    @cached_property
    def auc_times(self) -> FloatArray:
        """Times of the dynamic AUC."""
        if not self.target.event.any():
            return np.empty(0)
        return auc_times(self.follow_up, self.target, None, self.grid)

    @cached_property
    def calibration_times(self) -> FloatArray:
        """The horizons, ascending, including the `horizon` of the group table."""
        return np.union1d(parse_horizons(self.horizons, self.follow_up), self.horizon)

    @cached_property
    def horizon(self) -> float:
        """The horizon of metrics at one time: as given, else the middle one of the horizons."""
        if self.given_horizon is not None:
            return float(self.given_horizon)
        return middle(parse_horizons(self.horizons, self.follow_up))

    @cached_property
    def curve_times(self) -> FloatArray:
        """Times of mean survival curves: event times, a hundred at most, and fifty steps to the end of follow-up.

        Event times alone would leave out the end of a curve, where many patients may be at risk and few have the event.
        """
        end = min(float(self.target.time.max()), self.follow_up.end)
        events = np.unique(self.target.time[self.target.event & (self.target.time <= end)])
        if len(events) > _CURVE_POINTS:
            events = events[np.linspace(0, len(events) - 1, _CURVE_POINTS // 2).astype(np.intp)]
        return np.union1d(events, np.linspace(0.0, end, _CURVE_POINTS // 2 + 1))

    @property
    def has_curves(self) -> bool:
        """Whether the model gives survival curves."""
        return self.predicted.has_curves

    @cached_property
    def curves(self) -> SurvivalCurves:
        """Predicted survival at every time that will be needed, computed once."""
        curves = self.model_curves
        times = [
            brier_times(self.follow_up, self.target, None, self.grid),
            gain_times(self.follow_up, curves.times),
            self.calibration_times,
            self.curve_times,
        ]
        return curves.computed(np.concatenate(times), self.target.time)

    @cached_property
    def model_curves(self) -> SurvivalCurves:
        """Predicted survival at any time."""
        curves = self.predicted.curves
        if curves is None:
            raise ArgumentError(
                "model",
                f"{self.predicted.title} has no predict_survival_function: Brier scores and likelihood "
                "gains need survival curves; score with 'c_index', 'uno_c' or 'auc' instead.",
            )
        return curves

    @cached_property
    def expected_events(self) -> ExpectedEvents:
        """Observed and expected events of each patient until the end of follow-up, or of the curves."""
        return expected_events(self.model_curves, self.target)

    @cached_property
    def brier(self) -> BrierAgainstNull:
        """Brier contributions of every patient."""
        return brier_against_null(self.follow_up, self.target, self.curves, grid=self.grid)

    @cached_property
    def gains(self) -> FloatArray:
        """Full-likelihood gain of every patient over the null model."""
        return gains_over_null(self.predicted, self.curves, self.follow_up, self.target)

    @property
    def reference_curves(self) -> SurvivalCurves | None:
        """Survival curves of the reference; None if there are none."""
        return None if self.reference is None else self.reference.curves

    @cached_property
    def reference_gains(self) -> FloatArray | None:
        """Full-likelihood gains of the reference; None where it has no survival curves."""
        if self.reference is None or self.reference.curves is None:
            return None
        return gains_over_null(self.reference, self.reference.curves, self.follow_up, self.target)

    @cached_property
    def _by_group(self) -> dict[Groups, WeightedByGroup]:
        return {}

    def by_group(self, groups: Groups) -> WeightedByGroup:
        """Return contributions with censoring weights by group, until a time that all groups reach."""
        if groups not in self._by_group:
            brier = gains = None
            if self.has_curves:
                curves = self.model_curves
                brier = brier_against_null(self.follow_up, self.target, curves, grid=self.grid, groups=groups)
                # Predictions of several models have several null models: their gains are not weighted by group.
                if self.predicted.trained_on is None:
                    gains = likelihood_gains(self.follow_up, self.target, curves, groups=groups)
            reference_gains = None
            if self.reference_curves is not None and gains is not None:
                curves = self.reference_curves
                reference_gains = likelihood_gains(self.follow_up, self.target, curves, groups=groups)
            uno = GroupFollowUp.of(self.target, groups).inverse_probability(self.target) ** 2
            self._by_group[groups] = WeightedByGroup(uno, brier, gains, reference_gains)
        return self._by_group[groups]


class WeightedByGroup(NamedTuple):
    """Uno's weights, Brier scores and gains of n patients, with censoring weights by group; None without curves."""

    uno_weight: FloatArray
    brier: BrierAgainstNull | None
    gains: FloatArray | None
    reference_gains: FloatArray | None


@dataclass(frozen=True, eq=False)
class Subset:
    """All patients of an evaluation, or those in some rows.

    With `groups`, the labels of all patients, each patient has the censoring weights of the group.
    """

    data: EvaluationData
    rows: IntArray | None = None
    groups: Groups | None = None

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: IntArray) -> Subset:
        """Return the given rows of these patients."""
        return Subset(self.data, rows if self.rows is None else self.rows[rows], self.groups)

    def _select(self, values: FloatArray) -> FloatArray:
        return values if self.rows is None else values[self.rows]

    @cached_property
    def target(self) -> Target:
        """Events and times."""
        return self.data.target if self.rows is None else self.data.target.take(self.rows)

    @cached_property
    def risk(self) -> FloatArray:
        """Risk scores."""
        return self._select(self.data.risk)

    @property
    def reference(self) -> FloatArray:
        """Risk scores of the reference; only for evaluations with a reference."""
        assert self.data.reference_risk is not None
        return self._select(self.data.reference_risk)

    @property
    def features(self) -> FloatArray:
        """Standardised features; only for evaluations with numeric features."""
        assert self.data.features is not None
        return self._select(self.data.features)

    @cached_property
    def harrell(self) -> PairOrder:
        """Patients sorted for Harrell's and Uno's pairs."""
        return PairOrder.for_harrell(self.target, self.risk)

    @cached_property
    def imparity(self) -> PairOrder:
        """Patients sorted for the pairs of Algorithm B.1 (concordance imparity)."""
        return PairOrder.for_imparity(self.target, self.risk)

    @cached_property
    def uno_weight(self) -> FloatArray:
        """Squared inverse probability of being uncensored, at each event."""
        if self.groups is not None:
            return self._select(self.data.by_group(self.groups).uno_weight)
        return self.data.follow_up.uno_weights(self.target)

    @cached_property
    def hazard(self) -> FloatArray:
        """exp(risk); only if all are finite and positive."""
        return np.exp(self.risk)

    @cached_property
    def curves(self) -> SurvivalCurves:
        """Predicted survival."""
        curves = self.data.curves
        return curves if self.rows is None else curves.take(self.rows)

    @cached_property
    def brier_weight_error(self) -> float:
        """Standard error of the mean Brier contribution from the censoring weights of the training patients."""
        data = self.data
        at = brier_times(data.follow_up, data.target, None, data.grid)
        if data.follow_up.stands_in or len(at) == 0:
            return 0.0
        published = data.grid == "table"
        return weight_error(data.follow_up, self.target, self.curves.survival(at), at, published=published)

    @cached_property
    def brier(self) -> BrierAgainstNull:
        """Brier contributions."""
        scores = self.data.brier
        if self.groups is not None:
            weighted = self.data.by_group(self.groups).brier
            assert weighted is not None, "asked for only where there are curves"
            scores = weighted
        return BrierAgainstNull(self._select(scores.model), self._select(scores.null))

    @cached_property
    def gains(self) -> FloatArray:
        """Full-likelihood gains over the null model."""
        weighted = None if self.groups is None else self.data.by_group(self.groups).gains
        return self._select(self.data.gains if weighted is None else weighted)

    @property
    def reference_gains(self) -> FloatArray | None:
        """Full-likelihood gains of the reference; None where it has no survival curves."""
        weighted = None if self.groups is None else self.data.by_group(self.groups).reference_gains
        gains = self.data.reference_gains if weighted is None else weighted
        return None if gains is None else self._select(gains)

    @property
    def expected_events(self) -> tuple[FloatArray, FloatArray]:
        """Observed and expected events of each patient."""
        events, expected = self.data.expected_events
        return self._select(events), self._select(expected)

    @property
    def total_events(self) -> tuple[float, float]:
        """Sums of the observed and of the expected events."""
        events, expected = self.expected_events
        return float(events.sum()), float(expected.sum())

    @cached_property
    def survival_at_horizon(self) -> FloatArray:
        """Predicted survival at the horizon."""
        return self.curves.survival(np.array([self.data.horizon]))[:, 0]

    @cached_property
    def log_hazard_at_horizon(self) -> FloatArray:
        """Logarithm of the predicted cumulative hazard at the horizon."""
        hazard = -np.log(np.maximum(self.survival_at_horizon, np.finfo(float).tiny))
        return np.log(np.maximum(hazard, _LEAST_HAZARD))

    @cached_property
    def by_risk(self) -> SortedByRisk:
        """Patients sorted for the dynamic AUC, at the times by which one had the event and another was observed."""
        at = auc_times_of(self.target, self.data.auc_times, self.data.grid)
        return SortedByRisk.of(self.data.follow_up, self.target, self.risk, at, self.data.grid)


def gains_over_null(
    predicted: Predicted, curves: SurvivalCurves, follow_up: Any, target: Target
) -> FloatArray:
    """Return each patient's likelihood gain over the null model, (n,); `curves` are those of the predictions.

    For predictions of several models, as in cross-validation, the null model of each is fitted to its training
    patients. A null model of all patients would have an advantage: it would be fitted to the predicted patients too.
    """
    if predicted.trained_on is None:
        return likelihood_gains(follow_up, target, curves)
    gains = np.empty(len(target))
    for rows, trained_on in predicted.trained_on:
        gains[rows] = likelihood_gains(trained_on, target.take(rows), curves.take(rows))
    return gains


def hazards_exist(risk: FloatArray) -> bool:
    """Whether every exp(risk) is finite and positive, so that mean hazards and their logarithms are defined."""
    with np.errstate(over="ignore"):
        hazard = np.exp(risk)
    return bool((np.isfinite(hazard) & (hazard > 0)).all())


def middle(horizons: Sequence[float] | FloatArray) -> float:
    """Return the middle one of several horizons in order."""
    return float(horizons[len(horizons) // 2])


def parse_horizons(horizons: Any, follow_up: FollowUp) -> FloatArray:
    """Return the times of the calibration table, ascending; by default the quartiles of training event times."""
    if horizons is None:
        return np.unique(follow_up.event_percentiles[[25, 50, 75]])
    found = np.unique(np.atleast_1d(as_numbers(horizons)))
    if len(found) == 0 or not np.isfinite(found).all() or found[0] < 0:
        raise ArgumentError.must("horizons", "be finite times >= 0", horizons)
    return found
