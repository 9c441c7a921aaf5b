"""Intervals of follow-up time on which a baseline hazard is constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from drosurv.errors import as_whole, require
from drosurv.losses.tie_blocks import block_sums
from drosurv.target import FloatArray, IntArray, Target

if TYPE_CHECKING:
    import torch

# How far (in log) a baseline rate may lie from events / exposure of all patients: an interval without events
# has no finite maximum likelihood rate, and a factor e^20 is beyond any hazard that data could show.
PSI_RANGE = 20.0
NO_FOLLOW_UP = "every observed time is 0: no patient was followed, so no hazard can be estimated."


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals (c_{m-1}, c_m], m = 1..K, with c_0 = 0 and c_K infinite.

    Parameters
    ----------
    cut_points : (K-1,) float64
        The finite boundaries c_1 < ... < c_{K-1}, all positive.
    """

    cut_points: FloatArray

    @classmethod
    def from_target(
        cls, target: Target, n_intervals: int = 20, sample_weight: FloatArray | None = None
    ) -> Intervals:
        """Cut at the m/K quantiles of the event times, so that each interval holds about as many events.

        Cut points are observed event times (the inverse of their weighted distribution function), so they
        move with the unit of time and weight 2 equals two copies. Ties or few events give fewer intervals.
        """
        require(as_whole(n_intervals) >= 1, "n_intervals", "be a whole number, at least 1", n_intervals)
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        counted = target.event & (weight > 0)
        times, inverse = np.unique(target.time[counted], return_inverse=True)
        share = np.cumsum(np.bincount(inverse, weights=weight[counted], minlength=len(times)))
        if len(times) == 0:
            return cls(np.empty(0))
        levels = np.arange(1, n_intervals) / n_intervals * share[-1]
        # Rounding in the sums must not push a level past the time that reaches it exactly.
        cuts = np.unique(times[np.searchsorted(share, levels * (1 - 1e-12))])
        # The last interval keeps at least the last event, the first one a positive width.
        return cls(cuts[(cuts > 0) & (cuts < times[-1])])

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return len(self.cut_points) + 1

    @property
    def widths(self) -> FloatArray:
        """Widths of the first K-1 intervals; the last one has no end."""
        return np.diff(self.cut_points, prepend=0.0)

    def place(self, time: FloatArray, entry: FloatArray | None = None) -> Spent:
        """How times (n,) from zero on are spent, or those from entry times (n,) on."""
        index = np.searchsorted(self.cut_points, time, side="left")
        before = None if entry is None else self.place(np.maximum(entry, 0.0))
        return Spent(self, index, time - np.concatenate([[0.0], self.cut_points])[index], before)

    def log_rates(self, events: FloatArray, exposure: FloatArray, index: IntArray) -> FloatArray:
        """Log hazards (K,) of patients who all have the same: log(events / exposure) per interval, bounded.

        Events (n,) and exposure (K,) are weighted; `index` (n,) is the interval of each patient's time.
        """
        if exposure.sum() == 0:
            raise ValueError(NO_FOLLOW_UP)
        with np.errstate(divide="ignore", invalid="ignore"):
            overall = np.log(events.sum() / exposure.sum())
            log_rates: FloatArray = np.log(block_sums(events, index, self.n_intervals)) - np.log(exposure)
            return log_rates.clip(overall - PSI_RANGE, overall + PSI_RANGE)


@dataclass(frozen=True, eq=False)
class Spent:
    """Time E_im that each of n patients spent in each of K intervals, told by two numbers for each patient.

    `index` (n,) is the interval that holds the patient's time, `within` (n,) the time spent in it; in any earlier one
    it is that interval's whole width. Of who came under observation late, what was spent `before` is taken off.
    """

    intervals: Intervals
    index: IntArray
    within: FloatArray
    before: Spent | None = None

    def take(self, rows: IntArray) -> Spent:
        """Of fewer patients."""
        before = None if self.before is None else self.before.take(rows)
        return Spent(self.intervals, self.index[rows], self.within[rows], before)

    def cumulative(self, rates: FloatArray) -> FloatArray:
        """Integral of the rates up to each time, sum_m E_im rates_m, (..., K) -> (..., n)."""
        reached = np.zeros_like(rates)
        np.cumsum(rates[..., :-1] * self.intervals.widths, axis=-1, out=reached[..., 1:])
        total: FloatArray = reached[..., self.index] + rates[..., self.index] * self.within
        return total if self.before is None else np.maximum(total - self.before.cumulative(rates), 0.0)

    def exposures(self) -> FloatArray:
        """The E_im themselves, (n, K)."""
        whole = np.append(self.intervals.widths, 0.0)
        out: FloatArray = np.where(np.arange(len(whole)) < self.index[:, None], whole, 0.0)
        out[np.arange(len(self.index)), self.index] = self.within
        return out if self.before is None else out - self.before.exposures()

    def exposure_sums(self, values: FloatArray) -> FloatArray:
        """The adjoint of :meth:`cumulative`: sum_i values_i E_im for every m, (..., n) -> (..., K)."""
        n_intervals = self.intervals.n_intervals
        entered = block_sums(values, self.index, n_intervals)
        sums = block_sums(values * self.within, self.index, n_intervals)
        reached = entered[..., ::-1].cumsum(axis=-1)[..., ::-1]
        sums[..., :-1] += reached[..., 1:] * self.intervals.widths
        return sums if self.before is None else sums - self.before.exposure_sums(values)


def cumulative_baseline(
    psi: torch.Tensor, time: torch.Tensor, cut_points: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cumulative hazard (..., n), sum_m E_im exp(psi_m), up to each time (n,), and the interval (n,) of the time."""
    import torch

    if psi.shape[-1] != len(cut_points) + 1:
        raise ValueError(
            f"psi must hold one value per interval: {len(cut_points)} cut points make {len(cut_points) + 1} "
            f"intervals, got a last axis of {psi.shape[-1]}."
        )
    starts = torch.cat([cut_points.new_zeros(1), cut_points])
    index = torch.searchsorted(cut_points, time.contiguous())
    rates = psi.exp()
    whole = (rates[..., :-1] * starts.diff()).cumsum(-1)
    before = torch.cat([torch.zeros_like(rates[..., :1]), whole], dim=-1)
    return before[..., index] + rates[..., index] * (time - starts[index]), index
