"""``drosurv audit``: a report on whom a saved model serves worst, as one file for the browser."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.model_argument import Coefficients, OptionalData, OptionalModel, open_model, table_of
from drosurv.cli.options import (
    Cause,
    FileOptions,
    Force,
    Groups,
    Json,
    Names,
    Seed,
    TargetOptions,
    about,
    cause_number,
    command,
)
from drosurv.cli.outputs import check_outputs, printable, say
from drosurv.errors import InputError, as_records, recording_warnings, require

if TYPE_CHECKING:
    from drosurv.report import AuditReport
    from drosurv.tables import SurvivalTable
    from drosurv.tables.prediction_columns import PredictionColumns
    from drosurv.workflows import OpenedModel

_VIEWS = {".html": "to_html", ".htm": "to_html", ".md": "to_markdown", ".json": "to_json"}
# Values of --kind that the library calls otherwise.
_KINDS = {"event": "event probability"}


@command(place=80)
def audit(
    target: TargetOptions,
    file: FileOptions,
    model: OptionalModel = None,
    data: OptionalData = None,
    coefficients: Coefficients = None,
    groups: Groups = (),
    strata: Annotated[str | None, about("Column of strata, if not the one trained with.", "Columns")] = None,
    output: Annotated[
        Path, about("File to write: .html for the browser, .md or .json.", None, "--output", "-o")
    ] = Path("report.html"),
    predictions: Annotated[
        Path | None,
        about(
            "Instead of MODEL and DATA: table of any model's predictions, with time and event.",
            "Predictions of any model",
        ),
    ] = None,
    survival: Annotated[
        Names,
        about(
            "Columns of predicted survival, such as S365=365,S730=730, if not recognised.",
            "Predictions of any model",
        ),
    ] = (),
    risk: Annotated[
        str | None, about("Column of risk scores, higher meaning sooner.", "Predictions of any model")
    ] = None,
    kind: Annotated[
        str | None,
        about(
            "What the probabilities are: survival or event, if not recognised.", "Predictions of any model"
        ),
    ] = None,
    risk_kind: Annotated[
        str | None,
        about(
            "What the risk scores are: log-risk, hazard-ratio or other, if not recognised.",
            "Predictions of any model",
        ),
    ] = None,
    horizon: Annotated[
        float | None, about("Time at which survival and decisions are judged.", "Page")
    ] = None,
    threshold: Annotated[
        float | None, about("Event probability from which on a patient is treated: judges decisions.", "Page")
    ] = None,
    cause: Cause = None,
    folds: Annotated[
        int | None,
        about("Instead of new patients: cross-validate a model like MODEL on so many folds of DATA."),
    ] = None,
    train: Annotated[
        Path | None,
        about(
            "Training table, to train the models of the alpha slider; patients of DATA are left out.",
            "Comparison",
        ),
    ] = None,
    alphas: Annotated[
        Names, about("Shares of patients to protect on the slider, such as 1,0.5,0.2.", "Comparison")
    ] = (),
    time_unit: Annotated[
        str | None, about("What the times count, such as days, if the column does not say it.", "Page")
    ] = None,
    title: Annotated[str | None, about("Heading of the report.", "Page")] = None,
    rules: Annotated[
        bool, about("Search the columns for subgroups whose predictions are wrong.", "Page")
    ] = True,
    bootstrap: Annotated[
        int, about("Bootstrap replicates for intervals and tests of the audited model.", "Page")
    ] = 500,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Audit a model on patients it has not seen: whom it serves worst, by how much, and whether that is chance.

    To audit the predictions of any model, pass --predictions FILE --time COLUMN --event COLUMN. For a small cohort
    without new patients, pass --folds 5.

    Example: drosurv audit model test.csv --groups "sex,age>65" --train patients.csv -o report.html
    """
    view = report_view(output)
    summary = output.with_suffix(".summary.json") if view == "to_html" else None
    check_outputs([output, summary], [model, data, train, predictions, coefficients], force=force)
    settings: dict[str, Any] = {"n_bootstrap": bootstrap, "search_rules": rules, "random_state": seed}
    settings |= {"horizon": horizon, "threshold": threshold}
    words = {"title": title, "time_unit": time_unit}
    if predictions is not None:
        if any(given is not None for given in (model, folds, train, coefficients)) or alphas:
            raise InputError(
                "--predictions is audited without a model, folds, training patients or alphas: leave them out."
            )
        if strata is not None:
            raise InputError(
                "--predictions must be those for each patient's stratum already: leave out --strata."
            )
        if target.entry is not None:
            raise InputError(
                "--predictions are survival probabilities from time 0: leave out --entry. Late entry can only be "
                "audited with a model."
            )
        kinds = {
            "kind": kind_of(kind),
            "risk_kind": risk_kind and risk_kind.replace("-", " "),
        }
        report = _audit_predictions(
            predictions, file, target, groups, survival, risk, cause, kinds, words, settings
        )
    else:
        data = table_of("audit", model, data, coefficients)
        if survival or risk or kind or risk_kind:
            raise InputError(
                "--survival, --risk, --kind and --risk-kind describe --predictions FILE: pass it."
            )
        if alphas and train is None:
            raise InputError("--alphas names models to train: pass --train FILE with the training patients.")
        settings["alpha_path"] = [_share(text) for text in alphas] or None
        opened = open_model(model, coefficients)
        report = _audit_model(
            opened, data, train, file, target, groups, strata, folds, cause, words, settings
        )
    getattr(report, view)(output)
    if summary is not None:
        report.to_summary(summary)
    if as_json:
        typer.echo(report.to_json())
    else:
        _show(report, predictions or data or output, output, summary)


def _audit_predictions(
    path: Path,
    file: FileOptions,
    target: TargetOptions,
    groups: Names,
    survival: Names,
    risk: str | None,
    cause: str | None,
    kinds: dict[str, Any],
    words: dict[str, Any],
    settings: dict[str, Any],
) -> AuditReport:
    from drosurv.given_predictions import read_columns
    from drosurv.report import Page
    from drosurv.report import audit as audited
    from drosurv.tables import SurvivalTable
    from drosurv.tables.ids import repeated_id
    from drosurv.tables.prediction_columns import prediction_columns
    from drosurv.tables.target_columns import TargetColumns

    frame = file.format.read(path)
    if target.event is None or (target.time is None and target.start is None):
        raise InputError("--predictions needs the outcomes of its patients: pass --time and --event.")
    given = asdict(target)
    rows = {name: given.pop(name) for name in ("id", "categorical", "drop_missing_target")}
    rows["id"] = rows["id"] or repeated_id(frame, list(given.values()))
    with recording_warnings() as warned:
        columns = TargetColumns(**given, causes=cause is not None)
        table = SurvivalTable.parse(frame, columns, groups=groups, **rows)
        table.warn_of_copies(path.name)
    number, causes = cause_number(cause, table), table.columns.causes_in(table.frame)
    found = prediction_columns(table.X, survival=survival, risk=risk, causes=causes)
    read = read_columns(found, table.y, unit=_unit(words, table), cause=number, **kinds)
    say_columns(found)
    say_notes(read.notes)
    notes = [{"severity": "note", "text": text} for text in read.notes]
    return audited(
        read.predictions,
        None,
        table.y,
        sensitive_features=table.groups,
        id=table.clusters,
        features=found.features if found.features.shape[1] else None,
        cause=number,
        page=Page(
            title=words["title"],
            data_name=path.name,
            time_unit=_unit(words, table),
            warnings=[*_about(path.name, as_records(warned)), *notes],
        ),
        **settings,
    )


def kind_of(kind: str | None) -> Any:
    """Return what the library calls a kind of probabilities."""
    return _KINDS.get(str(kind), kind)


def say_columns(found: PredictionColumns) -> None:
    """Say which columns of a table were not read as predictions."""
    if found.ids:
        say("Note", f"not used, because it names patients or rows: {', '.join(found.ids)}.")
    if found.unread:
        say(
            "Warning",
            f"{', '.join(found.unread)} may be predictions too, but are not used: if they are, name them in --survival "
            "as COLUMN=TIME.",
        )


def say_notes(notes: Iterable[str]) -> None:
    """Say how predictions were read."""
    for note in notes:
        say("Note", note)


def _unit(words: dict[str, Any], table: SurvivalTable) -> str:
    """Return the unit of the times, as given or as the name of the column says; empty if it is unknown."""
    unit = str(words["time_unit"] or table.columns.unit)
    return "" if unit == "time" else unit


def _audit_model(
    opened: OpenedModel,
    data: Path,
    train: Path | None,
    file: FileOptions,
    target: TargetOptions,
    groups: Names,
    strata: str | None,
    folds: int | None,
    cause: str | None,
    words: dict[str, Any],
    settings: dict[str, Any],
) -> AuditReport:
    from drosurv.report import Page
    from drosurv.report import audit as audited
    from drosurv.report.cross_fit import fold_parts
    from drosurv.tables.rows import patients_not_in

    frame = file.format.read(data)
    with recording_warnings() as warned:
        table = opened.table(frame, groups=groups, **asdict(target))
        table.warn_of_copies(data.name)
        if folds is None:
            opened.warn_of_rows_seen(table, data)
    audited_model, features = opened.estimator, opened.features(table.frame)
    given: dict[str, Any] = {"entry": table.entry, **opened.observed(table.frame, strata)}
    given["cause"] = cause_number(cause, table)
    given["id"] = table.clusters
    described: Any = None
    if folds is None:
        given["reference"], described = opened.plain_cox(), opened.encoder
    else:
        if len(table) < len(frame) and opened.notes.get("observed", {}).get("id") is not None:
            raise InputError(
                "--folds needs one row per patient, and patients have several rows here: leave it out, and audit a "
                "model that was fitted to other patients."
            )
        # Each fold fits the encoder again, so that it learns nothing from the patients it is tested on.
        audited_model, features = opened.model, opened.readable(table.frame)
        given["folds"] = fold_parts(table.event, folds, settings["random_state"], table.patients)
    if train is not None:
        rows = file.format.read(train)
        kept = patients_not_in(rows, table.frame, table.id)
        if not kept.all():
            say(
                "Note",
                f"{int((~kept).sum()):,} of the {len(kept):,} training patients are also audited, and were left out of "
                "the training of the other models.",
            )
        trained_on = opened.table(rows[kept], **asdict(target))
        given |= {"X_train": opened.features(trained_on.frame), "y_train": trained_on.y}
        described = opened.readable(trained_on.frame)
    return audited(
        audited_model,
        features,
        table.y,
        sensitive_features=table.groups,
        features=opened.describing(table, groups),
        page=Page(
            title=words["title"],
            data_name=data.name,
            time_unit=_unit(words, table),
            warnings=[
                *_about("the training table", opened.warnings),
                *_about(data.name, as_records(warned)),
            ],
            features_train=described,
        ),
        **settings,
        **given,
    )


def _about(where: str, warnings: list[dict[str, str]]) -> list[dict[str, str]]:
    """Say before each warning which table it is about, unless it names the table itself."""
    return [
        warning if where in warning["text"] else warning | {"text": f"In {where}: {warning['text']}"}
        for warning in warnings
    ]


def _show(report: AuditReport, audited: Path, output: Path, summary: Path | None) -> None:
    """Print the verdict, the picture of the groups and details; notes on the audited table were printed before."""
    for heading, statements in (("Verdict", report.statements), ("In detail", report.audited.statements)):
        typer.echo(f"{heading}:")
        said = [s.text for s in statements if s.code != "note_warning" or audited.name not in s.text]
        for text in dict.fromkeys(said):
            typer.echo(printable(f"- {text}"))
        if heading == "Verdict" and report.picture.rows:
            typer.echo(printable(report.picture.to_text()))
    beside = "" if summary is None else f", its summary for programs in {summary}"
    typer.echo(printable(f"The report is in {output}{beside}."))


def report_view(path: Path) -> str:
    """Return the name of the report's method that writes a file with this suffix."""
    view = _VIEWS.get(path.suffix.lower())
    if view is None:
        raise InputError(f"{str(path)!r} must end in .html, .md or .json, which says what to write.")
    return view


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    require(0 < share <= 1, "alphas", "be shares in (0, 1], such as 1,0.5,0.2", text)
    return share
