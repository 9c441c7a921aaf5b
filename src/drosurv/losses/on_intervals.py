"""What losses with a piecewise-constant baseline hazard share: patients placed in intervals, and the null model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from drosurv.losses.intervals import Intervals
from drosurv.losses.loss import OnePerPatient
from drosurv.losses.stacked_targets import InTorch, one_by_one
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
        Weights of patients in the quantiles and in the null model, where training starts: log(events / exposure) per
        interval, bounded. Losses themselves are never weighted.
    offset : (n,) float64, optional
        Added to every model's scores, the null model's too.
    """

    _by_patient = ("target", "_event", "_time", "_spent", "_offset")
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
        self._spent, self._offset = self.intervals.place(self._time, target.entry), offset
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        self.shift = np.ones(self.intervals.n_intervals)
        # Taken from the largest offset, which may be past any exponent.
        known = np.zeros(len(target)) if offset is None else offset
        exposure = np.maximum(self._spent.exposure_sums(weight * np.exp(known - known.max())), 0.0)
        self.start = self.intervals.log_rates(weight * self._event, exposure, self._index) - known.max()

    def _followed(self, time: FloatArray) -> FloatArray:
        """The times (n,) that count as followed."""
        return time

    @property
    def _index(self) -> IntArray:
        """Interval (n,) of each patient's time."""
        return self._spent.index

    def _log_hazards(self, scores: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores with the offset, and logs of the cumulative hazards (..., n); derivatives need what is kept."""
        scores = scores if self._offset is None else scores + self._offset
        # In log space a patient seen for no time at all has no hazard however large the score. A hazard past
        # the largest float is an infinite loss, which a line search steps back from.
        with np.errstate(divide="ignore", over="ignore"):
            # Features far from zero, such as years, make scores huge and rates tiny; their product is neither.
            level: FloatArray = psi.max(axis=-1, keepdims=True)
            self._rates: FloatArray = np.exp(psi - level)
            self._base = self._spent.cumulative(self._rates)
            log_hazard = (scores + level) + np.log(self._base)
            self._hazard = np.exp(log_hazard)
        return scores, log_hazard

    def _through_psi(self, hazards: FloatArray) -> FloatArray:
        """Share of the summed hazards that each interval carries: their derivative in psi."""
        rates = np.divide(hazards, self._base, out=np.zeros_like(hazards), where=self._base > 0)
        return self._rates * self._spent.exposure_sums(rates)

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return self.intervals.n_intervals

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """The losses in torch, one training set after the other; none for entry times and offsets."""
        if any(loss._spent.before is not None or loss._offset is not None for loss in losses):
            return None
        return one_by_one([loss._on_device(device) for loss in losses])

    def _on_device(self, device: str) -> Callable[[Tensor, Tensor], Tensor]:
        import torch

        given = self._event, self._time, self.intervals.cut_points
        event, time, cuts = (torch.as_tensor(part, device=device) for part in given)

        def in_torch(scores: Tensor, psi: Tensor) -> Tensor:
            return type(self).in_torch(scores, psi, event, time.to(scores.dtype), cuts.to(scores.dtype))

        return in_torch
