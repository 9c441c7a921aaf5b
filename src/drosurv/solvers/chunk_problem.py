"""The convex problem of a linear Cox model over chunks of patients, on an accelerator, on disk or on a cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol, Self

import numpy as np

from drosurv.objectives.objective import LossSums, Moments, Objective, WorstCase
from drosurv.patients.target import FloatArray
from drosurv.solvers import chunk_likelihood as kernels
from drosurv.solvers.arrays import in_numpy, stack_in_numpy
from drosurv.solvers.chunk_likelihood import At, WeightTerms
from drosurv.solvers.convex import ConvexProblem

# Relative rounding error of the mean of a constant feature.
_ROUNDING = 1e-14


# On a cluster, losses of at most this many events are copied to this process at every point: one round trip instead of
# ten to twenty, each of which takes longer than summing as many losses.
_COPIED = 1 << 21


class Workers(Protocol):
    """Runs functions on the chunks, in this process or on a cluster."""

    # Whether results are in another process.
    remote: bool

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call a function for each chunk; the results stay where they were computed."""

    def gather(self, results: list[Any]) -> list[Any]:
        """Copy results to this process."""


class LocalWorkers:
    """Runs functions in this process, for one chunk after the other or in a few threads."""

    remote = False

    def __init__(self, n_threads: int = 0) -> None:
        self._map: Any = ThreadPoolExecutor(n_threads).map if n_threads else map

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call a function for each chunk."""
        return list(self._map(work, *arguments))

    def gather(self, results: list[Any]) -> list[Any]:
        """Return the results."""
        return results


@dataclass(eq=False)
class Point:
    """The current point, shared by a problem and its smoothed versions.

    `theta` (d,) are the coefficients, `at` is the point as each chunk needs it, empty if a risk would underflow;
    `spread` is the highest minus the lowest score, and `losses` has the losses of each half that were copied to this
    process, None if they are not.
    """

    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    at: list[At] = field(default_factory=list)
    spread: float = 0.0
    losses: list[FloatArray] | None = None


class ChunkProblem(ConvexProblem):
    """The summed objectives of the halves at scores X theta, plus l2/2 ||theta||^2, as a function of theta (`size`,).

    Chunks are from the longest to the shortest times, and their features are centred at `centre` (d,), which reduces
    rounding errors. `rests` are for each half the mass of its patients without an event. On a cluster, the number of
    events decides whether losses are copied to this process. The workers are this process by default.
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
        n_events: int = 0,
    ) -> None:
        self.chunks, self.size, self.rests, self.objective = list(chunks), size, list(rests), objective
        self.smooth, self.tol = objective.smooth, objective.tol
        self.l2, self.smoothing = l2, 0.0
        self._rounding = _ROUNDING * np.abs(np.zeros(size) if centre is None else centre)
        self.workers: Workers = LocalWorkers() if workers is None else workers
        self.point = Point()
        self.worst_cases: tuple[WorstCase, ...] = ()
        # Masses of the events of each half, if losses are copied to this process; they are copied once.
        self._masses: list[FloatArray] | None = None
        if self.workers.remote and n_events <= _COPIED:
            self._masses = _joined(self._gathered(kernels.masses))
        # For each chunk the sums of q_i / S_i over the chunks after it; empty until they are computed.
        self._after: list[Any] = []
        # The parts of gradient and Hessian from each chunk, where they are computed together.
        self._slopes: list[Any] = []

    @property
    def spread(self) -> float:
        """Difference between the highest and the lowest score."""
        return self.point.spread

    def smoothed(self, smoothing: float) -> Self:
        """Return the same problem with a smoothed objective."""
        other = copy.copy(self)
        other.smoothing, other.sample = smoothing, None
        return other

    def value(self, theta: FloatArray) -> float:
        """Return the objective at theta, the current point of the methods below."""
        point = self.point
        if not np.array_equal(point.theta, theta):
            self._move(theta)
        if not point.at:
            return np.inf
        sides = range(len(self.rests))
        self.worst_cases = tuple(
            self.objective.from_sums(self._side(which), self.smoothing) for which in sides
        )
        self._after, self._slopes = [], []
        return self._store(sum(worst_case.value for worst_case in self.worst_cases) + self._ridge())

    def _move(self, theta: FloatArray) -> None:
        """Make theta the current point; its losses are empty if a risk would underflow."""
        point = self.point
        point.theta, point.at, point.losses = theta, [], None
        lowest, highest, *risks = stack_in_numpy(self._gathered(kernels.extent, self._same(theta))).T
        shift = float(highest.max())
        point.spread = shift - float(lowest.min())
        # If a risk underflows, the objective is infinite and the line search takes a smaller step.
        if np.isfinite(point.spread) and point.spread <= 700.0:
            risk = np.stack(risks, axis=1) * np.exp(highest - shift)[:, None]
            point.at = [At(theta, shift, before) for before in _sums_before(risk)]
            if self._masses is not None:
                point.losses = _joined(self._gathered(kernels.loss_values, point.at))

    def _side(self, which: int) -> LossSums:
        """Return the sums over the losses of one half; patients without an event are one more loss of zero."""
        rest, at = self.rests[which], self.point.at
        start = self.worst_cases[which].eta if self.worst_cases else np.nan
        if self.point.losses is not None and self._masses is not None:
            values, masses = self.point.losses[which], self._masses[which]
            if rest > 0.0:
                values, masses = np.append(values, 0.0), np.append(masses, rest)
            return LossSums.of(values, masses, start)

        def sums(low: float, high: float, base: float) -> Moments:
            found = self._gathered(kernels.moments, at, *map(self._same, (which, low, high, base)))
            mass = rest if low < 0.0 < high else 0.0
            of_rest = (rest * (high <= 0.0), mass, -mass * base, mass * base**2)
            return Moments(*(in_numpy(sum(found)) + of_rest).tolist())

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            found = self._gathered(kernels.members, at, *map(self._same, (which, low, high)))
            found += [(np.zeros(1), np.array([rest]))] if rest > 0.0 and low < 0.0 <= high else []
            values, masses = zip(*found, strict=True)
            return np.concatenate(values), np.concatenate(masses)

        lowest, highest = stack_in_numpy(self._gathered(kernels.bounds, at, self._same(which))).T
        of_rest = [0.0] if rest > 0.0 else []
        return LossSums(sums, members, min([*lowest, *of_rest]), max([*highest, *of_rest]), start)

    def lower_value(self) -> float:
        """Return the objective with the worst-case weights fixed."""
        return sum(worst_case.attained for worst_case in self.worst_cases) + self._ridge()

    def gradient(self) -> FloatArray:
        """Return the gradient."""
        parts = (
            [part for part, _ in self._in_one_trip()]
            if self._far
            else self._gathered(kernels.gradient, *self._point())
        )
        slope: FloatArray = in_numpy(sum(parts))
        return slope + self.l2 * self.point.theta

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian with fixed worst-case weights, and with weights that change with the losses."""
        if self.sample is not None:
            return self.sample.curvature()
        parts: list[tuple[Any, list[WeightTerms | None]]]
        if self._far:
            parts = [part for _, part in self._in_one_trip()]
        else:
            before: list[Any] = [np.zeros((len(self.rests), self.size))]
            if len(self.chunks) > 1:
                before = _sums_before(self._gathered(kernels.feature_risk, self.point.at))
            parts = self._gathered(kernels.curvature, *self._point(), before)
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
        return self._gathered(kernels.patient_weights, self.point.at, self._same(self.worst_cases))

    @property
    def _far(self) -> bool:
        """Whether gradient and Hessian are computed together: on a cluster a round trip takes longer than either."""
        return self.workers.remote and self.sample is None

    def _in_one_trip(self) -> list[Any]:
        """Return for each chunk its parts of the gradient and of the Hessian."""
        if not self._slopes:
            here = self.point.at, self._same(self.worst_cases)
            pulled, risks = zip(*self._gathered(kernels.sums_of_chunk, *here), strict=True)
            self._after = _sums_before(pulled[::-1])[::-1]
            self._slopes = self._gathered(kernels.slopes, *here, self._after, _sums_before(risks))
        return self._slopes

    def _point(self) -> tuple[list[Any], ...]:
        """Return the current point, and for each chunk the sums of q_i / S_i over the chunks after it."""
        here = self.point.at, self._same(self.worst_cases)
        if not self._after and len(self.chunks) == 1:
            self._after = [np.zeros(len(self.rests))]
        elif not self._after:
            self._after = _sums_before(self._gathered(kernels.pulled, *here)[::-1])[::-1]
        return *here, self._after

    def _ridge(self) -> float:
        return 0.5 * self.l2 * float(self.point.theta @ self.point.theta)

    def _same(self, value: Any) -> list[Any]:
        return [value] * len(self.chunks)

    def _gathered(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.gather(self.workers.map(work, self.chunks, *arguments))


def _joined(by_chunk: list[list[FloatArray]]) -> list[FloatArray]:
    """Join the arrays of each half over the chunks."""
    return [np.concatenate(of_half) for of_half in zip(*by_chunk, strict=True)]


def _sums_before(parts: Sequence[Any]) -> list[Any]:
    """Return for each chunk the sums over the chunks before it."""
    return list(accumulate(parts[:-1], initial=0.0 * parts[0]))
