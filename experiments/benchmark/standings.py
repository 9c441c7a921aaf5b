"""From results to conclusions: differences from Cox with intervals, wins and losses, ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, studentized_range, t

from drosurv.patients.target import FloatArray
from experiments.benchmark.contenders import REFERENCE
from experiments.benchmark.encoded_part import TEST_SHARE
from experiments.benchmark.measures import MEASURES, Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Ranks:
    """Mean rank of each method over datasets, the best first, and which of them differ beyond chance.

    `p` is of Friedman's test of "all methods are alike". Mean ranks that differ by more than
    `critical_difference` differ beyond chance (Nemenyi, 5 %).
    """

    mean: pd.Series[float]
    datasets: int
    p: float
    critical_difference: float


def differences(results: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Each method less Cox on the same splits, by dataset.

    Splits of one dataset share patients, so their variance is inflated by 1/k + test/train (Nadeau and Bengio).
    ``verdict`` is better, worse, or same where the interval holds 0; nothing where there is one split alone.
    """
    own = results.loc[results["method"] == REFERENCE, ["dataset", "split", measure.name]]
    paired = results.loc[results["method"] != REFERENCE].merge(
        own, on=["dataset", "split"], suffixes=("", "_of_cox")
    )
    paired["difference"] = paired[measure.name] - paired[f"{measure.name}_of_cox"]
    rows: list[dict[str, Any]] = []
    for (name, method), found in paired.groupby(["dataset", "method"], sort=False)["difference"]:
        values = found.dropna().to_numpy(dtype=float)
        if len(values):
            rows.append({"dataset": name, "method": method, **_difference(values, measure)})
    columns = ["dataset", "method", "difference", "low", "high", "splits", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _difference(values: FloatArray, measure: Measure) -> dict[str, Any]:
    """Mean and interval of one method's differences on the splits of one dataset."""
    overlap = TEST_SHARE / (1 - TEST_SHARE)
    mean, half = float(values.mean()), _half_width(values, np.sqrt(1 / len(values) + overlap))
    # One split alone tells nothing.
    verdict = "" if np.isnan(half) else "same"
    if half < abs(mean):
        verdict = "better" if mean * measure.better > 0 else "worse"
    ends = {"low": mean - half, "high": mean + half}
    return {"difference": mean, **ends, "splits": len(values), "verdict": verdict}


def _half_width(values: FloatArray, scale: float) -> float:
    """Of the interval of a mean; NaN for one value alone."""
    if len(values) < 2:
        return float("nan")
    return float(t.ppf(0.5 + LEVEL / 2, len(values) - 1) * values.std(ddof=1) * scale)


def over_datasets(by_dataset: pd.DataFrame) -> pd.DataFrame:
    """The mean of those differences over datasets, with an interval that takes datasets as the sample, and counts."""
    rows = []
    for method, found in by_dataset.groupby("method", sort=False):
        values = found["difference"].to_numpy()
        half = _half_width(values, 1 / np.sqrt(len(values)))
        mean, counts = float(values.mean()), found["verdict"].value_counts()
        rows.append(
            {
                "method": method,
                "mean": mean,
                "low": mean - half,
                "high": mean + half,
                "median": float(np.median(values)),
                "datasets": len(values),
                **{verdict: int(counts.get(verdict, 0)) for verdict in ("better", "same", "worse")},
            }
        )
    return pd.DataFrame(rows)


def rank(results: pd.DataFrame, measure: Measure) -> Ranks | None:
    """Rank the methods in every dataset by their mean over splits; None with fewer than three methods or two datasets.

    A method that failed on a split is last on that dataset: a user would be left without a model. A split counts if
    every method was tried on it, so that means are over the same patients. A measure that needs scores, such as the
    slope, leaves the null model out.
    """
    tried = results.groupby(["dataset", "split"])["method"].transform("nunique")
    complete = results.loc[tried == results["method"].nunique()]
    values = complete[measure.name].mask(complete["error"] != "", -measure.better * np.inf)
    means = complete.assign(value=values).pivot_table(
        index="dataset", columns="method", values="value", aggfunc="mean", dropna=False, sort=False
    )
    means = means.dropna(axis="columns", how="all")
    if means.shape[1] < 3 or len(means) < 2:
        return None
    worst_first = -measure.better * means.to_numpy(dtype=float)
    ranks: FloatArray = np.vstack([rankdata(np.where(np.isnan(row), np.inf, row)) for row in worst_first])
    mean = pd.Series(ranks.mean(axis=0), index=means.columns).sort_values(kind="stable")
    # All alike everywhere has no spread to test.
    p = float(friedmanchisquare(*ranks.T).pvalue) if np.ptp(ranks) > 0 else 1.0
    return Ranks(mean, len(means), p, critical_difference(means.shape[1], len(means)))


def critical_difference(methods: int, datasets: int) -> float:
    """Nemenyi's critical difference of mean ranks at 5 %."""
    quantile = float(studentized_range.ppf(LEVEL, methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * datasets)))


RANKED = tuple(measure for measure in MEASURES if measure.better)


# Inches from the first rank to the last.
_WIDTH = 6.0


def rank_diagram(ranks: Ranks, labels: Mapping[str, str], title: str) -> Figure:
    """Draw the mean ranks; `labels` are what methods are called."""
    from matplotlib.figure import Figure

    mean = ranks.mean
    n, half = len(mean), (len(mean) + 1) // 2
    cliques = alike(mean.to_list(), ranks.critical_difference)
    names = [f"{labels.get(str(method), str(method))} ({value:.1f})" for method, value in mean.items()]
    below = 0.5 * len(cliques) + 0.8
    height = below + half + 2.5
    # Names stand beside the line of ranks, where no other method's line runs; letters of 8 points are about so wide.
    margin = 0.068 * max(map(len, names)) + 0.2
    figure = Figure(figsize=(_WIDTH + 2 * margin, 0.2 * height + 0.4))
    axes = figure.add_axes((0, 0, 1, 0.2 * height / (0.2 * height + 0.4)))
    side = margin * (n - 1) / _WIDTH
    axes.set(xlim=(1 - side, n + side), ylim=(0.5 - below - half, 3 - 0.5))
    axes.set_title(title, fontsize=10)
    axes.axis("off")
    axes.plot([1, n], [0, 0], color="black", lw=1)
    for tick in range(1, n + 1):
        axes.plot([tick, tick], [0, 0.2], color="black", lw=1)
        axes.text(tick, 0.35, str(tick), ha="center", fontsize=8)
    for place, (name, value) in enumerate(zip(names, mean, strict=True)):
        left = place < half
        level = -below - (place if left else n - 1 - place)
        end, gap = (1, -0.1) if left else (n, 0.1)
        axes.plot([value, value, end + gap], [0, level, level], color="0.4", lw=0.8)
        axes.text(
            end + 2 * gap, level, name, ha="right" if left else "left", va="center_baseline", fontsize=8
        )
    for k, (first, last) in enumerate(cliques):
        axes.plot(
            [mean.iloc[first] - 0.05, mean.iloc[last] + 0.05], [-0.5 - 0.5 * k] * 2, color="tab:red", lw=3
        )
    axes.plot([1, 1 + ranks.critical_difference], [1.5, 1.5], color="black", lw=2)
    axes.text(1, 1.75, f"critical difference {ranks.critical_difference:.2f}", fontsize=8)
    return figure


def alike(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Longest runs (first, last) of sorted mean ranks within the critical difference, of two methods or more."""
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(k for k in range(first, len(ranks)) if ranks[k] - ranks[first] <= critical)
        if last > first and not (runs and last <= runs[-1][1]):
            runs.append((first, last))
    return runs
