"""DRO-COX (SPLIT): patients are compared with the other half only, so that losses in a half are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, arg, as_number, check_choice, require
from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.losses.cox_split import CoxSplit
from drosurv.solvers import Problem, TrainingData
from drosurv.target import BoolArray, IntArray

# Random numbers drawn at a time, so that they stay in the cache.
_DRAWS = 1 << 12


@dataclass(eq=False, repr=False)
class DROCoxSplit(NetworkEstimator):
    """DRO-COX with sample splitting: D1 is compared with D2 and D2 with D1, each with its own worst case.

    Parameters
    ----------
    alpha, ball
        As in :class:`drosurv.DROCox`.
    n1 : float
        Share of patients in D1.
    sides : {"both", "one"}
        "one" compares only D1 with D2.
    shuffle : bool
        True draws D1 at random, stratified by event; False takes the first rows.
    ties : {"breslow"}
        A risk set consists of the patient and patients of the other half, so it contains no tied events.

    Attributes
    ----------
    eta_ : (float, float)
        The threshold of each half (one threshold with ``sides="one"``).
    worst_case_weights_ : (n,) float64
        Weights of the training patients in the worst case; they sum to one, and to one half in each half.
    """

    alpha: float = 0.5
    ball: str = "chi2"
    n1: float = 0.5
    sides: str = "both"
    shuffle: bool = True

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="worst case",
        no_ties="a split loss",
        convex=True,
        batched=("lr", "alpha"),
        devices="cluster",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("sides", self.sides, ("both", "one"))
        require(0 < as_number(self.n1) < 1, "n1", "lie in (0, 1), as D1's share of the patients", self.n1)

    def _halves(self, event: BoolArray, seed: int) -> list[BoolArray]:
        in_first = self._in_first(event, seed)
        return [in_first, ~in_first] if self.sides == "both" else [in_first]

    def _in_first(self, event: BoolArray, seed: int) -> BoolArray:
        return first_half(event, self.n1, seed if self.shuffle else None, both=self.sides == "both")

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        event, rows = data.target.event, data.observation
        if rows.patient is None:
            in_first = self._in_first(event, data.seed)
        else:
            # All rows of a patient are in one half.
            patient, _ = pd.factorize(rows.patient)
            in_first = self._in_first(np.bincount(patient, event) > 0, data.seed)[patient]
        loss = CoxSplit(data.target, in_first, data.weight, self.sides == "both", rows.offset)
        masses = [data.mass[half] / data.mass[half].sum() for half in loss.halves]
        return Problem(data, loss, self._objective(batch, masses), blocks=loss.halves)


def first_half(event: BoolArray, n1: float, seed: int | None, *, both: bool) -> BoolArray:
    """Return flags (n,) of D1, the share n1 of the patients, drawn at random and stratified by event.

    Without a seed D1 is the first rows. Raise where a half that is scored has no event.
    """
    n = len(event)
    in_first = np.zeros(n, dtype=np.bool_)
    if seed is None:
        in_first[: round(n * n1)] = True
    else:
        _mark_first(_permutation(n, seed), event, n - int(event.sum()), float(n1), in_first)
    for half, name in ((in_first, "D1"), (~in_first, "D2")):
        if not half.any():
            raise ArgumentError(
                "n1", f"{arg('n1', n1)} leaves {name} empty among {n} patients; choose n1 nearer to 0.5."
            )
    if not (event & in_first).any() or (both and not (event & ~in_first).any()):
        raise ArgumentError(
            "n1",
            f"{arg('n1', n1)} leaves a half without events ({int(event.sum())} in all); choose n1 nearer to 0.5.",
        )
    return in_first


def _permutation(n: int, seed: int) -> NDArray[np.uint32]:
    """Return ``np.random.default_rng(seed).permutation(n)`` for n < 2^32, for millions in half the time."""
    order = np.arange(n, dtype=np.uint32)
    stream, positions = np.random.default_rng(seed).bit_generator, np.empty(2 * _DRAWS, dtype=np.intp)
    last = n - 1
    while last > 0:
        last = _shuffle(order, last, stream.random_raw(_DRAWS).view(np.uint32), positions)
    return order


@numba.njit(cache=True, nogil=True)
def _shuffle(order: NDArray[np.uint32], last: int, draws: NDArray[np.uint32], positions: IntArray) -> int:
    """Shuffle by Fisher and Yates from the last position down, as far as the draws reach; return the next position.

    The lowest bits of a draw are a position; draws that are too high are left out, as in NumPy. All positions are found
    before the first exchange, so that the processor does not wait for memory at every draw.
    """
    left, found, mask = last, 0, 1
    while mask <= left:
        mask <<= 1
    mask -= 1
    for draw in draws:
        while left > 0 and mask >> 1 >= left:
            mask >>= 1
        positions[found] = draw & mask
        fits = (positions[found] <= left) & (left > 0)
        found += fits
        left -= fits
    for k in range(found):
        one, other = last - k, positions[k]
        order[one], order[other] = order[other], order[one]
    return left


@numba.njit(cache=True, nogil=True)
def _mark_first(
    order: NDArray[np.uint32], event: BoolArray, n_censored: int, n1: float, in_first: BoolArray
) -> None:
    """Mark the patients of D1: of the censored patients and then the events, in random order, every 1/n1-th.

    Both halves then have the same share of events.
    """
    censored, events = 0, n_censored
    for patient in order:
        rank = events if event[patient] else censored
        if event[patient]:
            events += 1
        else:
            censored += 1
        in_first[patient] = np.floor((rank + 1) * n1 + 1e-9) > np.floor(rank * n1 + 1e-9)
