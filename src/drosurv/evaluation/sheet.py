"""Numbers with their bootstrap replicates, where each stands, and what a metric that compares is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drosurv.evaluation.attributes import EVERYONE, Attribute
from drosurv.evaluation.patients import Patients
from drosurv.inference import Draws, Number
from drosurv.target import FloatArray

# Attribute and metric.
Key = tuple[str, str]


class Place(NamedTuple):
    """Which number it is: the metric of a group of an attribute."""

    attribute: str
    group: str
    metric: str


@dataclass(frozen=True, eq=False)
class Sheet:
    """Values of k numbers on the patients (k,) and on every replicate (replicates, k), NaN where undefined.

    The weights (replicates, n) say how often each patient was drawn.
    """

    places: Sequence[Place]
    estimate: FloatArray
    draws: FloatArray
    weights: NDArray[np.uint16]

    @cached_property
    def _column(self) -> dict[Place, int]:
        return {place: k for k, place in enumerate(self.places)}

    def __contains__(self, place: Place) -> bool:
        return place in self._column

    def __getitem__(self, place: Place) -> Draws:
        k = self._column[place]
        return Draws(float(self.estimate[k]), self.draws[:, k])

    @property
    def undefined(self) -> list[Place]:
        """Those without a value on the patients themselves."""
        return [place for place, value in zip(self.places, self.estimate, strict=True) if np.isnan(value)]

    def groups(self, attribute: str, labels: Sequence[str], metric: str) -> tuple[FloatArray, FloatArray]:
        """Values (k,) of an attribute's groups and their replicates (replicates, k)."""
        columns = [self._column[Place(attribute, label, metric)] for label in labels]
        return self.estimate[columns], self.draws[:, columns]


@dataclass(frozen=True, eq=False)
class Between:
    """The patients of one attribute, or everybody, with the numbers that are already known of them.

    Their numbers stand in the sheet under `name`: the attribute, or "overall". Of everybody, the groups are the
    intersections of all attributes.
    """

    name: str
    attribute: Attribute | None
    patients: Patients
    sheet: Sheet
    known: Mapping[Key, Number]

    def number(self, metric: str) -> Number:
        """The attribute's own number, or else that of everybody."""
        own = self.name, metric
        return self.known[own if own in self.known else (EVERYONE, metric)]

    def values(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Values (k,) of the groups and their replicates (replicates, k)."""
        assert self.attribute is not None
        return self.sheet.groups(self.name, self.attribute.labels, metric)

    def linear(self, value: float, influence: Callable[[], FloatArray]) -> Draws:
        """Replicates, to first order, of a value that is at least 0.

        Its derivatives in the patients' weights (m,) are asked for only if there are replicates.
        """
        weights = self.sheet.weights
        if len(weights) == 0:
            return Draws(value, np.empty(0), lowest=0.0)
        slopes = influence()
        own = weights if self.patients.rows is None else weights[:, self.patients.rows]
        return Draws(value, value + own @ slopes - slopes.sum(), lowest=0.0)
