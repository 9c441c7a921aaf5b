"""``drosurv summary``: the coefficients of a saved model, in the units of its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from drosurv.cli.options import ModelFile, OutputOptions, command, option
from drosurv.cli.outputs import check_outputs, print_json, printable


@command(place=50)
def summary(
    run: OutputOptions,
    model: ModelFile,
    level: float = option("Confidence level of the intervals, in (0, 1).", default=0.95),
    output: Path | None = option("CSV file to write the table to.", None, "--output", "-o"),
    cause: str | None = option(
        "Cause to show, of a model of several causes, by its number or name; by default all."
    ),
    style: str = option("text, markdown, latex or html.", None, "--format", default="text"),
) -> None:
    """Show the coefficients of a saved linear model: hazard ratios with standard errors, intervals and p-values.

    Example: drosurv summary model
    """
    from drosurv import summary as summarised
    from drosurv.errors import ArgumentError
    from drosurv.patients.target import number_of_cause
    from drosurv.predictions.any_model import final_step
    from drosurv.presentation import cause_label
    from drosurv.repairs.repair_views import linear_effects, repair_table
    from drosurv.tables.reading import FileFormat
    from drosurv.workflows.saved_model import OpenedModel

    check_outputs([output], [model], force=run.force)
    if style not in ("text", "markdown", "latex", "html"):
        raise ArgumentError.must("style", "be text, markdown, latex or html", style)
    opened = OpenedModel.open(model)
    last = final_step(opened.model)
    if cause is not None and not hasattr(last, "n_causes_"):
        raise ArgumentError(
            "cause", f"--cause has no meaning for {type(last).__name__}, which has one event: leave it out."
        )
    repaired = hasattr(last, "hazard_ratios")
    if repaired and linear_effects(last.base_) is not None:
        shown = [last.hazard_ratios()]
        frame = shown[0].to_frame()
    elif repaired and last.repairs_:
        shown = [repair_table(last.repairs_)]
        frame = last.to_frame()
    else:
        number = None if cause is None else number_of_cause(cause, opened.cause_names)
        wanted: dict[str, Any] = {} if number is None else {"cause": number}
        table = summarised(last.base_ if repaired else opened.model, level, **wanted)
        shown = [table.to_table()]
        frame = table.reset_index()
        if number is not None:
            frame["cause"] = cause_label(number, opened.cause_names)
    if output is not None:
        FileFormat().write(frame, output)
    if run.as_json:
        print_json(frame.to_dict("records"))
    else:
        if hasattr(last, "in_words"):
            typer.echo(printable("\n".join([last.status_, *last.in_words()])))
        typer.echo(printable("\n\n".join(getattr(table, f"to_{style}")() for table in shown)))
