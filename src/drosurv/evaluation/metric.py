"""What a metric is: a record of what it tells and needs, and what one that compares groups is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from drosurv.evaluation.patients import Patients
from drosurv.groups import Groups
from drosurv.metrics.inference import Draws, Method, Number
from drosurv.target import FloatArray

Better = Literal["higher", "lower", "near 1", "near 0", ""]
Of = Literal["patients", "groups", "attribute", "everybody"]
Need = Literal["risk", "survival", "reference", "features", "hazards", "groups"]


@dataclass(frozen=True)
class Metric:
    """One metric: its name in tables and, if `short`, another for scorers, what it tells, and which values are good.

    The name is that of the function in ``drosurv.metrics`` where there is one. A number without a `label`, the short
    heading, is one that only others are made from: those that `reads` names. The `meaning` is in plain words. What the
    function takes and returns, NaN where undefined, follows from `of`:

    - "patients": a number of any set of patients on its own, ``(patients, weight) -> float``. Not all can be read
      `by_group`: a right model loses partial likelihood on low-risk groups, whose merit stands in other patients' risk
      sets.
    - "groups": numbers of all groups of an attribute, ``(patients, groups, weight) -> (k,)``.
    - "attribute" or "everybody": one number that compares, of an attribute's groups or of everybody,
      ``(between) -> Number``.

    It `needs` the model's "risk" scores or "survival" curves, a "reference" model, "features" to take distances in,
    "hazards" that neither overflow nor vanish, or "groups". The `test` makes of patients a statistic of group labels,
    the largest difference in its standard errors, for the permutation test that groups do not differ; without one the
    p-value of a gap comes from the bootstrap.

    What is not `resampled`, such as a p-value, has no interval. Others are cut at the `bounds`, the lowest and the
    highest possible value. A "basic" interval mirrors the replicates at the estimate, for a mean of absolute values,
    which resampling noise alone makes larger.
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
        # Those of other patients do not count; row by row, since all weights as floats take four times their memory.
        of_all = np.zeros(self.weights.shape[1])
        of_all[slice(None) if self.patients.rows is None else self.patients.rows] = slopes
        moved = np.array([times @ of_all for times in self.weights])
        return Draws(value, value + moved - slopes.sum(), lowest=0.0)
