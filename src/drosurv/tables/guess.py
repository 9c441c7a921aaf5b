"""Guess which columns of a table hold time, event, patient and groups, from their names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.presentation import listing
from drosurv.tables.dates import holds_dates
from drosurv.tables.problems import dates_as_numbers, names_patients, start_dates
from drosurv.tables.reading import require_columns
from drosurv.tables.target_columns import value_of_event
from drosurv.tables.values import counts_rows, floats, holds_numbers, labels

# Endpoints as trials and genome atlases abbreviate them.
_ENDPOINT = "os|pfs|rfs|dfs|efs|dss|css|mfs|dmfs|pfi|dfi|ttp"
# Names of time columns, parts of such names, and (below) names of other times, such as age or time of diagnosis.
_TIME = re.compile(
    rf"(overall[._ ]?)?(surv(ival)?|follow([._ ]?up)?|fu|{_ENDPOINT}|obs|event|fail|[dfprst])?[._ ]?"
    r"(time|days?|weeks?|months?|years?|duration)([._ ]?to[._ ]?\w+)?|"
    rf"tte|t\d?|t\.\w+|stop|tstop|len_?fol|follow[._ ]?up|survival|{_ENDPOINT}|time[._ ]?\w?",
    re.IGNORECASE,
)
_TIME_PART = re.compile(
    r"time|days|weeks|months|years|follow|surviv|duration|futime|lenfol|tte", re.IGNORECASE
)
_SURVIVAL = re.compile(r"(overall[._ ]?)?surv|follow", re.IGNORECASE)
_NO_TIME = re.compile(
    r"age|birth|born|diag|start|entry|since|prior|wait|year$|dose|bmi|until_treat", re.IGNORECASE
)
_EVENT = re.compile(
    r"event|status|death|dead|died|deceased|cens(or(ed|ing|s)?)?([._ ]?\w)?|[fsp]?stat|fustat|relapse|"
    r"recur(rence)?|rel|arrest|outcome|vital([._ ]?(status|stat))?|progression|fail(ure)?|delta|mortality|"
    r"observed|expired|d\d?|e|e\.\w+|"
    rf"({_ENDPOINT})[._ ]?(event|status|stat|cens)?",
    re.IGNORECASE,
)
_EVENT_PART = re.compile(
    r"event|status|death|dead|died|deceas|cens|fstat|fustat|relaps|recur|progress|mort", re.IGNORECASE
)
_CENSORED = re.compile(r"cens(or(ed|ing|s)?)?([._ ]?\w)?", re.IGNORECASE)
_GROUPS = re.compile(
    r"(^|[._ ])(sex|gender|(fe)?male|race|ethnic\w*|age|region|site|cent(er|re)|hospital|insurance|income|education|"
    r"institution|country)([._ ]|$)",
    re.IGNORECASE,
)
_MOST_GROUPS = 4
_MOST_LEVELS = 6
# A group is compared with others only if it has at least this share of the rows.
_SMALLEST_SHARE = 0.03
# Ages are cut here, if no value is above the second number: then they are in years.
_OLD, _OLDEST = 65, 120
# Share of the values of a column that may be wrong.
_SLIPS = 0.05
# Whole numbers in this range are years of the calendar, not times.
_CALENDAR_YEARS = 1900, 2100


class UnknownColumns(ArgumentError):
    """The columns of time and event could not be guessed; `pairs` are the candidates."""

    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class GuessedColumns:
    """Columns of a table and how they were guessed.

    Attributes
    ----------
    time, event : str
        Columns of the target.
    id : str or None
        Column that names patients.
    groups : tuple of str
        Columns, or cuts such as ``"age>65"``, that define groups.
    notes : tuple of str
        What was guessed and from what, in sentences.
    """

    time: str
    event: str
    id: str | None
    groups: tuple[str, ...]
    notes: tuple[str, ...]


def guess_columns(
    frame: pd.DataFrame,
    *,
    time: str | None = None,
    event: str | None = None,
    id: str | None = None,
    groups: Sequence[str] | None = None,
) -> GuessedColumns:
    """Guess the columns that are not given; where the table is ambiguous, raise an error that names the candidates.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.tables import guess_columns
    >>> frame = pd.DataFrame({"id": range(40), "months": range(40), "died": [0, 1] * 20, "sex": ["f", "m"] * 20})
    >>> found = guess_columns(frame)
    >>> found.time, found.event, found.id, found.groups
    ('months', 'died', 'id', ('sex',))
    """
    for role, column in (("time", time), ("event", event), ("id", id)):
        if column is not None:
            require_columns(frame, [column], role)
    notes: list[str] = []
    if time is None or event is None:
        found = _target(frame, time, event)
        if time is None and (starts := start_dates(frame, found[0], found[1:])):
            raise UnknownColumns(
                None,
                f"{dates_as_numbers(starts, found[0])} If it is a time, pass time={found[0]!r}.",
            )
        for role, given, column in (("time", time, found[0]), ("event", event, found[1])):
            if given is None:
                notes.append(f"{role} is column {column!r}, by its name and values.")
        time, event = found
    if _CENSORED.fullmatch(event):
        notes.append(
            f"column {event!r} may mark censored patients: if so, pass event_value with the value of those who had "
            "the event."
        )
    if id is None:
        id = next(
            (str(name) for name in frame.columns if name not in (time, event) and _is_id(frame, name)), None
        )
        if id is not None:
            notes.append(f"id is column {id!r}, which is no feature.")
    if groups is None:
        groups = _groups(frame, (time, event, id))
        if groups:
            notes.append(f"groups are defined by {listing(list(groups))}.")
    return GuessedColumns(time, event, id, tuple(groups), tuple(notes))


def _target(frame: pd.DataFrame, time: str | None, event: str | None) -> tuple[str, str]:
    """Return the pair of columns that look most like time and event; raise if none or several do."""
    times = {time: 3.0} if time is not None else _scores(frame, _time_score)
    events = {event: 3.0} if event is not None else _scores(frame, _event_score)
    pairs = sorted(
        (
            _Pair(a + b + _related(t, e), min(a, b), t, e)
            for t, a in times.items()
            for e, b in events.items()
            if t != e
        ),
        key=lambda pair: -pair.score,
    )
    likely = [pair for pair in pairs if pair.score >= 3]
    # Prefer pairs in which both columns are recognised by name.
    likely = [pair for pair in likely if pair.by_name >= 2] or likely
    if not likely:
        raise _unknown(frame, time, event, times)
    best = likely[0]
    rivals = [
        pair
        for pair in likely[1:]
        if best.score - pair.score < 0.5
        or (pair.by_name >= 2 and pair.time != best.time and pair.event != best.event and pair.score >= 4)
    ]
    if rivals:
        # The table may have times and events of relapse and of death: name one pair of each.
        apart = [pair for pair in rivals if pair.time != best.time and pair.event != best.event]
        raise _ambiguous(frame, time, event, [best, *(apart[:1] or rivals[:2])])
    return best.time, best.event


class _Pair(NamedTuple):
    """Columns that may be time and event, the score of the pair, and the lower score of the two columns."""

    score: float
    by_name: float
    time: str
    event: str


def _scores(frame: pd.DataFrame, score: Any) -> dict[str, float]:
    found = {str(name): score(str(name), frame[name]) for name in frame.columns}
    return {name: value for name, value in found.items() if value > 0}


def _time_score(name: str, column: pd.Series[Any]) -> float:
    """Return 0 for a column that cannot be the time, else up to 3, by its name."""
    if not holds_numbers(column) or holds_dates(column):
        return 0.0
    values = floats(column)
    values = values[np.isfinite(values)]
    # A few negative times may be mistakes.
    if len(values) == 0 or np.mean(values < 0) > _SLIPS or len(np.unique(values)) < min(10, len(values) / 3):
        return 0.0
    if values.min() >= _CALENDAR_YEARS[0] and values.max() <= _CALENDAR_YEARS[1] and (values % 1 == 0).all():
        return 0.0
    if counts_rows(column) and not _TIME.fullmatch(name):
        return 0.0
    if _NO_TIME.search(name) and not (_TIME.fullmatch(name) or _SURVIVAL.match(name)):
        return 0.0
    if name.casefold() == "year":
        return 0.1
    return 3.0 if _TIME.fullmatch(name) else 2.0 if _TIME_PART.search(name) else 0.1


def _event_score(name: str, column: pd.Series[Any]) -> float:
    """Return 0 for a column that cannot be the event, else up to 3, by its name."""
    found = labels(column).dropna().unique()
    if not 2 <= len(found) <= 4:
        return 0.0
    named = 3.0 if _EVENT.fullmatch(name) else 2.0 if _EVENT_PART.search(name) else 0.0
    clear = value_of_event([str(value) for value in found]) is not None
    # A column of three or four values is an event only if its name says so.
    return named if named else 0.1 if clear and len(found) == 2 else 0.0


def _related(time: str, event: str) -> float:
    """Score how well two names match, as rtime and recur, time_d and censor_d, or edrel and rel do."""
    a, b = time.casefold(), event.casefold()
    if len(b) >= 3 and a != b and b in a:
        return 3.0
    stem = re.sub(r"time|days?|weeks?|months?|years?|[._ ]", "", a)
    if stem and (b.startswith(stem) or re.sub(r"cens(or(ed)?)?|stat(us)?|event|[._ ]", "", b) == stem):
        return 2.0
    first, second = (re.split(r"[._ ]|(?<=^[tde])(?=\d$)", name) for name in (a, b))
    if len(first) > 1 and len(second) > 1 and (first[-1] == second[-1] or first[0] == second[0]):
        return 1.0
    # A name with a suffix, such as time_d, and one without are of different pairs.
    return -1.0 if (len(first) > 1) != (len(second) > 1) else 0.0


def _ambiguous(
    frame: pd.DataFrame, time: str | None, event: str | None, pairs: Sequence[_Pair]
) -> UnknownColumns:
    options = " or ".join(f"time={pair.time!r} event={pair.event!r}" for pair in pairs)
    error = UnknownColumns(
        "time", f"which columns hold {_missing(time, event)}? Pass {options}. {_columns(frame)}"
    )
    error.pairs = tuple((pair.time, pair.event) for pair in pairs)
    return error


def _unknown(
    frame: pd.DataFrame, time: str | None, event: str | None, times: dict[str, float]
) -> UnknownColumns:
    found = [name for name, score in times.items() if score >= 2] if time is None else []
    maybe = f" The time may be {listing([repr(name) for name in found])}." if found else ""
    return UnknownColumns(
        "time",
        f"which columns hold {_missing(time, event)}? It cannot be guessed from names and values. Pass time=COLUMN and "
        f"event=COLUMN.{maybe} {_columns(frame)}",
    )


def _missing(time: str | None, event: str | None) -> str:
    return " and ".join(role for role, given in (("time", time), ("event", event)) if given is None)


def _columns(frame: pd.DataFrame) -> str:
    """List the columns of a table, and say what to do if its times are in two columns or are dates."""
    named = listing([str(name) for name in frame.columns], 20)
    return f"The columns are {named}.{_complementary(frame)}{_dated(frame)}"


def _complementary(frame: pd.DataFrame) -> str:
    """Say what to do with two columns of times of which each patient has one, as days to death and to last visit."""
    times = [name for name, score in _scores(frame, _time_score).items() if score >= 2]
    for one, other in combinations(times, 2):
        known = frame[one].notna(), frame[other].notna()
        if all(column.mean() > _SLIPS for column in known) and not (known[0] & known[1]).any():
            return f" No patient has both {one!r} and {other!r}: combine them into one column of times."
    return ""


def _dated(frame: pd.DataFrame) -> str:
    """Say what to do with a table that holds dates."""
    dates = [str(name) for name in frame.columns if holds_dates(frame[name])]
    if len(dates) < 2:
        return ""
    return f" Columns {listing(dates)} hold dates: for times in days, pass start=COLUMN and end=COLUMN."


def _is_id(frame: pd.DataFrame, name: Any) -> bool:
    column = frame[name]
    if names_patients(name, column):
        return True
    return bool(re.search(r"(seq|number|no|nr)$", str(name), re.IGNORECASE)) and counts_rows(column)


def _groups(frame: pd.DataFrame, others: Sequence[str | None]) -> tuple[str, ...]:
    """Return columns named like sensitive attributes, or else text columns of few levels, with groups large enough."""
    free = [name for name in frame.columns if name not in others and not _is_id(frame, name)]
    named = [spec for name in free if _GROUPS.search(str(name)) and (spec := _group(frame[name]))]
    if not named:
        named = [
            spec
            for name in free
            if not holds_numbers(frame[name]) and (spec := _group(frame[name])) is not None
        ]
    return tuple(named[:_MOST_GROUPS])


def _group(column: pd.Series[Any]) -> str | None:
    """Return a column as a group: itself if it has few levels, a cut if it holds numbers; None if neither works."""
    name = str(column.name)
    if holds_dates(column):
        return None
    if holds_numbers(column) and column.nunique() > _MOST_LEVELS:
        values = floats(column)
        years = "age" in name.casefold() and np.nanmax(values) <= _OLDEST
        cut = _OLD if years and _large(values > _OLD) else float(f"{np.nanmedian(values):.3g}")
        return f"{name}>{cut:g}" if _large(values > cut) else None
    shares = labels(column).value_counts(normalize=True)
    few = 2 <= len(shares) <= _MOST_LEVELS
    return name if few and shares.iloc[1] >= _SMALLEST_SHARE else None


def _large(above: Any) -> bool:
    return bool(_SMALLEST_SHARE < np.mean(above) < 1 - _SMALLEST_SHARE)
