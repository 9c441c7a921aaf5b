"""The convex problem of a linear model, as the convex solver sees it."""

from __future__ import annotations

import copy

import numpy as np

from drosurv.networks.linear import Linear
from drosurv.objectives import Evaluation, Objective
from drosurv.solvers.composite import Composite
from drosurv.target import FloatArray

# Newton matrices cost n d^2; above this they come from a random sample of the patients.
_NEWTON_WORK = 3e6
_SAMPLE_SEED = 0
_SEPARATED = 500.0
_VANISHED = 1e-10
_CONSTANT = 1e-14


class LinearProblem:
    """Minimise over theta the objective of the losses of scores X theta, plus l2/2 ||theta||^2.

    Parameters
    ----------
    X : (n, d) float64
        Features. They are centred here: the losses do not change, the rounding does.
    composite : Composite
        Loss and objective, without penalty.
    l2 : float
        Ridge weight.
    """

    def __init__(self, X: FloatArray, composite: Composite, l2: float = 0.0) -> None:
        self.X = X - composite.patient_mass @ X
        # What centring leaves of a constant feature is the rounding of its mean, which must not pass for a signal.
        lowest, highest = X.min(axis=0), X.max(axis=0)
        self.X[:, highest - lowest <= _CONSTANT * np.maximum(-lowest, highest)] = 0.0
        self.composite, self.l2, self.size = composite, l2, X.shape[1]
        self.objective: Objective = composite.objective
        self.network = Linear(self.X, np.zeros((1, self.size)))
        self.sample = self._sampled()
        self._scores: FloatArray = np.empty(0)
        self._losses: FloatArray = np.empty(0)
        self._at: Evaluation | None = None
        self._first = self._last = np.nan

    def _sampled(self) -> LinearProblem | None:
        """The same problem on a sample of the patients, for the curvature, where everybody's would cost too much."""
        n, d = self.X.shape
        size = max(int(_NEWTON_WORK / d**2), 40 * d, 2000)
        if n * d * d <= _NEWTON_WORK or size >= n:
            return None
        rows = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(n)[:size])
        part = self.composite.take(rows)
        # With few losses in one of the blocks the sample says little about the whole.
        if min(np.isin(part.loss.rows, block).sum() for block in part.blocks) <= d:
            return None
        return LinearProblem(self.X[rows], part, self.l2)

    @property
    def smooth(self) -> bool:
        """Whether the objective is differentiable."""
        return self.objective.smooth

    def smoothed(self, smoothing: float) -> LinearProblem:
        """The same problem with the smoothed objective."""
        other = copy.copy(self)
        other.objective = self.objective.smoothed(smoothing)
        if self.sample is not None:
            other.sample = self.sample.smoothed(smoothing)
        return other

    def scale(self, value: float) -> float:
        """Gaps are relative to the objective itself."""
        return abs(value)

    def value(self, theta: FloatArray) -> float:
        """The objective at theta; the point stays current for the methods below."""
        self.network.parameters[0] = theta[None, :]
        self._scores = self.network.scores()
        self._losses = self.composite.losses(self._scores)
        self._at = self.objective(self._losses, self.composite.mass)
        self._last = float(self._at.value[0]) + 0.5 * self.l2 * float(theta @ theta)
        self._first = self._last if np.isnan(self._first) else self._first
        return self._last

    def lower_value(self, theta: FloatArray) -> float:
        """The objective at theta with the adversary's current weights held fixed."""
        return float(self._losses[0] @ self._current.weights[0]) + 0.5 * self.l2 * float(theta @ theta)

    def gradient(self) -> FloatArray:
        """Gradient at the current point."""
        theta = self.network.parameters[0][0]
        slope: FloatArray = self.network.pullback(self.composite.pullback(self._current))[0][0]
        slope += self.l2 * theta
        return slope

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives at the current point: with the weights held fixed, and with them following."""
        if self.sample is not None:
            self.sample.value(self.network.parameters[0][0])
            return self.sample.curvature()
        used = len(self.composite.loss.rows)
        weights = self._current.weights[:, :used]
        fixed = self.composite.loss.hessian(weights, self.X) + self.l2 * np.eye(self.size)
        bend = self.objective.curvature(self._losses[0], self.composite.mass, self._current)
        if bend is None:
            return fixed, fixed
        # Only losses inside the worst case bend the weights; elsewhere diagonal and vectors are zero.
        active = np.flatnonzero(bend.diagonal[:used])
        jacobian = self.composite.loss.jacobian(self.X, active)
        following = fixed + jacobian.T @ (bend.diagonal[active, None] * jacobian)
        sides = bend.vectors[:, active] @ jacobian
        return fixed, following + sides.T @ (bend.scales[:, None] * sides)

    @property
    def separated(self) -> bool:
        """Whether the optimum lies at infinity: the scores have run far apart, or next to nothing is left to lose."""
        vanished = abs(self._last) <= _VANISHED * abs(self._first)
        return vanished or bool(np.ptp(self._scores) > _SEPARATED)

    @property
    def _current(self) -> Evaluation:
        assert self._at is not None, "value comes first"
        return self._at
