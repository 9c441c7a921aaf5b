"""Training of units: the whole grid of one method at once, and on an accelerator all its repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drosurv import estimators
from drosurv.estimators.grid import Sample, fit_grids
from drosurv.evaluation.attributes import EVERYONE
from drosurv.paper.cohort import cohort_of
from drosurv.paper.published_split import PublishedSplit
from drosurv.paper.unit import Unit
from drosurv.target import FloatArray

# Risk scores (points, n) of a grid by part: "train", "validation" and "test", and "unscaled" (the training patients
# with features as they are) where the published IBS needs it. NaN throughout for a point whose training diverged.
TrainedScores = Mapping[str, FloatArray]


def train_units(
    units: Sequence[Unit], *, seer_file: str | None = None, device: str = "cpu"
) -> list[dict[str, TrainedScores]]:
    """Train units that differ only in their repeat; on an accelerator all of them are one batch.

    One dict per unit, by attribute, or under ``EVERYONE`` where one training serves all attributes.
    """
    method, attributes = units[0].method, list(units[0].attributes)
    cohorts = [cohort_of(unit, seer_file) for unit in units]
    found: list[dict[str, TrainedScores]] = [{} for _ in units]
    # A group penalty looks at one attribute, the intersectional one at all of them together.
    for key in attributes if method.trains_by_attribute else (EVERYONE,):
        grids = [_estimators(units[0], device) for _ in units]
        seen = attributes if key == EVERYONE else [key]
        samples = [
            Sample(cohort.X["train"], cohort.y_train, sensitive_features=cohort.sensitive_features[seen])
            for cohort in cohorts
        ]
        errors = fit_grids(grids, samples)
        for predictions, grid, failed, cohort in zip(found, grids, errors, cohorts, strict=True):
            unscaled = {"unscaled": cohort.unscaled} if method.unscaled_baseline else {}
            predictions[key] = {
                part: np.stack(
                    [
                        np.full(len(X), np.nan) if error is not None else estimator.predict(X)
                        for estimator, error in zip(grid, failed, strict=True)
                    ]
                )
                for part, X in (cohort.X | unscaled).items()
            }
    return found


def _estimators(unit: Unit, device: str) -> list[Any]:
    method, protocol = unit.method, unit.protocol
    make: Any = PublishedSplit if method.stands_for else getattr(estimators, method.estimator)
    return [
        make(
            network=method.network,
            hidden=protocol.hidden,
            solver="adam",
            max_iter=protocol.max_iter,
            random_state=protocol.initial_seed,
            device=device,
            **dict(method.parameters),
            **point,
        )
        for point in method.points()
    ]
