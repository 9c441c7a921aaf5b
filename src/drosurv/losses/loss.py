"""Base classes of losses: one number per patient, with derivatives in the scores and in extra parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numba
import numpy as np

from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor

    from drosurv.losses.risk_sets import RiskSets

NOTHING: FloatArray = np.zeros(0)
# A feature whose relative variation is smaller is constant up to rounding.
_CONSTANT = 1e-14
# Features are compared for at most so many patients at a time, which bounds the memory.
_MOST_READ = 4096


class Loss(ABC):
    """A loss prepared for the n patients of one target.

    It is a function of the scores (B, n) of B models, or (B, n, K) where a network has K outputs for each patient,
    and of *extra* parameters (B, n_extra) that belong to the loss and not to the network: log baseline hazards, a log
    scale, an intercept. Derivatives are taken at the arguments of the last call.

    Attributes
    ----------
    n : int
        Number of patients.
    rows : (E,) int
        The patients who have a loss. The loss of all others is zero, whatever the scores.
    start : (n_extra,) float64
        The best extra parameters if all scores are zero; training starts there.
    shift : (n_extra,) float64 or None
        The change of the extra parameters that has the same effect as adding one to every score:
        l(f + c, e) = l(f, e + c shift). Features can then be centred. With several outputs, one row for each. None if
        there is no such change.
    extra_ridge : float
        Ridge penalty on the distance of the extra parameters from their start. Without it, the log hazard of an
        interval whose events all get weight zero would go to minus infinity.
    n_outputs : int
        Number of scores of each patient.
    signed : bool
        Whether a loss may be negative, so that tolerances relative to its size have no meaning.
    recordable : bool
        Whether its torch form never copies numbers from the device, so that a step can be recorded as a CUDA graph.
    """

    n: int
    rows: IntArray
    start: FloatArray = NOTHING
    shift: FloatArray | None = NOTHING
    extra_ridge = 1e-6
    n_outputs = 1
    signed = True
    recordable = True

    @property
    def n_extra(self) -> int:
        """Number of extra parameters."""
        return len(self.start)

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return len(self.rows) / self.n

    @property
    def compared(self) -> IntArray | None:
        """The number (n,) of the set within which each patient is compared, such as a stratum; -1: with nobody.

        Adding a constant to the scores of a set changes no loss, or has the same effect as a change of the extra
        parameters. None if all patients are one set.
        """
        return None

    @abstractmethod
    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, E) of the patients in ``rows``."""

    @abstractmethod
    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the losses weighted by (B, E): in the scores, and in extra (B, n_extra)."""

    @abstractmethod
    def take(self, rows: IntArray) -> Self:
        """Return the same loss of some of the patients."""

    def sorted_by_time(self) -> tuple[Self, IntArray] | None:
        """Return the loss of the same patients in order of time, and that order (n,); None if it is not offered.

        Losses keep their order. Sums over risk sets of many patients then read memory in order, which is faster.
        """
        return None

    def forget(self) -> None:  # noqa: B027
        """Free the memory of the last scores; derivatives need a call before them."""

    def without(self, left_out: BoolArray) -> Self | None:
        """Return the loss of the patients not left out (n,), as a function of the scores of all; None if not offered.

        It shares the memory of this loss: derivatives are those of the last call of either.
        """
        return None

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) of the losses weighted by (B, E), each in one patient's score, for trees.

        A loss without second derivatives returns the weights, as in gradient boosting with first derivatives only.
        """
        return self.everyone(weights)

    def null_losses(self) -> FloatArray:
        """Return the losses (n,) of the null model: equal scores and the best extra parameters for them."""
        shape = (1, self.n) if self.n_outputs == 1 else (1, self.n, self.n_outputs)
        (losses,) = self.everyone(self(np.zeros(shape), self.start[None]))
        return np.asarray(losses, dtype=np.float64)

    def everyone(self, losses: FloatArray) -> FloatArray:
        """Return the losses (B, n) of all patients, given those of ``rows``."""
        if len(self.rows) == self.n and (self.rows == np.arange(self.n)).all():
            return losses
        out = np.zeros((len(losses), self.n))
        out[:, self.rows] = losses
        return out

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """Return the losses of R training sets of one size, in torch; None if there is no torch form."""
        return None

    def risk_parts(self) -> list[RiskPart] | None:
        """Return the loss as events against risk sets, for the compiled solver; None if it has another form."""
        return None


class OnePerPatient(Loss):
    """Base of losses that every patient has; in a partial likelihood only patients with events have one."""

    # Names of the attributes that hold one value per patient.
    _by_patient: ClassVar[tuple[str, ...]] = ("target",)

    def __init__(self, target: Target) -> None:
        self.target = target
        self.n, self.rows = len(target), np.arange(len(target))

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return float(self.target.event.mean())

    def take(self, rows: IntArray) -> Self:
        """Return the same loss of some of the patients, with the same intervals and null model."""
        part = copy(self)
        part.n, part.rows = len(rows), np.arange(len(rows))
        for name in self._by_patient:
            whole = getattr(self, name)
            if whole is not None:
                setattr(part, name, whole[rows] if isinstance(whole, np.ndarray) else whole.take(rows))
        return part


class ConvexLoss(Loss):
    """A loss that is convex in the extra parameters and the coefficients of linear scores, with second derivatives."""

    @abstractmethod
    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), d + n_extra) of chosen losses for scores X theta, first row of the batch."""

    @abstractmethod
    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian (d + n_extra, d + n_extra) of the losses weighted by (1, E), first row of the batch."""


class RiskPart(NamedTuple):
    """Events in order of time, and the risk sets they are compared with.

    `patients` (m,) are all patients of this part, with an event or without; `rows` (E,) are those with an event, and
    `block` (E,) is the index of each event's risk set. `apart` is true if risk sets do not contain the event itself, so
    that the loss has to add it.
    """

    patients: IntArray
    rows: IntArray
    block: IntArray
    risk_sets: RiskSets
    apart: bool


class InTorch(NamedTuple):
    """The losses of R training sets of n patients each, for B models of each set.

    `losses` maps scores (R, B, n) and extra parameters (R, B, K) to losses (R, B, n). If these losses are in another
    order than the scores, `order` (R, 1, n) is that order: sorting them back would take as long as computing them.
    """

    losses: Callable[[Tensor, Tensor], Tensor]
    order: Tensor | None = None


def one_by_one(losses: Sequence[Callable[[Tensor, Tensor], Tensor]]) -> InTorch:
    """Combine the loss functions of R training sets, each of scores (B, n) and extra parameters (B, K), into one."""
    import torch

    def in_torch(scores: Tensor, extra: Tensor) -> Tensor:
        return torch.stack([loss(s, e) for loss, s, e in zip(losses, scores, extra, strict=True)])

    return InTorch(in_torch)


def stack(arrays: Sequence[Any], device: str) -> Tensor:
    """Return arrays (n,) of R training sets as one tensor (R, 1, n) on the device."""
    import torch

    return torch.as_tensor(np.stack(arrays), device=device).unsqueeze(1)


def block_sums(values: FloatArray, block: IntArray, n_blocks: int) -> FloatArray:
    """Return sums (..., K) of values (..., E) with the same block number (E,): tied events, or rows of a patient."""
    out = np.zeros((math.prod(values.shape[:-1]), n_blocks))
    stored = values.reshape(len(out), len(block))
    # numba would compile the loop again for arrays stored otherwise.
    add_by_block(stored if stored.flags.carray else stored.copy(), block, out)
    return out.reshape(*values.shape[:-1], n_blocks)


@numba.njit(cache=True, nogil=True)
def add_by_block(values: FloatArray, block: IntArray, out: FloatArray) -> None:
    """Add values (B, E) to their blocks (B, K)."""
    for b in range(values.shape[0]):
        for e in range(block.shape[0]):
            out[b, block[e]] += values[b, e]


def constant_features(X: FloatArray, compared: IntArray | None = None) -> BoolArray:
    """Return which features (d,) are constant within every set of patients who are compared.

    Examples are the feature that defines the strata, and one that varies only among patients censored before the first
    event. The loss does not depend on their coefficients: derivatives with respect to them are rounding errors.
    `compared` is as in :attr:`Loss.compared`.
    """
    sets = np.zeros(len(X), np.intp) if compared is None else compared
    inside = np.flatnonzero(sets >= 0)
    sets = sets[inside]
    # The first patient of each set: of several assignments to one entry the last is kept.
    first = np.empty(sets.max(initial=-1) + 1, np.intp)
    first[sets[::-1]] = inside[::-1]
    constant = np.ones(X.shape[1], dtype=np.bool_)
    low, rows = 0, 16
    # Usually one of the first few patients differs from the first of the set.
    while low < len(inside) and constant.any():
        left, part = np.flatnonzero(constant), slice(low, low + rows)
        value, before = X[inside[part]][:, left], X[first[sets[part]]][:, left]
        size = np.maximum(np.abs(value), np.abs(before))
        constant[left] = (np.abs(value - before) <= _CONSTANT * size).all(axis=0)
        low, rows = low + rows, min(4 * rows, _MOST_READ)
    return constant
