"""Everything the reproduction writes, from the scores of every grid point."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from drosurv.paper.alpha_curves import alpha_curves
from drosurv.paper.comparison import agreement, compare
from drosurv.paper.figures import alpha_figure, save_figure
from drosurv.paper.plan import ALPHA_FIGURE, TUNINGS, Experiment
from drosurv.paper.published import load_published
from drosurv.paper.selection import SelectOn, choose_settings
from drosurv.paper.summary import summarise
from drosurv.paper.table import Table
from drosurv.paper.tables import agreement_table, comparison_table, result_table

if TYPE_CHECKING:
    import pandas as pd


def write_table(table: Table, frame: pd.DataFrame, folder: str | Path, name: str) -> tuple[Path, ...]:
    """Write a table as Markdown and LaTeX, and the numbers behind it as CSV.

    Parameters
    ----------
    table : Table
        The view.
    frame : DataFrame
        The numbers, unrounded.
    folder : path
        Created if it is not there.
    name : str
        File name without suffix.

    Returns
    -------
    tuple of Path
        The files written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    markdown, latex, csv = (folder / f"{name}.{suffix}" for suffix in ("md", "tex", "csv"))
    markdown.write_text(table.markdown(), encoding="utf-8")
    latex.write_text(table.latex(), encoding="utf-8")
    frame.to_csv(csv, index=False)
    return markdown, latex, csv


def write_outputs(
    grid: pd.DataFrame,
    experiments: Sequence[Experiment],
    folder: str | Path,
    *,
    select_on: SelectOn = "validation",
    circumstances: Collection[str] = (),
) -> tuple[Path, ...]:
    """Write the tables, the comparison with the published values and the figure of what is finished.

    Parameters
    ----------
    grid : DataFrame
        From :func:`drosurv.paper.gather`; an experiment without a finished unit is left out.
    experiments : sequence of Experiment
        What to write.
    folder : path
        Where to.
    select_on : "validation" or "test"
        Part on which settings are chosen; with "test" every file's name and title says diagnostic.
    circumstances : collection of str
        What was special about the run, for the reasons of differences.

    Returns
    -------
    tuple of Path
        The files written.
    """
    import pandas as pd

    diagnostic = select_on == "test"
    suffix = "-diagnostic" if diagnostic else ""
    published = load_published()
    written: list[Path] = []
    comparisons = []
    for experiment in experiments:
        if experiment == ALPHA_FIGURE:
            written += _write_alpha(grid, folder)
            continue
        for tuned_by in TUNINGS if experiment.setting is None else ("ci",):
            chosen = choose_settings(grid, experiment, tuned_by=tuned_by, select_on=select_on)
            if chosen.empty:
                continue
            summary = summarise(chosen)
            label = tuned_by if experiment.setting is None else "fixed"
            table = result_table(summary, diagnostic=diagnostic)
            written += write_table(table, summary, folder, f"{experiment.name}-{label}{suffix}")
            theirs = published.loc[published["experiment"] == experiment.name]
            if tuned_by == "ci" and len(theirs):
                comparison = compare(summary, published=theirs, circumstances=circumstances)
                comparisons.append(comparison)
                table = comparison_table(comparison, diagnostic=diagnostic)
                written += write_table(table, comparison, folder, f"{experiment.name}-comparison{suffix}")
    if comparisons:
        counts = agreement(pd.concat(comparisons, ignore_index=True), by="experiment")
        table = agreement_table(counts, diagnostic=diagnostic)
        written += write_table(table, counts, folder, f"agreement{suffix}")
    return tuple(written)


def _write_alpha(grid: pd.DataFrame, folder: str | Path) -> list[Path]:
    curves = alpha_curves(grid)
    if curves.empty:
        return []
    folder = Path(folder)
    files = list(save_figure(alpha_figure(curves), folder, ALPHA_FIGURE.name))
    curves.to_csv(folder / f"{ALPHA_FIGURE.name}.csv", index=False)
    return [*files, folder / f"{ALPHA_FIGURE.name}.csv"]
