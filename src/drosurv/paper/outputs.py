"""Everything the reproduction writes: tables as Markdown, LaTeX and CSV, the figure as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from drosurv.files import write_file
from drosurv.paper.alpha_figure import alpha_figure, save_figure
from drosurv.paper.plan import ALPHA_FIGURE
from drosurv.paper.tabulation import Tabulation
from drosurv.presentation import Table


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
    if tabulation.curves is not None:
        written += save_figure(alpha_figure(tabulation.curves), folder, ALPHA_FIGURE.name)
        numbers = folder / f"{ALPHA_FIGURE.name}.csv"
        write_file(numbers, str(tabulation.curves.to_csv(index=False)))
        written.append(numbers)
    return tuple(written)
