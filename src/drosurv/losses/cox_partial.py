"""Cox's partial likelihood, one number per patient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numba
import numpy as np

from drosurv.errors import require
from drosurv.losses.loss import NOTHING, ConvexLoss, RiskPart, no_extra
from drosurv.losses.risk_hessian import weighted_gram
from drosurv.losses.risk_sets import RiskSets, RiskSums, distinct, weighted_log_risk
from drosurv.losses.risk_windows import RiskWindows
from drosurv.losses.slots import Slots
from drosurv.losses.stacked_targets import InTorch, StackedTargets
from drosurv.losses.tie_blocks import EfronTies, block_sums
from drosurv.target import BoolArray, FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor

TIES = ("breslow", "efron")


class CoxPartial(ConvexLoss):
    """Negative log partial likelihood of every patient with an event, prepared for one target.

    .. math:: l_i = d_i ( log sum_{j : Y_j >= Y_i} w_j exp f_j - f_i )

    Censored patients have loss zero and are left out: the losses are those of ``rows``, the events in order of time
    (within strata, stratum by stratum). Efron's form averages, over the m events of a tie block with summed risk D,
    the terms log(S - k/m D), k = 0..m-1, in place of log S. Where the target has entry times or strata, a risk set
    holds the patients of the event's stratum with V_j < Y_i <= Y_j. Weights w (n,) are those inside the risk sets; an
    offset (n,) is added to every model's scores.
    """

    signed = False

    def __init__(
        self,
        target: Target,
        ties: str = "breslow",
        weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        self.target, self.ties, self.weight, self.offset = target, ties, weight, offset
        self.n = len(target)
        self.rows, self.at, self.block, self.risk_sets, self.slots = events_at_risk(target, weight)
        # Of tied events, where there are any and ties are Efron's.
        self.efron: EfronTies | None = None
        if ties == "efron" and len(self.at) < len(self.rows):
            self.efron = EfronTies(self.rows, self.block, weight)

    @property
    def compared(self) -> IntArray:
        """Stratum (n,) of who is at risk at an event."""
        return self.target.compared

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Scores (B, n) to the losses (B, E) of the patients in ``rows``."""
        if self.offset is not None:
            scores = scores + self.offset
        log_sums = self.risk_sets.log_sums(scores)
        if self.efron is not None:
            log_sums = log_sums + self.efron.correction(scores, log_sums)
        losses = np.empty((len(scores), len(self.rows)))
        subtract_own(log_sums, scores, self.rows, self.block, losses)
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient in the scores (B, n) of sum_i weights_i l_i (weights (B, E)) at the last call, and nothing else."""
        pull = block_sums(weights, self.block, len(self.at))
        if self.efron is not None:
            own = self.efron.pullback(pull)
            gradient = self.risk_sets.pullback(pull)
            gradient[:, self.rows] += own
        else:
            gradient = self.risk_sets.pullback(pull)
        subtract_at(weights, self.rows, gradient)
        return gradient, no_extra(len(weights))

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Second derivatives (B, n) in each patient's own score, Breslow's also where ties are Efron's."""
        pull = block_sums(weights, self.block, len(self.at))
        return self.risk_sets.curvature(pull, pull)

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients (len(which), d) of the chosen losses in the coefficients of linear scores, for one row."""
        means = self.risk_sets.means(X)
        if self.efron is not None:
            means = self.efron.means(X, means)
        return means[self.block[which]] - X[self.rows[which]]

    def hessian(self, weights: FloatArray, X: FloatArray, centre: FloatArray | None = None) -> FloatArray:
        """Second derivative (d, d) of sum_i weights_i l_i in the coefficients of linear scores, for one row.

        Features taken from a centre (d,) near them lose fewer digits in it.
        """
        pull = block_sums(weights, self.block, len(self.at))
        if self.efron is None:
            return self.risk_sets.hessian(X, pull[0], centre)
        terms = self.efron.terms(X, self.risk_sets.means(X))
        shares = pull[0, self.block] / self.efron.count[self.block]
        own = self.efron.pullback(pull)
        inside = self.risk_sets.pullback(pull)[0]
        inside[self.rows] += own[0]
        return weighted_gram(X, inside, centre) - weighted_gram(terms, shares, centre)

    def log_hazard_jumps(self, scores: FloatArray) -> FloatArray:
        """Log of the jumps (K,) of the cumulative baseline hazard at the event times, stratum by stratum.

        .. math:: dH_k = sum_{l=0}^{m-1} wbar / (S_k - l/m D_k)

        with the risk S_k of all at risk, the risk D_k and the mean weight wbar of the m events; Breslow's form leaves
        out D_k. Everything stays in logs, so that scores (n,), which do not hold the loss's offset, have a baseline
        whatever their size.
        """
        scores = scores if self.offset is None else scores + self.offset
        log_risk: FloatArray = self.risk_sets.log_sums(scores[None, :])
        own = np.ones(len(self.rows)) if self.weight is None else self.weight[self.rows]
        log_jumps: FloatArray = np.log(np.bincount(self.block, own)) - log_risk[0]
        if self.efron is not None:
            self.efron.correction(scores[None, :], log_risk)
            log_jumps += np.log(np.bincount(self.block, 1.0 / self.efron.left) / self.efron.count)
        return log_jumps

    def take(self, rows: IntArray) -> Self:
        """The same loss among fewer patients."""
        weight = None if self.weight is None else self.weight[rows]
        offset = None if self.offset is None else self.offset[rows]
        return type(self)(self.target.take(rows), self.ties, weight, offset)

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """The losses in torch, in order of time; none for entry times, strata and offsets."""
        at = StackedTargets.of(losses, device)
        if at is None:
            return None
        ties, inside = losses[0].ties, TorchRiskSets.of(at.event, at.time)
        return InTorch(lambda scores, extra: inside.losses(scores, at.weight, ties), inside.order)

    def risk_parts(self) -> list[RiskPart] | None:
        """Everybody against everybody, unless ties are corrected or there are entry times, strata or offsets."""
        if self.efron is not None or self.offset is not None or not isinstance(self.risk_sets, RiskSets):
            return None
        return [RiskPart(np.arange(self.n), self.rows, self.block, self.risk_sets, apart=False)]


def events_at_risk(
    target: Target, weight: FloatArray | None, scored: BoolArray | None = None
) -> tuple[IntArray, FloatArray, IntArray, RiskSums, Slots | None]:
    """Events (E,) by stratum and time, their distinct times (K,), which of them each has (E,), and the risk sets there.

    Slots come with them where there are entry times or strata. With `scored` (n,) the events are those of the scored
    patients, and the risk sets hold all others.
    """
    if not target.is_plain:
        slots = Slots.of(target, scored)
        return slots.rows, slots.time, slots.block, RiskWindows(slots, weight), slots
    event, order = target.event[target.order], target.order
    inside = np.ones_like(event) if scored is None else scored[order]
    rows = order[event & inside]
    at, block = distinct(target.time[rows])
    others = order if scored is None else order[~inside]
    return rows, at, block, RiskSets(target.time, at, weight, others), None


@numba.njit(cache=True, nogil=True)
def subtract_own(
    log_sums: FloatArray, scores: FloatArray, rows: IntArray, block: IntArray, out: FloatArray
) -> None:
    """Losses (B, E) of the events: the log sum of their block less their own score."""
    for b in range(scores.shape[0]):
        for e in range(rows.shape[0]):
            out[b, e] = log_sums[b, block[e]] - scores[b, rows[e]]


@numba.njit(cache=True, nogil=True)
def subtract_at(weights: FloatArray, rows: IntArray, out: FloatArray) -> None:
    """Subtract weights (B, E) from the places of the events in (B, n)."""
    for b in range(weights.shape[0]):
        for e in range(rows.shape[0]):
            out[b, rows[e]] -= weights[b, e]


def cox_partial(
    log_risk: Tensor, event: Tensor, time: Tensor, *, weight: Tensor | None = None, ties: str = "breslow"
) -> Tensor:
    """Negative log partial likelihood of every patient, differentiable, on any device.

    .. math:: l_i = d_i ( log sum_{j : Y_j >= Y_i} w_j exp f_j - f_i )

    Censored patients have loss exactly zero. Linear memory; right for scores of any size (log space).

    Parameters
    ----------
    log_risk : (..., n) tensor
        Risk scores f; higher means sooner. Leading axes are a batch.
    event : (..., n) tensor
        True (or 1) where the event was observed.
    time : (..., n) tensor
        Time of event or censoring.
    weight : (..., n) tensor, optional
        Weights w inside the risk sets.
    ties : {"breslow", "efron"}
        How equal event times share a risk set.

    Returns
    -------
    (..., n) tensor
        One loss per patient.

    Examples
    --------
    >>> import torch
    >>> from drosurv.losses import cox_partial
    >>> cox_partial(torch.zeros(3), torch.tensor([True, True, False]), torch.tensor([1.0, 2.0, 3.0])).exp()
    tensor([3., 2., 1.])
    """
    import torch

    require(ties in TIES, "ties", f"be one of {TIES}", ties)
    sets = TorchRiskSets.of(event, time)
    losses = sets.losses(log_risk, weight, ties)
    return torch.empty_like(losses).scatter(-1, sets.order.expand(losses.shape), losses)


@dataclass(frozen=True, eq=False)
class TorchRiskSets:
    """What of the loss in torch depends on events and times alone: found once, however often scores change.

    `order` (..., n) goes from the longest to the shortest time: risk sets then begin with the first, and end at
    `last`, for each place the last place of its time. `died` are the events, in that order.
    """

    order: Tensor
    last: Tensor
    died: Tensor

    @classmethod
    def of(cls, event: Tensor, time: Tensor) -> TorchRiskSets:
        """Of events and times (..., n)."""
        import torch

        event, time = torch.broadcast_tensors(event.bool(), time)  # type: ignore[no-untyped-call]
        order = torch.argsort(time, dim=-1, descending=True, stable=True)
        rising = -time.gather(-1, order)
        last = torch.searchsorted(rising, rising, side="right") - 1
        return cls(order, last, event.gather(-1, order))

    def losses(self, log_risk: Tensor, weight: Tensor | None, ties: str) -> Tensor:
        """As :func:`cox_partial`, but in the order of the risk sets."""
        import torch

        given = (log_risk, self.order) if weight is None else (log_risk, self.order, weight)
        shape = torch.broadcast_shapes(*(part.shape for part in given))  # type: ignore[no-untyped-call]
        order, last, died = (part.expand(shape) for part in (self.order, self.last, self.died))
        scores = log_risk.expand(shape).gather(-1, order)
        # Mostly nobody is weighted, and one look at the patients in their order is enough.
        risk = scores
        if weight is not None:
            risk = weighted_log_risk(log_risk, weight).expand(shape).gather(-1, order)
        log_sums = torch.logcumsumexp(risk, dim=-1).gather(-1, last)
        if ties == "efron":
            log_sums = log_sums + _efron_correction(risk, log_sums, died, last)
        return torch.where(died, log_sums - scores, torch.zeros_like(scores))


def _efron_correction(risk: Tensor, log_sums: Tensor, died: Tensor, last: Tensor) -> Tensor:
    """Mean over k = 0..m-1 of log(1 - k/m rho) for each patient's tie block, all tensors sorted by time."""
    import torch

    share = torch.where(died, torch.exp(risk - log_sums), torch.zeros_like(risk))
    rho = torch.zeros_like(risk).scatter_add(-1, last, share).gather(-1, last)
    flags = died.to(risk.dtype)
    count = torch.zeros_like(flags).scatter_add(-1, last, flags).gather(-1, last).clamp(min=1)
    # Each event of a block carries one of its m terms; summing them over the block and dividing by m is the mean.
    seen = flags.cumsum(-1)
    k = torch.where(died, seen.gather(-1, last) - seen, torch.zeros_like(seen))
    term = torch.where(died, torch.log1p(-(k / count) * rho), torch.zeros_like(rho))
    return torch.zeros_like(risk).scatter_add(-1, last, term).gather(-1, last) / count
