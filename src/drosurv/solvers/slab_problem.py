"""The convex problem of a linear Cox model over slabs of patients, wherever they lie."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from drosurv.objectives import Objective
from drosurv.objectives.tilt import Moments, Spread, Tilt
from drosurv.solvers import slab_sums as kernels
from drosurv.solvers.slab_sums import Bend, Extent
from drosurv.target import FloatArray

_SEPARATED = 500.0
_VANISHED = 1e-10


class Workers(Protocol):
    """Who does the work on the slabs: this process, or a cluster."""

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """The result of the work on each slab, kept where it was computed."""
        ...

    def gather(self, results: list[Any]) -> list[Any]:
        """Results brought here."""
        ...


class Here:
    """Works in this process."""

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """One after the other."""
        return [work(*each) for each in zip(*arguments, strict=True)]

    def gather(self, results: list[Any]) -> list[Any]:
        """They are here."""
        return results


class SlabProblem:
    """Minimise over theta the objectives of the sides' losses at scores X theta, summed, plus l2/2 ||theta||^2.

    Parameters
    ----------
    slabs : sequence of Slab
        From the longest to the shortest times. Features should be centred: the losses do not change, the rounding
        does.
    size : int
        Number of features.
    rests : sequence of float
        For each side the mass of its patients without an event.
    objective : Objective
        Of a side's losses: one that sums alone give.
    l2 : float
        Ridge weight.
    workers : Workers
        Who does the work.
    """

    sample = None

    def __init__(
        self,
        slabs: Sequence[Any],
        size: int,
        rests: Sequence[float],
        objective: Objective,
        *,
        l2: float = 0.0,
        workers: Workers | None = None,
    ) -> None:
        self.slabs, self.size, self.rests, self.objective = list(slabs), size, list(rests), objective
        self.l2, self.price = l2, 0.0
        self.workers: Workers = Here() if workers is None else workers
        self.theta: FloatArray = np.zeros(size)
        self.tilts: tuple[Tilt, ...] = ()
        # Scores of each slab at the current point, and the highest of all.
        self.scores: list[Any] = []
        self._losses: list[Any] = []
        self.shift = self._spread = 0.0
        self._first = self._last = np.nan

    @property
    def smooth(self) -> bool:
        """Whether the objective is differentiable."""
        return self.objective.smooth or self.price > 0.0

    @property
    def tol(self) -> float:
        """Relative gap at which to stop, unless the user says otherwise."""
        return self.objective.tol

    def smoothed(self, smoothing: float) -> SlabProblem:
        """The same problem with a price on leaving the whole population."""
        other = copy.copy(self)
        other.price = smoothing
        return other

    def scale(self, value: float) -> float:
        """Gaps are relative to the objective itself."""
        return abs(value)

    @property
    def separated(self) -> bool:
        """Whether the optimum lies at infinity."""
        return abs(self._last) <= _VANISHED * abs(self._first) or self._spread > _SEPARATED

    def value(self, theta: FloatArray) -> float:
        """The objective at theta; the point stays current for the methods below."""
        # Let go of the last point first: two of them are much where there are many patients.
        self.theta, self.scores, self._losses = theta, [], []
        self.scores = self._each(kernels.scores, self._same(theta))
        extents: list[Extent] = self._gathered(kernels.extent, self.scores)
        self.shift = max(each.highest for each in extents)
        self._spread = self.shift - min(each.lowest for each in extents)
        if not np.isfinite(self._spread) or self._spread > 700.0:
            # A risk would underflow: the line search steps back, or the point counts as separated.
            return np.inf
        risks = [tuple(risk * np.exp(each.highest - self.shift) for risk in each.risk) for each in extents]
        self._losses = self._each(kernels.losses, self.scores, self._same(self.shift), _sums_before(risks))
        (tilt,) = self.objective.tilts
        self.tilts = tuple(tilt(self._side(which), price=self.price) for which in range(len(self.rests)))
        self._last = sum(tilt.value for tilt in self.tilts) + self._ridge()
        self._first = self._last if np.isnan(self._first) else self._first
        return self._last

    def _side(self, which: int) -> Spread:
        """The losses of one side, those of patients without an event as one more loss of zero."""
        rest = self.rests[which]

        def sums(low: float, high: float, base: float) -> Moments:
            found = self._gathered(
                kernels.moments, self._losses, *(self._same(value) for value in (which, low, high, base))
            )
            mass = rest if low < 0.0 < high else 0.0
            of_rest = (rest * (high <= 0.0), mass, -mass * base, mass * base**2)
            summed = sum(found[1:], start=found[0]).tolist()
            return Moments(*(own + other for own, other in zip(summed, of_rest, strict=True)))

        ends = self.workers.gather(self.workers.map(kernels.bounds, self._losses, self._same(which)))
        ends += [(0.0, 0.0)] if rest > 0.0 else []
        return Spread(sums, min(low for low, _ in ends), max(high for _, high in ends))

    def lower_value(self, theta: FloatArray) -> float:
        """The objective at theta with the adversary's current weights held fixed."""
        return sum(tilt.attained for tilt in self.tilts) + self._ridge()

    def gradient(self) -> FloatArray:
        """Gradient at the current point."""
        parts = self._gathered(
            kernels.gradient, self.scores, self._losses, *self._point(), self._pulled_after()
        )
        slope: FloatArray = np.sum(parts, axis=0) + self.l2 * self.theta
        return slope

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives at the current point: with the weights held fixed, and with them following."""
        by_risk = self._gathered(kernels.feature_risk, self.scores, self._same(self.shift))
        parts: list[list[Bend]] = self._gathered(
            kernels.curvature,
            self.scores,
            self._losses,
            *self._point(),
            self._pulled_after(),
            [list(each) for each in _sums_before(by_risk)],
        )
        fixed = self.l2 * np.eye(self.size)
        bent = np.zeros_like(fixed)
        for which, tilt in enumerate(self.tilts):
            sides = [part[which] for part in parts]
            fixed = fixed + sum(side.fixed for side in sides)
            if tilt.scale <= 0.0:
                continue
            bent += tilt.scale * sum(side.active for side in sides)
            on_active, on_along = sum(side.on_active for side in sides), sum(side.on_along for side in sides)
            for scale, by_active, by_along in tilt.terms:
                vector = by_active * on_active + by_along * on_along
                bent += scale * np.outer(vector, vector)
        return fixed, fixed + bent if bent.any() else fixed

    def event_weights(self) -> list[Any]:
        """For each slab the worst-case weights of its events, side by side."""
        return self._gathered(kernels.patient_weights, self._losses, self._same(self.tilts))

    def _point(self) -> tuple[list[Any], list[Any]]:
        return self._same(self.shift), self._same(self.tilts)

    def _pulled_after(self) -> list[tuple[float, ...]]:
        """For each slab what the events of the slabs after it pull."""
        pulled = self._gathered(kernels.pulled, self.scores, self._losses, *self._point())
        return _sums_before(pulled[::-1])[::-1]

    def _ridge(self) -> float:
        return 0.5 * self.l2 * float(self.theta @ self.theta)

    def _same(self, value: Any) -> list[Any]:
        return [value] * len(self.slabs)

    def _each(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.map(work, self.slabs, *arguments)

    def _gathered(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        return self.workers.gather(self._each(work, *arguments))


def _sums_before(parts: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """For each slab the sums over the slabs before it, side by side."""
    zero = tuple(0.0 * value for value in parts[0])
    running = accumulate(
        parts[:-1], lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), initial=zero
    )
    return list(running)
