"""Columns that give the outcome away: copies of it, or things recorded only once it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentWarning
from drosurv.tables.columns import MOST_LEVELS
from drosurv.tables.labels import labels
from drosurv.tables.number_values import holds_numbers, to_floats
from drosurv.target import FloatArray, of_any_cause, parse_target

# So close to the outcome that chance or a good marker cannot explain it.
_AGREEMENT = 0.99
# So many patients with the same ratio of a column to the time do not come by chance.
_SAME_TIMES = 0.25
_FEWEST_PATIENTS = 50
# So many patients of one level, all with the event, or of whom a column is never above the time, where chance is less
# than this: in none of 31 real datasets.
_FEWEST_SURE = 30
_CHANCE = 1e-6


class LeakWarning(ArgumentWarning):
    """A column may give the outcome away."""


def find_leaks(frame: pd.DataFrame, y: Any) -> dict[str, str]:
    """Columns that tell the event or the time of nearly every patient, or of a whole level, and why to doubt them.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv import Surv
    >>> from drosurv.tables import find_leaks
    >>> y = Surv.from_arrays([True, False] * 50, range(1, 101))
    >>> find_leaks(pd.DataFrame({"cause": ["cancer", None] * 50}), y)
    {'cause': 'it tells the event of 100 % of the patients'}
    """
    target = parse_target(of_any_cause(y), require_event=False)
    n, rate = len(target), target.event.mean()
    found: dict[str, str] = {}
    if n < _FEWEST_PATIENTS or len(frame) != n:
        return found
    for name in frame.columns:
        column = frame[name]
        if holds_numbers(column) and column.nunique() > MOST_LEVELS:
            values = to_floats(column)
            known = np.isfinite(values)
            if known.mean() > 0.5 and abs(_correlation(values[known], target.time[known])) > 0.9999:
                found[str(name)] = "it is the time in other units"
            elif (same := _same_times(values, target.time)) > _SAME_TIMES:
                found[str(name)] = (
                    f"it is the time itself, in some unit, of {100 * same:.0f} % of the patients"
                )
            elif _chance_never_later(values[known], target.time[known]) < _CHANCE:
                found[str(name)] = (
                    "it is never above the time, as the time of something that happened during follow-up"
                )
            continue
        levels, names = pd.factorize(labels(column), use_na_sentinel=False)
        if levels.max() >= MOST_LEVELS:
            continue
        events, patients = np.bincount(levels, target.event), np.bincount(levels)
        told = float(np.maximum(events, patients - events).sum()) / n
        # Such as death in hospital. The other side, nobody with the event, is also had by who came last.
        sure = np.where((events == patients) & (patients >= _FEWEST_SURE), patients, 0)
        most = int(sure.argmax())
        if told >= _AGREEMENT and told > max(rate, 1 - rate) + 0.05:
            found[str(name)] = f"it tells the event of {100 * told:.0f} % of the patients"
        elif rate ** int(sure[most]) < _CHANCE:
            found[str(name)] = f"all {sure[most]:,} patients with the value {names[most]!r} had the event"
    return found


def _same_times(values: FloatArray, time: FloatArray) -> float:
    """Share of the patients of whom a column holds the time, such as that of a relapse that most never had."""
    known = np.isfinite(values) & (time > 0)
    ratio = values[known] / time[known]
    if not len(ratio):
        return 0.0
    unit, rows = np.unique(np.round(ratio, 9), return_counts=True)
    most = int(rows.argmax())
    return float(rows[most]) / len(values) if unit[most] > 0 else 0.0


def _chance_never_later(values: FloatArray, time: FloatArray) -> float:
    """Chance that no value is above its patient's time if the times were dealt at random; 1 if some value is."""
    if (values > time).any():
        return 1.0
    # Whoever has the largest value draws first, one of the times that are not below it.
    left = len(values) - np.arange(len(values))
    below = np.searchsorted(np.sort(time), np.sort(values)[::-1])
    return float(np.exp(np.log1p(-below / left).sum()))


def _correlation(a: Any, b: Any) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else 0.0
