"""Tests of predictions: each is a weighted sum of residuals, whose mean is zero if predictions are right.

- `level`: events of a group, observed against expected.
- `timing`: events in each part of the follow-up against the other parts, whether the total number is right or wrong.
- `slope`: residuals weighted by the log cumulative hazard at the horizon, within a group. Its number is the
  calibration slope: 1 if right, below 1 if differences between patients are overstated.

Each test gives a number with its p-value and, for any level, the interval of values that the test does not reject, so
that an interval excludes the right value exactly if p is small. The statistic is the signed root of a likelihood
ratio (Poisson, binomial, or Poisson regression), divided by the dispersion: the variance of the sum of residuals over
that of independent Poisson counts. So ties, clusters, weights for censoring and the model's estimation error all
enter in one number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr, stdtrit, xlogy

from drosurv.judging.few_times import ResidualsAtTimes
from drosurv.judging.own_curve import OwnCurve
from drosurv.judging.residuals import LEAST_CROSS_FITTED, PatientResiduals, Sums, by_cluster
from drosurv.metrics.estimates import Estimate
from drosurv.patients.target import BoolArray, FloatArray, IntArray

# Largest and smallest log ratio, or distance of a slope from 1, that an interval may reach.
_FARTHEST = 20.0
_TINY = 1e-12
_LAST_DIGITS = 1e-6
# Least share of the squares of gains that remains where they overstate the variance.
_LEAST_SQUARES = 0.85
# Slopes are searched over so many bins of scores.
_MOST_BINS = 1_000
_MOST_STEPS = 50
# Standardised distance of the number of events from the predicted one that may be chance.
_BY_CHANCE = 2.0
# A part of the follow-up is tested if so many events are expected or observed in it, and in all others.
_FEWEST_EVENTS = 5.0


@dataclass(frozen=True, eq=False)
class JudgedValue:
    """A number with its test: `root` is the standardised distance of the data from a value, decreasing in the value.

    `right` is the value under right predictions, `among` the number of values of which this is the most extreme, and
    `freedom` the degrees of freedom of its distribution. The test is at `time`, or of a part of the follow-up from
    `since` to `time`. No interval reaches beyond the `most` that is possible.
    """

    value: float
    root: Callable[[float], float]
    right: float = 1.0
    among: int = 1
    freedom: float = np.inf
    on_log_scale: bool = True
    time: float = np.nan
    since: float = np.nan
    most: float = np.inf

    @property
    def p(self) -> float:
        """Two-sided p-value that the right value is right."""
        distance = -abs(self.root(self.right))
        tail = ndtr(distance) if np.isinf(self.freedom) else stdtr(self.freedom, distance)
        return float(min(1.0, self.among * 2 * tail))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the ends of the interval of values whose p-value is at least alpha."""
        tail = alpha / self.among / 2
        bound = -float(ndtri(tail) if np.isinf(self.freedom) else stdtrit(self.freedom, tail))
        return self._where(bound, -1), min(self._where(-bound, 1), max(self.most, self.value))

    def _where(self, bound: float, side: int) -> float:
        """Return the value below (side -1) or above (1) the estimate at which the root equals the bound."""

        def distance(position: float) -> float:
            return self.root(self._at(position)) - bound

        centre = self._position(self.value)
        if side * distance(centre) <= 0:
            # The value itself is farther than an interval may reach.
            return side * max(side * self._at(centre), side * self.value)
        far, step = centre + side * 0.05, 0.1
        while side * distance(far) > 0:
            far, step = far + side * step, 2 * step
            if side * far > _FARTHEST:
                return self._at(side * np.inf)
        return self._at(float(brentq(distance, centre, far, xtol=1e-9)))

    def _at(self, position: float) -> float:
        return float(np.exp(position)) if self.on_log_scale else position

    def _position(self, value: float) -> float:
        if not self.on_log_scale:
            return value
        return float(np.clip(np.log(max(value, _TINY)), -_FARTHEST + 1, _FARTHEST - 1))


def mean(
    values: FloatArray, member: BoolArray, clusters: IntArray | None = None, own_curve: OwnCurve | None = None
) -> JudgedValue | None:
    """Return the mean of values (n,) of the members of a group, such as gains, tested against 0; None if all are equal.

    Values of one cluster are summed. Gains may be those over an `own_curve`, whose error is then part of theirs.
    """
    error, freedom = standard_error(values, member, clusters, own_curve)
    # Two fits of one model differ in their last digits only, which must not be tested.
    if not error > _LAST_DIGITS:
        return None
    average = float(values[member].mean())

    def root(value: float) -> float:
        return (average - value) / error

    return JudgedValue(average, root, 0.0, freedom=freedom, on_log_scale=False)


def standard_error(
    values: FloatArray, member: BoolArray, clusters: IntArray | None = None, own_curve: OwnCurve | None = None
) -> tuple[float, float]:
    """Return the standard error of the mean of values (n,) of members of a group, and its degrees of freedom."""
    total, freedom, each_one = int(np.count_nonzero(member)), np.inf, np.ones(len(values))
    if total == 0:
        return 0.0, freedom
    each, squares = _deviations(values, member, each_one, own_curve)
    if clusters is not None:
        clustered, freedom = by_cluster(each[:, None], clusters, each != 0, each_one)
        if clustered is not None:
            observed = float(each @ each)
            squares *= max(float(clustered[0, 0]) / max(observed, _TINY), 1.0)
    return float(np.sqrt(squares * total / max(total - 1, 1))) / total, freedom


def _deviations(
    values: FloatArray, member: BoolArray, weight: FloatArray, own_curve: OwnCurve | None
) -> tuple[FloatArray, float]:
    """Return the deviation (n,) of each value from the mean of the members, and the variance of the members' sum.

    Deviations include the influence on an `own_curve`. Their squares, summed, are the variance if there is none.
    """
    inside = weight * member
    each = member * (values - float(inside @ values) / float(inside.sum()))
    influence = None if own_curve is None else own_curve.influence(inside)
    each = each if influence is None else each - influence
    squares = float(weight @ each**2)
    if own_curve is not None:
        left = max(squares - own_curve.overstated_variance(inside), _LEAST_SQUARES * squares)
        squares = max(left, own_curve.least_variance(inside))
    return each, squares


def mean_estimate(
    values: FloatArray,
    member: BoolArray,
    weight: FloatArray,
    own_curve: OwnCurve | None = None,
    freedom: float = np.inf,
) -> Estimate:
    """Return the mean of :func:`mean` with the influence (n,) of each patient, scaled to the same variance."""
    inside = weight * member
    total = float(inside.sum())
    if not total > 0:
        return Estimate.undefined(len(values))
    each, squares = _deviations(values, member, weight, own_curve)
    observed = float(weight @ each**2)
    factor = np.sqrt(squares / observed) if observed > 0 else 1.0
    return Estimate(float(inside @ values) / total, weight * each * (factor / total), freedom=freedom)


def level(sums: Sums) -> JudgedValue:
    """Return observed over expected events, by the likelihood ratio of Poisson counts.

    The variance is the larger one of right predictions and of observed events with a corrected total.
    """
    observed, expected = max(float(sums.observed.sum()), 0.0), float(sums.expected.sum())
    least = _least_predicted(expected, 0.0 if sums.hidden is None else float(sums.hidden.sum()))
    dispersion = max(sums.variance(np.ones(len(sums.observed))), least) / max(expected, least)
    if sums.excess is not None:
        dispersion *= float(sums.excess[-1])

    def root(ratio: float) -> float:
        predicted = max(ratio * expected, least)
        deviance = 2 * (xlogy(observed, observed / predicted) - (observed - predicted))
        scale = dispersion * sums.relative_dispersion(ratio)
        return float(np.sign(observed - predicted) * np.sqrt(max(deviance, 0.0) / scale))

    return JudgedValue(observed / max(expected, _TINY), root, freedom=sums.freedom, most=sums.most)


def _least_predicted(expected: float, hidden: float = 0.0) -> float:
    """Return the least number of events, and variance, with which observed ones are compared: 1 if fewer are expected.

    Near 0, the variance is not in proportion to expected events, since rounding and weights for censoring remain.
    Rounding may also have hidden some events (`Sums.hidden`).
    """
    return max(1.0, hidden) if expected < 1 else _TINY


def timing(sums: Sums, ends: FloatArray) -> JudgedValue | None:
    """Return the ratio of events in the most extreme part of the follow-up to that in all others.

    The test of each part is binomial, given all events. A wrong number of events is no wrong timing. Of probabilities
    at few times, where all hazards, or all risks, may be wrong by one factor, a part is wrong only if it is so on both
    scales; elsewhere the factor is one of hazards. A part is tested if at least five events are expected or observed
    in it, and as many in all others together. None if no part is tested, or if fewer events are expected in total.
    """
    observed, expected = np.maximum(sums.observed, 0.0), sums.expected
    others = np.maximum(observed.sum() - observed, expected.sum() - expected)
    parts = np.flatnonzero(np.minimum(np.maximum(observed, expected), others) >= _FEWEST_EVENTS).tolist()
    if len(parts) == 0 or expected.sum() < _FEWEST_EVENTS or observed.sum() <= 0:
        return None
    begins = np.append(0.0, ends)
    scales = [(expected, np.zeros(len(expected)))]
    if (other := _on_other_scale(sums)) is not None:
        scales.append(other)
    found = [reduce(_both_reject, [_part_against_others(sums, j, *how) for how in scales]) for j in parts]
    # Two parts are one comparison.
    among = len(found) if len(expected) > 2 else 1
    # Of equally extreme parts, which differ by rounding errors, the first is named. Near 0, roots enlarge these errors:
    # in the training data of a Cox model all parts have as many events as are expected.
    j, worst = max(zip(parts, found, strict=True), key=lambda pair: round(pair[1].root(1.0) ** 2, 9))
    since, end = float(begins[j]), float(ends[j])
    return JudgedValue(worst.value, worst.root, among=among, freedom=sums.freedom, time=end, since=since)


def _on_other_scale(sums: Sums) -> tuple[FloatArray, FloatArray] | None:
    """Return expected events (J,) of probabilities at few times if all cumulative hazards are wrong by one factor.

    The factor is that of the observed number of events, shrunk to 1 as far as it may be chance (James and Stein). Also
    returned are variances (J,) that its estimation adds to the difference of each part from its share. None if the
    number of events may be right.
    """
    observed, expected = max(float(sums.observed.sum()), 0.0), float(sums.expected.sum())
    z = level(sums).root(1.0)
    if sums.if_wrong is None or not (abs(z) > _BY_CHANCE and observed > 0 and expected > 0):
        return None
    n_parts, shrunk = len(sums.expected), 1 - (_BY_CHANCE / z) ** 2
    at_one = np.maximum(sums.if_wrong(1.0)[:n_parts], _TINY)

    def rescaled(log_factor: float) -> FloatArray:
        assert sums.if_wrong is not None
        return sums.expected * sums.if_wrong(float(np.exp(log_factor)))[:n_parts] / at_one

    target = expected * (observed / expected) ** shrunk
    log_factor = _zero(lambda at: target - float(rescaled(at).sum()))
    changed = rescaled(log_factor)
    change = rescaled(log_factor + 1e-4) - changed
    if not change.sum() > 0:
        return None
    distance = shrunk * (change / change.sum() - changed / changed.sum())
    total = sums.variance(np.ones(n_parts)) * sums.relative_dispersion(observed / expected)
    return changed * expected / changed.sum(), distance**2 * total


def _both_reject(first: JudgedValue, second: JudgedValue) -> JudgedValue:
    """Return the test that rejects a value if two tests reject it on the same side; of two values the nearer to 1."""

    def root(value: float) -> float:
        roots = first.root(value), second.root(value)
        return min(roots, key=abs) if roots[0] * roots[1] > 0 else 0.0

    lower, higher = sorted([first.value, second.value])
    nearer = min(max(1.0, lower), higher)
    return JudgedValue(nearer, root)


def _part_against_others(sums: Sums, j: int, expected: FloatArray, added: FloatArray) -> JudgedValue:
    """Compare events over expected events (J,) in part j of the follow-up with those of the other parts.

    The number is the ratio of the two ratios. Given the total, events in the part are binomial; the signed root of the
    likelihood ratio is divided by the root of the dispersion. Variances (J,) may be `added`.
    """
    observed = np.maximum(sums.observed, 0.0)
    of_part, of_others = float(expected[j]), float(expected.sum() - expected[j])
    hidden = 0.0 if sums.hidden is None else float(sums.hidden[j])
    least, least_others = _least_predicted(of_part, hidden), _least_predicted(of_others)
    others = max(of_others, least_others)
    share = max(of_part, least) / (max(of_part, least) + others)
    inside, outside = float(observed[j]), float(observed.sum() - observed[j])
    direction = np.full(len(expected), -share)
    direction[j] += 1.0
    dispersion = max(sums.variance(direction) + added[j], least, least_others) / (others * share)

    def root(ratio: float) -> float:
        predicted, total = max(of_part * ratio, least), inside + outside
        # Not 1 - p, which is 0 where nearly all events are predicted in the part.
        p, rest = predicted / (predicted + others), others / (predicted + others)
        deviance = 2 * (xlogy(inside, inside / (total * p)) + xlogy(outside, outside / (total * rest)))
        return float(np.sign(inside - total * p) * np.sqrt(max(deviance, 0.0) / dispersion))

    odds = max(inside, _TINY) / max(outside, _TINY)
    return JudgedValue(odds * max(of_others, _TINY) / max(of_part, _TINY), root)


def slope(
    residuals: PatientResiduals,
    score: FloatArray,
    member: BoolArray,
    error: Callable[[FloatArray], FloatArray | None] | None = None,
) -> JudgedValue | None:
    """Return the calibration slope of a group, with the test that predicted risks differ too much or too little.

    `score` (n,) is the log cumulative hazard at the horizon; residuals of predictions at few times are those by the
    horizon alone. `error` returns the covariance (J, J) that estimation error adds to a weighted sum. It counts only
    against a slope above 1: predictions of a model that was fitted to few patients are too extreme, which the slope is
    to show. None if all scores are equal.
    """
    if isinstance(residuals, ResidualsAtTimes):
        return _slope_at_one_time(residuals, score, member, error)
    own, mass = score[member], residuals.weight[member]
    observed, expected = (mass * part[member] for part in residuals.events)
    events = float(observed.sum())
    if events <= 0 or expected.sum() <= 0:
        return None
    own = own - np.average(own, weights=np.maximum(expected, _TINY))
    sum_x = float(observed @ own)
    x, (expected,) = _binned(own, expected, expected)
    information = float(expected @ x**2)
    if information <= 1e-9:
        return None

    counted = expected > 0

    def tilted(change: float) -> tuple[FloatArray, float]:
        """Return expected events times exp(change x), divided by the largest factor, and the log of this factor."""
        top = float((change * x)[counted].max())
        return expected * np.exp(np.minimum(change * x - top, 0.0)), top

    def derivative(change: float) -> float:
        mass, _ = tilted(change)
        return sum_x - events * float(mass @ x / mass.sum())

    def likelihood(change: float) -> float:
        mass, top = tilted(change)
        return float(change * sum_x - events * (top + np.log(mass.sum())))

    best = _zero(derivative)
    # Estimation error counts above the value tested only.
    w = _spread(own, member)
    sums = residuals.sums(w, None if error is None else error(w))
    ones = np.ones(len(sums.observed))
    below = sums.variance(ones, with_error=False) / information
    above = max(sums.variance(ones) / information, below)

    def root(slope: float) -> float:
        deviance = 2 * (likelihood(best) - likelihood(slope - 1))
        dispersion = above if best + 1 > slope else below
        return float(np.sign(best + 1 - slope) * np.sqrt(max(deviance, 0.0) / dispersion))

    return JudgedValue(best + 1, root, on_log_scale=False, freedom=sums.freedom)


def _binned(x: FloatArray, mass: FloatArray, *sums: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Return means of x, weighted by mass, and sums of others in at most 1,000 bins of x; few rows are unchanged.

    Bins have about the same mass. Equal values are in one bin, so that the order of rows has no influence.
    """
    if len(x) <= _MOST_BINS:
        return x, list(sums)
    order, mass = np.argsort(x, kind="stable"), np.maximum(mass, _TINY)
    first = np.flatnonzero(np.diff(x[order], prepend=-np.inf))
    before = (np.cumsum(mass[order]) - mass[order])[first] / mass.sum()
    begins = first[np.flatnonzero(np.diff(np.floor(_MOST_BINS * before), prepend=-1.0))]
    means = np.add.reduceat((mass * x)[order], begins) / np.add.reduceat(mass[order], begins)
    return means, [np.add.reduceat(one[order], begins) for one in sums]


def _zero(derivative: Callable[[float], float]) -> float:
    """Return where a decreasing function is zero, at most at a distance of 20 from 0."""
    low, high = -0.5, 0.5
    while derivative(low) < 0 and low > -_FARTHEST:
        low *= 2
    while derivative(high) > 0 and high < _FARTHEST:
        high *= 2
    if derivative(low) <= 0 or derivative(high) >= 0:
        return low if derivative(low) <= 0 else high
    return float(brentq(derivative, low, high, xtol=1e-10))


def _slope_at_one_time(
    residuals: ResidualsAtTimes,
    score: FloatArray,
    member: BoolArray,
    error: Callable[[FloatArray], FloatArray | None] | None,
) -> JudgedValue | None:
    """Return the slope of predictions at one time: the score test of log(-log S) + a + (slope - 1) * score."""
    member = member & (residuals.weight > 0)
    if not member.any():
        return None
    patients = _AtOneTime(residuals, score, member)
    if patients.information <= 1e-9:
        return None
    w = _spread(patients.own, member)
    best = _zero(lambda change: patients.statistic(change)[0])
    # With this slope, residuals vary as those of right predictions: more than without censoring.
    right = patients.probability(best)
    each = residuals.weight * w * (residuals.outcome[:, 0] - _spread(right, member))
    observed = float((each**2).sum())
    freedom, copies = residuals.freedom(member.astype(np.float64)), 1.0
    if residuals.clusters is not None:
        size = residuals.weight * w**2 * residuals.variances[:, 0]
        clustered, of_clusters = by_cluster(each[:, None], residuals.clusters, w != 0, size)
        if clustered is not None:
            copies = max(float(clustered[0, 0]) / max(observed, _TINY), 1.0)
            observed, freedom = copies * observed, min(freedom / copies, of_clusters)
    expected = float(residuals.weight[member] * patients.own**2 @ (right * (1 - right)))
    observed = max(observed, copies * (expected + float(residuals.added_by_censoring(w)[0, 0])))
    without = max(observed / max(expected, _TINY), 1.0)
    added = 0.0 if error is None or (found := error(w)) is None else float(found[0, 0])
    # Errors of cross-fitted predictions are subtracted, and known only approximately.
    with_error = max(without + added / patients.variance_at, LEAST_CROSS_FITTED * without)

    def root(slope: float) -> float:
        value, variance = patients.statistic(slope - 1)
        dispersion = max(with_error, without) if value > 0 else without
        return float(value / np.sqrt(max(variance * dispersion, _TINY)))

    end = float(residuals.ends[0])
    return JudgedValue(1 + best, root, on_log_scale=False, freedom=freedom, time=end)


def _spread(values: FloatArray, member: BoolArray) -> FloatArray:
    """Return values (m,) of members as (n,), 0 for others."""
    found = np.zeros(len(member))
    found[member] = values
    return found


def slope_at_one_time(
    hazard: FloatArray, score: FloatArray, happened: FloatArray, weight: FloatArray
) -> float:
    """Return the slope b with which hazards exp(a + (b - 1) score) hazard fit events by one time; NaN for none."""
    x = score - np.average(score, weights=weight) if weight.sum() > 0 else score
    found = fit_at_one_time(hazard, np.column_stack([np.ones(len(x)), x]), happened, weight)
    return float("nan") if found is None else float(1 + found[1])


def fit_at_one_time(
    hazard: FloatArray, z: FloatArray, happened: FloatArray, weight: FloatArray, penalty: Any = 0.0
) -> FloatArray | None:
    """Return effects theta (p,) of columns z (n, p), if hazards until one time are multiplied by exp(z theta).

    The weighted sums of z times the residuals are then the penalty (p,) times theta. None if Newton's steps find no
    such effects.
    """
    theta, penalty = np.zeros(z.shape[1]), np.broadcast_to(penalty, z.shape[1])
    for _ in range(_MOST_STEPS):
        own = hazard * np.exp(np.clip(z @ theta, -30.0, 30.0))
        F = -np.expm1(-own)
        information = (z * (weight * (1 - F) * own)[:, None]).T @ z + np.diag(penalty)
        if not np.linalg.det(information) > _TINY:
            return None
        step = np.linalg.solve(information, z.T @ (weight * (happened - F)) - penalty * theta)
        if np.abs(step).max() < 1e-8:
            return theta
        theta = theta + np.clip(step, -1.0, 1.0)
    return None


class _AtOneTime:
    """Patients of a group whose log cumulative hazards at one time are shifted, and changed in proportion to scores."""

    def __init__(self, residuals: ResidualsAtTimes, score: FloatArray, member: BoolArray) -> None:
        least = max(residuals.unit / 4, 1e-9)
        F = np.clip(residuals.probability[member, 0], least, 1 - least)
        mass, self.log_hazard = residuals.weight[member], np.log(-np.log1p(-F))
        slack = mass * (1 - F) * np.exp(self.log_hazard)
        self.own = score[member] - np.average(score[member], weights=slack)
        self.information = float(slack @ self.own**2)
        self.variance_at = float(mass * self.own**2 @ (F * (1 - F)))
        happened = mass * residuals.outcome[member, 0]
        self.happened, self.happened_x = float(happened.sum()), float(happened @ self.own)
        self.x, (self.mass, log_hazard) = _binned(self.own, mass, mass, mass * self.log_hazard)
        self.hazard = np.exp(log_hazard / self.mass)

    def probability(self, change: float) -> FloatArray:
        """Return the probabilities (m,) of the members after a change of the slope."""
        log_hazard = self.log_hazard + np.clip(self._shift(change) + change * self.own, -30.0, 30.0)
        return np.asarray(-np.expm1(-np.exp(log_hazard)), np.float64)

    def statistic(self, change: float) -> tuple[float, float]:
        """Return the weighted sum of residuals after a change of the slope, and its variance without censoring."""
        F = -np.expm1(-self._hazard(self._shift(change), change))
        slack = self.mass * (1 - F) * -np.log1p(-np.minimum(F, 1 - 1e-12))
        centre = float(np.average(self.x, weights=np.maximum(slack, _TINY)))
        w, observed = self.x - centre, self.happened_x - centre * self.happened
        return observed - float(w @ (self.mass * F)), float(w**2 @ (self.mass * F * (1 - F)))

    def _hazard(self, shift: float, change: float) -> FloatArray:
        return self.hazard * np.exp(np.clip(shift + change * self.x, -30.0, 30.0))

    def _shift(self, change: float) -> float:
        """Return the shift of log hazards that predicts as many events as were observed, by Newton's method."""
        observed, shift = self.happened, 0.0
        for _ in range(_MOST_STEPS if 0 < observed < self.mass.sum() else 0):
            hazard = self._hazard(shift, change)
            predicted, slope = float(self.mass @ -np.expm1(-hazard)), self.mass @ (hazard * np.exp(-hazard))
            step = predicted * np.log(observed / max(predicted, _TINY)) / max(slope, _TINY)
            shift += float(np.clip(step, -1, 1))
            if abs(step) < 1e-8:
                return shift
        return _zero(lambda at: observed - float(self.mass @ -np.expm1(-self._hazard(at, change))))
