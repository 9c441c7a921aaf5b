"""Means over pairs of patients: from all pairs, or, for many patients, from random ones.

Patients are put in random order, and each is paired with the one a random number of positions later. So
every patient is in the same number of pairs, and memory is read in order.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from drosurv.errors import require
from drosurv.patients.target import BoolArray, FloatArray, IntArray

Pairs = Literal["auto", "all"] | int
#: Largest number of patients of whom all pairs are used by default, which takes about a second.
MOST_EXACT = 10_000
#: Number of pairs sampled by default: the standard error is then about a thousandth.
SAMPLED = 5_000_000


class PairMean(NamedTuple):
    """Mean over sampled pairs, and its standard error due to sampling."""

    mean: float
    standard_error: float


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
    by_patient = sums / (2 * len(shifts))
    # The variance over pairs is twice the variance of patient effects plus a residual. Every patient is in the same
    # number of pairs, so that only the residual adds to the error of the mean. A patient's mean over k pairs has the
    # variance of patient effects plus 1/k of the rest.
    per_pair = 1 / (2 * len(shifts))
    mean = total / (n * len(shifts))
    variance = squares / (n * len(shifts)) - mean**2
    of_patients = (float(by_patient.var()) - variance * per_pair) / (1 - per_pair)
    residual = max(variance - 2 * max(of_patients, 0.0), 0.0)
    return PairMean(mean, float(np.sqrt(residual / (n * len(shifts)))))


def excess_over_censored_pairs(
    hazard: FloatArray,
    rows: FloatArray,
    scale: float,
    event: BoolArray,
    time: FloatArray,
    codes: IntArray,
    n_pairs: int,
) -> float:
    """Mean as in `excess_over_pairs`, over pairs of a censored patient and a patient with the event.

    A pair counts 0 if the event came before the censoring, or if the two are in different groups.
    """
    rng = np.random.default_rng(0)
    censored, events = (rng.permutation(np.flatnonzero(chosen)) for chosen in (~event, event))
    longer = max(len(censored), len(events))
    shifts = rng.integers(0, len(events), size=-(-n_pairs // longer))
    total = _over_censored_shifts(hazard, rows, scale, time, codes, censored, events, shifts)
    return float(total / (longer * len(shifts)))


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
    """Return the sums of the excess over sampled pairs and of its square; add it to the `sums` (n,) of patients."""
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
) -> float:
    """Return the sum of the excess over pairs of a censored patient and one with the event."""
    total = 0.0
    for shift in shifts:
        for place in range(max(len(censored), len(events))):
            i = censored[place % len(censored)]
            j = events[(place + shift) % len(events)]
            if time[i] <= time[j] and codes[i] == codes[j]:
                total += excess(hazard, rows, scale, i, j)
    return total
