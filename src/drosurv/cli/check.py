"""``drosurv check``: one page about a table of patients and a model of them."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from drosurv.cli.options import (
    Clusters,
    ColumnOptions,
    DataFile,
    FeatureOptions,
    FileOptions,
    Groups,
    Horizon,
    RunOptions,
    TimeUnit,
    as_typed,
    command,
    option,
    shell_option,
    shell_options,
)
from drosurv.cli.outputs import check_outputs, print_json, print_times, printable
from drosurv.errors import InputError


@dataclass(frozen=True)
class GuessedOptions(FeatureOptions, ColumnOptions):
    """Columns that are guessed if they are not given."""

    event: str | None = option("Column of events; guessed if not given.")
    time: str | None = option("Column of times; guessed if not given.")
    entry: str | None = option("Column of times from which rows are observed; guessed if not given.")
    id: str | None = option("Column that names the patient; guessed if not given.")
    clusters: Clusters = None


@command(place=30)
def check(
    run: RunOptions,
    data: DataFile,
    columns: GuessedOptions,
    file: FileOptions,
    groups: Groups = (),
    cause: str | None = option("The cause to judge, by its name or number, if events have several causes."),
    horizon: Horizon = None,
    time_unit: TimeUnit = None,
    output: Path = option("Page to write.", None, "--output", "-o", default=Path("check.html")),
    save: Path | None = option("File to write the model to."),
) -> None:
    """Check a table of patients: report its problems, train a Cox model, and audit and repair the model.

    Columns of time, event, patient and groups that are not given are guessed from names and values. The model is
    evaluated on patients that were left out of its training.

    Example: drosurv check patients.csv --save model
    """
    from drosurv.presentation.drawing import bar
    from drosurv.tables.guess import UnknownColumns
    from drosurv.workflows.table_to_check import WantedColumns, prepare_table

    check_outputs([output, save], [data], force=run.force)
    with bar("reading") as progress:
        frame, marks = file.format.table(data)
        wanted = WantedColumns(**asdict(columns), groups=groups or None, time_unit=time_unit, cause=cause)
        try:
            prepared = prepare_table(frame, wanted, marks, data.name)
        except UnknownColumns as error:
            if not error.pairs:
                raise
            commands = [
                shlex.join(["drosurv", "check", as_typed(data), "--time", t, "--event", e])
                for t, e in error.pairs
            ]
            raise InputError(f"{error} Type one of: {'; '.join(commands)}") from error
        # Slow to import, so that the errors above come at once.
        from drosurv.workflows.check import check_prepared

        result = check_prepared(
            prepared,
            horizon=horizon,
            random_state=run.seed,
            on_step=lambda name, steps: progress(doing=name, of=steps),
        )
    result.to_html(output)
    if save is not None:
        result.save(save, data)
    found, value = result.columns, result.table.columns.event_value
    # Every command assumes these.
    clear = value in ("1", "True", "true")
    named = {
        "time": None if columns.start else found.time,
        "event": found.event,
        "entry": found.entry,
        "id": found.id,
        "groups": found.groups,
        "event_value": columns.event_value or (None if clear else value),
        "drop": (*columns.drop, *result.dropped),
        "drop_missing_target": result.n_dropped > 0,
        "first_event": prepared.first_event,
    }
    used = named | {name: value for name, value in asdict(columns).items() if name not in named}
    following = ["drosurv", "fit", as_typed(data)]
    for name, value in used.items():
        following += shell_option(name, value) if value else []
    following += ["--model", "cause-specific-cox"] if cause is not None else []
    following += [*shell_options(file, FileOptions), "--hold-out", "test.csv", "-o", "model"]
    if run.as_json:
        print_json({**result.to_dict(), "page": str(output), "next": following[1:]})
        return
    typer.echo(printable(result.summary()))
    if result.report.picture.rows:
        typer.echo(printable(result.report.picture.to_text()))
        print_times(result.report.parts["verdict"].table("of_100_patients"), "the page")
    kept = "" if save is None else f" The model is in {save}."
    typer.echo(printable(f"The page is in {output}.{kept} Next, hold patients out and train:"))
    typer.echo(f"  {shlex.join(following)}")
