"""From a table of patients and a model to a repaired model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.repairs import RepairedCox, repair
from drosurv.tables import SurvivalTable
from drosurv.target import FloatArray
from drosurv.workflows.opened_model import OpenedModel
from drosurv.workflows.training import readable_and_base, table_encoder


def repair_from_table(
    table: SurvivalTable,
    estimator: Any = None,
    *,
    opened: OpenedModel | None = None,
    predictions: pd.DataFrame | None = None,
    categorical: Sequence[str] = (),
    **options: Any,
) -> RepairedCox:
    """Find and repair the groups that a model is wrong about; the model takes the columns of the table as they are.

    The model is an `estimator`, trained on the table; or a saved model, `opened`, which stays as it is; or
    `predictions`: survival probabilities that somebody predicted for the table's patients, one column for each time,
    named by it (``12`` or ``survival_12``). `options` are parameters of :class:`drosurv.RepairedCox`.
    """
    table.refuse_entry("a repair, which counts events and expected events from time 0 on")
    options["clusters"] = table.repeated
    if opened is not None:
        return repair(opened.model, opened.readable(table.frame), table.y, frozen=True, **options)
    X, base = readable_and_base(table, table_encoder(table, categorical), estimator)
    if predictions is not None:
        return repair(predicted_at(predictions), X, table.y, frozen=True, **options)
    return repair(base, X, table.y, **options)


def corrected(model: RepairedCox, table: SurvivalTable, predictions: pd.DataFrame) -> pd.DataFrame:
    """Repaired survival probabilities of a table's patients, ``survival_TIME`` for every time predicted."""
    times, survival = predicted_at(predictions)
    found = model.correct((times, survival), table.X[list(model.feature_names_in_)])
    return pd.DataFrame(found, columns=[f"survival_{time:g}" for time in times])


def predicted_at(frame: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Times and survival probabilities of a table of predictions."""
    times = {}
    for name in frame.columns:
        try:
            times[name] = float(str(name).removeprefix("survival_"))
        except ValueError:
            continue
    if not times:
        raise ArgumentError(
            "predictions",
            f"predictions holds no column named by a time, such as 12 or survival_12; it has "
            f"{', '.join(map(str, frame.columns[:5]))}.",
        )
    ordered = sorted(times, key=lambda name: times[name])
    survival = frame[ordered].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([times[name] for name in ordered]), survival
