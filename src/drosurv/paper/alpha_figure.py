"""Figure 1: what alpha does to DRO-COX on the three datasets, with the shrinkage that comes with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from drosurv.paper.plan import ALPHA_FIGURE, DATASET_LABELS, FIGURE_LEARNING_RATE
from drosurv.paper.shrinkage import gain_share
from drosurv.paper.summary import average
from drosurv.paper.table_metrics import TABLE_METRICS
from drosurv.presentation import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The c-index and the five disparities.
CURVE_METRICS = (TABLE_METRICS[0], *TABLE_METRICS[4:])
# Okabe and Ito's colours, told apart with any colour vision; markers tell them apart in grey.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_MARKERS = ("o", "s", "^", "D")


def alpha_curves(grid: pd.DataFrame) -> pd.DataFrame:
    """Mean and sd over repeats of linear DRO-COX's test metrics at each alpha, at learning rate .01.

    From the table that ``gather`` gives to one row per dataset, alpha and metric: what ``over_repeats`` gives, CI in
    percent; ``gain_share`` is among the metrics.
    """
    grid = grid.assign(gain_share=gain_share(grid))
    shown = grid.loc[
        grid["method"].isin(ALPHA_FIGURE.methods)
        & (grid["part"] == "test")
        & (grid["lr"] == FIGURE_LEARNING_RATE)
    ].sort_values("alpha", kind="stable")
    names = (*(metric.name for metric in CURVE_METRICS), "gain_share")
    cohorts = [
        shown.loc[(shown["dataset"] == dataset) & (shown["attribute"] == attribute)]
        for dataset, attribute in ALPHA_FIGURE.cohorts
    ]
    return average(pd.concat(cohorts), ["dataset", "attribute", "alpha"], names)


def alpha_figure(curves: pd.DataFrame) -> Figure:
    """Draw c-index, the five disparities and the share of Cox's gain over alpha, one column per dataset.

    Bands are one sd over repeats; the band of CI is its bootstrap interval on the test set, which is why CI has a
    panel of its own: beside it the other disparities would be flat.
    """
    from matplotlib.figure import Figure

    cohorts = list(dict.fromkeys(zip(curves["dataset"], curves["attribute"], strict=True)))
    if not cohorts:
        raise ValueError(
            "curves has no rows: no repeat of dro-cox at the figure's learning rate is finished."
        )
    accuracy, *disparities, imparity = CURVE_METRICS
    panels = {
        f"{accuracy.label} ↑": [(accuracy.name, accuracy.label)],
        "disparity ↓": [(metric.name, metric.label) for metric in disparities],
        f"{imparity.label} ↓": [(imparity.name, imparity.label)],
        "share of Cox's LPL gain": [("gain_share", "LPL gain / Cox's")],
    }
    figure = Figure(figsize=(4 * len(cohorts), 2.6 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), len(cohorts), sharex=True, squeeze=False)
    for column, (dataset, attribute) in enumerate(cohorts):
        shown = curves.loc[(curves["dataset"] == dataset) & (curves["attribute"] == attribute)]
        for panel, lines in zip(axes[:, column], panels.values(), strict=True):
            for number, (name, label) in enumerate(lines):
                _draw(panel, shown, name, label, number)
        axes[0, column].set_title(f"{DATASET_LABELS[dataset]} ({attribute})")
        axes[-1, column].axhline(0, color="grey", linewidth=0.8)
        axes[-1, column].set_xlabel("alpha")
    for panel, label in zip(axes[:, 0], panels, strict=True):
        panel.set_ylabel(label)
    axes[1, 0].legend(fontsize="small")
    return figure


def save_figure(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG into a folder; the same figure gives the same SVG, byte for byte."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    for path in (png, svg):
        write_figure(figure, path)
    return png, svg


def _draw(axes: Axes, curves: pd.DataFrame, metric: str, label: str, number: int) -> None:
    rows = curves.loc[curves["metric"] == metric].sort_values("alpha")
    alpha, mean, sd = (rows[name].to_numpy(dtype=float) for name in ("alpha", "mean", "sd"))
    low, high = (rows[name].to_numpy(dtype=float) for name in ("low", "high"))
    if metric != "concordance_imparity":
        low, high = mean - sd, mean + sd
    colour = _COLOURS[number]
    axes.fill_between(alpha, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.plot(alpha, mean, color=colour, marker=_MARKERS[number], markersize=4, label=label)
