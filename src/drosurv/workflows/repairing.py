"""From a table of patients and a model to a repaired model and its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from drosurv.errors import Argument, ArgumentError
from drosurv.persistence import save
from drosurv.presentation import Table
from drosurv.repairs import RepairedCox, repair
from drosurv.repairs.hazard_ratio_table import linear_effects
from drosurv.tables import SurvivalTable
from drosurv.target import FloatArray
from drosurv.workflows.opened_model import OpenedModel, fingerprint
from drosurv.workflows.training import readable_and_base, table_encoder


@dataclass(frozen=True, eq=False)
class RepairedTable:
    """A repaired model, which takes the columns of a table as they are, and the patients it was repaired with."""

    model: RepairedCox
    table: SurvivalTable

    def save(self, path: Path, data: Path) -> None:
        """Write the model to a file that every command reads, with the fingerprint of the table `data`."""
        target = {name: value for name, value in asdict(self.table.columns).items() if value is not None}
        save(self.model, path, notes={"target": target, "trained_on": fingerprint(data)})

    def corrected(self, predictions: pd.DataFrame) -> pd.DataFrame:
        """Repaired survival probabilities of the table's patients, ``survival_TIME`` for every time predicted."""
        times, survival = predicted_at(predictions)
        X = self.table.X[list(self.model.feature_names_in_)]
        found = self.model.correct((times, survival), X)
        return pd.DataFrame(found, columns=[f"survival_{time:g}" for time in times])

    def hazard_ratios(self) -> Table | None:
        """Everyone's hazard ratios and the exceptions; None for a model that is not linear."""
        return None if linear_effects(self.model.base_) is None else self.model.hazard_ratios()


def repair_from_table(
    table: SurvivalTable,
    estimator: Any = None,
    *,
    opened: OpenedModel | None = None,
    predictions: pd.DataFrame | None = None,
    categorical: Sequence[str] = (),
    **options: Any,
) -> RepairedTable:
    """Find and repair the groups that a model is wrong about.

    The model is an `estimator`, trained on the table; or a saved model, `opened`, which stays as it is; or
    `predictions`: survival probabilities that somebody predicted for the table's patients, one column for each time,
    named by it (``12`` or ``survival_12``). `options` are parameters of :class:`drosurv.RepairedCox`.
    """
    if table.entry is not None:
        raise ArgumentError(
            Argument("entry"),
            " is not understood by a repair, which counts events and expected events from time 0 on: take patients who "
            "are observed from the beginning.",
        )
    options["clusters"] = table.repeated
    if opened is not None:
        X = opened.readable(table.frame)
        model = opened.estimator
        if opened.encoder is not None:
            model = Pipeline([("table", opened.encoder), ("model", opened.estimator)])
        return RepairedTable(repair(model, X, table.y, frozen=True, **options), table)
    X, base = readable_and_base(table, table_encoder(table, categorical), estimator)
    if predictions is not None:
        return RepairedTable(repair(predicted_at(predictions), X, table.y, frozen=True, **options), table)
    return RepairedTable(repair(base, X, table.y, **options), table)


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
            Argument("predictions"),
            " holds no column named by a time, such as 12 or survival_12; it has "
            f"{', '.join(map(str, frame.columns[:5]))}.",
        )
    ordered = sorted(times, key=lambda name: times[name])
    survival = frame[ordered].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([times[name] for name in ordered]), survival
