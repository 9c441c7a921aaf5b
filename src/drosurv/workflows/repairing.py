"""Repair a model, saved or newly trained, or given predictions, on the patients of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from drosurv.errors import ArgumentError, arg
from drosurv.predictions import Predictions
from drosurv.repairs import RepairedCox, repair
from drosurv.tables import SurvivalTable
from drosurv.tables.prediction_columns import PredictionColumns, prediction_columns
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.training import readable_and_base, refuse_copies_of_time, table_encoder


def repair_from_table(
    table: SurvivalTable,
    estimator: Any = None,
    *,
    opened: OpenedModel | None = None,
    predictions: Predictions | None = None,
    categorical: Sequence[str] = (),
    keep_columns: Sequence[str] = (),
    **options: Any,
) -> RepairedCox:
    """Find and repair the groups of a table that a model is wrong about.

    The model is an `estimator`, which is trained on the table; None is :class:`drosurv.CoxPHCV`. Or it is a saved
    model, `opened`, which is not refitted. Or `predictions` of the table's patients are given.
    `categorical` and `keep_columns` are as in :func:`train`, `options` are parameters of :class:`drosurv.RepairedCox`.
    """
    options |= {"clusters": table.clusters, "entry": table.entry}
    if opened is not None:
        return repair(opened.model, opened.describing(table), table.y, frozen=True, **options)
    refuse_copies_of_time(table, keep_columns)
    unfitted = RepairedCox(base=estimator, random_state=options.get("random_state"))._base()
    X, base = readable_and_base(table, table_encoder(table, categorical), unfitted)
    if predictions is not None:
        return repair(predictions, X, table.y, frozen=True, **options)
    return repair(base, X, table.y, **options)


def corrected(model: RepairedCox, table: SurvivalTable, predictions: Predictions) -> pd.DataFrame:
    """Return repaired survival probabilities of a table's patients, a column ``survival_TIME`` for every time."""
    found = model.correct(predictions, table.X[list(model.feature_names_in_)])
    return pd.DataFrame(found, columns=[f"survival_{time:g}" for time in predictions.times])


def predictions_in(frame: pd.DataFrame, survival: Sequence[str] = ()) -> PredictionColumns:
    """Return the columns of predicted survival in a table, as `drosurv audit` finds them."""
    found = prediction_columns(frame, survival=survival)
    if found.survival is None:
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} hold risk scores only, which a repair cannot use: give survival probabilities at "
            "times, in "
            "columns such as survival_12.",
        )
    return found
