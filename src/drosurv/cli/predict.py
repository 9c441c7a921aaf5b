"""``drosurv predict``: risks and survival probabilities of the patients of a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from drosurv.cli.model_input import OpenedModel
from drosurv.cli.options import AsJson, DataFile, Decimal, Missing, ModelFile, Separator, listed
from drosurv.cli.outputs import check_outputs
from drosurv.cli.rendering import print_frame, print_json, records


def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write; the terminal if not given.")
    ] = None,
    times: Annotated[
        list[str] | None, typer.Option(help="Times at which to give survival probabilities, such as 12,24.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns of the table to copy, such as the patient's number.")
    ] = None,
    missing: Missing = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    as_json: AsJson = False,
) -> None:
    """Predict for raw data, prepared as in training: log risk (higher means sooner) and survival probabilities.

    Example: drosurv predict model new_patients.csv --times 12,24 --keep id -o predictions.csv
    """
    from drosurv.tables import read_frame
    from drosurv.tables.columns import UnseenLevelWarning
    from drosurv.tables.reading import require_columns

    check_outputs([output], [model, data])
    opened = OpenedModel.open(model)
    frame = read_frame(data, separator=separator, decimal=decimal, missing=listed(missing))
    require_columns(frame, listed(keep), "keep")
    with warnings.catch_warnings():
        # The table of findings says it with its rows.
        warnings.simplefilter("ignore", UnseenLevelWarning)
        features = opened.features(frame)
    predicted = frame[list(listed(keep))].assign(log_risk=opened.estimator.predict(features))
    if wanted := listed(times):
        at = _numbers(wanted)
        survival = opened.estimator.predict_survival_function(features, times=at)
        predicted = predicted.assign(**{f"survival_{time}": survival[:, k] for k, time in enumerate(wanted)})
    findings = opened.findings(frame)
    if len(findings):
        print_frame(findings, f"What was done to {data}", on_stderr=True)
    if as_json:
        print_json(records(predicted))
    if output is not None:
        predicted.to_csv(output, index=False)
        typer.echo(f"{len(predicted):,} predictions written to {output}.", err=True)
    elif not as_json:
        typer.echo(predicted.to_csv(index=False), nl=False)


def _numbers(texts: tuple[str, ...]) -> list[float]:
    try:
        return [float(text) for text in texts]
    except ValueError as error:
        raise ValueError(f"times must be numbers separated by commas, got {','.join(texts)!r}.") from error
