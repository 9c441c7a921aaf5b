"""What losses with a piecewise-constant baseline hazard share: patients placed in intervals, and the null model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from drosurv.losses.intervals import Intervals
from drosurv.losses.one_per_patient import OnePerPatient
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class OnIntervals(OnePerPatient):
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
    start : (K,) float64
        Log baseline hazards psi of the null model f = 0: log(events / exposure) per interval, bounded.
    """

    _by_patient = ("target", "_event", "_time", "_index", "_within")
    # The loss of one training set in torch, of scores, log hazards, events, times and cut points.
    in_torch: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, target: Target, n_intervals: int = 20, sample_weight: FloatArray | None = None
    ) -> None:
        super().__init__(target)
        self.intervals = Intervals.from_target(target, n_intervals, sample_weight)
        self._event = target.event.astype(np.float64)
        self._time = self._followed(target.time)
        self._index, self._within = self.intervals.place(self._time)
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        self.shift = np.ones(self.intervals.n_intervals)
        self.start = self.intervals.log_rates(weight * self._event, weight, self._index, self._within)

    def _followed(self, time: FloatArray) -> FloatArray:
        """The times (n,) that count as followed."""
        return time

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return self.intervals.n_intervals

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> Callable[[Tensor, Tensor], Tensor]:
        """The losses in torch, one training set after the other: each has its own intervals."""
        import torch

        given = [
            [
                torch.as_tensor(part, device=device)
                for part in (loss._event, loss._time, loss.intervals.cut_points)
            ]
            for loss in losses
        ]

        def in_torch(scores: Tensor, psi: Tensor) -> Tensor:
            parts = zip(scores, psi, given, strict=True)
            found = [
                cls.in_torch(own, rates, event, time.to(own.dtype), cuts.to(own.dtype))
                for own, rates, (event, time, cuts) in parts
            ]
            return torch.stack(found)

        return in_torch
