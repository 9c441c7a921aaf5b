"""What every loss answers: one number per patient, and how it changes with the scores and with extra parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from drosurv.target import FloatArray, IntArray, Target

if TYPE_CHECKING:
    from drosurv.losses.risk_sets import RiskSets
    from drosurv.losses.stacked_targets import InTorch

NOTHING: FloatArray = np.zeros(0)


class Loss(ABC):
    """A loss prepared for the n patients of one target.

    It is a function of the scores (B, n) of B models, or (B, n, K) where a network has K outputs for each patient,
    and of *extra* parameters (B, n_extra) that belong to the loss and not to the network: log baseline hazards, a log
    scale, an intercept. Methods that speak of derivatives speak of the last call.

    Attributes
    ----------
    n : int
        Patients.
    rows : (E,) int
        The patients who have a loss; everybody else's is zero, whatever the scores.
    start : (n_extra,) float64
        The extra parameters that are best where all scores are zero: training starts there.
    shift : (n_extra,) float64 or None
        What adding one to every score is worth in extra parameters: l(f + c, e) = l(f, e + c shift). Features may then
        be centred. One row for each of several outputs. None: nothing makes up for it.
    extra_ridge : float
        Price of moving extra parameters from their start: an interval whose events lose all weight would otherwise
        send its log hazard to minus infinity.
    n_outputs : int
        Scores of each patient.
    signed : bool
        Whether a loss may be negative, so that its own size says nothing of how near the optimum is.
    recordable : bool
        Whether its form in torch never waits for the device; see :class:`drosurv.solvers.replay.Replay`.
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
        """Share of the patients who had the event: the size of what a model can gain."""
        return len(self.rows) / self.n

    @property
    def compared(self) -> IntArray | None:
        """Set (n,) of patients within which each is compared, negative for nobody; None for one set of all.

        A number added to the scores of a set changes no loss, but for extra parameters that make up for it.
        """
        return None

    @abstractmethod
    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (B, E) of the patients in ``rows``."""

    @abstractmethod
    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of the losses weighted by (B, E), by score (like the scores) and by extra (B, n_extra)."""

    @abstractmethod
    def take(self, rows: IntArray) -> Self:
        """The same loss among fewer patients."""

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Second derivatives (B, n) of the losses weighted by (B, E), each in one patient's own score, for trees.

        One for each unit of weight where a loss has none: leaves then follow the gradient alone.
        """
        return self.everyone(weights)

    def null_losses(self) -> FloatArray:
        """Losses (n,) of the null model: equal scores, and the extra parameters that suit them."""
        shape = (1, self.n) if self.n_outputs == 1 else (1, self.n, self.n_outputs)
        (losses,) = self.everyone(self(np.zeros(shape), self.start[None]))
        return np.asarray(losses, dtype=np.float64)

    def everyone(self, losses: FloatArray) -> FloatArray:
        """Losses (B, n) of all patients, given those of ``rows``."""
        if len(self.rows) == self.n and (self.rows == np.arange(self.n)).all():
            return losses
        out = np.zeros((len(losses), self.n))
        out[:, self.rows] = losses
        return out

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """The losses of R training sets of one size, in torch.

        None where there is no such form: such a loss trains on the processor.
        """
        return None

    def risk_parts(self) -> list[RiskPart] | None:
        """The loss as events against risk sets, for the compiled solver; None where it is anything else."""
        return None


class OnePerPatient(Loss):
    """Base of losses that every patient has; under a partial likelihood the censored have none."""

    # Attributes with an entry for each patient.
    _by_patient: ClassVar[tuple[str, ...]] = ("target",)

    def __init__(self, target: Target) -> None:
        self.target = target
        self.n, self.rows = len(target), np.arange(len(target))

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return float(self.target.event.mean())

    def take(self, rows: IntArray) -> Self:
        """The same loss, with the same intervals and null model where it has any, among fewer patients."""
        part = copy(self)
        part.n, part.rows = len(rows), np.arange(len(rows))
        for name in self._by_patient:
            whole = getattr(self, name)
            setattr(part, name, None if whole is None else whole.take(rows))
        return part


class ConvexLoss(Loss):
    """A loss that is convex in the extra parameters and the coefficients of linear scores, with second derivatives."""

    @abstractmethod
    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients (len(which), d + n_extra) of the chosen losses for scores X theta, first row of the batch."""

    @abstractmethod
    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivative (d + n_extra, d + n_extra) of the losses weighted by (1, E), first row of the batch."""


class RiskPart(NamedTuple):
    """Events, in order of time, and the risk sets they are compared with.

    `patients` (m,) are everybody whose losses these are, with an event or without, `rows` (E,) the events, `block`
    (E,) the places of their risk sets. `apart` tells whether risk sets leave out the event itself, which the loss then
    adds.
    """

    patients: IntArray
    rows: IntArray
    block: IntArray
    risk_sets: RiskSets
    apart: bool


def no_extra(batch: int) -> FloatArray:
    """The gradient (B, 0) by extra parameters that are not there."""
    return np.zeros((batch, 0))
