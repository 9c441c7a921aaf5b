"""``drosurv audit``: a report on the predictions of a model by group, as one file for the browser."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.model_options import JudgedModel, PredictionOptions
from drosurv.cli.options import (
    FileOptions,
    Groups,
    Horizon,
    KeepColumns,
    Names,
    RunOptions,
    TargetOptions,
    Threshold,
    TimeUnit,
    cause_number,
    command,
    option,
)
from drosurv.cli.outputs import check_outputs, print_times, printable, say
from drosurv.errors import InputError, as_records, recording_warnings
from drosurv.presentation import as_sentence

if TYPE_CHECKING:
    from drosurv.report import AuditReport, Page
    from drosurv.tables import SurvivalTable

_VIEWS = {".html": "to_html", ".htm": "to_html", ".md": "to_markdown", ".json": "to_json"}


@dataclass(frozen=True)
class AuditedPredictions(PredictionOptions):
    """Predictions to audit, which may be risk scores."""

    risk: str | None = option("Column of risk scores; a higher score means an earlier event.", "Other models")
    risk_kind: str | None = option(
        "What the risk scores are: log-risk, hazard-ratio or other, if not recognised.", "Other models"
    )


@dataclass(frozen=True)
class PageOptions:
    """What the page shows."""

    horizon: Horizon = None
    threshold: Threshold = None
    time_unit: TimeUnit = None
    title: str | None = option("Heading of the report.", "Page")
    rules: bool = option(
        "Search the columns for subgroups whose predictions are wrong.", "Page", default=True
    )

    def page(
        self, data: Path, table: SurvivalTable, warnings: list[dict[str, str]], features_train: Any = None
    ) -> Page:
        """Return what the page says of a table besides the results."""
        from drosurv.report import Page

        unit = table.columns.unit_or(self.time_unit)
        return Page(self.title, data.name, unit, warnings=warnings, features_train=features_train)


@command(place=80)
def audit(
    run: RunOptions,
    target: TargetOptions,
    file: FileOptions,
    judged: JudgedModel,
    given: AuditedPredictions,
    page: PageOptions,
    groups: Groups = (),
    keep_columns: KeepColumns = (),
    output: Path = option(
        "File to write: .html for the browser, .md or .json.",
        None,
        "--output",
        "-o",
        default=Path("report.html"),
    ),
    folds: int | None = option(
        "Instead of new patients: cross-validate a model like MODEL on DATA, with this number of folds."
    ),
    train: Path | None = option(
        "Training table, to train plain Cox and to describe its patients; patients of DATA are left out.",
        "Comparison",
    ),
) -> None:
    """Audit a model on patients it was not trained on: for whom its predictions are wrong, and by how much.

    To audit the predictions of any model, pass --predictions FILE --time COLUMN --event COLUMN. For a small cohort
    without new patients, pass --folds 5.

    Example: drosurv audit model test.csv --groups "sex,age>65" -o report.html
    """
    view = report_view(output)
    summary = output.with_suffix(".summary.json") if view == "to_html" else None
    check_outputs([output, summary], [*judged.inputs, train, given.predictions], force=run.force)
    settings: dict[str, Any] = {
        "search_rules": page.rules,
        "random_state": run.seed,
        "horizon": page.horizon,
        "threshold": page.threshold,
        "keep_columns": list(keep_columns),
    }
    if given.predictions is not None:
        if any(one is not None for one in (judged.model, folds, train, judged.coefficients)):
            raise InputError(
                "--predictions is audited without a model, folds or training patients: leave them out."
            )
        if judged.strata is not None:
            raise InputError(
                "--predictions must be those for each patient's stratum already: leave out --strata."
            )
        audited = given.predictions
        told, report = _audit_predictions(audited, file, target, groups, given, judged, page, settings)
    else:
        audited = judged.table("audit")
        if given != AuditedPredictions():
            raise InputError(
                "--survival, --risk, --kind and --risk-kind describe --predictions FILE: pass it."
            )
        told, report = _audit_model(judged, audited, train, file, target, groups, folds, page, settings)
    getattr(report, view)(output)
    if summary is not None:
        report.to_summary(summary)
    if run.as_json:
        typer.echo(report.to_json())
    else:
        _show(report, told, output, summary)


def _audit_predictions(
    path: Path,
    file: FileOptions,
    target: TargetOptions,
    groups: Names,
    given: AuditedPredictions,
    judged: JudgedModel,
    page: PageOptions,
    settings: dict[str, Any],
) -> tuple[list[dict[str, str]], AuditReport]:
    """Audit the predictions in a table; return warnings and the report."""
    from drosurv.predictions.columns import named_like_predictions, prediction_columns
    from drosurv.report import audit as audited
    from drosurv.tables.reading import require_columns
    from drosurv.tables.survival_table import judged_table
    from drosurv.tables.target_columns import TargetColumns

    frame, cause = file.format.read(path), judged.cause
    if target.event is None or (target.time is None and target.start is None):
        raise InputError("--predictions needs the outcomes of its patients: pass --time and --event.")
    require_columns(frame, settings["keep_columns"], "keep_columns")
    named = asdict(target)
    rows = {name: named.pop(name) for name in ("id", "categorical", "numeric", "drop_missing_target")}
    with recording_warnings() as warned:
        columns = TargetColumns(**named, causes=cause is not None)
        # Equal predictions are no sign of one patient.
        rows["numeric"] = [*rows["numeric"], *named_like_predictions(frame, given.survival, given.risk)]
        table = judged_table(frame, columns, groups=groups, clusters=judged.clusters, **rows)
    with recording_warnings() as naming_it:
        table.warn_of_rows(path.name)
    causes = table.columns.causes_in(table.frame)
    found = prediction_columns(table.X, survival=given.survival, risk=given.risk, causes=causes)
    settings["keep_columns"] = [name for name in settings["keep_columns"] if name in found.features]
    risk_kind = given.risk_kind and given.risk_kind.replace("-", " ")
    parsed = given.read(found, table, cause, table.columns.unit_or(page.time_unit), risk_kind=risk_kind)
    notes = [{"severity": "note", "text": text} for text in parsed.notes]
    told = [*_about(path.name, as_records(warned)), *as_records(naming_it)]
    return told, audited(
        parsed.predictions,
        None,
        table.judged_y,
        sensitive_features=table.groups,
        features=found.features if found.features.shape[1] else None,
        cause=cause_number(cause, table),
        page=page.page(path, table, [*told, *notes]),
        **settings,
    )


def _audit_model(
    judged: JudgedModel,
    data: Path,
    train: Path | None,
    file: FileOptions,
    target: TargetOptions,
    groups: Names,
    folds: int | None,
    page: PageOptions,
    settings: dict[str, Any],
) -> tuple[list[dict[str, str]], AuditReport]:
    """Audit a saved model with a table of patients; return warnings and the report."""
    from drosurv.report import audit as audited
    from drosurv.workflows.row_hashes import patients_not_in
    from drosurv.workflows.training import audit_folds

    opened, frame = judged.open(), file.format.read(data)
    with recording_warnings() as warned:
        table = opened.table(frame, groups=groups, clusters=judged.clusters, all_rows=True, **asdict(target))
    with recording_warnings() as naming_it:
        table.warn_of_rows(data.name)
        if folds is None:
            opened.warn_of_rows_seen(table, data)
    audited_model, features = opened.estimator, opened.features(table.frame)
    given = opened.observed(table.frame, judged.strata)
    given["folds"] = audit_folds(table, folds, settings["random_state"])
    given["cause"] = cause_number(judged.cause, table)
    columns = opened.subgroup_columns(table, groups)
    settings["keep_columns"] = opened.kept_columns(settings["keep_columns"], frame, columns)
    described: Any = None
    if folds is None:
        given["reference"], described = opened.plain_cox(), opened.encoder
    else:
        # Each fold fits the encoder again, so that it learns nothing from the patients it is tested on.
        audited_model, features = opened.model, opened.readable(table.frame)
    if train is not None:
        rows = file.format.read(train)
        kept = patients_not_in(rows, table.frame, table.id)
        if not kept.any():
            raise InputError("--train holds no patient who is not also audited: pass another table.")
        if not kept.all():
            say(
                "Note",
                f"{int((~kept).sum()):,} of the {len(kept):,} training patients are also audited, and were left out of "
                "the training of plain Cox.",
            )
        trained_on = opened.table(rows[kept], **asdict(target))
        given |= {"X_train": opened.features(trained_on.frame), "y_train": trained_on.y}
        described = opened.readable(trained_on.frame)
    told = [*_about(data.name, as_records(warned)), *as_records(naming_it)]
    shown = page.page(data, table, [*_about("the training table", opened.warnings), *told], described)
    return told, audited(
        audited_model,
        features,
        table.judged_y,
        sensitive_features=table.groups,
        features=columns,
        page=replace(shown, reference_name="plain Cox"),
        **settings,
        **given,
    )


def _about(where: str, warnings: list[dict[str, str]]) -> list[dict[str, str]]:
    """Say before each warning which table it is about."""
    return [warning | {"text": f"In {where}: {warning['text']}"} for warning in warnings]


def _show(report: AuditReport, told: list[dict[str, str]], output: Path, summary: Path | None) -> None:
    """Print the verdict, the picture of the groups and details, without notes that were `told` before."""
    known = [as_sentence(warning["text"]) for warning in told]
    verdict = report.parts["verdict"].statements
    others = [statement for statement in report.statements if statement not in verdict]
    for heading, statements in (("Verdict", verdict), ("In detail", others)):
        typer.echo(f"{heading}:")
        texts = [s.text for s in statements if s.code != "note_warning" or s.text not in known]
        for text in dict.fromkeys(texts):
            typer.echo(printable(f"- {text}"))
        if heading == "Verdict" and report.picture.rows:
            typer.echo(printable(report.picture.to_text()))
            print_times(report.parts["verdict"].table("of_100_patients"), "the report")
    beside = "" if summary is None else f", its summary for programs in {summary}"
    typer.echo(printable(f"The report is in {output}{beside}."))


def report_view(path: Path) -> str:
    """Return the name of the report's method that writes a file with this suffix."""
    view = _VIEWS.get(path.suffix.lower())
    if view is None:
        raise InputError(f"{str(path)!r} must end in .html, .md or .json, which says what to write.")
    return view
