"""Linear Cox models along a path of ridge penalties, each fit started from the solution before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import FloatArray
from drosurv.solvers.convex import SEPARATED
from drosurv.solvers.networks import products, sums

# The Hessian depends only on the scores. It is recomputed when the scores have changed by this root mean square. In
# between it is updated from the gradients (BFGS), which takes a tenth of the time.
_CHANGED = 0.4
# The gain that a Newton step predicts falls from step to step by some factor. The next factor is assumed to be at most
# _SAFETY times the last one, and at least _LEAST_FACTOR.
_SAFETY, _LEAST_FACTOR = 5.0, 0.01
_MAX_ITER = 100
_SMALLEST_STEP = 1e-8
# A step is taken if the criterion decreases by this share of what the slope predicts, up to rounding.
_SUFFICIENT, _ROUNDING = 1e-4, 1e-15
# Added to the unit diagonal of a scaled matrix, because redundant columns make it singular.
_JITTER = 1e-11

# The scores of at most this many models are in memory together.
MODELS = 13


def ridge_path(
    X: FloatArray, loss: CoxPartial, mass: FloatArray, ridges: FloatArray, tol: float = 1e-5
) -> tuple[FloatArray, list[str]]:
    """Minimise the mean partial likelihood loss plus sum_j ridge_j coef_j^2 / 2 for each row of ridges (K, d).

    It uses Newton's method and keeps the Hessian from row to row while it is accurate enough, which is four times as
    fast as :func:`drosurv.solvers.convex.minimise`. With more columns than rows a step takes n^3 operations, not d^3.
    Each row of ridges is solved from the solution of the row before, so the largest penalties should come first. The
    columns of X (n, d) are of similar size; `mass` (n,) are the weights of the rows' losses in the mean, summing to
    one.

    It stops when the gain in the log likelihood of all rows that the next Newton step predicts is smaller than `tol`;
    with 1e-5 every coefficient is within 0.005 standard errors of the optimum. Return the coefficients (K, d), and for
    each row "converged", "separated" (the scores grow without bound), "stalled" (no step decreased the criterion) or
    "max_iter".
    """
    if X.shape[1] > len(X):
        return _wide_path(X, loss, mass, ridges, tol)
    path, coef = _Path(X, loss, mass), np.zeros(ridges.shape)
    status = []
    for k, ridge in enumerate(ridges):
        coef[k], reason = path.solve(ridge, tol / len(X))
        status.append(reason)
    return coef, status


def _wide_path(
    X: FloatArray, loss: CoxPartial, mass: FloatArray, ridges: FloatArray, tol: float
) -> tuple[FloatArray, list[str]]:
    """Solve the path in the space that the n rows of X span, which contains the optima of d > n columns.

    Columns are divided by the roots of their penalties, so that all have the same penalty; then the optima lie in the
    span of the rows. Rows of ridges that are multiples of each other need one rotation together. A row of ridges is
    positive, or zero for no penalty.
    """
    n, largest = len(X), ridges.max(axis=1)
    relative = np.where(largest[:, None] > 0, ridges, 1.0) / np.where(largest > 0, largest, 1.0)[:, None]
    kinds: dict[bytes, list[int]] = {}
    for k, row in enumerate(relative.round(12)):
        kinds.setdefault(row.tobytes(), []).append(k)
    coef, status = np.zeros(ridges.shape), [""] * len(ridges)
    for rows in kinds.values():
        size = np.sqrt(relative[rows[0]])
        directions, root = np.linalg.qr((X / size).T)
        path, found = _Path(np.ascontiguousarray(root.T), loss, mass), np.empty((len(rows), n))
        order = np.argsort(-largest[rows], kind="stable")
        for i in order:
            found[i], status[rows[i]] = path.solve(np.full(n, largest[rows[i]]), tol / n)
        coef[rows] = found @ directions.T / size
    return coef, status


@dataclass(frozen=True, eq=False)
class Start:
    """Coefficients (d,) near the minimum, and the Hessian (d, d) there, such as those of similar patients."""

    theta: FloatArray
    hessian: FloatArray


def ridge_fits(
    X: FloatArray,
    loss: CoxPartial,
    mass: FloatArray,
    ridges: FloatArray,
    start: Start | None = None,
    tol: float = 1e-5,
) -> tuple[FloatArray, Start]:
    """Return the coefficients (K, d) of :func:`ridge_path` for many rows X (n, d) and few columns.

    X may be rows that are computed when they are read, as in :class:`drosurv.solvers.networks.LinearRows`.

    The model in the middle of the penalties is fitted first, from the `start` if one is given. All others take their
    Newton steps from there together: the matrix products of several models take a fraction of the time of one product
    for each. Also return where it began, which is a start for similar patients.
    """
    path = _Path(X, loss, mass, start)
    path.solve(ridges[np.argsort(ridges.max(axis=1), kind="stable")[len(ridges) // 2]], tol / len(X))
    path.update_hessian()
    coef = np.empty(ridges.shape)
    for low in range(0, len(ridges), MODELS):
        coef[low : low + MODELS] = _steps_from(path, ridges[low : low + MODELS], tol / len(X))
    return coef, Start(path.theta, path.hessian)


def _steps_from(path: _Path, ridges: FloatArray, tol: float) -> FloatArray:
    """Return the coefficients (K, d) for K rows of ridges, by Newton steps that begin at the path's current fit."""
    K = len(ridges)
    theta, gradient = np.tile(path.theta, (K, 1)), np.tile(path.gradient, (K, 1))
    hessians, value = [path.hessian] * K, np.full(K, path.value)
    last_gain, factor = np.full(K, np.inf), np.ones(K)
    left, alone = np.arange(K), []
    for _ in range(_MAX_ITER):
        steps, gains = np.empty((len(left), theta.shape[1])), np.empty(len(left))
        for i, k in enumerate(left):
            slope = gradient[k] + ridges[k] * theta[k]
            steps[i] = -_solve(hessians[k], ridges[k], slope)
            gains[i] = -float(slope @ steps[i])
        known = last_gain[left] < np.inf
        ratio = np.clip(_SAFETY * gains[known] / last_gain[left[known]], _LEAST_FACTOR, 1.0)
        factor[left[known]], last_gain[left] = ratio, gains
        done = factor[left] * gains <= tol
        theta[left[done]] += steps[done]
        left, steps, gains = left[~done], steps[~done], gains[~done]
        if len(left) == 0:
            break
        ridge, moved = ridges[left], theta[left] + steps
        new_value, new_gradient = path.derivatives(moved)
        before = value[left] + 0.5 * (ridge * theta[left] ** 2).sum(axis=1)
        decrease = before - new_value - 0.5 * (ridge * moved**2).sum(axis=1)
        # Models whose full step fails are fitted one by one, with shorter steps.
        fails = ~(decrease >= _SUFFICIENT * gains - _ROUNDING * before)
        alone += left[fails].tolist()
        for i, k in zip(np.flatnonzero(~fails).tolist(), left[~fails].tolist(), strict=True):
            hessians[k] = _updated(hessians[k], steps[i], new_gradient[i] - gradient[k])
        left = left[~fails]
        theta[left], value[left], gradient[left] = moved[~fails], new_value[~fails], new_gradient[~fails]
    for k in alone:
        theta[k] = _Path(path.X, path.loss, path.all_mass).solve(ridges[k], tol)[0]
    return theta


class _Path:
    """The current point of the path: coefficients, scores, mean loss and its derivatives."""

    def __init__(self, X: FloatArray, loss: CoxPartial, mass: FloatArray, start: Start | None = None) -> None:
        self.X, self.loss, self.all_mass = X, loss, mass
        self.centre, self.mass = sums(mass[None], X)[0], mass[loss.rows]
        self._start(start)

    def _start(self, start: Start | None = None) -> None:
        """Move to the start, or to coefficients of zero."""
        self.theta = np.zeros(self.X.shape[1]) if start is None else start.theta
        self.scores = products(self.theta[None], self.X)[0]
        self.value = self._mean_loss(self.scores)
        self.gradient = self._gradient()
        self.hessian = self._hessian() if start is None else start.hessian
        self.hessian_scores = self.scores
        # The factor by which the predicted gain falls in the next step, at most.
        self.factor = 1.0

    def solve(self, ridge: FloatArray, tol: float) -> tuple[FloatArray, str]:
        """Return the coefficients (d,) that minimise the loss with penalties (d,), up to `tol`, and the status.

        The current point stays one step before the minimum, so that nothing is computed at the last point.
        """
        last_gain = np.inf
        for _ in range(_MAX_ITER):
            if self.scores.max() - self.scores.min() > SEPARATED:
                theta = self.theta
                self._start()
                return theta, "separated"
            gradient = self.gradient + ridge * self.theta
            changes = self.scores - self.hessian_scores
            if changes @ changes > _CHANGED**2 * len(changes):
                self.hessian, self.hessian_scores = self._hessian(), self.scores
            step = -_solve(self.hessian, ridge, gradient)
            gain = -float(gradient @ step)
            if last_gain < np.inf:
                self.factor = min(max(_SAFETY * gain / last_gain, _LEAST_FACTOR), 1.0)
            if self.factor * gain <= tol:
                return self.theta + step, "converged"
            last_gain = gain
            if not self._move(step, ridge, gain):
                if self.hessian_scores is not self.scores:
                    # The Hessian was computed at other scores.
                    self.hessian, self.hessian_scores = self._hessian(), self.scores
                    continue
                return self.theta, "stalled"
        return self.theta, "max_iter"

    def _move(self, step: FloatArray, ridge: FloatArray, gain: float) -> bool:
        """Take the step, halved until the criterion decreases; return False if even the smallest step does not."""
        before = self.value + 0.5 * float(ridge @ self.theta**2)
        score_step, step_size = products(step[None], self.X)[0], 1.0
        while step_size >= _SMALLEST_STEP:
            theta, scores = self.theta + step_size * step, self.scores + step_size * score_step
            value = self._mean_loss(scores)
            decrease = before - value - 0.5 * float(ridge @ theta**2)
            if decrease >= _SUFFICIENT * step_size * gain - _ROUNDING * before:
                self.theta, self.scores, self.value = theta, scores, value
                gradient, self.gradient = self.gradient, self._gradient()
                self.hessian = _updated(self.hessian, step_size * step, self.gradient - gradient)
                return True
            step_size /= 2
        # Evaluate the loss at the current scores again, because it stores its last scores.
        self._mean_loss(self.scores)
        return False

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean losses (K,) and their gradients (K, d) at coefficients (K, d)."""
        scores, value = products(theta, self.X), np.empty(len(theta))
        for k in range(len(theta)):
            # A copy, because the loss stores its scores, with the array that they are part of.
            value[k] = self._mean_loss(scores[k].copy())
            scores[k] = self.loss.pullback(self.mass[None])[0][0]
        return value, sums(scores, self.X)

    def update_hessian(self) -> None:
        """Compute the Hessian at the current point."""
        self._mean_loss(self.scores)
        self.hessian, self.hessian_scores = self._hessian(), self.scores

    def _mean_loss(self, scores: FloatArray) -> float:
        return float(self.mass @ self.loss(scores[None])[0])

    def _gradient(self) -> FloatArray:
        gradient: FloatArray = sums(self.loss.pullback(self.mass[None])[0], self.X)[0]
        return gradient

    def _hessian(self) -> FloatArray:
        return self.loss.hessian(self.mass[None], self.X, self.centre)


def _updated(hessian: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the Hessian updated by the change of the gradient along the last step (BFGS)."""
    curvature, product = float(step @ change), hessian @ step
    if curvature <= 0.0:
        return hessian
    hessian = hessian + change[:, None] * (change / curvature)
    hessian -= product[:, None] * (product / float(step @ product))
    return hessian


def _solve(hessian: FloatArray, ridge: FloatArray, right: FloatArray) -> FloatArray:
    """Solve (hessian + diag(ridge)) x = right: positive semidefinite, columns of any units, some maybe redundant."""
    diagonal = hessian.diagonal() + ridge
    size = np.sqrt(np.maximum(diagonal, 0.0))
    size[size == 0] = 1.0
    scaled = hessian / (size[:, None] * size)
    scaled.flat[:: len(scaled) + 1] = diagonal / size**2 + _JITTER
    _, solution, failed = dposv(scaled, right / size)
    if failed:
        solution = np.linalg.lstsq(scaled, right / size, rcond=1e-10)[0]
    return np.asarray(solution / size)
