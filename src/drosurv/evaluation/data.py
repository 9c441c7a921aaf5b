"""What metrics are computed from: outcomes and predictions of all patients, and of any subset of them.

A patient who came under observation at V is evaluated from then on: time counts from entry, and the prediction is the
survival S(V + u | x) / S(V | x), so that every metric has its usual definition. Predictions at few times are not known
at common times since entry: such patients are ranked, and have findings, but no Brier scores.

One of several causes is an event by itself. A patient who had an event of another cause is known never to have this one
(`other` in :class:`~drosurv.patients.target.Target`): observed survival is that of Aalen-Johansen, and Brier scores and
concordance are those by cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from drosurv.curves import ScoreValues, SurvivalCurves, TableValues
from drosurv.errors import ArgumentError, arg
from drosurv.estimators import CoxPH
from drosurv.judging.few_times import ResidualsAtTimes
from drosurv.judging.from_predictions import judged_patients, without_event_of
from drosurv.judging.judged import Judged, refuse_late_entry
from drosurv.judging.residuals import KnownCurves
from drosurv.metrics import FollowUp, d_calibration, default_horizon
from drosurv.metrics.brier import BrierEstimates, brier_estimates
from drosurv.metrics.calibration import DCalibration
from drosurv.metrics.estimates import Estimate
from drosurv.metrics.follow_up import auc_times, brier_times, last_with_enough_at_risk
from drosurv.metrics.nonparametric import Incidence
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.partial_likelihood import LikelihoodEstimates, likelihood_estimates
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.paper.sampled_pairs import Pairs
from drosurv.patients import observation
from drosurv.patients.arrays import on_host
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target
from drosurv.predictions import Predicted, Predictions, as_predictions
from drosurv.predictions.any_model import fitted_plain_cox
from drosurv.predictions.predicted import needs_causes
from drosurv.solvers.neighborhoods import standardise

# Points of the mean survival curves that plots show.
_CURVE_POINTS = 100
_LEAST_HAZARD = 1e-12
# Features with a larger mean or standard deviation are not standardised.
_MEAN, _SPREAD = 1.0, 3.0


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Outcomes of all patients and the predictions of one model, each computed when a metric first needs it.

    `outcome` has the entry times of patients who entered late; `target` and `curves` count from entry on, and curves
    are conditional on no event before. With a `cause`, they are those of no event of this cause. Patients whose risk
    scores have no common baseline hazard are ranked by their cumulative hazard at the time `ranked_at`.

    Times of metrics are chosen here, before groups are formed, so that they are the same in all groups. Censoring
    weights are those of the patients of each metric.

    `y_train`, by default the follow-up that the model kept, is that of the training patients: its survival is the null
    model. `judge` returns what findings are made from, by default from these predictions and outcomes. `given_horizon`
    is the horizon of the group table. Distances between patients are taken in the standardised `features` (n, d), with
    all `pairs` of patients or this many random ones. With `at_times`, curves are known at their times only, however
    many these are; with `slope_of_scores`, the calibration slope is that of the risk scores, also of a model with
    curves.
    """

    predicted: Predicted
    outcome: Target
    y_train: Any = None
    cause: int | None = None
    ranked_at: float | None = None
    given_horizon: float | None = None
    reference: Predicted | None = None
    features: FloatArray | None = None
    pairs: Pairs = "auto"
    judge: Callable[[], Judged] | None = None
    at_times: bool = False
    slope_of_scores: bool = False

    @cached_property
    def target(self) -> Target:
        """Events and times since entry."""
        return self.outcome.since_entry

    @cached_property
    def scores(self) -> Predicted:
        """The scores that rank patients: those of the model, or its log cumulative hazards at `ranked_at`."""
        if self.ranked_at is None:
            return self.predicted
        # Without curves since entry, the time is one of the predictions, which count from time 0.
        curves = self.predicted.survival_curves if self._since_entry is None else self._since_entry
        hazards = log_hazard(curves.survival(np.array([self.ranked_at]))[:, 0])
        return as_predictions(Predictions(hazards, score_type="other"), None, len(hazards))

    @property
    def risk(self) -> FloatArray:
        """Scores (n,) that rank patients, higher for earlier events."""
        return self.scores.risk

    @cached_property
    def judged(self) -> Judged:
        """What findings are made from; only for predictions with curves."""
        if self.judge is not None:
            return self.judge()
        how: dict[str, Any] = {"follow_up": self.follow_up, "horizon": self.given_horizon}
        return judged_patients(self.predicted, self.target, **how, require_event=False)

    @cached_property
    def risks(self) -> JudgedRisks:
        """Predicted and observed risks of the judged patients by a time."""
        return JudgedRisks(self)

    @property
    def is_judged(self) -> bool:
        """Whether predictions are compared with events: the model gives survival curves."""
        return self.judge is not None or self.has_curves

    @property
    def reference_risk(self) -> FloatArray | None:
        """Risk scores of the reference; None without a reference whose scores are log hazards."""
        reference = self.reference
        return reference.risk if reference is not None and reference.has_log_hazards else None

    @cached_property
    def own_follow_up(self) -> FollowUp:
        """Follow-up of these patients."""
        return FollowUp.of_test_patients(self.target)

    @cached_property
    def follow_up(self) -> FollowUp:
        """Follow-up of the training patients, or of these patients if it is not known."""
        kept = self.y_train if self.y_train is not None else self.predicted.follow_up
        return self.own_follow_up if kept is None else FollowUp.parse(kept)

    @cached_property
    def curve(self) -> Incidence:
        """Incidence of the event among these patients."""
        return Incidence.of(self.target, np.ones(len(self.target)))

    @cached_property
    def auc_times(self) -> FloatArray:
        """Times of the dynamic AUC."""
        return auc_times(self.own_follow_up, self.target) if self.target.event.any() else np.empty(0)

    @cached_property
    def few_times(self) -> FloatArray | None:
        """The times of predictions that are judged at few times, or at theirs; None if they are known throughout."""
        if not self.has_curves:
            return None
        own = self.at_times or (self.is_judged and self.judged.few_times)
        times = self.model_curves.times if own else self.model_curves.few_times
        return None if times is None else times[times > 0]

    @cached_property
    def last_time(self) -> float:
        """The last time with a tenth of all patients at risk, until which Uno's C and Brier scores are computed."""
        return last_with_enough_at_risk(self.target)

    @cached_property
    def brier_times(self) -> FloatArray:
        """Times of Brier scores while a tenth of all patients is at risk: those of few times, else evenly spaced."""
        if self.few_times is None:
            return brier_times(self.own_follow_up, self.target, until=self.last_time)
        inside = (self.few_times >= self.target.time.min()) & (self.few_times <= self.last_time)
        return np.compress(inside, self.few_times)

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
        return self._since_entry is not None

    @cached_property
    def _since_entry(self) -> SurvivalCurves | None:
        return curves_since_entry(self.predicted, self.outcome, self.cause)

    @cached_property
    def curves(self) -> SurvivalCurves:
        """Predicted survival at every needed time, computed once; not of very many patients, if that is fast."""
        curves = self.model_curves
        fast = isinstance(curves.values, ScoreValues | TableValues)
        if fast and len(curves) > observation.MANY_PATIENTS:
            return curves
        times = [self.brier_times, self.calibration_times, self.curve_times]
        return curves.computed(np.concatenate(times), self.target.time)

    @cached_property
    def model_curves(self) -> SurvivalCurves:
        """Predicted survival at any time since entry."""
        curves = self._since_entry
        if curves is None and self.predicted.has_curves:
            raise ArgumentError(
                "entry",
                f"{arg('entry')}: predictions at few times are not known at common times since entry, which Brier "
                "scores and calibration need; score with 'c_index', 'uno_c', 'auc' or 'likelihood_gain' instead.",
            )
        if curves is None:
            raise ArgumentError(
                "model",
                f"{self.predicted.title} has no predict_survival_function: Brier scores and likelihood "
                "gains need survival curves; score with 'c_index', 'uno_c' or 'auc' instead.",
            )
        return curves


@dataclass(frozen=True, eq=False)
class JudgedRisks:
    """Outcomes (n,) from the time from which patients are judged, and their risks by later times.

    With late entry, predictions at few times have risks by the times that are tested.
    """

    data: EvaluationData
    _risks: dict[float, FloatArray] = field(default_factory=dict, repr=False)
    # By the horizon, of everybody and of groups: the metric and the group table have the same.
    _by_horizon: dict[bytes, ObservedRisk] = field(default_factory=dict, repr=False)

    @property
    def clusters(self) -> IntArray | None:
        """Numbers of the patients' clusters (n,); None where patients are independent."""
        return self.data.judged.cohort.clusters

    @property
    def horizon(self) -> float:
        """The horizon of decisions."""
        return self.data.judged.horizon

    @property
    def target(self) -> Target:
        """Events and times since entry; of predictions at few times, since time 0."""
        return self.data.target if self.data.has_curves else replace(self.data.outcome, entry=None)

    def risk_by(self, time: float) -> FloatArray:
        """Return the predicted risk (n,) by a time."""
        if time == self.horizon:
            return self.data.judged.risk
        residuals = self.data.judged.residuals
        if not self.data.has_curves and isinstance(residuals, ResidualsAtTimes):
            return residuals.probability[:, np.searchsorted(residuals.ends, time)]
        if time not in self._risks:
            self._risks[time] = 1 - self.data.model_curves.survival(np.array([time]))[:, 0]
        return self._risks[time]

    def outcomes(self, time: float, rows: IntArray | None = None) -> ObservedRisk:
        """Return predicted and observed risk by a time of the judged patients among some rows, by default all."""
        key = b"all" if rows is None else rows.tobytes()
        if time == self.horizon and key in self._by_horizon:
            return self._by_horizon[key]
        among = self.among(rows)
        found = ObservedRisk.of(self.target, self.risk_by(time), time, rows=among, clusters=self.clusters)
        if time == self.horizon:
            self._by_horizon[key] = found
        return found

    def observed(self, time: float, rows: IntArray | None = None) -> ObservedRisk:
        """Return the same, without patients if some had several events: their observed risk is unknown."""
        if not self.data.judged.cohort.several_events:
            return self.outcomes(time, rows)
        unknown = ObservedRisk.of(self.target, self.risk_by(time), time, rows=np.empty(0, np.intp))
        return replace(unknown, everybody=self.risk_by(time)[self.among(rows)])

    def among(self, rows: IntArray | None = None) -> IntArray:
        """Return the rows of the judged patients among some rows, by default all."""
        inside = self.data.judged.inside
        return np.flatnonzero(inside) if rows is None else rows[inside[rows]]

    def less_predicted(self, found: ObservedRisk) -> Estimate:
        """Return observed less predicted risk, with its influence (n,); predictions are fixed."""
        less = found.observed.plus(-found.predicted).among(found.rows, len(self.data.target))
        return replace(less, patients=round(found.patients))


@dataclass(frozen=True, eq=False)
class Subset:
    """All patients of an evaluation, or some rows; ranking is measured `until` all compared groups were followed."""

    data: EvaluationData
    rows: IntArray | None = None
    until: float = np.inf

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: IntArray, until: float | None = None) -> Subset:
        """Return the given rows of these patients."""
        chosen = rows if self.rows is None else self.rows[rows]
        return Subset(self.data, chosen, self.until if until is None else until)

    @property
    def member(self) -> BoolArray:
        """Who (n,) of all patients is among these."""
        found = np.zeros(len(self.data.target), np.bool_)
        found[slice(None) if self.rows is None else self.rows] = True
        return found

    def of_all(self, found: Estimate) -> Estimate:
        """Return an estimate with its influences on these patients as one of all patients."""
        found = found if self.rows is None else found.among(self.rows, len(self.data.target))
        return replace(found, patients=len(self))

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
    def features(self) -> FloatArray:
        """Standardised features; only for evaluations with numeric features."""
        assert self.data.features is not None
        return self._select(self.data.features)

    @cached_property
    def harrell(self) -> PairOrder:
        """Patients sorted for Harrell's pairs."""
        return PairOrder.for_harrell(self.target, self.risk)

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
    def brier(self) -> BrierEstimates:
        """Brier score and skill; the null model is one curve for everybody."""
        data, times = self.data, self.data.brier_times
        null = data.follow_up.survival_at(times)
        found = brier_estimates(self.target, self.curves, times, null=null)
        skill = self.of_all(found.skill)
        if data.follow_up.from_test_patients:
            # The curve is that of all patients.
            through_null = -data.curve.derivative(times, found.by_null)
            skill = replace(skill, influence=skill.influence + through_null)
        return found._replace(score=self.of_all(found.score), skill=skill)

    @cached_property
    def likelihoods(self) -> LikelihoodEstimates:
        """Log partial likelihood, its gain, and the share of the gain of the reference."""
        reference = self.data.reference_risk
        reference = None if reference is None else self._select(reference)
        return likelihood_estimates(self.target, self.risk, None, reference)

    @cached_property
    def d_calibration(self) -> DCalibration:
        """The test of calibration over the whole range of survival."""
        return d_calibration(self.target, self.curves)


def hazards_exist(risk: FloatArray) -> bool:
    """Whether every exp(risk) is finite and positive, so that mean hazards and their logarithms are defined."""
    with np.errstate(over="ignore"):
        hazard = np.exp(risk)
    return bool((np.isfinite(hazard) & (hazard > 0)).all())


def middle(horizons: Sequence[float] | FloatArray) -> float:
    """Return the middle one of several horizons in order."""
    return float(horizons[len(horizons) // 2])


def curves_since_entry(
    predicted: Predicted, outcome: Target, cause: int | None = None
) -> SurvivalCurves | None:
    """Return survival at times since entry, given no event before; with a `cause`, the probability of no event of it.

    None if it is not known: of risk scores alone, and of predictions at few times of patients who entered late.
    """
    if outcome.entry is not None and not outcome.entry.any():
        # All were under observation from time 0.
        outcome = replace(outcome, entry=None)
    if cause is not None:
        return _free_of_cause(predicted, outcome, cause)
    if not predicted.has_curves:
        return None
    curves = predicted.survival_curves
    if outcome.entry is None:
        return curves
    return KnownCurves(curves, outcome).curves.after(outcome.entry) if curves.known_throughout else None


def _free_of_cause(predicted: Predicted, outcome: Target, cause: int) -> SurvivalCurves:
    if predicted.knows_hazards:
        if predicted.competing is None:
            raise needs_causes()
        return predicted.competing.free_of(cause, outcome.entry)
    if outcome.entry is not None:
        refuse_late_entry()
    return without_event_of(predicted, cause)


def ranking_time(curves: SurvivalCurves | None, horizon: float) -> float:
    """Return the horizon; of predictions at few times, the last of these until then, or else the first."""
    times = None if curves is None else curves.few_times
    if times is None:
        return float(horizon)
    before = times[times <= horizon]
    return float(before[-1] if len(before) else times[0])


def log_hazard(survival: FloatArray) -> FloatArray:
    """Return log cumulative hazards of survival (n,), finite also for 0 and 1."""
    hazard = -np.log(np.clip(survival, np.finfo(float).tiny, 1.0))
    return np.log(np.maximum(hazard, _LEAST_HAZARD))


@dataclass(frozen=True, eq=False)
class Features:
    """Standardised features of the test (n, d) and of the training patients (m, d); None if not known.

    The note says if features are not standardised, or if distances are left out.
    """

    test: FloatArray | None
    train: FloatArray | None
    note: str = ""


def standardised_features(X: Any, X_train: Any, *, in_folds: bool = False) -> Features:
    """Scale features to mean 0 and standard deviation 1 in the training patients; without them, return X unchanged.

    Without X, the note says whether that is because the patients were predicted `in_folds`.
    """
    test, train = _as_numbers(X), _as_numbers(_in_order_of(X, X_train))
    if test is None:
        reason = "the features hold text or missing values"
        if X is None and in_folds:
            reason = "they compare patients by one model of their features, and every fold has its own"
        elif X is None:
            reason = "they compare patients by the features of the model, which predictions do not tell"
        which = "disparities between patients (F_I, F_A and their censoring-aware forms)"
        return Features(None, None, f"{which} are left out: {reason}.")
    if train is None:
        far = np.abs(test.mean(axis=0)).max() > _MEAN or test.std(axis=0).max() > _SPREAD
        note = f"F_I takes distances in X as it is, not standardised: pass a numeric {arg('X_train')} to scale by."
        return Features(test, None, note if far else "")
    if train.shape[1] != test.shape[1]:
        raise ArgumentError(
            "X_train",
            f"{arg('X_train')} has {train.shape[1]} columns, X has {test.shape[1]}: they must be the same.",
        )
    scaled_train, scaled_test = standardise(train, test)
    return Features(scaled_test, scaled_train)


def fit_plain_cox(model: Any, features: Features, y_train: Any) -> tuple[CoxPH | None, str]:
    """Fit plain Cox on the training patients; if that is not possible, return None and a note that says why."""
    if isinstance(y_train, FollowUp) or features.train is None or features.test is None:
        return None, (
            "the share of plain Cox's likelihood gain and the shrinkage control are left out: pass a fitted reference "
            "model, or, where there are no entry times, strata, offsets or causes, y_train and numeric "
            f"{arg('X_train')} to fit plain Cox on."
        )
    if len(features.train) != len(y_train):
        raise ArgumentError(
            "X_train",
            f"{arg('X_train')} has {len(features.train)} rows, y_train has {len(y_train)}: they must match.",
        )
    return fitted_plain_cox(model, features.train, y_train), ""


def _in_order_of(X: Any, X_train: Any) -> Any:
    """Return training features with their columns in the order of X, if both have names."""
    if not (hasattr(X, "columns") and hasattr(X_train, "columns")):
        return X_train
    if odd := set(X.columns) ^ set(X_train.columns):
        both = f"{arg('X_train')} and X must have the same columns"
        raise ArgumentError("X_train", f"{both}; only one of them has {', '.join(sorted(map(str, odd)))}.")
    return X_train[list(X.columns)]


def _as_numbers(X: Any) -> FloatArray | None:
    """Return X as a finite (n, d) float64 array; None if that is not possible."""
    if X is None:
        return None
    try:
        rows = np.asarray(on_host(X), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 and rows.shape[1] > 0 and np.isfinite(rows).all() else None
