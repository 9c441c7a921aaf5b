"""The convex problem of a linear Cox model over slabs of patients, wherever they lie."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol, Self

import numpy as np

from drosurv.objectives.objective import LossSums, Moments, Objective, WorstCase
from drosurv.solvers import slab_sums as kernels
from drosurv.solvers.arrays import fetched, in_numpy
from drosurv.solvers.convex import Problem
from drosurv.solvers.slab_sums import Bend
from drosurv.target import FloatArray

# The mean of a constant feature differs from it by no more than this share.
_LAST_DIGITS = 1e-14


class Workers(Protocol):
    """Who does the work on the slabs: this process, or a cluster."""

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """The result of the work on each slab, kept where it was computed."""

    def gather(self, results: list[Any]) -> list[Any]:
        """Results brought here."""


class Here:
    """Works in this process."""

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """One after the other."""
        return [work(*each) for each in zip(*arguments, strict=True)]

    def gather(self, results: list[Any]) -> list[Any]:
        """They are here."""
        return results


@dataclass(eq=False)
class Point:
    """Where a problem is; a problem and its smoothed forms are in one place.

    `theta` (d,) are the coefficients, `scores` and `losses` are of each slab, where it lies; `shift` is the highest
    score, `spread` its distance from the lowest.
    """

    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    scores: list[Any] = field(default_factory=list)
    losses: list[Any] = field(default_factory=list)
    shift: float = 0.0
    spread: float = 0.0


class SlabProblem(Problem):
    """Minimise over theta the objectives of the sides' losses at scores X theta, summed, plus l2/2 ||theta||^2.

    Slabs go from the longest to the shortest times; `size` is the number of features. These should be centred: the
    losses do not change, the rounding does. `centre` (d,) is what was subtracted: features are known up to the last
    digits of it. `rests` are for each side the mass of its patients without an event.
    """

    def __init__(
        self,
        slabs: Sequence[Any],
        size: int,
        rests: Sequence[float],
        objective: Objective,
        *,
        l2: float = 0.0,
        workers: Workers | None = None,
        centre: FloatArray | None = None,
    ) -> None:
        self.slabs, self.size, self.rests, self.objective = list(slabs), size, list(rests), objective
        self.smooth, self.tol = objective.smooth, objective.tol
        self.l2, self.price = l2, 0.0
        self._rounding = _LAST_DIGITS * np.abs(np.zeros(size) if centre is None else centre)
        self.workers: Workers = Here() if workers is None else workers
        self.at = Point()
        self.worst_cases: tuple[WorstCase, ...] = ()
        # For each slab what the events of the slabs after it pull, once it is known.
        self._after: list[Any] = []

    @property
    def spread(self) -> float:
        """Distance of the highest score from the lowest."""
        return self.at.spread

    def smoothed(self, smoothing: float) -> Self:
        """The same problem with a price on leaving the whole population."""
        other = copy.copy(self)
        other.price = smoothing
        return other

    def value(self, theta: FloatArray) -> float:
        """The objective at theta; the point stays current for the methods below."""
        at = self.at
        if not np.array_equal(at.theta, theta):
            self._move(theta)
        if not at.losses:
            return np.inf
        sides = range(len(self.rests))
        self.worst_cases = tuple(self.objective.from_sums(self._side(which), self.price) for which in sides)
        self._after = []
        return self._reached(sum(worst_case.value for worst_case in self.worst_cases) + self._ridge())

    def _move(self, theta: FloatArray) -> None:
        """Make theta the current point; without losses where a risk would underflow."""
        at = self.at
        # Let go of the last point first: two of them are much where there are many patients.
        at.theta, at.scores, at.losses = theta, [], []
        at.scores = self._each(kernels.scores, self._same(theta))
        lowest, highest, *risks = fetched(self._gathered(kernels.extent, at.scores)).T
        at.shift = float(highest.max())
        at.spread = at.shift - float(lowest.min())
        # The line search steps back from a risk that underflows, or the point counts as separated.
        if np.isfinite(at.spread) and at.spread <= 700.0:
            risk = np.stack(risks, axis=1) * np.exp(highest - at.shift)[:, None]
            at.losses = self._each(kernels.losses, at.scores, self._same(at.shift), _sums_before(risk))

    def _side(self, which: int) -> LossSums:
        """The losses of one side, those of patients without an event as one more loss of zero."""
        rest, losses = self.rests[which], self.at.losses

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
        lowest, highest = fetched(ends).T
        of_rest = [0.0] if rest > 0.0 else []
        start = self.worst_cases[which].eta if self.worst_cases else np.nan
        return LossSums(sums, members, min([*lowest, *of_rest]), max([*highest, *of_rest]), start)

    def lower_value(self) -> float:
        """The objective with the adversary's current weights held fixed."""
        return sum(worst_case.attained for worst_case in self.worst_cases) + self._ridge()

    def gradient(self) -> FloatArray:
        """Gradient at the current point."""
        slope: FloatArray = in_numpy(sum(self._gathered(kernels.gradient, *self._point())))
        return slope + self.l2 * self.at.theta

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives at the current point: with the weights held fixed, and with them following."""
        at = self.at
        by_risk = self._gathered(kernels.feature_risk, at.scores, self._same(at.shift))
        parts: list[tuple[Any, list[Bend | None]]] = self._gathered(
            kernels.curvature, *self._point(), _sums_before(by_risk)
        )
        fixed = in_numpy(sum(rigid for rigid, _ in parts))
        bent = np.zeros_like(fixed)
        for which, worst_case in enumerate(self.worst_cases):
            sides = [bend for _, bends in parts if (bend := bends[which]) is not None]
            if not sides:
                continue
            active, on_active, on_along = (in_numpy(sum(each)) for each in zip(*sides, strict=True))
            bent += worst_case.scale * active
            for scale, by_active, by_along in worst_case.terms:
                vector = by_active * on_active + by_along * on_along
                bent += scale * np.outer(vector, vector)
        # What is left of a constant feature is rounding, and must not pass for a signal.
        constant = np.diag(fixed) <= self._rounding**2
        for matrix in (fixed, bent):
            matrix[constant, :] = matrix[:, constant] = 0.0
        fixed += self.l2 * np.eye(self.size)
        return fixed, fixed + bent if bent.any() else fixed

    def event_weights(self) -> list[Any]:
        """For each slab the worst-case weights of its events, side by side."""
        return self._gathered(kernels.patient_weights, self.at.losses, self._same(self.worst_cases))

    def _point(self) -> tuple[list[Any], ...]:
        """The current point, and for each slab what the events of the slabs after it pull."""
        at = self.at
        here = at.scores, at.losses, self._same(at.shift), self._same(self.worst_cases)
        if not self._after:
            self._after = _sums_before(self._gathered(kernels.pulled, *here)[::-1])[::-1]
        return *here, self._after

    def _ridge(self) -> float:
        return 0.5 * self.l2 * float(self.at.theta @ self.at.theta)

    def _same(self, value: Any) -> list[Any]:
        return [value] * len(self.slabs)

    def _each(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.map(work, self.slabs, *arguments)

    def _gathered(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.gather(self._each(work, *arguments))


def _sums_before(parts: Sequence[Any]) -> list[Any]:
    """For each slab the sums over the slabs before it."""
    return list(accumulate(parts[:-1], initial=0.0 * parts[0]))
