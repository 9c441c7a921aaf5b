"""The convex problem of a linear Cox model over chunks of patients, on an accelerator, on disk or on a cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol, Self

import numpy as np

from drosurv.objectives.objective import LossSums, Moments, Objective, WorstCase
from drosurv.solvers import chunks as kernels
from drosurv.solvers.arrays import in_numpy, stack_in_numpy
from drosurv.solvers.chunks import WeightTerms
from drosurv.solvers.convex import ConvexProblem
from drosurv.target import FloatArray

# Relative rounding error of the mean of a constant feature.
_ROUNDING = 1e-14


class Workers(Protocol):
    """Runs functions on the chunks, in this process or on a cluster."""

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call a function for each chunk; the results stay where they were computed."""

    def gather(self, results: list[Any]) -> list[Any]:
        """Copy results to this process."""


class LocalWorkers:
    """Runs functions in this process."""

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call a function for one chunk after the other."""
        return [work(*each) for each in zip(*arguments, strict=True)]

    def gather(self, results: list[Any]) -> list[Any]:
        """Return the results."""
        return results


@dataclass(eq=False)
class Point:
    """The current point, shared by a problem and its smoothed versions.

    `theta` (d,) are the coefficients; `scores` and `losses` hold one entry for each chunk, on its device; `shift` is
    the highest score, `spread` the highest minus the lowest.
    """

    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    scores: list[Any] = field(default_factory=list)
    losses: list[Any] = field(default_factory=list)
    shift: float = 0.0
    spread: float = 0.0


class ChunkProblem(ConvexProblem):
    """The summed objectives of the halves at scores X theta, plus l2/2 ||theta||^2, as a function of theta.

    Parameters
    ----------
    chunks : sequence of Chunk
        Chunks of patients from the longest to the shortest times, with centred features, which reduces rounding errors.
    size : int
        Number of features.
    rests : sequence of float
        For each half the mass of its patients without an event.
    objective : Objective
        Combines the losses of each half into one number.
    l2 : float
        Ridge penalty.
    workers : Workers, optional
        This process by default.
    centre : (d,), optional
        Means that were subtracted from the features.
    """

    def __init__(
        self,
        chunks: Sequence[Any],
        size: int,
        rests: Sequence[float],
        objective: Objective,
        *,
        l2: float = 0.0,
        workers: Workers | None = None,
        centre: FloatArray | None = None,
    ) -> None:
        self.chunks, self.size, self.rests, self.objective = list(chunks), size, list(rests), objective
        self.smooth, self.tol = objective.smooth, objective.tol
        self.l2, self.smoothing = l2, 0.0
        self._rounding = _ROUNDING * np.abs(np.zeros(size) if centre is None else centre)
        self.workers: Workers = LocalWorkers() if workers is None else workers
        self.point = Point()
        self.worst_cases: tuple[WorstCase, ...] = ()
        # For each chunk the sums of q_i / S_i over the chunks after it; empty until they are computed.
        self._after: list[Any] = []

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""
        return self.point.spread

    def smoothed(self, smoothing: float) -> Self:
        """Return the same problem with a smoothed objective."""
        other = copy.copy(self)
        other.smoothing = smoothing
        return other

    def value(self, theta: FloatArray) -> float:
        """Return the objective at theta, the current point of the methods below."""
        point = self.point
        if not np.array_equal(point.theta, theta):
            self._move(theta)
        if not point.losses:
            return np.inf
        sides = range(len(self.rests))
        self.worst_cases = tuple(
            self.objective.from_sums(self._side(which), self.smoothing) for which in sides
        )
        self._after = []
        return self._store(sum(worst_case.value for worst_case in self.worst_cases) + self._ridge())

    def _move(self, theta: FloatArray) -> None:
        """Make theta the current point; its losses are empty if a risk would underflow."""
        point = self.point
        # Free the memory of the last point first: with many patients, two points need much memory.
        point.theta, point.scores, point.losses = theta, [], []
        point.scores = self._each(kernels.scores, self._same(theta))
        lowest, highest, *risks = stack_in_numpy(self._gathered(kernels.extent, point.scores)).T
        point.shift = float(highest.max())
        point.spread = point.shift - float(lowest.min())
        # If a risk underflows, the objective is infinite and the line search takes a smaller step.
        if np.isfinite(point.spread) and point.spread <= 700.0:
            risk = np.stack(risks, axis=1) * np.exp(highest - point.shift)[:, None]
            point.losses = self._each(
                kernels.losses, point.scores, self._same(point.shift), _sums_before(risk)
            )

    def _side(self, which: int) -> LossSums:
        """Return the sums over the losses of one half; patients without an event are one more loss of zero."""
        rest, losses = self.rests[which], self.point.losses

        def sums(low: float, high: float, base: float) -> Moments:
            found = self._gathered(kernels.moments, losses, *map(self._same, (which, low, high, base)))
            mass = rest if low < 0.0 < high else 0.0
            of_rest = (rest * (high <= 0.0), mass, -mass * base, mass * base**2)
            return Moments(*(in_numpy(sum(found)) + of_rest).tolist())

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            found = self._gathered(kernels.members, losses, *map(self._same, (which, low, high)))
            found += [(np.zeros(1), np.array([rest]))] if rest > 0.0 and low < 0.0 <= high else []
            values, masses = zip(*found, strict=True)
            return np.concatenate(values), np.concatenate(masses)

        ends = self.workers.gather(self.workers.map(kernels.bounds, losses, self._same(which)))
        lowest, highest = stack_in_numpy(ends).T
        of_rest = [0.0] if rest > 0.0 else []
        start = self.worst_cases[which].eta if self.worst_cases else np.nan
        return LossSums(sums, members, min([*lowest, *of_rest]), max([*highest, *of_rest]), start)

    def lower_value(self) -> float:
        """Return the objective with the worst-case weights fixed."""
        return sum(worst_case.attained for worst_case in self.worst_cases) + self._ridge()

    def gradient(self) -> FloatArray:
        """Return the gradient."""
        slope: FloatArray = in_numpy(sum(self._gathered(kernels.gradient, *self._point())))
        return slope + self.l2 * self.point.theta

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian with fixed worst-case weights, and with weights that change with the losses."""
        point = self.point
        by_risk = self._gathered(kernels.feature_risk, point.scores, self._same(point.shift))
        parts: list[tuple[Any, list[WeightTerms | None]]] = self._gathered(
            kernels.curvature, *self._point(), _sums_before(by_risk)
        )
        fixed = in_numpy(sum(hessian for hessian, _ in parts))
        by_weights = np.zeros_like(fixed)
        for which, worst_case in enumerate(self.worst_cases):
            found = [sums for _, by_half in parts if (sums := by_half[which]) is not None]
            if not found:
                continue
            squares, sums, excess_sums = (in_numpy(sum(each)) for each in zip(*found, strict=True))
            by_weights += worst_case.scale * squares
            for scale, by_active, by_excess in worst_case.terms:
                vector = by_active * sums + by_excess * excess_sums
                by_weights += scale * np.outer(vector, vector)
        # A centred constant feature consists of rounding errors, and must not count as varying.
        constant = np.diag(fixed) <= self._rounding**2
        for matrix in (fixed, by_weights):
            matrix[constant, :] = matrix[:, constant] = 0.0
        fixed += self.l2 * np.eye(self.size)
        return fixed, fixed + by_weights if by_weights.any() else fixed

    def event_weights(self) -> list[Any]:
        """Return for each chunk the worst-case weights of its events, by half."""
        return self._gathered(kernels.patient_weights, self.point.losses, self._same(self.worst_cases))

    def _point(self) -> tuple[list[Any], ...]:
        """Return the current point, and for each chunk the sums of q_i / S_i over the chunks after it."""
        point = self.point
        here = point.scores, point.losses, self._same(point.shift), self._same(self.worst_cases)
        if not self._after:
            self._after = _sums_before(self._gathered(kernels.pulled, *here)[::-1])[::-1]
        return *here, self._after

    def _ridge(self) -> float:
        return 0.5 * self.l2 * float(self.point.theta @ self.point.theta)

    def _same(self, value: Any) -> list[Any]:
        return [value] * len(self.chunks)

    def _each(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.map(work, self.chunks, *arguments)

    def _gathered(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.gather(self._each(work, *arguments))


def _sums_before(parts: Sequence[Any]) -> list[Any]:
    """Return for each chunk the sums over the chunks before it."""
    return list(accumulate(parts[:-1], initial=0.0 * parts[0]))
