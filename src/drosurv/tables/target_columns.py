"""Columns of a table that hold the target, and the value that means the event."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, InputError, arg, call, row_number, warn_caller
from drosurv.patients.observation import given_arguments
from drosurv.patients.outcome_names import (
    ALIVE,
    NO,
    STATES,
    UNKNOWN,
    YES,
    EventReading,
    doubt_of_event,
    endpoint,
    same_endpoint,
    same_value,
    value_of_event,
    value_word,
    words,
)
from drosurv.patients.target import BoolArray, FloatArray, Surv, number_of_cause, parse_competing_target
from drosurv.presentation import counted, listing, unit_in
from drosurv.tables.dates import holds_dates, how_read, time_between, unit_between
from drosurv.tables.number_texts import like_number
from drosurv.tables.reading import TableNote, require_roles
from drosurv.tables.values import (
    first_wrong,
    floats,
    holds_numbers,
    label,
    labels,
    may_be_quoted,
    numbers_in,
    quoted,
    shown,
    to_floats,
)

# A column with more values holds times, not codes of outcomes.
_MOST_OUTCOMES = 20
# A larger share of empty rows may mean that the event did not happen.
_MOST_EMPTY = 0.05
# Texts among causes that mean censored; letters may be anything.
_CENSORED = ALIVE | {"0", *(word for word in NO if len(word) > 1)}


@dataclass(frozen=True)
class TargetColumns:
    """The columns of time and event.

    Parameters
    ----------
    time : str or None
        Column of times: numbers, not dates; None if `start` and `end` are given.
    event : str
        Column of event flags.
    event_value : str, optional
        The value of `event` that means the event happened; every other value means censored.
        Not needed for 0 and 1, true and false, and such plain words as yes and no, or dead and alive; 1 and 2 are
        read as R's survival package does.
    start, end : str, optional
        Columns between which the time runs: dates, with the time in days; numbers such as 202103, with the time in
        months; or other numbers, with the time in their unit.
    entry : str, optional
        Column of times from which patients are under observation (left truncation).
    causes : bool
        Whether `event` holds competing causes: codes, of which 0 is censored and 1, 2, ... are the causes, or texts.
    time_unit : str
        Unit of the times, such as "years"; by default as the name of the column says. That of the time between `start`
        and `end` is set by :meth:`resolved`: "days" between dates, "months" between months such as 202103, and "time"
        between other numbers if it is not given.
    cause_names : tuple of str
        Texts of the causes 1, 2, ..., which :meth:`resolved` sets from the table; empty if they are codes.
    """

    time: str | None
    event: str
    event_value: str | None = None
    start: str | None = None
    end: str | None = None
    entry: str | None = None
    causes: bool = False
    time_unit: str = ""
    cause_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.start is None) != (self.end is None) or (self.time is None) == (self.start is None):
            raise ArgumentError("time",
                f"the times are needed: pass either {arg('time')}, a column of numbers, or both "
                f"{arg('start')} and {arg('end')}, columns of dates or of numbers.")  # fmt: skip

    @property
    def time_name(self) -> str:
        """Name of the times."""
        return self.time or ("days" if self.time_unit in ("", "days") else "time")

    @property
    def unit(self) -> str:
        """Unit of the times, such as "days"; empty if it is not known."""
        return unit_in(self.time_name) if self.time_unit in ("", "time") else self.time_unit

    def unit_or(self, given: str | None) -> str:
        """Return the unit of the times, as a user gives it or as it is known; empty if it is not.

        Raise if the given unit is not that of the time between `start` and `end`, if this is known.
        """
        if given and self.start is not None and self.time_unit not in ("", "time", given):
            raise ArgumentError(
                "time_unit",
                f"{arg('time_unit', given)} contradicts {arg('start')} and {arg('end')}: the time between these "
                f"columns is in {self.time_unit}. Leave it out.",
            )
        return given or self.unit

    @property
    def time_in_words(self) -> str:
        """The column of times, or what the time is between."""
        if self.time_unit == "time":
            return f"{self.end} minus {self.start}, in the unit of these columns"
        return self.time or f"{self.time_unit or 'days'} from {self.start} to {self.end}"

    def dates_in_words(self, frame: pd.DataFrame) -> list[str]:
        """Return how dates of `start` and `end` that have two meanings, such as 03/04/2021, are read."""
        if self.start is None or self.end is None:
            return []
        start, end = frame[self.start], frame[self.end]
        return [note for note in (how_read(start, "start", end), how_read(end, "end", start)) if note]

    @property
    def roles(self) -> dict[str, str]:
        """The columns that hold the target, by the argument that names them."""
        named = {role: getattr(self, role) for role in ("time", "start", "end", "entry", "event")}
        return given_arguments(**named)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that hold the target, which are no features."""
        return tuple(self.roles.values())

    def require(self, frame: pd.DataFrame, **others: str | None) -> None:
        """Raise if a column is not in the table, or has two roles, of which `others` name the patient or cluster."""
        require_roles(frame, {**self.roles, **others})
        if holds_dates(frame[self.event]):
            raise ArgumentError(
                "event",
                f"{arg('event')} column {self.event!r} holds dates, and not whether the event happened: name a "
                "column that says so, with 1 where there is a date and 0 where there is none.",
            )
        ends = self.time or self.end or ""
        if not same_endpoint(ends, self.event):
            told = (
                f"{arg('time')} column {ends!r} is named after {endpoint(ends)}, and {arg('event')} column "
                f"{self.event!r} after {endpoint(self.event)}"
            )
            if self.event_value is None:
                raise ArgumentError(
                    "time",
                    f"{told}: name the time and the event of one outcome. If they belong together, say so by naming "
                    f"the value that means the event too: {arg('event_value', text='VALUE')}.",
                )
            told += f"; they were taken as one outcome, as {arg('event_value')} is given."
            warn_caller(told, category=TableNote)

    def known(self, frame: pd.DataFrame) -> BoolArray:
        """Return which rows (n,) have an event and a time that is not negative."""
        complete = frame[list(self.names)].notna().all(axis="columns").to_numpy(dtype=np.bool_)
        if self.time is not None and holds_numbers(frame[self.time]):
            return complete & ~(floats(frame[self.time]) < 0)
        return complete

    def resolved(self, frame: pd.DataFrame) -> TargetColumns:
        """Return the columns with `event_value` and `time_unit` set from the table; raise if it is ambiguous."""
        if self.causes and self.event_value is not None:
            raise ArgumentError(
                "event_value",
                f"{arg('event_value')} is not used for competing causes, where every code but 0 is a cause: leave it "
                "out.",
            )
        unit = "" if self.start is None else unit_between(frame[self.start], frame[self.end])
        if not self.time_unit:
            for note in self.dates_in_words(frame):
                warn_caller(note, category=TableNote)
        columns = replace(self, time_unit=self.time_unit or unit if unit in ("", "time") else unit)
        counts = labels(frame[self.event]).value_counts()
        if self.causes and not self.cause_names:
            self.refuse_unknown(frame[self.event])
            columns = replace(columns, cause_names=self._named_causes(counts))
        if self.event_value is not None or self.causes:
            return columns
        reading = value_of_event([str(value) for value in counts.index], self.event)
        if reading.value is None:
            self.refuse_unknown(frame[self.event])
            raise self._ambiguous(counts)
        self._refuse_doubt(frame, reading)
        found, reason = reading.value, ""
        if reading.by == "name and times":
            reason = ", because of the name of the column, and because rows with it have shorter times"
        elif reading.by == "standard":
            reason = ", as CDISC defines CNSR"
        elif found in ("0", "2"):
            named = reading.by == "name"
            reason = ", because of the name of the column" if named else ", as in R's survival package"
        if reason or found.casefold() not in ("1", "true"):
            rows = int(counts[replace(self, event_value=found)._values_of_event(counts)].sum())
            warn_caller(
                f"{found!r} of event column {self.event!r} ({rows:,} of {int(counts.sum()):,} rows) was taken as the "
                f"event{reason}; pass {arg('event_value')} if another value means it.",
                category=TableNote,
            )
        return replace(columns, event_value=found)

    def with_noted_event(self, frame: pd.DataFrame) -> TargetColumns:
        """Return the columns for another table than that in which `event_value` was the event.

        A table without this value tells its event itself, as dead does where it was 1. It is asked for where the table
        contradicts it: by its name, as one of codes 1 and 2, or by its times.
        """
        noted, counts = self.event_value, labels(frame[self.event]).value_counts()
        reading = value_of_event([str(value) for value in counts.index], self.event)
        if noted not in counts.index:
            return replace(self, event_value=noted if reading.value is None else None)
        told = (
            reading.by not in ("name and times", "nothing")
            and reading.value
            and not same_value(reading.value, str(noted))
        )
        if told or {noted, "2"} == {*counts.index} == {"1", "2"}:
            raise self._ambiguous(counts, f"In training it was {noted!r}")
        self._refuse_doubt(frame, EventReading(noted, "standard" if reading.by == "standard" else "name"))
        return self

    def _refuse_doubt(self, frame: pd.DataFrame, reading: EventReading) -> None:
        """Raise if the times contradict the event as it was read."""
        held = labels(frame[self.event])
        times = self.times(frame) - (0 if self.entry is None else to_floats(frame[self.entry], "entry"))
        known = np.isfinite(times) & held.notna().to_numpy()
        had = (held == reading.value).to_numpy(dtype=np.bool_)
        if why := doubt_of_event(reading, times[known], had[known]):
            raise self._ambiguous(held.value_counts(), why)

    def causes_in(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Return what the causes 1, 2, ... of a table are called: texts, or numbers; none if there are no causes."""
        if not self.causes:
            return ()
        with warnings.catch_warnings(action="ignore", category=TableNote):
            named = self.resolved(frame).cause_names
        codes = numbers_in(frame[self.event])
        return named or tuple(str(k) for k in range(1, int(np.nanmax(codes)) + 1))

    def cause_number(self, cause: str) -> int:
        """Return the number of a cause that is given by its number or, where the column holds texts, by its text."""
        if not self.causes:
            raise ArgumentError(
                "cause",
                f"{arg('cause', cause)} has no meaning: the events of column {self.event!r} are read as one kind of "
                f"event. Leave it out, or name the event by {arg('event_value')}.",
            )
        return number_of_cause(cause, self.cause_names)

    def parse(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return event and time of every row, a structured array (n,)."""
        self.require(frame)
        for name in self.names:
            missing = frame[name].isna().to_numpy()
            if missing.any():
                is_event = name == self.event
                hint = " If empty means that the event did not happen, write 0 there." if is_event else ""
                raise ArgumentError(
                    "drop_missing_target",
                    f"{'event' if is_event else 'time'} column {name!r} is empty in "
                    f"{counted(int(missing.sum()), 'row')} (first in row {row_number(missing.argmax(), frame)}): fill "
                    f"or remove those rows, or pass {arg('drop_missing_target')} to leave them out.{hint}",
                )
        columns = self.resolved(frame)
        if self.causes:
            return columns._with_causes(frame)
        events, times = columns._events(frame[self.event]), columns._times(frame)
        return Surv.from_arrays(events, times)

    def _with_causes(self, frame: pd.DataFrame) -> NDArray[Any]:
        codes = numbers_in(frame[self.event])
        if self.cause_names:
            held = labels(frame[self.event])
            unknown = ~held.map(value_word).isin(_CENSORED) & ~held.isin(self.cause_names)
            if unknown.any():
                raise ArgumentError(
                    "event",
                    f"{arg('event')} column {self.event!r} holds a cause in {counted(int(unknown.sum()), 'row')} "
                    f"that is not one of {shown(self.cause_names)}: correct it.",
                )
            numbers = {name: number for number, name in enumerate(self.cause_names, start=1)}
            codes = np.asarray(held.map(numbers).fillna(0), dtype=np.float64)
        y = Surv.competing(codes, self._times(frame), self.cause_names)
        parse_competing_target(y, name=f"event column {self.event!r}")
        return y

    def times(self, frame: pd.DataFrame) -> FloatArray:
        """Return the time of every row, (n,), NaN where it is missing; raise if the column holds no times."""
        if self.time is None:
            return time_between(frame[self.start], frame[self.end])
        column = frame[self.time]
        if holds_dates(column):
            raise ArgumentError(
                "start",
                f"{arg('time')} column {self.time!r} holds dates: a time is a number, such as the days from the start "
                f"of follow-up to the event or the last visit. To compute it from dates, pass {arg('start')} and "
                f"{arg('end')}, columns of dates.",
            )
        if column.dtype.kind == "b":
            raise InputError(
                f"time column {self.time!r} holds only true and false, which are no times: is it the event column?"
            )
        return to_floats(column, "time")

    def _times(self, frame: pd.DataFrame) -> FloatArray:
        """Return the time of every row; raise if one is negative."""
        times = self.times(frame)
        if (times < 0).any():
            fault = first_wrong(frame[self.time], times < 0, "negative")
            raise ArgumentError(
                "drop_missing_target",
                f"time {fault}: correct them, or pass {arg('drop_missing_target')} to leave such rows out.",
            )
        return times

    def _events(self, column: pd.Series[Any]) -> BoolArray:
        found = labels(column)
        counts = found.value_counts()
        wanted, expected = label(self.event_value), value_of_event(list(counts.index), self.event).value
        same = self._values_of_event(counts)
        nobody = all(value_word(value) in ALIVE | NO for value in counts.index)
        if not same and wanted != expected and not nobody:
            raise ArgumentError(
                "event_value",
                f"{arg('event_value')} {self.event_value!r} does not occur in {arg('event')} column {self.event!r}, "
                f"which holds {quoted(counts)}.",
            )
        self.refuse_unknown(column)
        others = [one for one in counts.index if one not in same and value_word(one) not in ALIVE | NO]
        alike = value_word((others or [""])[0]) in YES and all(same_value(others[0], one) for one in others)
        if len(counts) > 2 and others and not (alike and len(same) + len(others) == len(counts)):
            warn_caller(
                f"event column {self.event!r} also holds {quoted(counts[others], rows=True)}, taken as censored. If it "
                "is another cause that prevents the event, such as another death, it competes with the event, and "
                "predicted survival is not the probability of staying free of the event."
            )
        return found.isin(same).to_numpy(dtype=np.bool_)

    def _values_of_event(self, counts: pd.Series[int]) -> list[str]:
        """Return those of some values that mean the event: in any spelling where all values are known words."""
        wanted, clear = label(self.event_value), set(map(value_word, counts.index)) <= STATES
        return [value for value in counts.index if value == wanted or (clear and same_value(value, wanted))]

    def refuse_unknown(self, events: pd.Series[Any], *, also: str | None = "drop_missing_target") -> None:
        """Raise if values of the event column say that the outcome is not known.

        `also` is the argument that leaves out rows without an event, None if they are always left out.
        """
        counts, wanted = labels(events).value_counts(), label(self.event_value).casefold()
        unknown = [one for one in counts.index if value_word(one) in UNKNOWN and one.casefold() != wanted]
        if unknown:
            here = [f"{self.event}={value}" for value in unknown]
            remedy = " and ".join([arg("missing", here), *([arg(also)] if also else [])])
            raise ArgumentError(
                "missing",
                f"event column {self.event!r} holds {quoted(counts[unknown], rows=True)}, which is no outcome: pass "
                f"{remedy} to leave those rows out, or correct them.",
            )

    def refuse_empty(self, events: pd.Series[Any]) -> None:
        """Raise if many rows of the event column are empty, and no value says that the event did not happen.

        Empty then seems to say so, and only patients with an event would be left.
        """
        empty, held = int(events.isna().sum()), labels(events).value_counts()
        codes = not self.causes
        others = [str(value) for value in held.index if value != label(self.event_value)]
        said = any(value_word(one) in _CENSORED or (codes and like_number(one)) for one in others)
        if empty > _MOST_EMPTY * len(events) and not said:
            raise ArgumentError(
                "event",
                f"event column {self.event!r} is empty in {counted(empty, 'row')}, and none of its values, "
                f"{quoted(held, rows=True)}, says that the event did not happen. If empty means that, write 0 there; "
                "if the outcome of those rows is not known, remove them.",
            )

    def _named_causes(self, counts: pd.Series[int]) -> tuple[str, ...]:
        """Return the texts of the causes, sorted; empty if the column holds codes."""
        names = [str(name) for name in counts.index]
        if all(re.fullmatch(r"\d+", name) for name in names):
            return ()
        causes = sorted(name for name in names if value_word(name) not in _CENSORED)
        if len(causes) == len(names) or len(causes) > _MOST_OUTCOMES:
            raise ArgumentError(
                "event",
                f"{arg('event')} column {self.event!r} holds {len(names)} different texts, none of which is known to "
                "mean censored: write 0 or censored there, and a code or text for each cause.",
            )
        numbered = listing([f"{number} is {name!r}" for number, name in enumerate(causes, start=1)], 8)
        told = f"causes of event column {self.event!r}: {numbered}; all else is censored."
        warn_caller(told, category=TableNote)
        return tuple(causes)

    def _ambiguous(self, counts: pd.Series[int], why: str = "") -> ArgumentError:
        """Return the error that asks which value means the event, with the `counts` of the values."""
        if len(counts) > _MOST_OUTCOMES:
            return ArgumentError(
                "event",
                f"{arg('event')} column {self.event!r} holds {len(counts):,} different values "
                f"({quoted(counts, 3)}), and not whether the event happened. Name the column that says so; were "
                "the columns of time and event swapped?",
            )
        held = quoted(counts, rows=True)
        asked = f"which value of event column {self.event!r} means the event?"
        question = f"{asked} {f'{why}. ' if why else ''}It holds {held}"
        if len(counts) == 2:
            first, second = (arg("event_value", str(value)) for value in counts.index)
            return ArgumentError("event_value", f"{question}: pass {first} or {second}.")
        # Of none, cancer and death, two may be causes.
        causes = [
            str(value)
            for value, n in counts.items()
            if value_word(str(value)) not in _CENSORED and may_be_quoted(str(value), int(n))
            if not re.fullmatch(r"-?\d*\.\d+", str(value))
        ]
        first = ": pass"
        if 2 <= len(causes) < len(counts) <= 6:
            # The most frequent one, unless it is called that of others.
            suggested = next((cause for cause in causes if "other" not in words(cause)), causes[0])
            number = ""
            if all(map(like_number, causes)) and sorted(causes) != [str(k + 1) for k in range(len(causes))]:
                number, suggested = f"number them 1 to {len(causes)} in the table, then ", "1"
            judge = call(f"check(table, cause={suggested!r})", f"drosurv check --cause {quote(suggested)}")
            model = call("CauseSpecificCox()", "drosurv fit --model cause-specific-cox")
            first = (
                f". If {listing(list(map(repr, causes)))} are competing causes, such as a disease and death without "
                f"it, {number}judge one with {judge}, or model all with {model}. Otherwise pass"
            )
        return ArgumentError(
            "event_value",
            f"{question}{first} the value that means it as {arg('event_value')}; every other then means censored.",
        )
