"""The model of a command: a saved file, or a published score given by --coefficients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drosurv.cli.options import piped
from drosurv.errors import InputError

if TYPE_CHECKING:
    from drosurv.workflows import OpenedModel

Coefficients = Annotated[
    Path | None,
    typer.Option(
        help="Instead of MODEL: CSV of a published score, with the columns term and coefficient.",
        rich_help_panel="Other models",
    ),
]
OptionalModel = Annotated[
    Path | None,
    typer.Argument(metavar="MODEL", help="Model that `drosurv fit` or save() wrote.", callback=piped),
]
OptionalData = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="Table, one row per patient; - for standard input.", callback=piped),
]


def table_of(command: str, model: Path | None, data: Path | None, coefficients: Path | None) -> Path:
    """Return the table that a command names: the second argument, or the only one beside --coefficients."""
    if coefficients is None:
        if model is None or data is None:
            raise InputError(
                f"name a model and a table, as in `drosurv {command} model test.csv`, or pass --coefficients FILE."
            )
        return data
    if model is None or data is not None:
        raise InputError(
            "--coefficients takes the place of a saved model: name one table, as in "
            f"`drosurv {command} --coefficients score.csv patients.csv`."
        )
    return model


def open_model(model: Path | None, coefficients: Path | None) -> OpenedModel:
    """Open a saved model, or a published score."""
    from drosurv.workflows import OpenedModel

    if coefficients is not None:
        return OpenedModel.of_score(coefficients)
    assert model is not None
    return OpenedModel.open(model)
