"""A sum of objectives, each over its own patients."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from drosurv.objectives.objective import Curvature, Evaluation, Objective
from drosurv.target import FloatArray, IntArray


class Blocks(Objective):
    """The sum over blocks of patients, by their disjoint rows, of one objective of each block's losses."""

    def __init__(self, objective: Objective, rows: Sequence[IntArray]) -> None:
        self.smooth, self.tol, self.rows = objective.smooth, objective.tol, list(rows)
        # An objective may remember its last losses.
        self.parts = [copy.copy(objective) for _ in self.rows]
        self._mass: FloatArray | None = None
        self._own: list[FloatArray] = []

    def smoothed(self, smoothing: float) -> Blocks:
        """Every block's objective in its smoothed form."""
        return Blocks(self.parts[0].smoothed(smoothing), self.rows)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Summed value; weights that sum to one in each block; the thresholds side by side, (B, blocks)."""
        weights = np.zeros_like(losses)
        values, etas = np.zeros(len(losses)), []
        for part, rows, own in zip(self.parts, self.rows, self.shares(mass), strict=True):
            here = part(losses.take(rows, axis=1), own)
            values += here.value
            weights[:, rows] = here.weights
            etas.append(here.eta)
        return Evaluation(values, weights, np.stack(etas, axis=-1))

    def shares(self, mass: FloatArray) -> list[FloatArray]:
        """Masses inside each block, summing to one; kept while the same masses come."""
        if mass is not self._mass:
            self._mass, self._own = mass, [mass[rows] / mass[rows].sum() for rows in self.rows]
        return self._own

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """The blocks' second derivatives, each on its own patients."""
        n = len(losses)
        diagonal, scales, vectors = np.zeros(n), [np.zeros(0)], [np.zeros((0, n))]
        for j, (part, rows) in enumerate(zip(self.parts, self.rows, strict=True)):
            own = Evaluation(at.value, at.weights[:, rows], at.eta[:, j])
            here = part.curvature(losses[rows], self.shares(mass)[j], own)
            if here is not None:
                diagonal[rows] = here.diagonal
                wide = np.zeros((len(here.scales), n))
                wide[:, rows] = here.vectors
                scales.append(here.scales)
                vectors.append(wide)
        return Curvature(diagonal, np.concatenate(scales), np.concatenate(vectors))
