"""Numbers of many cells, on the patients and on bootstrap replicates of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drosurv.metrics import Interval
from drosurv.metrics.imparity import largest_gap
from drosurv.metrics.intervals import Method, interval_of
from drosurv.target import FloatArray


class Cell(NamedTuple):
    """What one number is: the metric of a group of an attribute."""

    attribute: str
    group: str
    metric: str


class Draws(NamedTuple):
    """A number and its replicates.

    Parameters
    ----------
    estimate : float
        On the patients themselves.
    draws : (replicates,) float64
        On the replicates; NaN where undefined; empty without bootstrap.
    lowest : float
        The lowest value there can be, where the interval is cut.
    method : "percentile" or "basic"
        Kind of interval.
    """

    estimate: float
    draws: FloatArray
    lowest: float = -np.inf
    method: Method = "percentile"

    def interval(self, level: float) -> Interval:
        """Bootstrap interval; its ends are NaN without replicates."""
        found = interval_of(self.estimate, self.draws, level, self.method)
        return replace(found, low=float(np.maximum(found.low, self.lowest)))


class Extreme(NamedTuple):
    """A largest difference between groups, and its replicates.

    Parameters
    ----------
    estimate : float
        The largest difference; NaN if fewer than two groups have a value.
    draws : (replicates,) float64
        The largest difference in each replicate, which is biased upward.
    errors : (replicates,) float64
        Largest distance, over all differences, of a replicate's difference from the estimated one.
    """

    estimate: float
    draws: FloatArray
    errors: FloatArray

    def interval(self, level: float) -> Interval:
        """The estimate and what all differences at once lie within of theirs, cut at 0."""
        spread = interval_of(self.estimate, self.draws, level, "percentile")
        if np.isnan(spread.standard_error):
            return spread
        reach = float(np.nanquantile(self.errors, level))
        return replace(spread, low=max(0.0, self.estimate - reach), high=self.estimate + reach)

    @property
    def p_value(self) -> float:
        """Share of replicates that are further from the estimate than no difference is; NaN without any."""
        known = self.errors[~np.isnan(self.errors)]
        if len(known) == 0 or np.isnan(self.estimate):
            return float("nan")
        return (1 + int((known >= self.estimate).sum())) / (1 + len(known))


def largest_difference(estimate: FloatArray, draws: FloatArray) -> Extreme:
    """Largest difference between two of k groups.

    Parameters
    ----------
    estimate : (k,) float64
        Values of the groups.
    draws : (replicates, k) float64
        Their replicates.
    """
    pairs = np.array(list(combinations(range(len(estimate)), 2)), dtype=np.intp).reshape(-1, 2)
    first, second = pairs.T
    differences = estimate[first] - estimate[second]
    errors = np.abs(draws[:, first] - draws[:, second] - differences)
    return Extreme(float(largest_gap(estimate)), largest_gap(draws), _largest(errors))


def largest_deviation(
    estimate: FloatArray, centre: float, draws: FloatArray, centre_draws: FloatArray
) -> Extreme:
    """Largest distance of k groups' values from a common centre; shapes as in `largest_difference`."""
    deviation, drawn = estimate - centre, draws - centre_draws[:, None]
    largest = float(np.nanmax(np.abs(deviation))) if not np.isnan(deviation).all() else float("nan")
    return Extreme(largest, _largest(np.abs(drawn)), _largest(np.abs(drawn - deviation)))


def _largest(values: FloatArray) -> FloatArray:
    """Largest value of each row among those defined, (replicates, m) -> (replicates,); NaN if none is."""
    largest: FloatArray = np.fmax.reduce(values, axis=1, initial=np.nan)
    return largest


@dataclass(frozen=True, eq=False)
class Sheet:
    """Values of k cells on the patients and on every replicate.

    Parameters
    ----------
    cells : sequence of k Cell
        What they are.
    estimate : (k,) float64
        On the patients themselves.
    draws : (replicates, k) float64
        On the replicates; NaN where undefined.
    weights : (replicates, n) uint16
        How often each patient was drawn.
    """

    cells: Sequence[Cell]
    estimate: FloatArray
    draws: FloatArray
    weights: NDArray[np.uint16]

    @cached_property
    def _place(self) -> dict[Cell, int]:
        return {cell: k for k, cell in enumerate(self.cells)}

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._place

    def __getitem__(self, cell: Cell) -> Draws:
        k = self._place[cell]
        return Draws(float(self.estimate[k]), self.draws[:, k])

    def groups(self, attribute: str, labels: Sequence[str], metric: str) -> tuple[FloatArray, FloatArray]:
        """Values (k,) of an attribute's groups and their replicates (replicates, k)."""
        places = [self._place[Cell(attribute, label, metric)] for label in labels]
        return self.estimate[places], self.draws[:, places]

    def linear(self, value: float, influence: Callable[[], FloatArray]) -> Draws:
        """Replicates, to first order, of a value that is at least 0.

        Parameters
        ----------
        value : float
            On the patients themselves.
        influence : callable
            Returns the derivatives of the value in the patients' weights, (n,); not called without replicates.
        """
        if len(self.weights) == 0:
            return Draws(value, np.empty(0), lowest=0.0)
        slopes = influence()
        return Draws(value, value + self.weights @ slopes - slopes.sum(), lowest=0.0)
