"""Numbers of many cells, on the patients and on bootstrap replicates of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drosurv.inference import Draws
from drosurv.target import FloatArray


class Cell(NamedTuple):
    """What one number is: the metric of a group of an attribute."""

    attribute: str
    group: str
    metric: str


@dataclass(frozen=True, eq=False)
class Sheet:
    """Values of k cells on the patients and on every replicate.

    Parameters
    ----------
    cells : sequence of k Cell
        What they are.
    estimate : (k,) float64
        On the patients themselves.
    draws : (replicates, k) float64
        On the replicates; NaN where undefined.
    weights : (replicates, n) uint16
        How often each patient was drawn.
    """

    cells: Sequence[Cell]
    estimate: FloatArray
    draws: FloatArray
    weights: NDArray[np.uint16]

    @cached_property
    def _place(self) -> dict[Cell, int]:
        return {cell: k for k, cell in enumerate(self.cells)}

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._place

    def __getitem__(self, cell: Cell) -> Draws:
        k = self._place[cell]
        return Draws(float(self.estimate[k]), self.draws[:, k])

    @property
    def undefined(self) -> list[Cell]:
        """Cells without a value on the patients themselves."""
        return [cell for cell, value in zip(self.cells, self.estimate, strict=True) if np.isnan(value)]

    def groups(self, attribute: str, labels: Sequence[str], metric: str) -> tuple[FloatArray, FloatArray]:
        """Values (k,) of an attribute's groups and their replicates (replicates, k)."""
        places = [self._place[Cell(attribute, label, metric)] for label in labels]
        return self.estimate[places], self.draws[:, places]

    def linear(self, value: float, influence: Callable[[], FloatArray]) -> Draws:
        """Replicates, to first order, of a value that is at least 0.

        Parameters
        ----------
        value : float
            On the patients themselves.
        influence : callable
            Returns the derivatives of the value in the patients' weights, (n,); not called without replicates.
        """
        if len(self.weights) == 0:
            return Draws(value, np.empty(0), lowest=0.0)
        slopes = influence()
        return Draws(value, value + self.weights @ slopes - slopes.sum(), lowest=0.0)
