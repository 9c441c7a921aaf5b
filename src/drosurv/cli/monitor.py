"""``drosurv monitor``: alarms about a model in use, from the growing table of its patients."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.options import (
    Cause,
    DataFile,
    FileOptions,
    Groups,
    ModelFile,
    OutputOptions,
    TargetOptions,
    cause_number,
    command,
    option,
)
from drosurv.cli.outputs import check_outputs, print_json, printable, say, write_plot
from drosurv.errors import InputError

if TYPE_CHECKING:
    from drosurv.tables import SurvivalTable
    from drosurv.workflows.saved_model import OpenedModel


@command(place=110)
def monitor(
    run: OutputOptions,
    model: ModelFile,
    data: DataFile,
    target: TargetOptions,
    file: FileOptions,
    groups: Groups = (),
    every: str = option(
        "How often to look: day, month, year, a number of days (or of the unit of numeric dates), or event; by default "
        "month, or event where dates are numbers.",
        default="auto",
    ),
    lag: float = option(
        "Days until an outcome is recorded; choose more than the time between two visits.", default=0.0
    ),
    tolerance: float = option(
        "Ratios from 1/tolerance to tolerance are no reason for an alarm.", default=1.1
    ),
    alpha: float = option("Probability of a false alarm during the whole time of monitoring.", default=0.05),
    cause: Cause = None,
    time_unit: str | None = option("Unit of the model's times: days, weeks, months or years.", "Columns"),
    output: Path = option("Page to write.", None, "--output", "-o", default=Path("monitor.html")),
    path: Path | None = option("CSV file to write the numbers of every look to.", "Output"),
    plot: Path | None = option("Picture of everybody (PNG, SVG, PDF).", "Output"),
    title: str | None = option("Heading of the page.", "Output"),
) -> None:
    """Monitor a model in use: compare its patients' events with those it expects, overall and by group.

    Pass --start, the column of the dates at which patients entered, and --end, the dates until which each is known,
    unless the model was trained on them. Run it again when the table has grown: looking often gives no more false
    alarms.

    Example: drosurv monitor model log.csv --start admitted --end last_seen --event died --groups sex -o monitor.html
    """
    from drosurv.monitoring import monitor as monitored
    from drosurv.patients.target import cause_names, with_fields
    from drosurv.presentation import cause_label, cause_title
    from drosurv.tables.reading import require_columns
    from drosurv.workflows.saved_model import OpenedModel

    check_outputs([output, path], [model, data], force=run.force, plot=plot)
    opened = OpenedModel.open(model)
    entered = target.start or opened.notes.get("target", {}).get("start")
    if entered is None:
        raise InputError(
            "--start is needed: name the column of the dates, or numbers, at which patients entered."
        )
    frame = file.format.read(data)
    require_columns(frame, [entered], "start")
    # With a column of times, the start only says where they lie in the calendar.
    timed = target if target.time is None else replace(target, start=None, end=None)
    table = opened.table(frame, groups=groups, in_use=True, **asdict(timed))
    if table.id is None:
        # Those of an id are counted where patients are followed.
        table.warn_of_rows(data.name)
    clusters = opened.notes.get("clusters")
    if clusters in table.frame.columns and clusters != table.id:
        say(
            "Note",
            f"the model was trained with clusters ({clusters}). Monitoring takes their patients as independent: if "
            f"they are alike, false alarms are more frequent than {alpha:g}.",
        )
    unit, y = in_unit_of_model(opened, table, target, time_unit)
    number = cause_number(cause, table)
    found = monitored(
        opened.estimator,
        opened.features(table.frame),
        with_fields(y, entry=table.entry, id=None if table.id is None else table.patients),
        start=table.frame[entered],
        sensitive_features=table.groups,
        every=_every(every),
        alpha=alpha,
        tolerance=tolerance,
        lag=lag,
        cause=number,
        time_unit=unit,
    )
    names = [type(opened.estimator).__name__, data.name]
    if number is not None:
        names.append(cause_title(cause_label(number, cause_names(y))))
    found.to_html(output, title=title or ", ".join(names))
    if path is not None:
        file.format.recognised(data).write(found.with_text(found.path), path)
    write_plot(found.plot, plot)
    if run.as_json:
        print_json(found.to_dict())
        return
    typer.echo(printable(found.summary()))
    typer.echo(printable(f"The page is in {output}."))


def in_unit_of_model(
    opened: OpenedModel, table: SurvivalTable, target: TargetOptions, time_unit: str | None
) -> tuple[str, Any]:
    """Return the unit of the times and the target; times between dates are in the unit of the training times."""
    from drosurv.presentation import DAYS, unit_in

    noted = opened.notes.get("target", {})
    trained = time_unit or noted.get("time_unit") or unit_in(str(noted.get("time") or "days"))
    unit = table.columns.unit
    if target.time is not None or unit not in DAYS:
        return time_unit or unit or "days", table.y
    if trained not in DAYS:
        raise InputError(
            f"the model was trained on times in an unknown unit (column {noted.get('time')!r}): pass --time-unit days, "
            "weeks, months or years."
        )
    y = table.y.copy()
    y["time"] *= DAYS[unit] / DAYS[trained]
    return trained, y


def _every(text: str) -> str | float | None:
    """Return the dates of looks as the argument `every` of the library."""
    if text == "event":
        return None
    try:
        return float(text)
    except ValueError:
        return text
