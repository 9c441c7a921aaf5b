"""What metrics are computed from: outcomes and predictions of all patients, and of any subset of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from drosurv import observation
from drosurv.curve_values import ProportionalValues, ScoreValues, TableValues
from drosurv.curves import SurvivalCurves
from drosurv.errors import ArgumentError, as_number, require
from drosurv.findings.from_predictions import judged_patients
from drosurv.findings.judged import Judged
from drosurv.findings.known_curves import known_throughout
from drosurv.findings.residual_tests import standard_error
from drosurv.groups import Groups
from drosurv.metrics import FollowUp, default_horizon
from drosurv.metrics.brier import BrierAgainstNull, brier_against_null, weight_error
from drosurv.metrics.concordance import UnoPairs
from drosurv.metrics.disparities import Convention
from drosurv.metrics.dynamic_auc import SortedByRisk
from drosurv.metrics.follow_up import Grid, GroupFollowUp, auc_times, auc_times_of, brier_times
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.predictions import Predicted
from drosurv.target import FloatArray, IntArray, Target, as_numbers

# Points of the mean survival curves that plots show.
_CURVE_POINTS = 100


@dataclass(frozen=True, eq=False)
class Horizon:
    """The time by which events are predicted, and the thresholds of risk for decisions at this time.

    The fields are arguments of :func:`~drosurv.evaluation.evaluate`; `thresholds` (K,) are made ascending.
    """

    horizon: float | None = None
    threshold: float | None = None
    thresholds: Any = None
    time_unit: str = ""

    def __post_init__(self) -> None:
        """Raise for a time that is not above 0, and for thresholds that do not lie between 0 and 1."""
        at, treated = self.horizon, self.threshold
        require(at is None or as_number(at) > 0, "horizon", "be a time above 0", at)
        require(treated is None or 0 < as_number(treated) < 1, "threshold", "lie between 0 and 1", treated)
        if self.thresholds is not None:
            found = np.atleast_1d(as_numbers(self.thresholds))
            if found.ndim != 1 or len(found) == 0 or not ((found > 0) & (found < 1)).all():
                raise ArgumentError.must("thresholds", "be numbers between 0 and 1", self.thresholds)
            object.__setattr__(self, "thresholds", np.unique(found))


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Outcomes of all patients and the predictions of one model, each computed when a metric first needs it.

    Time grids, Brier scores and likelihood gains of each patient are computed here, before groups are formed, so that
    they use the same times in all groups.

    By default `y_train` is the follow-up that the model kept. `judge` returns what findings are made from, by default
    from these predictions and outcomes. `given_horizon` is the horizon of the group table. Distances between patients
    are taken in the standardised `features` (n, d). The `convention` is that of disparities and time grids: as the
    paper prints them, or as its published tables use them. `pairs` of patients in disparities are all, or this many
    random ones. With `at_times`, curves are known at their times only, however many these are; with `slope_of_scores`,
    the calibration slope is that of the risk scores, also of a model with curves.
    """

    predicted: Predicted
    target: Target
    y_train: Any = None
    given_horizon: float | None = None
    reference: Predicted | None = None
    convention: Convention = "paper"
    features: FloatArray | None = None
    pairs: Pairs = "auto"
    judge: Callable[[], Judged] | None = None
    at_times: bool = False
    slope_of_scores: bool = False

    @cached_property
    def judged(self) -> Judged:
        """What findings are made from; only for predictions with curves."""
        if self.judge is not None:
            return self.judge()
        return judged_patients(
            self.predicted, self.target, follow_up=self.follow_up, horizon=self.given_horizon
        )

    @property
    def is_judged(self) -> bool:
        """Whether predictions are compared with events: the model gives survival curves."""
        return self.judge is not None or self.has_curves

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
    def few_times(self) -> FloatArray | None:
        """The times of predictions that are known at few times only; None if they are known throughout."""
        if not self.has_curves:
            return None
        if not self.at_times and known_throughout(self.model_curves, self.target):
            return None
        times = self.model_curves.times
        assert times is not None
        return times[times > 0]

    @cached_property
    def brier_times(self) -> FloatArray:
        """Times of Brier scores: those of predictions at few times, else evenly spaced."""
        times = brier_times(self.follow_up, self.target, None, self.grid)
        if self.few_times is None or len(times) == 0:
            return times
        last = min(self.follow_up.end, float(np.nextafter(self.target.time.max(), 0)))
        found: FloatArray = self.few_times[(self.few_times >= times[0]) & (self.few_times <= last)]
        return found

    @cached_property
    def calibration_times(self) -> FloatArray:
        """The horizons, ascending, including the `horizon` of the group table."""
        found = self.follow_up.event_quartiles
        if self.few_times is not None:
            # The predicted times next to them, so that nothing is interpolated.
            found = self.few_times[np.abs(self.few_times - found[:, None]).argmin(axis=1)]
        return np.union1d(found, self.horizon)

    @cached_property
    def horizon(self) -> float:
        """The horizon of metrics at one time: as given, else as :func:`drosurv.metrics.default_horizon`."""
        if self.given_horizon is not None:
            return float(self.given_horizon)
        return self.judged.horizon if self.is_judged else default_horizon(self.target)

    @cached_property
    def curve_times(self) -> FloatArray:
        """Times of mean survival curves: event times, a hundred at most, and fifty steps to the end of follow-up.

        Event times alone would leave out the end of a curve, where many patients may be at risk and few have the event.
        Predictions at few times are shown at their own times.
        """
        end = min(float(self.target.time.max()), self.follow_up.end)
        if self.few_times is not None:
            return np.append(0.0, self.few_times[self.few_times <= end])
        events = np.unique(self.target.time[self.target.event & (self.target.time <= end)])
        if len(events) > _CURVE_POINTS:
            events = events[np.linspace(0, len(events) - 1, _CURVE_POINTS // 2).astype(np.intp)]
        return np.union1d(events, np.linspace(0.0, end, _CURVE_POINTS // 2 + 1))

    @property
    def has_curves(self) -> bool:
        """Whether survival curves are known at common times; not if patients entered late and there are few times."""
        return self.predicted.has_curves

    @cached_property
    def curves(self) -> SurvivalCurves:
        """Predicted survival at every time that will be needed, computed once.

        Not for very many patients, where it would need much memory, if it can be computed fast again.
        """
        curves = self.model_curves
        fast = isinstance(curves.values, ScoreValues | ProportionalValues | TableValues)
        if fast and len(curves) > observation.MANY_PATIENTS:
            return curves
        times = [
            self.brier_times,
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
    def _brier(self) -> dict[Groups | None, BrierAgainstNull]:
        return {}

    def brier(self, groups: Groups | None = None) -> BrierAgainstNull:
        """Return Brier contributions, with censoring weights by group if given; NaN with fewer than two times."""
        if groups not in self._brier:
            times = None if self.few_times is None else self.brier_times
            if times is not None and groups is not None:
                times = times[times <= GroupFollowUp.of(self.target, groups).horizon]
            if times is not None and len(times) < 2:
                unknown = np.full(len(self.target), np.nan)
                self._brier[groups] = BrierAgainstNull(unknown, unknown)
            else:
                curves = self.curves if groups is None else self.model_curves
                how: dict[str, Any] = {"grid": self.grid, "groups": groups}
                self._brier[groups] = brier_against_null(self.follow_up, self.target, curves, times, **how)
        return self._brier[groups]

    @cached_property
    def _uno_weights(self) -> dict[Groups, FloatArray]:
        return {}

    def uno_weights(self, groups: Groups) -> FloatArray:
        """Return Uno's weights (n,), with censoring weights by group, until a time that all groups reach."""
        if groups not in self._uno_weights:
            follow_up = GroupFollowUp.of(self.target, groups)
            self._uno_weights[groups] = follow_up.inverse_probability(self.target) ** 2
        return self._uno_weights[groups]


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
        return self._select(self.data.predicted.risk)

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
        """Patients sorted for Harrell's pairs."""
        return PairOrder.for_harrell(self.target, self.risk)

    @cached_property
    def uno(self) -> UnoPairs:
        """Patients sorted for Uno's pairs."""
        return UnoPairs.of(self.target, self.risk, self.harrell)

    @cached_property
    def imparity(self) -> PairOrder:
        """Patients sorted for the pairs of Algorithm B.1 (concordance imparity)."""
        return PairOrder.for_imparity(self.target, self.risk)

    @cached_property
    def uno_weight(self) -> FloatArray:
        """Squared inverse probability of being uncensored, at each event."""
        if self.groups is not None:
            return self._select(self.data.uno_weights(self.groups))
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
        data, published = self.data, self.data.grid == "table"
        return weight_error(data.follow_up, self.target, self.curves, data.brier_times, published=published)

    @cached_property
    def brier(self) -> BrierAgainstNull:
        """Brier contributions."""
        scores = self.data.brier(self.groups)
        return BrierAgainstNull(self._select(scores.model), self._select(scores.null))

    @cached_property
    def gains(self) -> FloatArray:
        """Gains in log likelihood over one curve for everybody."""
        return self._select(self.data.judged.gains)

    @cached_property
    def has_gain(self) -> FloatArray:
        """1 for patients whose predictions are judged, else 0."""
        return self._select(self.data.judged.inside.astype(np.float64))

    @cached_property
    def gain_error(self) -> float:
        """Standard error of the mean gain."""
        judged, member = self.data.judged, np.zeros(len(self.data.judged.gains), np.bool_)
        member[slice(None) if self.rows is None else self.rows] = True
        cohort = judged.cohort
        return standard_error(
            judged.gains, member & judged.inside, cohort.copies, cohort.clusters, judged.own_curve
        ).value

    @cached_property
    def survival_at_horizon(self) -> FloatArray:
        """Predicted survival at the horizon."""
        return self.curves.survival(np.array([self.data.horizon]))[:, 0]

    @cached_property
    def by_risk(self) -> SortedByRisk:
        """Patients sorted for the dynamic AUC, at the times by which one had the event and another was observed."""
        at = auc_times_of(self.target, self.data.auc_times, self.data.grid)
        return SortedByRisk.of(self.data.follow_up, self.target, self.risk, at, self.data.grid)


def hazards_exist(risk: FloatArray) -> bool:
    """Whether every exp(risk) is finite and positive, so that mean hazards and their logarithms are defined."""
    with np.errstate(over="ignore"):
        hazard = np.exp(risk)
    return bool((np.isfinite(hazard) & (hazard > 0)).all())


def middle(horizons: Sequence[float] | FloatArray) -> float:
    """Return the middle one of several horizons in order."""
    return float(horizons[len(horizons) // 2])
