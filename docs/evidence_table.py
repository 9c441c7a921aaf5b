"""The table of ``guide/what_to_use.md``, made of ``benchmark.csv``.

After the numbers have changed, ``python docs/evidence_table.py`` writes the table; a test fails until then.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

DOCS = Path(__file__).parent
PAGE = DOCS / "guide" / "what_to_use.md"
BETWEEN = re.compile(r"(<!-- evidence -->\n).*?(<!-- end of evidence -->)", re.DOTALL)
# What the benchmark calls a method, and how it is made.
METHODS = {
    "cox-cv": "`CoxPHCV()`",
    "cox-ridge": "`CoxPHCV(splines=False)`",
    "cox-recalibrated": "`CoxPH(recalibrate=True)`",
    "dro-half": "`DROCox(alpha=0.5, recalibrate=True)`",
    "repair": "`RepairedCox()`",
}
MEASURES = {"gain": "gain", "c_index": "c-index", "worst_named_gain": "gain of the worst named group"}


def differences(method: str, measure: str) -> pd.Series:
    """Return a method's measure less that of plain Cox on each dataset."""
    means = pd.read_csv(DOCS / "benchmark.csv").pivot_table(index="dataset", columns="method", values=measure)
    return (means[method] - means["cox"]).dropna()


def cell(method: str, measure: str) -> str:
    """Return the mean difference, its 95 % interval over datasets, and the number of datasets improved."""
    found = differences(method, measure)
    mean, n = found.mean(), len(found)
    half = stats.t.ppf(0.975, n - 1) * found.std(ddof=1) / np.sqrt(n)
    # Adding zero turns a rounded -0 into 0.
    shown = [f"{round(value, 4) + 0.0:.4f}" for value in (mean, mean - half, mean + half)]
    return f"{shown[0]} ({shown[1]} to {shown[2]}), {(found > 0).sum()} of {n}"


def lowest(method: str) -> str:
    """Return the lowest difference in gain of a dataset, and its name."""
    found = differences(method, "gain")
    return f"{found.min():.4f} ({found.idxmin()})"


def table() -> str:
    """Return the table in Markdown."""
    header = ["model", *MEASURES.values(), "lowest gain of a dataset"]
    rows = [header, ["---"] * len(header)]
    for method, label in METHODS.items():
        rows.append([label, *(cell(method, measure) for measure in MEASURES), lowest(method)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def refreshed() -> str:
    """Return the page with the table in it."""
    page = PAGE.read_text(encoding="utf-8")
    return BETWEEN.sub(lambda found: f"{found[1]}{table()}{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(), encoding="utf-8")
