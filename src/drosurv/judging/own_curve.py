"""One curve for everybody that is fitted to the judged patients, because the training patients are not known.

Its log likelihood of these patients is too high (optimism), by about 1/2 in each interval. A group's gain over it has
the estimation error of the curve too, where the hazard of the group differs from that of everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.patients.target import BoolArray, FloatArray, IntArray

_TINY = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnCurve:
    """One curve for n patients, with a separate hazard or probability in each of k intervals.

    For each row:

    - `interval` (n,): number of the interval in which observation ended;
    - `happened` (n,): whether it ended with the event;
    - `copies` (n,): number of independent patients that the row counts for;
    - `known` (n,), for predictions at few times: weight of the event, for censoring;
    - `summed` (n,), for other predictions: hazard from the beginning of the interval to the end of observation;
    - `start` and `before` (n,), with late entry: interval of entry, and the hazard from its beginning to entry.

    `steps` (k,) are the cumulative hazards of the intervals, or their probabilities if they are `discrete`; None for
    predictions at few times.
    """

    interval: IntArray
    happened: BoolArray
    copies: FloatArray
    known: FloatArray | None = None
    steps: FloatArray | None = None
    summed: FloatArray | None = None
    start: IntArray | None = None
    before: FloatArray | None = None
    discrete: bool = False

    @cached_property
    def optimism(self) -> FloatArray:
        """How much too high the log likelihood of each patient is, (n,): 1/2 per interval, divided among its events.

        An interval without an event has the same optimism, but no patient to assign it to: intervals with few events
        are assigned a little more.
        """
        events = np.maximum(self._events(self.copies)[self.interval], 1.0)
        shared = 0.5 * (1 + events**-2) / events
        return np.where(self.happened, shared if self.known is None else shared * self.known, 0.0)

    def overstated_variance(self, weight: FloatArray) -> float:
        """Return by how much the sum of squared gains exceeds the variance of their sum, for weights (n,).

        The squares include the distance of the fitted curve from the population's, about 1 in each interval, of which
        only half is variance. For predictions at few times, where the influence of the fit is not known, the excess of
        a part of the patients is smaller.
        """
        total, some = float(self.copies @ self.optimism), float(weight @ self.optimism)
        return some if self.steps is not None else some**2 / max(total, _TINY)

    def least_variance(self, weight: FloatArray) -> float:
        """Return the least variance of the sum of gains with weights (n,): what fitting the curve adds, 1 per interval.

        The squared gains estimate the variance. Where predictions hardly differ from one curve, they are by chance too
        small when the gain is large, and without this bound such predictions would be called better too often.
        """
        return 2 * float(weight @ self.optimism)

    def influence(self, weight: FloatArray) -> FloatArray | None:
        """Return each patient's influence (n,), through the fit, on the weighted log likelihood; None if not known."""
        if self.steps is None or self.summed is None:
            return None
        expected = self._expected(self.steps, weight, self.interval, self.summed)
        if self.start is not None and self.before is not None:
            expected = expected - self._expected(self.steps, weight, self.start, self.before)
        free = 1 - np.minimum(self.steps, 0.99) if self.discrete else 1.0
        a = (self._events(weight) - expected) / np.maximum(self._events(np.ones(len(weight))) * free, 1.0)
        passed = np.append(0.0, np.cumsum(a * self.steps))
        found = self.happened * a[self.interval] - passed[self.interval] - a[self.interval] * self.summed
        if self.start is not None and self.before is not None:
            found = found + passed[self.start] + a[self.start] * self.before
        return np.asarray(found, np.float64)

    def _events(self, weight: FloatArray) -> FloatArray:
        """Return the number of events in each interval."""
        last = int(self.interval.max()) + 1 if self.steps is None else len(self.steps)
        return np.bincount(self.interval[self.happened], weight[self.happened], last).astype(np.float64)

    @staticmethod
    def _expected(
        steps: FloatArray, weight: FloatArray, interval: IntArray, summed: FloatArray
    ) -> FloatArray:
        """Return the hazard (k,) in each interval, summed over patients with weights until a time of each."""
        ended = np.bincount(interval, weight, len(steps))
        later = ended.sum() - np.cumsum(ended)
        found: FloatArray = later * steps + np.bincount(interval, weight * summed, len(steps))
        return found
