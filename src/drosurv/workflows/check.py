"""Check a table of patients: its problems, a Cox model of it, an audit of the model, and its repair, on one page."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, arg, as_names, as_records, call
from drosurv.estimators import CauseSpecificCox, CoxPHCV
from drosurv.estimators.coefficient_inference import summary
from drosurv.estimators.coefficients import CoxTable
from drosurv.judging.judged import Horizon
from drosurv.presentation import (
    Statement,
    Table,
    as_sentence,
    cause_in_words,
    cause_label,
    counted,
    first_upper,
    listing,
)
from drosurv.presentation.drawing import bar
from drosurv.repairs import RepairedCox
from drosurv.repairs.repair_views import corrected_groups
from drosurv.report import AuditReport, Page, audit
from drosurv.report.evidence import Part, Section
from drosurv.tables import LeakWarning, SurvivalTable
from drosurv.tables.guess import GuessedColumns
from drosurv.tables.reading import FileFormat, TableNote
from drosurv.workflows.table_to_check import TableToCheck, WantedColumns, prepare_table
from drosurv.workflows.training import Trained, audit_folds, plain_cox_table, train

_FOLDS = 5
# With fewer events a model cannot be evaluated.
_FEWEST_EVENTS = 20
_REPAIR_AND_SUBGROUPS = (
    "Repair chooses its own cuts, and also searches for effects of features that differ in a subgroup. The section on "
    "subgroups compares observed with expected events in subgroups with fixed cuts. So the two may name different "
    "subgroups, with different numbers."
)
# A summary names up to so many columns in a row.
_MOST_NAMED = 20
_STEPS = 5


@dataclass(frozen=True, eq=False, repr=False)
class CheckResult:
    """What :func:`check` found.

    Attributes
    ----------
    model : Pipeline
        :class:`drosurv.CoxPHCV`, or :class:`drosurv.CauseSpecificCox`, on the encoded table, trained on all patients.
    table : SurvivalTable
        The patients that were used.
    columns : GuessedColumns
        Columns of time, event, patient and groups.
    problems : tuple of str
        What is wrong with the table, or was left out of it.
    report : AuditReport
        The page: predictions of each patient come from a model trained without that patient.
    cox : CoxTable or None
        Plain Cox: hazard ratios per unit with intervals and p-values; with causes, of each cause.
    hazards : str
        What the test of proportional hazards found, or why it did not run.
    repaired : RepairedCox or None
        The model with the repairs that held-out patients confirm; None with causes.
    dropped : tuple of str
        Columns that were left out: dates, free text, and columns that give the outcome away.
    n_dropped : int
        Number of rows that were left out, because they have no valid time or event.
    cause : int or None
        Number of the cause that was judged; None without causes.
    """

    model: Any
    table: SurvivalTable
    columns: GuessedColumns
    problems: tuple[str, ...]
    report: AuditReport
    cox: CoxTable | None
    hazards: str
    repaired: RepairedCox | None
    trained: Trained
    dropped: tuple[str, ...] = ()
    n_dropped: int = 0
    cause: int | None = None

    @property
    def n_events(self) -> int:
        """Number of events, of the cause that was judged."""
        return _n_events(self.table, self.cause)

    def summary(self, width: int = 100) -> str:
        """Return what was found as text of at most 40 lines of the given width."""
        time, of = self.table.y["time"], ""
        if self.cause is not None:
            of = f" of {cause_in_words(self.cause, self.table.columns.cause_names)}"
        size = (
            f"{self.table.size} with {counted(self.n_events, 'event')}{of}, followed up to "
            f"{np.max(time):,.6g} {self.table.columns.unit}".rstrip()
        )
        statements = self.report.parts.get("verdict", Part()).statements
        # Warnings stand below the verdict, those of all guesses first.
        order = ["verdict", "blocking_warning", "note_warning"]
        said = sorted(statements, key=lambda one: order.index(one.code) if one.code in order else len(order))
        known = set(map(as_sentence, self.problems))
        model = f"{self._name}, judged on patients that were left out of its training ({_FOLDS} folds)"
        parts: list[tuple[str, Sequence[str], int]] = [
            (f"Table: {size}.", [" ".join(map(first_upper, self.columns.notes))], 6),
            ("Problems of the table:" if self.problems else "Problems of the table: none.", self.problems, 9),
            (
                f"Model: {model}.",
                list(dict.fromkeys(s.text for s in said if s.text not in known)),
                14,
            ),
            (f"Repair of {self._name}:", _changes(self.repaired, self.table.columns.unit), 6),
            ("Plain Cox:", [self.hazards], 5),
        ]
        return "\n".join(line for part in parts for line in _lines(*part, width, self.dropped))

    @property
    def _name(self) -> str:
        return type(self.trained.estimator).__name__

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the page, which needs no other file; also write it to `path` if given."""
        return self.report.to_html(path)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        columns = {name: getattr(self.columns, name) for name in ("time", "event", "entry", "id", "groups")}
        columns["clusters"] = self.table.clusters
        return {
            "patients": self.table.n_patients,
            "rows": len(self.table),
            "events": self.n_events,
            "cause": None if self.cause is None else cause_label(self.cause, self.table.columns.cause_names),
            "columns": columns,
            "notes": list(self.columns.notes),
            "guessed": {role: columns[role] for role in self.columns.guessed},
            "event_value": self.table.columns.event_value,
            "problems": list(self.problems),
            "cox": None if self.cox is None else self.cox.reset_index().to_dict("records"),
            "proportional_hazards": self.hazards,
            "repair": {
                "status": _no_repair() if self.repaired is None else self.repaired.status_,
                "words": [] if self.repaired is None else self.repaired.in_words(self.table.columns.unit),
            },
            "report": self.report.to_dict(),
        }

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line.removeprefix('- '))}</li>" for line in self.summary().splitlines())
        tables = "" if self.cox is None else self.cox.to_html()
        return f"<ul>{lines}</ul>{tables}"

    def save(self, path: str | os.PathLike[str], data: Path) -> None:
        """Save the model, trained on the table of the file `data`, for every command that reads models."""
        records = [{"severity": "note", "text": text} for text in self.problems]
        self.trained.save(Path(path), data, warnings=records)


def check(
    table: Any,
    *,
    time: str | None = None,
    event: str | None = None,
    event_value: str | None = None,
    start: str | None = None,
    end: str | None = None,
    entry: str | None = None,
    id: str | None = None,
    clusters: str | None = None,
    groups: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    keep_columns: Sequence[str] = (),
    cause: str | int | None = None,
    time_unit: str | None = None,
    horizon: float | None = None,
    file_format: FileFormat | None = None,
    random_state: int = 0,
    verbose: bool | None = None,
) -> CheckResult:
    """Check a table of patients, train a Cox model on it, and audit and repair the model.

    Columns that are not given are guessed from names and values. The model, :class:`drosurv.CoxPHCV`, is audited by
    cross-validation with five folds.

    Parameters
    ----------
    table : DataFrame, of pandas or polars, or path
        One row per patient; a path as in :func:`drosurv.tables.reading.read_frame`.
    time, event, event_value, id : str, optional
        Columns of time, event and patient, and the value that means the event.
    start, end : str, optional
        Instead of `time`: columns of dates, or of numbers, between which the time runs, in days or in their unit.
    entry : str, optional
        Column of times from which rows are observed: rows are intervals (entry, time], and those of one patient have
        the same `id`.
    clusters : str, optional
        Column that names clusters of different patients who may be alike, such as hospitals, litters or families. It is
        no feature; folds keep clusters together, and intervals go by cluster.
    groups : sequence of str, optional
        Columns that define groups, or cuts such as ``"age>65"``.
    drop, categorical, numeric : sequence of str
        Columns that are no features; columns of numbers that are codes, and those that are amounts.
    keep_columns : sequence of str
        Columns that are known when a prediction is made, and features even if they look like the outcome.
    cause : str or int, optional
        The cause to judge, by its name or number, if the events have several causes. The model is then
        :class:`drosurv.CauseSpecificCox`, and repair is not tried.
    time_unit : str, optional
        What the times count, such as "days"; by default as the name of the column says.
    horizon : float, optional
        Time at which survival is compared; the median follow-up by default.
    file_format : FileFormat, optional
        Separator, decimal mark, encoding and missing values of a CSV file; recognised by default.
    random_state : int
        Random seed.
    verbose : bool, optional
        Whether a progress bar is shown; by default in a terminal.

    Returns
    -------
    CheckResult
        With ``.summary()``, ``.to_html(path)`` and ``.model``.

    Examples
    --------
    >>> import drosurv
    >>> data = drosurv.datasets.make_hidden_minority(600, random_state=0)
    >>> patients = data.X.assign(time=data.y["time"], event=data.y["event"])
    >>> found = drosurv.check(patients, groups=["x1>0"])  # doctest: +SKIP
    >>> found.to_html("check.html")  # doctest: +SKIP
    """
    wanted = WantedColumns(
        time,
        event,
        event_value,
        start,
        end,
        entry,
        id,
        None if groups is None else as_names(groups),
        as_names(drop),
        as_names(categorical),
        as_names(numeric),
        as_names(keep_columns),
        time_unit,
        None if cause is None else str(cause),
        clusters,
    )
    Horizon(horizon)
    name = Path(table).name if isinstance(table, (str, os.PathLike)) else "the table"
    with bar("reading", shown=verbose) as progress:
        return check_prepared(
            prepare_table(table, wanted, file_format, name),
            horizon=horizon,
            random_state=random_state,
            on_step=lambda doing, steps: progress(doing=doing, of=steps),
        )


def check_prepared(
    prepared: TableToCheck,
    *,
    on_step: Callable[[str, int], None],
    horizon: float | None = None,
    random_state: int = 0,
) -> CheckResult:
    """Check a prepared table, as :func:`check` does; `on_step` gets each step and the number of steps."""
    patients, found, cause = prepared.table, prepared.found, prepared.cause
    events = patients.n_with_event if cause is None else _n_events(patients, cause)
    if events < _FEWEST_EVENTS:
        which = "the event" if cause is None else cause_in_words(cause, patients.columns.cause_names)
        raise ArgumentError(
            "event" if cause is None else "cause",
            f"{arg('event')} column {found.event!r} has {counted(events, 'patient')} with {which}, of "
            f"{patients.n_patients:,}: at least {_FEWEST_EVENTS} are needed to check a model.",
        )
    if cause is not None and patients.entry is not None:
        fit = call(
            "CauseSpecificCox().fit(X, Surv.competing(cause, time, entry=entry))",
            "drosurv fit --model cause-specific-cox --hold-out test.csv",
        )
        judge = call("audit(model, X_test, y_test, cause=1)", "drosurv audit --cause")
        raise ArgumentError(
            "cause", f"{arg('cause')} cannot be used with {arg('entry')} here: use {fit}, and then {judge}."
        )
    estimator = CoxPHCV(random_state=random_state) if cause is None else CauseSpecificCox()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        on_step("training", _STEPS)
        trained = train(
            patients,
            clone(estimator),
            categorical=prepared.wanted.categorical,
            keep_columns=prepared.wanted.keep_columns,
            observed=patients.columns_of_rows,
        )
        on_step("plain Cox", _STEPS)
        cox, hazards = plain_cox_table(trained)
        on_step("repair", _STEPS)
        used = trained.encoder.used_
        X = patients.X[used]
        unfitted = Pipeline([("table", clone(trained.encoder)), ("model", estimator)])
        repaired = None
        if cause is None:
            repaired = RepairedCox(base=clone(unfitted), random_state=random_state)
            repaired.fit(trained.table.X[used], patients.repaired_y)
        else:
            cox = summary(trained.model)
        on_step("audit", _STEPS)
        given = prepared.wanted.event_value is not None
        guesses = found.in_one_line(None if given else patients.columns.event_value)
        notes = [{"severity": "note", "text": guesses}] if guesses else []
        if cox is not None and trained.without_events:
            fitted = "plain Cox" if cause is None else type(estimator).__name__
            without = f"{trained.without_events}: hazard ratios of such levels in the table of {fitted} mean nothing."
            notes.append({"severity": "note", "text": first_upper(without)})
        # Columns that give the outcome away were left out and are no problem there.
        warned = [one for one in prepared.messages if not isinstance(one, (TableNote, LeakWarning))]
        report = audit(
            unfitted,
            X,
            patients.judged_y,
            sensitive_features=patients.groups,
            folds=audit_folds(patients, _FOLDS, random_state),
            features=X,
            keep_columns=list(X.columns),
            horizon=horizon,
            cause=cause,
            random_state=random_state,
            verbose=False,
            page=Page(
                data_name=prepared.name,
                time_unit=patients.columns.unit,
                warnings=[*notes, *as_records(warned)],
                sections=_sections(
                    found,
                    prepared.problems,
                    cox,
                    hazards,
                    repaired,
                    patients.columns.unit,
                    several=trained.table is not patients,
                ),
                also={"corrected": None if repaired is None else corrected_groups(repaired.repairs_)},
            ),
        )
    return CheckResult(
        trained.model,
        patients,
        found,
        prepared.problems,
        report,
        cox,
        hazards,
        repaired,
        trained,
        tuple(prepared.left_out),
        prepared.n_unusable,
        cause,
    )


def _n_events(patients: SurvivalTable, cause: int | None) -> int:
    causes = patients.y["cause" if patients.columns.causes else "event"]
    return int((causes > 0 if cause is None else causes == cause).sum())


def _changes(repaired: RepairedCox | None, unit: str) -> list[str]:
    """Return what was repaired, or why nothing was, in sentences; `unit` is that of times."""
    return [_no_repair()] if repaired is None else repaired.in_words(unit) or [repaired.status_]


def _no_repair() -> str:
    fit = call("CauseSpecificCox().fit(X, y)", "drosurv fit --hold-out")
    repair = call("repair(model, X_test, y_test, frozen=True, cause=1)", "drosurv repair --model")
    return f"Repair was not tried: with causes it needs a model of other patients, from {fit}, and then {repair}."


def _lines(
    heading: str, items: Sequence[str], most: int, width: int, columns: Sequence[str] = ()
) -> list[str]:
    """Return a heading and items below it as wrapped lines.

    Items that do not fit in `most` lines are counted; of `columns`, those that occur only in such items are listed.
    """
    lines = textwrap.wrap(heading, width)
    for number, item in enumerate(items):
        # Options such as --hold-out stay whole.
        wrapped = textwrap.wrap(
            first_upper(item), width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
        )
        if len(lines) + len(wrapped) > most:
            left = most - len(lines) - 1
            if number == 0 and left > 0:
                return [*lines, *wrapped[:left], "  ... (the page has the rest)"]
            shown, rest = " ".join(items[:number]), " ".join(items[number:])
            hidden = [name for name in columns if repr(name) in rest and repr(name) not in shown]
            also = f"; left out are also columns {listing(hidden, _MOST_NAMED)}" if hidden else ""
            return [*lines, *textwrap.wrap(f"- {len(items) - number} more: see the page{also}", width)]
        lines += wrapped
    return lines


def _sections(
    found: GuessedColumns,
    problems: Sequence[str],
    cox: CoxTable | None,
    hazards: str,
    repaired: RepairedCox | None,
    unit: str,
    *,
    several: bool,
) -> tuple[Section, ...]:
    """Return sections of the page besides those of the audit; patients may have `several` rows (entry, time]."""
    columns = [Statement("columns", first_upper(note)) for note in found.notes]
    found_problems = [Statement("problem", first_upper(text), concern=True) for text in problems]
    none = [] if found_problems else [Statement("problem", "No problem of the table was found.")]
    tables: tuple[Table, ...] = () if cox is None else (cox.to_table(),)
    changed = [Statement("repair", text) for text in _changes(repaired, unit)]
    if repaired is not None and repaired.repairs_:
        changed.append(Statement("repair", _REPAIR_AND_SUBGROUPS))

    fitted = "per unit of each column, with the test of proportional hazards"
    if repaired is None:
        fitted = "for each cause, per unit of each column; other causes count as censored"
    if several:
        fitted += "; of columns that change over time, with the value of each patient's first row"

    def section(key: str, heading: str, place: int, part: Part, intro: str) -> Section:
        return Section(key, heading, place, lambda evidence: part, f"<p>{intro}</p>")

    parts = (
        Part((*columns, *found_problems, *none)),
        Part((Statement("hazards", hazards),), tables),
        Part(tuple(changed)),
    )
    confirmed = "a correction is kept if it improves the predictions of held-out patients"
    return (
        section(
            "table",
            "What was read",
            12,
            parts[0],
            "Columns that were recognised, and all problems of the table.",
        ),
        section("cox", "Plain Cox", 60, parts[1], f"Fitted to all patients, {fitted}."),
        section(
            "repair", "What repair does", 70, parts[2], f"Groups that the model is wrong about; {confirmed}."
        ),
    )
