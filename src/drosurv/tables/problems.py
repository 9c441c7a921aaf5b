"""Find what looks wrong in a table, and columns that give the outcome away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, ArgumentWarning, InputError, arg, may_be_given, row_number
from drosurv.patients.outcome_names import names_entry, names_other_outcome, words
from drosurv.patients.target import BoolArray, FloatArray, IntArray, field_names
from drosurv.presentation import counted, first_upper, listing
from drosurv.tables.columns import MOST_LEVELS, refuse_texts
from drosurv.tables.dates import holds_dates, holds_years
from drosurv.tables.ids import is_id_name, names_clusters, row_numbers, unnamed_ids
from drosurv.tables.spellings import different_spellings
from drosurv.tables.units import OLDEST, mixed_units, units_of_time
from drosurv.tables.values import (
    MOST_CODES,
    amounts,
    coded,
    factorized,
    finite,
    floats,
    holds_numbers,
    label,
    to_floats,
)

# Fewer rows, values or events may be as they are by chance; with fewer rows than the second, so may sums.
_FEW, _FEWEST_ROWS = 10, 50
# Numbers that mean "not known", such as 99.9 and 1e+99, looked for among the largest and smallest.
_SENTINEL = re.compile(r"-?(9+(\.9+)?|77+|88+|\S+e\+\d+)|-[178]")
# One that is in so many rows, more than hold the tenth of the range below it, and apart by half of that, seems to stand
# for something else.
_FEWEST_SENTINELS = 5
# Nor is 0 an amount if few values are, and all others are above a quarter of the middle one and thrice their steps.
_FEW_ZEROS = 0.1
# Names of columns whose whole numbers are codes.
CODE_NAME = re.compile(
    r"code|zip|postal|_?cd$|icd|race|ethnic|region|centre|center|site|ward|hospital|^inst(itution)?$",
    re.IGNORECASE,
)
# Times and starts that all exceed this share of the largest time are dates: follow-up has short times too.
_FAR_FROM_ZERO = 1 / 3
# Entry times lie before the time in at least this share of the rows.
_BEFORE_TIME = 0.95
# At least so many patients repeat their outcome.
_FEWEST_SAME = 2
# With so many different pairs of time and event it is no accident that each is in a multiple of two or more rows.
_FEWEST_PAIRS = 12
# Nor that no pair is in a single row, if that has a smaller probability where times crowd, and where they are even.
_NONE_ALONE, _NONE_ALONE_IF_EVEN = 0.02, 0.5
# Rows seem to repeat patients if rows of the same time have equal values in a column more often than by chance: in this
# share of the pairs that would differ by chance, and by so many standard deviations. So many columns are compared.
_AGREEMENT, _DEVIATIONS, _MOST_COMPARED = 0.2, 5.0, 4
# So many times in order are near each other: a column that rises or falls with time is no sign.
_NEAR = 4
# Nor is one whose ranks have a correlation above this with those of the times.
_RANK_CORRELATION = 0.8
# Or if they differ from rows beside them in a column so often that it has at most this probability by chance.
_CHANCE = 1e-6


def table_problems(
    table: Any, name: str, categorical: Sequence[str], numeric: Sequence[str], keep_columns: Sequence[str]
) -> Iterator[ArgumentWarning]:
    """Yield the warnings of :meth:`SurvivalTable.problems`, but for those about its target."""
    frame, features, id = table.frame, list(table.X.columns), table.id
    time = table.columns.time if table.columns.entry is None else None
    if time is not None and (told := named_as_end_date(frame, time, table.columns.names)):
        yield ArgumentWarning(None, told)
    yield from _known_later(frame, [one for one in features if one not in keep_columns])
    yield from row_problems(table, name, categorical)
    yield from mostly_missing(frame[list(features)])
    undeclared = [one for one in features if one not in (*categorical, *numeric)]
    # With entry times, and where patients have several rows, the id is that of a patient.
    single = table.clusters is None and (id is None or not frame[id].duplicated().any())
    if time is not None and single and may_be_given("clusters"):
        shared = [one for one in undeclared if names_clusters(one, frame[one])]
        undeclared = [one for one in undeclared if one not in shared]
        for column in shared:
            yield ArgumentWarning(
                "clusters",
                f"column {column!r} is used as a feature and has {frame[column].nunique():,} values in {len(frame):,} "
                "rows. Patients with the same value may be alike, as those of one family or hospital are: to keep them "
                f"together, and not to use it as a feature, pass {arg('clusters', column)}; or name it in "
                f"{arg('categorical')} or in {arg('numeric')}.",
            )
    yield from _codes(frame, undeclared)
    for column in (one for one in features if one not in categorical):
        yield from mixed_units(frame[column], _sentinel_numbers(frame[column]))
    for column in (one for one in features if frame[one].nunique() <= MOST_LEVELS):
        yield from different_spellings(frame[column])
    # Two numbers are determined as two codes are.
    texts = [one for one in features if not (holds_numbers(frame[one]) or frame[one].dtype.kind in "mM")]
    codes = [one for one in features if one in texts or frame[one].nunique() == 2]
    yield from _nested(frame, list(dict.fromkeys([*codes, *(one for one in categorical if one in features)])))


def row_problems(table: Any, name: str, categorical: Sequence[str] = ()) -> Iterator[ArgumentWarning]:
    """Yield warnings about rows of a :class:`SurvivalTable`: copies, several of a patient, entry, unit of times."""
    frame, features, columns, id = table.frame, list(table.X.columns), table.columns, table.id
    if columns.entry is None and columns.time is not None:
        yield from entry_not_given(frame, features, columns.time)
    if columns.entry is None and id is None and table.clusters is None:
        yield from repeated_outcomes(frame, features, table.y)
    if columns.entry is None and columns.time is not None and id is not None:
        yield from rows_from_zero(frame[id], table.y)
    yield from copied_rows(frame, columns.names, name, id)
    if id is None:
        yield from repeated_ids(frame if table.clusters is None else frame.drop(columns=table.clusters))
    yield from units_of_time(frame, [one for one in features if one not in categorical], columns.time)


def refuse_doubtful(frame: pd.DataFrame, columns: Sequence[str], times: Sequence[str] = ()) -> None:
    """Raise if a table has a row of totals, or its columns, of which some are `times`, values that may be none.

    These are texts among numbers, and numbers such as 999. All commands ask about them here.
    """
    refuse_totals(frame)
    refuse_texts(frame[[name for name in columns if name not in times]])
    refuse_sentinels(frame[list(columns)], times)


def refuse_totals(frame: pd.DataFrame) -> None:
    """Raise if the last row of a table is not a patient but the sums of the rows above it."""
    if len(frame) < _FEWEST_ROWS:
        return
    sums = {name: (values[-1], np.nansum(values[:-1])) for name, values in amounts(frame).items()}
    found = [repr(one) for one, (last, total) in sums.items() if total > 0 and np.isclose(last, total, 1e-9)]
    if found:
        raise InputError(
            f"row {row_number(len(frame) - 1, frame)}, the last, holds the sum of {listing(found, 4)}: it is a row of "
            "totals and no patient. Remove it."
        )


def refuse_repeated_outcomes(id: str, patients: IntArray, y: Any) -> None:
    """Raise if rows of one patient repeat the outcome, as those of several visits with the whole follow-up do.

    `patients` (n,) are the numbers of the patients, and `y` (n,) are event and time.
    """
    event, time = (y[name] for name in field_names(y)[:2])
    rows = pd.DataFrame({"patient": patients, "event": event > 0, "time": time})
    several = rows[rows["event"] & rows.groupby("patient")["time"].transform("size").gt(1)]
    same = several.groupby(["patient", "time"]).size().gt(1)
    if same.sum() >= _FEWEST_SAME and same.mean() > 0.5:
        n, had = rows["patient"].nunique(), rows.loc[rows["event"], "patient"].nunique()
        unit = f" If each row is a unit of its own, as each eye is, pass {arg('clusters', id)} and no {arg('id')}."
        unit = unit if may_be_given("clusters") else ""
        raise ArgumentError(
            "id",
            f"column {id!r} names {counted(n, 'patient')} in {len(y):,} rows, and rows of a patient have the same time "
            f"and event: {counted(had, 'patient')} had the event, which would count {int((event > 0).sum()):,} "
            f"times. Keep one row for each patient, such as the first (table.drop_duplicates({id!r}) of pandas).{unit}",
        )


def repeated_outcomes(frame: pd.DataFrame, features: Sequence[str], y: Any) -> Iterator[ArgumentWarning]:
    """Warn if rows with the event at one time, of `y` (n,), agree in other columns as those of one patient do."""
    event, time = (y[name] for name in field_names(y)[:2])
    if sign := _sign_of_repeats(frame, features, event, time):
        yield ArgumentWarning(
            "id",
            f"{sign}: rows seem to repeat patients, whose events then count several times. Keep one row for each "
            f"patient, or pass {arg('id', text='COLUMN')}.",
        )


def rows_from_zero(id: pd.Series, y: Any) -> Iterator[ArgumentWarning]:
    """Warn if rows of one patient all count from time 0 and end at different times."""
    ends = pd.Series(y[field_names(y)[1]]).groupby(id.to_numpy()).agg(["min", "max"])
    several = int((ends["min"] < ends["max"]).sum())
    if several:
        have = "patient has" if several == 1 else "patients have"
        yield ArgumentWarning(
            "id",
            f"{several:,} {have} rows (column {id.name!r}) that all count from time 0 and end at different times: each "
            "is taken as a follow-up of its own. If rows are visits, a patient then counts several times: pass "
            f"{arg('entry', text='COLUMN')} with the time at which each row starts, or keep the last row. If they are "
            "different events of one patient, such as relapse and death, keep the rows of one event. If they are eyes "
            f"or teeth, pass {arg('clusters', str(id.name))} in place of {arg('id')}.",
        )


def _sign_of_repeats(frame: pd.DataFrame, features: Sequence[str], event: Any, time: Any) -> str:
    """Say which rows seem to be of one patient; empty if none do."""
    pairs = pd.DataFrame({"event": event, "time": time}).value_counts()
    rows, with_event = pairs.to_numpy(dtype=np.intp), pairs.index.get_level_values("event") > 0
    same = (event[1:] == event[:-1]) & (time[1:] == time[:-1])
    # Rows of one patient often follow each other, and then no row has another outcome than those beside it.
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    runs, of_event = np.diff([*first, len(event)]), event[first] > 0
    # Of the censored many may have the same time, that of the end of the study, and hide what others show.
    beside = "pairs of time and event of rows that follow each other"
    counts = {"pairs of time and event": rows, "times of an event": rows[with_event]}
    for of, numbers in [*counts.items(), (beside, runs), (beside, runs[of_event])]:
        several = _is_rare(numbers) or (numbers is rows and np.gcd.reduce(rows) > 1)
        if several and len(rows) >= _FEWEST_PAIRS:
            return f"each of {len(numbers):,} {of} is in {numbers.min()} rows or more"
    names = features if same.any() else []
    if visits := next((name for name in names if _numbers_visits(coded(frame[name])[0], same)), None):
        return (
            f"{int(same.sum()):,} rows have the time and event of the row above, and hardly ever its {visits!r}, as "
            "different visits of one patient have"
        )
    had = np.flatnonzero(event > 0)
    tied = int(rows[with_event & (rows > 1)].sum())
    if len(frame) < _FEWEST_ROWS or tied < _FEW:
        return ""
    at = np.unique(np.column_stack([event[had], time[had]]), axis=0, return_inverse=True)[1].ravel()
    found = {name: _codes_beside(frame[name].iloc[had], time[had]) for name in features}
    codes = {name: code for name, code in found.items() if code is not None}
    # Where many patients have the same time, those who also have the same age are compared.
    known = sorted(codes, key=lambda name: -len(np.unique(codes[name])))
    everybody = np.zeros(len(had), np.intp)
    for beside in ("", *known[:_MOST_COMPARED]):
        within = codes.get(beside, everybody)
        same = [name for name in known if _agrees(codes[name], within, at)]
        if same:
            named = listing([repr(str(name)) for name in (beside, *same) if name], 4)
            return (
                f"{tied:,} of {len(had):,} rows with the event share their time with another one, and such rows also "
                f"have the same {named} far more often than rows of near times"
            )
    return ""


def _is_rare(counts: IntArray) -> bool:
    """Whether by chance one of so many counts would be 1: of all ways to divide their sum, and of Poisson numbers."""
    if len(counts) < 2 or counts.min() < 2:
        return False
    n, k, each = counts.sum(), len(counts), counts.mean()
    # Of the ways to divide n rows into k counts, the share of those without a 1.
    place = np.arange(1, k)
    crowded, even = np.prod((n - k - place) / (n - place)), (1 - each / np.expm1(each)) ** k
    return bool(crowded < _NONE_ALONE and even < _NONE_ALONE_IF_EVEN)


def _numbers_visits(codes: IntArray, same: BoolArray) -> bool:
    """Whether rows that are the `same` as the row above (n - 1,) have its code (n,) far less often than by chance."""
    chance = float(((np.unique(codes, return_counts=True)[1] / len(codes)) ** 2).sum())
    equal = float((codes[1:] == codes[:-1])[same].mean())
    if equal >= chance or chance == 1:
        return False
    # Chernoff's bound of the probability of so few.
    rare = (1 - equal) * np.log((1 - equal) / (1 - chance)) + (equal and equal * np.log(equal / chance))
    return bool(same.sum() * rare > -np.log(_CHANCE))


def _codes_beside(column: pd.Series[Any], time: FloatArray) -> IntArray | None:
    """Return codes of the values of a column (n,); where a value equals the time, the row has a code of its own.

    None if it rises or falls with the time, as the date last seen does: it is equal where times are.
    """
    codes = coded(column)[0]
    if holds_numbers(column):
        values = floats(column)
        with np.errstate(invalid="ignore", divide="ignore"):
            order = pd.Series(values).rank().corr(pd.Series(time).rank())
        if abs(order) > _RANK_CORRELATION:
            return None
        if len(np.unique(codes)) > MOST_CODES:
            same = np.flatnonzero(values == time)
            codes[same] = codes.max() + 1 + np.arange(len(same))
    return codes


def _agrees(codes: IntArray, within: IntArray, at: IntArray) -> bool:
    """Whether rows (n,) at one of times in order, `at`, have equal codes far more often than rows at times near it.

    Rows are compared `within` those of equal codes. What changes with time is equal more often at near times than at
    far ones, and may be by as much at one time.
    """
    places = [(within, at // width) for width in (1, _NEAR, 2 * _NEAR)]
    rows = np.diff([_rows_like(*place) for place in places], axis=0, prepend=1.0)
    equal = np.diff([_rows_like(*place, codes) for place in places], axis=0, prepend=1.0)
    known = (rows[:2] > 0).all(axis=0)
    if known.sum() < _FEW:
        return False
    rows, equal, share = rows[:, known], equal[:, known], (_rows_like(codes) / len(codes))[known]
    same, near, far = equal / np.maximum(rows, 1)
    change = max((near - far)[rows[2] > 0].sum(), 0.0)
    beyond, possible = (same - near).sum() - change, (1 - near).sum()
    deviation = np.sqrt((2 * share * (1 - share) * (1 / rows[:2]).sum(axis=0)).sum() + 1)
    return bool(beyond > _AGREEMENT * possible and beyond > _DEVIATIONS * deviation)


def _rows_like(*columns: IntArray) -> FloatArray:
    """Return how many rows are like each row, (n,), in columns of codes, of which -1 is a code too."""
    place = np.zeros(len(columns[0]), dtype=np.intp)
    for codes in columns:
        place = np.unique(place * (codes.max() + 2) + codes, return_inverse=True)[1]
    return np.bincount(place)[place].astype(np.float64)


def _known_later(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[ArgumentWarning]:
    """Warn of features named like other events or times of follow-up, as recurrence is, and of calendar years."""
    kept = f", or name it in {arg('keep_columns')}" if may_be_given("keep_columns") else ""
    other = [str(name) for name in features if names_other_outcome(str(name), frame[name].nunique())]
    years = [str(name) for name in features if holds_years(frame[name])]
    late = "Later patients are followed for a shorter time, and new ones have years that the model never saw."
    for found, what, advice in (
        (other, "named like an event or a time of follow-up", "Drop what is known only later"),
        (years, "that hold calendar years", f"{late} Drop what should not predict"),
    ):
        if found:
            columns = listing(list(map(repr, found)), 6)
            yield ArgumentWarning(
                "drop", f"features {what}: {columns}. {advice} ({arg('drop', found)}){kept}."
            )


def mostly_missing(frame: pd.DataFrame) -> Iterator[ArgumentWarning]:
    """Yield one warning that names the columns of which more than half, but not all, values are missing."""
    share = frame.isna().mean()
    if named := ", ".join(f"{name!r}" for name in frame.columns[(share > 0.5) & (share < 1)]):
        yield ArgumentWarning(
            "drop",
            f"more than half of the values of {named} are missing and are filled with one value. Name such columns in "
            f"{arg('drop')}, unless their known values are informative.",
        )


def copied_rows(
    frame: pd.DataFrame, target: Sequence[str], table_name: str, id: str | None = None, remedy: str = ""
) -> Iterator[ArgumentWarning]:
    """Yield a warning if rows of a table are equal, those of the `target` and of the `id` included.

    It ends with a `remedy`, by default for patients who are counted.
    """
    numbers = pd.Series(row_numbers(frame, [*target, id]))
    copies = int(numbers.duplicated().sum())
    if copies:
        second = int(numbers.duplicated().argmax())
        rows = [row_number(place, frame) for place in (second, int(numbers.eq(numbers[second]).argmax()))]
        remedy = remedy or (
            f"Each is counted as a patient. If they belong to the same patient, pass {arg('id', text='COLUMN')}, or "
            "remove the copies."
            if id is None
            else "They have the same id too: remove them if they were entered twice."
        )
        yield ArgumentWarning(
            None,
            f"{counted(copies, 'row')} of {table_name} {'is a copy' if copies == 1 else 'are copies'} of another row "
            f"(first: row {rows[0]} of row {rows[1]}). {remedy}",
        )


def refuse_unnamed_ids(frame: pd.DataFrame, columns: Sequence[str], features: Sequence[str]) -> None:
    """Raise if one of some columns seems to number patients who have several rows, in which `features` are the same."""
    for name, constant in unnamed_ids(frame, columns, features):
        other = f"; if it is neither, in {arg('drop')}" if may_be_given("drop") else ""
        same, are = listing(list(map(repr, constant)), 4), "is" if len(constant) == 1 else "are"
        raise ArgumentError(
            "id",
            f"column {name!r} has {frame[name].nunique():,} values in {len(frame):,} rows, and {same} {are} the same "
            f"in all rows of a value: it seems to number patients. Pass {arg('id', name)}; if it is a feature, name it "
            f"in {arg('numeric')} or in {arg('categorical')}{other}.",
        )


def repeated_ids(frame: pd.DataFrame) -> Iterator[ArgumentWarning]:
    """Warn of columns that are named like ids of patients, some of whom have several rows."""
    n = len(frame)
    for name in filter(is_id_name, frame.columns):
        different = frame[name].nunique()
        # With far fewer values the column is a class of patients, such as cases and controls.
        if n >= _FEWEST_ROWS and n / 10 < different < frame[name].count():
            yield ArgumentWarning(
                "id",
                f"column {name!r} names {different:,} different patients in {n:,} rows: to keep the rows of a patient "
                f"together, pass {arg('id', str(name))}.",
            )


def interval_start(
    frame: pd.DataFrame, columns: Iterable[str], time: str, id: str | None
) -> tuple[str, int] | None:
    """Return the first of some columns at which a row of a patient starts, in nearly all where the row before ends.

    It comes with the number of such rows, which are intervals (start, stop] of a patient's time; None if there is none.
    """
    if not holds_numbers(frame[time]):
        return None
    who = id or next(filter(is_id_name, frame.columns), None)
    stop = floats(frame[time])
    order = np.arange(len(frame)) if who is None else np.lexsort((stop, factorized(frame[who])[0]))
    for name in columns:
        if not holds_numbers(frame[name]) or np.mean(floats(frame[name]) < stop) < _BEFORE_TIME:
            continue
        start = floats(frame[name])[order]
        later = start[1:] > np.nanmin(start)
        follows = int((later & (start[1:] == stop[order][:-1])).sum())
        if follows >= _FEW and follows > 0.8 * later.sum():
            return name, follows
    return None


def refuse_intervals(frame: pd.DataFrame, columns: Iterable[str], time: str, id: str | None) -> None:
    """Raise if rows are intervals of a patient's time that start at one of some columns: no row starts at time 0."""
    if found := interval_start(frame, columns, time, id):
        name, follows = found
        patient = "" if id else ", and id with the column that names the patient"
        raise ArgumentError(
            "entry",
            f"column {name!r} equals the time of the row before in {follows:,} rows, and lies before {time!r}: rows "
            f"seem to be intervals of a patient's time that start there. Pass {arg('entry', name)}{patient}; or "
            f"name it in {arg('numeric')} if it is a feature.",
        )


def entry_not_given(frame: pd.DataFrame, columns: Iterable[str], time: str) -> Iterator[ArgumentWarning]:
    """Ask about the first of some columns that is named like an entry time and lies before the time."""
    if not holds_numbers(frame[time]):
        return
    end = floats(frame[time])
    for name in filter(names_entry, columns):
        if not holds_numbers(frame[name]) or holds_dates(frame[name]):
            continue
        start = floats(frame[name])
        # An age is an entry time only where the times are ages too.
        age = bool({"age", "alter"} & set(words(name))) and np.nanmax(end) > OLDEST
        if age or np.mean(start < end) < _BEFORE_TIME or not np.nanmax(start) > max(np.nanmin(start), 0.0):
            continue
        yield ArgumentWarning(
            "entry",
            f"column {name!r} is named like the time from which a row is observed, and lies before {time!r}, but was "
            f"not given as such. Are patients observed only from then on? Then pass {arg('entry', name)}.",
        )
        return


def named_as_end_date(frame: pd.DataFrame, time: str, others: Sequence[str | None] = ()) -> str:
    """Say that the numbers of `time` look like end dates, which columns look like start dates, and what to do.

    All values of both are far from 0, and the start is never above the end. Columns in `others` are no starts. It is
    empty if there is no such column.
    """
    ends = to_floats(frame[time])
    least = _FAR_FROM_ZERO * np.nanmax(ends)
    gaps: dict[str, float] = {}
    # Follow-up times are not compared with every column.
    if len(ends) < _FEWEST_ROWS or not np.nanmin(ends) > least:
        return ""
    for name, starts in amounts(frame.drop(columns=[one for one in (time, *others) if one in frame])).items():
        known = np.isfinite(starts) & np.isfinite(ends)
        gap = (ends - starts)[known]
        if known.mean() > 0.5 and gap.min() >= 0 and gap.max() > 0 and starts[known].min() > least:
            gaps[name] = float(np.median(gap))
    if not gaps:
        return ""
    start, *more = sorted(gaps, key=lambda name: gaps[name])
    also = f" (or {listing([repr(name) for name in more], 3)})" if more else ""
    return (
        f"column {time!r} looks like an end date written as a number, not like a time: it is never small, and never "
        f"below {start!r}{also}, which looks like a start date. For the time between them, pass "
        f"{arg('start', start)} {arg('end', time)}."
    )


def _nested(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[ArgumentWarning]:
    """Warn of categories that another column determines, as a region determines its continent."""
    codes = {}
    for name in features:
        code, levels = coded(frame[name])
        # Columns that identify patients determine every other column.
        if 1 < len(levels) <= min(MOST_LEVELS, len(frame) / 5):
            # Missing values are filled with the most frequent level, as in the encoder.
            rows = np.bincount(code[code >= 0])
            most_frequent = min(range(len(levels)), key=lambda place: (-rows[place], levels[place]))
            code = np.where(code < 0, most_frequent, code)
            codes[name] = code, np.unique(code, return_index=True)[1]
    named: set[str] = set()
    # From the most levels to the fewest.
    for narrow, wide in combinations(sorted(codes, key=lambda name: -len(codes[name][1])), 2):
        (code, first), (other, _) = codes[narrow], codes[wide]
        if not {narrow, wide} & named and (other[first][code] == other).all():
            named.add(wide)
            yield ArgumentWarning(
                "drop",
                f"column {narrow!r} determines {wide!r}, as a region determines its continent: their coefficients are "
                f"not identifiable and have no standard errors. Pass {arg('drop', [wide])}.",
            )


def _codes(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[ArgumentWarning]:
    found = [name for name in features if _is_code(frame[name])] if len(frame) >= _FEWEST_ROWS else []
    if found:
        levels = {name: list(map(label, np.sort(frame[name].dropna().unique()))) for name in found[:6]}
        examples = "; ".join(
            f"{name!r}: {', '.join(few[:4])}{', ...' * (len(few) > 4)}" for name, few in levels.items()
        )
        more = f" and {len(found) - 6} more columns" if len(found) > 6 else ""
        yield ArgumentWarning(
            "categorical",
            f"codes or amounts? Columns of few whole numbers, or named like codes ({examples}{more}), are taken as "
            f"amounts. Name codes in {arg('categorical')}, amounts in {arg('numeric')}.",
        )


def _is_code(column: pd.Series[Any]) -> bool:
    values = np.unique(finite(column))
    if len(values) < 3 or (values % 1 > 0).any():
        return False
    return len(values) <= MOST_CODES or CODE_NAME.search(str(column.name)) is not None


def refuse_sentinels(frame: pd.DataFrame, times: Sequence[str] = ()) -> None:
    """Raise if columns of numbers hold values such as 999, or 0 in no `times`, that may mean a missing value."""
    asked = {name: [*sentinels(frame[name], zero=name not in times)] for name in frame.columns}
    if told := [text for texts in asked.values() for text in texts]:
        columns = listing([arg("numeric", [str(name)]) for name, texts in asked.items() if texts], 4)
        questions = " ".join([told[0], *map(first_upper, told[1:4])])
        raise ArgumentError("missing", f"{questions} If it is an amount, pass {columns}.")


def sentinels(column: pd.Series[Any], *, zero: bool = True) -> Iterator[str]:
    """Say which numbers of a column may mean a missing value, outside the rest; 0 may too with `zero`."""
    if not holds_numbers(column) or len(column) < _FEW:
        return
    values, codes = finite(column), _sentinel_numbers(column)
    found = [value for value in codes if _outside(value, values, codes)]
    found += [0.0] * (zero and _zero_is_outside(values))
    for value in found:
        rows = int((values == value).sum())
        rest = values[~np.isin(values, found)]
        meant = arg("missing", [f"{column.name}={value:.15g}"])
        yield (
            f"column {column.name!r} holds {value:.15g} in {counted(rows, 'row')}, outside the rest ({rest.min():g} to "
            f"{rest.max():g}). If it means a missing value, pass {meant}."
        )


def _sentinel_numbers(column: pd.Series[Any]) -> list[float]:
    """Return the numbers of a column, in order, that may be codes; none if it does not hold numbers."""
    known = np.unique(finite(column))
    ends = np.unique([*known[:_FEW], *known[-_FEW:]])
    return [value for value in ends.tolist() if _SENTINEL.fullmatch(f"{value:.15g}")]


def _outside(value: float, values: FloatArray, codes: Sequence[float]) -> bool:
    """Whether a value is the only negative one, or beyond all others: by more than their range, or often and apart."""
    rest = values[~np.isin(values, codes)]
    if len(rest) < len(values) / 2 or np.ptp(rest) == 0:
        return False
    if value < 0 <= rest.min():
        return True
    gap, spread = max(value - rest.max(), rest.min() - value), np.ptp(rest)
    rows, near = int((values == value).sum()), int((np.abs(rest - value) < spread / 10).sum())
    often = rows >= max(_FEWEST_SENTINELS, near + 1) and len(np.unique(rest)) > MOST_CODES
    return bool(gap > (spread / 20 if often else spread))


def _zero_is_outside(values: FloatArray) -> bool:
    """Whether a few values are 0, as no body mass is, and all others are far above."""
    rest = values[values != 0]
    known = np.unique(rest)
    if not 0 < len(values) - len(rest) <= _FEW_ZEROS * len(values) or len(known) <= MOST_CODES:
        return False
    step = np.diff(known[: len(known) // 2 + 1]).max()
    return bool(known[0] > max(np.median(rest) / 4, 3 * step))
