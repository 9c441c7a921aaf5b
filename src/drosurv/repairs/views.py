"""Repairs as a table, a text and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from drosurv.presentation import Column, Table, axes_or_new
from drosurv.repairs.repair import Repair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    Column("who", "for"),
    Column("patients", "patients", "count"),
    Column("events", "events", "count"),
    Column("changed", "what was changed"),
    Column.measured("before", "observed / expected before"),
    Column.measured("after", "after"),
    Column("slope_before", "slope before", "value"),
    Column("slope_after", "after", "value"),
    Column.measured("gain", "gain there"),
    Column.measured("gain_outside", "gain elsewhere"),
    Column("e", "e-value", "value"),
)
CHANGED = {
    "full": "effects there and of everyone",
    "own": "effects there",
    "level": "level",
}
NOTE = (
    "All but the counts is measured on patients not used to find or fit the repair. Slope: log risk in truth for one "
    "unit predicted, 1 is right. Gain: log likelihood per patient."
)


def repair_table(repairs: Sequence[Repair]) -> Table:
    """One row for each repair."""
    return Table("repairs", "Repairs", COLUMNS, tuple(_row(repair) for repair in repairs), (NOTE,))


def _row(repair: Repair) -> dict[str, Any]:
    half = "" if repair.strength == 1 else f", times {repair.strength:g}"
    row: dict[str, Any] = {
        "who": repair.who,
        "kind": repair.kind,
        "version": repair.version,
        "strength": repair.strength,
        "changed": CHANGED[repair.version] + half,
        "patients": repair.patients,
        "events": repair.events,
        "checked": repair.checked,
    }
    row |= repair.before.named("before") | repair.after.named("after")
    row |= repair.gain_inside.named("gain") | repair.gain_outside.named("gain_outside")
    row |= {"slope_before": repair.slope_before, "slope_after": repair.slope_after}
    return row | {"e": repair.e, "overlap": repair.overlap}


def repair_frame(repairs: Sequence[Repair]) -> pd.DataFrame:
    """One row for each repair, intervals as ``_low`` and ``_high``."""
    rows = [_row(repair) for repair in repairs]
    keys = [key for column in COLUMNS for key in column.keys]
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else keys)


def plot_repairs(repairs: Sequence[Repair], ax: Axes | None = None) -> Axes:
    """Observed over expected events of each repaired group before and after, on patients not used for it."""
    ax = axes_or_new(ax)
    for place, repair in enumerate(reversed(repairs)):
        for ratio, shift, color, label in (
            (repair.before, 0.12, "C3", "before"),
            (repair.after, -0.12, "C0", "after the repair"),
        ):
            at = place + shift
            ax.plot([ratio.low, ratio.high], [at, at], color=color)
            ax.plot(ratio.value, at, "o", color=color, label=label if place == 0 else None)
    ax.axvline(1, color="0.3", linewidth=0.8)
    # A dollar sign in a name is a dollar sign.
    ax.set_yticks(range(len(repairs)), [repair.who for repair in reversed(repairs)], parse_math=False)
    ax.set_xlabel("events observed / expected, on patients not used for the repair")
    ax.set_title("Repairs" if repairs else "Nothing to repair was found")
    if repairs:
        ax.legend()
    return ax
