"""Repair a model, saved or newly trained, or given predictions, on the patients of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.repairs import RepairedCox, repair
from drosurv.tables import SurvivalTable
from drosurv.target import FloatArray
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.training import readable_and_base, refuse_copies_of_time, table_encoder


def repair_from_table(
    table: SurvivalTable,
    estimator: Any = None,
    *,
    opened: OpenedModel | None = None,
    predictions: pd.DataFrame | None = None,
    categorical: Sequence[str] = (),
    keep_columns: Sequence[str] = (),
    **options: Any,
) -> RepairedCox:
    """Find and repair the groups of a table that a model is wrong about.

    The model is an `estimator`, which is trained on the table; None is :class:`drosurv.CoxPHCV`. Or it is a saved
    model, `opened`, which is not refitted. Or `predictions` are given: survival probabilities of the table's patients,
    one column for each time, named ``12`` or ``survival_12``.
    `categorical` and `keep_columns` are as in :func:`train`, `options` are parameters of :class:`drosurv.RepairedCox`.
    """
    options |= {"clusters": table.clusters, "entry": table.entry}
    if opened is not None:
        return repair(opened.model, opened.describing(table), table.y, frozen=True, **options)
    refuse_copies_of_time(table, keep_columns)
    unfitted = RepairedCox(base=estimator, random_state=options.get("random_state"))._base()
    X, base = readable_and_base(table, table_encoder(table, categorical), unfitted)
    if predictions is not None:
        return repair(predicted_at(predictions), X, table.y, frozen=True, **options)
    return repair(base, X, table.y, **options)


def corrected(model: RepairedCox, table: SurvivalTable, predictions: pd.DataFrame) -> pd.DataFrame:
    """Return repaired survival probabilities of a table's patients, a column ``survival_TIME`` for every time."""
    times, survival = predicted_at(predictions)
    found = model.correct((times, survival), table.X[list(model.feature_names_in_)])
    return pd.DataFrame(found, columns=[f"survival_{time:g}" for time in times])


def predicted_at(frame: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Return the times and survival probabilities of a table of predictions."""
    times = {}
    for name in frame.columns:
        try:
            times[name] = float(str(name).removeprefix("survival_"))
        except ValueError:
            continue
    if not times:
        raise ArgumentError(
            "predictions",
            f"predictions has no column whose name is a time, such as 12 or survival_12; it has "
            f"{', '.join(map(str, frame.columns[:5]))}.",
        )
    ordered = sorted(times, key=lambda name: times[name])
    survival = frame[ordered].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([times[name] for name in ordered]), survival
