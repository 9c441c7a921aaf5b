"""Prepare a table for :func:`drosurv.check`: guess its columns, leave out what no model can use, and say so."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, ArgumentTypeError, InputError, arg, call, row_number
from drosurv.patients.observation import Rows
from drosurv.patients.target import BoolArray
from drosurv.presentation import cause_in_words, counted, first_upper, listing
from drosurv.tables.columns import HoldsDates, LeftOutColumn, learn_column, refuse_texts
from drosurv.tables.guess import GuessedColumns, guess_columns
from drosurv.tables.ids import names_patients, patient_columns
from drosurv.tables.leaks import find_leaks
from drosurv.tables.problems import refuse_totals
from drosurv.tables.reading import FileFormat, as_table, require_columns, require_roles
from drosurv.tables.survival_table import SurvivalTable
from drosurv.tables.target_columns import TargetColumns
from drosurv.tables.values import to_floats

# Roles of a single column.
_SINGLE = ("time", "event", "start", "end", "entry", "id", "clusters")


@dataclass(frozen=True)
class WantedColumns:
    """Columns that the user named; parameters as in :func:`drosurv.check`."""

    time: str | None = None
    event: str | None = None
    event_value: str | None = None
    start: str | None = None
    end: str | None = None
    entry: str | None = None
    id: str | None = None
    groups: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    numeric: Sequence[str] = ()
    keep_columns: Sequence[str] = ()
    time_unit: str | None = None
    cause: str | None = None
    clusters: str | None = None

    def __post_init__(self) -> None:
        """Raise if one column is not given by its name."""
        for role in _SINGLE:
            if np.ndim(named := getattr(self, role)):
                raise ArgumentTypeError(
                    role, f"{arg(role)} must be the name of a column, got {type(named).__name__}."
                )

    def guess(self, frame: pd.DataFrame) -> tuple[GuessedColumns, TargetColumns]:
        """Guess the columns that were not named, and the value that means the event."""
        if (self.start is None) != (self.end is None) or (self.time is not None and self.start is not None):
            raise ArgumentError(
                "start",
                f"pass either {arg('time')}, or both {arg('start')} and {arg('end')}, columns of dates or of numbers.",
            )
        require_roles(frame, {role: getattr(self, role) for role in _SINGLE})
        rest = frame.drop(columns=[name for name in (self.start, self.clusters) if name is not None])
        named = {role: getattr(self, role) for role in ("event", "id", "entry")}
        no_ids = [*self.drop, *self.categorical, *self.numeric]
        # Those that are not given are guessed when it is known which columns are left out.
        groups = self.groups or ()
        found = guess_columns(rest, time=self.end or self.time, drop=no_ids, groups=groups, **named)
        columns = TargetColumns(
            None if self.start else found.time,
            found.event,
            self.event_value,
            self.start,
            self.end,
            found.entry,
            causes=self.cause is not None,
            time_unit=self.time_unit or "",
        )
        columns.require(frame)
        known = frame[found.event].notna()
        refuse_totals(frame[known])
        columns.refuse_unknown(frame[found.event], also=None)
        with warnings.catch_warnings(action="ignore"):
            # Guesses are told together.
            columns = columns.resolved(frame[known])
        columns.refuse_empty(frame[found.event])
        if self.cause is not None:
            found = replace(found, notes=(*found.notes, _judged_cause(frame[known], columns, self.cause)))
        # Raises if the unit that is given contradicts the columns.
        columns.unit_or(self.time_unit)
        if self.start is not None:
            how = (f"time is {columns.time_in_words}.", *columns.dates_in_words(frame))
            found = replace(found, notes=(*how, *found.notes), question="")
        return found, columns


def _judged_cause(frame: pd.DataFrame, columns: TargetColumns, cause: str) -> str:
    """Say which cause is judged, and which compete with it; raise if there is no such cause."""
    judged = columns.cause_number(cause)
    names = columns.causes_in(frame)
    if judged > len(names):
        raise ArgumentError(
            "cause",
            f"{arg('cause', cause)} is no cause of event column {columns.event!r}, which holds {listing(names)}: name "
            f"one of these, or leave {arg('cause')} out to judge an event of any cause.",
        )
    others = [cause_in_words(k, columns.cause_names) for k in range(1, len(names) + 1) if k != judged]
    called = cause_in_words(judged, columns.cause_names)
    verb = "competes" if len(others) == 1 else "compete"
    beside = f"; {listing(others)} {verb} with it" if others else ""
    return f"the event is {called} of column {columns.event!r}{beside}."


@dataclass(frozen=True, eq=False)
class TableToCheck:
    """The patients and features that can be used, and what was left out.

    `wanted` are the columns that the user named, `found` those that are used; `left_out` are columns with the reason;
    `messages` are warnings that were given; `name` is that of the table, and `n_unusable` its number of rows without a
    valid target. `first_event` says whether rows after the first event of a patient were left out.
    """

    name: str
    wanted: WantedColumns
    table: SurvivalTable
    found: GuessedColumns
    problems: tuple[str, ...]
    left_out: Mapping[str, str]
    messages: tuple[Warning, ...]
    n_unusable: int
    first_event: bool

    @property
    def cause(self) -> int | None:
        """Number of the cause that is judged; None without causes."""
        return None if self.wanted.cause is None else self.table.columns.cause_number(self.wanted.cause)


def prepare_table(
    table: Any, wanted: WantedColumns, file_format: FileFormat | None, table_name: str
) -> TableToCheck:
    """Read a table from a file, or take that of pandas or polars, and prepare it; messages call it `table_name`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        is_file = isinstance(table, (str, os.PathLike))
        frame = (file_format or FileFormat()).read(table) if is_file else as_table(table)
        # First, because a column of times with a text is not recognised.
        roles = [getattr(wanted, role) for role in _SINGLE]
        known = [*patient_columns(frame), *wanted.categorical, *wanted.drop, *roles]
        refuse_texts(frame.drop(columns=known, errors="ignore"))
        found, columns = wanted.guess(frame)
        problems: list[str] = []
        usable = _usable_rows(frame, columns, problems)
        patients, left_out = _patients(frame[usable], found, columns, wanted, problems)
        if wanted.groups is None:
            others = [name for name in (*columns.names, wanted.clusters, *left_out) if name is not None]
            features = list(patients.X.columns)
            found = found.with_groups(_at_first_rows(patients).frame.drop(columns=others), features)
            patients = patients.with_groups(found.groups, wanted.categorical)
        problems += _remaining(patients, found, wanted, table_name)
    messages = tuple(warning.message for warning in caught if isinstance(warning.message, UserWarning))
    all_problems = dict.fromkeys([*problems, *map(str, messages)])
    return TableToCheck(
        table_name,
        wanted,
        patients,
        found,
        tuple(all_problems),
        left_out,
        messages,
        n_unusable=int((~usable).sum()),
        first_event=len(patients) < int(usable.sum()),
    )


def _patients(
    frame: pd.DataFrame,
    found: GuessedColumns,
    columns: TargetColumns,
    wanted: WantedColumns,
    problems: list[str],
) -> tuple[SurvivalTable, dict[str, str]]:
    """Return the patients and features that can be used, and the columns that cannot be; add to `problems`."""
    for role in ("drop", "categorical", "numeric", "keep_columns"):
        require_columns(frame, getattr(wanted, role), role)
    others = {*columns.names, found.id, wanted.clusters, *wanted.drop}
    refused, useless = _unusable_columns(frame, others, wanted.categorical)
    left_out = refused | useless
    try:
        patients = SurvivalTable.parse(
            frame,
            columns,
            groups=found.groups,
            drop=[*wanted.drop, *left_out],
            categorical=list(wanted.categorical),
            numeric=list(wanted.numeric),
            id=found.id,
            clusters=wanted.clusters,
        )
        Rows.parse(patients.trained_y, judged=False, require_event=False)
    except ArgumentError as error:
        if error.argument != "id" or "id" not in found.guessed:
            raise
        guess = (
            f"column {found.id!r} was taken as id; if it names no patients, pass {arg('drop', [found.id])}"
        )
        raise ArgumentError("id", f"{guess}. {first_upper(str(error))}") from error
    several, n_rows = patients.n_with_several_events, len(patients)
    if several:
        patients = patients.until_first_event()
        later = counted(n_rows - len(patients), "row")
        same = call("read_survival_table(..., first_event=True)", "drosurv fit --first-event")
        problems.append(
            f"{counted(several, 'patient')} of {patients.n_patients:,} with several events: the first is predicted, "
            f"and {later} after it left out. {same} does the same."
        )
    first = _at_first_rows(patients)
    if first is not patients:
        # Such as the number of the visit.
        _, constant = _unusable_columns(first.X, set(), wanted.categorical)
        left_out |= {
            name: f"{text.rstrip('.')} in each patient's first row." for name, text in constant.items()
        }
        patients, first = (replace(one, X=one.X.drop(columns=list(constant))) for one in (patients, first))
    checked = first.X.drop(columns=list(wanted.keep_columns), errors="ignore")
    leaks = {
        name: f"column {name!r} may give the outcome away and was left out: {reason}. Name it in "
        f"{arg('keep_columns')} if it is known when a prediction is made."
        for name, reason in find_leaks(checked, first.y, first.entry).items()
    }
    if leaks:
        patients = replace(patients, X=patients.X.drop(columns=list(leaks)))
    if patients.X.shape[1] == 0:
        taken = listing(
            [repr(name) for name in (*columns.names, found.id, wanted.clusters, *wanted.drop) if name], 12
        )
        why = [f"{taken} have another role or were dropped.", *{**leaks, **left_out}.values()]
        raise ArgumentError("drop", f"the table has no features: {' '.join(why)}")
    problems += [*leaks.values(), *left_out.values()]
    return patients, left_out | leaks


def _at_first_rows(patients: SurvivalTable) -> SurvivalTable:
    """Return the table that a model is trained on; the audit names columns that change over time."""
    with warnings.catch_warnings(action="ignore"):
        return patients.at_first_rows()


def _remaining(
    patients: SurvivalTable, found: GuessedColumns, wanted: WantedColumns, table_name: str
) -> list[str]:
    """Return what is wrong with the patients and features that are used."""
    problems = [
        f"the groups of {name!r} cannot be compared: all patients are in one, {of.iloc[0]}."
        for name, of in _at_first_rows(patients).sensitive_features.items()
        if len(of.unique()) == 1
    ]
    given = {role: getattr(wanted, role) for role in ("categorical", "numeric", "keep_columns")}
    texts = map(str, patients.problems(table_name, **given))
    # The question about entry times stands beside the guesses.
    return [*problems, *(text for text in texts if text != found.question)]


def _unusable_columns(
    frame: pd.DataFrame, others: set[str | None], categorical: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return columns with a problem, and those that no model uses, each with the reason."""
    refused: dict[str, str] = {}
    useless: dict[str, str] = {}
    for name in (one for one in frame.columns if one not in others):
        if names_patients(name, frame[name]) and name not in categorical:
            useless[name] = f"column {name!r} was left out: it names patients."
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                # Training gives the same warnings.
                learned = learn_column(frame[name], categorical=name in categorical, standardize=True)
        except HoldsDates:
            refused[name] = (
                f"column {name!r} holds dates and was left out: turn it into an age or a number of days."
            )
        except InputError as error:
            refused[name] = f"{error} The column was left out."
        else:
            if isinstance(learned, LeftOutColumn):
                useless[name] = f"column {name!r} was left out: {learned.reason}."
    return refused, useless


def _usable_rows(frame: pd.DataFrame, columns: TargetColumns, problems: list[str]) -> BoolArray:
    """Return which rows have a valid time and event; add to `problems` what is wrong with the others."""
    times, named = columns.times(frame), columns.time or columns.end
    wrong: list[tuple[Any, str]] = [
        (np.isnan(times), f"no time in column {named!r}"),
        (times < 0, f"a negative time in column {named!r}"),
        (frame[columns.event].isna().to_numpy(), f"no event in column {columns.event!r}"),
    ]
    if columns.entry is not None:
        since = to_floats(frame[columns.entry], "entry")
        wrong.append((~(since < times), f"an entry in column {columns.entry!r} that is not before the time"))
    usable = np.ones(len(frame), dtype=np.bool_)
    for rows, why in wrong:
        rows = rows & usable
        if rows.any():
            first = row_number(rows.argmax(), frame)
            problems.append(f"{counted(int(rows.sum()), 'row')} with {why} left out (first: row {first}).")
            usable &= ~rows
    return usable
