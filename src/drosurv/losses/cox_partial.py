"""The Cox partial likelihood as a loss: one number per patient with an event."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numba
import numpy as np

from drosurv.errors import check_choice, require_extra
from drosurv.losses.late_entry import EventTimes, LateEntryRiskSets
from drosurv.losses.loss import NOTHING, ConvexLoss, InTorch, RiskPart, block_sums, stack
from drosurv.losses.risk_sets import RiskSets, RiskSums, by_rows, weighted_gram
from drosurv.patients.arrays import distinct, inverse
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor

TIES = ("breslow", "efron")


class CoxPartial(ConvexLoss):
    """Negative log partial likelihood of every patient with an event, prepared for one target.

    .. math:: l_i = d_i ( log sum_{j : Y_j >= Y_i} w_j exp f_j - f_i )

    Censored patients have loss zero and are left out: the losses are those of ``rows``, the events by stratum and time.
    With Efron's ties, the m tied events of a time with summed risk D have the mean of log(S - k/m D), k = 0..m-1, in
    place of log S. With entry times V or strata, a risk set contains the patients of the event's stratum with
    V_j < Y_i <= Y_j. The weights w (n,) apply in the risk sets only; an offset (n,) is added to every model's scores.

    ``event_times`` (K,) are the distinct event times of each stratum, ``block`` (E,) is the index of each event's time
    among them, and ``event_strata`` (K,) are their strata, None without entry times and strata.
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
        found = events_at_risk(target, weight)
        self.rows, self.event_times, self.block, self.risk_sets, self.event_strata = found
        self.efron: EfronTies | None = None
        if ties == "efron" and len(self.event_times) < len(self.rows):
            self.efron = EfronTies(self.rows, self.block, weight, len(self.event_times))

    @property
    def compared(self) -> IntArray:
        """Stratum (n,) of each patient; -1 for a patient who is at risk at no event."""
        return self.target.compared

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, E) of the patients in ``rows`` at scores (B, n)."""
        if self.offset is not None:
            scores = scores + self.offset
        scores = np.ascontiguousarray(scores)
        log_sums = self.risk_sets.log_sums(scores)
        if self.efron is not None:
            log_sums = log_sums + self.efron.correction(scores, log_sums)
        losses = np.empty((len(scores), len(self.rows)))
        event_losses(log_sums, scores, self.rows, self.block, losses)
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient (B, n) in the scores of the losses weighted by (B, E); there are no extra parameters."""
        pull = block_sums(weights, self.block, len(self.event_times))
        # Before the pullback below, because it changes `pull`.
        tied = None if self.efron is None else self.efron.pullback(pull)
        gradient = self.risk_sets.pullback(pull)
        if tied is not None:
            gradient[:, self.rows] += tied
        subtract_from_events(by_rows(weights), self.rows, gradient)
        return gradient, np.zeros((len(weights), 0))

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n), each in one patient's score, by Breslow's formula even for Efron's ties."""
        pull = block_sums(weights, self.block, len(self.event_times))
        return self.risk_sets.curvature(pull, pull)

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), d) of the chosen losses for linear scores, first row of the batch."""
        means = self.risk_sets.means(X)
        if self.efron is not None:
            means = self.efron.means(X, means)
        return means[self.block[which]] - X[self.rows[which]]

    def hessian(self, weights: FloatArray, X: FloatArray, centre: FloatArray | None = None) -> FloatArray:
        """Return the Hessian (d, d) of the losses weighted by (1, E) for linear scores, first row of the batch.

        Subtracting a `centre` (d,) from the features only reduces rounding errors.
        """
        pull = block_sums(weights, self.block, len(self.event_times))
        if self.efron is None:
            return self.risk_sets.hessian(X, pull[0], centre)
        terms = self.efron.terms(X, self.risk_sets.means(X))
        shares = pull[0, self.block] / self.efron.count[self.block]
        tied = self.efron.pullback(pull)
        inside = self.risk_sets.pullback(pull)[0]
        inside[self.rows] += tied[0]
        return weighted_gram(X, inside, centre) - weighted_gram(terms, shares, centre)

    def log_hazard_jumps(self, scores: FloatArray) -> FloatArray:
        """Return the log of the jumps (K,) of the cumulative baseline hazard at the event times.

        .. math:: dH_k = sum_{l=0}^{m-1} wbar / (S_k - l/m D_k)

        with the summed risk S_k of all patients at risk, and the summed risk D_k and mean weight wbar of the m events;
        with Breslow's ties D_k is zero. The scores (n,) do not include the offset. Logs of jumps are finite for scores
        of any size.
        """
        scores = scores if self.offset is None else scores + self.offset
        log_risk: FloatArray = self.risk_sets.log_sums(scores[None, :])
        weight = np.ones(len(self.rows)) if self.weight is None else self.weight[self.rows]
        log_jumps: FloatArray = np.log(np.bincount(self.block, weight)) - log_risk[0]
        if self.efron is not None:
            self.efron.correction(scores[None, :], log_risk)
            log_jumps += np.log(np.bincount(self.block, 1.0 / self.efron.left) / self.efron.count)
        return log_jumps

    def take(self, rows: IntArray) -> Self:
        """Return the same loss of some of the patients."""
        weight = None if self.weight is None else self.weight[rows]
        offset = None if self.offset is None else self.offset[rows]
        return type(self)(self.target.take(rows), self.ties, weight, offset)

    def sorted_by_time(self) -> tuple[Self, IntArray] | None:
        """See :meth:`Loss.sorted_by_time`."""
        if not isinstance(self.risk_sets, RiskSets):
            return None
        part, order, position = copy(self), self.target.order, inverse(self.target.order)
        part.target = self.target.take(order)
        part.weight, part.offset = (None if v is None else v[order] for v in (self.weight, self.offset))
        part.rows, part.risk_sets = position[self.rows], self.risk_sets.moved(position)
        if self.efron is not None:
            part.efron = EfronTies(part.rows, part.block, part.weight, len(self.event_times))
        return part, order

    def forget(self) -> None:
        """See :meth:`Loss.forget`."""
        self.risk_sets.forget()

    def without(self, left_out: BoolArray) -> Self:
        """See :meth:`Loss.without`."""
        part, kept = copy(self), np.flatnonzero(~left_out[self.rows])
        part.rows, part.block = self.rows[kept], self.block[kept]
        part.risk_sets = self.risk_sets.without(left_out)
        if self.efron is not None:
            part.efron = EfronTies(part.rows, part.block, self.weight, len(self.event_times))
        return part

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """Return the losses in torch, in order of time; None with entry times, strata or offsets."""
        targets = StackedTargets.of(losses, device)
        if targets is None:
            return None
        ties, sets = losses[0].ties, TorchRiskSets.of(targets.event, targets.time)
        return InTorch(lambda scores, extra: sets.losses(scores, targets.weight, ties), sets.order)

    def risk_parts(self) -> list[RiskPart] | None:
        """Return all events against all patients; None with corrected ties, entry times, strata or offsets."""
        if self.efron is not None or self.offset is not None or not isinstance(self.risk_sets, RiskSets):
            return None
        return [RiskPart(np.arange(self.n), self.rows, self.block, self.risk_sets, apart=False)]


def events_at_risk(
    target: Target, weight: FloatArray | None, scored: BoolArray | None = None
) -> tuple[IntArray, FloatArray, IntArray, RiskSums, IntArray | None]:
    """Return the events, their distinct times and the risk sets at these times.

    These are the events (E,) by stratum and time, their distinct times (K,), the index (E,) of each event's time among
    them, the risk sets, and the strata (K,) of the times, None without entry times and strata. With `scored` (n,) only
    events of the scored patients count, and the risk sets contain only the other patients.
    """
    if not target.is_plain:
        found = EventTimes.of(target, scored)
        return found.rows, found.time, found.block, LateEntryRiskSets(found, weight), found.stratum
    event, order = target.event[target.order], target.order
    inside = np.ones_like(event) if scored is None else scored[order]
    rows = order[event & inside]
    times, block = distinct(target.time[rows])
    others = order if scored is None else order[~inside]
    return rows, times, block, RiskSets(target.time, times, weight, others), None


@numba.njit(cache=True, nogil=True)
def event_losses(
    log_sums: FloatArray, scores: FloatArray, rows: IntArray, block: IntArray, out: FloatArray
) -> None:
    """Write the losses (B, E) of the events: the log sum over the risk set minus the score of the event."""
    for b in range(scores.shape[0]):
        for e in range(rows.shape[0]):
            out[b, e] = log_sums[b, block[e]] - scores[b, rows[e]]


@numba.njit(cache=True, nogil=True)
def subtract_from_events(weights: FloatArray, rows: IntArray, out: FloatArray) -> None:
    """Subtract weights (B, E) from the entries of the events in (B, n)."""
    for b in range(weights.shape[0]):
        for e in range(rows.shape[0]):
            out[b, rows[e]] -= weights[b, e]


class EfronTies:
    """Efron's correction of the log sums of tied events, and its derivatives.

    It is the mean of log(1 - k/m rho) over k = 0..m-1, with rho the share of the m tied events in the summed risk of
    their risk set.
    """

    def __init__(self, rows: IntArray, block: IntArray, weight: FloatArray | None, n_times: int) -> None:
        self.rows, self.block = rows, block
        self.count = np.bincount(block, minlength=n_times)
        # k/m (E,) with k = 0..m-1 for the m tied events of each time: the term of Efron's mean of each event.
        before = np.arange(len(block)) - (np.cumsum(self.count) - self.count)[block]
        self.step: FloatArray = before / self.count[block]
        self.log_weight = 0.0 if weight is None else np.log(weight[rows])
        self._share: FloatArray = np.empty(0)
        self._slope: FloatArray = np.empty(0)

    def correction(self, scores: FloatArray, log_sums: FloatArray) -> FloatArray:
        """Return the correction (B, K) of the log sums (B, K) of scores (B, n)."""
        self._share = np.exp(scores[:, self.rows] + self.log_weight - log_sums[:, self.block])
        rho = block_sums(self._share, self.block, len(self.count))
        value = np.zeros_like(rho)
        self._slope = np.zeros_like(rho)
        _efron_terms(rho, self.count, value, self._slope)
        return value

    def means(self, X: FloatArray, means: FloatArray) -> FloatArray:
        """Return gradients (K, d) of the corrected log sums, given the gradients `means` of the uncorrected ones."""
        corrected: FloatArray = means + self._slope[0][:, None] * self._rho_gradient(X, means)
        return corrected

    def terms(self, X: FloatArray, means: FloatArray) -> FloatArray:
        """Return gradients (E, d) of the single terms log(S - k/m D), one per event."""
        slope = -self.step / self.left
        return means[self.block] + slope[:, None] * self._rho_gradient(X, means)[self.block]

    @property
    def left(self) -> FloatArray:
        """1 - k/m rho (E,), the share of the risk that is left in each event's term, first row of the batch."""
        left: FloatArray = 1.0 - self.step * self._rho[self.block]
        return left

    @property
    def _rho(self) -> FloatArray:
        (rho,) = block_sums(self._share[:1], self.block, len(self.count))
        return np.asarray(rho)

    def _rho_gradient(self, X: FloatArray, means: FloatArray) -> FloatArray:
        """Return the gradient (K, d) of rho, for the first row of the batch."""
        tied = np.zeros_like(means)
        np.add.at(tied, self.block, self._share[0][:, None] * X[self.rows])
        return tied - self._rho[:, None] * means

    def pullback(self, pull: FloatArray) -> FloatArray:
        """Return the gradient through rho in the events' scores, and subtract from ``pull`` the part through log S."""
        through = pull * self._slope
        by_event = through[:, self.block] * self._share
        pull -= through * block_sums(self._share, self.block, len(self.count))
        return by_event


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _efron_terms(rho: FloatArray, count: IntArray, value: FloatArray, slope: FloatArray) -> None:
    for b in range(rho.shape[0]):
        for j in range(rho.shape[1]):
            m = count[j]
            for k in range(1, m):
                left = 1.0 - k / m * rho[b, j]
                value[b, j] += np.log(left) / m
                slope[b, j] -= k / m / left / m


def cox_partial(
    log_risk: Tensor, event: Tensor, time: Tensor, *, weight: Tensor | None = None, ties: str = "breslow"
) -> Tensor:
    """Negative log partial likelihood of every patient, differentiable, on any device.

    .. math:: l_i = d_i ( log sum_{j : Y_j >= Y_i} w_j exp f_j - f_i )

    Censored patients have loss exactly zero. Memory is linear in n; log space keeps scores of any size from
    overflowing.

    Parameters
    ----------
    log_risk : (..., n) tensor
        Risk scores f; higher means an earlier event. Leading axes are a batch.
    event : (..., n) tensor
        True (or 1) where the event was observed.
    time : (..., n) tensor
        Time of event or censoring.
    weight : (..., n) tensor, optional
        Weights w in the risk sets.
    ties : {"breslow", "efron"}
        Treatment of tied event times.

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
    require_extra("torch", "deep")
    import torch

    check_choice("ties", ties, TIES)
    sets = TorchRiskSets.of(event, time)
    losses = sets.losses(log_risk, weight, ties)
    return torch.empty_like(losses).scatter(-1, sets.order.expand(losses.shape), losses)


@dataclass(frozen=True, eq=False)
class TorchRiskSets:
    """Risk sets in torch: the part of the loss that depends only on events and times.

    `order` (..., n) sorts from the longest to the shortest time, so that every risk set begins with the first patient.
    `last` is the index of the last patient with the same time, and `event` are the event flags, both in that order.
    """

    order: Tensor
    last: Tensor
    event: Tensor

    @classmethod
    def of(cls, event: Tensor, time: Tensor) -> TorchRiskSets:
        """Sort events and times (..., n)."""
        import torch

        event, time = torch.broadcast_tensors(event.bool(), time)
        order = torch.argsort(time, dim=-1, descending=True, stable=True)
        ascending = -time.gather(-1, order)
        last = torch.searchsorted(ascending, ascending, side="right") - 1
        return cls(order, last, event.gather(-1, order))

    def losses(self, log_risk: Tensor, weight: Tensor | None, ties: str) -> Tensor:
        """Return the losses of :func:`cox_partial` in the order of the risk sets."""
        import torch

        given = (log_risk, self.order) if weight is None else (log_risk, self.order, weight)
        shape = np.broadcast_shapes(*(part.shape for part in given))
        order, last, event = (part.expand(shape) for part in (self.order, self.last, self.event))
        scores = log_risk.expand(shape).gather(-1, order)
        risk = scores
        if weight is not None:
            risk = weighted_log_risk(log_risk, weight).expand(shape).gather(-1, order)
        log_sums = torch.logcumsumexp(risk, dim=-1).gather(-1, last)
        if ties == "efron":
            log_sums = log_sums + _efron_correction(risk, log_sums, event, last)
        return torch.where(event, log_sums - scores, torch.zeros_like(scores))


def _efron_correction(risk: Tensor, log_sums: Tensor, event: Tensor, last: Tensor) -> Tensor:
    """Return the mean over k = 0..m-1 of log(1 - k/m rho) of each patient's tied events, all tensors sorted by time."""
    import torch

    share = torch.where(event, torch.exp(risk - log_sums), torch.zeros_like(risk))
    rho = torch.zeros_like(risk).scatter_add(-1, last, share).gather(-1, last)
    flags = event.to(risk.dtype)
    count = torch.zeros_like(flags).scatter_add(-1, last, flags).gather(-1, last).clamp(min=1)
    # Each of the m tied events computes one of the m terms; their sum divided by m is the mean.
    counted = flags.cumsum(-1)
    k = torch.where(event, counted.gather(-1, last) - counted, torch.zeros_like(counted))
    term = torch.where(event, torch.log1p(-(k / count) * rho), torch.zeros_like(rho))
    return torch.zeros_like(risk).scatter_add(-1, last, term).gather(-1, last) / count


def weighted_log_risk(log_risk: Tensor, weight: Tensor | None) -> Tensor:
    """Return the log of weight times risk (..., n); for weight zero, a finite number that adds nothing to any sum."""
    import torch

    if weight is None:
        return log_risk
    positive = weight > 0
    # With minus infinity, the gradient of a sum over patients of weight zero would be NaN.
    lowest = torch.full_like(log_risk, torch.finfo(log_risk.dtype).min / 4)
    return torch.where(positive, log_risk + torch.where(positive, weight, 1.0).log(), lowest)


@dataclass(frozen=True, eq=False)
class StackedTargets:
    """Targets of R training sets as tensors (R, 1, n), to be combined with scores (R, B, n)."""

    event: Tensor
    time: Tensor
    weight: Tensor | None

    @classmethod
    def of(cls, losses: Sequence[Any], device: str) -> StackedTargets | None:
        """Stack the targets and weights of losses of one size; None with entry times, strata or offsets."""
        if not all(loss.target.is_plain and loss.offset is None for loss in losses):
            return None
        weights = [np.ones(loss.n) if loss.weight is None else loss.weight for loss in losses]
        weighted = any(loss.weight is not None for loss in losses)
        return cls(
            stack([loss.target.event for loss in losses], device),
            stack([loss.target.time for loss in losses], device),
            stack(weights, device).float() if weighted else None,
        )
