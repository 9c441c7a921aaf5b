"""Repair a model, saved or newly trained, or given predictions, on the patients of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, row_number
from drosurv.predictions import Predictions
from drosurv.predictions.columns import PredictionColumns, prediction_columns, probabilities
from drosurv.predictions.given import Form, ReadPredictions
from drosurv.presentation import cause_label, counted
from drosurv.repairs import RepairedCox, repair
from drosurv.tables import SurvivalTable
from drosurv.tables.ids import patient_columns
from drosurv.tables.reading import require_columns
from drosurv.tables.values import labels
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.training import readable_and_base, refuse_leaks, table_encoder


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
    model, `opened`, which is not refitted. It predicts from the first of several rows (entry, time] of a patient. Or
    `predictions` of each row of the table are given.
    `categorical` and `keep_columns` are as in :func:`train`, `options` are parameters of :class:`drosurv.RepairedCox`.
    """
    if predictions is None:
        table = table.at_first_rows()
    y = table.repaired_y
    if opened is not None:
        opened.ask_unit(table)
        X = opened.describing(table)
        kept = opened.kept_columns(keep_columns, table.frame, X)
        return repair(opened.model, X, y, frozen=True, keep_columns=kept, **options)
    refuse_leaks(table, keep_columns)
    unfitted = RepairedCox(base=estimator, random_state=options.get("random_state"))._base()
    encoder = table_encoder(table, categorical, keep_columns=keep_columns)
    X, base = readable_and_base(table, encoder, unfitted)
    how = {"keep_columns": list(X.columns), **options}
    if predictions is not None:
        return repair(predictions, X, y, frozen=True, **how)
    return repair(base, X, y, **how)


def corrected(
    model: RepairedCox,
    frame: pd.DataFrame,
    predictions: Any,
    keep: Sequence[str] | None = None,
    *,
    cause_names: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the columns `keep` of a table's patients, by default all, beside their repaired predictions.

    `predictions` are a pair (times, survival), or :class:`Predictions`; there is a column ``survival_TIME`` for every
    time and, with causes, ``incidence_CAUSE_TIME``, with the name or number of the cause.
    """
    require_columns(frame, list(model.feature_names_in_), "feature")
    found: Any = model.correct(predictions, frame[list(model.feature_names_in_)])
    times = predictions[0] if isinstance(predictions, tuple) else predictions.times
    tables: dict[str, Any] = {"survival": found}
    if isinstance(found, Predictions):
        assert found.incidence is not None
        tables = {f"incidence_{cause_label(k, cause_names)}": F for k, F in found.incidence.items()}
        tables["survival"] = found.survival
    repaired = pd.DataFrame(
        {f"{name}_{time:g}": table[:, j] for name, table in tables.items() for j, time in enumerate(times)},
        index=frame.index,
    )
    kept = frame if keep is None else frame[list(keep)]
    return pd.concat([kept.drop(columns=repaired.columns, errors="ignore"), repaired], axis=1)


def noted_predictions(columns: PredictionColumns, parsed: ReadPredictions) -> dict[str, Any]:
    """Return how repaired predictions were read, which a file keeps to read those of other patients the same way."""
    assert parsed.form is not None, "of probabilities"
    form = {"kind": parsed.form.kind, "percent": parsed.form.percent}
    assert columns.times is not None
    names = list(columns.names[: len(columns.times) * max(len(columns.incidence), 1)])
    causes = [int(k) for k in columns.incidence]
    return {"columns": names, "times": parsed.predictions.times.tolist(), "causes": causes, **form}


def repaired_predictions(
    opened: OpenedModel,
    frame: pd.DataFrame,
    made: pd.DataFrame | None = None,
    keep: Sequence[str] = (),
    numeric: Sequence[str] = (),
) -> pd.DataFrame:
    """Apply the repairs of predictions to those of other patients, as :func:`corrected` does.

    The predictions are columns of the table `made`, by default of the patients' own table `frame`, named and written
    as those that were repaired. Numbers such as 999 in `numeric` columns are amounts.
    """
    require_columns(frame, keep, "keep")
    opened.ask_about_values(frame, numeric)
    noted = opened.notes.get("predictions")
    if noted is None:
        raise ArgumentError(
            "predictions",
            f"{opened.path} does not say which predictions it was repaired from: repair them with `drosurv repair "
            "--predictions`.",
        )
    given = frame if made is None else same_patients(made, frame, opened.notes.get("id"))
    require_columns(given, noted["columns"], "predictions")
    by_cause = np.split(np.array(noted["columns"], dtype=object), len(noted.get("causes") or [None]))
    values = np.hstack([probabilities(given[list(names)], noted["percent"]) for names in by_cause])
    form, times = Form(noted["kind"], noted["percent"]), np.array(noted["times"])
    predictions: Any = (times, form.survival(values))
    if noted.get("causes"):
        parts = np.split(1 - form.survival(values), len(noted["causes"]), axis=1)
        predictions = Predictions(incidence=dict(zip(noted["causes"], parts, strict=True)), times=times)
    ids = [opened.notes["id"]] if opened.id_column(frame) else patient_columns(frame)[:1]
    kept = dict.fromkeys([*ids, *keep])
    return corrected(opened.model, frame, predictions, list(kept), cause_names=opened.cause_names)


def same_patients(predictions: pd.DataFrame, frame: pd.DataFrame, id: str | None = None) -> pd.DataFrame:
    """Return the rows of a table of predictions in the order of the patients of another table.

    Patients are matched by the column `id`, or by one that names patients, if both tables have it. Without one, the
    tables must have as many rows, in the same order.
    """
    shared = [name for name in predictions.columns if name in frame.columns]
    found: Sequence[str | None] = [id] if id in shared else patient_columns(frame[shared])
    if not found:
        if len(predictions) != len(frame):
            raise ArgumentError(
                "predictions",
                f"{arg('predictions')} have {len(predictions):,} rows for {len(frame):,} patients: give one row "
                "per patient, or a column that names the patients in both tables.",
            )
        return predictions.set_axis(frame.index)
    name = str(found[0])
    wanted, known = labels(frame[name]), labels(predictions[name])
    missing = ~wanted.isin(set(known.dropna())).to_numpy()
    if missing.any():
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} lack {counted(int(missing.sum()), 'patient')} of the table, by column {name!r} "
            f"(first in row {row_number(missing.argmax(), frame)}): add them, or leave them out of the "
            "table.",
        )
    if known.duplicated().any():
        if len(predictions) == len(frame) and (known.to_numpy() == wanted.to_numpy()).all():
            # Patients with several rows, which have their own predictions.
            return predictions.set_axis(frame.index)
        row = row_number(known.duplicated().to_numpy().argmax(), predictions)
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} hold a patient of column {name!r} twice (row {row}): give one row per patient.",
        )
    return predictions.set_axis(known.to_numpy()).loc[wanted.to_numpy()].set_axis(frame.index)


def predictions_in(
    frame: pd.DataFrame, survival: Sequence[str] = (), causes: Sequence[str] = ()
) -> PredictionColumns:
    """Return the columns of predicted survival, or of incidences, in a table, as `drosurv audit` finds them."""
    found = prediction_columns(frame, survival=survival, causes=causes)
    if found.survival is None and not found.incidence:
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} hold risk scores only, which a repair cannot use: give survival probabilities at "
            "times, in columns such as survival_12.",
        )
    return found
