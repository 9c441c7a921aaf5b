"""Linear Cox models along a path of ridge penalties, each started from the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from drosurv.losses import CoxPartial
from drosurv.solvers.convex import Problem, minimise
from drosurv.target import FloatArray

# The second derivatives depend on the scores alone: they are computed again once the scores have moved this far (root
# mean square). In between Newton's steps with the old ones still converge, and cost a fortieth.
_MOVED = 0.25
_TOL = 1e-6
_MAX_ITER = 100


def ridge_path(
    X: FloatArray, loss: CoxPartial, mass: FloatArray, l2s: Sequence[float]
) -> tuple[FloatArray, list[str]]:
    """Minimise the mean partial likelihood loss plus l2/2 ||coefficients||^2, for each l2.

    Parameters
    ----------
    X : (n, d) array
        Features.
    loss : CoxPartial
        Partial likelihood of the n rows, with their ties, weights and offset.
    mass : (n,) array
        Weights of the rows' losses in the mean, summing to one.
    l2s : sequence of float
        Penalties in any order; they are worked through from the largest to the smallest.

    Returns
    -------
    coef : (len(l2s), d) array
    status : list of str
        How each ended, as in :class:`drosurv.solvers.convex.Solution`.
    """
    problem, coef = _RidgeProblem(X, loss, mass), np.zeros((len(l2s), X.shape[1]))
    status = [""] * len(l2s)
    start = np.zeros(X.shape[1])
    for k in np.argsort(l2s, kind="stable")[::-1]:
        problem.l2 = float(l2s[k])
        found = minimise(problem, tol=_TOL, max_iter=_MAX_ITER, start=start)
        start = coef[k] = found.x
        status[k] = found.status
    return coef, status


class _RidgeProblem(Problem):
    """The convex problem of one penalty; the second derivatives are kept while they are nearly right."""

    smooth, tol, l2 = True, _TOL, 0.0

    def __init__(self, X: FloatArray, loss: CoxPartial, mass: FloatArray) -> None:
        self.centre = mass @ X
        self.X, self.loss, self.size = X, loss, X.shape[1]
        self.mass = mass[loss.rows][None]
        self._theta, self._scores = np.zeros(self.size), np.zeros(len(X))
        self._hessian, self._hessian_scores = np.empty((0, 0)), np.full(len(X), np.inf)

    def smoothed(self, smoothing: float) -> Self:
        """The problem itself, which is smooth."""
        return self

    def value(self, theta: FloatArray) -> float:
        self._theta, self._scores = theta, self.X @ theta
        losses = self.loss(self._scores[None])
        return self._reached(float((self.mass * losses).sum()) + 0.5 * self.l2 * float(theta @ theta))

    def lower_value(self) -> float:
        return self._last

    def gradient(self) -> FloatArray:
        by_score: FloatArray = self.loss.pullback(self.mass)[0][0]
        return by_score @ self.X + self.l2 * self._theta

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        if np.mean((self._scores - self._hessian_scores) ** 2) > _MOVED**2:
            self._hessian = self.loss.hessian(self.mass, self.X, self.centre)
            self._hessian_scores = self._scores
        matrix = self._hessian + self.l2 * np.eye(self.size)
        return matrix, matrix

    @property
    def spread(self) -> float:
        return float(np.ptp(self._scores))
