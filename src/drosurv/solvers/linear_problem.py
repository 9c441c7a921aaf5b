"""The convex problem of a linear model, as the convex solver sees it."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from drosurv.losses import Loss
from drosurv.losses.loss import constant_features
from drosurv.objectives import Evaluation
from drosurv.solvers.convex import Problem
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.neighborhoods import TakesPatients
from drosurv.solvers.networks.linear import Linear
from drosurv.target import FloatArray, IntArray

# Newton matrices cost n d^2; above this they come from a random sample of the patients.
_NEWTON_WORK = 3e6
# Averaged over neighbourhoods, they cost most for the n (d + K) averages themselves.
_AVERAGED_WORK = 2e6
_SAMPLE_SEED = 0
# Curvature along a feature, as a share of its squared range, that is rounding.
_FLAT = 1e-12


class LinearProblem(Problem):
    """Minimise the criterion of scores X theta over theta and the extra parameters, plus l2/2 ||theta||^2.

    A point z is (theta, what the extra parameters moved from their start). The criterion is convex, without penalty. A
    `centre` (d,) is subtracted from the features where the loss allows for it: the rounding changes and nothing else.
    """

    # The objective at the current point.
    _current: Evaluation

    def __init__(self, X: FloatArray, criterion: Criterion, l2: float = 0.0) -> None:
        self.criterion, self.least_scale = criterion, criterion.least_scale
        self.smooth, self.tol = criterion.objective.smooth, criterion.objective.tol
        self.d: int = X.shape[1]
        loss, self.centre = criterion.loss, np.zeros(self.d)
        if loss.shift is not None:
            self.centre = criterion.patient_mass @ X
        # Where nothing makes up for a number added to all scores, a constant feature says something.
        kept = loss.shift is None and loss.compared is None
        self.X = X if kept else _centred(X, self.centre, loss)
        self._turned: FloatArray | None = None
        if self.d > len(X):
            self._turn(scaled=l2 == 0)
        n_extra = criterion.loss.n_extra
        # Coefficients of one output after the other.
        self.outputs: int = criterion.loss.n_outputs
        self.n_coefficients: int = self.d * self.outputs
        self.size: int = self.n_coefficients + n_extra
        ridges = np.full(self.n_coefficients, l2), np.full(n_extra, criterion.loss.extra_ridge)
        self.ridge: FloatArray = np.concatenate(ridges)
        self.network = Linear(self.X, np.zeros((self.outputs, self.d)))
        self._z: FloatArray = np.zeros(self.size)
        self._scores = self._entries = np.empty((1, 0))
        self.sample = self._sampled()

    def _turn(self, scaled: bool) -> None:
        """Take the directions in which patients differ for features: there are no more than patients.

        The optimum lies among them, as a ridge has no use for others; without one, units must not tell which.
        """
        size = self.X.std(axis=0) if scaled else np.ones(self.d)
        size[size == 0] = 1.0
        directions, root = np.linalg.qr((self.X / size).T)
        self.X, self._turned, self.d = np.ascontiguousarray(root.T), directions.T / size, len(self.X)

    def coefficients(self, z: FloatArray) -> FloatArray:
        """Coefficients (d,) of a point, or (outputs, d) where there are several."""
        theta = z[: self.n_coefficients].reshape(self.outputs, self.d)
        theta = theta if self._turned is None else theta @ self._turned
        return theta[0] if self.outputs == 1 else theta

    def _sampled(self) -> Self | None:
        size = self._sample_size()
        if size is None or size >= len(self.X):
            return None
        rows = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(len(self.X))[:size])
        other = copy.copy(self)
        other.criterion, other.X, other.sample = self.criterion.take(rows), self.X[rows], None
        if not other._says_enough():
            return None
        if self.criterion.loss.n_extra == 0:
            # A feature that is constant in the sample must not pass for a signal there.
            other.X = _centred(other.X, other.criterion.patient_mass @ other.X, other.criterion.loss)
        other.network = Linear(other.X, np.zeros((self.outputs, self.d)))
        # Along a feature that varies among everybody but not here, Newton's steps would have no end.
        other.value(np.zeros(self.size))
        bends = other.curvature()[0].diagonal()[: self.n_coefficients].reshape(self.outputs, self.d)
        wide = np.ptp(self.X, axis=0)
        return None if (bends < _FLAT * wide**2).any() else other

    def _sample_size(self) -> int | None:
        """How many patients the curvature is taken from; None for everybody."""
        n: int = len(self.X)
        around = self.criterion.neighborhoods
        if around is not None:
            affordable = int(_AVERAGED_WORK / self.size)
            return affordable if n > affordable and isinstance(around, TakesPatients) else None
        work = float(self.size) ** 2
        if n * work <= _NEWTON_WORK or self.criterion.offset is not None:
            return None
        return max(int(_NEWTON_WORK / work), 40 * self.size, 2000)

    def _says_enough(self) -> bool:
        """Whether every block of the sample has enough losses to stand for the whole block."""
        rows: IntArray = self.criterion.loss.rows
        found = [int(np.isin(rows, block).sum()) for block in self.criterion.blocks]
        return min(found) > self.d

    @property
    def spread(self) -> float:
        """Distance of the highest score from the lowest."""
        return float(np.ptp(self._scores))

    def smoothed(self, smoothing: float) -> Self:
        """The same problem with the smoothed objective."""
        other = copy.copy(self)
        other.criterion = self.criterion.smoothed(smoothing)
        if self.sample is not None:
            other.sample = self.sample.smoothed(smoothing)
        return other

    def value(self, z: FloatArray) -> float:
        """The objective at z; the point stays current for the methods below."""
        self._z = z
        theta, extra = z[: self.n_coefficients], z[None, self.n_coefficients :]
        self.network.parameters[0] = theta.reshape(self.outputs, self.d)
        scores = self.network.scores()
        self._scores = scores if self.outputs == 1 else np.ascontiguousarray(scores.T)[None]
        self._entries = self.criterion.entries(self._scores, self.criterion.loss.start + extra)
        if not np.isfinite(self._entries).all():
            return np.inf
        self._current = self.criterion.objective(self._entries, self.criterion.mass)
        return self._reached(float(self._current.value[0]) + self._ridge_value())

    def lower_value(self) -> float:
        """The objective with the adversary's current weights held fixed."""
        return float(self._entries[0] @ self._current.weights[0]) + self._ridge_value()

    def gradient(self) -> FloatArray:
        """Gradient at the current point."""
        weights = self.criterion.loss_weights(self._current)
        by_score, by_extra = self.criterion.loss.pullback(weights)
        by_output = by_score if self.outputs == 1 else np.ascontiguousarray(by_score[0].T)
        slope = np.concatenate([self.network.pullback(by_output)[0].ravel(), by_extra[0]])
        return slope + self.ridge * self._z

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives at the current point: with the weights held fixed, and with them following."""
        if self.sample is not None:
            self.sample.value(self._z)
            return self.sample.curvature()
        fixed, following = self.criterion.curvature(self.X, self._entries, self._current)
        ridge = np.diag(self.ridge)
        rigid = fixed + ridge
        return rigid, rigid if following is fixed else following + ridge

    def _ridge_value(self) -> float:
        return 0.5 * float(self.ridge @ self._z**2)


def _centred(X: FloatArray, centre: FloatArray, loss: Loss) -> FloatArray:
    """Features less their centre. Those that say nothing become zero: what is left of them is only rounding."""
    out: FloatArray = X - centre
    out[:, constant_features(X, loss.compared)] = 0.0
    return out
