"""One curve for everybody that is fitted to the judged patients themselves, because no others are known.

It gains from being fitted to them, about 1/2 of log likelihood in each interval. Its estimation error is also part of
the error of a group's gain over it, where the hazard of the group differs from that of everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.target import BoolArray, FloatArray, IntArray

_TINY = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnCurve:
    """One curve for n patients with hazards or probabilities of their own in k intervals.

    Of each patient, `interval` (n,) is the number of the interval in which observation ended, `happened` (n,) whether
    it was with the event, `copies` (n,) how many independent patients the row counts for; of predictions at few times,
    `known` (n,) are the weights of events for censoring. Of others, `steps` (k,) are the curve's hazards, summed over
    each interval, or probabilities if they are `discrete`, and `summed` (n,) its hazard from the beginning of the
    patient's interval until observation ended. `start` and `before` (n,) are the interval in which the patient entered,
    and the hazard until then.
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
    def gained(self) -> FloatArray:
        """What the curve gains from being fitted to the patients, (n,): 1/2 per interval, shared by its events.

        Intervals without an event gain too; so those with few gain more.
        """
        events = np.maximum(self._events(self.copies)[self.interval], 1.0)
        shared = 0.5 * (1 + events**-2) / events
        found: FloatArray = np.where(
            self.happened, shared if self.known is None else shared * self.known, 0.0
        )
        return found

    def overstated_variance(self, weight: FloatArray) -> float:
        """Return by how much squares of gains overstate the variance of their sum over patients with weights (n,).

        Squares show how far the fitted curve is from that of the population in each interval: about 1, of which half is
        variance of the sum. Without the influence of the fit, less is overstated in a part of the patients.
        """
        total, some = float(self.copies @ self.gained), float(weight @ self.gained)
        return some if self.steps is not None else some**2 / max(total, _TINY)

    def least_variance(self, weight: FloatArray) -> float:
        """Return the squares of gains, summed with weights (n,), that the fit alone leads to: about 1 per interval.

        Where predictions hardly differ from one curve, the observed squares are small by chance where the gain is
        large: predictions that know nothing would seem better than one curve.
        """
        return 2 * float(weight @ self.gained)

    def influence(self, weight: FloatArray) -> FloatArray | None:
        """Return each patient's influence (n,), by the fit, on the curve's log likelihood of those with weights (n,).

        None for predictions at few times, for which it is not known.
        """
        if self.steps is None or self.summed is None:
            return None
        expected = self._expected(self.steps, weight, self.interval, self.summed)
        if self.start is not None and self.before is not None:
            expected = expected - self._expected(self.steps, weight, self.start, self.before)
        free = 1 - np.minimum(self.steps, 0.99) if self.discrete else 1.0
        a = (self._events(weight) - expected) / np.maximum(self._events(self.copies) * free, 1.0)
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
