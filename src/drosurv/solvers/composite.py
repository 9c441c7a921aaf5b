"""Loss, objective and penalties composed: scores in, one number per model and its gradient out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from drosurv.objectives import Blocks, Evaluation, Objective
from drosurv.target import FloatArray, IntArray


class Loss(Protocol):
    """What the composition asks of a prepared loss."""

    n: int
    rows: IntArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Scores (B, n) to the losses (B, E) of the patients in ``rows``; everybody else's loss is zero."""
        ...

    def pullback(self, weights: FloatArray) -> FloatArray:
        """Gradient (B, n) of the losses weighted by (B, E), at the last call's scores."""
        ...

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients of the chosen losses in the coefficients of linear scores."""
        ...

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivative (d, d) of the losses weighted by (1, E) in those coefficients."""
        ...

    def take(self, rows: IntArray) -> Loss:
        """The same loss among fewer patients."""
        ...


class Penalty(Protocol):
    """A term added to the objective that reads the scores directly."""

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores (B, n) to values (B,) and gradients (B, n)."""
        ...

    def subset(self, rows: IntArray) -> Penalty:
        """The same penalty among fewer patients."""
        ...


class Composite:
    """The training criterion as a function of the scores.

    Patients without a loss (the censored, under a partial likelihood) all have loss zero, so each block of patients
    carries them as one entry that holds their summed mass: exact, and several times less to sort through.

    Parameters
    ----------
    loss : Loss
        Prepared for the n training patients.
    make_objective : callable
        Builds the objective of one block.
    mass : (n,) float64
        Mass of each patient, summing to one.
    blocks : sequence of int arrays or None
        Patients of each block whose objectives are summed; None is one block of everybody.
    penalty, penalty_weight : Penalty or None, (B,) float64
        Added to the objective, times the weight.
    """

    def __init__(
        self,
        loss: Loss,
        make_objective: Callable[[], Objective],
        mass: FloatArray,
        blocks: Sequence[IntArray] | None = None,
        penalty: Penalty | None = None,
        penalty_weight: FloatArray | None = None,
    ) -> None:
        self.loss, self.make_objective, self.patient_mass = loss, make_objective, mass
        self.blocks = [np.arange(loss.n)] if blocks is None else list(blocks)
        self.penalty, self.penalty_weight = penalty, penalty_weight
        n_losses = len(loss.rows)
        column = np.full(loss.n, -1, dtype=np.intp)
        column[loss.rows] = np.arange(n_losses)
        self._column = column
        masses, members = [mass[loss.rows]], []
        for k, rows in enumerate(self.blocks):
            own = column[rows]
            rest = rows[own < 0]
            masses.append(np.array([mass[rest].sum()]))
            column[rest] = n_losses + k
            members.append(np.concatenate([own[own >= 0], [n_losses + k]]).astype(np.intp))
        self.mass: FloatArray = np.concatenate(masses)
        self._blocks = blocks
        self.objective: Objective = make_objective() if blocks is None else Blocks(make_objective, members)
        self._columns = n_losses + len(self.blocks)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Losses (B, E + blocks): one per patient with a loss, then one zero per block for the others."""
        out = np.zeros((len(scores), self._columns))
        out[:, : len(self.loss.rows)] = self.loss(scores)
        return out

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores (B, n) to values (B,) and the gradient in the scores (B, n)."""
        at = self.objective(self.losses(scores), self.mass)
        gradient = self.pullback(at)
        if self.penalty is None:
            return at.value, gradient
        value, slope = self.penalty(scores)
        weight = np.ones(1) if self.penalty_weight is None else self.penalty_weight
        return at.value + weight * value, gradient + weight[:, None] * slope

    def pullback(self, at: Evaluation) -> FloatArray:
        """Gradient in the scores (B, n) of the objective evaluated at the last losses."""
        return self.loss.pullback(at.weights[:, : len(self.loss.rows)])

    def patient_weights(self, at: Evaluation) -> FloatArray:
        """Worst-case weights (B, n) of all patients: those who share an entry share its weight by mass."""
        share = np.zeros(self.loss.n)
        used = self._column >= 0
        held = self.mass[self._column[used]]
        share[used] = self.patient_mass[used] / np.where(held > 0, held, 1.0)
        return np.where(used, at.weights[:, np.maximum(self._column, 0)] * share, 0.0)

    def take(self, rows: IntArray) -> Composite:
        """The same criterion among fewer patients, masses scaled to sum to one."""
        place = np.full(self.loss.n, -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        blocks = None if self._blocks is None else [place[b][place[b] >= 0] for b in self._blocks]
        mass = self.patient_mass[rows]
        total = float(mass.sum())
        return Composite(
            self.loss.take(rows),
            self.make_objective,
            # Where only events have mass, a batch without any has no loss to speak of.
            mass / total if total > 0 else mass,
            blocks,
            None if self.penalty is None else self.penalty.subset(rows),
            self.penalty_weight,
        )
