"""The baseline again: once a group's hazards are right, everyone's hazard over time can be too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drosurv.target import FloatArray, Target

N_INTERVALS = 20
# So many events as expected are added to every interval, which keeps short ones from jumping.
SHRINKAGE = 10.0


@dataclass(frozen=True)
class BaselineFactor:
    """What hazards are multiplied by in each interval of time.

    There are k edges, from 0, and k factors: the last interval has no end.

    Under proportional hazards this is Breslow's baseline on intervals. It needs only cumulative hazards, so it serves
    every model.
    """

    edges: FloatArray
    factors: FloatArray

    @staticmethod
    def intervals(target: Target) -> FloatArray:
        """Edges between quantiles of the event times."""
        inner = np.quantile(target.time[target.event], np.linspace(0, 1, N_INTERVALS + 1)[1:-1])
        return np.unique(np.concatenate([[0.0], inner[inner > 0]]))

    @staticmethod
    def learn(
        edges: FloatArray, at_edges: FloatArray, own: FloatArray, r: FloatArray, target: Target
    ) -> BaselineFactor:
        """Events over expected ones in each interval, each patient's expectation made without him.

        Cumulative hazards are given where intervals begin, (n, k), and at the patients' own times (n,); r (n,) are
        the log hazard ratios of the repairs.
        """
        # Cumulative hazards do not fall, so the smaller one is that of the earlier time.
        reached = np.column_stack([np.minimum(at_edges, own[:, None]), own])
        expected = np.exp(r) @ np.diff(reached, axis=1)
        interval = np.searchsorted(edges, target.time, side="left") - 1
        events = np.bincount(np.maximum(interval, 0), target.event, minlength=len(edges))
        return BaselineFactor(edges, (events + SHRINKAGE) / (expected + SHRINKAGE))

    def applied(self, hazard: Callable[[FloatArray], FloatArray], times: FloatArray) -> FloatArray:
        """Cumulative hazards (n, T) at the times, from those before, a function of times."""
        found = hazard(np.concatenate([self.edges, times]))
        at_edges, at_times = found[:, : len(self.edges)], found[:, len(self.edges) :]
        out = np.zeros_like(at_times)
        for m, factor in enumerate(self.factors):
            low = at_edges[:, [m]]
            high = at_edges[:, [m + 1]] if m + 1 < len(self.edges) else np.inf
            out += factor * np.clip(at_times - low, 0.0, high - low)
        return out
