"""Tables, folds and published scores of the comparison, from a checkout of its repository.

Burk et al., A Large-Scale Neutral Comparison Study of Survival Models on Low-Dimensional Data (arXiv 2406.04098);
repository slds-lmu/paper_2023_survival_benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.patients.target import Surv

# Columns that are factors in the repository's R files; its CSV files do not say so.
FACTORS = {
    "aids.id": "drug gender prevOI AZT",
    "aids2": "state T.categ",
    "bladder0": "Center",
    "cat_adoption": "sex neutered intake_condition intake_type",
    "child": "sex socBranch illeg",
    "colrec": "sex site",
    "cost": "sex hypTen ihd prevStroke othDisease alcohol diabetes smoke atrialFib hemor",
    "flchain": "sex flc.grp mgus",
    "hdfail": "model",
    "lung": "inst sex",
    "mgus": "sex",
    "nafld1": "sex",
    "nwtco": "stage",
    "ova": "Broders Ascites Diam",
    "rdata": "year",
    "std": "race marital iinfct condom",
    "tumor": "charlson_score",
    "uis": "HC",
    "veteran": "trt celltype prior",
    "wa_churn": (
        "multiple_lines internet_service online_security online_backup device_protection tech_support streaming_tv "
        "streaming_movies contract payment_method"
    ),
    "whas": "mitype year",
}
# A factor of more levels than this loses those under this share of the training patients.
MOST_LEVELS, LEAST_SHARE = 5, 0.05


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test patients of one iteration."""

    X_train: pd.DataFrame
    y_train: Any
    X_test: pd.DataFrame
    y_test: Any


def dataset_names(path: Path) -> list[str]:
    """Names of the datasets that have both a table and folds."""
    tables, folds = (
        {file.name.partition(".csv")[0] for file in folder.glob("*.csv*")}
        for folder in (path / "datasets", path / "resamplings" / "repeated_cv")
    )
    if not tables & folds:
        raise ArgumentError(
            "path",
            f"{str(path)!r} has no datasets/*.csv with resamplings/repeated_cv/*.csv: give a checkout of "
            "slds-lmu/paper_2023_survival_benchmark.",
        )
    return sorted(tables & folds, key=str.lower)


def _file(folder: Path, name: str) -> Path:
    plain = folder / f"{name}.csv"
    return plain if plain.exists() else plain.with_name(f"{name}.csv.gz")


@lru_cache(maxsize=2)
def table(path: Path, name: str) -> pd.DataFrame:
    """The patients of a dataset; factors are texts."""
    found = pd.read_csv(_file(path / "datasets", name))
    return found.assign(**{column: found[column].astype(str) for column in FACTORS.get(name, "").split()})


@lru_cache(maxsize=2)
def test_rows(path: Path, name: str) -> dict[int, Any]:
    """Positions of the test patients of each iteration."""
    rows = pd.read_csv(_file(path / "resamplings" / "repeated_cv", name))
    if "set" in rows:
        rows = rows[rows["set"] == "test"]
    return {int(k): own["row_id"].to_numpy() - 1 for k, own in rows.groupby("iteration")}


def load_fold(path: Path, name: str, iteration: int) -> Fold:
    """One iteration of a dataset, with rare levels of factors merged as in the publication."""
    patients = table(path, name)
    test = np.zeros(len(patients), dtype=bool)
    test[test_rows(path, name)[iteration]] = True
    y = Surv.from_arrays(patients["status"] == 1, patients["time"])
    X = patients.drop(columns=["status", "time"])
    X_train, X_test = X[~test].reset_index(drop=True), X[test].reset_index(drop=True)
    factors = FACTORS.get(name, "").split()
    for column in factors:
        if X[column].nunique() > MOST_LEVELS:
            merged = _rare_levels(X_train[column])
            X_train[column] = X_train[column].replace(merged)
            X_test[column] = X_test[column].replace(merged)
    # As texts, grades 1, 2, 3 and unknown would be asked about.
    X_train, X_test = (part.astype(dict.fromkeys(factors, "category")) for part in (X_train, X_test))
    return Fold(X_train, y[~test], X_test, y[test])


def _rare_levels(column: pd.Series) -> dict[str, str]:
    """Which levels become which: those under 5 %, beyond the five most frequent, join the rarest of the others."""
    # Of equally frequent levels, the first by name is kept, as by R's table and sort.
    counts = column.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    kept = max(int((counts / len(column) >= LEAST_SHARE).sum()), MOST_LEVELS)
    return dict.fromkeys(counts.index[kept:], str(counts.index[kept - 1]))


def published_scores(path: Path) -> pd.DataFrame:
    """The publication's mean scores by learner and dataset."""
    return pd.read_csv(path)
