"""Plots of an evaluation: methods of :class:`~drosurv.evaluation.EvaluationResult`.

Each draws on the given axes, or on new ones, and returns them; those with a panel for each group return the figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, require
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.curves_by_group import FUNNEL_LEVELS, NEW_GROUP, funnel
from drosurv.evaluation.evaluator import whose
from drosurv.judging.group_picture import MANY_GROUPS
from drosurv.paper.shrinkage import disparity_column
from drosurv.patients.groups import EVERYONE
from drosurv.presentation import axes_or_new, lines_or_new, moment, name_lines, ratio_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREY = "0.45"
# Most letters in a line of a panel's title.
_LETTERS = 28


def groups_plot(result: Any, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a forest plot of a metric: everybody and every group, with intervals.

    By default it is the c-index, or without risk scores the likelihood gain.
    """
    known = sorted({row.metric for row in result.rows if row.kind == "group"})
    if metric is None:
        metric = "concordance_index" if "concordance_index" in known else "likelihood_gain"
    rows = [row for row in result.select(metric=metric) if row.kind != "gap"][::-1]
    if metric not in known:
        raise ArgumentError.must("metric", f"be one that groups have, {known}", metric)
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_new(ax, height=1.2 + 0.35 * len(rows))
    for y, row in enumerate(rows):
        colour = "C0" if row.kind == "group" else "black"
        # Without an interval only the point is drawn.
        xerr = np.nan_to_num([[row.value - row.low], [row.high - row.value]]).clip(min=0.0)
        ax.errorbar(row.value, y, xerr=xerr, fmt="o", color=colour, capsize=3, lw=1.2)
        if row.kind == "overall":
            ax.axvline(row.value, color=_GREY, lw=0.8, ls=":")
    names = [f"{row.whose}  ({row.patients:,} patients, {row.events:,} events)" for row in rows]
    # A dollar sign in a name does not start a formula.
    ax.set_yticks(range(len(rows)), names, parse_math=False)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    better = rows[0].better
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set_xlabel(CATALOGUE[metric].label + (f" ({better} is better)" if better else ""))
    return ax


def decision_curves_plot(result: Any, attribute: str | None = None) -> Figure:
    """Draw the decision curve of each group of an attribute, in a small panel each; return the figure.

    By default the groups are those of the first attribute; "overall" is everybody. The band contains the whole curve
    of a group. Treating everybody is the thin line, treating nobody the dotted line at 0.
    """
    rows = _of_attribute(result.decision_curves, attribute)
    figure, panels = _panels(rows)
    shown = rows[["net_benefit", "treat_all"]].to_numpy()
    top = max(float(shown.max()), float(rows["high"].max()), 0.01)
    for ax, (who, part) in zip(panels, rows.groupby("group", sort=False), strict=True):
        at = part["threshold"]
        ax.axhline(0.0, color=_GREY, lw=0.8, ls=":", label="treat nobody")
        ax.plot(at, part["treat_all"], color=_GREY, lw=1.0, label="treat everybody")
        ax.fill_between(at, part["low"], part["high"], color="C0", alpha=0.2, lw=0)
        ax.plot(at, part["net_benefit"], color="C0", lw=1.5, label="treat by the model")
        if result.settings.threshold is not None:
            ax.axvline(result.settings.threshold, color="C3", lw=0.8, ls="--", label="threshold")
        _set_title(ax, part["attribute"].iloc[0], str(who))
        # Treating everybody has large negative values at high thresholds, which are of no interest.
        ax.set(ylim=(-0.3 * top, 1.1 * top))
    figure.supxlabel(f"risk by {_horizon(result)} at which one would treat", fontsize="medium")
    figure.supylabel("net benefit", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def calibration_plot(result: Any, attribute: str | None = None) -> Figure:
    """Draw observed against predicted risk at the horizon, one small panel per group; return the figure.

    By default the groups are those of the first attribute; "overall" is everybody. Below each curve stands how many
    patients have which predicted risk; in the corner observed over expected events, the slope of observed on
    predicted risk, and the mean distance of a curve from the prediction (ICI).
    """
    curves = result.calibration_curves
    points = pd.DataFrame() if curves is None else curves.points
    rows = _of_attribute(points, attribute)
    attribute = str(rows["attribute"].iloc[0])
    figure, panels = _panels(rows, height=3.2)
    top = min(1.0, 1.08 * float(np.nanmax(rows[["predicted", "observed"]].to_numpy(dtype=float))))
    # Wide intervals are cut off at twice the risks; above them is room for the numbers.
    peak = min(1.0, 2 * top, np.nanmax([top, *rows["high"].astype(float)]))
    rows = rows.assign(high=rows["high"].clip(upper=peak))
    for ax, (group, part) in zip(panels, rows.groupby("group", sort=False), strict=True):
        ax.plot([0, 1], [0, 1], color=_GREY, lw=0.8, ls=":")
        if part["kind"].iloc[0] == "spline":
            ax.fill_between(part["predicted"], part["low"], part["high"], color="C0", alpha=0.2, lw=0)
            ax.plot(part["predicted"], part["observed"], color="C0", lw=1.5)
        else:
            lengths = np.vstack([part["observed"] - part["low"], part["high"] - part["observed"]])
            yerr = np.nan_to_num(lengths).clip(min=0.0)
            ax.errorbar(
                part["predicted"], part["observed"], yerr=yerr, fmt="o", color="C0", capsize=3, lw=1.0
            )
        bars = _group_rows(curves.histogram, attribute, str(group))
        heights = 0.15 * peak * bars["patients"] / max(float(bars["patients"].max()), 1.0)
        ax.bar(bars["low"], heights, bars["high"] - bars["low"], -0.2 * peak, align="edge", color=_GREY)
        numbers = _group_rows(curves.numbers, attribute, str(group)).iloc[0].to_dict()
        text = ax.text(0.04, 0.97, corner_text(numbers), transform=ax.transAxes, va="top", fontsize="small")
        text.set_in_layout(False)
        _set_title(ax, attribute, str(group))
        ax.set(xlim=(0.0, top), ylim=(-0.2 * peak, 1.4 * peak))
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= peak])
    figure.supxlabel(f"predicted risk by {_horizon(result)}", fontsize="medium")
    figure.supylabel("observed risk", fontsize="medium")
    return figure


def funnel_plot(result: Any, attribute: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw observed over expected events of many groups, such as hospitals, against the expected events.

    Between the lines, chance explains the distance from 1: in 95 %, and in 99.8 %, of the groups of a right model.
    """
    rows = result.shrunken
    if len(rows) == 0:
        raise ArgumentError(
            "attribute", f"no attribute has more than {MANY_GROUPS} groups with expected events."
        )
    attribute = attribute or str(rows["attribute"].iloc[0])
    known = rows["attribute"].unique().tolist()
    require(attribute in known, "attribute", f"be one with many groups, {known}", attribute)
    rows = rows[(rows["attribute"] == attribute) & (rows["group"] != NEW_GROUP)]
    ax, alike = axes_or_new(ax), result.design_effects.get(attribute, 1.0)
    at = np.linspace(max(0.5 * float(rows["expected"].min()), 0.2), 1.05 * float(rows["expected"].max()), 200)
    for level, style in zip(FUNNEL_LEVELS, ("--", "-"), strict=True):
        low, high = funnel(at, level, alike)
        ax.plot(at, low, color=_GREY, lw=0.8, ls=style, label=f"{100 * level:g} % of groups by chance")
        ax.plot(at, high, color=_GREY, lw=0.8, ls=style)
    ax.axhline(1.0, color=_GREY, lw=0.8, ls=":")
    ax.plot(rows["expected"], rows["ratio"], "o", color="C0", ms=4, label=_who(attribute, "").strip())
    low, high = funnel(rows["expected"].to_numpy(dtype=float), FUNNEL_LEVELS[-1], alike)
    for _, row in rows[~rows["ratio"].between(low, high)].iterrows():
        # Names of groups outside the outer lines, towards the middle of the picture.
        side = "right" if row["expected"] > 0.5 * at[-1] else "left"
        ax.annotate(
            str(row["group"]),
            (row["expected"], row["ratio"]),
            xytext=(0, 5 if row["ratio"] > 1 else -12),
            textcoords="offset points",
            ha=side,
            fontsize="small",
            parse_math=False,
        )
    ax.set(ylim=(0.0, 1.15 * max(float(rows["ratio"].max()), 2.0)))
    ax.set(xlabel="expected events", ylabel="observed / expected events")
    ax.legend(frameon=False)
    return ax


def corner_text(numbers: Mapping[Any, Any]) -> str:
    """Return observed over expected events and slope with intervals, and ICI, a line each, if known."""
    lines = []
    for label, key in {"O/E": "ratio", "slope": "slope", "ICI": "ici"}.items():
        found = (numbers.get(f"{key}{end}") for end in ("", "_low", "_high"))
        value, low, high = (np.nan if end is None else float(end) for end in found)
        if not np.isnan(value):
            lines.append(f"{label} {ratio_with_interval(value, low, high)}")
    return "\n".join(lines)


def _panels(rows: pd.DataFrame, height: float = 2.4) -> tuple[Figure, list[Axes]]:
    """Return a new figure with a small panel for each group, at most three in a row, all with the same axes."""
    import matplotlib.pyplot as plt

    n = rows["group"].nunique()
    across = min(n, 3)
    down = -(-n // across)
    figure, grid = plt.subplots(
        down,
        across,
        figsize=(max(2.9 * across, 4.4), height * down + 0.6),
        layout="constrained",
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    panels = list(grid.flat)
    for unused in panels[n:]:
        unused.remove()
    for lowest in panels[max(n - across, 0) : n]:
        lowest.tick_params(labelbottom=True)
    return figure, panels[:n]


def _set_title(ax: Axes, attribute: str, group: str) -> None:
    """Write the name of a group above its panel, a long one on several lines."""
    ax.set_title(fill(_who(attribute, group), _LETTERS), fontsize="medium")


def _horizon(result: Any) -> str:
    return moment(result.settings.horizon, result.settings.time_unit)


def _group_rows(table: pd.DataFrame, attribute: str, group: str) -> pd.DataFrame:
    return table[(table["attribute"] == attribute) & (table["group"] == group)]


def survival_plot(result: Any, attribute: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw mean predicted survival (lines) and plain Kaplan-Meier (steps).

    Plain Kaplan-Meier assumes that censoring has nothing to do with risk; observed risks of ``result.times`` do not.
    By default the groups are those of the first attribute; "overall" is everybody.
    """
    rows = _of_attribute(result.survival, attribute)
    attribute = str(rows["attribute"].iloc[0])
    ax = lines_or_new(ax, rows["group"].nunique() + 1)
    for k, (group, part) in enumerate(rows.groupby("group", sort=False)):
        ax.plot(part["time"], part["predicted"], color=f"C{k}", lw=1.5, label=_who(attribute, str(group)))
        ax.step(part["time"], part["observed"], where="post", color=f"C{k}", lw=1.0, ls="--")
    ax.plot([], [], color=_GREY, lw=1.0, ls="--", label="observed (plain Kaplan-Meier)")
    ax.set(xlabel="time", ylabel="survival", ylim=(0.0, 1.02))
    name_lines(ax)
    return ax


def control_plot(
    result: Any, metric: str = "individual_disparity", attribute: str = "overall", *, ax: Axes | None = None
) -> Axes:
    """Draw a disparity against the share of the reference's likelihood gain, for the model and for "reference x c".

    A model on or above the curve is no fairer than shrinking alone makes it. The metric is "individual_disparity",
    "intersectional_disparity" or, with an attribute, "group_disparity".
    """
    control = result.control
    if control is None:
        raise ArgumentError(
            "metric",
            f"there is no shrinkage control without a reference: pass {arg('reference')} or {arg('X_train')}.",
        )
    column = disparity_column(attribute, metric)
    if column not in control.curve:
        known = control.at_equal_gain[["metric", "attribute"]].itertuples(index=False, name=None)
        raise ArgumentError(
            "metric", f"metric and attribute must be one of {list(known)}, got {(metric, attribute)}."
        )
    ax = axes_or_new(ax)
    curve = control.curve
    label = f"{result.settings.reference} x c"
    ax.plot(curve["share_of_gain"], curve[column], "o-", color=_GREY, ms=3, lw=1.0, label=label)
    of_model = control.at_equal_gain.set_index(["attribute", "metric"])["model"]
    point = result.value("share_of_gain"), float(of_model[attribute, metric])
    ax.plot(*point, "D", color="C3", ms=7, label=result.settings.model)
    ax.set_xlabel(f"share of {result.settings.reference}'s likelihood gain kept")
    heading = result.headings.get(attribute)
    ax.set_ylabel(CATALOGUE[metric].label + (f" ({heading})" if heading else ""))
    ax.legend(frameon=False)
    return ax


def _of_attribute(table: pd.DataFrame, attribute: str | None) -> pd.DataFrame:
    """Return the rows of an attribute, by default of the first that has groups, or else of everybody."""
    if len(table) == 0:
        raise ArgumentError("metric", "the model gave no survival curves to draw.")
    known = table["attribute"].unique().tolist()
    attribute = attribute or next((name for name in known if name != EVERYONE), EVERYONE)
    require(attribute in known, "attribute", f"be one of {known}", attribute)
    return table[table["attribute"] == attribute]


def _who(attribute: str, group: str) -> str:
    return whose(attribute, group).replace("$", r"\$")
