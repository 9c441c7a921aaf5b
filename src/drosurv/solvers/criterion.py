"""The training criterion: a function of scores and extra parameters, with its gradients.

    objective( W ( l(scores, extra) - l0 ) ) + penalty(scores)

with l one loss per patient, l0 the losses of the null model or zero, W averages over neighbourhoods or the identity.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from drosurv.errors import ArgumentError, arg
from drosurv.losses import ConvexLoss, Loss
from drosurv.objectives import Objective
from drosurv.objectives.objective import Blocks, Evaluation
from drosurv.patients.arrays import inverse
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.solvers.neighborhoods import Neighborhoods, TakesPatients
from drosurv.solvers.penalty import Penalty


class Criterion:
    """What training minimises, as a function of scores and extra parameters.

    `loss` and `objective` are those of the formula above; the objectives of the `blocks` of rows are summed, by default
    one block of all rows. `mass` (n,) are the masses of the patients, summing to one; `neighborhoods` are the averages
    W, `null_losses` (n,) the losses l0, and the `penalty` is added with weights `penalty_weight` (B,).

    In a partial likelihood all censored patients have loss zero. They are merged into one loss of zero per block, with
    their summed mass: the result is the same, and fewer losses have to be sorted. They are not merged if losses are
    averaged over neighbourhoods, or if the objective needs every patient's loss. Afterwards `mass` (m,) are the masses
    of the losses, and `patient_mass` (n,) those of the patients.
    """

    recordable = False

    def __init__(
        self,
        loss: Loss,
        objective: Objective,
        mass: FloatArray,
        blocks: Sequence[IntArray] | None = None,
        *,
        neighborhoods: Neighborhoods | None = None,
        null_losses: FloatArray | None = None,
        penalty: Penalty | None = None,
        penalty_weight: FloatArray | None = None,
    ) -> None:
        self.loss, self.block_objective, self.patient_mass = loss, objective, mass
        self.neighborhoods, self.null_losses = neighborhoods, null_losses
        self.penalty = penalty
        self.penalty_weight = np.ones(1) if penalty_weight is None else penalty_weight
        self.whole, self._blocks = blocks is None, blocks
        self.merges_censored = neighborhoods is None and null_losses is None and not objective.by_patient
        # The block of each patient, -1 outside of all blocks.
        self._block_of = np.full(0 if blocks is None else loss.n, -1, dtype=np.int16)
        for k, rows in enumerate(blocks or ()):
            self._block_of[rows] = k
        self.mass = mass
        self.objective: Objective = objective if blocks is None else Blocks(objective, blocks)
        if self.merges_censored:
            self._merge(np.ones(loss.n, dtype=np.bool_))

    def _merge(self, censored: BoolArray) -> None:
        """Set masses and objective of the losses; patients without one are merged, of those in `censored` (n,)."""
        rows, mass, objective = self.loss.rows, self.patient_mass, self.block_objective
        censored[rows] = False
        if self._blocks is None:
            self.mass, self.objective = np.append(mass[rows], mass @ censored), objective
            return
        block, masses, members = self._block_of[rows], [mass[rows]], []
        for k, patients in enumerate(self._blocks):
            masses.append(np.atleast_1d(mass[patients] @ censored[patients]))
            members.append(np.append(np.flatnonzero(block == k), len(rows) + k))
        self.mass, self.objective = np.concatenate(masses), Blocks(objective, members)

    @property
    def blocks(self) -> Sequence[IntArray]:
        """Rows of each block."""
        return [np.arange(self.loss.n)] if self._blocks is None else self._blocks

    @property
    def least_scale(self) -> float:
        """Least denominator of relative gaps, because objectives may be near zero.

        It is zero for losses that are never negative: their gaps are relative to the objective.
        """
        return self.loss.event_share if self.loss.signed or self.null_losses is not None else 0.0

    def losses(self, scores: FloatArray, extra: FloatArray | None = None) -> FloatArray:
        """Return the arguments (B, m) of the objective: averaged regrets, or losses and one zero per block."""
        if self.merges_censored:
            losses = self.loss(scores, self.loss.start[None] if extra is None else extra)
            out = np.zeros((len(scores), len(self.mass)))
            out[:, : losses.shape[1]] = losses
            return out
        return self._average(self.regrets(scores, extra))

    def regrets(self, scores: FloatArray, extra: FloatArray | None = None) -> FloatArray:
        """Return the losses (B, n) of all patients, minus those of the null model if training uses regrets."""
        losses = self.loss.everyone(self.loss(scores, self.loss.start[None] if extra is None else extra))
        return losses if self.null_losses is None else losses - self.null_losses

    def __call__(
        self, scores: FloatArray, extra: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values (B,) at scores (B, n) and extra parameters (B, K), and the gradients in both."""
        evaluation = self.objective(self.losses(scores, extra), self.mass)
        self.weights = self.loss_weights(evaluation)
        value, (by_score, by_extra) = evaluation.value, self.loss.pullback(self.weights)
        if extra is not None and self.loss.n_extra:
            moved = extra - self.loss.start
            value = value + 0.5 * self.loss.extra_ridge * (moved**2).sum(axis=-1)
            by_extra = by_extra + self.loss.extra_ridge * moved
        if self.penalty is not None:
            added, slope = self.penalty(scores)
            value = value + self.penalty_weight * added
            by_score = by_score + self.penalty_weight[:, None] * slope
        return value, by_score, by_extra

    def loss_weights(self, evaluation: Evaluation) -> FloatArray:
        """Return the weights (B, E) of the losses: those of the objective, or W' q for averages with weights q."""
        if self.merges_censored:
            return evaluation.weights[:, : len(self.loss.rows)]
        weights = evaluation.weights
        weights = weights if self.neighborhoods is None else self.neighborhoods.adjoint(weights)
        return weights if len(self.loss.rows) == self.loss.n else weights[:, self.loss.rows]

    def patient_weights(self, evaluation: Evaluation) -> FloatArray:
        """Return the worst-case weights (B, n) of all patients; merged patients share a weight by their masses."""
        weights = evaluation.weights
        if not self.merges_censored:
            return weights if self.neighborhoods is None else self.neighborhoods.adjoint(weights)
        events, out = len(self.loss.rows), np.zeros((len(weights), self.loss.n))
        for k, rows in enumerate(self.blocks, start=events):
            out[:, rows] = weights[:, k, None] * (self.patient_mass[rows] / (self.mass[k] or 1.0))
        out[:, self.loss.rows] = weights[:, :events]
        return out

    def block_masses(self) -> list[FloatArray]:
        """Return the masses in each block, summing to one, in the order of the losses, the merged loss last."""
        return self.objective.shares(self.mass) if isinstance(self.objective, Blocks) else [self.mass]

    def curvature(
        self, X: FloatArray, losses: FloatArray, evaluation: Evaluation
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian in (theta, extra) for scores X theta: with fixed weights, and with changing weights.

        The second one includes how the worst-case weights change with the losses.
        """
        loss, weights = self.loss, self.loss_weights(evaluation)
        assert isinstance(loss, ConvexLoss), "only convex losses are solved to the optimum"
        curvature = self.objective.curvature(losses[0], self.mass, evaluation)
        if curvature is None:
            fixed = loss.hessian(weights, X)
            return fixed, fixed
        # Only losses whose weights change matter; for all others diagonal and vectors are zero.
        if self.merges_censored:
            active = np.flatnonzero(curvature.diagonal[: len(loss.rows)])
            rows = loss.jacobian(X, active)
        else:
            active = np.flatnonzero(curvature.diagonal)
            each = loss.jacobian(X, np.arange(len(loss.rows)))
            rows = self._average(loss.everyone(each.T))[:, active].T
        # After the jacobian, because both use the same risk-weighted means.
        fixed = loss.hessian(weights, X)
        changing = fixed + rows.T @ (curvature.diagonal[active, None] * rows)
        vectors = curvature.vectors[:, active] @ rows
        return fixed, changing + vectors.T @ (curvature.scales[:, None] * vectors)

    def second_derivatives(self, losses: FloatArray, evaluation: Evaluation) -> FloatArray:
        """Return second derivatives (n,) of the objective, each in one patient's score, about.

        Weights change with the losses; of that, only the change of an event's weight with its own loss is included.
        """
        second: FloatArray = self.loss.curvature(self.loss_weights(evaluation))[0]
        changing = self.objective.curvature(losses[0], self.mass, evaluation)
        if changing is not None:
            second[self.loss.rows] += changing.diagonal[: len(self.loss.rows)]
        return second

    def _average(self, values: FloatArray) -> FloatArray:
        return values if self.neighborhoods is None else self.neighborhoods.average(values)

    def smoothed(self, smoothing: float) -> Criterion:
        """Return the same criterion with the smoothed objective."""
        other = copy.copy(self)
        other.objective = self.objective.smoothed(smoothing)
        return other

    def sorted_by_time(self) -> tuple[Criterion, IntArray] | None:
        """Return the criterion of the same patients in order of time, and that order (n,); None if not offered."""
        found = self.loss.sorted_by_time() if self.merges_censored and self.penalty is None else None
        if found is None:
            return None
        # Losses keep their order, so that the objective and their masses stay the same.
        other, (other.loss, order) = copy.copy(self), found
        position, other.patient_mass = inverse(order), self.patient_mass[order]
        if not self.whole:
            other._block_of = self._block_of[order]
            other._blocks = [np.sort(position[rows]) for rows in self.blocks]
        return other, order

    def without(self, left_out: BoolArray) -> Criterion | None:
        """Return the criterion of the patients not left out (n,), for the scores of all; None if it is not offered.

        Both share memory: derivatives are those of the last call of either, and `patient_mass` is that of all.
        """
        loss = self.loss.without(left_out) if self.merges_censored and self.penalty is None else None
        if loss is None or len(loss.rows) == 0:
            return None
        other = copy.copy(self)
        # A copy, because an objective stores its last threshold.
        other.loss, other.block_objective = loss, copy.copy(self.block_objective)
        other._merge(~left_out)
        other.mass /= other.mass.sum()
        if isinstance(other.objective, Blocks) and min(map(len, other.objective.rows)) == 1:
            return None
        return other

    @property
    def divisible(self) -> bool:
        """Whether the criterion is defined for a subset of the patients."""
        return self.neighborhoods is None or isinstance(self.neighborhoods, TakesPatients)

    def take(self, rows: IntArray) -> Criterion:
        """Return the same criterion for a subset of the patients, masses scaled to sum to one."""
        position = np.full(self.loss.n, -1, dtype=np.intp)
        position[rows] = np.arange(len(rows))
        mass, around = self.patient_mass[rows], self.neighborhoods
        total = float(mass.sum())
        if around is not None and not isinstance(around, TakesPatients):
            raise ArgumentError(
                "kernel",
                f"{arg('kernel')} cannot average over a subset of the patients, which batches and early stopping "
                "need: use 'forest', or an object with a method take(rows).",
            )
        return Criterion(
            self.loss.take(rows),
            self.block_objective,
            # If only events have mass, a batch without events has total mass zero.
            mass / total if total > 0 else mass,
            None if self.whole else [position[b][position[b] >= 0] for b in self.blocks],
            neighborhoods=None if around is None else around.take(rows),
            null_losses=None if self.null_losses is None else self.null_losses[rows],
            penalty=None if self.penalty is None else self.penalty.subset(rows),
            penalty_weight=self.penalty_weight,
        )


def validation_criterion(
    criterion: Criterion, training: IntArray, validation: IntArray, training_scores: Callable[[], FloatArray]
) -> Criterion | NeighborhoodValidation:
    """Return the criterion on the validation rows; `training_scores` returns the scores (B, m) of the training rows."""
    if criterion.neighborhoods is None:
        return criterion.take(validation)
    return NeighborhoodValidation(criterion, criterion.neighborhoods, training, validation, training_scores)


class NeighborhoodValidation:
    """Validation criterion for losses that are averaged over neighbourhoods.

    The training rows determine the worst-case weights; each validation patient gets the average weight of the training
    patients in their neighbourhood. The worst averages among the few validation patients alone would mostly be noise,
    and training would stop too early.
    """

    recordable = False

    def __init__(
        self,
        criterion: Criterion,
        neighborhoods: Neighborhoods,
        training: IntArray,
        validation: IntArray,
        training_scores: Callable[[], FloatArray],
    ) -> None:
        self._training, self._validation = criterion.take(training), criterion.take(validation)
        self._neighborhoods, self._rows = neighborhoods, (training, validation)
        self._training_scores = training_scores

    def __call__(self, scores: FloatArray, extra: FloatArray | None = None) -> tuple[FloatArray]:
        """Return values (B,) at scores (B, m) of the validation rows and extra parameters (B, K)."""
        training = self._training
        training(self._training_scores(), extra)
        worst_case = self._averages(training.loss.everyone(training.weights))
        mass = self._averages(training.patient_mass[None])
        # A validation patient without a training patient in the neighbourhood gets weight zero.
        ratio = np.divide(worst_case, mass, out=np.zeros_like(worst_case), where=mass > 0)
        weight = ratio * self._validation.patient_mass
        regrets = self._validation.regrets(scores, extra)
        return (np.asarray((weight * regrets).sum(axis=-1) / weight.sum(axis=-1)),)

    def _averages(self, values: FloatArray) -> FloatArray:
        """Averages (B, m) of the training rows' values over the neighbourhoods of the validation rows."""
        training, validation = self._rows
        all_rows = np.zeros((len(values), len(training) + len(validation)))
        all_rows[:, training] = values
        return self._neighborhoods.average(all_rows)[:, validation]
