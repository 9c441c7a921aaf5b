"""Check a table of patients: its problems, a Cox model of it, an audit of the model, and its repair, on one page."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, as_records, worded
from drosurv.estimators import CoxPHCV
from drosurv.estimators.coefficients import CoxTable
from drosurv.predictions import final_step
from drosurv.presentation import Statement, Table, counted, first_upper, listing
from drosurv.repairs import RepairedCox
from drosurv.report import AuditReport, audit
from drosurv.report.sections import Part, Section
from drosurv.tables import (
    FileFormat,
    GuessedColumns,
    LeakWarning,
    SurvivalTable,
    TableNote,
    TargetColumns,
    find_leaks,
    guess_columns,
)
from drosurv.tables.columns import HoldsDates, LeftOutColumn, learn_column
from drosurv.tables.dates import holds_dates, time_between, unit_between
from drosurv.tables.problems import names_patients
from drosurv.tables.reading import require_columns, strays_as_missing
from drosurv.tables.values import to_floats
from drosurv.target import BoolArray
from drosurv.tuning.folds import parse_folds
from drosurv.workflows.training import Trained, plain_cox_table, train

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
_STEPS = ("reading", "training", "plain Cox", "repair", "audit")


@dataclass(frozen=True, eq=False, repr=False)
class CheckResult:
    """What :func:`check` found.

    Attributes
    ----------
    model : Pipeline
        :class:`drosurv.CoxPHCV` on the encoded table, trained on all patients.
    table : SurvivalTable
        The patients that were used.
    columns : GuessedColumns
        Columns of time, event, patient and groups.
    problems : tuple of str
        What is wrong with the table, or was left out of it.
    report : AuditReport
        The page: predictions of each patient come from a model trained without that patient.
    cox : CoxTable or None
        Plain Cox: hazard ratios per unit with intervals and p-values.
    hazards : str
        What the test of proportional hazards found, or why it did not run.
    repaired : RepairedCox
        The model with the repairs that held-out patients confirm.
    dropped : tuple of str
        Columns that were left out: dates, free text, and columns that give the outcome away.
    n_dropped : int
        Number of rows that were left out, because they have no valid time or event.
    missing : tuple of str
        Texts that were taken as missing values, as ``column=text``, because all else in the column is a number.
    """

    model: Any
    table: SurvivalTable
    columns: GuessedColumns
    problems: tuple[str, ...]
    report: AuditReport
    cox: CoxTable | None
    hazards: str
    repaired: RepairedCox
    trained: Trained
    dropped: tuple[str, ...] = ()
    n_dropped: int = 0
    missing: tuple[str, ...] = ()

    def summary(self, width: int = 100) -> str:
        """Return what was found as text of at most 40 lines of the given width."""
        event, time = self.table.event, self.table.y[self.table.columns.time_name]
        size = (
            f"{counted(len(self.table), 'patient')} with {counted(int(event.sum()), 'event')}, followed up to "
            f"{np.max(time):,.6g} {self.table.columns.unit}".rstrip()
        )
        verdict = [statement.text for statement in self.report.parts.get("verdict", Part()).statements]
        known = {problem.rstrip(".").lower() for problem in self.problems}
        changed = self.repaired.in_words() or [self.repaired.status_]
        model = f"{self._name}, judged on patients that were left out of its training ({_FOLDS} folds)"
        parts: list[tuple[str, Sequence[str], int]] = [
            (f"Table: {size}.", [" ".join(map(first_upper, self.columns.notes))], 6),
            ("Problems of the table:" if self.problems else "Problems of the table: none.", self.problems, 9),
            (f"Model: {model}.", [text for text in verdict if text.rstrip(".").lower() not in known], 14),
            (f"Repair of {self._name}:", changed, 6),
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
        columns = {name: getattr(self.columns, name) for name in ("time", "event", "id", "groups")}
        return {
            "patients": len(self.table),
            "events": int(self.table.event.sum()),
            "columns": columns,
            "notes": list(self.columns.notes),
            "problems": list(self.problems),
            "cox": None if self.cox is None else self.cox.reset_index().to_dict("records"),
            "proportional_hazards": self.hazards,
            "repair": {"status": self.repaired.status_, "words": self.repaired.in_words()},
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
    table: pd.DataFrame | str | os.PathLike[str],
    *,
    time: str | None = None,
    event: str | None = None,
    event_value: str | None = None,
    start: str | None = None,
    end: str | None = None,
    id: str | None = None,
    groups: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    keep_columns: Sequence[str] = (),
    horizon: float | None = None,
    file_format: FileFormat | None = None,
    data_name: str | None = None,
    n_bootstrap: int = 200,
    random_state: int = 0,
    on_step: Callable[[str, int], None] | None = None,
) -> CheckResult:
    """Check a table of patients, train a Cox model on it, and audit and repair the model.

    Columns that are not given are guessed from names and values. The model, :class:`drosurv.CoxPHCV`, is audited by
    cross-validation with five folds.

    Parameters
    ----------
    table : DataFrame or path
        One row per patient; a path as in :func:`drosurv.tables.read_frame`.
    time, event, event_value, id : str, optional
        Columns of time, event and patient, and the value that means the event.
    start, end : str, optional
        Instead of `time`: columns of dates, or of numbers, between which the time runs, in days or in their unit.
    groups : sequence of str, optional
        Columns that define groups, or cuts such as ``"age>65"``.
    drop, categorical, numeric : sequence of str
        Columns that are no features; columns of numbers that are codes, and those that are amounts.
    keep_columns : sequence of str
        Columns that are known when a prediction is made, and features even if they look like the outcome.
    horizon : float, optional
        Time at which survival is compared; the median follow-up by default.
    file_format : FileFormat, optional
        Separator, decimal mark, encoding and missing values of a CSV file; recognised by default.
    data_name : str, optional
        Name of the table on the page; by default that of the file.
    n_bootstrap : int
        Number of bootstrap replicates for intervals.
    random_state : int
        Seed of everything random.
    on_step : callable, optional
        Called with the name of each step and the number of steps.

    Returns
    -------
    CheckResult
        With ``.summary()``, ``.to_html(path)`` and ``.model``.

    Examples
    --------
    >>> import drosurv
    >>> data = drosurv.datasets.make_hidden_minority(600, random_state=0)
    >>> patients = data.X.assign(time=data.y["time"], event=data.y["event"])
    >>> found = drosurv.check(patients, groups=["x1>0"], n_bootstrap=20)  # doctest: +SKIP
    >>> found.to_html("check.html")  # doctest: +SKIP
    """
    step = on_step or (lambda name, of: None)
    table_name = data_name or ("the table" if isinstance(table, pd.DataFrame) else Path(table).name)
    step(_STEPS[0], len(_STEPS))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        marks = file_format or FileFormat()
        if isinstance(table, pd.DataFrame):
            frame = table
        else:
            marks = marks.recognised(table)
            frame = marks.read(table)
        names = [name for name in frame.columns if names_patients(name, frame[name])]
        frame, strays = strays_as_missing(frame, marks.decimal or ".", [*names, *categorical])
        unit = ""
        if start is not None or end is not None:
            frame, time, unit = _with_time(frame, time, start, end)
        found = guess_columns(frame, time=time, event=event, id=id, groups=groups)
        patients, problems, dropped = _patients(
            frame, found, event_value, drop, categorical, numeric, keep_columns, table_name
        )
    if start is not None:
        # The notes of the saved model name columns of the table, not the computed column of times.
        columns = replace(patients.columns, time=None, start=start, end=end, time_unit=unit)
        patients = replace(patients, columns=columns)
        found = replace(found, notes=(f"time is {columns.time_in_words}.", *found.notes))
    messages = [warning.message for warning in caught if isinstance(warning.message, UserWarning)]
    problems = tuple(dict.fromkeys(map(worded, [*_stray_problems(strays), *problems, *messages])))
    found = replace(found, notes=tuple(map(worded, found.notes)))
    events = int(patients.event.sum())
    if events < _FEWEST_EVENTS:
        raise ArgumentError(
            "event",
            f"event column {found.event!r} has {counted(events, 'event')} in {counted(len(patients), 'patient')}: at "
            f"least {_FEWEST_EVENTS} are needed to check a model.",
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step(_STEPS[1], len(_STEPS))
        trained = train(
            patients,
            CoxPHCV(random_state=random_state),
            categorical=categorical,
            keep_columns=keep_columns,
        )
        step(_STEPS[2], len(_STEPS))
        cox, hazards = plain_cox_table(trained)
        step(_STEPS[3], len(_STEPS))
        X = patients.X[trained.encoder.used_]
        unfitted = Pipeline(
            [("table", clone(trained.encoder)), ("model", CoxPHCV(random_state=random_state))]
        )
        repaired = RepairedCox(base=clone(unfitted), random_state=random_state).fit(
            X, patients.y, clusters=patients.clusters
        )
        step(_STEPS[4], len(_STEPS))
        report = audit(
            unfitted,
            X,
            patients.y,
            sensitive_features=patients.groups,
            folds=parse_folds(_FOLDS, patients.event, random_state, patients.patients),
            horizon=horizon,
            features=X,
            data_name=table_name,
            time_title=patients.columns.unit,
            n_bootstrap=n_bootstrap,
            random_state=random_state,
            warnings=as_records(_for_report(messages)),
            sections=_sections(found, problems, cox, hazards, repaired),
        )
    return CheckResult(
        trained.model,
        patients,
        found,
        problems,
        report,
        cox,
        hazards,
        repaired,
        trained,
        dropped,
        len(frame) - len(patients),
        tuple(f"{name}={text}" for name, texts in strays.items() for text in texts),
    )


def _lines(
    heading: str, items: Sequence[str], most: int, width: int, columns: Sequence[str] = ()
) -> list[str]:
    """Return a heading and items below it as wrapped lines.

    Items that do not fit in `most` lines are counted, and those of the `columns` that only they name are named.
    """
    lines = textwrap.wrap(heading, width)
    for number, item in enumerate(items):
        wrapped = textwrap.wrap(first_upper(item), width, initial_indent="- ", subsequent_indent="  ")
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


def _stray_problems(strays: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for name, texts in strays.items():
        held = listing([f"{text!r} in {counted(rows, 'row')}" for text, rows in texts.items()])
        yield f"column {name!r} holds numbers, but {held}, taken as missing. Correct the table if it has a meaning."


def _for_report(messages: Sequence[Any]) -> list[Warning]:
    """Return the warnings for the report; columns that give the outcome away were left out and are no problem there."""
    return [one for one in messages if not isinstance(one, (TableNote, LeakWarning))]


def _patients(
    frame: pd.DataFrame,
    found: GuessedColumns,
    event_value: str | None,
    drop: Sequence[str],
    categorical: Sequence[str],
    numeric: Sequence[str],
    keep_columns: Sequence[str],
    table_name: str,
) -> tuple[SurvivalTable, tuple[str, ...], tuple[str, ...]]:
    """Return the patients and features that can be used, all problems, and the columns that cannot be used."""
    problems: list[str] = []
    usable = _usable_rows(frame, found, problems)
    frame = frame[usable]
    named = {found.time, found.event, found.id, *drop}
    # Columns with a problem, and those that no model uses.
    refused: dict[str, str] = {}
    useless: dict[str, str] = {}
    for name in (one for one in frame.columns if one not in named):
        if names_patients(name, frame[name]) and name not in categorical:
            useless[name] = f"column {name!r} was left out: it names patients."
            continue
        try:
            learned = learn_column(frame[name], categorical=name in categorical, standardize=True)
        except HoldsDates:
            refused[name] = (
                f"column {name!r} holds dates and was left out: turn it into an age or a number of days."
            )
        except ValueError as error:
            refused[name] = f"{error} The column was left out."
        else:
            if isinstance(learned, LeftOutColumn):
                useless[name] = f"column {name!r} was left out: {learned.reason}."
    left_out = refused | useless
    columns = TargetColumns(found.time, found.event, event_value)
    dropped = [*drop, *left_out]
    patients = SurvivalTable.parse(
        frame, columns, groups=found.groups, drop=dropped, categorical=list(categorical), id=found.id
    )
    require_columns(frame, numeric, "numeric")
    require_columns(frame, keep_columns, "keep_columns")
    leaks = find_leaks(patients.X.drop(columns=list(keep_columns), errors="ignore"), patients.y)
    for name, reason in leaks.items():
        problems.append(
            f"column {name!r} may give the outcome away and was left out: {reason}. Name it in keep_columns if it is "
            "known when a prediction is made."
        )
    if leaks:
        patients = replace(patients, X=patients.X.drop(columns=list(leaks)))
    if patients.X.shape[1] == 0:
        raise ArgumentError("drop", f"the table has no features. {' '.join(left_out.values())}")
    problems += left_out.values()
    problems += map(str, patients.problems(categorical, numeric, table_name))
    return patients, tuple(problems), (*left_out, *leaks)


def _with_time(
    frame: pd.DataFrame, time: str | None, start: str | None, end: str | None
) -> tuple[pd.DataFrame, str, str]:
    """Replace two columns by one of the times between them; return also its name and the unit of the times."""
    if time is not None or start is None or end is None:
        raise ArgumentError(
            "start", "pass either time, or both start and end, columns of dates or of numbers."
        )
    require_columns(frame, [start], "start")
    require_columns(frame, [end], "end")
    unit = unit_between(frame[start], frame[end])
    name = "days" if unit == "days" else "time"
    times, frame = time_between(frame[start], frame[end]), frame.drop(columns=[start, end])
    if name in frame.columns:
        raise ArgumentError("time", f"the table has a column {name!r}: pass time={name!r}, or rename it.")
    return frame.assign(**{name: times}), name, unit


def _usable_rows(frame: pd.DataFrame, found: GuessedColumns, problems: list[str]) -> BoolArray:
    """Return which rows have a valid time and event; add to `problems` what is wrong with the others."""
    if holds_dates(frame[found.time]):
        raise ArgumentError(
            "time", f"time column {found.time!r} holds dates: pass a column of numbers, such as days."
        )
    times = to_floats(frame[found.time], "time ")
    usable = np.ones(len(frame), dtype=np.bool_)
    for rows, why in (
        (np.isnan(times), f"no time in column {found.time!r}"),
        (times < 0, f"a negative time in column {found.time!r}"),
        (frame[found.event].isna().to_numpy(), f"no event in column {found.event!r}"),
    ):
        if rows.any():
            first = int(np.flatnonzero(rows)[0]) + 1
            problems.append(f"{counted(int(rows.sum()), 'row')} with {why} left out (first: row {first}).")
            usable &= ~rows
    return usable


def _sections(
    found: GuessedColumns,
    problems: Sequence[str],
    cox: CoxTable | None,
    hazards: str,
    repaired: RepairedCox,
) -> tuple[Section, ...]:
    """Return sections of the page besides those of the audit."""
    read = [Statement("columns", first_upper(note)) for note in found.notes]
    wrong = [Statement("problem", first_upper(text), concern=True) for text in problems]
    none = [] if wrong else [Statement("problem", "No problem of the table was found.")]
    tables: tuple[Table, ...] = () if cox is None else (cox.to_table(),)
    changed = [Statement("repair", text) for text in repaired.in_words() or [repaired.status_]]
    if repaired.repairs_:
        changed.append(Statement("repair", _REPAIR_AND_SUBGROUPS))

    def section(key: str, heading: str, place: int, intro: str, part: Part) -> Section:
        return Section(key, heading, place, lambda evidence: part, f"<p>{intro}</p>")

    return (
        section(
            "table",
            "What was read",
            12,
            "Columns that were recognised, and all problems of the table.",
            Part(statements=(*read, *wrong, *none)),
        ),
        section(
            "cox",
            "Plain Cox",
            60,
            "Fitted to all patients, per unit of each column, with the test of proportional hazards.",
            Part((Statement("hazards", hazards),), tables),
        ),
        section(
            "repair",
            "What repair does",
            70,
            f"Groups that {type(final_step(repaired.base_)).__name__} is wrong about; corrections are made if patients "
            "not used for them confirm them.",
            Part(tuple(changed)),
        ),
    )
