"""What a metric is: a record of what it tells and needs, and what one that compares groups is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from drosurv.evaluation.patients import Patients
from drosurv.groups import Groups
from drosurv.inference import Draws, Method, Number
from drosurv.target import FloatArray

Better = Literal["higher", "lower", "near 1", "near 0", ""]
Of = Literal["patients", "groups", "attribute", "everybody"]
Need = Literal["risk", "survival", "reference", "features", "hazards", "groups"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Parameters
    ----------
    name : str
        As in tables; also that of the function in ``drosurv.metrics`` where there is one.
    label : str
        Short heading; empty for a number that only others are made from.
    meaning : str
        What it tells, in plain words.
    better : "higher", "lower", "near 1", "near 0" or ""
        Which values are good.
    function : callable
        What it takes and returns follows from `of`.
    of : "patients", "groups", "attribute" or "everybody"
        A number of any set of patients on its own: ``(patients, weight) -> float``. Numbers of all groups of an
        attribute: ``(patients, groups, weight) -> (k,)``. Or one number that compares, of an attribute's groups or
        of everybody: ``(between) -> Number``. NaN where undefined.
    needs : tuple
        What must be there: the model's ``"risk"`` scores or ``"survival"`` curves, a ``"reference"`` model,
        ``"features"`` to take distances in, ``"hazards"`` that neither overflow nor vanish, ``"groups"``.
    reads : tuple of str
        Metrics that it is made from.
    test : callable, optional
        Patients to a statistic of group labels, the largest difference in its standard errors, for the permutation
        test that groups do not differ; without one the p-value of a gap comes from the bootstrap.
    by_group : bool
        Whether a set's number can be read by group. Partial likelihood cannot: a right model loses partial
        likelihood on low-risk groups, whose merit stands in other patients' risk sets.
    resampled : bool
        Whether a bootstrap interval makes sense; a p-value has none.
    interval : "percentile" or "basic"
        Kind of interval. "basic" mirrors the replicates at the estimate, for a mean of absolute values, which
        resampling noise alone makes larger.
    bounds : pair of float
        The lowest and the highest possible value, where intervals are cut.
    short : str
        What scorers call it; by default its name.
    """

    name: str
    label: str
    meaning: str
    better: Better
    function: Callable[..., Any]
    of: Of = "patients"
    needs: tuple[Need, ...] = ()
    reads: tuple[str, ...] = ()
    test: Callable[[Patients], Callable[[Groups], float]] | None = None
    by_group: bool = True
    resampled: bool = True
    interval: Method = "percentile"
    bounds: tuple[float, float] = (-np.inf, np.inf)
    short: str = ""


@dataclass(frozen=True, eq=False)
class Between:
    """The patients of one attribute, or everybody, with their groups and what a metric that compares reads of them.

    That are the groups' values (k,) with their replicates (replicates, k), and numbers that compare. The weights
    (replicates, n) say how often each of all patients was drawn. Of everybody, the groups are the intersections of all
    attributes.
    """

    patients: Patients
    groups: Groups | None
    values: Mapping[str, tuple[FloatArray, FloatArray]]
    numbers: Mapping[str, Number]
    weights: NDArray[np.uint16]

    def linear(self, value: float, influence: Callable[[], FloatArray]) -> Draws:
        """Replicates, to first order, of a value that is at least 0.

        Its derivatives in the patients' weights (m,) are asked for only if there are replicates.
        """
        if len(self.weights) == 0:
            return Draws(value, np.empty(0), lowest=0.0)
        slopes = influence()
        own = self.weights if self.patients.rows is None else self.weights[:, self.patients.rows]
        return Draws(value, value + own @ slopes - slopes.sum(), lowest=0.0)
