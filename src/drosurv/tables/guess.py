"""Guess which columns of a table hold time, event, entry, patient and groups, from their names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, as_names
from drosurv.patients.outcome_names import (
    endpoint,
    names_entry,
    names_event,
    names_time,
    plain,
    same_endpoint,
    without_codes,
    words,
)
from drosurv.patients.target import FloatArray
from drosurv.presentation import first_upper, listing
from drosurv.tables.dates import dates_in_numbers, holds_dates, holds_years
from drosurv.tables.groups import guess_groups
from drosurv.tables.ids import counts_rows, names_patients, repeated_id, unnamed_ids
from drosurv.tables.problems import entry_not_given, interval_start, named_as_end_date
from drosurv.tables.reading import as_table, require_columns
from drosurv.tables.values import coded, finite, floats, holds_numbers

# Names of the two ends of an interval in which a row is observed: of its beginning, and of its end.
_INTERVALS = {
    **{"start": "stop end", "tstart": "tstop tend", "time1": "time2", "starttime": "stoptime endtime"},
    **{"entry": "exit", "entrytime": "exittime", "lateentry": "", "eintritt": "", "entree": ""},
}
# A column with more values holds no event.
_MOST_OUTCOMES = 6
# Share of the values of a column that may be wrong.
_SLIPS = 0.05


class UnknownColumns(ArgumentError):
    """The columns of time and event could not be guessed; `pairs` are the candidates."""

    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class GuessedColumns:
    """Columns of a table and how they were guessed.

    `time` and `event` are the columns of the target, `entry` of times from which a row is observed, `id` names
    patients, and `groups` are columns, or cuts such as ``"age>65"``. `notes` say in sentences what was guessed and from
    what; `guessed` are the arguments that were, such as ``"time"``. `question` is about a column that may hold entry
    times and is not used as such; empty if there is none.
    """

    time: str
    event: str
    id: str | None
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    entry: str | None = None
    guessed: tuple[str, ...] = ()
    question: str = ""

    def with_groups(self, frame: pd.DataFrame, features: Sequence[str]) -> GuessedColumns:
        """Return the guesses with the groups: columns named like sensitive attributes, or else `features` of texts.

        A column of `frame` that is no feature defines groups only if it is named like a sensitive attribute.
        """
        others = (self.time, self.event, self.id, self.entry)
        free = [name for name in frame.columns if name not in others and not _is_id(frame, name)]
        groups = guess_groups(frame[free], features)
        if not groups:
            return self
        note = f"groups are defined by {listing(list(groups))}."
        return replace(self, groups=groups, notes=(*self.notes, note), guessed=(*self.guessed, "groups"))

    def in_one_line(self, event_value: str | None = None) -> str:
        """Return all guesses in a sentence, as arguments, and the question; empty if there are none.

        `event_value` is the value of `event` that was taken as the event.
        """
        values = {role: getattr(self, role) for role in self.guessed} | {"event_value": event_value}
        parts = [arg(role, [*one] if isinstance(one, tuple) else one) for role, one in values.items() if one]
        guesses = f"Guessed from names and values: {', '.join(parts)}. Pass others if these are wrong."
        return f"{guesses if parts else ''} {first_upper(self.question)}".strip()


def guess_columns(
    frame: pd.DataFrame,
    *,
    time: str | None = None,
    event: str | None = None,
    id: str | None = None,
    groups: Sequence[str] | None = None,
    entry: str | None = None,
    drop: Sequence[str] = (),
) -> GuessedColumns:
    """Guess the columns that are not given; where the table is ambiguous, raise an error that names the candidates.

    Columns to `drop` are not taken as ids of patients.

    A column is taken as time or event only if its name can be that of nothing else, and its values fit. A column that
    is named like the event but holds none is an error.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.tables.guess import guess_columns
    >>> frame = pd.DataFrame({"id": range(40), "months": range(40), "died": [0, 1] * 20, "sex": ["f", "m"] * 20})
    >>> found = guess_columns(frame)
    >>> found.time, found.event, found.id, found.groups
    ('months', 'died', 'id', ('sex',))
    """
    frame, drop = as_table(frame, "frame"), as_names(drop)
    given = {"time": time, "event": event, "id": id, "entry": entry}
    for role, column in given.items():
        if column is not None:
            require_columns(frame, [column], role)
    if time is None and entry is None:
        entry, time = _interval(frame, None, (event, id)) or (None, None)
    if time is None or event is None:
        found = _target(frame, time, event)
        if time is None and (told := named_as_end_date(frame, found[0], found[1:])):
            raise UnknownColumns(None, f"{told} If it is a time, pass {arg('time', found[0])}.")
        time, event = found
    if entry is None:
        entry, _ = _interval(frame, time, (event, id)) or (None, time)
    if id is None:
        taken = (time, event, entry, *drop)
        free = [str(name) for name in frame.columns if name not in taken]
        id = repeated_id(frame, taken) or next((name for name in free if _is_id(frame, name)), None)
        # A column may number patients with several rows without saying so.
        id = id or next((name for name, _ in unnamed_ids(frame, free, free)), None)
    if entry is None:
        known = [name for name in frame.columns if name not in (time, event, id, *drop)]
        entry, _ = interval_start(frame, known, time, id) or (None, 0)
    used: dict[str, str | None] = {"time": time, "event": event, "entry": entry, "id": id}
    guessed = [role for role, column in used.items() if given[role] is None and column is not None]
    explained = {"entry": ", from which a row is observed", "id": ", which is no feature"}
    notes = [
        f"{role} is column {used[role]!r}{explained.get(role, ', by its name and values')}."
        for role in guessed
    ]
    question = ""
    if entry is None:
        question = next(map(str, entry_not_given(frame, map(str, frame.columns), time)), "")
    of_groups = () if groups is None else tuple(as_names(groups))
    guesses = GuessedColumns(time, event, id, of_groups, tuple(notes), entry, tuple(guessed), question)
    return guesses.with_groups(frame, list(frame.columns)) if groups is None else guesses


def _interval(frame: pd.DataFrame, time: str | None, others: Sequence[str | None]) -> tuple[str, str] | None:
    """Return columns of entry and time that are named as the two ends of an interval, as start and stop are.

    If the time is known, a column that is named as the beginning of observation, and lies before it, is enough.
    """
    named = {re.sub(r"[\W_]", "", plain(str(one))): str(one) for one in frame.columns if one not in others}
    for first, last in ((named[first], last) for first, last in _INTERVALS.items() if first in named):
        ends = [named[end] for end in last.split() if end in named]
        if time is not None:
            ends = [time] if names_entry(first) and first != time else []
        for end in ends:
            start, stop = (_numbers(frame[name]) for name in (first, end))
            if start is None or stop is None or np.mean(start < stop) < 1 - _SLIPS or np.nanmin(start) < 0:
                continue
            # The time may be their difference: then they are ages or dates, and the difference is used.
            rest = [name for name in frame.columns if name not in (first, end) and names_time(str(name)) >= 2]
            times, between = [_numbers(frame[name]) for name in rest if time is None], stop - start
            if not any(one is not None and np.isclose(one, between).mean() > 1 - _SLIPS for one in times):
                return first, end
    return None


def _numbers(column: pd.Series[Any]) -> FloatArray | None:
    return floats(column) if holds_numbers(column) and not dates_in_numbers(column) else None


def _target(frame: pd.DataFrame, time: str | None, event: str | None) -> tuple[str, str]:
    """Return the pair of columns that look most like time and event; raise if none or several do."""
    times = {time: 3.0} if time is not None else _scores(frame, _time_score)
    events = {event: 3.0} if event is not None else _scores(frame, _event_score)
    pairs = sorted(
        (
            _Pair(max(a, 2.0) + max(b, 2.0) + related, t, e)
            for t, a in times.items()
            for e, b in events.items()
            # By themselves, or because their names match.
            if t != e
            and same_endpoint(t, e)
            and ((related := _related(t, e)) >= 4 or (b >= 2 and (a >= 2 or related >= 3)))
        ),
        key=lambda pair: -pair.score,
    )
    if not pairs:
        if event is None:
            _refuse_without_events(frame)
        asked = _missing(time, event)
        wanted = [(role, one) for role, one in (("time", times), ("event", events)) if role in asked]
        likely = [(role, [repr(name) for name, score in one.items() if score >= 2]) for role, one in wanted]
        maybe = "".join(f" The {role} may be {listing(found)}." for role, found in likely if found)
        answer = " and ".join(arg(role, text="COLUMN") for role in asked)
        remedy = f"It cannot be guessed from names and values. Pass {answer}.{maybe}"
        raise _unknown(frame, time, event, remedy)
    best = pairs[0]
    # The event may be of another endpoint than the time that is named best.
    named = [name for name, sure in times.items() if sure >= times[best.time]]
    other = [name for name in named if not same_endpoint(name, best.event)]
    if other and not endpoint(best.time):
        told = f"{other[0]!r} is of another endpoint than {best.event!r}"
        raise _unknown(frame, time, event, f"Pass {arg('time', best.time)} if it is the time; {told}.")
    rivals = [
        pair
        for pair in pairs[1:]
        if best.score - pair.score < 0.5
        or (pair.time != best.time and pair.event != best.event and pair.score >= 4)
    ]
    if rivals:
        # The table may have times and events of relapse and of death: name one pair of each.
        apart = [pair for pair in rivals if pair.time != best.time and pair.event != best.event]
        candidates = [best, *(apart[:1] or rivals[:2])]
        roles = _missing(time, event)
        options = " or ".join(" ".join(arg(role, getattr(one, role)) for role in roles) for one in candidates)
        error = _unknown(frame, time, event, f"Pass {options}.")
        error.pairs = tuple((pair.time, pair.event) for pair in candidates)
        raise error
    return best.time, best.event


class _Pair(NamedTuple):
    """Columns that may be time and event, and the score of the pair."""

    score: float
    time: str
    event: str


def _scores(frame: pd.DataFrame, score: Any) -> dict[str, float]:
    found = {str(name): score(str(name), frame[name]) for name in frame.columns}
    return {name: value for name, value in found.items() if value > 0}


def _time_score(name: str, column: pd.Series[Any]) -> float:
    """Return 0 for a column that cannot be the time, else up to 3, by its name."""
    if not holds_numbers(column) or holds_dates(column) or dates_in_numbers(column):
        return 0.0
    values = finite(column)
    # A few negative times may be mistakes.
    if len(values) == 0 or np.mean(values < 0) > _SLIPS or len(np.unique(values)) < min(10, len(values) / 3):
        return 0.0
    months = set(words(name)) & {"month", "monat", "mois"} and values.max() <= 12
    days = "day" in words(name) and values.max() <= 31 and values.min() >= 1
    # Of the calendar.
    if holds_years(column) or months or days:
        return 0.0
    named = names_time(name)
    if named < 2 and (counts_rows(column) or "age" in name.casefold()):
        return 0.0
    return named or 0.1


def _event_score(name: str, column: pd.Series[Any]) -> float:
    """Return 0 for a column that cannot be the event, else up to 3, by its name."""
    named, _ = names_event(name)
    levels = len(coded(column)[1])
    if not 2 <= levels <= _MOST_OUTCOMES or holds_dates(column):
        return 0.0
    return named if named >= 2 else 0.1 if levels == 2 else 0.0


def _refuse_without_events(frame: pd.DataFrame) -> None:
    """Raise if a column is named like the event, and holds no event."""
    for name in map(str, frame.columns):
        found = coded(frame[name])[1]
        if names_event(name)[0] >= 3 and len(found) == 1 and not holds_dates(frame[name]):
            missing = int(frame[name].isna().sum())
            where = f" but {missing:,}, where it is empty (write 0 there if that means no event)"
            empty = where if missing else ""
            raise ArgumentError(
                "event",
                f"column {name!r} is named like the event, but it is {str(found[0])!r} in all rows{empty}: it does not "
                "tell patients with the event from others. If another column holds the event, pass "
                f"{arg('event', text='COLUMN')}.",
            )


def _related(time: str, event: str) -> float:
    """Score how well two names match, as rtime and recur, time_d and censor_d, or edrel and rel do."""
    a, b = plain(time), plain(without_codes(event))
    if re.match(r"t[._ ]\w", a) and re.match(r"[ed][._ ]\w", b) and a[1:] == b[1:]:
        return 4.0
    if len(b) >= 3 and a != b and (a.endswith(b) or re.match(rf"{re.escape(b)}[._ ]", a)):
        return 3.0
    ends = re.fullmatch(rf"{re.escape(a)}[._ ]?(stat(us)?|event|cens(or(ed)?)?|s|e|d)", b)
    if len(a) >= 2 and ends:
        return 3.0
    stem = re.sub(r"time|days?|weeks?|months?|years?|[._ ]", "", a)
    if stem and (b.startswith(stem) or re.sub(r"cens(or(ed)?)?|stat(us)?|event|[._ ]", "", b) == stem):
        return 2.0
    first, second = (re.split(r"[._ ]|(?<=^[tde])(?=\d$)", name) for name in (a, b))
    if len(first) > 1 and len(second) > 1 and (first[-1] == second[-1] or first[0] == second[0]):
        return 1.0
    # A name with a suffix, such as time_d, and one without are of different pairs.
    return -1.0 if (len(first) > 1) != (len(second) > 1) else 0.0


def _unknown(frame: pd.DataFrame, time: str | None, event: str | None, remedy: str) -> UnknownColumns:
    """Return an error that lists the columns, and says what to do if times are in two columns or are dates."""
    asked = _missing(time, event)
    wanted = "columns hold time and event" if len(asked) > 1 else f"column holds the {asked[0]}"
    named = listing([str(name) for name in frame.columns], 20)
    more = _advice(frame) if time is None else ""
    return UnknownColumns(asked[0], f"which {wanted}? {remedy} The columns are {named}.{more}")


def _missing(time: str | None, event: str | None) -> list[str]:
    """Return those of the roles time and event that have no column."""
    return [role for role, given in (("time", time), ("event", event)) if given is None]


def _advice(frame: pd.DataFrame) -> str:
    """Say what to do with two columns of times of which each patient has one, with dates, and with dates in numbers."""
    advice = ""
    times = [name for name, score in _scores(frame, _time_score).items() if score >= 2]
    for one, other in combinations(times, 2):
        known = frame[one].notna(), frame[other].notna()
        if all(column.mean() > _SLIPS for column in known) and not (known[0] & known[1]).any():
            # As the days to death and those to the last visit.
            advice = f" No patient has both {one!r} and {other!r}: combine them into one column of times."
    dates = [str(name) for name in frame.columns if holds_dates(frame[name])]
    if len(dates) > 1:
        pair = f"{arg('start', text='COLUMN')} and {arg('end', text='COLUMN')}"
        advice += f" Columns {listing(dates)} hold dates: for times in days, pass {pair}."
    for name in (str(one) for one in frame.columns if holds_numbers(frame[one])):
        if told := named_as_end_date(frame, name):
            return f"{advice} {told}"
    return advice


def _is_id(frame: pd.DataFrame, name: Any) -> bool:
    column = frame[name]
    if names_patients(name, column):
        return True
    return bool(re.search(r"(seq|number|no|nr)$", str(name), re.IGNORECASE)) and counts_rows(column)
