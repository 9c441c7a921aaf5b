"""``drosurv predict``: risks and survival probabilities of the patients of a table."""

from __future__ import annotations

from pathlib import Path

import typer

from drosurv.cli.options import (
    DataFile,
    FileOptions,
    ModelFile,
    Names,
    Numeric,
    OutputOptions,
    Strata,
    command,
    option,
)
from drosurv.cli.outputs import check_outputs, print_frame, print_json
from drosurv.errors import InputError


@command(place=60)
def predict(
    run: OutputOptions,
    model: ModelFile,
    data: DataFile,
    file: FileOptions,
    output: Path | None = option("CSV file to write; the terminal if not given.", None, "--output", "-o"),
    times: Names = option("Times at which to give survival probabilities, such as 12,24.", default=()),
    keep: Names = option("Columns of the table to copy, such as the patient's number.", default=()),
    strata: Strata = None,
    numeric: Numeric = (),
    predictions: Path | None = option(
        "For repairs of given predictions: table of the predictions of these patients, if they are not columns of DATA."
    ),
) -> None:
    """Predict for a table like that of training: log risks (higher means earlier) and survival probabilities.

    Predictions are written with the separator, decimal mark and encoding of the data.

    Example: drosurv predict model new_patients.csv --times 12,24 --keep id -o predictions.csv
    """
    from drosurv.workflows.repairing import repaired_predictions
    from drosurv.workflows.saved_model import OpenedModel

    check_outputs([output], [model, data, predictions], force=run.force)
    if strata is not None and not times:
        raise InputError("--strata changes survival, not log risks: pass --times too, such as 12,24.")
    opened = OpenedModel.open(model)
    frame, marks = file.format.table(data)
    if opened.needs_predictions:
        if times or strata is not None:
            raise InputError(
                f"{model} repairs predictions at their own times: leave out --times and --strata."
            )
        made = None if predictions is None else file.format.read(predictions)
        predicted = repaired_predictions(opened, frame, made, keep, numeric)
    elif predictions is not None:
        raise InputError(
            f"{model} predicts by itself: leave out --predictions, which is for repaired predictions."
        )
    else:
        predicted = opened.predictions(frame, times=times, keep=keep, strata=strata, numeric=numeric)
    opened.note_copies(frame, data)
    opened.note_rows_seen(frame, data)
    findings = opened.findings(frame, strata)
    if len(findings):
        print_frame(findings, f"What was done to {data}", on_stderr=True)
    if run.as_json:
        print_json(predicted.to_dict("records"))
    if output is not None:
        marks.write(predicted, output)
        typer.echo(f"{len(predicted):,} predictions written to {output}.", err=True)
    elif not run.as_json:
        typer.echo(marks.text(predicted), nl=False)
