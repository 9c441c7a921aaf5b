"""The split Cox loss: each half of the patients is scored against the other half."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numba
import numpy as np

from drosurv.errors import require_extra
from drosurv.losses.cox_partial import StackedTargets, events_at_risk, subtract_from_events, weighted_log_risk
from drosurv.losses.loss import NOTHING, ConvexLoss, InTorch, RiskPart, block_sums, stack
from drosurv.losses.risk_sets import RiskSets, weighted_gram
from drosurv.patients.arrays import inverse
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class CoxSplit(ConvexLoss):
    """Split Cox loss of every patient with an event against the other half of the patients, prepared for one target.

    .. math:: l_i = d_i ( log( exp f_i + sum_{j in other half, Y_j >= Y_i} w_j exp f_j ) - f_i )

    With entry times V or strata, the sum is over the patients of the event's stratum with V_j < Y_i <= Y_j. The weights
    w (n,) apply in the risk sets only; an offset (n,) is added to every model's scores. `in_first` (n,) marks the
    patients of the first half, D1; `both` says whether D2 is scored too. The losses are those of ``rows``: the events
    of D1 by stratum and time, then those of D2. ``sides`` are the scored halves, ``halves`` their patients.
    """

    signed = False

    def __init__(
        self,
        target: Target,
        in_first: BoolArray,
        weight: FloatArray | None = None,
        both: bool = True,
        offset: FloatArray | None = None,
    ) -> None:
        self.target, self.in_first, self.weight, self.both = target, in_first, weight, both
        self.offset = offset
        self.n = len(target)
        scored = [in_first, ~in_first] if both else [in_first]
        self.halves: list[IntArray] = [np.flatnonzero(half) for half in scored]
        self._join([ScoredHalf(target, half, weight) for half in scored])

    def _join(self, sides: list[ScoredHalf]) -> None:
        self.sides = sides
        self.rows: IntArray = np.concatenate([side.rows for side in sides])
        ends = np.cumsum([0, *(len(side.rows) for side in sides)])
        self._parts = [slice(start, end) for start, end in pairwise(ends)]

    @property
    def compared(self) -> IntArray:
        """Stratum (n,) of each patient; -1 for a patient who is at risk at no event."""
        return self.target.compared

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, E) of the patients in ``rows`` at scores (B, n)."""
        if self.offset is not None:
            scores = scores + self.offset
        return np.concatenate([side.losses(scores) for side in self.sides], axis=1)

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient (B, n) in the scores of the losses weighted by (B, E); there are no extra parameters."""
        gradient = np.zeros((len(weights), self.n))
        parts = [
            (side, weights[:, part] * side.others_share)
            for side, part in zip(self.sides, self._parts, strict=True)
        ]
        # The reference halves are disjoint: write their part of the gradient first, then subtract that of the events.
        for side, part in parts:
            side.risk_sets.pullback(side.block_sums(part), gradient)
        for side, part in parts:
            subtract_from_events(part, side.rows, gradient)
        return gradient, np.zeros((len(weights), 0))

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) of the losses weighted by (B, E), each in one patient's score."""
        parts = (weights[:, part] for part in self._parts)
        return sum(
            (side.curvature(part) for side, part in zip(self.sides, parts, strict=True)),
            start=np.zeros((len(weights), self.n)),
        )

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), d) of the chosen losses for linear scores, first row of the batch."""
        return np.concatenate([side.jacobian(X) for side in self.sides])[which]

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian (d, d) of the losses weighted by (1, E) for linear scores, first row of the batch."""
        parts = [weights[0, part] for part in self._parts]
        return sum(
            (side.hessian(part, X) for side, part in zip(self.sides, parts, strict=True)),
            start=np.zeros((X.shape[1], X.shape[1])),
        )

    def take(self, rows: IntArray) -> Self:
        """Return the same loss of some of the patients."""
        weight = None if self.weight is None else self.weight[rows]
        offset = None if self.offset is None else self.offset[rows]
        return type(self)(self.target.take(rows), self.in_first[rows], weight, self.both, offset)

    def sorted_by_time(self) -> tuple[Self, IntArray] | None:
        """See :meth:`Loss.sorted_by_time`."""
        if not self.target.is_plain:
            return None
        part, order, position = copy(self), self.target.order, inverse(self.target.order)
        part.target, part.in_first = self.target.take(order), self.in_first[order]
        part.weight, part.offset = (None if v is None else v[order] for v in (self.weight, self.offset))
        part.halves = [np.sort(position[half]) for half in self.halves]
        part._join([side.moved(position) for side in self.sides])
        return part, order

    def forget(self) -> None:
        """See :meth:`Loss.forget`."""
        for side in self.sides:
            side.risk_sets.forget()

    def without(self, left_out: BoolArray) -> Self:
        """See :meth:`Loss.without`."""
        part = copy(self)
        part._join([side.without(left_out) for side in self.sides])
        return part

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """Return the losses in torch, half by half; the halves of all training sets must have the same sizes.

        None with entry times, strata or offsets.
        """
        targets = StackedTargets.of(losses, device)
        if targets is None:
            return None
        import torch

        members = (loss.in_first for loss in losses), (~loss.in_first for loss in losses)
        halves = [stack([np.flatnonzero(half) for half in sets], device) for sets in members]
        # From the longest to the shortest time, so that every risk set begins with the first patient.
        orders = [
            targets.time.gather(-1, half).argsort(dim=-1, descending=True, stable=True) for half in halves
        ]
        halves = [half.gather(-1, order) for half, order in zip(halves, orders, strict=True)]
        times = [targets.time.gather(-1, half) for half in halves]
        scored = []
        for half, other in ((0, 1), (1, 0))[: 2 if losses[0].both else 1]:
            weight = None if targets.weight is None else targets.weight.gather(-1, halves[other])
            at_risk = _n_at_risk(times[half], times[other])
            scored.append((half, targets.event.gather(-1, halves[half]), other, weight, at_risk))
        # Patients who are not scored come last, with losses of zero.
        unscored = halves[len(scored) :]

        def in_torch(scores: Tensor, extra: Tensor) -> Tensor:
            batch = scores.shape[:-1]
            # Each half is sorted once: it is scored, and it is the reference of the other half.
            sorted_scores = [scores.gather(-1, half.expand(*batch, -1)) for half in halves]
            found = []
            for half, event, other, weight, at_risk in scored:
                risk = weighted_log_risk(sorted_scores[other], weight)
                found.append(_split_losses(sorted_scores[half], event, risk, at_risk.expand(*batch, -1)))
            found += [scores.new_zeros(*batch, part.shape[-1]) for part in unscored]
            return torch.cat(found, dim=-1)

        return InTorch(in_torch, torch.cat(halves, dim=-1))

    def risk_parts(self) -> list[RiskPart] | None:
        """Return each scored half against the other; None with entry times, strata or offsets."""
        if self.offset is not None:
            return None
        parts = [
            RiskPart(half, side.rows, side.block, side.risk_sets, apart=True)
            for half, side in zip(self.halves, self.sides, strict=True)
            if isinstance(side.risk_sets, RiskSets)
        ]
        return parts if len(parts) == len(self.sides) else None


class ScoredHalf:
    """The events of one half, by stratum and time, scored against the other half."""

    def __init__(self, target: Target, scored: BoolArray, weight: FloatArray | None) -> None:
        self.rows, times, self.block, self.risk_sets, _ = events_at_risk(target, weight, scored)
        self._times = len(times)
        # Derivative (B, E) of each loss in the log sum over its risk set.
        self.others_share: FloatArray = np.empty(0)

    def moved(self, position: IntArray) -> ScoredHalf:
        """Return the same of patients whose numbers (n,) have changed."""
        part = copy(self)
        assert isinstance(self.risk_sets, RiskSets), "without entry times and strata"
        part.rows, part.risk_sets = position[self.rows], self.risk_sets.moved(position)
        return part

    def without(self, left_out: BoolArray) -> ScoredHalf:
        """Return the same without some patients (n,)."""
        part, kept = copy(self), np.flatnonzero(~left_out[self.rows])
        part.rows, part.block = self.rows[kept], self.block[kept]
        part.risk_sets = self.risk_sets.without(left_out)
        return part

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the losses (B, E) of these events at the scores (B, n) of all patients."""
        log_sums = self.risk_sets.log_sums(scores)
        losses = np.empty((len(scores), len(self.rows)))
        self.others_share = np.empty_like(losses)
        softplus_terms(log_sums, scores, self.rows, self.block, losses, self.others_share)
        return losses

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n), each in one patient's score, of reference patients and of events."""
        # With the event in the risk set, a reference patient's share is p times the summed share of the reference.
        weighted = weights * self.others_share
        out = self.risk_sets.curvature(
            self.block_sums(weighted), self.block_sums(weighted * self.others_share)
        )
        out[:, self.rows] += weighted * (1.0 - self.others_share)
        return out

    def jacobian(self, X: FloatArray) -> FloatArray:
        """Return gradients (E, d) of the losses for linear scores, first row of the batch."""
        gradients: FloatArray = self.others_share[0][:, None] * self._differences(X)
        return gradients

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian (d, d) of the losses weighted by (E,) for linear scores, first row of the batch."""
        share = self.others_share[0]
        pull = self.block_sums((weights * share)[None, :])
        return self.risk_sets.hessian(X, pull[0]) + weighted_gram(
            self._differences(X), weights * share * (1.0 - share)
        )

    def block_sums(self, values: FloatArray) -> FloatArray:
        """Return the sums (B, K) of values (B, E) over the events of each time."""
        return block_sums(values, self.block, self._times)

    def _differences(self, X: FloatArray) -> FloatArray:
        """Return the risk-weighted mean of each event's risk set minus the event's features, (E, d)."""
        return self.risk_sets.means(X)[self.block] - X[self.rows]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def softplus_terms(
    log_sums: FloatArray,
    scores: FloatArray,
    rows: IntArray,
    block: IntArray,
    losses: FloatArray,
    others_share: FloatArray,
) -> None:
    """Write the losses (B, E), log(exp f + exp L) - f = softplus(L - f), and their derivatives in L, `others_share`."""
    for b in range(scores.shape[0]):
        for e in range(rows.shape[0]):
            gap = log_sums[b, block[e]] - scores[b, rows[e]]
            small = np.exp(-abs(gap))
            # With many reference patients `small` is tiny, and a series is much faster than a logarithm.
            rest = small * (1.0 - small * (0.5 - small * (1.0 / 3.0 - small * (0.25 - small * 0.2))))
            losses[b, e] = max(gap, 0.0) + (rest if small < 1e-3 else np.log1p(small))
            others_share[b, e] = (1.0 if gap >= 0.0 else small) / (1.0 + small)


def cox_split(
    log_risk: Tensor,
    event: Tensor,
    time: Tensor,
    reference_log_risk: Tensor,
    reference_time: Tensor,
    *,
    reference_weight: Tensor | None = None,
) -> Tensor:
    """Cox loss of each patient against a reference set of other patients, differentiable, on any device.

    .. math:: l_i = d_i ( log( exp f_i + sum_{j in reference, Y_j >= Y_i} w_j exp f_j ) - f_i )

    A patient with nobody at risk in the reference set has loss zero.

    Parameters
    ----------
    log_risk, event, time : (..., n) tensors
        Risk scores, event flags and times of the scored patients.
    reference_log_risk, reference_time : (..., m) tensors
        Risk scores and times of the reference patients.
    reference_weight : (..., m) tensor, optional
        Weights w of the reference patients.

    Returns
    -------
    (..., n) tensor
        One loss per scored patient.

    Examples
    --------
    >>> import torch
    >>> from drosurv.losses import cox_split
    >>> event, time = torch.tensor([True, True]), torch.tensor([1.0, 9.0])
    >>> cox_split(torch.zeros(2), event, time, torch.zeros(3), torch.tensor([2.0, 3.0, 4.0])).exp()
    tensor([4., 1.])
    """
    require_extra("torch", "deep")
    import torch

    batch = np.broadcast_shapes(log_risk.shape[:-1], reference_log_risk.shape[:-1], time.shape[:-1])
    times = reference_time.expand(*batch, -1)
    order = torch.argsort(times, dim=-1, descending=True, stable=True)
    risk = weighted_log_risk(reference_log_risk, reference_weight).expand(*batch, -1).gather(-1, order)
    at_risk = _n_at_risk(time.expand(*batch, -1), times.gather(-1, order))
    return _split_losses(log_risk, event, risk, at_risk)


def _n_at_risk(time: Tensor, descending: Tensor) -> Tensor:
    """Return how many reference patients, with descending times (..., m), are at risk at each time (..., n)."""
    import torch

    return torch.searchsorted(-descending, -time, side="right")


def _split_losses(log_risk: Tensor, event: Tensor, risk: Tensor, at_risk: Tensor) -> Tensor:
    """Return losses (..., n), given the sorted log risks (..., m) of reference patients and the numbers at risk."""
    import torch
    from torch.nn.functional import pad, softplus

    lowest = torch.finfo(risk.dtype).min
    # The first entry is the empty risk set of patients with a longer time than every reference patient.
    log_sums = pad(torch.logcumsumexp(risk, dim=-1), (1, 0), value=lowest)
    losses = softplus(log_sums.gather(-1, at_risk) - log_risk, threshold=50)
    return torch.where(event.bool(), losses, torch.zeros_like(losses))
