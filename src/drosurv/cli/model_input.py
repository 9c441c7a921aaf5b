"""A saved model opened together with a table that it is to be used on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from drosurv.tables import SurvivalTable, TableEncoder, TargetColumns
    from drosurv.target import FloatArray


def fingerprint(path: Path) -> str:
    """SHA-256 of a file: tells whether a model was trained on it, without keeping a row."""
    return sha256(path.read_bytes()).hexdigest()


def training_notes(
    data: Path, columns: TargetColumns, features: pd.DataFrame, y: NDArray[Any]
) -> dict[str, Any]:
    """What the commands that use a model need besides it.

    Parameters
    ----------
    data : Path
        The table trained on.
    columns : TargetColumns
        Where its target stands.
    features : DataFrame, (n, d)
        What the estimator was trained on.
    y : structured array, (n,)
        Its target.

    Returns
    -------
    dict
        ``target`` columns, the ``trained_on`` fingerprint, and the coefficients of ``plain_cox`` on the same
        features: what a model is held against to see whether it has only shrunk. No row of the table.
    """
    from dataclasses import asdict

    from drosurv.estimators import CoxPH

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = CoxPH().fit(features, y)
    return {
        "target": asdict(columns),
        "trained_on": fingerprint(data),
        "plain_cox": plain.coef_.tolist() if plain.converged_ else None,
    }


@dataclass(frozen=True, eq=False)
class PlainCox:
    """Plain Cox as :func:`training_notes` keeps it: able to tell risks, not curves.

    Attributes
    ----------
    coefficients : (d,) float64
        Of the estimator's features.
    """

    coefficients: FloatArray

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks, (n,)."""
        risk: FloatArray = X.to_numpy(dtype=self.coefficients.dtype) @ self.coefficients
        return risk


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """What a model's file holds, for the commands that use it.

    Attributes
    ----------
    path : Path
        The file.
    encoder : TableEncoder or None
        Makes features of a table; None for a model that was saved without one.
    estimator : estimator
        Takes those features.
    notes : dict
        What :func:`training_notes` wrote; empty for a model saved in Python.
    """

    path: Path
    encoder: TableEncoder | None
    estimator: Any
    notes: dict[str, Any]

    @staticmethod
    def open(path: Path) -> OpenedModel:
        """Open a model's file."""
        from sklearn.pipeline import Pipeline

        from drosurv.persistence import read_saved_model
        from drosurv.tables import TableEncoder

        saved = read_saved_model(path)
        model, encoder = saved.model, None
        if isinstance(model, Pipeline) and len(model) == 2 and isinstance(model[0], TableEncoder):
            encoder, model = model[0], model[1]
        return OpenedModel(path, encoder, model, saved.notes)

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The estimator's features of a table."""
        from drosurv.tables.reading import require_columns

        if self.encoder is not None:
            return self.encoder.transform(frame)
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                f"{self.path} was trained on an array without column names, so no column of a table can be told to "
                "be its feature: fit it on a DataFrame."
            )
        require_columns(frame, list(names), "feature")
        return frame[list(names)]

    def plain_cox(self) -> PlainCox | None:
        """Plain Cox trained on the same patients; None if the file does not hold it."""
        import numpy as np

        coefficients = self.notes.get("plain_cox")
        return None if coefficients is None else PlainCox(np.array(coefficients))

    def findings(self, frame: pd.DataFrame) -> pd.DataFrame:
        """What was made up or left aside in a table, apart from the target's columns."""
        import pandas as pd

        if self.encoder is None:
            return pd.DataFrame({"column": [], "rows": [], "done": []})
        target = self.notes.get("target", {})
        known = [
            column for column in frame.columns if column not in (target.get("time"), target.get("event"))
        ]
        return self.encoder.findings(frame[known])

    def table(
        self,
        frame: pd.DataFrame,
        *,
        groups: Sequence[str] = (),
        time: str | None = None,
        event: str | None = None,
        event_value: str | None = None,
    ) -> SurvivalTable:
        """The patients of a table with their target, read from the columns named here or else at training."""
        from drosurv.tables import SurvivalTable, TargetColumns

        noted = self.notes.get("target", {})
        time, event = time or noted.get("time"), event or noted.get("event")
        if time is None or event is None:
            raise ValueError(
                f"{self.path} does not say which columns hold time and event: pass time=COLUMN and event=COLUMN."
            )
        if event_value is None and event == noted.get("event"):
            event_value = noted.get("event_value")
        if len(frame) < 2:
            raise ValueError("the table holds a single patient: a model is judged on at least two.")
        table = SurvivalTable.parse(frame, TargetColumns(time, event, event_value), groups=groups)
        if not table.y[event].any():
            raise ValueError(
                f"event column {event!r} holds no event, so there is nothing to judge a model by: pass event_value if "
                "another value means the event, or more patients."
            )
        return table

    def warn_if_trained_on(self, data: Path) -> None:
        """Say so if the table is the one the model was trained on: every number is then too good."""
        if self.notes.get("trained_on") == fingerprint(data):
            typer.echo(
                f"Warning: {self.path} was trained on {data}, so these numbers are too good. Keep patients away with "
                "`drosurv fit ... --hold-out test.csv` and use that file here.",
                err=True,
            )
