"""The criterion of patients who are not trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drosurv.neighborhoods import Neighborhoods
from drosurv.solvers.criterion import Criterion
from drosurv.target import FloatArray, IntArray


def held_out(
    criterion: Criterion, rows: IntArray, watched: IntArray, trained_scores: Callable[[], FloatArray]
) -> Criterion | AroundTrained:
    """How well watched patients are served, by the criterion of all that the other rows are trained on.

    `trained_scores` gives the scores (B, len(rows)) of those.
    """
    if criterion.neighborhoods is None:
        return criterion.take(watched)
    return AroundTrained(criterion, criterion.neighborhoods, rows, watched, trained_scores)


class AroundTrained:
    """The worst case that training found, as the watched patients fare in it.

    Where losses are averaged over neighbourhoods, training says which of these are worst off, and the watched say how
    they fare: a watched patient has the weight of the trained patients around them. The watched alone are too few to
    say both: the worst of averages over few patients are chance, more so the farther apart the scores, and training
    would stop long before it serves anybody.
    """

    recordable = False

    def __init__(
        self,
        criterion: Criterion,
        around: Neighborhoods,
        rows: IntArray,
        watched: IntArray,
        trained_scores: Callable[[], FloatArray],
    ) -> None:
        self._trained, self._watched = criterion.take(rows), criterion.take(watched)
        self._around, self._places, self._trained_scores = around, (rows, watched), trained_scores

    def __call__(self, scores: FloatArray, extra: FloatArray | None = None) -> tuple[FloatArray]:
        """Values (B,) at scores (B, m) of the watched and extra parameters (B, K), where a criterion has them."""
        self._trained(self._trained_scores(), extra)
        tilt = self._near_watched(self._trained.loss.everyone(self._trained.weights))
        mass = self._near_watched(self._trained.patient_mass[None])
        # Somebody without any trained patient around counts for nothing.
        weight = np.divide(tilt, mass, out=np.zeros_like(tilt), where=mass > 0) * self._watched.patient_mass
        regrets = self._watched.regrets(scores, extra)
        return (np.asarray((weight * regrets).sum(axis=-1) / weight.sum(axis=-1)),)

    def _near_watched(self, values: FloatArray) -> FloatArray:
        """Averages (B, m) of what the trained patients have, over the neighbourhoods of the watched."""
        rows, watched = self._places
        everybody = np.zeros((len(values), len(rows) + len(watched)))
        everybody[:, rows] = values
        return self._around.average(everybody)[:, watched]
