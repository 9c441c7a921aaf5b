"""``drosurv audit``: a report on whom a saved model serves worst, as one file for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.model_input import OpenedModel
from drosurv.cli.options import AsJson, DataFile, Decimal, Groups, Missing, ModelFile, Separator, listed
from drosurv.cli.outputs import check_outputs
from drosurv.cli.plain_messages import printable

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.audit import AuditReport

_VIEWS = {".html": "to_html", ".htm": "to_html", ".md": "to_markdown", ".json": "to_json"}


def audit(
    model: ModelFile,
    data: DataFile,
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
    time: Annotated[str | None, typer.Option(help="Column of times, if not the one trained on.")] = None,
    event: Annotated[str | None, typer.Option(help="Column of events, if not the one trained on.")] = None,
    event_value: Annotated[str | None, typer.Option(help="The value that means the event.")] = None,
    time_unit: Annotated[str | None, typer.Option(help="What the times count, such as days.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    rules: Annotated[bool, typer.Option(help="Search for rules that describe who is worst off.")] = True,
    bootstrap: Annotated[
        int, typer.Option(help="Replicates behind intervals and tests of the audited model.")
    ] = 500,
    bootstrap_path: Annotated[int, typer.Option(help="The same for each other model of the slider.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    missing: Missing = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    as_json: AsJson = False,
) -> None:
    """Audit a saved model on patients it has not seen: who is served worst, by how much, and is it noise.

    Example: drosurv audit model test.csv --groups "sex,age>65" --train patients.csv -o report.html
    """
    from rich.console import Console
    from rich.progress import Progress

    from drosurv.audit import audit as audited
    from drosurv.tables import read_frame

    view = report_view(output)
    check_outputs([output], [model, data, train])
    if alphas and train is None:
        raise ValueError("alphas names models to train: pass train=FILE with the training patients.")
    shares = [_share(text) for text in listed(alphas)]
    reading: dict[str, Any] = {"separator": separator, "decimal": decimal, "missing": listed(missing)}
    opened = OpenedModel.open(model)
    opened.warn_if_trained_on(data)
    frame = read_frame(data, **reading)
    target: dict[str, Any] = {"time": time, "event": event, "event_value": event_value}
    table = opened.table(frame, groups=listed(groups), **target)
    features = opened.features(frame)
    training: dict[str, Any] = {}
    if train is not None:
        others = _without(read_frame(train, **reading), frame)
        training = {"X_train": opened.features(others), "y_train": opened.table(others, **target).y}
        training["alpha_path"] = shares or None
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("reading", total=None)
        report = audited(
            opened.estimator,
            features,
            table.y,
            sensitive_features=table.sensitive_features if listed(groups) else None,
            reference=opened.plain_cox(),
            features=_readable(opened, frame, listed(groups)),
            title=title,
            data_name=data.name,
            time_title=time_unit or table.columns.time,
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
    for statement in report.audited.statements:
        typer.echo(printable(f"- {statement.text}"))
    if report.worst_off is not None:
        typer.echo(printable(f"- {report.worst_off.status}"))
    typer.echo(printable(f"The report is in {output}."))


def report_view(path: Path) -> str:
    """The method of a report that writes what the suffix of a file asks for."""
    view = _VIEWS.get(path.suffix.lower())
    if view is None:
        raise ValueError(f"{str(path)!r} must end in .html, .md or .json, which says what to write.")
    return view


def _readable(opened: OpenedModel, frame: pd.DataFrame, groups: tuple[str, ...]) -> pd.DataFrame:
    """Columns of the table that rules may speak about: the model's own, and those that define groups."""
    if opened.encoder is None:
        used = [str(name) for name in opened.estimator.feature_names_in_]
    else:
        described = opened.encoder.describe()
        used = [name for name, made in zip(described["column"], described["features"], strict=True) if made]
    return frame[list(dict.fromkeys([*used, *(name for name in groups if name in frame.columns)]))]


def _without(frame: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """The patients of a table who are not, value by value, in another: who is audited must not be trained on."""
    import pandas as pd

    shared = [name for name in frame.columns if name in left_out.columns]

    def marks(table: pd.DataFrame) -> pd.Series[Any]:
        # Numbers as floats: a column may be whole numbers in one file and, with gaps, decimals in the other.
        values = {
            name: table[name].astype(float)
            if pd.api.types.is_numeric_dtype(table[name])
            else table[name].astype(str)
            for name in shared
        }
        return pd.util.hash_pandas_object(pd.DataFrame(values), index=False)

    kept = frame[~marks(frame).isin(marks(left_out))] if shared else frame
    if len(kept) < len(frame):
        typer.echo(
            f"{len(frame) - len(kept):,} of the {len(frame):,} training patients are also audited, and were left out "
            "of the training of the other models.",
            err=True,
        )
    if not len(kept):
        raise ValueError("train holds no patient who is not also in the audited data: pass other patients.")
    return kept


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError(f"alphas must be shares in (0, 1], such as 1,0.5,0.2; got {text!r}.")
    return share
