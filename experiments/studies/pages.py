"""What the studies write into the documentation: tables in Markdown, and a page's part between two marks."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

DOCS = Path(__file__).parents[2] / "docs"


def table(header, rows):
    """Lines of a table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def write_table(name, header, rows):
    """Write a long table to a CSV file; return the lines of a page that show it."""
    frame = pd.DataFrame(rows, columns=header)
    frame.to_csv(DOCS / "tables" / f"{name}.csv", index=False, lineterminator="\n")
    return ["```{csv-table}", f":file: tables/{name}.csv", ":header-rows: 1", "```", ""]


def mean_se(values, digits=3):
    """Mean and, of more than one, its standard error; a dash where nothing was measured."""
    values = np.asarray(values.dropna(), float)
    if len(values) == 0:
        return "–"
    error = f" ({values.std(ddof=1) / np.sqrt(len(values)):.{digits}f})" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{error}"


def write_part(page, command, text):
    """Replace the part of the page that the command makes."""
    path = DOCS / page
    begin, end = f"<!-- {command} -->", "<!-- end -->"
    said = f"{begin}\n\n{text}\n\n{end}"
    old = path.read_text(encoding="utf-8")
    path.write_text(re.sub(f"{begin}.*?{end}", lambda _: said, old, flags=re.DOTALL), encoding="utf-8")
