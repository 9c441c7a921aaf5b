"""Newton's method for convex problems, with a certificate of optimality, and the problem of a linear model.

On small problems the Hessian is exact. On large problems it is computed from a sample of the patients, and L-BFGS
corrects it by the last steps; if that makes no progress, the exact Hessian is used. Nonsmooth objectives are replaced
by a sequence of smooth ones.

Certificate: with fixed worst-case weights q, min_theta sum_i q_i l_i(theta) is at most the optimum, and the objective
at theta is at least the optimum. This minimum is estimated by the value at theta minus g' H^-1 g, twice the decrease
that a Newton step predicts, with g and H the gradient and Hessian under fixed q.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from drosurv.losses.loss import constant_features
from drosurv.objectives.objective import Evaluation
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.neighborhoods import TakesPatients
from drosurv.solvers.networks import Linear, LinearRows, sums

# Number of last steps that L-BFGS uses.
_MEMORY = 10
# A sampled Hessian is recomputed in this many first iterations, when steps are large.
_REFRESHES = 4
# Armijo's rule: accept a step if the objective decreases by this share of what the slope predicts, up to rounding.
_SUFFICIENT = 1e-4
_ROUNDING = 4e-15
# Smallest step size. Along a feature without curvature a Newton step may be 1e17 times too large.
_SMALLEST_STEP = 1e-24
# Added to the unit diagonal of a scaled matrix, because redundant features make it singular.
_RIDGE = 1e-12
# After convergence take at most this many further steps, until the gap is this share of the tolerance.
_POLISHING_STEPS = 3
_POLISHED = 1e-5
# In these steps the objective may increase by this share, the rounding error of features in float32.
_NOISE = 1e-8
# Iterations before a differentiable objective is smoothed: if it takes longer, its optimum is at a kink.
_BEFORE_SMOOTHING = 150
# Near the minimum of a similar problem smoothing begins with this share of the objective instead of a tenth.
_NEAR = 0.01
# Steps of several problems together shrink fast if each gap is at most this share of the last.
_FAST = 0.4
# Double a step while the slope at its end is at least this share of the slope at its start.
_STILL_FALLING = 0.5
_LARGEST_STEP = 1e3
# Scores that differ by more than this diverge: no data support a hazard ratio of e^500.
SEPARATED = 500.0
# Coefficients also diverge if the objective decreases to this share of its first value.
_VANISHED = 1e-10
# Computing the Hessian takes n d^2 operations; above this number it is computed from a random sample of the patients.
_NEWTON_WORK = 3e6
# With averages over neighbourhoods it takes n (d + K) averages.
_AVERAGED_WORK = 2e6
_SAMPLE_SEED = 0
# Patients whose features are summed at a time, so that they stay in the cache.
_BLOCK = 2048
# From this many patients on their numbers do not fit into the cache, and they are sorted by time.
_SORTED = 200_000
# A second derivative along a feature that is below this share of the feature's squared range is a rounding error.
_FLAT = 1e-12


class ConvexProblem(ABC):
    """A convex function of `size` parameters; all methods but ``value`` refer to the last point given to ``value``.

    `smooth` says whether the objective is differentiable; `tol` is the default relative gap at which to stop,
    `least_scale` the smallest scale of relative gaps, for objectives that may be near zero. The Hessian is computed
    from the `sample`, the same problem for a part of the patients, or is that of a problem nearby; None uses all
    patients.
    """

    size: int
    smooth: bool
    tol: float
    least_scale = 0.0
    sample: ConvexProblem | Nearby | None = None
    # The smoothing of the last problem that was solved in place of this one; 0 if it was solved itself.
    last_smoothing = 0.0
    # The objective at the first point, and at the last.
    _first = _last = np.nan

    @abstractmethod
    def smoothed(self, smoothing: float) -> Self:
        """Return the problem with a smoothed objective."""

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
        """Return the Hessian with fixed worst-case weights, and with weights that change with the losses."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""

    def scale(self, value: float) -> float:
        """Return the scale of the relative gap at a value of the objective."""
        return max(abs(value), self.least_scale)

    @property
    def separated(self) -> bool:
        """Whether coefficients diverge: the scores differ too much, or the objective is nearly zero."""
        vanished = self.least_scale == 0.0 and abs(self._last) <= _VANISHED * abs(self._first)
        return vanished or self.spread > SEPARATED

    def _store(self, value: float) -> float:
        """Store the objective at the current point."""
        self._last = value
        self._first = value if np.isnan(self._first) else self._first
        return value


@dataclass(frozen=True, eq=False)
class Nearby:
    """The minimum `x` (size,) of a similar problem, from which to start, and its Hessians there."""

    x: FloatArray
    hessians: tuple[FloatArray, FloatArray]

    def value(self, theta: FloatArray) -> None:
        """Do nothing: the Hessians are used at every point."""

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """See :meth:`ConvexProblem.curvature`."""
        return self.hessians

    def smoothed(self, smoothing: float) -> None:
        """Return None: a smoothed problem has another Hessian."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """The point `x` (size,) at which the solver stopped, and why.

    `value` is the objective there, `lower_bound` one of the optimum, `scale` that of the relative gap. The `status` is
    "converged", "max_iter", "stalled" (no further progress in floating point) or "separated" (a coefficient diverges).
    `history` has the objective at the start and after each of `n_iter` iterations, or after each smoothed problem.
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
        """Value minus lower bound, divided by the scale."""
        return max(self.value - self.lower_bound, 0.0) / max(self.scale, np.finfo(float).tiny)


def minimise(
    problem: ConvexProblem, *, tol: float | None = None, max_iter: int, start: FloatArray | None = None
) -> Minimum:
    """Find the global minimum of a convex problem, starting at zeros or at `start` (size,).

    The solver stops when the relative gap is at most `tol`, or after `max_iter` iterations.
    """
    x = np.zeros(problem.size) if start is None else start
    tol = problem.tol if tol is None else tol
    if not problem.smooth:
        value = problem.value(x)
        first = Minimum(x, value, -np.inf, "max_iter", 0, np.array([value]), problem.scale(value))
        return _minimise_smoothed(problem, first, tol, max_iter, 0.1 if start is None else _NEAR)
    found = _minimise_smooth(problem, x, tol, min(max_iter, _BEFORE_SMOOTHING))
    if found.status in ("converged", "separated"):
        return found
    # The chi-square objective has kinks where the largest losses are equal, and its optimum may be at one.
    return _minimise_smoothed(problem, found, tol, max_iter)


def _minimise_smoothed(
    problem: ConvexProblem, best: Minimum, tol: float, max_iter: int, smoothing: float = 0.1
) -> Minimum:
    """Minimise a sequence of smoothed objectives with less and less smoothing, beginning at the best point so far.

    `smoothing` is that of the first of them, as a share of the objective.

    The weights of a smoothed objective are allowed by the given one, so that its lower bounds are valid.
    """
    history, used = list(best.history), best.n_iter
    smoothing *= best.scale
    while used < max_iter:
        stage, problem.last_smoothing = problem.smoothed(smoothing), smoothing
        # The smoothed problem need not be solved more precisely than smoothing changes its optimum.
        precision = max(0.1 * tol, 0.01 * smoothing / max(best.scale, np.finfo(float).tiny))
        inner = _minimise_smooth(stage, best.x, precision, max_iter - used)
        if stage.sample is None:
            # This problem needed the full Hessian; later ones will need it too.
            problem.sample = None
        used += max(inner.n_iter, 1)
        value = problem.value(inner.x)
        history.append(value)
        lower = max(best.lower_bound, inner.lower_bound)
        x, value = (inner.x, value) if value <= best.value else (best.x, best.value)
        scale = problem.scale(value)
        best = Minimum(x, value, lower, "max_iter", used, np.array(history), scale)
        if best.gap <= tol:
            return replace(best, status="converged")
        if inner.status == "separated" or smoothing < 1e-13 * scale:
            return replace(best, status=inner.status if inner.status == "separated" else "stalled")
        smoothing *= 0.1
    return best


class _Steps(deque[tuple[FloatArray, FloatArray, float]]):
    """The last steps s, changes y of the gradient and products s'y, for the two-loop recursion of L-BFGS."""

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Add a step along which the gradient increases."""
        product = float(step @ change)
        if product > 1e-16 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.append((step, change, product))

    def direction(self, gradient: FloatArray, inverse: FloatArray) -> FloatArray:
        """Return the step direction, given the inverse of the Hessian before the corrections."""
        q, alphas = gradient.copy(), []
        for step, change, product in reversed(self):
            alpha = float(step @ q) / product
            alphas.append(alpha)
            q -= alpha * change
        out = inverse @ q
        for (step, change, product), alpha in zip(self, reversed(alphas), strict=True):
            out += (alpha - float(change @ out) / product) * step
        return -out


def _inverse(matrix: FloatArray) -> FloatArray:
    """Invert a positive semidefinite matrix of features with any units, some of which may be redundant."""
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


def _minimise_smooth(problem: ConvexProblem, x: FloatArray, tol: float, max_iter: int) -> Minimum:
    """Minimise a differentiable objective by Newton's method with backtracking; L-BFGS if the Hessian is sampled."""
    value = problem.value(x)
    gradient = problem.gradient()
    history, steps = [value], _Steps(maxlen=_MEMORY)
    status, lower, n_iter, polished = "max_iter", -np.inf, 0, 0
    changing: FloatArray | None = None
    for n_iter in range(max_iter + 1):
        if problem.sample is None or n_iter < _REFRESHES:
            if problem.sample is None:
                steps.clear()
            last, (fixed, changing) = changing, problem.curvature()
            if changing is not last:
                inverse_changing, inverse_fixed = _inverse(changing), None
        # Changing weights only add curvature, so the gap is at least this. Compute it exactly if it is small.
        gap = decrement = float(gradient @ inverse_changing @ gradient)
        if gap <= tol * problem.scale(value):
            if inverse_fixed is None:
                inverse_fixed = inverse_changing if changing is fixed else _inverse(fixed)
            # The gap of the smoothed problem; value - lower would be that of the problem before smoothing.
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
        direction = steps.direction(gradient, inverse_changing)
        if status == "converged":
            # Coefficients converge later than the objective: a few cheap further steps improve them. The objective only
            # changes in its last digits, so the gradient decides whether a step is an improvement.
            next_value = problem.value(x + direction)
            worse = next_value > value + min(tol, _NOISE) * problem.scale(value)
            next_gradient = gradient if worse else problem.gradient()
            if float(next_gradient @ inverse_changing @ next_gradient) >= decrement:
                problem.value(x)
                break
            steps.add(direction, next_gradient - gradient)
            x, value, gradient, polished = x + direction, next_value, next_gradient, polished + 1
            history.append(value)
            continue
        slope = float(gradient @ direction)
        step_size, accepted = 1.0, False
        while not accepted and step_size > _SMALLEST_STEP:
            next_value = problem.value(x + step_size * direction)
            limit = value + _SUFFICIENT * step_size * slope + _ROUNDING * problem.scale(value)
            accepted = next_value <= limit
            step_size = step_size if accepted else step_size / 2
        if not accepted or (next_value >= value and step_size < 1e-3):
            problem.value(x)
            if problem.sample is not None:
                # Near kinks the Hessian of a sample is too inaccurate: use the full one from here on.
                problem.sample = None
                continue
            status = "stalled"
            break
        next_gradient = problem.gradient()
        # Near kinks Newton steps are too small: double them while the objective keeps decreasing.
        while float(next_gradient @ direction) < _STILL_FALLING * slope and step_size < _LARGEST_STEP:
            doubled = problem.value(x + 2 * step_size * direction)
            if not doubled < next_value:
                problem.value(x + step_size * direction)
                break
            step_size, next_value, next_gradient = 2 * step_size, doubled, problem.gradient()
        step = step_size * direction
        steps.add(step, next_gradient - gradient)
        x, value, gradient = x + step, next_value, next_gradient
        history.append(value)
    if lower == -np.inf:
        lower = problem.lower_value() - float(gradient @ _inverse(fixed) @ gradient)
    return Minimum(x, value, lower, status, n_iter, np.array(history), problem.scale(value))


class LinearProblem(ConvexProblem):
    """The criterion at scores X theta plus l2/2 ||theta||^2, as a function of theta and the extra parameters.

    A point z consists of theta and the change of the extra parameters from their start. The criterion must be convex
    and without penalty. If the loss allows it, a `centre` (d,) is subtracted from the features, which only reduces
    rounding errors. `X` are the centred features; of many patients they are computed when the full Hessian is needed.
    """

    _evaluation: Evaluation

    def __init__(self, X: Any, criterion: Criterion, l2: float = 0.0) -> None:
        self.criterion, self.least_scale = criterion, criterion.least_scale
        self._order: IntArray | None = None
        self.smooth, self.tol = criterion.objective.smooth, criterion.objective.tol
        self.n, self.d = X.shape
        loss, self.centre = criterion.loss, np.zeros(self.d)
        if loss.shift is not None:
            self.centre = sums(criterion.patient_mass[None], X)[0]
        # A constant feature matters if adding a constant to the scores changes the loss.
        constants_matter = loss.shift is None and loss.compared is None
        self._constant = (
            np.zeros(self.d, np.bool_) if constants_matter else constant_features(X, loss.compared)
        )
        whole = isinstance(X, np.ndarray)
        if whole and len(X) >= _SORTED and (found := criterion.sorted_by_time()):
            self.criterion, self._order = found
        self._given, self._rotation = X, None
        if self.d > len(X):
            self.X = self._centred()
            # Replace d > n features by n directions that span the rows of X, and so contain the ridge optimum. Without
            # a ridge penalty there are many optima; the features are scaled first, so that the one that is found does
            # not depend on their units.
            size = self.X.std(axis=0) if l2 == 0 else np.ones(self.d)
            size[size == 0] = 1.0
            directions, root = np.linalg.qr((self.X / size).T)
            self.X, self._rotation, self.d = np.ascontiguousarray(root.T), directions.T / size, self.n
        n_extra = criterion.loss.n_extra
        # Coefficients are ordered by output.
        self.outputs: int = criterion.loss.n_outputs
        self.n_coefficients: int = self.d * self.outputs
        self.size: int = self.n_coefficients + n_extra
        ridges = np.full(self.n_coefficients, l2), np.full(n_extra, criterion.loss.extra_ridge)
        self.ridge: FloatArray = np.concatenate(ridges)
        start = np.zeros((self.outputs, self.d))
        self.network: Any
        if self._rotation is not None:
            self.network = Linear(self.X, start)
        elif whole:
            self.network = Linear(X, start, self.centre, self._order)
            self.network.columns[self._constant] = 0.0
        else:
            self.network = LinearRows(X, start, self.centre, self._constant)
        self._z: FloatArray = np.zeros(self.size)
        self._scores = self._losses = np.empty((1, 0))
        # The last point at which Hessians of all patients were computed, and these.
        self._known: tuple[FloatArray, tuple[FloatArray, FloatArray]] | None = None
        self.sample = self._sampled(self._sample_size())

    @cached_property
    def X(self) -> FloatArray:
        """The centred features (n, d)."""
        return self._centred()

    def _centred(self, rows: IntArray | slice = slice(None)) -> FloatArray:
        if self._order is not None:
            rows = self._order[rows]
        return centred(self._given[rows], self.centre, self._constant)

    def coefficients(self, z: FloatArray) -> FloatArray:
        """Return the coefficients (d,) of a point; with several outputs, (outputs, d)."""
        theta = z[: self.n_coefficients].reshape(self.outputs, self.d)
        theta = theta if self._rotation is None else theta @ self._rotation
        return theta[0] if self.outputs == 1 else theta

    def hessians_without(self, theta: FloatArray, fold: IntArray) -> FloatArray | None:
        """Return estimates (K, d, d) of the Hessians at theta (d,) of the problems without the patients of each fold.

        Nearly all that the choice of the patients changes in a Hessian is a weighted sum of squares of the features.
        It is computed from the patients in question, the rest of the Hessian from the sample or from all patients.
        None if those problems may have another size. `fold` (n,) are numbers from 0; the problem is left at theta.
        """
        if self._rotation is not None or self.size != self.d:
            return None
        if not np.array_equal(self._z, theta):
            self.value(theta)
        at = self
        if self.last_smoothing:
            # With less smoothing too few losses of a sample would have weights that change.
            at = self.smoothed(max(self.last_smoothing, _NEAR * self.scale(self._last)))
            at.value_of(theta, self._scores)
        fold = fold if self._order is None else fold[self._order]
        hessian, squares = at.curvature()[1], at._squares(fold)
        included = total = squares.sum(axis=0)
        if isinstance(at.sample, LinearProblem):
            (included,) = at.sample._squares(np.zeros(at.sample.n, np.intp))
        left = 1.0 - np.bincount(fold, self.criterion.patient_mass)
        out: FloatArray = hessian - included + (total - squares) / left[:, None, None]
        return out

    def _squares(self, fold: IntArray) -> FloatArray:
        """Return sums (K, d, d) of squares of the features over each fold (n,), with their weights in the Hessian."""
        roots = np.sqrt(self.criterion.second_derivatives(self._losses, self._evaluation))
        columns, n_folds = self.network.columns, int(fold.max()) + 1
        out = np.zeros((n_folds, self.d, self.d))
        for rows in batches(self.n, _BLOCK // 2):
            by_fold = np.argsort(fold[rows], kind="stable")
            part = (columns[:, rows] * roots[rows]).take(by_fold, axis=1)
            ends = np.cumsum(np.bincount(fold[rows], minlength=n_folds))
            for k, of_fold in enumerate(np.split(part, ends[:-1], axis=1)):
                out[k] += of_fold @ of_fold.T
        return out

    def without(self, left_out: BoolArray) -> Self | None:
        """Return the problem of the patients not left out (n,), with the same centre; None if it is not offered.

        Both share memory: all methods but ``value`` refer to the last point given to ``value`` of either.
        """
        criterion = self.criterion.without(left_out if self._order is None else left_out[self._order])
        if criterion is None:
            return None
        other = copy.copy(self)
        other.criterion, other._first, other._known = criterion, np.nan, None
        other.forget()
        return other

    def _sampled(self, size: int | None) -> Self | None:
        """Return the problem of a random sample of the patients, where Newton begins; None if none is large enough."""
        if size is None or size >= self.n:
            return None
        rows = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(self.n)[:size])
        other = copy.copy(self)
        other.criterion, other.sample, other.n, other._known = self.criterion.take(rows), None, size, None
        other.X = self._centred(rows)
        rows = other.criterion.loss.rows
        # Every block needs more losses than there are features.
        if min(int(np.isin(rows, block).sum()) for block in other.criterion.blocks) <= self.d:
            return None
        if self.criterion.loss.n_extra == 0:
            # A feature that is constant in the sample must become exactly zero.
            constant = constant_features(other.X, other.criterion.loss.compared)
            other.X = centred(other.X, other.criterion.patient_mass @ other.X, constant)
        other.network = Linear(other.X, np.zeros((self.outputs, self.d)))
        if self.sample is not None:
            return other
        # Along a feature that varies in the data but not in the sample, Newton steps would be infinite.
        other.value(np.zeros(self.size))
        diagonal = other.curvature()[0].diagonal()[: self.n_coefficients].reshape(self.outputs, self.d)
        return None if (diagonal < _FLAT * self.network.ranges**2).any() else other

    def _sample_size(self) -> int | None:
        """Return the number of patients from which to compute the Hessian; None for all."""
        n, around = self.n, self.criterion.neighborhoods
        if around is not None:
            affordable = int(_AVERAGED_WORK / self.size)
            return affordable if n > affordable and isinstance(around, TakesPatients) else None
        work = float(self.size) ** 2
        if n * work <= _NEWTON_WORK or self.criterion.null_losses is not None:
            return None
        return max(int(_NEWTON_WORK / work), 40 * self.size, 2000)

    @property
    def scores(self) -> FloatArray:
        """The scores at the current point, (1, n) with one output."""
        return self._scores

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""
        return float(np.ptp(self._scores))

    def smoothed(self, smoothing: float) -> Self:
        """Return the same problem with the smoothed objective."""
        other = copy.copy(self)
        other.criterion, other._known = self.criterion.smoothed(smoothing), None
        if self.sample is not None:
            other.sample = self.sample.smoothed(smoothing)
        return other

    def value(self, z: FloatArray) -> float:
        """Return the objective at z, the current point of the methods below."""
        self.network.parameters[0] = z[: self.n_coefficients].reshape(self.outputs, self.d)
        scores = self.network.scores()
        return self.value_of(z, scores if self.outputs == 1 else np.ascontiguousarray(scores.T)[None])

    def value_of(self, z: FloatArray, scores: FloatArray) -> float:
        """Return the objective at z, the current point of the methods below, given its scores (1, n)."""
        self._z, self._scores, extra = z, scores, z[None, self.n_coefficients :]
        self._losses = self.criterion.losses(self._scores, self.criterion.loss.start + extra)
        if not np.isfinite(self._losses).all():
            return np.inf
        self._evaluation = self.criterion.objective(self._losses, self.criterion.mass)
        return self._store(float(self._evaluation.value[0]) + self._ridge_value())

    def lower_value(self) -> float:
        """Return the objective with the worst-case weights fixed."""
        return float(self._losses[0] @ self._evaluation.weights[0]) + self._ridge_value()

    def gradient(self) -> FloatArray:
        """Return the gradient."""
        by_score, by_extra = self.slopes()
        by_output = by_score if self.outputs == 1 else np.ascontiguousarray(by_score[0].T)
        slope = np.concatenate([self.network.pullback(by_output)[0].ravel(), by_extra[0]])
        return slope + self.ridge * self._z

    def forget(self) -> None:
        """Free the memory of the last point."""
        self._scores = self._losses = np.empty((1, 0))
        self._evaluation = Evaluation(self._scores, self._scores, self._scores)

    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """Return the gradient, without the ridge, in the scores and in the extra parameters."""
        return self.criterion.loss.pullback(self.criterion.loss_weights(self._evaluation))

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian with fixed worst-case weights, and with weights that change with the losses."""
        if self.sample is not None:
            self.sample.value(self._z)
            return self.sample.curvature()
        if self._known is None or not np.array_equal(self._known[0], self._z):
            fixed, changing = self.criterion.curvature(self.X, self._losses, self._evaluation)
            ridge = np.diag(self.ridge)
            penalised = fixed + ridge
            self._known = self._z, (penalised, penalised if changing is fixed else changing + ridge)
        return self._known[1]

    def _ridge_value(self) -> float:
        return 0.5 * float(self.ridge @ self._z**2)


def centred(X: FloatArray, centre: FloatArray, constant: BoolArray) -> FloatArray:
    """Subtract the centre; features that are `constant` (d,) among compared patients become exactly zero."""
    out: FloatArray = X - centre
    out[:, constant] = 0.0
    return out


def minimise_together(
    problems: Sequence[LinearProblem],
    start: FloatArray,
    scores: FloatArray,
    hessians: FloatArray,
    precision: float,
) -> list[FloatArray | None]:
    """Find the minima of K problems with the same features, from a start (d,), its scores (1, n) and Hessians there.

    Each round takes a step in all problems; their scores are one product with the features, and so are their gradients.
    A problem is solved if the square of the next step is expected to be less than the `precision`, relative to that of
    the coefficients; lengths are those of changes of the scores. It is None if the steps do not shrink fast.
    """
    columns, ridge = problems[0].network.columns, problems[0].ridge
    x, found = np.tile(start, (len(problems), 1)), dict[int, FloatArray]()
    memory, inverses = [_Steps(maxlen=_MEMORY) for _ in problems], [_inverse(hessian) for hessian in hessians]
    enough = [precision * float(start @ hessian @ start) for hessian in hessians]
    last: dict[int, tuple[FloatArray, FloatArray, float]] = {}
    left, slopes = list(range(len(problems))), np.empty((len(problems), columns.shape[1]))
    rows = np.broadcast_to(scores, slopes.shape)
    while left:
        for k, row, slope in zip(left, rows, slopes, strict=False):
            value = problems[k].value_of(x[k], row[None])
            # In place of the scores, which are not needed any more.
            slope[:] = problems[k].slopes()[0][0] if np.isfinite(value) else np.nan
            problems[k].forget()
        gradients, going = ridge * x[left], []
        for part in batches(columns.shape[1], _BLOCK):
            gradients += slopes[: len(left), part] @ columns[:, part].T
        for k, gradient in zip(left, gradients, strict=True):
            gap, shrinkage = float(gradient @ inverses[k] @ gradient), 1.0
            if k in last:
                step, before, last_gap = last[k]
                shrinkage = gap / last_gap
                memory[k].add(step, gradient - before)
            solved = gap * shrinkage <= enough[k]
            if solved or (gap < np.inf and (k not in last or shrinkage < _FAST)):
                step = memory[k].direction(gradient, inverses[k])
                x[k] += step
                last[k] = step, gradient, gap
                if solved:
                    found[k] = x[k]
                else:
                    going.append(k)
        left = going
        rows = np.matmul(x[left], columns, out=slopes[: len(left)])
    return [found.get(k) for k in range(len(problems))]
