"""Find columns that give the outcome away: they tell the event, or the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from drosurv.errors import ArgumentWarning, BlockingWarning
from drosurv.patients.target import BoolArray, FloatArray, of_any_cause, parse_target
from drosurv.tables.columns import MOST_LEVELS
from drosurv.tables.dates import holds_years
from drosurv.tables.values import MOST_CODES, amounts, coded, floats, holds_numbers

# A column that gives the event of a larger share of patients is a leak, not a good marker.
_AGREEMENT = 0.99
_FEWEST_PER_LEVEL = 5
# So is a number whose cut gives the event of at least this share of four sets of patients: those with the event, those
# without, those above the cut and those below. Least number of patients with the event, and without.
_CUT_AGREEMENT = 0.98
_FEWEST_BESIDE_CUT = 20
# A column that equals the time, in some unit, for a larger share of patients is a leak.
_SAME_TIMES = 0.25
_FEWEST_PATIENTS = 50
# The status of something during follow-up has at most so many levels, which agree with its day in most patients.
_MOST_STATES, _MOSTLY = 5, 0.8
# A level whose patients, at least so many, all had the event is a leak if the probability of that is smaller than
# _CHANCE; so is a column that is never above the time. No column of 31 real datasets is one by mistake.
_FEWEST_SURE = 30
_CHANCE = 1e-6
# Two columns of numbers are subtracted from each other if there are at most so many columns.
_MOST_SUBTRACTED = 150
# Of more patients, a random sample is searched.
_MOST_PATIENTS = 10_000
_NEVER = {
    1: "it is never above the time, as the time of something that happened during follow-up",
    -1: "it is never below the time, as the time of the last contact",
}
_FUNCTION = "it rises or falls with the time in all patients, as a function of the time does"


class LeakWarning(BlockingWarning):
    """A column may give the outcome away."""


class KeptColumnWarning(ArgumentWarning):
    """A column may give the outcome away, and was named as one that is known when a prediction is made.

    Reports leave it out, because they check this column for their own patients.
    """

    in_reports = False


def find_leaks(frame: pd.DataFrame, y: Any, entry: Any = None, *, of_levels: bool = True) -> dict[str, str]:
    """Return columns that may give the outcome away, with the reason: they tell the event or the time.

    `entry` (n,) are the times from which patients were under observation. Of more than 10,000 patients, a random sample
    is searched; of fewer than 50, only numbers that tell the time are found. If `of_levels`, a column is also named if
    all patients of one of its levels had the event; that can also happen by chance, if the column is a good marker.
    """
    target = parse_target(of_any_cause(y), require_event=False)
    if len(frame) != len(target):
        return {}
    few = len(target) < _FEWEST_PATIENTS
    start = np.zeros(len(target)) if entry is None else np.asarray(entry, dtype=np.float64)
    if len(target) > _MOST_PATIENTS:
        rows = np.random.default_rng(0).choice(len(target), _MOST_PATIENTS, replace=False)
        frame, target, start = frame.iloc[rows], target.take(rows), start[rows]
    frame = frame.drop(columns=[one for one in frame.columns if _is_year_of_start(frame[one], target.time)])
    numbers = amounts(frame)
    times = [name for name, values in numbers.items() if _in_other_units(values, target.time)]
    found = dict.fromkeys(times, "it is the time in other units")
    if not few:
        found |= _later_ends({name: numbers[name] for name in numbers if name not in found}, target.time)
    for name in (one for one in frame.columns if str(one) not in found):
        how = _tells_time(floats(frame[name]), target.time, start) if holds_numbers(frame[name]) else ""
        if not how and not few:
            how = _tells_event(frame[name], target.event, of_levels)
        if not how and str(name) in numbers:
            how = _cut_tells_event(numbers[str(name)], target.event)
        if how:
            found[str(name)] = how
    states: list[tuple[str, BoolArray, float]] = []
    for name in () if few else [one for one in found if one in numbers]:
        states.append((f"{name!r} equals the time", numbers[name] == target.time, 0.5))
        states.append((f"{name!r} is known", np.isfinite(numbers[name]), _MOSTLY))
    for name in (one for one in frame.columns if str(one) not in found):
        told = next((told for told, state, least in states if _tells_which(frame[name], state, least)), None)
        if told is not None:
            found[str(name)] = f"it tells for whom {told}"
    return found


def _tells_which(column: pd.Series[Any], state: BoolArray, least: float) -> bool:
    """Whether some levels of a column tell who is in a `state` (n,).

    Either hardly anybody with another level is in it, and at least the share `least` of those with these levels; or
    nearly all with these levels are in it, and few others. An arm in which alone some were treated later tells neither.
    """
    codes, levels = coded(column)
    if not 2 <= len(levels) <= _MOST_STATES:
        return False
    known = codes >= 0
    most = np.bincount(codes[known], state[known]) >= np.bincount(codes[known]) / 2
    if most.all() or not most.any():
        return False
    inside, outside = state[known & most[codes]].mean(), 1 - state[known & ~most[codes]].mean()
    return bool((outside >= _AGREEMENT and inside >= least) or (inside >= _AGREEMENT and outside >= _MOSTLY))


def _is_year_of_start(column: pd.Series[Any], time: FloatArray) -> bool:
    """Whether a column holds calendar years of all patients that fall with the time, as that of diagnosis does.

    Patients of later years are followed for a shorter time, and fewer of them have had the event.
    """
    if not holds_years(column) or column.isna().any() or np.ptp(time) == 0:
        return False
    return bool(np.corrcoef(floats(column), time)[0, 1] < 0)


def _tells_time(values: FloatArray, time: FloatArray, entry: FloatArray) -> str:
    """Say how numbers tell the time; empty if they do not. What happened before `entry` is known then."""
    known = np.isfinite(values)
    levels = len(np.unique(values[known]))
    if levels > MOST_CODES:
        for of, times, most in (
            ("the time", time, _SAME_TIMES if levels > MOST_LEVELS else 0.5),
            ("the time since entry", time - entry, 0.5),
        ):
            if (same := same_times(values, times)) > most:
                return f"it equals {of}, in some unit, for {100 * same:.0f} % of the patients"
        # Beside the times of all patients too: of something early, those who had it have few short times.
        if (values[known] > entry[known]).any():
            some = known & (time > 0)
            for sign, told in _NEVER.items():
                numbers, own, all_times = sign * values[some], sign * time[some], sign * time[time > 0]
                if min(_chance_never_later(numbers, own, times) for times in (own, all_times)) < _CHANCE:
                    return told
    return _FUNCTION if _is_function_of(time, values) else ""


def _in_other_units(values: FloatArray, time: FloatArray) -> bool:
    """Whether numbers are the time times a factor, plus a constant, but for rounding."""
    known = np.isfinite(values)
    if known.mean() <= 0.5 or np.ptp(time[known]) == 0 or np.ptp(values[known]) == 0:
        return False
    return bool(abs(np.corrcoef(values[known], time[known])[0, 1]) > 0.9999)


def _cut_tells_event(values: FloatArray, event: BoolArray) -> str:
    """Say which cut of numbers tells the event; empty if none does. Missing values lie on either side of all cuts."""
    n, events = len(event), int(event.sum())
    if min(events, n - events) < _FEWEST_BESIDE_CUT:
        return ""
    for missing in (np.inf, -np.inf) if np.isnan(values).any() else (np.inf,):
        filled = np.where(np.isnan(values), missing, values)
        order = np.argsort(filled)
        lower, upper = filled[order][:-1], filled[order][1:]
        below, events_below = np.arange(1, n), np.cumsum(event[order])[:-1]
        # The event is expected above a cut, or below it.
        for side, had in ((n - below, events - events_below), (below, events_below)):
            had_none = n - side - (events - had)
            shares = [had / events, had / side, had_none / (n - events), had_none / (n - side)]
            agreed = np.where(lower < upper, np.min(shares, axis=0), 0.0)
            best = int(agreed.argmax())
            if agreed[best] >= _CUT_AGREEMENT:
                parted = np.isfinite([lower[best], upper[best]]).all()
                how = f"above {(lower[best] + upper[best]) / 2:.4g}" if parted else "known"
                agreement = (had[best] + had_none[best]) / n
                return f"whether it is {how} tells the event of {100 * agreement:.0f} % of the patients"
    return ""


def _tells_event(column: pd.Series[Any], event: BoolArray, of_levels: bool) -> str:
    """Say how the levels of a column tell the event; empty if they do not, or are too many."""
    if is_numeric_dtype(column) and column.nunique() > MOST_LEVELS:
        return ""
    codes, names = coded(column)
    # Missing values are a level too, the last.
    levels = np.where(codes < 0, len(names), codes)
    if levels.max() >= MOST_LEVELS:
        return ""
    n, rate = len(event), event.mean()
    events, patients = np.bincount(levels, event), np.bincount(levels)
    agreement = float(np.maximum(events, patients - events).sum()) / n
    # Such as death in hospital. A level without any event is no leak: patients who entered last may have none.
    sure = np.where((events == patients) & (patients >= _FEWEST_SURE), patients, 0)
    most = int(sure.argmax())
    # Levels of single patients agree with any event.
    several = len(patients) <= n / _FEWEST_PER_LEVEL
    if several and agreement >= _AGREEMENT and agreement > max(rate, 1 - rate) + 0.05:
        return f"it tells the event of {100 * agreement:.0f} % of the patients"
    if of_levels and rate ** int(sure[most]) < _CHANCE:
        return f"all {sure[most]:,} patients with the value {[*names, np.nan][most]!r} had the event"
    return ""


def same_times(values: FloatArray, time: FloatArray) -> float:
    """Return the share of patients for whom a column equals the time, in one unit for all."""
    known = np.isfinite(values) & (time > 0)
    ratio = values[known] / time[known]
    if not len(ratio):
        return 0.0
    unit, rows = np.unique(np.round(ratio, 9), return_counts=True)
    most = int(rows.argmax())
    return float(rows[most]) / len(values) if unit[most] > 0 else 0.0


def _is_function_of(time: FloatArray, values: FloatArray) -> bool:
    """Whether values are a monotone function of the time, as its logarithm or a number of months is, beyond chance."""
    known = np.isfinite(values)
    if known.mean() <= 0.5 or known.sum() < _FEWEST_PATIENTS:
        return False
    levels, codes = np.unique(values[known], return_inverse=True)
    if len(levels) < 2:
        return False
    from scipy.special import gammaln  # Here, so that mistakes in a table are answered before it is imported.

    # The number of orders of the values, of which a column without a relation to the time has each as likely.
    log_orders = gammaln(known.sum() + 1) - gammaln(np.bincount(codes) + 1).sum()
    if log_orders < -np.log(_CHANCE / 2):
        return False
    ordered = (signed[np.lexsort((signed, time[known]))] for signed in (codes, -codes))
    return any(bool((np.diff(one) >= 0).all()) for one in ordered)


def _later_ends(numbers: dict[str, FloatArray], time: FloatArray) -> dict[str, str]:
    """Return columns whose difference from another column is the time, as exit less entry is."""
    found: dict[str, str] = {}
    some = np.flatnonzero(time > 0)[: 10 * _FEWEST_PATIENTS]
    if len(some) == 0 or not 2 <= len(numbers) <= _MOST_SUBTRACTED:
        return found
    names, table = list(numbers), np.column_stack([values[some] for values in numbers.values()])
    for j, start in enumerate(names):
        with np.errstate(invalid="ignore"):
            ratios = np.round((table - table[:, [j]]) / time[some, None], 9)
        # If more than half of the ratios are equal, so is the one in the middle; missing ones are the last.
        middle = np.partition(ratios, len(some) // 2, axis=0)[len(some) // 2]
        likely = (middle > 0) & ((ratios == middle).mean(axis=0) > 0.5)
        for end in (names[k] for k in np.flatnonzero(likely)):
            with np.errstate(invalid="ignore"):
                between = numbers[end] - numbers[start]
            if (share := same_times(between, time)) > 0.5:
                found[end] = (
                    f"{end!r} minus {start!r} equals the time, in some unit, for {100 * share:.0f} % of the patients"
                )
    return found


def _chance_never_later(values: FloatArray, time: FloatArray, times: FloatArray) -> float:
    """Return the probability that no value (m,) exceeds a randomly drawn time; 1 if one exceeds its own time (m,).

    Times are drawn without replacement from `times` (n,), which include those of the patients with a value.
    """
    if (values > time).any():
        return 1.0
    # Draw a time for each value, the largest first: it must be one of the times left that are not below the value.
    left = len(times) - np.arange(len(values))
    below = np.searchsorted(np.sort(times), np.sort(values)[::-1])
    return float(np.exp(np.log1p(-below / left).sum()))
