"""What losses with a piecewise-constant baseline hazard share: patients placed in intervals, and the null model."""

from __future__ import annotations

import numpy as np

from drosurv.losses.intervals import Intervals
from drosurv.target import FloatArray, Target


class OnIntervals:
    """Patients placed in the intervals on which the baseline hazard is constant.

    Parameters
    ----------
    target : Target
        Events and times of n patients.
    n_intervals : int
        How many quantile intervals of the event times; ties or few events give fewer.
    sample_weight : (n,) float64, optional
        Weights of patients in the quantiles and in the null model. Losses themselves are never weighted.

    Attributes
    ----------
    intervals : Intervals
        The K intervals.
    null_psi : (K,) float64
        Log baseline hazards of the null model f = 0: log(events / exposure) per interval, bounded.
    """

    def __init__(
        self, target: Target, n_intervals: int = 20, sample_weight: FloatArray | None = None
    ) -> None:
        self.intervals = Intervals.from_target(target, n_intervals, sample_weight)
        self._event = target.event.astype(np.float64)
        self._index, self._within = self.intervals.place(self._followed(target.time))
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        self.null_psi = self.intervals.log_rates(weight * self._event, weight, self._index, self._within)

    def _followed(self, time: FloatArray) -> FloatArray:
        """The times (n,) that count as followed."""
        return time

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return self.intervals.n_intervals

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return float(self._event.mean())
