"""Tables of a search: scores per setting and fold, their averages, and the shrinkage control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from drosurv.tuning.candidates import CANDIDATE, FOLD, average_folds
from drosurv.tuning.careful_budget import PLAIN
from drosurv.tuning.fold_scores import DRAWS, attribute_metrics

FACTOR = "factor"
# These carry an interval, because a choice by them is only as good as they are known.
WITH_INTERVAL = ("concordance_index", "concordance_imparity")


def setting_table(folds: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """One row per setting, indexed by its number: means over folds, standard errors and intervals.

    With a single fold the standard errors and intervals are those that the fold brought along. Averaged are the metrics
    and the columns that tell a metric by attribute.
    """
    if (folds[FOLD] == 0).all():
        return folds.drop(columns=[FOLD, DRAWS], errors="ignore").set_index(CANDIDATE)
    by_attribute = tuple(f"{metric}_" for metric in attribute_metrics())
    table = average_folds(
        folds, [name for name in map(str, folds) if name in metrics or name.startswith(by_attribute)]
    )
    # A standard error of few folds is itself uncertain, which the t distribution allows for.
    reach = float(student.ppf(0.975, folds[FOLD].nunique() - 1))
    table["error"] = folds.groupby(CANDIDATE, sort=False)["error"].agg(lambda errors: max(errors, key=len))
    for metric in WITH_INTERVAL:
        if metric in table:
            half = reach * table[f"{metric}_se"]
            # A disparity is never negative.
            table[f"{metric}_low"] = (table[metric] - half).clip(lower=0.0)
            table[f"{metric}_high"] = table[metric] + half
    return table


def paired_differences(folds: pd.DataFrame, plain: pd.DataFrame, metric: str) -> pd.DataFrame:
    """How far each setting is from the plain model, ``<metric>_difference``, and how sure that is, ``..._se``.

    On the same patients, fold by fold, or replicate by replicate where there is one validation part: what the patients
    have in common cancels.
    """
    base = plain.set_index(FOLD)
    own = base[metric].reindex(folds[FOLD]).to_numpy(dtype=float)
    by_setting = (folds[metric] - own).groupby(folds[CANDIDATE], sort=False)
    mean, error = by_setting.mean(), by_setting.sem()
    if len(base) == 1 and DRAWS in folds:
        reference = base[DRAWS].iloc[0]
        error = pd.Series(
            {row[CANDIDATE]: _paired_error(row[DRAWS], reference, metric) for row in folds.to_dict("records")}
        )
    return pd.DataFrame({f"{metric}_difference": mean, f"{metric}_difference_se": error})


def with_plain(table: pd.DataFrame, plain: pd.Series[Any], differences: pd.DataFrame) -> pd.DataFrame:
    """The table of settings with the plain model's row last, and every setting's difference from it."""
    joined = table.join(differences)
    joined[PLAIN] = False
    own = plain.to_frame().T
    # Its settings are not those of the grid.
    own = own.drop(columns=[name for name in own if name not in joined])
    own.index = pd.Index([len(table)], name=table.index.name)
    own[[*differences]], own[PLAIN] = 0.0, True
    return pd.concat([joined, own.infer_objects()])


def _paired_error(own: Any, reference: Any, metric: str) -> float:
    """Standard deviation of the differences of two settings' replicates; a setting that failed has none."""
    if not all(isinstance(kept, dict) and metric in kept for kept in (own, reference)):
        return float("nan")
    differences = own[metric] - reference[metric]
    known = differences[np.isfinite(differences)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")
