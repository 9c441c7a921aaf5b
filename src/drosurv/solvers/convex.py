"""Global optima of convex problems, with a certificate.

A quasi-Newton method whose first guess of the curvature is the Newton matrix, exact on small problems and taken
from a sample of the patients on large ones, where the remembered steps (L-BFGS) correct it; where that
stalls, it is exact there too. Nonsmooth objectives are approached through smoothed ones of falling price.

Certificate: with the adversary's weights q held fixed, min_theta sum_i q_i l_i(theta) is below the optimum, and the
objective at theta above it. The inner minimum is taken as its value at theta less g' H^-1 g, twice what
Newton's model predicts can still be gained, with g and H the gradient and curvature under fixed q.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Self

import numpy as np

from drosurv.target import FloatArray

# Steps that L-BFGS remembers.
_MEMORY = 10
# A sampled curvature is taken anew in the first iterations, while the point still moves far.
_REFRESHES = 4
# A step is long enough if the objective falls by this share of what the slope promises (Armijo), up to rounding.
_SUFFICIENT = 1e-4
# Where a feature's curvature has vanished, Newton's step is as long as rounding makes it, 1e17 and more.
_SHORTEST = 1e-24
_ROUNDING = 4e-15
# On the unit diagonal of a scaled matrix: redundant features make it singular.
_RIDGE = 1e-12
# After convergence at most so many steps, until the gap is this share of the tolerance.
_POLISHED = 1e-5
_POLISHING_STEPS = 3
# By this share a value may rise there: the rounding of features in float32.
_NOISE = 1e-8
# Iterations on a smooth objective before it is smoothed: by then its optimum lies on a kink.
_PATIENCE = 150
# A step is doubled while the slope at its end is still this share of the slope at its start.
_STILL_FALLING = 0.5
_LONGEST = 1e3
# No data ask for a hazard ratio of e^500: scores that far apart are on their way to infinity.
_SEPARATED = 500.0
# So is an objective that has fallen to this share of its first value.
_VANISHED = 1e-10


class Problem(ABC):
    """What the solver asks of a problem; all methods but ``value`` are about the last point given to it.

    `size` is the number of unknowns, `smooth` tells whether the objective is differentiable, `tol` is the relative gap
    at which to stop unless the user says otherwise, `least_scale` what can be gained where the objective itself may be
    near zero. `sample` is the same problem on a sample of the patients, for the curvature, where everybody's would cost
    too much; else None.
    """

    size: int
    smooth: bool
    tol: float
    least_scale = 0.0
    sample: Problem | None = None
    # The objective at the first point, and at the last.
    _first = _last = np.nan

    @abstractmethod
    def smoothed(self, smoothing: float) -> Self:
        """The problem with its objective smoothed."""

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        """The objective."""

    @abstractmethod
    def lower_value(self) -> float:
        """The objective under the adversary's weights held fixed."""

    @abstractmethod
    def gradient(self) -> FloatArray:
        """Its gradient."""

    @abstractmethod
    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives with the adversary's weights fixed, and following."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Distance of the highest score from the lowest."""

    def scale(self, value: float) -> float:
        """The size against which a gap at this value counts as small: the objective itself, or what can be gained."""
        return max(abs(value), self.least_scale)

    @property
    def separated(self) -> bool:
        """Whether the optimum lies at infinity: the scores have run far apart, or next to nothing is left to lose."""
        vanished = self.least_scale == 0.0 and abs(self._last) <= _VANISHED * abs(self._first)
        return vanished or self.spread > _SEPARATED

    def _reached(self, value: float) -> float:
        """The value at the current point, remembered."""
        self._last = value
        self._first = value if np.isnan(self._first) else self._first
        return value


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the solver stopped and why.

    `value` is the objective at `x`. No point has an objective below `lower_bound`, as long as no more can be gained
    than twice what Newton's model says. The `status` is "converged", "max_iter", "stalled" (no further progress in
    floating point) or "separated" (the data drive a coefficient to infinity). `history` holds the objective at the
    start and after each iteration, or stage where it had to be smoothed; `scale` is what the gap is relative to.
    """

    x: FloatArray
    value: float
    lower_bound: float
    status: str
    n_iter: int
    history: FloatArray
    scale: float

    @property
    def gap(self) -> float:
        """Distance between value and lower bound, relative to the problem's scale (mostly the value itself)."""
        return max(self.value - self.lower_bound, 0.0) / max(self.scale, np.finfo(float).tiny)


def minimise(
    problem: Problem, *, tol: float | None = None, max_iter: int, start: FloatArray | None = None
) -> Solution:
    """Find the global minimum of a convex problem, from zeros or another start (size,), in at most `max_iter` steps.

    It stops where the objective is `tol` above its lower bound, relative to the problem's scale.
    """
    x = np.zeros(problem.size) if start is None else start
    tol = problem.tol if tol is None else tol
    if not problem.smooth:
        value = problem.value(x)
        first = Solution(x, value, -np.inf, "max_iter", 0, np.array([value]), problem.scale(value))
        return _continue(problem, first, tol, max_iter)
    found = _descend(problem, x, tol, min(max_iter, _PATIENCE))
    if found.status in ("converged", "separated"):
        return found
    # The chi-square objective has kinks where largest losses are equal, and its optimum may lie on one.
    return _continue(problem, found, tol, max_iter)


def _continue(problem: Problem, best: Solution, tol: float, max_iter: int) -> Solution:
    """Solve smoothed problems at falling prices. Their weights are feasible, so they give bounds for the true one."""
    price, history, used = 0.1 * best.scale, list(best.history), best.n_iter
    while used < max_iter:
        stage = problem.smoothed(price)
        # The price alone keeps a stage this far from the true problem: solving it more precisely gains nothing.
        precision = max(0.1 * tol, 0.01 * price / max(best.scale, np.finfo(float).tiny))
        inner = _descend(stage, best.x, precision, max_iter - used)
        if stage.sample is None:
            # It needed everybody's curvature, and so will later ones.
            problem.sample = None
        used += max(inner.n_iter, 1)
        value = problem.value(inner.x)
        history.append(value)
        lower = max(best.lower_bound, inner.lower_bound)
        x, value = (inner.x, value) if value <= best.value else (best.x, best.value)
        scale = problem.scale(value)
        best = Solution(x, value, lower, "max_iter", used, np.array(history), scale)
        if best.gap <= tol:
            return Solution(x, value, lower, "converged", used, best.history, scale)
        if inner.status == "separated" or price < 1e-13 * scale:
            status = inner.status if inner.status == "separated" else "stalled"
            return Solution(x, value, lower, status, used, best.history, scale)
        price *= 0.1
    return best


class _Steps(deque[tuple[FloatArray, FloatArray, float]]):
    """The last steps and gradient changes, for the two-loop recursion of L-BFGS."""

    def remember(self, step: FloatArray, change: FloatArray) -> None:
        along = float(step @ change)
        if along > 1e-16 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.append((step, change, along))

    def direction(self, gradient: FloatArray, inverse: FloatArray) -> FloatArray:
        left, used = gradient.copy(), []
        for step, change, along in reversed(self):
            share = float(step @ left) / along
            used.append(share)
            left -= share * change
        out = inverse @ left
        for (step, change, along), share in zip(self, reversed(used), strict=True):
            out += (share - float(change @ out) / along) * step
        return -out


def _inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive semidefinite matrix, whatever the features' units and redundancies."""
    diagonal = matrix.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = matrix * scale[:, None] * scale
    scaled.flat[:: len(scaled) + 1] += _RIDGE
    try:
        root = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
        root = vectors * np.sqrt(np.maximum(values, 1e-10 * max(float(values[-1]), 1e-300)))
    whitened = np.linalg.inv(root) * scale
    return np.asarray(whitened.T @ whitened)


def _descend(problem: Problem, x: FloatArray, tol: float, max_iter: int) -> Solution:
    """Preconditioned L-BFGS with backtracking; plain Newton while the curvature is exact."""
    value = problem.value(x)
    gradient = problem.gradient()
    history, steps = [value], _Steps(maxlen=_MEMORY)
    status, lower, n_iter, polished = "max_iter", -np.inf, 0, 0
    for n_iter in range(max_iter + 1):
        if problem.sample is None or n_iter < _REFRESHES:
            if problem.sample is None:
                steps.clear()
            fixed, following = problem.curvature()
            bending, rigid = _inverse(following), None
        # Letting the weights follow only adds curvature, so the gap is at least this. Look closer once it is small.
        gap = toward = float(gradient @ bending @ gradient)
        if gap <= tol * problem.scale(value):
            if rigid is None:
                rigid = bending if following is fixed else _inverse(fixed)
            # Not value - lower: that is the gap of the true problem, and the smoothed one is being solved here.
            gap = float(gradient @ rigid @ gradient)
            lower = problem.lower_value() - gap
        if gap <= tol * problem.scale(value):
            status = "converged"
        settled = gap <= _POLISHED * tol * problem.scale(value) or polished == _POLISHING_STEPS
        if status == "converged" and settled:
            break
        if problem.separated:
            status = "separated"
            break
        if n_iter == max_iter:
            break
        direction = steps.direction(gradient, bending)
        if status == "converged":
            # Coefficients lag behind the objective they minimise: a few cheap further steps settle them. The value is
            # down to its last digits, in float32 to noise: the gradient tells whether a step is a gain.
            moved = problem.value(x + direction)
            worse = moved > value + min(tol, _NOISE) * problem.scale(value)
            following_gradient = gradient if worse else problem.gradient()
            if float(following_gradient @ bending @ following_gradient) >= toward:
                problem.value(x)
                break
            steps.remember(direction, following_gradient - gradient)
            x, value, gradient, polished = x + direction, moved, following_gradient, polished + 1
            history.append(value)
            continue
        slope = float(gradient @ direction)
        length, found = 1.0, False
        while not found and length > _SHORTEST:
            moved = problem.value(x + length * direction)
            found = moved <= value + _SUFFICIENT * length * slope + _ROUNDING * problem.scale(value)
            length = length if found else length / 2
        if not found or (moved >= value and length < 1e-3):
            problem.value(x)
            if problem.sample is not None:
                # Near kinks a sample's curvature misleads: from here on everybody's.
                problem.sample = None
                continue
            status = "stalled"
            break
        following_gradient = problem.gradient()
        # Near kinks Newton's steps are far too short, and the objective falls no faster than before.
        while float(following_gradient @ direction) < _STILL_FALLING * slope and length < _LONGEST:
            farther = problem.value(x + 2 * length * direction)
            if not farther < moved:
                problem.value(x + length * direction)
                break
            length, moved, following_gradient = 2 * length, farther, problem.gradient()
        step = length * direction
        steps.remember(step, following_gradient - gradient)
        x, value, gradient = x + step, moved, following_gradient
        history.append(value)
    if lower == -np.inf:
        lower = problem.lower_value() - float(gradient @ _inverse(fixed) @ gradient)
    return Solution(x, value, lower, status, n_iter, np.array(history), problem.scale(value))
