"""Training of units: the whole grid of one method at once, and on an accelerator all its repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drosurv import estimators
from drosurv.estimators.grid import Sample, fit_grids
from drosurv.paper.cohort import Cohort
from drosurv.paper.methods import Method
from drosurv.paper.published_split import PublishedSplit
from drosurv.paper.unit import Unit
from drosurv.target import FloatArray

# Under this key stand the scores of a training that serves every attribute.
EVERY = ""
# Risk scores (settings, n) of a grid by part: "train", "validation" and "test", and "unscaled" (the training patients
# with features as they are) where the published IBS needs it. NaN throughout for a setting whose training diverged.
TrainedScores = Mapping[str, FloatArray]


def trained_settings(method: Method) -> list[dict[str, float]]:
    """The settings that need training of their own: factors only scale what was trained."""
    bare = [
        {name: value for name, value in setting.items() if name != "factor"} for setting in method.settings()
    ]
    return [setting for k, setting in enumerate(bare) if setting not in bare[:k]]


def train(
    units: Sequence[Unit], cohorts: Sequence[Cohort], *, device: str = "cpu"
) -> list[dict[str, TrainedScores]]:
    """Train units that differ only in their repeat; on an accelerator all of them are one batch.

    One dict per unit, by attribute, or under ``EVERY`` where one training serves all attributes.
    """
    method = units[0].method
    # A group penalty looks at one attribute, the intersectional one at all of them together.
    keys = units[0].attributes if method.trains_by_attribute else (EVERY,)
    found: list[dict[str, TrainedScores]] = [{} for _ in units]
    for key in keys:
        grids = [_estimators(units[0], device) for _ in units]
        samples = [
            Sample(
                cohort.X["train"],
                cohort.y_train,
                sensitive_features=cohort.sensitive_features[[key] if key else list(units[0].attributes)],
            )
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
            **setting,
        )
        for setting in trained_settings(method)
    ]
