"""What a metric that compares patients or groups is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from drosurv.evaluation.attributes import Attribute
from drosurv.evaluation.patients import Patients
from drosurv.evaluation.sheet import Sheet
from drosurv.inference import Draws, Extreme
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.target import FloatArray, IntArray

#: A number with its replicates: plain, or the largest of several differences.
Number = Draws | Extreme


@dataclass(frozen=True, eq=False)
class Between:
    """The patients of one attribute, or everybody, with the numbers that are already known of them.

    Parameters
    ----------
    name : str
        Where their numbers stand in the sheet: the attribute, or "overall".
    attribute : Attribute, optional
        Whose groups; the intersections of all attributes for everybody.
    patients : Patients
        Those that belong to a group, or everybody.
    rows : (m,) intp
        Which of all patients they are.
    X : (m, d) float64, optional
        Their standardised features.
    scale : float
        Hazard difference allowed per unit of feature distance in F_I.
    pairs : "auto", "all" or int
        How many pairs of patients are looked at.
    sheet : Sheet
        Numbers of groups, with their replicates.
    known : mapping
        Metric to a number that was made before this one, of everybody or of the attribute.
    """

    name: str
    attribute: Attribute | None
    patients: Patients
    rows: IntArray
    X: FloatArray | None
    scale: float
    pairs: Pairs
    sheet: Sheet
    known: Mapping[str, Number]

    def values(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Values (k,) of the groups and their replicates (replicates, k)."""
        assert self.attribute is not None
        return self.sheet.groups(self.name, self.attribute.labels, metric)

    def linear(self, value: float, influence: Callable[[], FloatArray]) -> Draws:
        """A value that is at least 0, with replicates to first order.

        Parameters
        ----------
        value : float
            On the patients themselves.
        influence : callable
            Returns the derivatives of the value in the patients' weights, (m,); not called without replicates.
        """

        def of_everyone() -> FloatArray:
            # Patients left out of the attribute have none.
            found = np.zeros(self.sheet.weights.shape[1])
            found[self.rows] = influence()
            return found

        return self.sheet.linear(value, of_everyone)
