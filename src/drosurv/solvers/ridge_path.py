"""Linear Cox models along a path of ridge penalties, each started from the last."""

from __future__ import annotations

from typing import Self

import numpy as np

from drosurv.losses import CoxPartial
from drosurv.solvers.convex import Problem, minimise
from drosurv.target import FloatArray

# The second derivatives depend on the scores alone: they are computed again once the scores have moved this far (root
# mean square). In between Newton's steps with the old ones still converge, at a tenth of the cost.
_MOVED = 0.25
# Steps after convergence take the gap down to 1e-5 of this.
_TOL = 1e-5
_MAX_ITER = 100


def ridge_path(
    X: FloatArray, loss: CoxPartial, mass: FloatArray, ridges: FloatArray
) -> tuple[FloatArray, list[str]]:
    """Minimise the mean partial likelihood loss plus sum_j ridge_j coef_j^2 / 2 for each row of ridges.

    Parameters
    ----------
    X : (n, d) array
        Features.
    loss : CoxPartial
        Partial likelihood of the n rows, with their ties, weights and offset.
    mass : (n,) array
        Weights of the rows' losses in the mean, summing to one.
    ridges : (K, d) array
        Penalties of the coefficients. Each row is solved from the solution of the row before: start with the largest.

    Returns
    -------
    coef : (K, d) array
    status : list of str
        How each ended, as in :class:`drosurv.solvers.convex.Solution`.
    """
    problem, coef, status = _RidgeProblem(X, loss, mass), np.zeros(ridges.shape), []
    for k, ridge in enumerate(ridges):
        problem.ridge = ridge
        found = minimise(problem, tol=_TOL, max_iter=_MAX_ITER, start=coef[max(k - 1, 0)])
        coef[k] = found.x
        status.append(found.status)
    return coef, status


class _RidgeProblem(Problem):
    """The convex problem of one row of penalties; what does not depend on these is kept from row to row."""

    smooth, tol = True, _TOL

    def __init__(self, X: FloatArray, loss: CoxPartial, mass: FloatArray) -> None:
        self.X, self.loss, self.size = X, loss, X.shape[1]
        self.ridge = np.zeros(self.size)
        self._centre, self._mass = mass @ X, mass[loss.rows][None]
        self._theta, self._scores = np.full(self.size, np.nan), np.zeros(len(X))
        self._loss_value, self._loss_gradient = 0.0, np.empty(0)
        self._hessian, self._hessian_scores = np.empty((0, 0)), np.full(len(X), np.inf)

    def smoothed(self, smoothing: float) -> Self:
        """The problem itself, which is smooth."""
        return self

    def value(self, theta: FloatArray) -> float:
        """The objective at theta; the point stays current for the methods below."""
        if not np.array_equal(theta, self._theta):
            self._theta, self._scores = theta.copy(), self.X @ theta
            self._loss_value = float((self._mass * self.loss(self._scores[None])).sum())
            self._loss_gradient = np.empty(0)
        return self._reached(self._loss_value + 0.5 * float(self.ridge @ theta**2))

    def lower_value(self) -> float:
        """The objective itself: no adversary weights the patients."""
        return self._last

    def gradient(self) -> FloatArray:
        """Gradient at the current point."""
        if not len(self._loss_gradient):
            self._loss_gradient = self.loss.pullback(self._mass)[0][0] @ self.X
        slope: FloatArray = self._loss_gradient + self.ridge * self._theta
        return slope

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives near the current point."""
        if np.mean((self._scores - self._hessian_scores) ** 2) > _MOVED**2:
            self._hessian = self.loss.hessian(self._mass, self.X, self._centre)
            self._hessian_scores = self._scores
        matrix = self._hessian + np.diag(self.ridge)
        return matrix, matrix

    @property
    def spread(self) -> float:
        """Distance of the highest score from the lowest."""
        return float(np.ptp(self._scores))
