"""Follow-up of patients: censoring weights, differences between groups, and the times at which metrics are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from drosurv.errors import ArgumentError, arg, require
from drosurv.metrics.nonparametric import KaplanMeier, free_until, step_function, weighted_quantiles
from drosurv.metrics.scores import metric_target, parse_weights
from drosurv.patients.arrays import as_numbers, places_in
from drosurv.patients.groups import Missing, parse_groups
from drosurv.patients.observation import Rows, ends_of_patients, given_weight, label_codes
from drosurv.patients.target import BoolArray, FloatArray, Target, parse_target, y_field

# Horizons end where this share of the patients is still at risk: later estimates depend on few patients.
_LEAST_AT_RISK = 0.10
# Follow-up differs between groups if the shares under observation differ by this much, and this many standard errors.
_LEAST_DIFFERENCE, _STANDARD_ERRORS = 0.20, 3.0


class CensoringWeights(NamedTuple):
    """Inverse probabilities with which patients are known to have had the event, or to be free of it, at k times.

    A patient is known to be free of any event at t if t < `free_until` (n,), and then has the weight `free` (k,); later
    the weight of the `event` (n,), which is 0 for censored patients. It is this event if it `happened` (n,), and else
    one of another cause, after which this one cannot happen.
    """

    free_until: FloatArray
    event: FloatArray
    free: FloatArray
    happened: BoolArray

    def squared_errors(self, at: FloatArray, predicted: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return weighted squared errors (m, k) of probabilities (m, k) of the event by k times, for some rows."""
        ended = self.free_until[rows, None] <= at
        weight = np.where(ended, self.event[rows, None], self.free)
        return weight * ((ended & self.happened[rows, None]) - predicted) ** 2


def _last_free(target: Target, grid: Grid) -> float:
    """Return the time before which some patient is known to be free of the event."""
    if target.other is not None and target.other.any():
        return float("inf")
    return float((free_until(target) if _is_inside(grid) else target.time).max())


@dataclass(frozen=True, eq=False)
class FollowUp:
    """Kaplan-Meier curves of the event and of censoring of the training patients.

    A metric that takes ``y_train`` also takes a `FollowUp`. So a fitted model can store what censoring weights and the
    null model need, without storing its patients.

    Attributes
    ----------
    times : (m,) array
        Distinct training times, ascending.
    censoring, survival : (m,) arrays
        Kaplan-Meier probabilities of being uncensored, and of being free of the event, after each time.
    event_percentiles : (101,) array
        Percentiles 0 to 100 of the event times; of all times if there is no event.
    patients : float
        Number of these patients.
    events : float or None
        Number of events of the training patients; None if the training patients are unknown.
    from_test_patients : bool
        Whether these are the test patients, because the training patients are unknown.
    late_entry : bool
        Whether training rows were observed from an entry time after 0 on.
    """

    times: FloatArray
    censoring: FloatArray
    survival: FloatArray
    event_percentiles: FloatArray
    patients: float
    events: float | None
    from_test_patients: bool = False
    late_entry: bool = False

    @classmethod
    def of_test_patients(cls, target: Target, training_events: float | None = None, **rows: Any) -> FollowUp:
        """Use the follow-up of the test patients, as `of` does, because that of the training patients is unknown."""
        return replace(cls.of(target, **rows), from_test_patients=True, events=training_events)

    @classmethod
    def parse(cls, y_train: Any, sample_weight: Any = None) -> FollowUp:
        """From the structured target of the training patients; a `FollowUp` is returned unchanged."""
        if isinstance(y_train, FollowUp):
            return y_train
        parse_target(y_train, name="y_train")
        target = metric_target(y_train, name="y_train", late_entry=True, weighted=True)
        weight = given_weight(y_train, sample_weight)
        weight = None if weight is None else parse_weights(weight, len(target))
        id = y_field(y_train, "id")
        if id is not None and target.entry is not None:
            # Rows of one patient are one row, from the first entry on.
            patient = label_codes("id", id, len(target))[0]
            last = ends_of_patients(patient, target)[1]
            target = Rows(patient=patient).patients(target)
            weight = None if weight is None else weight[last]
        return cls.of(replace(target, entry=None), weight, entry=target.entry)

    @classmethod
    def of(
        cls, target: Target, weight: FloatArray | None = None, *, entry: FloatArray | None = None
    ) -> FollowUp:
        """From a target, with patient weights (n,) and entry times (n,)."""
        events, censoring = KaplanMeier.both(target, weight, entry=entry)
        # Without events, horizons come from the times of all patients.
        chosen = target.event if target.event.any() else np.ones(len(target), np.bool_)
        at = percentiles(target.time[chosen], None if weight is None else weight[chosen])
        patients, n_events = float(len(target)), float(target.n_events)
        if weight is not None:
            patients, n_events = float(weight.sum()), float(weight[target.event].sum())
        return cls(events.times, censoring.survival, events.survival, at, patients, n_events)

    @property
    def end(self) -> float:
        """Time at which the Kaplan-Meier curve of censoring G reaches 0, or else the last time; later G is unknown."""
        zero = np.flatnonzero(self.censoring == 0)
        return float(self.times[zero[0]] if len(zero) else self.times[-1])

    def censoring_at(self, time: FloatArray) -> FloatArray:
        """Probability G(t) of not being censored by each time; 1 before the first training time."""
        return step_function(self.times, self.censoring, time, before=1.0)

    def survival_at(self, time: FloatArray) -> FloatArray:
        """Kaplan-Meier survival after each time; 1 before the first training time, constant after the last."""
        return step_function(self.times, self.survival, time, before=1.0)

    def cumulative_hazard_at(self, time: FloatArray) -> FloatArray:
        """Nelson-Aalen cumulative hazard at each time.

        It stays finite if the Kaplan-Meier curve reaches 0 because the last patient had the event.
        """
        previous = np.concatenate(([1.0], self.survival[:-1]))
        hazard = 1.0 - np.divide(self.survival, previous, out=np.ones_like(previous), where=previous > 0)
        return step_function(self.times, np.cumsum(hazard), time, before=0.0)

    def censoring_before(self, time: FloatArray) -> FloatArray:
        """Probability G(t-) of not being censored before each time."""
        return left_limit(self.times, self.censoring, time)

    def inverse_probability(self, target: Target, *, published: bool = False) -> FloatArray:
        """Inverse probability of censoring weights 1 / G(Y-), (n,).

        G(Y-) is the probability of not being censored before Y. With `published` the weights are 1 / G(Y), as in
        scikit-survival and the published tables; the two differ only if an event and a censoring have the same time.
        Censored patients, and events after the end of the training follow-up, have weight 0; events of another cause
        have weights too.
        """
        observed = (self.censoring_at if published else self.censoring_before)(target.time)
        known = target.ended & (observed > 0) & (target.time <= self.times[-1])
        return np.divide(1.0, observed, out=np.zeros(len(target)), where=known)

    def censoring_weights(
        self, target: Target, at: FloatArray, *, published: bool = False
    ) -> CensoringWeights:
        """Weights of the Brier score of n patients at k times up to `end`.

        A patient is known to be free of the event at t if observed to t or longer, with probability G(t-). With
        `published`, as in scikit-survival and the published tables, only if observed longer than t, with probability
        G(t); the two differ only if t is the time of a censoring.
        """
        event = self.inverse_probability(target, published=published)
        if published:
            return CensoringWeights(target.time, event, 1.0 / self.censoring_at(at), target.event)
        return CensoringWeights(free_until(target), event, 1.0 / self.censoring_before(at), target.event)

    @property
    def event_quartiles(self) -> FloatArray:
        """Distinct quartiles of the event times, ascending."""
        return np.unique(self.event_percentiles[[25, 50, 75]])

    @property
    def median(self) -> float:
        """Median follow-up: the time at which the curve of censoring falls to one half; NaN if it does not."""
        return _half(self.times, self.censoring)


def last_with_enough_at_risk(target: Target) -> float:
    """The last time at which a tenth of the patients is at risk."""
    latest = np.sort(target.time)[::-1]
    return float(latest[max(int(np.ceil(_LEAST_AT_RISK * len(latest))), 1) - 1])


def median_follow_up(y: Any) -> float:
    """Median follow-up by the reverse Kaplan-Meier method: the median time to censoring.

    It is the median of a Kaplan-Meier curve in which censoring is the event and events are censored, so that early
    events do not make follow-up look short.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.

    Returns
    -------
    float
        NaN if that curve does not fall to one half.

    References
    ----------
    Schemper, Smith (1996), A note on quantifying follow-up in studies of failure time, Controlled Clinical Trials 17.

    Examples
    --------
    >>> from drosurv import Surv
    >>> median_follow_up(Surv.from_arrays([True, False, False, False], [1.0, 2.0, 3.0, 4.0]))
    3.0
    """
    curve = KaplanMeier.both(metric_target(y))[1]
    return _half(curve.times, curve.survival)


def _half(times: FloatArray, curve: FloatArray) -> float:
    """Return the first time at which the curve is at most one half; NaN if there is none."""
    reached = np.flatnonzero(curve <= 0.5 + 1e-12)
    return float(times[reached[0]]) if len(reached) else float("nan")


def default_horizon(y: Any, until: float = np.inf) -> float:
    """Default time at which models are evaluated.

    It is the median follow-up, but at most the last time at which a tenth of the patients is at risk, and at most the
    time `until` which survival is predicted.

    Examples
    --------
    >>> from drosurv import Surv
    >>> default_horizon(Surv.from_arrays([True, False, False, False], [1.0, 2.0, 3.0, 4.0]))
    3.0
    """
    target = metric_target(y)
    last, median = min(last_with_enough_at_risk(target), until), median_follow_up(target)
    return last if np.isnan(median) else min(median, last)


@dataclass(frozen=True)
class FollowUpComparison:
    """How follow-up differs between groups.

    `medians` maps each group to its median follow-up by reverse Kaplan-Meier. `difference` is the largest difference
    between two groups' probabilities of not being censored, at the time `at`. `horizon` is the time to which all
    groups are observed. If `differs` is True, ranking of groups is not comparable after this time.
    """

    medians: dict[Any, float]
    difference: float
    at: float
    horizon: float
    differs: bool


def compare_follow_up(
    y: Any, groups: Any, *, missing: Missing = "group", min_patients: int = 50
) -> FollowUpComparison:
    """Compare how long the patients of each group were observed.

    Follow-up differs if the Kaplan-Meier curves of censoring of two groups with at least `min_patients` patients differ
    at some time by at least 0.2 and by at least three standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> rng = np.random.default_rng(0)
    >>> sex = np.repeat(["f", "m"], 200)
    >>> y = Surv.from_arrays(np.zeros(400), rng.exponential(np.where(sex == "f", 1.0, 5.0)))
    >>> compare_follow_up(y, sex).differs
    True
    """
    target = metric_target(y)
    parsed = parse_groups(groups, len(target), missing=missing, at_least=1)
    target, parsed = target.take(parsed.kept), parsed.of_kept()
    parts = [target.take(parsed.codes == k) for k in range(len(parsed))]
    medians = {
        label: median_follow_up(part) if len(part) else float("nan")
        for label, part in zip(parsed.labels, parts, strict=True)
    }
    # Small groups do not shorten the time to which all are observed.
    enough = [part for part in parts if len(part) >= min_patients]
    horizon = min(map(last_with_enough_at_risk, enough or [target]))
    at = np.unique(target.time[target.time <= horizon])
    large = [KaplanMeier.both(part)[1] for part in enough]
    if len(large) < 2:
        return FollowUpComparison(medians, float("nan"), float("nan"), horizon, False)
    shares = np.array([step_function(curve.times, curve.survival, at, before=1.0) for curve in large])
    logs = np.array([step_function(curve.times, curve.log_variance, at, before=0.0) for curve in large])
    top, bottom, columns = shares.argmax(axis=0), shares.argmin(axis=0), np.arange(len(at))
    difference = shares[top, columns] - shares[bottom, columns]
    with np.errstate(invalid="ignore"):
        variance = np.nan_to_num(shares**2 * logs)
    error = np.sqrt(variance[top, columns] + variance[bottom, columns])
    worst = int(difference.argmax())
    differs = ((difference >= _LEAST_DIFFERENCE) & (difference >= _STANDARD_ERRORS * error)).any()
    return FollowUpComparison(medians, float(difference[worst]), float(at[worst]), horizon, bool(differs))


def left_limit(times: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Limit from the left of the step function through (times, values), which is 1 before the first time."""
    return np.concatenate(([1.0], values))[places_in(times, at, "left")]


def percentiles(values: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Percentiles 0 to 100 (101,) of values (n,) with weights (n,)."""
    return weighted_quantiles(values, weight, np.arange(101) / 100)


Grid = Literal["inside", "table"]


def auc_times(follow_up: FollowUp, target: Target, times: Any = None, grid: Grid = "inside") -> FloatArray:
    """Times for the dynamic AUC of patients with at least one event, ascending and distinct.

    Given `times` must lie in the valid range. By default they are 15 percentiles, evenly spaced from 5 to 81, of the
    test patients' times. "inside" drops those at which the AUC is undefined, and may return none; "table", the
    convention of the published tables, keeps all and raises an error if one is invalid.
    """
    # The AUC needs a case (from the first event on), a control (somebody known to be free of the event) and a censoring
    # weight (within the training follow-up).
    start, end = float(target.time[target.event].min()), min(float(target.time.max()), follow_up.end)
    closed = _is_inside(grid) and _last_free(target, grid) > end
    if times is None:
        if not (start < end or (closed and start == end)):
            return np.empty(0)
        times = np.percentile(target.time, np.linspace(5, 81, 15))
        if _is_inside(grid):
            inside = times[_within(times, start, end, closed=closed)]
            times = inside if len(inside) else np.linspace(start, end, 15, endpoint=False)
    return _valid(times, start, end, closed=closed)


def auc_times_of(target: Target, at: FloatArray) -> FloatArray:
    """Select the times of `at` (k,) by which one patient had the event while another was known to be free of it."""
    if not target.event.any():
        return np.empty(0)
    first = target.time[target.event].min()
    valid: FloatArray = at[(at >= first) & (at < _last_free(target, "inside"))]
    return valid


def brier_times(
    follow_up: FollowUp,
    target: Target,
    times: Any = None,
    grid: Grid = "inside",
    *,
    until: float | None = None,
) -> FloatArray:
    """Times for the integrated Brier score, ascending and distinct, at least two; none if none is valid.

    By default they are 50 evenly spaced times that begin where both training and test patients are observed, and end
    before the last time of the test patients ("table", the convention of the published tables) or, if earlier, before
    the end of the training follow-up ("inside"), and no later than `until`.
    """
    start, last = float(target.time.min()), float(target.time.max() if until is None else until)
    stop = min(last, follow_up.end)
    if times is None:
        common = max(float(follow_up.times[0]), start)
        if common >= stop:
            return np.empty(0)
        times = np.linspace(common, stop if _is_inside(grid) else last, 50, endpoint=False)
    chosen = _valid(times, start, stop, closed=_is_inside(grid))
    require(len(chosen) > 1, "times", "hold at least two times to integrate over", chosen.tolist())
    return chosen


def _is_inside(grid: Grid) -> bool:
    require(grid in ("inside", "table"), "grid", "be 'inside' or 'table'", grid)
    return grid == "inside"


def _within(times: FloatArray, start: float, end: float, *, closed: bool) -> BoolArray:
    """Whether times lie in [start, end) or, if `closed`, in [start, end]."""
    return (times >= start) & ((times <= end) if closed else (times < end))


def _valid(times: Any, start: float, end: float, *, closed: bool) -> FloatArray:
    chosen = np.unique(np.atleast_1d(as_numbers(times)))
    if len(chosen) == 0 or not _within(chosen, start, end, closed=closed).all():
        found = f"got {chosen[0]:g} to {chosen[-1]:g}" if len(chosen) else "got none"
        raise ArgumentError(
            "times",
            f"{arg('times')} must lie in [{start:g}, {end:g}{']' if closed else ')'}, where test patients are still "
            f"observed and the training follow-up gives censoring weights; {found}. Choose times in this range, or "
            f"leave {arg('times', text='None')} with {arg('grid', 'inside')}.",
        )
    return chosen
