r"""Means over pairs of patients: from all pairs, or, for many patients, from random ones.

Patients are put in random order, and each is paired with the one a random number of positions later. So
every patient is in the same number of pairs, and memory is read in order.

The influence of each patient on such a mean gives bootstrap replicates. A replicate with patient weights w has

.. math:: F(w) = F + \sum_i (w_i - 1) \psi_i + O(1/n)

with :math:`\psi_i` the derivative with respect to the weight of patient i. One pass over the pairs gives all
derivatives; computing each replicate from its pairs would take one pass per replicate.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from drosurv.errors import require
from drosurv.paper.penalties.pairs import unit_rows
from drosurv.patients.groups import Groups
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

Pairs = Literal["auto", "all"] | int
#: Largest number of patients of whom all pairs are used by default, which takes about a second.
MOST_EXACT = 10_000
#: Number of pairs sampled by default: the standard error is then about a thousandth.
SAMPLED = 5_000_000
# Sampled partners of each patient, at least, for influences; fewer would add noise to standard errors.
_PARTNERS = 50


class PairMean(NamedTuple):
    """Mean over sampled pairs, its standard error due to sampling, and the mean over each patient's pairs.

    `by_patient` (n,) is NaN for a patient without a sampled pair.
    """

    mean: float
    standard_error: float
    by_patient: FloatArray


class PairInfluence(NamedTuple):
    """Influence (n,) of each patient on a disparity over pairs, and its value; None if it is not over all pairs."""

    value: float | None
    influence: FloatArray


def sampled_number(pairs: Pairs, n: int) -> int | None:
    """Return how many pairs of n patients to sample; None means that all pairs are used."""
    if pairs == "all" or (pairs == "auto" and n <= MOST_EXACT):
        return None
    number: Any = SAMPLED if pairs == "auto" else pairs
    # In Python, True is an int.
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool) and number >= 1
    require(whole, "pairs", "be 'auto', 'all' or a whole number of pairs", pairs)
    return int(number)


def excess_over_pairs(hazard: FloatArray, rows: FloatArray, scale: float, n_pairs: int) -> PairMean:
    """Mean of [|h_i - h_j| - scale * distance]_+ over pairs of n >= 2 patients with features (n, d).

    At least `n_pairs` pairs are sampled, the same ones in every call with n patients.
    """
    rng, n = np.random.default_rng(0), len(hazard)
    order = rng.permutation(n)
    shifts = rng.integers(1, n, size=-(-n_pairs // n))
    sums = np.zeros(n)
    total, squares = _over_shifts(hazard[order], rows[order], scale, shifts, sums)
    by_patient = np.empty(n)
    by_patient[order] = sums / (2 * len(shifts))
    # The variance over pairs is twice the variance of patient effects plus a residual. Every patient is in the same
    # number of pairs, so that only the residual adds to the error of the mean. A patient's mean over k pairs has the
    # variance of patient effects plus 1/k of the rest.
    per_pair = 1 / (2 * len(shifts))
    mean = total / (n * len(shifts))
    variance = squares / (n * len(shifts)) - mean**2
    of_patients = (float(by_patient.var()) - variance * per_pair) / (1 - per_pair)
    residual = max(variance - 2 * max(of_patients, 0.0), 0.0)
    return PairMean(mean, float(np.sqrt(residual / (n * len(shifts)))), by_patient)


def excess_over_censored_pairs(
    hazard: FloatArray,
    rows: FloatArray,
    scale: float,
    event: BoolArray,
    time: FloatArray,
    codes: IntArray,
    n_pairs: int,
) -> PairMean:
    """Mean as in `excess_over_pairs`, over pairs of a censored patient and a patient with the event.

    A pair counts 0 if the event came before the censoring, or if the two are in different groups.
    """
    rng = np.random.default_rng(0)
    censored, events = (rng.permutation(np.flatnonzero(chosen)) for chosen in (~event, event))
    longer = max(len(censored), len(events))
    shifts = rng.integers(0, len(events), size=-(-n_pairs // longer))
    sums, counts = np.zeros(len(hazard)), np.zeros(len(hazard))
    total, squares = _over_censored_shifts(
        hazard, rows, scale, time, codes, censored, events, shifts, sums, counts
    )
    n_sampled = longer * len(shifts)
    mean = total / n_sampled
    error = float(np.sqrt(max(squares / n_sampled - mean**2, 0.0) / n_sampled))
    with np.errstate(invalid="ignore"):
        return PairMean(mean, error, sums / counts)


def individual_influence(
    hazard: FloatArray, X: FloatArray, *, scale: float = 0.01, convention: str, pairs: Pairs = "auto"
) -> PairInfluence:
    """Influence of each patient on F_I, (n,), for weights that sum to n."""
    n, number = len(hazard), sampled_number(pairs, len(hazard))
    rows = unit_rows(X) if convention == "table" else np.ascontiguousarray(X)
    if number is None:
        sums = np.zeros(n)
        _add_excess(hazard, rows, scale, np.arange(1, n + 1), np.full(n, n), sums)
    else:
        sums = (n - 1) * excess_over_pairs(hazard, rows, scale, max(number, _PARTNERS * n // 2)).by_patient
    influence = sums / (n * (n - 1)) if convention == "table" else sums
    # Every pair is in the sums of two patients.
    return PairInfluence(float(influence.sum()) / 2 if number is None and n > 1 else None, influence)


def censored_influence(
    target: Target,
    hazard: FloatArray,
    X: FloatArray,
    groups: Groups | None,
    *,
    scale: float = 0.01,
    pairs: Pairs = "auto",
) -> PairInfluence:
    """Influence of each patient on a censoring-aware disparity, (n,), over all pairs or over those within a group.

    NaN if nobody was censored or nobody had the event.
    """
    codes = np.zeros(len(target), dtype=np.intp) if groups is None else groups.codes
    events, censored = target.n_events, len(target) - target.n_events
    arguments = (hazard, np.ascontiguousarray(unit_rows(X)), scale, target.event, target.time, codes)
    number = sampled_number(pairs, len(target))
    if number is None or events * censored == 0:
        sums = _censored_excess(*arguments)
    else:
        means = excess_over_censored_pairs(*arguments, max(number, _PARTNERS * len(target) // 2)).by_patient
        sums = means * np.where(target.event, censored, events)
    with np.errstate(invalid="ignore", divide="ignore"):
        # The bootstrap also changes the denominator: the numbers of events and of censored patients.
        all_pairs = np.float64(events) * censored
        share = np.where(target.event, np.float64(1.0) / events, np.float64(1.0) / censored)
        influence: FloatArray = (sums - sums.sum() / 2 * share) / all_pairs
    exact = number is None and events * censored > 0
    return PairInfluence(float(sums.sum()) / 2 / float(all_pairs) if exact else None, influence)


@numba.njit(cache=True, nogil=True, inline="always")
def excess(hazard: FloatArray, rows: FloatArray, scale: float, i: int, j: int) -> float:
    """Return [|h_i - h_j| - scale * distance of the features]_+ of patients i and j."""
    gap = abs(hazard[i] - hazard[j])
    squared = 0.0
    for k in range(rows.shape[1]):
        squared += (rows[i, k] - rows[j, k]) ** 2
    return float(max(gap - scale * np.sqrt(squared), 0.0))


@numba.njit(cache=True, nogil=True)
def _over_shifts(
    hazard: FloatArray, rows: FloatArray, scale: float, shifts: IntArray, sums: FloatArray
) -> tuple[float, float]:
    n = len(hazard)
    total = 0.0
    squares = 0.0
    for shift in shifts:
        for i in range(n):
            j = i + shift
            if j >= n:
                j -= n
            found = excess(hazard, rows, scale, i, j)
            total += found
            squares += found * found
            sums[i] += found
            sums[j] += found
    return total, squares


@numba.njit(cache=True, nogil=True)
def _over_censored_shifts(
    hazard: FloatArray,
    rows: FloatArray,
    scale: float,
    time: FloatArray,
    codes: IntArray,
    censored: IntArray,
    events: IntArray,
    shifts: IntArray,
    sums: FloatArray,
    counts: FloatArray,
) -> tuple[float, float]:
    total = 0.0
    squares = 0.0
    for shift in shifts:
        for place in range(max(len(censored), len(events))):
            i = censored[place % len(censored)]
            j = events[(place + shift) % len(events)]
            counts[i] += 1.0
            counts[j] += 1.0
            if time[i] <= time[j] and codes[i] == codes[j]:
                found = excess(hazard, rows, scale, i, j)
                total += found
                squares += found * found
                sums[i] += found
                sums[j] += found
    return total, squares


def _censored_excess(
    hazard: FloatArray, rows: FloatArray, scale: float, event: BoolArray, time: FloatArray, codes: IntArray
) -> FloatArray:
    """Return sums as of `_add_excess`, over a censored patient and those of the same group with no earlier event."""
    # Sorted by group and time, a censored patient before an event of the same time.
    order = np.lexsort((event, time, codes))
    event, codes = event[order], codes[order]
    until = np.cumsum(event)
    last = until[np.searchsorted(codes, codes, side="right") - 1]
    # Events come first, so that the partners of a censored patient are all events from one to another.
    placed = np.concatenate([np.flatnonzero(event), np.flatnonzero(~event)])
    order = order[placed]
    since, to = np.where(event[placed], 0, [until[placed], last[placed]])
    found, sums = np.zeros(len(order)), np.empty(len(order))
    _add_excess(hazard[order], rows[order], scale, since, to, found)
    sums[order] = found
    return sums


@numba.njit(cache=True, nogil=True)
def _add_excess(
    hazard: FloatArray, rows: FloatArray, scale: float, first: IntArray, stop: IntArray, sums: FloatArray
) -> None:
    """Add each patient's sum over partners of [|h_i - h_j| - scale * distance]_+.

    Patient i has the partners j with first[i] <= j < stop[i], and they have i.
    """
    for i in range(len(hazard)):
        own = 0.0
        for j in range(first[i], stop[i]):
            found = excess(hazard, rows, scale, i, j)
            own += found
            sums[j] += found
        sums[i] += own
