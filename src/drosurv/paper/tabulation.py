"""Every table of the reproduction, from the scores of every grid point, and how they are written to files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from drosurv.files import write_file
from drosurv.paper.alpha_figure import alpha_curves, alpha_figure, save_figure
from drosurv.paper.comparison import agreement, compare
from drosurv.paper.known_reasons import CHOSEN_ON_VALIDATION
from drosurv.paper.nearest import nearest_settings, nearest_table, published_gradient_table
from drosurv.paper.plan import ALPHA_FIGURE, TUNINGS, Experiment
from drosurv.paper.published import load_published
from drosurv.paper.selection import SelectOn, choose_settings
from drosurv.paper.summary import summarise
from drosurv.paper.tables import agreement_table, comparison_table, result_table
from drosurv.presentation import Table

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
            tables["nearest"] = nearest_table(nearest), nearest
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
