"""What losses with a piecewise-constant baseline hazard share: patients placed in intervals, and the null model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from drosurv.losses.intervals import Intervals
from drosurv.losses.one_per_patient import OnePerPatient
from drosurv.losses.stacked_targets import InTorch
from drosurv.target import FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class OnIntervals(OnePerPatient):
    """Patients placed in the intervals on which the baseline hazard is constant.

    A patient who entered at V spent E_im = [min(Y_i, c_m) - max(V_i, c_{m-1})]_+ in interval m: what he would have by Y
    less what he would have by V.

    Parameters
    ----------
    target : Target
        Events, times and entry times of n patients.
    n_intervals : int
        How many quantile intervals of the event times; ties or few events give fewer.
    sample_weight : (n,) float64, optional
        Weights of patients in the quantiles and in the null model. Losses themselves are never weighted.
    offset : (n,) float64, optional
        Added to every model's scores, the null model's too.

    Attributes
    ----------
    intervals : Intervals
        The K intervals.
    start : (K,) float64
        Log baseline hazards psi of the null model f = 0: log(events / exposure) per interval, bounded.
    """

    _by_patient = (
        "target", "_event", "_time", "_index", "_within", "_entry_index", "_entry_within", "_offset",
    )  # fmt: skip
    # The loss of one training set in torch, of scores, log hazards, events, times and cut points.
    in_torch: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        target: Target,
        n_intervals: int = 20,
        sample_weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        super().__init__(target)
        self.intervals = Intervals.from_target(target, n_intervals, sample_weight)
        self._event = target.event.astype(np.float64)
        self._time = self._followed(target.time)
        self._index, self._within = self.intervals.place(self._time)
        self._entry_index, self._entry_within, self._offset = None, None, offset
        if target.entry is not None:
            self._entry_index, self._entry_within = self.intervals.place(np.maximum(target.entry, 0.0))
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        self.shift = np.ones(self.intervals.n_intervals)
        exposure = np.maximum(self._exposure_sums(weight if offset is None else weight * np.exp(offset)), 0.0)
        self.start = self.intervals.log_rates(weight * self._event, exposure, self._index)

    def _followed(self, time: FloatArray) -> FloatArray:
        """The times (n,) that count as followed."""
        return time

    def _cumulative(self, rates: FloatArray) -> FloatArray:
        """Sum over the intervals of time spent (n, K) times rates (..., K), for every patient (..., n)."""
        total = self.intervals.cumulative(rates, self._index, self._within)
        if self._entry_index is None or self._entry_within is None:
            return total
        return np.maximum(
            total - self.intervals.cumulative(rates, self._entry_index, self._entry_within), 0.0
        )

    def _exposure_sums(self, values: FloatArray) -> FloatArray:
        """The adjoint: sum over the patients of values (..., n) times time spent in each interval, (..., K)."""
        sums = self.intervals.exposure_sums(values, self._index, self._within)
        if self._entry_index is None or self._entry_within is None:
            return sums
        return sums - self.intervals.exposure_sums(values, self._entry_index, self._entry_within)

    def _exposures(self, which: IntArray) -> FloatArray:
        """Time (len(which), K) that each of the patients spent in each interval."""
        spent = self.intervals.exposures(self._index[which], self._within[which])
        if self._entry_index is None or self._entry_within is None:
            return spent
        return spent - self.intervals.exposures(self._entry_index[which], self._entry_within[which])

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return self.intervals.n_intervals

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch:
        """The losses in torch, one training set after the other: each has its own intervals."""
        import torch

        assert all(loss._entry_index is None and loss._offset is None for loss in losses), "not in torch"

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

        return InTorch(in_torch)
