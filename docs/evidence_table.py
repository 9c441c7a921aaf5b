"""The tables of ``benchmark.md``, made of ``benchmark.csv``.

``python docs/evidence_table.py results.csv`` makes ``benchmark.csv`` of the benchmark's results of each split, and the
tables; without a file it writes the tables only. A test fails until they have the numbers of ``benchmark.csv``.
"""

import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

DOCS = Path(__file__).parent
BENCHMARK = DOCS / "benchmark.md"
# What the benchmark calls a method, and how it is made.
METHODS = {
    "cox-cv": "`CoxPHCV()`",
    "cox-ridge": "`CoxPHCV(splines=False)`",
    "cox-recalibrated": "`CoxPH(recalibrate=True)`",
    "dro-half": "`DROCox(alpha=0.5, recalibrate=True)`",
    "repair": "`RepairedCox(CoxPH())`",
    "repair-cv": "`RepairedCox(CoxPHCV())`, the default",
    "forest-ranks": "random survival forest, its ranks through a Cox baseline",
    "trees-tuned": '`CoxPH("trees")`, tuned and refitted',
    "xgboost-tuned": "XGBoost, tuned and refitted",
}
MEASURES = {"gain": "gain", "c_index": "c-index", "worst_named_gain": "gain of the worst named group"}


# Numbers of patients from which each stratum starts.
STRATA = (0, 700, 1500)
IN_STRATA = ("cox-cv", "repair-cv", "forest-ranks", "trees-tuned")


@cache
def differences(method: str, measure: str) -> pd.Series:
    """Return a method's measure less that of plain Cox on each dataset."""
    means = numbers().pivot_table(index="dataset", columns="method", values=measure)
    return (means[method] - means["cox"]).dropna()


@cache
def numbers() -> pd.DataFrame:
    """Return the means by dataset and method."""
    return pd.read_csv(DOCS / "benchmark.csv")


def cell(method: str, measure: str, datasets: Sequence[str] | None = None) -> str:
    """Return the mean difference, its 95 % interval over datasets, and the number of datasets improved."""
    found = differences(method, measure)
    return interval(found if datasets is None else found.loc[list(datasets)])


def interval(found: pd.Series) -> str:
    """Return the mean of differences, its 95 % interval, and how many are above 0."""
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


def strata() -> str:
    """Return the table by number of patients in Markdown."""
    patients = numbers().groupby("dataset")["patients"].first()
    rows = [["patients", "model", *MEASURES.values()], ["---"] * 5]
    for low, high in zip(STRATA, [*STRATA[1:], np.inf], strict=True):
        inside = patients.index[(patients >= low) & (patients < high)]
        said = (
            f"{low:,} or more"
            if high == np.inf
            else f"fewer than {high:,}"
            if low == 0
            else f"{low:,} to {high:,}"
        )
        for method, label in METHODS.items():
            if method not in IN_STRATA:
                continue
            rows.append([said, label, *(cell(method, measure, inside) for measure in MEASURES)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def power() -> str:
    """Return what difference in gain could have been distinguished from 0 on one dataset."""
    found, rows = numbers().set_index(["dataset", "method"]), []
    for method, label in METHODS.items():
        if method.startswith("repair"):
            continue
        own = found.xs(method, level="method")
        gained = differences(method, "gain").loc[own.index]
        clear = [(np.sign(gained) == sign) & (gained.abs() > own["gain_half_width"]) for sign in (1, -1)]
        low, middle, high = own["gain_half_width"].quantile([0.25, 0.5, 0.75])
        counts = [int(one.sum()) for one in clear]
        rows.append(
            [
                label,
                str(counts[0]),
                str(len(own) - sum(counts)),
                str(counts[1]),
                f"{middle:.4f} ({low:.4f} to {high:.4f})",
            ]
        )
    header = ["model", "better", "same", "worse", "least difference seen: median dataset (quartiles)"]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * 5, *rows])


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Return the means by dataset and method of the results of each split, and half the width of the gain's interval.

    The interval is that of the difference from plain Cox, with the variance of overlapping splits by Nadeau and Bengio.
    """
    from experiments.benchmark.encoded_part import TEST_SHARE
    from experiments.datasets import card

    order = dict.fromkeys(results["dataset"])
    kept = results.loc[results["method"].isin(["cox", *METHODS])]
    measures = ["gain", "c_index", "ibs", "worst_named_gain", "worst_named_c_index", "found_gain"]
    means = kept.groupby(["dataset", "method"])[measures].mean()
    gains = kept.pivot_table(index=["dataset", "split"], columns="method", values="gain")
    paired = gains.sub(gains["cox"], axis="index").groupby("dataset")
    n = paired.count()
    scale = np.sqrt(1 / n + TEST_SHARE / (1 - TEST_SHARE))
    half = stats.t.ppf(0.975, n - 1) * paired.std() * scale
    rows = []
    for dataset in order:
        size = {"patients": card(dataset).patients, "events": card(dataset).events}
        for method in ("cox", *METHODS):
            if (dataset, method) in means.index:
                width = np.nan if method == "cox" else half.loc[dataset, method]
                found = means.loc[(dataset, method)].to_dict()
                rows.append({"dataset": dataset, **size, "method": method, **found, "gain_half_width": width})
    return pd.DataFrame(rows).round(6)


def refreshed() -> str:
    """Return the page with the tables in it."""
    page = BENCHMARK.read_text(encoding="utf-8")
    for name, made in (("evidence", table), ("strata", strata), ("power", power)):
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        page = between.sub(lambda found, made=made: f"{found[1]}{made()}{found[2]}", page)
    return page


if __name__ == "__main__":
    if len(sys.argv) > 1:
        of_splits = pd.read_csv(sys.argv[1])
        summarise(of_splits).to_csv(DOCS / "benchmark.csv", index=False, lineterminator="\n")
    BENCHMARK.write_text(refreshed(), encoding="utf-8")
