"""``drosurv audit``: a report on whom a saved model serves worst, as one file for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.messages import printable, say
from drosurv.cli.options import (
    AsJson,
    DataFile,
    FileOptions,
    Groups,
    ModelFile,
    OtherEvent,
    Seed,
    TargetOptions,
    listed,
    with_options,
)
from drosurv.cli.outputs import check_outputs
from drosurv.errors import Argument, ArgumentError

if TYPE_CHECKING:
    from drosurv.audit import AuditReport

_VIEWS = {".html": "to_html", ".htm": "to_html", ".md": "to_markdown", ".json": "to_json"}


@with_options
def audit(
    model: ModelFile,
    data: DataFile,
    target: TargetOptions,
    file: FileOptions,
    event: OtherEvent = None,
    groups: Groups = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write: .html for the browser, .md or .json.")
    ] = Path("report.html"),
    train: Annotated[
        Path | None,
        typer.Option(
            help="Training table, to train the models of the alpha slider; patients of DATA are left out."
        ),
    ] = None,
    alphas: Annotated[
        list[str] | None, typer.Option(help="Shares of patients to protect on the slider, such as 1,0.5,0.2.")
    ] = None,
    time_unit: Annotated[str | None, typer.Option(help="What the times count, such as days.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    rules: Annotated[bool, typer.Option(help="Search for rules that describe who is worst off.")] = True,
    bootstrap: Annotated[
        int, typer.Option(help="Replicates behind intervals and tests of the audited model.")
    ] = 500,
    bootstrap_path: Annotated[int, typer.Option(help="The same for each other model of the slider.")] = 100,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Audit a saved model on patients it has not seen: who is served worst, by how much, and is it noise.

    Example: drosurv audit model test.csv --groups "sex,age>65" --train patients.csv -o report.html
    """
    from rich.console import Console
    from rich.progress import Progress

    from drosurv.audit import audit as audited
    from drosurv.tables import patients_not_in
    from drosurv.workflows import OpenedModel

    view = report_view(output)
    check_outputs([output], [model, data, train])
    if alphas and train is None:
        raise ArgumentError(
            Argument("alphas"),
            " names models to train: pass ",
            Argument("train"),
            " FILE with the training patients.",
        )
    shares = [_share(text) for text in listed(alphas)]
    opened = OpenedModel.open(model)
    opened.warn_if_trained_on(data)
    named: dict[str, Any] = {"event": event, **target.arguments()}
    table = opened.table(file.format.read(data), groups=listed(groups), **named)
    training: dict[str, Any] = {}
    if train is not None:
        others = file.format.read(train)
        kept = patients_not_in(others, table.frame, target.id)
        if not kept.all():
            say(
                "Note",
                f"{int((~kept).sum()):,} of the {len(kept):,} training patients are also audited, and were left out of "
                "the training of the other models.",
            )
        trained_on = opened.table(others[kept], **named)
        training = {"X_train": opened.features(trained_on.frame), "y_train": trained_on.y}
        training["alpha_path"] = shares or None
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("reading", total=None)
        report = audited(
            opened.estimator,
            opened.features(table.frame),
            table.y,
            sensitive_features=table.sensitive_features if listed(groups) else None,
            reference=opened.plain_cox(),
            features=opened.readable(table.frame, listed(groups)),
            title=title,
            data_name=data.name,
            time_title=time_unit or table.columns.time_name,
            n_bootstrap=bootstrap,
            n_bootstrap_path=bootstrap_path,
            search_rules=rules,
            random_state=seed,
            on_step=lambda name, steps: progress.update(bar, description=name, total=steps, advance=1),
            **training,
        )
    getattr(report, view)(output)
    if as_json:
        typer.echo(report.to_json())
    else:
        _show(report, output)


def _show(report: AuditReport, output: Path) -> None:
    for statement in (*report.statements, *report.audited.statements):
        typer.echo(printable(f"- {statement.text}"))
    typer.echo(printable(f"The report is in {output}."))


def report_view(path: Path) -> str:
    """The method of a report that writes what the suffix of a file asks for."""
    view = _VIEWS.get(path.suffix.lower())
    if view is None:
        raise ValueError(f"{str(path)!r} must end in .html, .md or .json, which says what to write.")
    return view


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ArgumentError.must("alphas", "be shares in (0, 1], such as 1,0.5,0.2", text)
    return share
