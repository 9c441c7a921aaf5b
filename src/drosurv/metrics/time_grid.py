"""The times at which accuracy over time is scored: where it can be, or as the published tables do."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from drosurv.errors import ArgumentError, require
from drosurv.metrics.follow_up import FollowUp
from drosurv.target import FloatArray, Target, as_numbers

Grid = Literal["inside", "table"]


def auc_times(follow_up: FollowUp, target: Target, times: Any = None, grid: Grid = "inside") -> FloatArray:
    """Times for the dynamic AUC of patients with at least one event, ascending and distinct.

    The caller's own times must lie in the valid range. Without them, 15 percentiles, evenly spaced from 5 to 81, of the
    scored patients' times are taken: "inside" leaves out those where the AUC does not exist, and may leave none;
    "table", the convention behind the published tables, keeps all and is an error if one is invalid.
    """
    # Before the first event there is no case, from the last time on no control, and beyond the training
    # follow-up no censoring weight.
    start = float(target.time[target.event].min())
    stop = min(float(target.time.max()), follow_up.end)
    if times is None:
        if start >= stop:
            return np.empty(0)
        times = np.percentile(target.time, np.linspace(5, 81, 15))
        if _is_inside(grid):
            inside = times[(times >= start) & (times < stop)]
            times = inside if len(inside) else np.linspace(start, stop, 15, endpoint=False)
    return _valid(times, start, stop)


def auc_times_of(target: Target, at: FloatArray) -> FloatArray:
    """Those of the times `at` (k,) at which one of these patients had had the event and another was still seen."""
    if not target.event.any():
        return np.empty(0)
    first, last = target.time[target.event].min(), target.time.max()
    valid: FloatArray = at[(at >= first) & (at < last)]
    return valid


def brier_times(
    follow_up: FollowUp,
    target: Target,
    times: Any = None,
    grid: Grid = "inside",
    *,
    until: float | None = None,
) -> FloatArray:
    """Times for the integrated Brier score, ascending and distinct, at least two; none if none is valid.

    Without times of the caller's own: 50 evenly spaced ones from the first at which both training and scored patients
    were observed, end excluded. They end at the last scored time ("table", the convention behind the published tables)
    or, if that is earlier, at the end of the training follow-up ("inside"); with `until`, no later than that.
    """
    start, last = float(target.time.min()), float(target.time.max() if until is None else until)
    stop = min(last, follow_up.end)
    if times is None:
        common = max(follow_up.start, start)
        if common >= stop:
            return np.empty(0)
        times = np.linspace(common, stop if _is_inside(grid) else last, 50, endpoint=False)
    chosen = _valid(times, start, stop)
    if len(chosen) < 2:
        raise ArgumentError(
            "times", f"times must hold at least two times to integrate over, got {chosen.tolist()}."
        )
    return chosen


def _is_inside(grid: Grid) -> bool:
    require(grid in ("inside", "table"), "grid", "be 'inside' or 'table'", grid)
    return grid == "inside"


def _valid(times: Any, start: float, stop: float) -> FloatArray:
    chosen = np.unique(np.atleast_1d(as_numbers(times)))
    if len(chosen) == 0 or not (chosen[0] >= start and chosen[-1] < stop):
        found = f"got {chosen[0]:g} to {chosen[-1]:g}" if len(chosen) else "got none"
        raise ArgumentError(
            "times",
            f"times must lie in [{start:g}, {stop:g}), where scored patients are still observed and the "
            f"training follow-up gives censoring weights; {found}. Choose times inside, or leave times=None with "
            "grid='inside' (for evaluate and compare: convention='paper').",
        )
    return chosen
