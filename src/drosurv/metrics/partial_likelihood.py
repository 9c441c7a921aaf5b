"""Log partial likelihood of risk scores, its gain over the null model, and a Cox model with few columns.

Multiplying every score by c < 1 lowers the disparities F_I, F_G and F_cap. Read them beside the gain over the null
model, which shows how much accuracy is left.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
from scipy.linalg.lapack import dposv

from drosurv.errors import require
from drosurv.metrics.estimates import Estimate
from drosurv.metrics.scores import ScoredTarget, parse_scored, warn_undefined
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

Per = Literal["event", "patient"]
_MAX_STEPS = 100
# Newton's method stops after such a step: the remaining error is about its square.
_SMALL_STEP = 1e-5


def log_partial_likelihood(y: Any, risk: Any, *, per: Per = "event", sample_weight: Any = None) -> float:
    r"""Mean log partial likelihood of risk scores (higher is better); risk sets contain only the given patients.

    .. math:: \frac1m \sum_{i: \delta_i = 1} w_i \Big( f_i - \log \sum_{j: Y_j \ge Y_i} w_j e^{f_j} \Big)

    with Breslow's treatment of ties. The sums are computed in log space, so that large scores do not overflow.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores; higher means an earlier event.
    per : "event" or "patient"
        What m counts. The published tables divide by the number of events, although the paper's equation 2
        divides by the number of patients.
    sample_weight : (n,) array, optional
        Patient weights, used in risk sets and in m. Weight 2 counts a patient twice.

    Returns
    -------
    float
        NaN, with a warning, if there is no event.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, False], [1.0, 2.0])
    >>> log_partial_likelihood(y, [0.0, 0.0])
    -0.6931471805599453
    """
    require(per in ("event", "patient"), "per", "be 'event' or 'patient'", per)
    scored = parse_scored(y, risk, sample_weight)
    events = float(scored.weight[scored.target.event].sum())
    if events == 0:
        warn_undefined("the log partial likelihood is undefined (NaN): no patient had the event.")
        return float("nan")
    rows = CoxRows.of(scored)
    return _total(rows, rows.score) / (events if per == "event" else float(scored.weight.sum()))


def _total(rows: CoxRows, score: FloatArray) -> float:
    """Log partial likelihood of scores (n,) in the order of the rows."""
    found = rows.changes()
    row, changes = found[0], found[1:]
    own, none = score if row is None else score[row], np.empty(0)
    return float(_scan(*changes, own, np.empty((len(own), 0)), none, 0.0, none, none))


def gain_over_null(y: Any, risk: Any, *, sample_weight: Any = None) -> float:
    """Log partial likelihood per event of the scores minus that of the null model (equal scores for everybody).

    Parameters as in :func:`log_partial_likelihood`.

    Returns
    -------
    float
        Negative if the scores predict worse than the null model; NaN, with a warning, if there is no event.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, False], [1.0, 2.0])
    >>> round(gain_over_null(y, [1.0, 0.0]), 4)
    0.3799
    """
    scored = parse_scored(y, risk, sample_weight)
    events = float(scored.weight[scored.target.event].sum())
    if events == 0:
        warn_undefined("the gain over the null model is undefined (NaN): no patient had the event.")
        return float("nan")
    rows = CoxRows.of(scored)
    return (_total(rows, rows.score) - _total(rows, np.zeros(len(rows.score)))) / events


def share_of_gain(y: Any, risk: Any, reference_risk: Any, *, sample_weight: Any = None) -> float:
    r"""Gain over the null model, divided by the gain of a reference model such as plain Cox.

    .. math:: \frac{LPL(f) - LPL(0)}{LPL(f_{ref}) - LPL(0)}

    Parameters
    ----------
    y, risk, sample_weight
        As in :func:`log_partial_likelihood`.
    reference_risk : (n,) array
        Risk scores of the reference model.

    Returns
    -------
    float
        1 if the model gains as much as the reference, near 0 if it gains almost nothing; NaN, with a warning, if the
        reference gains nothing.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> round(share_of_gain(y, [0.1, 0.05, 0.0], [1.0, 0.5, 0.0]), 3)
    0.116
    """
    reference = gain_over_null(y, reference_risk, sample_weight=sample_weight)
    gain = gain_over_null(y, risk, sample_weight=sample_weight)
    if not reference > 0:
        warn_undefined(
            f"the share of gain is undefined (NaN): the reference gains {reference:g} over the null model."
        )
    return float(kept_share(gain, reference))


def kept_share(gain: Any, reference: Any) -> Any:
    """Gain over the null model divided by the reference's gain; NaN where the reference gains nothing."""
    return gain / np.where(np.asarray(reference) > 0, reference, np.nan)


class LikelihoodEstimates(NamedTuple):
    """Log partial likelihood per event, its gain over the null model, and the share of the gain of a reference."""

    likelihood: Estimate
    gain: Estimate
    share: Estimate


def likelihood_estimates(
    target: Target,
    risk: FloatArray,
    weight: FloatArray | None = None,
    reference_risk: FloatArray | None = None,
) -> LikelihoodEstimates:
    """Log partial likelihood, gain and share of gain of scores, with the influence of each of n patients.

    They are those of :func:`log_partial_likelihood`, :func:`gain_over_null` and :func:`share_of_gain`; without a
    reference the share is NaN. The log partial likelihood is that of weights with mean one, because it falls with the
    logarithm of the number of patients.
    """
    n, weight = len(target), np.ones(len(target)) if weight is None else weight
    happened = target.event & (weight > 0)
    number, events = np.count_nonzero(happened), float(weight[happened].sum())
    unknown = Estimate.undefined(n)
    if number == 0:
        return LikelihoodEstimates(unknown, unknown, unknown)

    def per_event(risk: FloatArray) -> tuple[float, FloatArray]:
        total, derivative = _derivative(target, risk, weight)
        return total / events, weight * (derivative - target.event * (total / events)) / events

    value, influence = per_event(risk)
    null, of_null = per_event(np.zeros(n))
    mass, freedom = float(weight.sum()), number - 1.0
    mean = Estimate(
        value + float(np.log(mass / np.count_nonzero(weight))), influence + weight / mass, freedom=freedom
    )
    gain = Estimate(value - null, influence - of_null, freedom=freedom)
    if reference_risk is None:
        return LikelihoodEstimates(mean, gain, unknown)
    reference, of_reference = per_event(reference_risk)
    if not reference > null:
        return LikelihoodEstimates(mean, gain, unknown)
    share = gain.value / (reference - null)
    of_share = (gain.influence - share * (of_reference - of_null)) / (reference - null)
    return LikelihoodEstimates(mean, gain, Estimate(share, of_share, freedom=freedom))


def _derivative(target: Target, risk: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the log partial likelihood of scores (n,), and its derivative by the weight of each patient, (n,)."""
    order = target.order[weight[target.order] > 0]
    time, score, mass = target.time[order], risk[order], weight[order]
    event = target.event[order]
    first, last = (np.searchsorted(time, time, side=side) for side in ("left", "right"))
    # Logarithms of sums over risk sets, and of Breslow's cumulative hazard until each patient's time.
    at_risk = np.logaddexp.accumulate((np.log(mass) + score)[::-1])[::-1][first]
    with np.errstate(divide="ignore"):
        steps = np.log(mass * event) - at_risk
    hazard = np.logaddexp.accumulate(steps)[last - 1]
    gain = np.where(event, score - at_risk, 0.0)
    found = np.zeros(len(target))
    found[order] = gain - np.exp(score + hazard)
    return float(mass @ gain), found


class CoxRows(NamedTuple):
    """Arrays (n,) of the patients with positive weight, sorted by stratum and then by time, for sums over risk sets."""

    time: FloatArray
    event: BoolArray
    score: FloatArray
    weight: FloatArray
    stratum: IntArray
    entry: FloatArray | None

    @staticmethod
    def of(scored: ScoredTarget) -> CoxRows:
        """Sort test patients, whose target may have entry times and strata."""
        patients = scored.by_time()
        if patients.target.stratum is not None:
            patients = patients.take(np.argsort(patients.target.stratum, kind="stable"))
        target = patients.target
        stratum = np.zeros(len(patients), dtype=np.intp) if target.stratum is None else target.stratum
        return CoxRows(target.time, target.event, patients.risk, patients.weight, stratum, target.entry)

    def changes(self) -> tuple[IntArray | None, FloatArray, IntArray, FloatArray, FloatArray]:
        """Changes of the risk sets, sorted by stratum and time: patient, time, stratum, weight and weight of the event.

        Backwards in time, a patient of weight w joins the risk set at the end of follow-up, and leaves it at entry,
        which is a change of weight -w. Without late entry the changes are the rows, and the patients None.
        """
        of_event = self.weight * self.event
        if self.entry is None:
            return None, self.time, self.stratum, self.weight, of_event
        time, stratum = np.concatenate((self.time, self.entry)), np.zeros(2 * len(self.time), dtype=np.intp)
        order = time.argsort(kind="stable")
        if self.stratum[-1] > 0:
            stratum = np.concatenate((self.stratum, self.stratum))
            order = order[stratum[order].argsort(kind="stable")]
            stratum = stratum[order]
        weight = np.concatenate((self.weight, -self.weight))[order]
        of_event = np.concatenate((of_event, np.zeros(len(of_event))))[order]
        return order % len(self.time), time[order], stratum, weight, of_event


def fit_cox(rows: CoxRows, columns: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Maximise the penalised log partial likelihood by Newton's method.

    Return the coefficients (d,) and minus the second derivative there (d, d). The columns (n, d) are standardised and
    in the order of the rows, and a finite maximum must exist.
    """
    found = rows.changes()
    row, changes = found[0], found[1:]
    columns = columns if row is None else columns.take(row, axis=0)
    (n, d), none = columns.shape, np.zeros(len(columns))
    with_products = np.empty((n, d + d * d))
    with_products[:, :d] = columns
    for a in range(d):
        np.multiply(columns, columns[:, a : a + 1], out=with_products[:, d + a * d : d + (a + 1) * d])

    def derivatives(b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, minus the gradient and minus the second derivative."""
        totals = np.zeros(d + d * d)
        value = _scan(*changes, none, with_products, b, ridge, np.zeros(d + d * d), totals)
        return value, totals[:d], totals[d:].reshape(d, d)

    b = np.zeros(d)
    value, slope, curvature = derivatives(b)
    for _ in range(_MAX_STEPS):
        _, step, singular = dposv(curvature, slope)
        if singular:
            raise np.linalg.LinAlgError("Matrix is singular to machine precision.")
        enough = value - 1e-12 * abs(value)
        value, slope, curvature = derivatives(b - step)
        # Halve a step that overshoots the maximum; the function is concave, so this ends. With heavy-tailed columns the
        # value after a full step may not even be finite.
        while not value >= enough:
            step /= 2
            value, slope, curvature = derivatives(b - step)
        b -= step
        if max(map(abs, step.tolist())) <= _SMALL_STEP:
            break
    return b, curvature


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _scan(
    time: FloatArray,
    stratum: IntArray,
    weight: FloatArray,
    of_event: FloatArray,
    score: FloatArray,
    columns: FloatArray,
    b: FloatArray,
    ridge: float,
    sums: FloatArray,
    totals: FloatArray,
) -> float:
    """Return the penalised log partial likelihood of scores plus columns times b (d,), with Breslow's method for ties.

    `columns` are d columns and their d^2 products, `sums` those of the risk set, weighted by hazard ratios; they begin
    with zeros. Minus the gradient (d,) and minus the second derivative (d, d) are added to `totals` (d + d^2,). There
    is little code, because each operation takes a millisecond to compile.
    """
    # `shift` is the largest score so far, not of all: relative to one far larger score of a patient who leaves early,
    # the sums of later risk sets would underflow to 0.
    value, mass, shift, events, m, d = 0.0, 0.0, -np.inf, 0.0, len(sums), len(b)
    for i in range(len(time) - 1, -1, -1):
        own = score[i]
        for a in range(d):
            own += columns[i, a] * b[a]
            totals[a] -= of_event[i] * columns[i, a]
        if own > shift:
            # At the first patient of a stratum this is 0, and so are the sums.
            shrink = math.exp(shift - own)
            shift = own
            mass *= shrink
            for a in range(m):
                sums[a] *= shrink
        share = weight[i] * math.exp(own - shift)
        mass += share
        for a in range(m):
            sums[a] += share * columns[i, a]
        events += of_event[i]
        value += of_event[i] * own
        ends = i == 0 or stratum[i - 1] != stratum[i]
        if events > 0.0 and (ends or time[i - 1] != time[i]):
            value -= events * (math.log(mass) + shift)
            for a in range(m):
                totals[a] += events * (sums[a] / mass)
                if a >= d:
                    totals[a] -= events * (sums[a // d - 1] / mass) * (sums[a % d] / mass)
            events = 0.0
        if ends:
            shift = -np.inf
    for a in range(d):
        value -= ridge / 2 * b[a] * b[a]
        totals[a] += ridge * b[a]
        totals[d + a * (d + 1)] += ridge
    return value
