"""The largest of several differences between groups, which is biased upward, and how sure it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from drosurv.metrics.imparity import largest_gap
from drosurv.metrics.intervals import Interval, interval_of, no_difference_p_value
from drosurv.target import FloatArray


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
        if np.isnan(spread.standard_error) or np.isnan(self.errors).all():
            return replace(spread, low=float("nan"), high=float("nan"))
        reach = float(np.nanquantile(self.errors, level))
        return replace(spread, low=max(0.0, self.estimate - reach), high=self.estimate + reach)

    @property
    def p_value(self) -> float:
        """Share of replicates that are further from the estimate than no difference is; NaN without any."""
        return no_difference_p_value(self.estimate, self.errors)


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
