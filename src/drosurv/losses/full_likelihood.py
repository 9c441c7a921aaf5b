"""The full likelihood of a proportional hazards model whose baseline hazard is constant on intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from drosurv.errors import InputError, check_count, require_extra
from drosurv.losses.loss import NOTHING, ConvexLoss, InTorch, OnePerPatient, block_sums, one_by_one
from drosurv.patients.target import FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor

# Largest distance of a log baseline hazard from log(events / exposure) of all patients. In an interval without events
# the maximum likelihood estimate is not finite; a hazard ratio of e^20 exceeds any in data.
PSI_RANGE = 20.0


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals (c_{m-1}, c_m], m = 1..K, with c_0 = 0, finite ascending `cut_points` (K-1,) and c_K infinite."""

    cut_points: FloatArray

    @classmethod
    def from_target(
        cls, target: Target, n_intervals: int = 20, sample_weight: FloatArray | None = None
    ) -> Intervals:
        """Cut at the m/K quantiles of the event times, so that intervals contain about equally many events.

        Cut points are observed event times (the inverse of their weighted distribution function): they scale with the
        unit of time, and weight 2 equals two copies of a patient. With ties or few events there are fewer intervals.
        """
        check_count("n_intervals", n_intervals)
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        with_weight = target.event & (weight > 0)
        times, inverse = np.unique(target.time[with_weight], return_inverse=True)
        share = np.cumsum(np.bincount(inverse, weights=weight[with_weight], minlength=len(times)))
        if len(times) == 0:
            return cls(np.empty(0))
        levels = np.arange(1, n_intervals) / n_intervals * share[-1]
        # The factor keeps rounding in the sums from moving a quantile to the next time.
        cuts = np.unique(times[np.searchsorted(share, levels * (1 - 1e-12))])
        # The last interval must contain the last event, and the first one must have a positive width.
        return cls(cuts[(cuts > 0) & (cuts < times[-1])])

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return len(self.cut_points) + 1

    @cached_property
    def widths(self) -> FloatArray:
        """Widths of the first K-1 intervals; the last one has no end."""
        return np.diff(self.cut_points, prepend=0.0)

    def exposure(self, time: FloatArray, entry: FloatArray | None = None) -> Exposure:
        """Return the time at risk of n patients in each interval, from zero or entry times (n,) up to times (n,)."""
        index = np.searchsorted(self.cut_points, time, side="left")
        before = None if entry is None else self.exposure(np.maximum(entry, 0.0))
        return Exposure(self, index, time - np.concatenate([[0.0], self.cut_points])[index], before)

    def log_rates(self, events: FloatArray, exposure: FloatArray, index: IntArray) -> FloatArray:
        """Return the log hazards (K,) of a model without features: log(events / exposure) per interval, bounded.

        Events (n,) and exposure (K,) are weighted; `index` (n,) is the interval of each patient's time.
        """
        if exposure.sum() == 0:
            raise InputError(
                "every observed time is 0: no patient was followed, so no hazard can be estimated."
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            overall = np.log(events.sum() / exposure.sum())
            log_rates: FloatArray = np.log(block_sums(events, index, self.n_intervals)) - np.log(exposure)
            return log_rates.clip(overall - PSI_RANGE, overall + PSI_RANGE)


@dataclass(frozen=True, eq=False)
class Exposure:
    """Time E_im that each of n patients was at risk in each of K intervals, stored as two numbers per patient.

    `index` (n,) is the interval that contains the patient's time, `within` (n,) the time at risk in it; in every
    earlier interval it is that interval's width. With entry times, the exposure `before` entry is subtracted.
    """

    intervals: Intervals
    index: IntArray
    within: FloatArray
    before: Exposure | None = None

    def take(self, rows: IntArray) -> Exposure:
        """Return the exposure of some of the patients."""
        before = None if self.before is None else self.before.take(rows)
        return Exposure(self.intervals, self.index[rows], self.within[rows], before)

    def cumulative(self, rates: FloatArray) -> FloatArray:
        """Return the integral of rates (..., K) up to each time, sum_m E_im rates_m, (..., n)."""
        reached = np.zeros_like(rates)
        np.cumsum(rates[..., :-1] * self.intervals.widths, axis=-1, out=reached[..., 1:])
        total: FloatArray = reached[..., self.index] + rates[..., self.index] * self.within
        return total if self.before is None else np.maximum(total - self.before.cumulative(rates), 0.0)

    def matrix(self) -> FloatArray:
        """Return the matrix E_im, (n, K)."""
        whole = np.append(self.intervals.widths, 0.0)
        out: FloatArray = np.where(np.arange(len(whole)) < self.index[:, None], whole, 0.0)
        out[np.arange(len(self.index)), self.index] = self.within
        return out if self.before is None else out - self.before.matrix()

    def weighted_sums(self, values: FloatArray) -> FloatArray:
        """Return sum_i values_i E_im (..., K) of values (..., n): the transpose of :meth:`cumulative`."""
        n_intervals = self.intervals.n_intervals
        entered = block_sums(values, self.index, n_intervals)
        sums = block_sums(values * self.within, self.index, n_intervals)
        reached = entered[..., ::-1].cumsum(axis=-1)[..., ::-1]
        sums[..., :-1] += reached[..., 1:] * self.intervals.widths
        return sums if self.before is None else sums - self.before.weighted_sums(values)


class PiecewiseExponential(OnePerPatient, ConvexLoss):
    """Full-likelihood loss of each patient, prepared for one target.

        l_i = -d_i (f_i + psi_k(i)) + exp(f_i) sum_m E_im exp(psi_m)

    f is the log risk, psi_m the log baseline hazard on interval m, k(i) the interval that contains the time Y_i and
    E_im = [min(Y_i, c_m) - max(V_i, c_{m-1})]_+ the time that patient i, who entered at V_i, was at risk in interval m.
    With linear f it is jointly convex in (theta, psi). Every evaluation takes O(n + K) time and memory.

    There are `n_intervals` between quantiles of the event times, with ties or few events fewer. The weights (n,) apply
    in the quantiles and in the null model, where training starts: log(events / exposure) per interval, bounded. They do
    not multiply the losses. An offset (n,) is added to the scores of every model, including the null model.
    """

    _by_patient = ("target", "_event", "_exposure", "_offset")

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
        self._exposure, self._offset = self.intervals.exposure(target.time, target.entry), offset
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        self.shift = np.ones(self.intervals.n_intervals)
        # Exponentials relative to the largest offset do not overflow.
        scores = np.zeros(len(target)) if offset is None else offset
        exposure = np.maximum(self._exposure.weighted_sums(weight * np.exp(scores - scores.max())), 0.0)
        self.start = self.intervals.log_rates(weight * self._event, exposure, self._index) - scores.max()

    @property
    def n_intervals(self) -> int:
        """K, the number of intervals."""
        return self.intervals.n_intervals

    @property
    def _index(self) -> IntArray:
        """Interval (n,) of each patient's time."""
        return self._exposure.index

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (..., n) of log risks ``scores`` (..., n) and log baseline hazards ``extra`` (..., K)."""
        scores = scores if self._offset is None else scores + self._offset
        # In log space, a patient with no time at risk has hazard 0 however large the score. A hazard above the largest
        # float is an infinite loss, which a line search rejects.
        with np.errstate(divide="ignore", over="ignore"):
            # With features far from zero, such as years, scores are huge and rates tiny, but not their product.
            level: FloatArray = extra.max(axis=-1, keepdims=True)
            self._rates: FloatArray = np.exp(extra - level)
            self._base = self._exposure.cumulative(self._rates)
            self._hazard = np.exp((scores + level) + np.log(self._base))
        return self._hazard - self._event * (scores + extra[..., self._index])

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the losses weighted by (..., n): in the scores, and in psi (..., K)."""
        curvature, events = self.curvature(weights), weights * self._event
        by_psi = self._hazards_by_interval(curvature) - block_sums(events, self._index, self.n_intervals)
        return curvature - events, by_psi

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian (d + K, d + K) in (theta, psi) of the losses weighted by (1, n), for scores X theta."""
        curvature, d = self.curvature(weights), X.shape[1]
        size = d + self.n_intervals
        hessian = np.zeros((size, size))
        # Contiguous rows: compiled sums take no other layout without another compilation.
        weighted = curvature * np.ascontiguousarray(X.T)
        hessian[:d, :d] = weighted @ X
        hessian[:d, d:] = self._hazards_by_interval(weighted)
        hessian[d:, :d] = hessian[:d, d:].T
        hessian[range(d, size), range(d, size)] = self._hazards_by_interval(curvature)[0]
        return hessian

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), d + K) of the chosen losses in (theta, psi), for the first row of the batch."""
        hazard, base, event = self._hazard[0, which], self._base[0, which], self._event[which]
        rate = np.divide(hazard, base, out=np.zeros_like(hazard), where=base > 0)
        index = self._index[which]
        by_psi = self._exposure.take(which).matrix() * self._rates[0] * rate[:, None]
        by_psi[np.arange(len(which)), index] -= event
        return np.concatenate([(hazard - event)[:, None] * X[which], by_psi], axis=1)

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return weight times hazard (..., n): zero for a patient without weight, even if the hazard is infinite."""
        return np.multiply(weights, self._hazard, out=np.zeros_like(self._hazard), where=weights != 0)

    def _hazards_by_interval(self, hazards: FloatArray) -> FloatArray:
        """Return the part (..., K) of the summed hazards (..., n) in each interval: its derivative in psi."""
        rates = np.divide(hazards, self._base, out=np.zeros_like(hazards), where=self._base > 0)
        return self._rates * self._exposure.weighted_sums(rates)

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """Return the losses in torch, one training set after the other; None with entry times or offsets."""
        if any(loss._exposure.before is not None or loss._offset is not None for loss in losses):
            return None
        return one_by_one([loss._on_device(device) for loss in losses])

    def _on_device(self, device: str) -> Callable[[Tensor, Tensor], Tensor]:
        import torch

        given = self._event, self.target.time, self.intervals.cut_points
        event, time, cuts = (torch.as_tensor(part, device=device) for part in given)

        def in_torch(scores: Tensor, psi: Tensor) -> Tensor:
            return full_likelihood(scores, psi, event, time.to(scores.dtype), cuts.to(scores.dtype))

        return in_torch


def full_likelihood(log_risk: Tensor, psi: Tensor, event: Tensor, time: Tensor, cut_points: Tensor) -> Tensor:
    """Full-likelihood loss of each patient with a piecewise-constant baseline hazard, differentiable, on any device.

        l_i = -d_i (f_i + psi_k(i)) + exp(f_i) sum_m E_im exp(psi_m)

    Parameters
    ----------
    log_risk : (..., n)
        Log risks f_i.
    psi : (..., K)
        Log baseline hazards on the K intervals (c_{m-1}, c_m], with c_0 = 0 and c_K infinite.
    event : (n,)
        True (or 1) where the event was observed.
    time : (n,)
        Times of event or censoring, not negative.
    cut_points : (K-1,)
        Increasing positive boundaries between the intervals.

    Returns
    -------
    (..., n)
        One loss per patient.

    Examples
    --------
    >>> import torch
    >>> from drosurv.losses import full_likelihood
    >>> event, time = torch.tensor([True, False]), torch.tensor([2.0, 3.0])
    >>> full_likelihood(torch.zeros(2), torch.zeros(2), event, time, torch.tensor([2.5]))
    tensor([2., 3.])
    """
    require_extra("torch", "deep")
    import torch

    if psi.shape[-1] != len(cut_points) + 1:
        raise InputError(
            f"psi must hold one value per interval: {len(cut_points)} cut points make {len(cut_points) + 1} "
            f"intervals, got a last axis of {psi.shape[-1]}."
        )
    starts = torch.cat([cut_points.new_zeros(1), cut_points])
    index = torch.searchsorted(cut_points, time.contiguous())
    rates = psi.exp()
    whole = (rates[..., :-1] * starts.diff()).cumsum(-1)
    before = torch.cat([torch.zeros_like(rates[..., :1]), whole], dim=-1)
    # The cumulative baseline hazard (..., n), sum_m E_im exp(psi_m).
    base = before[..., index] + rates[..., index] * (time - starts[index])
    # A patient with no time at risk has hazard 0: exp(-inf) has a finite gradient, exp(f) * 0 may not.
    followed = base > 0
    log_base = torch.where(followed, base, 1.0).log()
    hazard = torch.where(followed, log_risk + log_base, -torch.inf).exp()
    return hazard - torch.where(event.bool(), log_risk + psi[..., index], 0.0)
