"""Differences from Cox by dataset, with intervals, tests and ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import studentized_range, wilcoxon

COX = "CPH"
# Kaplan-Meier and Nelson-Aalen use no columns: they are the fallback of failed fits, not competitors.
LEARNERS = {
    "CPH": "Cox",
    "AFT": "parametric AFT",
    "AK": "Akritas' estimator",
    "CIF": "conditional inference forest",
    "CoxB": "CoxBoost",
    "Flex": "flexible splines",
    "GAM": "GAM",
    "GLMN": "elastic net",
    "MBSTAFT": "boosted AFT",
    "MBSTCox": "boosted Cox",
    "NCV": "nonconvex penalties",
    "ORSF": "oblique forest",
    "Pen": "lasso and ridge",
    "RAN": "forest (ranger)",
    "RFSRC": "forest (rfsrc)",
    "RRT": "tree",
    "SSVM": "survival SVM",
    "XGBAFT": "XGBoost AFT",
    "XGBCox": "XGBoost Cox",
}
N_BOOTSTRAP = 10_000


@dataclass(frozen=True)
class Score:
    """A score: its column in our results, its column in the published ones, and its sign if higher is better."""

    name: str
    published: str
    label: str
    better: int


SCORES = (
    Score("c", "harrell_c", "Harrell's C", 1),
    Score("ibs", "isbs", "integrated Brier score", -1),
)


def own_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Our mean scores by dataset and method, with counts and seconds."""
    found = rows.groupby(["dataset", "method"], sort=False)
    return found.agg(
        iterations=("iteration", "nunique"),
        failed=("error", lambda errors: int((errors != "").sum())),
        repaired=("rules", lambda rules: int(sum(len(own) > 0 for own in rules))),
        c=("c", "mean"),
        ibs=("ibs", "mean"),
        seconds=("seconds_to_fit", "mean"),
    ).reset_index()


def published_less_cox(published: pd.DataFrame, score: Score) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Differences from the published Cox, and failed fits, by dataset and learner; of fits tuned for this score."""
    tuned = published[published["tune_measure"].str.split(",").map(lambda names: score.published in names)]
    tuned = tuned[tuned["learner_id"].isin(LEARNERS)]
    means, failed = (
        tuned.pivot_table(index="task_id", columns="learner_id", values=value)
        for value in (score.published, "errors_cnt")
    )
    return means.sub(means[COX], axis=0), failed


def own_less_cox(means: pd.DataFrame, score: Score) -> pd.DataFrame:
    """Differences of our methods from our own Cox on the same folds, by dataset."""
    wide = means.pivot_table(index="dataset", columns="method", values=score.name)
    return wide.sub(wide["cox"], axis=0).drop(columns="cox")


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """95 % interval of a mean over datasets (percentiles of 10,000 resamples of the datasets)."""
    if len(values) == 0:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(len(values), size=(N_BOOTSTRAP, len(values)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def signed_ranks(values: np.ndarray) -> float:
    """p-value of Wilcoxon's signed ranks; 1 if nothing differs."""
    return float(wilcoxon(values).pvalue) if np.any(values != 0) else 1.0


def mean_ranks(own: pd.Series, others: pd.DataFrame, better: int) -> pd.Series:
    """Mean rank over datasets, 1 is best, of one of our methods ("own") among the published learners."""
    table = others.loc[own.index].assign(own=own)
    return (-better * table).rank(axis=1).mean().sort_values()


def against(own: pd.Series, other: pd.Series, failed: pd.Series | None, better: int) -> dict[str, float]:
    """Compare one of our methods with a published learner, where none of its fits `failed` if that is given."""
    common = own.dropna().index.intersection(other.dropna().index)
    if failed is not None:
        common = common[(failed.loc[common] == 0).to_numpy()]
    values = (own.loc[common] - other.loc[common]).to_numpy()
    low, high = bootstrap_interval(values)
    return {
        "datasets": len(values),
        "mean": float(values.mean()) if len(values) else float("nan"),
        "low": low,
        "high": high,
        "median": float(np.median(values)) if len(values) else float("nan"),
        "better": int((better * values > 0).sum()),
        "p": signed_ranks(values),
    }


def nemenyi(methods: int, datasets: int) -> float:
    """Nemenyi's critical difference of mean ranks: the smallest significant one (5 %)."""
    quantile = float(studentized_range.ppf(0.95, methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * datasets)))
