"""Residuals of predictions at few times: the event by each time less its probability, weighted for censoring.

The weight is the inverse probability of being uncensored; the residual is 0 where censoring hides the answer.
Nothing is assumed between the times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.findings.censoring import CensoringModel, fit_censoring, known_status
from drosurv.findings.residuals import PARTS, PatientResiduals, cut
from drosurv.metrics.follow_up import left_limit
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import BoolArray, FloatArray, IntArray, Target

# Predictions are judged at a time if at least this share of the patients, and this many, are not censored before it.
LEAST_OBSERVED, _FEWEST_OBSERVED = 0.1, 25
# Quantiles of the event times of a part at which probabilities of being uncensored are averaged.
_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
_TINY = 1e-12
_LARGEST_SQUARE = 9.0
# Largest probability that two decimals round to 0.
_MOST_ROUNDED = 0.005
# Standard deviation, in units of the last digit, that rounding adds to the mean of predicted probabilities.
_ROUNDING_ERROR = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomesAtTimes:
    """Predicted probabilities of the event by J times, (n, J), and who had it.

    `happened` (n, J) says who had the event, and `inverse` (n, J) is 1 / G, 0 where censoring hides that. `at_events`,
    `at_free` and `at_end` (n, J) are means of 1 / G at events until then, of those free then, and at the end.
    """

    probability: FloatArray
    happened: BoolArray
    inverse: FloatArray
    at_events: FloatArray
    at_free: FloatArray
    at_end: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightedResiduals(PatientResiduals, OutcomesAtTimes):
    """Residuals of predictions at few times, weighted for censoring.

    Probabilities are those by the end of each part, from the patient's `start` (n,) on. `censored` (n,) says who was
    censored; `before` and `after`, (n, J) and (n,), over which times a patient was weighted. `unit` is the last digit
    of rounded probabilities.
    """

    censored: BoolArray
    before: FloatArray
    start: FloatArray
    after: FloatArray | None = None
    censoring: CensoringModel | None = None
    unit: float = 0.0

    def known_parts(self, member: BoolArray) -> int:
        """Return the number of parts at whose end enough patients of a group are still uncensored."""
        until = observed_times(self.ends, self.time[member], self.censored[member], self.weight[member])
        return len(until)

    @cached_property
    def _bounded(self) -> FloatArray:
        """Probabilities (n, J) without 0 and 1, whose events would have no variance; 0 until a patient's start."""
        started = self.ends > self.start[:, None]
        return np.where(started, bounded(self.probability, self.unit), self.probability)

    @cached_property
    def _products(self) -> FloatArray:
        """Covariances (n, J, J) of one patient's residuals by the ends of the parts."""
        return covariances_at_times(self._bounded, self.at_events, self.at_free, self.at_end)

    def _until_ends(self, w: FloatArray) -> FloatArray:
        """Return weighted residuals (n, J) by the ends of the parts."""
        found: FloatArray = (self.weight * w)[:, None] * np.cumsum(self.observed - self.expected, axis=1)
        return found

    def covariance(self, w: FloatArray) -> FloatArray:
        """See :meth:`PatientResiduals.covariance`; estimated weights make it smaller."""
        until_ends = np.tensordot(self.weight * w**2, self._products, axes=1)
        if self.unit:
            n = float(self.weight @ np.abs(w))
            until_ends = until_ends + (_ROUNDING_ERROR * self.unit * n) ** 2
        if self.censoring is not None:
            taken = self.censoring.covariance(self._until_ends(w), self.before, self.after)
            until_ends = reduced(until_ends, taken)
        return covariances_in_parts(until_ends)

    def dispersion(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`PatientResiduals.dispersion`.

        To change the number of events, all hazards are multiplied by one factor: all F stay below 1.
        """
        mass, by_ratio, excess = self.weight * w, [], []
        ratios = np.cumsum(mass @ self.observed) / np.maximum(mass @ self._bounded, _TINY)
        for j, ratio in enumerate(ratios):
            F, at_events, at_free = self._bounded[:, j], self.at_events[:, j], self.at_free[:, j]
            by_ratio.append(_dispersion_by_ratio(mass * w, F, at_events, at_free))
            factor = float(np.interp(ratio, by_ratio[j][0], _FACTORS))
            F = -np.expm1(factor * np.log1p(-F))
            own = F * (1 - F) * ((1 - F) * at_events + F * at_free)
            excess.append(self._beyond_model(mass * w, (self.happened[:, j] - F) * self.inverse[:, j], own))
        return np.stack(by_ratio), np.array(excess)

    def hidden(self, w: FloatArray) -> FloatArray:
        """See :meth:`PatientResiduals.hidden`."""
        found: FloatArray = _MOST_ROUNDED * ((self.weight * w) @ (self.probability == 0))
        return found

    def contributions(self, w: FloatArray) -> FloatArray:
        """See :meth:`PatientResiduals.contributions`; with each patient's influence on the weights of others."""
        until_ends = self._until_ends(w)
        if self.censoring is not None:
            influence = [
                self.censoring.influences(values[:, None], before, self.after)
                for values, before in zip(until_ends.T, self.before.T, strict=True)
            ]
            until_ends = until_ends + self.weight[:, None] * np.hstack(influence)
        return np.diff(until_ends, prepend=0.0, axis=1)


def covariances_in_parts(until_ends: FloatArray) -> FloatArray:
    """Return covariances (..., J, J) of residuals in the parts, from those of residuals until the parts' ends."""
    J = until_ends.shape[-1]
    difference = np.eye(J) - np.eye(J, k=-1)
    found: FloatArray = difference @ until_ends @ difference.T
    return found


def events_in_parts(
    probability: FloatArray, happened: BoolArray, inverse: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return observed and expected events in the parts, (n, J); arguments as in :class:`OutcomesAtTimes`."""
    expected = np.diff(probability, axis=1, prepend=0.0)
    return expected + np.diff((happened - probability) * inverse, axis=1, prepend=0.0), expected


def covariances_at_times(
    F: FloatArray, at_events: FloatArray, at_free: FloatArray, at_end: FloatArray
) -> FloatArray:
    """Return covariances (n, J, J) of the weighted residuals of events by J times; see `WeightedResiduals`."""
    J = F.shape[1]
    found = np.empty((len(F), J, J))
    for s in range(J):
        for t in range(s, J):
            Fs, Ft = F[:, s], F[:, t]
            found[:, s, t] = found[:, t, s] = (
                (1 - Fs) * (1 - Ft) * Fs * at_events[:, s]
                + Fs * Ft * (1 - Fs) * at_free[:, s]
                - at_end[:, s] * Fs * (Ft - Fs)
            )
    return found


# Factors of cumulative hazards, and number of bins of probabilities, with which dispersions are computed. The largest
# factors take the smallest bounded probability to nearly 1, the smallest ones the largest to nearly 0.
_FACTORS = np.exp(np.concatenate([np.arange(-16.0, -8.0), np.linspace(-8.0, 8.0, 129), np.arange(9.0, 17.0)]))
_PROBABILITY_BINS = 256
_LEAST_DISPERSION = 0.05


def _dispersion_by_ratio(mass: FloatArray, F: FloatArray, m: FloatArray, k: FloatArray) -> FloatArray:
    """Return ratios of the expected events, and relative dispersions (2, G), if hazards are multiplied by factors.

    The dispersion is the sum of F (1 - F) ((1 - F) m + F k) over that of F, with weights `mass`.
    """
    bins = np.minimum((F * _PROBABILITY_BINS).astype(np.intp), _PROBABILITY_BINS - 1)
    size = np.bincount(bins, mass)
    used = size > 0
    F, m, k = (np.bincount(bins, mass * part)[used] / size[used] for part in (F, m, k))
    raised = -np.expm1(_FACTORS[:, None] * np.log1p(-F))
    expected = raised @ size[used]
    dispersion = (
        raised * (1 - raised) * ((1 - raised) * m + raised * k) @ size[used] / np.maximum(expected, _TINY)
    )
    own = len(_FACTORS) // 2
    if not (expected[own] > 0 and dispersion[own] > 0):
        return np.ones((2, len(_FACTORS)))
    return np.stack([expected / expected[own], np.maximum(dispersion / dispersion[own], _LEAST_DISPERSION)])


# Estimated weights take away at most this share of a variance.
MOST_TAKEN = 0.6


def reduced(covariance: FloatArray, taken: FloatArray) -> FloatArray:
    """Return a covariance less the positive part of another, which may take at most the share `MOST_TAKEN`."""
    scale = np.sqrt(np.maximum(np.diag(covariance), _TINY))
    values, vectors = np.linalg.eigh(taken / np.outer(scale, scale))
    share = (vectors * np.maximum(values, 0.0)) @ vectors.T
    largest = max(float(values[-1]), _TINY)
    found: FloatArray = covariance - np.outer(scale, scale) * share * min(1.0, MOST_TAKEN / largest)
    return found


def observed_times(
    times: FloatArray, time: FloatArray, censored: BoolArray, weight: FloatArray
) -> FloatArray:
    """Return the times before which at least a tenth of the patients, and at least 25, would not be censored.

    The share is that of :func:`uncensored_share`.
    """
    if not censored.any():
        return times
    share = uncensored_share(times, time, censored, weight)
    return times[share >= max(LEAST_OBSERVED, _FEWEST_OBSERVED / max(float(weight.sum()), 1.0))]


def uncensored_share(
    times: FloatArray, time: FloatArray, censored: BoolArray, weight: FloatArray
) -> FloatArray:
    """Return the share (k,) of the patients who would not be censored before each time.

    It is that of the Kaplan-Meier curve of censoring: patients who had the event are not lost.
    """
    if not censored.any():
        return np.ones(len(times))
    _, curve = KaplanMeier.both(Target(~censored, time), weight)
    return left_limit(curve.times, curve.survival, times)


def weighted_residuals(
    target: Target,
    times: FloatArray,
    probability: FloatArray,
    columns: FloatArray,
    *,
    other: BoolArray | None = None,
    parts: int = PARTS,
    weight: FloatArray | None = None,
    clusters: IntArray | None = None,
    unit: float = 0.0,
) -> WeightedResiduals:
    r"""Return residuals of probabilities of the event by few times.

    .. math:: (1[T_i \le t] - F_i(t)) / G_i(\min(Y_i, t)-)

    `probability` (n, K) is predicted for the ascending `times` (K,) until which patients are observed
    (`observed_times`), with `unit` the last digit of rounded ones, 0 if they are not rounded. A patient who entered
    late counts from the first of these times at or after entry on. Censoring may depend on the predictions and on
    `columns` (n, q); it is not an event of another cause, `other` (n,). `parts`, `weight` and `clusters` are those of
    :func:`martingale_residuals`.
    """
    n, s = len(target), np.ones(len(target)) if weight is None else weight
    other = np.zeros(n, np.bool_) if other is None else other
    F, start, after = _from_start(target, times, probability)
    score = cloglog(probability[:, -1], unit)
    # Its square too, since censoring need not depend on it linearly.
    score = score - np.average(score, weights=s)
    score = score / max(float(np.sqrt(np.average(score**2, weights=s))), _TINY)
    columns = np.column_stack([score, np.minimum(score**2, _LARGEST_SQUARE), columns])
    model = fit_censoring(target.time, ~target.event & ~other, columns, s, after)
    chosen = cut(s @ F, parts)
    ends, F = times[chosen], F[:, chosen]
    happened, inverse = known_status(target, other, ends, start, model)
    until = np.minimum(target.time[:, None], ends)
    means = _mean_weights(model, target, other, ends, F, s, after)
    observed, expected = events_in_parts(F, happened, inverse)
    return WeightedResiduals(
        observed=observed,
        expected=expected,
        variances=expected * (1 - expected),
        ends=ends,
        time=np.where(other, np.inf, target.time),
        weight=s,
        clusters=clusters,
        censored=~target.event & ~other,
        probability=F,
        happened=happened,
        inverse=inverse,
        **means,
        before=until,
        start=start,
        after=after,
        censoring=model,
        unit=unit,
    )


def bounded(probability: FloatArray, unit: float = 0.0) -> FloatArray:
    """Return probabilities without 0 and 1, which are taken as rounded to the unit, or to 1e-6."""
    least = unit / 4 if unit else 1e-6
    found: FloatArray = np.clip(probability, least, 1 - least)
    return found


def cloglog(probability: FloatArray, unit: float = 0.0) -> FloatArray:
    """Return log(-log(1 - F)) of bounded probabilities."""
    found: FloatArray = np.log(-np.log1p(-bounded(probability, unit)))
    return found


def _from_start(
    target: Target, times: FloatArray, probability: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return probabilities from each patient's start on, the starts (n,), and the same or None if all start at 0.

    A patient who was not observed beyond the start, or starts at the last time, is expected to have no event.
    """
    if target.entry is None or not (target.entry > 0).any():
        return probability, np.zeros(len(target)), None
    first = np.searchsorted(times, target.entry, side="left")
    late = target.entry > 0
    outside = late & ((first >= len(times)) | (target.time <= times[np.minimum(first, len(times) - 1)]))
    start = np.where(late, times[np.minimum(first, len(times) - 1)], 0.0)
    start[outside] = np.inf
    at_start = np.where(late, probability[np.arange(len(target)), np.minimum(first, len(times) - 1)], 0.0)
    F = (probability - at_start[:, None]) / np.maximum(1 - at_start, _TINY)[:, None]
    F = np.where(times > start[:, None], np.clip(F, 0.0, 1.0), 0.0)
    return F, start, start


def _mean_weights(
    model: CensoringModel | None,
    target: Target,
    other: BoolArray,
    ends: FloatArray,
    F: FloatArray,
    weight: FloatArray,
    after: FloatArray | None,
) -> dict[str, FloatArray]:
    """Return means (n, J) of 1 / G at events until each end, among those free then, and at the end."""
    names = ("at_events", "at_free", "at_end")
    if model is None:
        return {name: np.ones_like(F) for name in names}
    n = len(F)
    at_end = np.column_stack([model.inverse_probability(np.full(n, end), after) for end in ends])
    own = weight * model.inverse_probability(target.time, after)
    in_parts = np.column_stack(
        [
            _mean_at_events(model, target.time, target.event, own, begin, end, after)
            for begin, end in zip(np.append(-np.inf, ends[:-1]), ends, strict=True)
        ]
    )
    increments = np.diff(F, prepend=0.0, axis=1)
    at_events = np.cumsum(increments * in_parts, axis=1) / np.maximum(np.cumsum(increments, axis=1), _TINY)
    at_events = np.where(np.cumsum(increments, axis=1) > 0, at_events, 1.0)
    at_free = at_end
    if other.any():
        at_others = np.column_stack(
            [_mean_at_events(model, target.time, other, own, -np.inf, end, after) for end in ends]
        )
        share = np.array([own[other & (target.time <= end)].sum() for end in ends]) / max(weight.sum(), _TINY)
        of_free = np.clip(share / np.maximum(1 - F, _TINY), 0.0, 1.0)
        at_free = of_free * at_others + (1 - of_free) * at_end
    return dict(zip(names, (at_events, at_free, at_end), strict=True))


def _mean_at_events(
    model: CensoringModel,
    time: FloatArray,
    event: BoolArray,
    own: FloatArray,
    begin: float,
    end: float,
    after: FloatArray | None,
) -> FloatArray:
    """Return each patient's mean (n,) of 1 / G at quantiles of the event times after `begin` and until `end`."""
    inside = event & (time > begin) & (time <= end)
    if not inside.any():
        return model.inverse_probability(np.full(len(time), end), after)
    order = np.argsort(time[inside])
    mass = np.cumsum(own[inside][order])
    at = time[inside][order][np.searchsorted(mass, np.array(_QUANTILES) * mass[-1])]
    found: FloatArray = np.mean(
        [model.inverse_probability(np.full(len(time), moment), after) for moment in at], axis=0
    )
    return found
