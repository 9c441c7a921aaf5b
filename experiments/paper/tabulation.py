"""Every table of the reproduction, from the scores of every grid point, and how they are written to files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from drosurv.files import write_file
from drosurv.presentation import Table, write_figure
from experiments.paper.comparison import agreement, compare, load_published
from experiments.paper.known_reasons import CHOSEN_ON_VALIDATION
from experiments.paper.methods import TABLE_METRICS
from experiments.paper.nearest import (
    authors_setting_table,
    false_matches,
    nearest_settings,
    nearest_table,
    published_gradient_table,
)
from experiments.paper.plan import ALPHA_FIGURE, DATASET_LABELS, FIGURE_LEARNING_RATE, TUNINGS, Experiment
from experiments.paper.selection import SelectOn, average, choose_settings, gain_share, summarise
from experiments.paper.tables import agreement_table, comparison_table, result_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DIAGNOSTIC = " (DIAGNOSTIC: settings chosen on the test set, not a result)"


@dataclass(frozen=True, eq=False)
class Tabulation:
    """The tables with the numbers behind them, and the curves of the figure; none unless it is among the experiments.

    `tables` stand under their file names (without suffix); an experiment without a finished unit is left out.
    `summary` is every cell of every result table, `comparison` every published cell beside ours, and `nearest` what
    :func:`nearest_settings` gives.
    """

    tables: dict[str, tuple[Table, pd.DataFrame]]
    summary: pd.DataFrame
    comparison: pd.DataFrame
    nearest: pd.DataFrame
    curves: pd.DataFrame


def tabulate(
    grid: pd.DataFrame,
    experiments: Sequence[Experiment],
    *,
    select_on: SelectOn = "validation",
    circumstances: Collection[str] = (),
    nearest: pd.DataFrame | None = None,
) -> Tabulation:
    """Choose settings, average over repeats and compare with the published values.

    With settings chosen on "test", every table's name and title says diagnostic. `circumstances` are what was special
    about the run, for the reasons of differences. `nearest` is that of another choice on the same grid, where there is
    one: it depends on no choice.
    """
    diagnostic = select_on == "test"
    tables: dict[str, tuple[Table, pd.DataFrame]] = {}
    curves = pd.DataFrame()
    for experiment in experiments:
        if experiment.name == ALPHA_FIGURE.name:
            curves = alpha_curves(grid)
            continue
        for tuned_by in TUNINGS if experiment.setting is None else ("ci",):
            chosen = choose_settings(grid, experiment, tuned_by=tuned_by, select_on=select_on)
            if len(chosen):
                cells = summarise(chosen)
                tables[f"{experiment.name}-{chosen['tuned_by'].iloc[0]}"] = result_table(cells), cells
    summary = pd.concat([cells for _, cells in tables.values()] or [pd.DataFrame()], ignore_index=True)
    published = load_published()
    theirs = published.loc[published["experiment"].isin(summary.get("experiment", ()))]
    comparison = pd.DataFrame()
    if len(theirs):
        nearest = nearest_settings(grid, theirs) if nearest is None else nearest
        circumstances = (*circumstances, *(() if diagnostic else (CHOSEN_ON_VALIDATION,)))
        comparison = compare(summary, published=theirs, nearest=nearest, circumstances=circumstances)
        for name, cells in comparison.groupby("experiment", sort=False):
            tables[f"{name}-comparison"] = comparison_table(cells), cells
        counts = agreement(comparison, by="experiment")
        tables["agreement"] = agreement_table(counts), counts
        trained_so = nearest.loc[nearest["trained"] != nearest["method"]]
        if not diagnostic:
            tables["nearest"] = nearest_table(nearest, *false_matches(grid, theirs)), nearest
            tables["authors-setting"] = authors_setting_table(grid, theirs), theirs
        if not diagnostic and len(trained_so):
            tables["published-gradient"] = published_gradient_table(nearest), trained_so
    if diagnostic:
        tables = {
            f"{name}-diagnostic": (replace(table, caption=table.caption + _DIAGNOSTIC), cells)
            for name, (table, cells) in tables.items()
        }
    return Tabulation(tables, summary, comparison, pd.DataFrame() if nearest is None else nearest, curves)


def write_table(table: Table, frame: pd.DataFrame, folder: str | Path, name: str) -> tuple[Path, ...]:
    """Write a table as Markdown and LaTeX, and the unrounded numbers behind it as CSV."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    markdown, latex, csv = (folder / f"{name}.{suffix}" for suffix in ("md", "tex", "csv"))
    write_file(markdown, table.to_markdown(heading=True))
    write_file(latex, table.to_latex())
    write_file(csv, str(frame.to_csv(index=False)))
    return markdown, latex, csv


def write_outputs(tabulation: Tabulation, folder: str | Path) -> tuple[Path, ...]:
    """Write the tables, the comparison with the published values and the figure of what is finished."""
    folder = Path(folder)
    written: list[Path] = []
    for name, (table, frame) in tabulation.tables.items():
        written += write_table(table, frame, folder, name)
    if not tabulation.curves.empty:
        written += save_figure(alpha_figure(tabulation.curves), folder, ALPHA_FIGURE.name)
        numbers = folder / f"{ALPHA_FIGURE.name}.csv"
        write_file(numbers, str(tabulation.curves.to_csv(index=False)))
        written.append(numbers)
    return tuple(written)


# The c-index and the five disparities.
CURVE_METRICS = (TABLE_METRICS[0], *TABLE_METRICS[4:])
# Okabe and Ito's colours, distinct with any colour vision; markers are distinct in grey.
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
