"""Guess which columns of a table hold time, event, patient and groups, from their names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.presentation import listing
from drosurv.tables.columns import counts_rows, floats, holds_dates, holds_numbers, labels
from drosurv.tables.problems import names_patients
from drosurv.tables.reading import require_columns
from drosurv.tables.target_columns import obvious

# Names of times: alone, as a part of a name, and those that a time before the study has.
_TIME = re.compile(
    r"(surv(ival)?|follow|fu|os|pfs|rfs|dfs|efs|obs|event|d|r|t)?[._ ]?(time|days?|weeks?|months?|years?|duration)"
    r"([._ ]?to[._ ]?\w+)?|tte|t|stop|tstop|lenfol|len_fol|followup|follow[._ ]up|os|pfs|rfs|dfs|time[._ ]?\w?",
    re.IGNORECASE,
)
_TIME_PART = re.compile(
    r"time|days|weeks|months|years|follow|surviv|duration|futime|lenfol|tte", re.IGNORECASE
)
_NO_TIME = re.compile(
    r"age|birth|born|diag|start|entry|since|prior|wait|year$|dose|bmi|until_treat", re.IGNORECASE
)
_EVENT = re.compile(
    r"event|status|death|dead|died|deceased|cens(or(ed|ing)?)?([._ ]?\w)?|[fs]stat|fustat|relapse|recur(rence)?|rel|"
    r"arrest|outcome|vital[._ ]?status|progression|fail(ure)?|delta|mortality|(os|pfs|rfs|dfs)[._ ]?(event|status)|d",
    re.IGNORECASE,
)
_EVENT_PART = re.compile(
    r"event|status|death|dead|died|deceas|cens|fstat|fustat|relaps|recur|progress|mort", re.IGNORECASE
)
_CENSORED = re.compile(r"cens(or(ed|ing)?)?([._ ]?\w)?", re.IGNORECASE)
_GROUPS = re.compile(
    r"(^|[._ ])(sex|gender|race|ethnic\w*|age|region|site|cent(er|re)|hospital|insurance|income|education|"
    r"institution|country)([._ ]|$)",
    re.IGNORECASE,
)
_MOST_GROUPS = 4
_MOST_LEVELS = 6
# A group is compared with others only if it has at least this share of the rows.
_SMALLEST_SHARE = 0.03
_OLD = 65
_SLIPS = 0.05


class UnknownColumns(ArgumentError):
    """Nothing tells which columns hold time and event; `pairs` are those that may."""

    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class GuessedColumns:
    """Columns of a table and how they were found.

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
    """Guess the columns that are not given; raise with the candidates where the table does not say.

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
    """The pair of columns that look most like time and event."""
    times = {time: 3.0} if time is not None else _scores(frame, _time_score)
    events = {event: 3.0} if event is not None else _scores(frame, _event_score)
    times = {name: score for name, score in times.items() if name != event}
    events = {name: score for name, score in events.items() if name != time}
    pairs = sorted(
        ((a + b + _related(t, e), t, e) for t, a in times.items() for e, b in events.items() if t != e),
        key=lambda pair: -pair[0],
    )
    if not pairs or pairs[0][0] < 3 or (len(pairs) > 1 and pairs[0][0] - pairs[1][0] < 0.5):
        raise _unknown(frame, time, event, pairs[:3])
    return pairs[0][1], pairs[0][2]


def _scores(frame: pd.DataFrame, score: Any) -> dict[str, float]:
    found = {str(name): score(str(name), frame[name]) for name in frame.columns}
    return {name: value for name, value in found.items() if value > 0}


def _time_score(name: str, column: pd.Series[Any]) -> float:
    """0 for a column that is no time, up to 3 by its name."""
    if not holds_numbers(column) or holds_dates(column):
        return 0.0
    values = floats(column)
    values = values[np.isfinite(values)]
    # A few negative times are slips.
    if len(values) == 0 or np.mean(values < 0) > _SLIPS or len(np.unique(values)) < min(10, len(values) / 3):
        return 0.0
    if counts_rows(column) and not _TIME.fullmatch(name):
        return 0.0
    if _NO_TIME.search(name) and not _TIME.fullmatch(name):
        return 0.0
    return 3.0 if _TIME.fullmatch(name) else 2.0 if _TIME_PART.search(name) else 0.1


def _event_score(name: str, column: pd.Series[Any]) -> float:
    """0 for a column that is no event, up to 3 by its name."""
    found = labels(column).dropna().unique()
    if not 2 <= len(found) <= 4:
        return 0.0
    named = 3.0 if _EVENT.fullmatch(name) else 2.0 if _EVENT_PART.search(name) else 0.0
    clear = obvious([str(value) for value in found]) is not None
    # A column of three or four outcomes is one only by its name.
    return named if named else 0.1 if clear and len(found) == 2 else 0.0


def _related(time: str, event: str) -> float:
    """Whether names belong together, as rtime and recur, time_d and censor_d, or edrel and rel do."""
    a, b = time.casefold(), event.casefold()
    if len(b) >= 3 and a != b and b in a:
        return 3.0
    first, second = re.split(r"[._ ]", a), re.split(r"[._ ]", b)
    if len(first) > 1 and len(second) > 1 and (first[-1] == second[-1] or first[0] == second[0]):
        return 1.0
    # Names with a part that the other lacks belong to another pair.
    return -1.0 if (len(first) > 1) != (len(second) > 1) else 0.0


def _unknown(
    frame: pd.DataFrame, time: str | None, event: str | None, pairs: Sequence[tuple[float, str, str]]
) -> UnknownColumns:
    likely = [(t, e) for score, t, e in pairs if score >= 3]
    missing = " and ".join(role for role, given in (("time", time), ("event", event)) if given is None)
    columns = listing([str(name) for name in frame.columns], 20)
    if likely:
        options = " or ".join(f"time={t!r} event={e!r}" for t, e in likely)
        error = UnknownColumns(
            "time", f"which columns hold {missing}? Pass {options}. The columns are {columns}."
        )
        error.pairs = tuple(likely)
        return error
    return UnknownColumns(
        "time",
        f"which columns hold {missing}? No names or values of columns tell. Pass time=COLUMN and event=COLUMN. The "
        f"columns are {columns}.",
    )


def _is_id(frame: pd.DataFrame, name: Any) -> bool:
    column = frame[name]
    if names_patients(name, column):
        return True
    return bool(re.search(r"(seq|number|no|nr)$", str(name), re.IGNORECASE)) and counts_rows(column)


def _groups(frame: pd.DataFrame, others: Sequence[str | None]) -> tuple[str, ...]:
    """Columns with names of sensitive attributes, or else of few levels, all of them large enough to compare."""
    free = [name for name in frame.columns if name not in others]
    named = [spec for name in free if _GROUPS.search(str(name)) and (spec := _group(frame[name]))]
    if not named:
        named = [
            spec
            for name in free
            if not holds_numbers(frame[name]) and (spec := _group(frame[name])) is not None
        ]
    return tuple(named[:_MOST_GROUPS])


def _group(column: pd.Series[Any]) -> str | None:
    """A column as a group: as it is with few levels, cut in two where it holds amounts; None where neither works."""
    name = str(column.name)
    if holds_dates(column):
        return None
    if holds_numbers(column) and column.nunique() > _MOST_LEVELS:
        values = floats(column)
        cut = _OLD if _large(values > _OLD) and "age" in name.casefold() else float(np.nanmedian(values))
        return f"{name}>{cut:g}" if _large(values > cut) else None
    shares = labels(column).value_counts(normalize=True)
    few = 2 <= len(shares) <= _MOST_LEVELS
    return name if few and shares.iloc[1] >= _SMALLEST_SHARE else None


def _large(above: Any) -> bool:
    return bool(_SMALLEST_SHARE < np.mean(above) < 1 - _SMALLEST_SHARE)
