"""The training criterion: scores and extra parameters in, one number per model and its gradients out.

    objective( W ( l(scores, extra) - l0 ) ) + penalty(scores)

with l one loss per patient, l0 the null model's or zero, W averages over neighbourhoods or none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from drosurv.disparities import Penalty
from drosurv.errors import ArgumentError
from drosurv.losses import ConvexLoss, Loss
from drosurv.objectives import Blocks, Evaluation, Objective
from drosurv.solvers.neighborhoods import Neighborhoods, TakesPatients
from drosurv.target import FloatArray, IntArray


class Criterion:
    """What training minimises, as a function of scores and extra parameters.

    Patients without a loss (the censored, under a partial likelihood) all have loss zero. Each block carries them as
    one entry that holds their summed mass: exact, and several times less to sort through. Not so where losses are
    averaged over neighbourhoods, or the objective looks at each patient.

    The objective is that of the losses of a block, and `mass` (n,) the patients', summing to one; the attributes of
    these names are of the entries (m,). `blocks` are the patients of each block whose objectives are summed, None for
    one of everybody. `neighborhoods` give the averages W, `offset` (n,) are the losses l0 to measure the regret
    against. A penalty is added to the objective, times its weights (B,).
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
        offset: FloatArray | None = None,
        penalty: Penalty | None = None,
        penalty_weight: FloatArray | None = None,
    ) -> None:
        self.loss, self.of_block, self.patient_mass = loss, objective, mass
        self.neighborhoods, self.offset = neighborhoods, offset
        self.penalty = penalty
        self.penalty_weight = np.ones(1) if penalty_weight is None else penalty_weight
        self.blocks = [np.arange(loss.n)] if blocks is None else list(blocks)
        self.whole = blocks is None
        self.joins_the_lossless = neighborhoods is None and offset is None and not objective.by_patient
        members = self.blocks
        if self.joins_the_lossless:
            self._entry, self.mass, members = _entries(loss, mass, self.blocks)
        else:
            self._entry, self.mass = np.arange(loss.n), mass
        self._apart = None if self.whole else Blocks(objective, members)
        self.objective: Objective = objective if self._apart is None else self._apart

    @property
    def least_scale(self) -> float:
        """The size that gaps are compared with, whatever the value: how much can be gained.

        Losses that are never negative have no need of it, as gaps are then relative to their own size.
        """
        return self.loss.event_share if self.loss.signed or self.offset is not None else 0.0

    def entries(self, scores: FloatArray, extra: FloatArray | None = None) -> FloatArray:
        """What the objective sees (B, m): every patient's averaged regret, or the losses and one zero per block."""
        if self.joins_the_lossless:
            losses = self.loss(scores, self.loss.start[None] if extra is None else extra)
            out = np.zeros((len(scores), len(self.mass)))
            out[:, : losses.shape[1]] = losses
            return out
        return self._averaged(self.regrets(scores, extra))

    def regrets(self, scores: FloatArray, extra: FloatArray | None = None) -> FloatArray:
        """Losses (B, n) of everybody, less the null model's where they are measured against it."""
        losses = self.loss.everyone(self.loss(scores, self.loss.start[None] if extra is None else extra))
        return losses if self.offset is None else losses - self.offset

    def __call__(
        self, scores: FloatArray, extra: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values (B,) at scores (B, n) and extra parameters (B, K), and the gradients in both."""
        at = self.objective(self.entries(scores, extra), self.mass)
        self.weights = self.loss_weights(at)
        value, (by_score, by_extra) = at.value, self.loss.pullback(self.weights)
        if extra is not None and self.loss.n_extra:
            moved = extra - self.loss.start
            value = value + 0.5 * self.loss.extra_ridge * (moved**2).sum(axis=-1)
            by_extra = by_extra + self.loss.extra_ridge * moved
        if self.penalty is not None:
            added, slope = self.penalty(scores)
            value = value + self.penalty_weight * added
            by_score = by_score + self.penalty_weight[:, None] * slope
        return value, by_score, by_extra

    def own_curvature(self) -> FloatArray:
        """Second derivatives (B, n) at the last call, each in one patient's own score, the weights held fixed."""
        return self.loss.curvature(self.weights)

    def loss_weights(self, at: Evaluation) -> FloatArray:
        """Weights (B, E) that the objective puts on the losses themselves: for averages, W' q."""
        if self.joins_the_lossless:
            return at.weights[:, : len(self.loss.rows)]
        weights = at.weights if self.neighborhoods is None else self.neighborhoods.adjoint(at.weights)
        return weights if len(self.loss.rows) == self.loss.n else weights[:, self.loss.rows]

    def patient_weights(self, at: Evaluation) -> FloatArray:
        """Worst-case weights (B, n) of all patients: those who share an entry share its weight by mass."""
        if not self.joins_the_lossless:
            return at.weights if self.neighborhoods is None else self.neighborhoods.adjoint(at.weights)
        share = np.zeros(self.loss.n)
        used = self._entry >= 0
        held = self.mass[self._entry[used]]
        share[used] = self.patient_mass[used] / np.where(held > 0, held, 1.0)
        return np.where(used, at.weights[:, np.maximum(self._entry, 0)] * share, 0.0)

    def block_masses(self) -> list[FloatArray]:
        """Masses inside each block, summing to one: the losses in the loss's order, then everybody else together."""
        if self._apart is None:
            return [self.mass]
        # A block lists its losses by patient; the entry of its other patients has the highest number.
        shares = zip(self._apart.shares(self.mass), self._apart.rows, strict=True)
        return [share[np.argsort(rows)] for share, rows in shares]

    def curvature(self, X: FloatArray, entries: FloatArray, at: Evaluation) -> tuple[FloatArray, FloatArray]:
        """Second derivatives in (theta, extra) for scores X theta: with the weights held fixed, and following."""
        loss, weights = self.loss, self.loss_weights(at)
        assert isinstance(loss, ConvexLoss), "only convex losses are solved to the optimum"
        bend = self.objective.curvature(entries[0], self.mass, at)
        if bend is None:
            fixed = loss.hessian(weights, X)
            return fixed, fixed
        # Only losses inside the worst case bend the weights; elsewhere diagonal and vectors are zero.
        if self.joins_the_lossless:
            active = np.flatnonzero(bend.diagonal[: len(loss.rows)])
            rows = loss.jacobian(X, active)
        else:
            active = np.flatnonzero(bend.diagonal)
            own = loss.jacobian(X, np.arange(len(loss.rows)))
            rows = self._averaged(loss.everyone(own.T))[:, active].T
        # After the jacobian, whose risk-weighted means it shares.
        fixed = loss.hessian(weights, X)
        following = fixed + rows.T @ (bend.diagonal[active, None] * rows)
        sides = bend.vectors[:, active] @ rows
        return fixed, following + sides.T @ (bend.scales[:, None] * sides)

    def _averaged(self, values: FloatArray) -> FloatArray:
        return values if self.neighborhoods is None else self.neighborhoods.average(values)

    def smoothed(self, smoothing: float) -> Criterion:
        """The same criterion with the smoothed objective."""
        other = copy.copy(self)
        other.objective = self.objective.smoothed(smoothing)
        return other

    @property
    def divisible(self) -> bool:
        """Whether there is such a criterion among some of the patients."""
        return self.neighborhoods is None or isinstance(self.neighborhoods, TakesPatients)

    def take(self, rows: IntArray) -> Criterion:
        """The same criterion among fewer patients, masses scaled to sum to one."""
        place = np.full(self.loss.n, -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        mass, around = self.patient_mass[rows], self.neighborhoods
        total = float(mass.sum())
        if around is not None and not isinstance(around, TakesPatients):
            raise ArgumentError(
                "kernel",
                "kernel cannot average some of the patients alone, as batches and early stopping ask "
                "for: use 'forest', or an object with a method take(rows).",
            )
        return Criterion(
            self.loss.take(rows),
            self.of_block,
            # Where only events have mass, a batch without events has no loss.
            mass / total if total > 0 else mass,
            None if self.whole else [place[b][place[b] >= 0] for b in self.blocks],
            neighborhoods=None if around is None else around.take(rows),
            offset=None if self.offset is None else self.offset[rows],
            penalty=None if self.penalty is None else self.penalty.subset(rows),
            penalty_weight=self.penalty_weight,
        )


def _entries(
    loss: Loss, mass: FloatArray, blocks: Sequence[IntArray]
) -> tuple[IntArray, FloatArray, list[IntArray]]:
    """Entry of each patient (-1 outside of all blocks), masses of the entries, and the entries of each block."""
    entry = np.full(loss.n, -1, dtype=np.intp)
    entry[loss.rows] = np.arange(len(loss.rows))
    masses, members = [mass[loss.rows]], []
    for k, rows in enumerate(blocks):
        own, others = entry[rows], len(loss.rows) + k
        rest = rows[own < 0]
        masses.append(np.array([mass[rest].sum()]))
        entry[rest] = others
        members.append(np.concatenate([own[own >= 0], [others]]).astype(np.intp))
    return entry, np.concatenate(masses), members


def held_out(
    criterion: Criterion, rows: IntArray, watched: IntArray, trained_scores: Callable[[], FloatArray]
) -> Criterion | AroundTrained:
    """How well watched patients are served, by the criterion of all that the other rows are trained on.

    `trained_scores` gives the scores (B, len(rows)) of those.
    """
    if criterion.neighborhoods is None:
        return criterion.take(watched)
    return AroundTrained(criterion, criterion.neighborhoods, rows, watched, trained_scores)


class AroundTrained:
    """The worst case that training found, as the watched patients fare in it.

    Where losses are averaged over neighbourhoods, training says which of these are worst off, and the watched say how
    they fare: a watched patient has the weight of the trained patients around them. The watched alone are too few to
    say both: the worst of averages over few patients are chance, more so the farther apart the scores, and training
    would stop long before it serves anybody.
    """

    recordable = False

    def __init__(
        self,
        criterion: Criterion,
        around: Neighborhoods,
        rows: IntArray,
        watched: IntArray,
        trained_scores: Callable[[], FloatArray],
    ) -> None:
        self._trained, self._watched = criterion.take(rows), criterion.take(watched)
        self._around, self._places, self._trained_scores = around, (rows, watched), trained_scores

    def __call__(self, scores: FloatArray, extra: FloatArray | None = None) -> tuple[FloatArray]:
        """Values (B,) at scores (B, m) of the watched and extra parameters (B, K), where a criterion has them."""
        self._trained(self._trained_scores(), extra)
        tilt = self._near_watched(self._trained.loss.everyone(self._trained.weights))
        mass = self._near_watched(self._trained.patient_mass[None])
        # Somebody without any trained patient around counts for nothing.
        weight = np.divide(tilt, mass, out=np.zeros_like(tilt), where=mass > 0) * self._watched.patient_mass
        regrets = self._watched.regrets(scores, extra)
        return (np.asarray((weight * regrets).sum(axis=-1) / weight.sum(axis=-1)),)

    def _near_watched(self, values: FloatArray) -> FloatArray:
        """Averages (B, m) of what the trained patients have, over the neighbourhoods of the watched."""
        rows, watched = self._places
        everybody = np.zeros((len(values), len(rows) + len(watched)))
        everybody[:, rows] = values
        return self._around.average(everybody)[:, watched]
