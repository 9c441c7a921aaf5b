"""Which model a command judges: a saved file, a published score, or predictions of any model in a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.options import (
    SAVED,
    TABLE,
    Cause,
    Clusters,
    Names,
    Strata,
    about,
    cause_number,
    option,
    piped,
)
from drosurv.cli.outputs import say
from drosurv.errors import InputError

if TYPE_CHECKING:
    from drosurv.predictions.columns import PredictionColumns
    from drosurv.predictions.given import ReadPredictions
    from drosurv.tables import SurvivalTable
    from drosurv.workflows.saved_model import OpenedModel

_OTHERS = "Other models"
# Kinds of predictions that the library calls otherwise.
_KINDS = {"event": "event probability"}

Coefficients = Annotated[
    Path | None,
    about("Instead of a model: CSV of a published score, with the columns term and coefficient.", _OTHERS),
]


@dataclass(frozen=True)
class PredictionOptions:
    """Predictions of any model, instead of the model."""

    predictions: Path | None = option("Instead of a model: table of any model's predictions.", _OTHERS)
    survival: Names = option(
        "Columns of predicted survival, such as S365=365,S730=730, if not recognised.", _OTHERS, default=()
    )
    kind: str | None = option("What the probabilities are: survival or event, if not recognised.", _OTHERS)

    def read(
        self, found: PredictionColumns, table: SurvivalTable, cause: str | None, unit: str, **kinds: Any
    ) -> ReadPredictions:
        """Return the predictions in columns of a table; say how they were read, and which columns were not."""
        from drosurv.predictions.given import read_columns

        kind: Any = _KINDS.get(str(self.kind), self.kind)
        parsed = read_columns(found, table.y, unit=unit, kind=kind, cause=cause_number(cause, table), **kinds)
        if found.ids:
            say("Note", f"not used, because it names patients or rows: {', '.join(found.ids)}.")
        if found.unread:
            say(
                "Warning",
                f"{', '.join(found.unread)} may be predictions too, but are not used: if they are, name them in "
                "--survival as COLUMN=TIME.",
            )
        for note in parsed.notes:
            say("Note", note)
        return parsed


@dataclass(frozen=True)
class JudgedModel:
    """A saved model, or a published score, and the table of patients it is judged on."""

    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help=SAVED, callback=piped)] = None
    data: Annotated[Path | None, typer.Argument(metavar="DATA", help=TABLE, callback=piped)] = None
    coefficients: Coefficients = None
    strata: Strata = None
    clusters: Clusters = None
    cause: Cause = None

    @property
    def inputs(self) -> list[Path | None]:
        """Files that must not be overwritten."""
        return [self.model, self.data, self.coefficients]

    def table(self, command: str) -> Path:
        """Return the table that is named: the second argument, or the only one beside --coefficients."""
        if self.coefficients is None:
            if self.model is None or self.data is None:
                raise InputError(
                    f"name a model and a table, as in `drosurv {command} model test.csv`, or pass --coefficients FILE."
                )
            return self.data
        if self.model is None or self.data is not None:
            raise InputError(
                "--coefficients takes the place of a saved model: name one table, as in "
                f"`drosurv {command} --coefficients score.csv patients.csv`."
            )
        return self.model

    def open(self) -> OpenedModel:
        """Open the saved model, or the published score."""
        from drosurv.workflows.saved_model import OpenedModel

        if self.coefficients is not None:
            return OpenedModel.of_score(self.coefficients)
        assert self.model is not None, "table() has required it"
        return OpenedModel.open(self.model)
