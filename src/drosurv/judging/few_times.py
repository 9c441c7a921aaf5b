r"""Residuals of predictions at few times: who had the event by each time, less the probability of that.

.. math:: r_i(t) = x_i(t) - F_i(t)

The outcome x of a patient with the event at T by t is 1 / G(T-), and that of others is 0, each with the patient's
effect on the estimate of G: the probability of not being censored, by Kaplan-Meier among patients of like predicted
risk of the judged group (:mod:`drosurv.metrics.risk_strata`). Nothing is assumed between the times, and no columns are
used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce

import numpy as np

from drosurv.errors import ArgumentError, arg
from drosurv.judging.residuals import LEAST_DISPERSION, PARTS, PatientResiduals, Sums, by_cluster, cut
from drosurv.metrics.follow_up import default_horizon
from drosurv.metrics.risk_strata import EventsByTime, followed_until
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

#: Predictions are judged at a time if so many patients are in strata of risk that were followed until then.
FEWEST_FOLLOWED = 25
_TINY = 1e-12
# Largest number of times that an error names.
_MOST_NAMED = 10
# Largest probability that two decimals round to 0.
_MOST_ROUNDED = 0.005
# Standard deviation, in units of the last digit, that rounding adds to the mean of predicted probabilities.
_ROUNDING_ERROR = 0.05
# Factors of cumulative hazards, and number of bins of probabilities, with which dispersions are computed. The largest
# factors take the smallest bounded probability to nearly 1, the smallest ones the largest to nearly 0.
_FACTORS = np.exp(np.concatenate([np.arange(-16.0, -8.0), np.linspace(-8.0, 8.0, 129), np.arange(9.0, 17.0)]))
_BINS = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualsAtTimes(PatientResiduals):
    """Residuals by J times, the ends of the parts, of patients who were followed until then.

    `probability`, `outcome` and `followed` (n, J) are predicted probabilities of the event, pseudo-values of having had
    it, and whether the patient's stratum of risk was followed; `by_censoring` (n, J) are the variances that censoring
    adds to pseudo-values if predictions are right. `unit` is the last digit of rounded probabilities.
    """

    target: Target
    probability: FloatArray
    outcome: FloatArray
    by_censoring: FloatArray
    followed: BoolArray
    unit: float = 0.0
    # Those of groups, and for residuals by one time alone those by all times, with the number of this one.
    _groups: dict[bytes, ResidualsAtTimes] = field(default_factory=dict, repr=False)
    _of: tuple[ResidualsAtTimes, int] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        target: Target,
        times: FloatArray,
        probability: FloatArray,
        weight: FloatArray | None = None,
        clusters: IntArray | None = None,
        unit: float = 0.0,
    ) -> ResidualsAtTimes:
        """Return residuals of probabilities (n, J) of the event by ascending times (J,)."""
        kept = weight = np.ones(len(target)) if weight is None else weight
        outcome, by_censoring = np.zeros(probability.shape), np.zeros(probability.shape)
        followed = np.zeros(probability.shape, np.bool_)
        for j, (time, risk) in enumerate(zip(times.tolist(), probability.T, strict=True)):
            kept = kept * followed_until(time, target, risk, kept, clusters)
            followed[:, j] = kept > 0
            if followed[:, j].any():
                events = EventsByTime.of(time, target, risk, kept, clusters)
                outcome[:, j], by_censoring[:, j] = events.outcomes, events.variances_by_censoring
        expected = _increments(probability, followed)
        return cls(
            observed=_increments(outcome, followed),
            expected=expected,
            variances=expected * (1 - expected),
            ends=times,
            time=target.time,
            weight=weight,
            clusters=clusters,
            target=target,
            probability=probability,
            outcome=outcome,
            by_censoring=by_censoring,
            followed=followed,
            unit=unit,
        )

    def of_group(self, member: BoolArray) -> ResidualsAtTimes:
        """Return the residuals of the members (n,) of a group, in strata of this group alone; others have weight 0."""
        if self._of is not None:
            whole, j = self._of
            return whole.of_group(member).by(j)
        if member.all():
            return self
        key = member.tobytes()
        if key not in self._groups:
            given = self.target, self.ends, self.probability, self.weight * member, self.clusters, self.unit
            self._groups[key] = ResidualsAtTimes.of(*given)
        return self._groups[key]

    def by(self, j: int) -> ResidualsAtTimes:
        """Return the residuals by the time number j alone, of the patients who were followed until then."""
        outcome, probability, followed = self.outcome[:, [j]], self.probability[:, [j]], self.followed[:, [j]]
        expected = probability * followed
        return replace(
            self,
            observed=outcome * followed,
            expected=expected,
            variances=expected * (1 - expected),
            ends=self.ends[[j]],
            weight=self.weight * followed[:, 0],
            probability=probability,
            outcome=outcome,
            by_censoring=self.by_censoring[:, [j]],
            followed=followed,
            _of=(self, j),
        )

    def until_last(self) -> ResidualsAtTimes:
        """Return the residuals of the patients followed until the last time that is known; others have no events."""
        kept = self.followed[:, [max(self.known_parts - 1, 0)]]
        parts = {name: getattr(self, name) * kept for name in ("observed", "expected", "variances")}
        return replace(self, **parts, followed=self.followed & kept, _groups={})

    @property
    def known_parts(self) -> int:
        """Number of times until which enough patients were followed."""
        counts = np.count_nonzero(self.followed & (self.weight > 0)[:, None], axis=0)
        return int(np.count_nonzero(counts >= FEWEST_FOLLOWED))

    def covariance(self, w: FloatArray) -> FloatArray:
        """See :meth:`PatientResiduals.covariance`; without censoring."""
        found = self._multinomial(w, self._bounded)
        if self.unit:
            n = float(self.weight @ np.abs(w))
            found = found + np.diag((_ROUNDING_ERROR * self.unit * n) ** 2 * (self.expected > 0).any(axis=0))
        return found

    def sums(self, w: FloatArray, error: FloatArray | None = None) -> Sums:
        """See :meth:`PatientResiduals.sums`.

        Variances without censoring are multiplied by how much more the residuals vary than without it, once the number
        of events by each time is right.
        """
        mass = self.weight * w
        by_ratio, corrected = self._corrected(np.abs(mass))
        each = mass[:, None] * (self.observed - corrected)
        freedom = self.freedom(np.abs(mass))
        clustered, copies = each.T @ each, 1.0
        if self.clusters is not None:
            size = mass * w * self.variances.sum(axis=1)
            of_clusters, clusters_freedom = by_cluster(each, self.clusters, mass != 0, size)
            if of_clusters is not None:
                copies = max(float(of_clusters.trace() / max(clustered.trace(), _TINY)), 1.0)
                clustered, freedom = of_clusters, min(freedom / copies, clusters_freedom)
        alone = self._multinomial(w, corrected)
        return Sums(
            observed=mass @ self.observed,
            expected=mass @ self.expected,
            model=self.covariance(w),
            clustered=clustered,
            alone=alone,
            least=copies * (alone + self.added_by_censoring(w)),
            error=error,
            freedom=freedom,
            by_ratio=by_ratio,
            hidden=_MOST_ROUNDED * (mass @ (self.followed & (self.probability == 0))),
            if_wrong=partial(self.expected_if_wrong, mass),
        )

    def expected_if_wrong(self, mass: FloatArray, factor: float) -> FloatArray:
        """Return the expected events (J,) if all cumulative hazards are multiplied by a factor."""
        return mass @ _increments(-np.expm1(factor * np.log1p(-self._bounded_until)), self.followed)

    def added_by_censoring(self, w: FloatArray) -> FloatArray:
        """Return the covariance (J, J) that censoring adds to the weighted sums of residuals, if predictions are right.

        That of a patient's outcomes by two times is the variance by the first one, times the probability of no event
        between the two.
        """
        by, free = self._by_censoring
        squares, n = self.weight * w**2, len(self.ends)
        found = np.empty((n, n))
        for j in range(n):
            found[j, j:] = found[j:, j] = (squares * by[:, j] / free[:, j]) @ free[:, j:]
        step = np.eye(n) - np.eye(n, k=-1)
        return step @ found @ step.T

    @cached_property
    def _by_censoring(self) -> tuple[FloatArray, FloatArray]:
        """What censoring adds to variances of outcomes (n, J) by the times, and probabilities of no event (n, J)."""
        last = 0
        by, free = np.zeros(self.by_censoring.shape), np.ones(self.by_censoring.shape)
        for j, known in enumerate(self.followed.T):
            # A patient who was not followed until a time has no residual from the time before on.
            by[:, j] = np.where(known, self.by_censoring[:, j], by[:, last])
            free[:, j] = np.where(known, 1 - self._bounded_until[:, j], free[:, last])
            last = j
        return by, free

    def added_in_parts(self) -> FloatArray:
        """Return the variance (n, J) that censoring adds to each patient's residuals, if predictions are right."""
        by, free = self._by_censoring
        before = np.hstack([np.zeros((len(by), 1)), by[:, :-1]])
        left = free / np.hstack([np.ones((len(by), 1)), free[:, :-1]])
        return np.maximum(by + before - 2 * before * left, 0.0)

    def freedom(self, mass: FloatArray) -> float:
        """Return the degrees of freedom of a variance: the number of events less one."""
        happened = self.target.event & (self.target.time <= self.ends[-1])
        return max(float(np.count_nonzero(happened & (mass > 0))) - 1.0, 2.0)

    def _multinomial(self, w: FloatArray, parts: FloatArray) -> FloatArray:
        """Return the covariance (J, J) of weighted sums of events with probabilities (n, J) in the parts."""
        squares = self.weight * w**2
        return np.diag(squares @ parts) - (parts * squares[:, None]).T @ parts

    @cached_property
    def _bounded_until(self) -> FloatArray:
        return bounded(self.probability, self.unit)

    @cached_property
    def _bounded(self) -> FloatArray:
        """Expected events (n, J) of probabilities without 0 and 1, whose events would have no variance."""
        return _increments(self._bounded_until, self.followed)

    def _corrected(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `Sums.by_ratio`, and probabilities (n, J) in the parts whose sums by each end are those observed.

        All cumulative hazards by an end are multiplied by one factor, so that probabilities stay below 1. Patients who
        were followed until an earlier end only count with their probability by that one in the ratios.
        """
        by_ratio, corrected, until = [], np.empty(self.probability.shape), np.zeros(len(self.probability))
        for j, (F, followed) in enumerate(zip(self._bounded_until.T, self.followed.T, strict=True)):
            until, own = np.where(followed, F, until), mass * followed
            by_ratio.append(_dispersion_by_ratio(mass * self.followed[:, 0], until))
            ratios = by_ratio[j] if np.array_equal(until, F) else _dispersion_by_ratio(own, F)
            ratio = float(own @ self.outcome[:, j]) / max(float(own @ F), _TINY)
            factor = float(np.interp(ratio, ratios[0], _FACTORS))
            corrected[:, j] = -np.expm1(factor * np.log1p(-F))
        return np.stack(by_ratio), _increments(np.maximum.accumulate(corrected, axis=1), self.followed)


def _increments(by_time: FloatArray, followed: BoolArray) -> FloatArray:
    """Return changes (n, J) of values by J times; 0 from the first time on until which a patient was not followed."""
    return np.where(followed, np.diff(by_time, axis=1, prepend=0.0), 0.0)


def _dispersion_by_ratio(mass: FloatArray, F: FloatArray) -> FloatArray:
    """Return ratios of the expected events, and relative dispersions (2, G), if hazards are multiplied by factors."""
    bins = np.minimum((F * _BINS).astype(np.intp), _BINS - 1)
    size = np.bincount(bins, mass, _BINS)
    used = size > 0
    if not used.any():
        return np.ones((2, len(_FACTORS)))
    F = np.bincount(bins, mass * F, _BINS)[used] / size[used]
    raised = -np.expm1(_FACTORS[:, None] * np.log1p(-F))
    expected = raised @ size[used]
    dispersion = raised * (1 - raised) @ size[used] / np.maximum(expected, _TINY)
    own = len(_FACTORS) // 2
    return np.stack([expected / expected[own], np.maximum(dispersion / dispersion[own], LEAST_DISPERSION)])


def bounded(probability: FloatArray, unit: float = 0.0) -> FloatArray:
    """Return probabilities without 0 and 1, which are taken as rounded to the unit, or to 1e-6."""
    least = unit / 4 if unit else 1e-6
    return np.clip(probability, least, 1 - least)


def cloglog(probability: FloatArray, unit: float = 0.0) -> FloatArray:
    """Return log(-log(1 - F)) of bounded probabilities."""
    return np.log(-np.log1p(-bounded(probability, unit)))


def times_to_judge(
    times: FloatArray,
    probability: FloatArray,
    target: Target,
    weight: FloatArray,
    clusters: IntArray | None = None,
) -> IntArray:
    """Return the columns of times above 0 until which enough were followed, or the first; raise if that is too late."""
    positive = np.flatnonzero(times > 0)
    last = float(target.time.max())
    observed = positive if target.ended.all() else positive[times[positive] <= last]

    def lost(j: int) -> bool:
        followed = followed_until(float(times[j]), target, probability[:, j], weight, clusters)
        return int(np.count_nonzero(followed)) < FEWEST_FOLLOWED

    # Fewer are followed until later times.
    found = observed[: bisect_left(observed.tolist(), True, key=lost)]
    if len(found) or len(positive) == 0:
        return found if len(found) else np.zeros(1, np.intp)
    first = float(times[positive[0]])
    if first > last:
        raise ArgumentError(
            "predictions",
            f"no patient was observed until the first predicted time, {first:g}; the longest observation ends at "
            f"{last:g}: predict earlier times, in the unit of the observed times.",
        )
    return positive[:1]


def shown_times(probability: FloatArray, weight: FloatArray, horizon: int) -> IntArray:
    """Return the columns of judged times: the horizon, and all; or, of many, four at quartiles of the events."""
    if probability.shape[1] <= PARTS + 1:
        return np.arange(probability.shape[1])
    return np.union1d(cut(weight @ probability, PARTS), horizon).astype(np.intp)


def from_first_time(
    target: Target, times: FloatArray, survival: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return times, survival, and who (n,) is judged (1, else 0) if some entered late: see `Judged.inside`."""
    if target.entry is None or not (target.entry > 0).any():
        return times, survival, np.ones(len(target))
    if len(times) == 1:
        return times, survival, (target.entry <= 0).astype(np.float64)
    at_risk = (target.entry <= times[0]) & (target.time > times[0])
    conditional = np.clip(survival[:, 1:] / np.maximum(survival[:, :1], _TINY), 0.0, 1.0)
    return times[1:], conditional, at_risk.astype(np.float64)


def common_times(models: Mapping[str, FloatArray | None], name: str) -> tuple[FloatArray, str] | None:
    """Return the times at which all models with predictions at few times are known, and a note that says so.

    `models` are their times by name; None for other models. Return None if the times are the same, or there are fewer
    than two such models. Raise an error about the argument `name` if no time is common.
    """
    few = {title: times for title, times in models.items() if times is not None}
    if len({tuple(times) for times in few.values()}) < 2:
        return None
    common = reduce(np.intersect1d, few.values())
    own = "; ".join(f"{title}: {', '.join(f'{time:g}' for time in times)}" for title, times in few.items())
    if not (common > 0).any():
        raise ArgumentError(
            name, f"{arg(name)}: the predictions have no time in common ({own}): give them at the same times."
        )
    at = ", ".join(f"{time:g}" for time in common)
    return common, f"predicted times differ ({own}): predictions are compared at their common times, {at}."


def predicted_time(at: float, times: FloatArray, given: FloatArray, name: str = "horizon") -> float:
    """Return the time among `times`, of those `given`, that equals `at`; raise an error about `name` if none does."""
    equal = np.isclose(times, at)
    if not equal.any():
        near = np.sort(np.abs(times - at).argsort(kind="stable")[:_MOST_NAMED])
        known = ", ".join(f"{time:g}" for time in times[near])
        known = known if len(near) == len(times) else f"of {len(times)}, the nearest are {known}"
        late = " Too few patients are observed until then." if np.isclose(given, at).any() else ""
        raise ArgumentError(
            name,
            f"{arg(name)} must be one of the times of the predictions that are observed ({known}), got {at:g}.{late}",
        )
    return float(times[equal][0])


def horizon_among(times: FloatArray, target: Target) -> float:
    """Return the default horizon of predictions at few times: the last of them until the patients' default horizon."""
    before = times[times <= default_horizon(target)]
    return float(before[-1] if len(before) else times[0])
