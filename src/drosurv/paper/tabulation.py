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

    `tables` stand under their file names (without suffix) in the paper's order; an experiment without a finished unit
    is left out. `summary` is every cell of every result table, `comparison` every published cell beside ours.
    """

    tables: dict[str, tuple[Table, pd.DataFrame]]
    summary: pd.DataFrame
    comparison: pd.DataFrame
    curves: pd.DataFrame


def tabulate(
    grid: pd.DataFrame,
    experiments: Sequence[Experiment],
    *,
    select_on: SelectOn = "validation",
    circumstances: Collection[str] = (),
) -> Tabulation:
    """Choose settings, average over repeats and compare with the published values.

    With settings chosen on "test", every table's name and title says diagnostic. `circumstances` are what was special
    about the run, for the reasons of differences.
    """
    diagnostic = select_on == "test"
    circumstances = (*circumstances, *(() if diagnostic else (CHOSEN_ON_VALIDATION,)))
    published = load_published()
    tables: dict[str, tuple[Table, pd.DataFrame]] = {}

    def add(name: str, table: Table, frame: pd.DataFrame) -> None:
        if diagnostic:
            name, table = f"{name}-diagnostic", replace(table, caption=table.caption + _DIAGNOSTIC)
        tables[name] = table, frame

    summaries, comparisons, nearby, curves = [], [], [], pd.DataFrame()
    for experiment in experiments:
        if experiment.name == ALPHA_FIGURE.name:
            curves = alpha_curves(grid)
            continue
        for tuned_by in TUNINGS if experiment.setting is None else ("ci",):
            chosen = choose_settings(grid, experiment, tuned_by=tuned_by, select_on=select_on)
            if chosen.empty:
                continue
            summary = summarise(chosen)
            summaries.append(summary)
            label = tuned_by if experiment.setting is None else "fixed"
            add(f"{experiment.name}-{label}", result_table(summary), summary)
            theirs = published.loc[published["experiment"] == experiment.name]
            if tuned_by == "ci" and len(theirs):
                nearest = nearest_settings(grid, theirs)
                nearby.append(nearest)
                comparison = compare(summary, published=theirs, nearest=nearest, circumstances=circumstances)
                comparisons.append(comparison)
                add(f"{experiment.name}-comparison", comparison_table(comparison), comparison)
    compared = _joined(comparisons)
    if comparisons:
        counts = agreement(compared, by="experiment")
        add("agreement", agreement_table(counts), counts)
        if not diagnostic:
            nearest = _joined(nearby)
            add("nearest", nearest_table(nearest), nearest)
            trained_so = nearest.loc[nearest["trained"] != nearest["method"]]
            if len(trained_so):
                add("published-gradient", published_gradient_table(nearest), trained_so)
    return Tabulation(tables, _joined(summaries), compared, curves)


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


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
