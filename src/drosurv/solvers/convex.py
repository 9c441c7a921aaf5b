"""Newton's method for convex problems, with a certificate of optimality, and the problem of a linear model.

The Newton matrix is exact on small problems. On large ones it comes from a sample of the patients, and L-BFGS corrects
it by the last steps; where that makes no progress, the exact matrix is used there too. Nonsmooth objectives are solved
through a sequence of smoothed ones.

Certificate: with the worst-case weights q fixed, min_theta sum_i q_i l_i(theta) is at most the optimum, and the
objective at theta is at least the optimum. The inner minimum is taken as its value at theta less g' H^-1 g, twice the
decrease that Newton's model predicts, with g and H the gradient and Hessian under fixed q.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Self

import numpy as np

from drosurv.losses import Loss
from drosurv.losses.loss import constant_features
from drosurv.objectives import Evaluation
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.neighborhoods import TakesPatients
from drosurv.solvers.networks import Linear
from drosurv.target import FloatArray, IntArray

# Number of steps that L-BFGS uses.
_MEMORY = 10
# A sampled Hessian is computed again in the first iterations, while the point still moves far.
_REFRESHES = 4
# Armijo's rule: a step is accepted if the objective falls by this share of what the slope predicts, up to rounding.
_SUFFICIENT = 1e-4
# Along a feature without curvature Newton's step may be 1e17 times too long.
_SHORTEST = 1e-24
_ROUNDING = 4e-15
# Added to the unit diagonal of a scaled matrix, which redundant features make singular.
_RIDGE = 1e-12
# After convergence at most so many further steps, until the gap is this share of the tolerance.
_POLISHED = 1e-5
_POLISHING_STEPS = 3
# In those steps the value may rise by this share, the rounding of features in float32.
_NOISE = 1e-8
# Iterations on a smooth objective before it is smoothed: if it takes longer, its optimum lies on a kink.
_BEFORE_SMOOTHING = 150
# A step is doubled while the slope at its end is still this share of the slope at its start.
_STILL_FALLING = 0.5
_LONGEST = 1e3
# Scores that differ by more than this diverge to infinity: no data support a hazard ratio of e^500.
_SEPARATED = 500.0
# Coefficients also diverge where the objective has fallen to this share of its first value.
_VANISHED = 1e-10
# A Newton matrix costs n d^2; above this it comes from a random sample of the patients.
_NEWTON_WORK = 3e6
# Averaged over neighbourhoods, it costs n (d + K) averages.
_AVERAGED_WORK = 2e6
_SAMPLE_SEED = 0
# Curvature along a feature below this share of its squared range is rounding.
_FLAT = 1e-12


class ConvexProblem(ABC):
    """A convex function to minimise; all methods but ``value`` refer to the last point given to ``value``.

    Attributes
    ----------
    size : int
        Number of parameters.
    smooth : bool
        Whether the objective is differentiable.
    tol : float
        Default relative gap at which to stop.
    least_scale : float
        The least size that gaps are compared with, where the objective itself may be near zero.
    sample : ConvexProblem or None
        The same problem on a sample of the patients, for the Hessian, where the full one would cost too much.
    """

    size: int
    smooth: bool
    tol: float
    least_scale = 0.0
    sample: ConvexProblem | None = None
    # The objective at the first point, and at the last.
    _first = _last = np.nan

    @abstractmethod
    def smoothed(self, smoothing: float) -> Self:
        """Return the problem with its objective smoothed."""

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        """Return the objective at a point."""

    @abstractmethod
    def lower_value(self) -> float:
        """Return the objective with the worst-case weights fixed."""

    @abstractmethod
    def gradient(self) -> FloatArray:
        """Return the gradient."""

    @abstractmethod
    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian with fixed worst-case weights, and with weights that move with the losses."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""

    def scale(self, value: float) -> float:
        """Return the size that a gap at this value is compared with."""
        return max(abs(value), self.least_scale)

    @property
    def separated(self) -> bool:
        """Whether coefficients diverge: the scores lie far apart, or the objective has nearly vanished."""
        vanished = self.least_scale == 0.0 and abs(self._last) <= _VANISHED * abs(self._first)
        return vanished or self.spread > _SEPARATED

    def _reached(self, value: float) -> float:
        """Store the value at the current point."""
        self._last = value
        self._first = value if np.isnan(self._first) else self._first
        return value


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the solver stopped and why.

    Attributes
    ----------
    x : (size,)
        The point.
    value, lower_bound : float
        The objective there, and a lower bound of the optimum.
    status : {"converged", "max_iter", "stalled", "separated"}
        "stalled": no further progress in floating point; "separated": the data drive a coefficient to infinity.
    n_iter : int
        Iterations.
    history : (n_iter + 1,)
        The objective at the start and after each iteration, or after each smoothed problem.
    scale : float
        What the gap is relative to.
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
        """Value less lower bound, relative to the scale."""
        return max(self.value - self.lower_bound, 0.0) / max(self.scale, np.finfo(float).tiny)


def minimise(
    problem: ConvexProblem, *, tol: float | None = None, max_iter: int, start: FloatArray | None = None
) -> Minimum:
    """Find the global minimum of a convex problem, starting at zeros or at `start` (size,).

    It stops when the objective is at most `tol` above its lower bound, relative to the problem's scale, or after
    `max_iter` iterations.
    """
    x = np.zeros(problem.size) if start is None else start
    tol = problem.tol if tol is None else tol
    if not problem.smooth:
        value = problem.value(x)
        first = Minimum(x, value, -np.inf, "max_iter", 0, np.array([value]), problem.scale(value))
        return _continue(problem, first, tol, max_iter)
    found = _descend(problem, x, tol, min(max_iter, _BEFORE_SMOOTHING))
    if found.status in ("converged", "separated"):
        return found
    # The chi-square objective has kinks where the largest losses are equal, and its optimum may lie on one.
    return _continue(problem, found, tol, max_iter)


def _continue(problem: ConvexProblem, best: Minimum, tol: float, max_iter: int) -> Minimum:
    """Solve smoothed problems, each closer to the given one; their weights are feasible, so their bounds hold."""
    smoothing, history, used = 0.1 * best.scale, list(best.history), best.n_iter
    while used < max_iter:
        stage = problem.smoothed(smoothing)
        # Smoothing alone moves the optimum this far: solving the smoothed problem more precisely gains nothing.
        precision = max(0.1 * tol, 0.01 * smoothing / max(best.scale, np.finfo(float).tiny))
        inner = _descend(stage, best.x, precision, max_iter - used)
        if stage.sample is None:
            # It needed the full Hessian, and so will later ones.
            problem.sample = None
        used += max(inner.n_iter, 1)
        value = problem.value(inner.x)
        history.append(value)
        lower = max(best.lower_bound, inner.lower_bound)
        x, value = (inner.x, value) if value <= best.value else (best.x, best.value)
        scale = problem.scale(value)
        best = Minimum(x, value, lower, "max_iter", used, np.array(history), scale)
        if best.gap <= tol:
            return Minimum(x, value, lower, "converged", used, best.history, scale)
        if inner.status == "separated" or smoothing < 1e-13 * scale:
            status = inner.status if inner.status == "separated" else "stalled"
            return Minimum(x, value, lower, status, used, best.history, scale)
        smoothing *= 0.1
    return best


class _Steps(deque[tuple[FloatArray, FloatArray, float]]):
    """The last steps and changes of the gradient, for the two-loop recursion of L-BFGS."""

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
    """Invert a positive semidefinite matrix, whatever the features' units and redundancies."""
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


def _descend(problem: ConvexProblem, x: FloatArray, tol: float, max_iter: int) -> Minimum:
    """Run L-BFGS preconditioned by the Newton matrix, with backtracking; plain Newton where that matrix is exact."""
    value = problem.value(x)
    gradient = problem.gradient()
    history, steps = [value], _Steps(maxlen=_MEMORY)
    status, lower, n_iter, polished = "max_iter", -np.inf, 0, 0
    for n_iter in range(max_iter + 1):
        if problem.sample is None or n_iter < _REFRESHES:
            if problem.sample is None:
                steps.clear()
            fixed, moving = problem.curvature()
            inverse_moving, inverse_fixed = _inverse(moving), None
        # Moving weights only add curvature, so the gap is at least this. Compute it exactly once it is small.
        gap = toward = float(gradient @ inverse_moving @ gradient)
        if gap <= tol * problem.scale(value):
            if inverse_fixed is None:
                inverse_fixed = inverse_moving if moving is fixed else _inverse(fixed)
            # Not value - lower, which is the gap of the problem before smoothing.
            gap = float(gradient @ inverse_fixed @ gradient)
            lower = problem.lower_value() - gap
        if gap <= tol * problem.scale(value):
            status = "converged"
        polished_enough = gap <= _POLISHED * tol * problem.scale(value) or polished == _POLISHING_STEPS
        if status == "converged" and polished_enough:
            break
        if problem.separated:
            status = "separated"
            break
        if n_iter == max_iter:
            break
        direction = steps.direction(gradient, inverse_moving)
        if status == "converged":
            # Coefficients converge later than the objective: a few cheap further steps improve them. The value only
            # changes in its last digits, so the gradient decides whether a step is an improvement.
            moved = problem.value(x + direction)
            worse = moved > value + min(tol, _NOISE) * problem.scale(value)
            next_gradient = gradient if worse else problem.gradient()
            if float(next_gradient @ inverse_moving @ next_gradient) >= toward:
                problem.value(x)
                break
            steps.remember(direction, next_gradient - gradient)
            x, value, gradient, polished = x + direction, moved, next_gradient, polished + 1
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
                # Near kinks a sample's Hessian misleads: from here on use the full one.
                problem.sample = None
                continue
            status = "stalled"
            break
        next_gradient = problem.gradient()
        # Near kinks Newton's steps are too short: double them while the objective keeps falling.
        while float(next_gradient @ direction) < _STILL_FALLING * slope and length < _LONGEST:
            farther = problem.value(x + 2 * length * direction)
            if not farther < moved:
                problem.value(x + length * direction)
                break
            length, moved, next_gradient = 2 * length, farther, problem.gradient()
        step = length * direction
        steps.remember(step, next_gradient - gradient)
        x, value, gradient = x + step, moved, next_gradient
        history.append(value)
    if lower == -np.inf:
        lower = problem.lower_value() - float(gradient @ _inverse(fixed) @ gradient)
    return Minimum(x, value, lower, status, n_iter, np.array(history), problem.scale(value))


class LinearProblem(ConvexProblem):
    """The criterion of scores X theta plus l2/2 ||theta||^2, as a function of theta and the extra parameters.

    A point z holds theta and the change of the extra parameters from their start. The criterion must be convex and
    without penalty. Where the loss allows for it, a `centre` (d,) is subtracted from the features, which only improves
    rounding.
    """

    _evaluation: Evaluation

    def __init__(self, X: FloatArray, criterion: Criterion, l2: float = 0.0) -> None:
        self.criterion, self.least_scale = criterion, criterion.least_scale
        self.smooth, self.tol = criterion.objective.smooth, criterion.objective.tol
        self.d: int = X.shape[1]
        loss, self.centre = criterion.loss, np.zeros(self.d)
        if loss.shift is not None:
            self.centre = criterion.patient_mass @ X
        # A constant feature matters where neither risk sets nor extra parameters absorb a constant in the scores.
        kept = loss.shift is None and loss.compared is None
        self.X = X if kept else _centred(X, self.centre, loss)
        self._rotation: FloatArray | None = None
        if self.d > len(X):
            self._rotate(scaled=l2 == 0)
        n_extra = criterion.loss.n_extra
        # Coefficients of one output after the other.
        self.outputs: int = criterion.loss.n_outputs
        self.n_coefficients: int = self.d * self.outputs
        self.size: int = self.n_coefficients + n_extra
        ridges = np.full(self.n_coefficients, l2), np.full(n_extra, criterion.loss.extra_ridge)
        self.ridge: FloatArray = np.concatenate(ridges)
        self.network = Linear(self.X, np.zeros((self.outputs, self.d)))
        self._z: FloatArray = np.zeros(self.size)
        self._scores = self._losses = np.empty((1, 0))
        self.sample = self._sampled()

    def _rotate(self, scaled: bool) -> None:
        """Replace d > n features by n directions that span the patients, which contain the ridge optimum.

        Without a ridge the features are scaled first, so that units do not choose among the optima.
        """
        size = self.X.std(axis=0) if scaled else np.ones(self.d)
        size[size == 0] = 1.0
        directions, root = np.linalg.qr((self.X / size).T)
        self.X, self._rotation, self.d = np.ascontiguousarray(root.T), directions.T / size, len(self.X)

    def coefficients(self, z: FloatArray) -> FloatArray:
        """Return the coefficients (d,) of a point, or (outputs, d) of several outputs."""
        theta = z[: self.n_coefficients].reshape(self.outputs, self.d)
        theta = theta if self._rotation is None else theta @ self._rotation
        return theta[0] if self.outputs == 1 else theta

    def _sampled(self) -> Self | None:
        size = self._sample_size()
        if size is None or size >= len(self.X):
            return None
        rows = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(len(self.X))[:size])
        other = copy.copy(self)
        other.criterion, other.X, other.sample = self.criterion.take(rows), self.X[rows], None
        if not other._suffices():
            return None
        if self.criterion.loss.n_extra == 0:
            # A feature that is constant in the sample must not count as varying there.
            other.X = _centred(other.X, other.criterion.patient_mass @ other.X, other.criterion.loss)
        other.network = Linear(other.X, np.zeros((self.outputs, self.d)))
        # Along a feature that varies in the data but not in the sample, Newton's steps would be infinite.
        other.value(np.zeros(self.size))
        bends = other.curvature()[0].diagonal()[: self.n_coefficients].reshape(self.outputs, self.d)
        wide = np.ptp(self.X, axis=0)
        return None if (bends < _FLAT * wide**2).any() else other

    def _sample_size(self) -> int | None:
        """Number of patients to compute the Hessian from; None for all."""
        n: int = len(self.X)
        around = self.criterion.neighborhoods
        if around is not None:
            affordable = int(_AVERAGED_WORK / self.size)
            return affordable if n > affordable and isinstance(around, TakesPatients) else None
        work = float(self.size) ** 2
        if n * work <= _NEWTON_WORK or self.criterion.null_losses is not None:
            return None
        return max(int(_NEWTON_WORK / work), 40 * self.size, 2000)

    def _suffices(self) -> bool:
        """Whether every block of the sample has more losses than features."""
        rows: IntArray = self.criterion.loss.rows
        found = [int(np.isin(rows, block).sum()) for block in self.criterion.blocks]
        return min(found) > self.d

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""
        return float(np.ptp(self._scores))

    def smoothed(self, smoothing: float) -> Self:
        """Return the same problem with the smoothed objective."""
        other = copy.copy(self)
        other.criterion = self.criterion.smoothed(smoothing)
        if self.sample is not None:
            other.sample = self.sample.smoothed(smoothing)
        return other

    def value(self, z: FloatArray) -> float:
        """Return the objective at z, the current point of the methods below."""
        self._z = z
        theta, extra = z[: self.n_coefficients], z[None, self.n_coefficients :]
        self.network.parameters[0] = theta.reshape(self.outputs, self.d)
        scores = self.network.scores()
        self._scores = scores if self.outputs == 1 else np.ascontiguousarray(scores.T)[None]
        self._losses = self.criterion.losses(self._scores, self.criterion.loss.start + extra)
        if not np.isfinite(self._losses).all():
            return np.inf
        self._evaluation = self.criterion.objective(self._losses, self.criterion.mass)
        return self._reached(float(self._evaluation.value[0]) + self._ridge_value())

    def lower_value(self) -> float:
        """Return the objective with the worst-case weights fixed."""
        return float(self._losses[0] @ self._evaluation.weights[0]) + self._ridge_value()

    def gradient(self) -> FloatArray:
        """Return the gradient."""
        weights = self.criterion.loss_weights(self._evaluation)
        by_score, by_extra = self.criterion.loss.pullback(weights)
        by_output = by_score if self.outputs == 1 else np.ascontiguousarray(by_score[0].T)
        slope = np.concatenate([self.network.pullback(by_output)[0].ravel(), by_extra[0]])
        return slope + self.ridge * self._z

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian with fixed worst-case weights, and with weights that move with the losses."""
        if self.sample is not None:
            self.sample.value(self._z)
            return self.sample.curvature()
        fixed, moving = self.criterion.curvature(self.X, self._losses, self._evaluation)
        ridge = np.diag(self.ridge)
        penalised = fixed + ridge
        return penalised, penalised if moving is fixed else moving + ridge

    def _ridge_value(self) -> float:
        return 0.5 * float(self.ridge @ self._z**2)


def _centred(X: FloatArray, centre: FloatArray, loss: Loss) -> FloatArray:
    """Subtract the centre. Features that are constant where it matters become zero instead of rounding errors."""
    out: FloatArray = X - centre
    out[:, constant_features(X, loss.compared)] = 0.0
    return out
