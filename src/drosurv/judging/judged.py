"""The patients who are judged: residuals, scores and gains of what a model predicts for them.

Curves of a model, and tables whose times are close together, are known throughout. Predictions at few times are judged
at these times. Gains in log likelihood over one curve for everybody are those of what was predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from drosurv.curves import StepCurves, SurvivalCurves, rounding_unit
from drosurv.errors import ArgumentError, arg, as_number, require
from drosurv.judging.few_times import (
    ResidualsAtTimes,
    cloglog,
    common_times,
    from_first_time,
    horizon_among,
    predicted_time,
    shown_times,
    times_to_judge,
)
from drosurv.judging.own_curve import OwnCurve
from drosurv.judging.residual_tests import slope_at_one_time
from drosurv.judging.residuals import EstimationError, KnownCurves, PatientResiduals, martingale_residuals
from drosurv.metrics import FollowUp
from drosurv.metrics.follow_up import default_horizon
from drosurv.metrics.likelihood_gain import (
    EVENTS_PER_INTERVAL,
    MOST_INTERVALS,
    ScoredIntervals,
    hazard_scores,
    interval_edges,
    intervals_of_events,
    outcome_scores,
    probability_scores,
    scored_times,
)
from drosurv.metrics.nonparametric import weighted_quantiles
from drosurv.patients.arrays import as_numbers
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

_LEAST_HAZARD = 1e-9
# Few patients remain in the last interval: it is cut at these quantiles of the ends of observation in it.
_CELLS = (0.5, 0.75, 0.875)


@dataclass(frozen=True, eq=False)
class Horizon:
    """The time by which events are predicted, and the risks from which on patients would be treated.

    The fields are arguments of :func:`~drosurv.evaluation.evaluate`; `thresholds` (K,) are sorted.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Cohort:
    """Outcomes of the patients who are judged, and what is known about them.

    `follow_up` is the follow-up of the training patients, or of the judged patients if the training patients are not
    known. `folds` holds, for each of several models, the rows that it predicted and the follow-up of its training
    patients. Of each row, `clusters` (n,) is the number of its cluster and `patients` (n,) the number of its patient.
    """

    target: Target
    follow_up: FollowUp
    folds: Sequence[tuple[IntArray, FollowUp]] = ()
    clusters: IntArray | None = None
    patients: IntArray | None = None

    def __len__(self) -> int:
        return len(self.target)

    @property
    def several_events(self) -> bool:
        """Whether a patient has several events, one in each of several rows."""
        return self.patients is not None and bool(np.bincount(self.patients, self.target.event).max() > 1)

    @property
    def since(self) -> FloatArray:
        """Entry times (n,), 0 by default."""
        return np.zeros(len(self)) if self.target.entry is None else self.target.entry

    def null_at(self, times: FloatArray, read: Callable[[FollowUp, FloatArray], FloatArray]) -> FloatArray:
        """Return the one curve for everybody, read by `read` at k times, (1, k); with folds, each fold's, (n, k)."""
        if not self.folds:
            return read(self.follow_up, times)[None]
        found = np.empty((len(self), len(times)))
        for rows, follow_up in self.folds:
            found[rows] = read(follow_up, times)
        return found

    def null_hazard(self, times: FloatArray) -> FloatArray:
        """Return the cumulative hazard of the one curve for everybody at each patient's time, (n,) -> (n,)."""
        found = np.empty(len(self))
        for rows, follow_up in self.folds or [(np.arange(len(self)), self.follow_up)]:
            found[rows] = follow_up.cumulative_hazard_at(times[rows])
        return found

    def null_hazard_until(self, end: FloatArray) -> FloatArray:
        """Return the hazard (n,) of the one curve that sums while each patient is observed, until a time (n,).

        Patients without late entry are at risk at time 0, when some may have the event.
        """
        found = self.null_hazard(end)
        return found - self.null_hazard(self.since) if self.since.any() else found


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """What tests are made from: the patients, and their residuals over the follow-up and until the `horizon`.

    The horizon is when decisions are made; with entry times it counts from entry, but for predictions at few times. At
    it, `score` (n,) is the log cumulative hazard and `risk` (n,) the predicted probability of the event. `gains` (n,)
    in log likelihood are over one curve for everybody, `over_reference` (n,) over the reference, if there is one.
    `own_curve` is the one curve if it was fitted to these patients; `gains` are corrected for that. The estimation
    `error` of the model is known where its training patients are. `curves` are the predicted curves; None for
    predictions at `few_times`, between which nothing is predicted.
    """

    cohort: Cohort
    residuals: PatientResiduals
    at_horizon: PatientResiduals
    score: FloatArray
    risk: FloatArray
    horizon: float
    gains: FloatArray
    over_reference: FloatArray | None = None
    own_curve: OwnCurve | None = None
    error: EstimationError | None = None
    error_at_horizon: EstimationError | None = None
    few_times: bool = False
    curves: KnownCurves | None = None

    @property
    def trained(self) -> bool:
        """Whether the training patients are known."""
        return self.error is not None

    @property
    def inside(self) -> BoolArray:
        """Which patients (n,) are judged: all, but with late entry and few times only some of them.

        They are those at risk at the first predicted time, or, of one time, those who entered at 0.
        """
        return self.residuals.weight > 0

    @property
    def not_judged(self) -> str:
        """A note on patients who are not judged, and why; else an empty text."""
        at, total = self.at_horizon, len(self.cohort)
        outside = int(np.count_nonzero(~self.inside))
        notes = []
        if outside:
            notes.append(
                f"{outside:,} of {total:,} patients are not judged: with late entry, predictions at few times are "
                "judged only for patients who are at risk at the first predicted time, by their later events, and "
                "those at one time only for patients who entered at 0."
            )
        if isinstance(at, ResidualsAtTimes) and isinstance(self.residuals, ResidualsAtTimes):
            last = self.residuals.followed[:, max(self.residuals.known_parts - 1, 0)]
            named = [("the horizon", at.followed[:, 0]), ("the last predicted time", last)]
            for when, followed in named if self.residuals.ends[-1] > self.horizon else named[:1]:
                lost = int(np.count_nonzero(self.inside & ~followed))
                if lost:
                    notes.append(
                        f"{lost:,} of {total:,} patients are not judged at {when}: fewer than a tenth of the patients "
                        "of like predicted risk were followed until then."
                    )
        return " ".join(notes)

    def events(self, mask: BoolArray) -> tuple[float, float]:
        """Return observed events, at least 0, and expected ones of a group, in the parts that it is observed in."""
        own = self.residuals.of_group(mask)
        if isinstance(own, ResidualsAtTimes):
            if own.known_parts == 0:
                return float("nan"), float("nan")
            own = own.by(own.known_parts - 1)
        mass = own.weight[mask]
        observed, expected = (float((mass @ part[mask]).sum()) for part in (own.observed, own.expected))
        return max(observed, 0.0), expected

    def slope(self, rows: IntArray | None) -> float:
        """Return the calibration slope of predictions at few times, of some patients, by default of all."""
        chosen: Any = slice(None) if rows is None else rows
        score, at = self.score[chosen], self.at_horizon
        assert isinstance(at, ResidualsAtTimes)
        hazard, followed = np.exp(np.clip(score, -20.0, 4.0)), at.followed[chosen, 0].astype(np.float64)
        return slope_at_one_time(hazard, score, at.outcome[chosen, 0], followed)


def judge_curves(
    curves: SurvivalCurves,
    cohort: Cohort,
    *,
    horizon: float | None = None,
    design: FloatArray | None = None,
    stratum: IntArray | None = None,
    training_events: float | None = None,
    reference: SurvivalCurves | None = None,
    incidence: Callable[[float], FloatArray] | None = None,
    at_times: bool = False,
    scored_at: FloatArray | None = None,
) -> Judged:
    """Return residuals, scores and gains of predicted curves, from which tests are made; with a cause, of its curves.

    The default `horizon` is the median follow-up, as far as predictions reach. `design` (n, p) are the columns of a
    linear model, `stratum` (n,) strata with baseline hazards of their own, `training_events` the number of events that
    the model was fitted to, if known. For one of several causes, `incidence` returns the probability (n,) of its event
    by a time since entry. With `at_times`, curves are judged at their times however many these are, as the incidence of
    one cause alone is; with `scored_at` too, and gains are those of the intervals between these times.
    """
    few_times = at_times or scored_at is not None or not curves.known_throughout
    if few_times and cohort.target.other is not None and cohort.since.any():
        refuse_late_entry()
    if few_times:
        judged = _at_few_times(curves, cohort, horizon, reference, scored_at)
    else:
        judged = _throughout(curves, cohort, horizon, reference)
    if incidence is not None and not few_times:
        judged = replace(judged, risk=incidence(judged.horizon))
    if training_events is None and not cohort.folds:
        return judged
    folds, baseline = np.zeros(len(cohort), np.intp), isinstance(curves, StepCurves)
    for number, (rows, _) in enumerate(cohort.folds):
        folds[rows] = number
    in_folds = folds if cohort.folds else None

    def error(residuals: PatientResiduals) -> EstimationError:
        percentiles = cohort.follow_up.event_percentiles
        below = np.interp(residuals.ends, percentiles, np.arange(101), left=0.0, right=100.0)
        below[-1] = 100.0
        in_parts = (training_events or 0.0) * np.diff(below, prepend=0.0) / 100
        return EstimationError(
            residuals, in_parts, design, stratum, in_folds, nonparametric_baseline=baseline
        )

    return replace(judged, error=error(judged.residuals), error_at_horizon=error(judged.at_horizon))


def _throughout(
    curves: SurvivalCurves, cohort: Cohort, horizon: float | None, reference: SurvivalCurves | None
) -> Judged:
    """Return what tests of curves that are known throughout are made from: martingale residuals."""
    known, target, since = KnownCurves(curves, cohort.target), cohort.target, cohort.since
    end = float(np.max(known.until))
    if horizon is not None and horizon > end:
        raise ArgumentError(
            "horizon",
            f"{arg('horizon')} must be at most {end:g}, the last time of the predictions, got {horizon:g}.",
        )
    at = default_horizon(target.since_entry, end) if horizon is None else float(horizon)
    how: dict[str, Any] = {"discrete": known.discrete, "clusters": cohort.clusters}
    residuals = martingale_residuals(target, known.accumulated, until=known.until, **how)
    until = np.minimum(since + at, known.until)
    at_horizon = martingale_residuals(target, known.accumulated, until=until, parts=1, **how)
    hazard = known.accumulated(since + at)[0]
    survival = known.curves.survival((since + at)[:, None])[:, 0]
    if since.any():
        hazard = hazard - known.accumulated(since)[0]
        at_entry = known.curves.survival(since[:, None])[:, 0]
        survival = survival / np.maximum(at_entry, _LEAST_HAZARD)
    model = _log_likelihood(known, cohort, known.few_jumps, known.until)
    null, own = _log_likelihood_of_one_curve(known, cohort)
    return Judged(
        cohort=cohort,
        residuals=residuals,
        at_horizon=at_horizon,
        score=np.log(np.maximum(hazard, _LEAST_HAZARD)),
        risk=1 - survival,
        horizon=at,
        gains=model - null,
        over_reference=_over_reference(reference, known, cohort),
        own_curve=own,
        curves=known,
    )


def _log_likelihood(known: KnownCurves, cohort: Cohort, in_jumps: bool, until: Any) -> FloatArray:
    """Return log likelihoods (n,) of the patients under curves, until a time."""
    if in_jumps:
        times = known.curves.times
        assert times is not None
        steps = np.diff(known.curves.cumulative_hazard(times), axis=1, prepend=0.0)
        return probability_scores(steps, times, cohort.target)
    intervals, end, happened = _scored_parts(cohort, until)
    hazard = known.accumulated(end)[0] - (known.accumulated(cohort.since)[0] if cohort.since.any() else 0.0)
    at_edges = known.curves.cumulative_hazard(intervals.edges)
    rates = intervals.rates(at_edges, joined=isinstance(known.curves, StepCurves))
    return hazard_scores(rates, hazard, intervals.of(cohort.target.time), happened)


def _log_likelihood_of_one_curve(known: KnownCurves, cohort: Cohort) -> tuple[FloatArray, OwnCurve | None]:
    """Return log likelihoods (n,) of the patients under one curve for everybody, computed as those of other curves.

    If the curve was fitted to these patients, its optimism is subtracted, and the curve is returned too.
    """
    time, since = cohort.target.time, cohort.since
    if known.few_jumps:
        times = known.curves.times
        assert times is not None
        at_ends = cohort.null_at(times, FollowUp.cumulative_hazard_at)
        found = probability_scores(np.diff(at_ends, axis=1, prepend=0.0), times, cohort.target)
        begins, end, happened = np.append(0.0, times[:-1]), np.minimum(time, times[-1]), time <= times[-1]
        happened &= cohort.target.event
        interval, start = (np.clip(np.searchsorted(times, at), 0, len(times) - 1) for at in (time, since))
    else:
        intervals, end, happened = _scored_parts(cohort, known.until)
        hazard = cohort.null_hazard_until(end)
        at_edges = cohort.null_at(intervals.edges, FollowUp.cumulative_hazard_at)
        # The training patients of a fold may have no events in an interval.
        rates = intervals.rates(at_edges, joined=True)
        begins = intervals.edges[: rates.shape[1]]
        interval, start = intervals.of(time), intervals.of(since)
        found = hazard_scores(rates, hazard, interval, happened)
    copies = _own_null(cohort)
    if copies is None:
        return found, None
    at_begins = np.append(0.0, cohort.follow_up.cumulative_hazard_at(np.append(begins[1:], end.max())))
    own = OwnCurve(
        interval=interval,
        happened=happened,
        copies=copies,
        steps=np.diff(at_begins),
        summed=cohort.null_hazard(end) - at_begins[interval],
        start=start if since.any() else None,
        before=cohort.null_hazard(since) - at_begins[start] if since.any() else None,
        discrete=known.few_jumps,
    )
    return found - own.optimism, own


def _scored_parts(cohort: Cohort, until: Any) -> tuple[ScoredIntervals, FloatArray, BoolArray]:
    """Return intervals on which hazards are constant, each patient's end, and who has an event, until a time."""
    end, happened = np.minimum(cohort.target.time, until), cohort.target.event & (cohort.target.time <= until)
    own = _own_null(cohort)
    if own is None:
        edges = np.unique(np.minimum(interval_edges(cohort.follow_up), np.max(until)))
    else:
        n_intervals = intervals_of_events(float(own[happened].sum()))
        # Also the time after the last event has a hazard: the last interval reaches until the end of all observation.
        edges = np.append(interval_edges(cohort.follow_up, n_intervals)[:-1], [0.0, end.max()])
        edges = np.unique(np.minimum(edges, end.max()))
    begin = edges[-2]
    late = end > begin
    if not late.any():
        return ScoredIntervals(edges, np.ones(1)), end, happened
    cells = weighted_quantiles(end[late], np.ones(np.count_nonzero(late)), _CELLS)
    edges = np.unique(np.append(edges, cells[(cells > begin) & (cells < edges[-1])]))
    begins = edges[:-1][edges[:-1] >= begin]
    ends = np.append(begins[1:], edges[-1])
    spent = np.minimum.outer(end[late], ends) - np.maximum.outer(cohort.since[late], begins)
    return ScoredIntervals(edges, np.maximum(spent, 0.0).sum(axis=0)), end, happened


def _own_null(cohort: Cohort) -> FloatArray | None:
    """Return how many independent patients each row counts for, if one curve was fitted to the rows; else None.

    Rows of clusters count for fewer patients: the gain from the fit grows with the variance of the sums by cluster.
    """
    if not cohort.follow_up.from_test_patients or cohort.folds:
        return None
    if cohort.clusters is None:
        return np.ones(len(cohort))
    residual = cohort.target.event - cohort.null_hazard_until(cohort.target.time)
    together = float((np.bincount(cohort.clusters, residual) ** 2).sum())
    alone = max(float((residual**2).sum()), _LEAST_HAZARD)
    return np.full(len(cohort), 1 / max(together / alone, 1.0))


def _over_reference(
    reference: SurvivalCurves | None, known: KnownCurves, cohort: Cohort
) -> FloatArray | None:
    if reference is None or not reference.known_throughout:
        return None
    other = KnownCurves(reference, cohort.target)
    # Both are scored in the same way, as long as both are known.
    jumps, others = known.curves.times, other.curves.times
    in_jumps = known.few_jumps and other.few_jumps
    if jumps is not None and others is not None:
        in_jumps &= np.array_equal(jumps, others)
    until = np.minimum(known.until, other.until)
    return _log_likelihood(known, cohort, in_jumps, until) - _log_likelihood(other, cohort, in_jumps, until)


def refuse_late_entry() -> NoReturn:
    """Raise: given incidences of a cause cannot be judged from entry on."""
    raise ArgumentError(
        "entry",
        f"{arg('entry')} cannot be used with given incidences of a cause: leave it out, or give a model of causes.",
    )


def _at_few_times(
    curves: SurvivalCurves,
    cohort: Cohort,
    horizon: float | None,
    reference: SurvivalCurves | None,
    scored_at: FloatArray | None,
) -> Judged:
    """Return what tests of predictions at few times are made from: outcomes weighted for censoring, at each time."""
    given, target = curves.times, cohort.target
    assert given is not None
    survival = curves.survival(given)
    unit = rounding_unit(survival)
    times, survival, weight = from_first_time(target, given, survival)
    kept = times_to_judge(times, 1 - survival, target, weight, cohort.clusters)
    times, survival = times[kept], survival[:, kept]
    if horizon is None:
        horizon = horizon_among(times, replace(target, entry=None))
    else:
        horizon = predicted_time(horizon, times, given)
    at = int(np.searchsorted(times, horizon))
    shown = shown_times(1 - survival, weight, at)

    def residuals_at(columns: IntArray) -> ResidualsAtTimes:
        F = 1 - survival[:, columns]
        return ResidualsAtTimes.of(target, times[columns], F, weight, cohort.clusters, unit)

    residuals = residuals_at(shown)
    at_horizon = residuals.by(int(np.searchsorted(shown, at)))
    visible = scored_times(survival, unit)
    if scored_at is not None:
        # The last interval reaches until the last time.
        visible = np.union1d(np.flatnonzero(np.isin(times, scored_at)), len(times) - 1)
    scored = _with_enough_events(visible, times, cohort)
    outcomes = residuals if np.array_equal(scored, shown) else residuals_at(scored)
    model = outcome_scores(survival[:, scored], outcomes.outcome, outcomes.followed, unit)
    null = outcome_scores(_null_survival(cohort, outcomes), outcomes.outcome, outcomes.followed, unit)
    own = _own_curve_at_times(outcomes, cohort)
    over_reference = None
    if reference is not None:
        other_times, other_survival, _ = from_first_time(target, given, reference.survival(given))
        assert np.array_equal(other_times[kept], times)
        shared = common_times({"the model": given, "the reference": reference.few_times}, "reference")
        both = scored
        if shared is not None:
            inside = np.flatnonzero(np.isin(times, shared[0]))
            if len(inside) == 0:
                unknown = f"{arg('reference')} is known at no time until which patients are observed."
                raise ArgumentError("reference", unknown)
            both = inside[_with_enough_events(np.arange(len(inside)), times[inside], cohort)]
            outcomes = residuals_at(both)
        scores = (
            outcome_scores(one[:, both], outcomes.outcome, outcomes.followed, unit)
            for one in (survival, other_survival[:, kept])
        )
        over_reference = np.subtract(*scores)
    return Judged(
        cohort=cohort,
        residuals=residuals,
        at_horizon=at_horizon,
        score=cloglog(at_horizon.probability[:, 0], unit),
        risk=at_horizon.probability[:, 0],
        horizon=horizon,
        gains=model - null if own is None else model - null + own.optimism,
        over_reference=over_reference,
        own_curve=own,
        few_times=True,
    )


def _with_enough_events(scored: IntArray, times: FloatArray, cohort: Cohort) -> IntArray:
    """Return the positions in `times` of those scored times between which there are enough events for one curve.

    In short intervals, one curve that is fitted to these patients gains more than :class:`OwnCurve` allows for, and one
    of other patients may have no event.
    """
    own = _own_null(cohort)
    copies = np.ones(len(cohort)) if own is None else own
    counted = cohort.target.event & (cohort.target.time <= times[-1])
    interval = np.searchsorted(times[scored], cohort.target.time[counted])
    events = np.cumsum(np.bincount(interval, copies[counted], len(scored)))
    fewest = max(float(EVENTS_PER_INTERVAL), events[-1] / MOST_INTERVALS)
    kept, last = [], 0.0
    for number, so_far in enumerate(events):
        if so_far - last >= fewest * (1 - 1e-9):
            kept.append(number)
            last = so_far
    # The last interval reaches until the last time.
    return scored[[*kept[:-1], len(scored) - 1]]


def _null_survival(cohort: Cohort, residuals: ResidualsAtTimes) -> FloatArray:
    """Return the probability of no event by the times of residuals, the same for everybody, (1, k), or (n, k).

    That of the judged patients is the mean of their outcomes, of which censoring is allowed for among patients of like
    risk; that of training patients is by Kaplan-Meier, for each of the folds.
    """
    if _own_null(cohort) is None and cohort.target.other is None and not cohort.since.any():
        return cohort.null_at(residuals.ends, FollowUp.survival_at)
    mass = residuals.weight[:, None] * residuals.followed
    free = 1 - np.column_stack([np.zeros(len(mass)), residuals.outcome[:, :-1]])
    # In each interval, of the patients who were followed until its end.
    risk = residuals.weight @ residuals.observed / np.maximum((mass * free).sum(axis=0), _LEAST_HAZARD)
    survival: FloatArray = np.cumprod(1 - np.clip(risk, 0.0, 1.0))
    return survival[None]


def _own_curve_at_times(residuals: ResidualsAtTimes, cohort: Cohort) -> OwnCurve | None:
    """Return `Judged.own_curve` of predictions at few times; None if the curve is that of training patients."""
    copies = _own_null(cohort)
    if copies is None:
        return None
    time, ends = residuals.time, residuals.ends
    interval = np.minimum(np.searchsorted(ends, time), len(ends) - 1)
    inside = (residuals.weight > 0) & residuals.followed[np.arange(len(time)), interval]
    happened = cohort.target.event & (time <= ends[-1]) & inside
    known = np.maximum(residuals.observed[np.arange(len(time)), interval], 0.0)
    return OwnCurve(interval=interval, happened=happened, copies=copies, known=known)
