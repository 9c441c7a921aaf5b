"""Log partial likelihood of risk scores, its gain over the null model, and a Cox model with few columns.

Multiplying every score by c < 1 lowers the disparities F_I, F_G and F_cap. Read them beside the gain over the null
model, which shows how much accuracy is left.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from drosurv.errors import require
from drosurv.metrics.scores import ScoredTarget, parse_scored, warn_undefined
from drosurv.target import BoolArray, FloatArray, IntArray

Per = Literal["event", "patient"]
_MAX_STEPS = 100


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
    none, pairs = np.empty(0), np.empty((0, 0))
    columns = np.empty((len(score), 0))
    return float(_maximise(rows, columns, 0.0, 0.0, score, none, none, none, none, none, pairs, pairs))


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


class CoxRows(NamedTuple):
    """Arrays (n,) of the patients with positive weight, sorted by stratum and then by time, for sums over risk sets.

    `by_entry` lists the rows by stratum and entry time. Without late entry, `entry` and `by_entry` are empty.
    """

    time: FloatArray
    event: BoolArray
    score: FloatArray
    weight: FloatArray
    stratum: IntArray
    entry: FloatArray
    by_entry: IntArray

    @staticmethod
    def of(scored: ScoredTarget) -> CoxRows:
        """Sort test patients, whose target may have entry times and strata."""
        patients = scored.by_time()
        if patients.target.stratum is not None:
            patients = patients.take(np.argsort(patients.target.stratum, kind="stable"))
        target = patients.target
        stratum = np.zeros(len(patients), dtype=np.intp) if target.stratum is None else target.stratum
        if target.entry is None:
            entry, by_entry = np.empty(0), np.empty(0, dtype=np.intp)
        else:
            entry, by_entry = target.entry, np.lexsort((target.entry, stratum))
        return CoxRows(target.time, target.event, patients.risk, patients.weight, stratum, entry, by_entry)


def fit_cox(
    rows: CoxRows, columns: FloatArray, ridge: float, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Maximise the penalised log partial likelihood by Newton's method.

    Return the coefficients (d,) and minus the second derivative there (d, d). The columns (n, d) are standardised and
    in the order of the rows, and a finite maximum must exist. The iteration stops after a step of at most the
    tolerance: the remaining error is about its square.
    """
    n, d = columns.shape
    with_products = np.empty((n, d + d * (d + 1) // 2))
    with_products[:, :d], place = columns, d
    for a in range(d):
        np.multiply(columns[:, : a + 1], columns[:, a : a + 1], out=with_products[:, place : place + a + 1])
        place += a + 1
    (b, gradient, step), (sums, totals) = np.zeros((3, d)), np.empty((2, with_products.shape[1]))
    curvature, second = np.empty((2, d, d))
    value = _maximise(
        rows, with_products, ridge, tolerance, np.empty(n), b, gradient, step, sums, totals, curvature, second
    )
    if np.isnan(value):
        raise np.linalg.LinAlgError("Matrix is singular to machine precision.")
    return b, curvature


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _maximise(
    rows: CoxRows,
    columns: FloatArray,
    ridge: float,
    tolerance: float,
    score: FloatArray,
    b: FloatArray,
    gradient: FloatArray,
    step: FloatArray,
    sums: FloatArray,
    totals: FloatArray,
    curvature: FloatArray,
    second: FloatArray,
) -> float:
    """Kernel of :func:`fit_cox`, which writes the coefficients b; NaN if the curvature is singular.

    Without columns, the log partial likelihood of the scores (n,), with Breslow's ties. One function, with few loops,
    and its own solver of linear equations: LAPACK's takes six seconds to compile.

    The loop over the patients goes from the last time of each stratum to the first. At each time the risk set gains the
    patients whose follow-up ends then, and loses those who entered at that time or later. `columns` are the d
    columns and their products (the lower triangle, row by row), `sums` those of the risk set, `totals` those of all
    events.
    """
    time, event, _, weight, stratum, entry, by_entry = rows
    (n, m), d = columns.shape, len(b)
    best, steps = -np.inf, 0
    while True:
        if d > 0:
            for i in range(n):
                total = 0.0
                for a in range(d):
                    total += columns[i, a] * (b[a] + step[a])
                score[i] = total
        for a in range(d):
            gradient[a] = 0.0
            for k in range(d):
                curvature[a, k] = 0.0
        for a in range(m):
            totals[a] = 0.0
        # `shift` is the largest score so far, not of all: relative to one far larger score of a patient who leaves
        # early, the sums of later risk sets would underflow to 0.
        shift, mass, value, stop, entered = -np.inf, 0.0, 0.0, n, len(by_entry)
        while stop > 0:
            start, events = stop, 0.0
            now, here = time[stop - 1], stratum[stop - 1]
            if stop == n or stratum[stop] != here:
                shift, mass = -np.inf, 0.0
                for a in range(m):
                    sums[a] = 0.0
                while entered > 0 and stratum[by_entry[entered - 1]] != here:
                    entered -= 1
            while start > 0 and time[start - 1] == now and stratum[start - 1] == here:
                start -= 1
                own, copies = float(score[start]), float(weight[start])
                if own > shift:
                    shrink = math.exp(shift - own)
                    mass *= shrink
                    for a in range(m):
                        sums[a] *= shrink
                    shift = own
                share = copies * math.exp(own - shift)
                mass += share
                for a in range(m):
                    sums[a] += share * columns[start, a]
                if event[start]:
                    events += copies
                    value += copies * own
                    for a in range(d):
                        gradient[a] += copies * columns[start, a]
            while (
                entered > 0 and stratum[by_entry[entered - 1]] == here and entry[by_entry[entered - 1]] >= now
            ):
                entered -= 1
                late = by_entry[entered]
                share = float(weight[late]) * math.exp(score[late] - shift)
                mass -= share
                for a in range(m):
                    sums[a] -= share * columns[late, a]
            if events > 0.0:
                value -= events * (math.log(mass) + shift)
                per = events / mass
                for a in range(m):
                    totals[a] += per * sums[a]
                for a in range(d):
                    mean = per * sums[a] / mass
                    for k in range(a + 1):
                        curvature[a, k] -= mean * sums[k]
            stop = start
        if d == 0:
            return value
        small, place = steps > 0, d
        for a in range(d):
            moved = b[a] + step[a]
            value -= ridge / 2 * moved * moved
            gradient[a] -= totals[a] + ridge * moved
            small = small and abs(step[a]) <= tolerance
            for k in range(a + 1):
                curvature[a, k] += totals[place]
                curvature[k, a] = curvature[a, k]
                place += 1
            curvature[a, a] += ridge
        if not value >= best - 1e-12 * abs(best):
            # Halve a step that overshoots the maximum; the function is concave, so this ends. With heavy-tailed columns
            # the value after a full step may not even be finite.
            for a in range(d):
                step[a] /= 2
            continue
        for a in range(d):
            b[a] += step[a]
            step[a] = gradient[a]
            for k in range(d):
                second[a, k] = curvature[a, k]
        if small or steps == _MAX_STEPS:
            return value
        best, steps = value, steps + 1
        for k in range(d):
            if second[k, k] == 0.0:
                return np.nan
            for a in range(d):
                if a != k:
                    factor = second[a, k] / second[k, k]
                    step[a] -= factor * step[k]
                    for j in range(k, d):
                        second[a, j] -= factor * second[k, j]
        for a in range(d):
            step[a] /= second[a, a]
