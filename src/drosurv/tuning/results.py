"""Results of a search: one row per setting, averaged over folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from drosurv.target import FloatArray
from drosurv.tuning.scoring import DRAWS, attribute_metrics

FOLD, CANDIDATE, FACTOR = "fold", "candidate", "factor"
#: Column of a search's table that marks the plain model's row.
PLAIN = "plain"
# These carry an interval, because a choice by them is only as good as they are known.
WITH_INTERVAL = ("concordance_index", "concordance_imparity")
# Names and abbreviations in columns, as readers write them.
_WRITTEN = {"auc": "AUC", "brier": "Brier", "d": "D", "uno": "Uno's"}


def average_folds(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Mean of each metric over folds, with its standard error sd / sqrt(folds) as ``<metric>_se``.

    A setting that has no finite value in one fold has none on average: it is not judged by its lucky folds.

    `results` have a row per setting and fold with the columns ``candidate`` (which setting), ``fold``, the metrics, and
    any others, which keep the value of the setting's first fold. What comes back has one row per setting, indexed by
    ``candidate`` in order of first appearance.

    Examples
    --------
    >>> import pandas as pd
    >>> folds = pd.DataFrame({"candidate": [0, 0], "fold": [0, 1], "concordance_index": [0.7, 0.8]})
    >>> average_folds(folds, ["concordance_index"])["concordance_index"].tolist()
    [0.75]
    """
    if CANDIDATE not in results.columns:
        raise ValueError(
            f"results has a {FOLD!r} column but no {CANDIDATE!r} column to tell which rows are one setting; "
            f"it has {list(results.columns)}. Number the settings in a {CANDIDATE!r} column."
        )
    averaged = results.drop_duplicates(CANDIDATE).set_index(CANDIDATE).drop(columns=FOLD)
    if not len(metrics):
        return averaged
    values, setting = results[[*metrics]].astype(float), results[CANDIDATE]
    by_setting = values.groupby(setting, sort=False)
    finite = values.apply(np.isfinite).groupby(setting, sort=False).all()
    averaged[[*metrics]] = by_setting.mean().where(finite)
    errors = by_setting.std(ddof=1).div(np.sqrt(by_setting.size()), axis=0)
    averaged[[f"{metric}_se" for metric in metrics]] = errors.to_numpy()
    return averaged


def candidates(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """The settings that can be judged: one row each, with a finite value of every metric asked for.

    Results that come by fold are averaged first.
    """
    missing = [metric for metric in metrics if metric not in results.columns]
    if missing:
        raise ValueError(f"results has no column {missing[0]!r}; it has {list(results.columns)}.")
    if FOLD in results.columns:
        results = average_folds(results, metrics)
    elif not results.index.is_unique:
        raise ValueError(
            "results has repeated index labels, so a choice could not name its row; "
            "use results.reset_index(drop=True)."
        )
    finite = np.isfinite(results[list(metrics)].to_numpy(dtype=float)).all(axis=1)
    usable: pd.DataFrame = results.loc[finite]
    if usable.empty:
        raise ValueError(
            f"none of the {len(results)} settings has a finite {' and '.join(map(in_words, metrics))}: trainings "
            "diverged (lower the learning rate), or patients or events of a group are missing where settings are "
            "scored (use fewer folds or merge small groups)."
        )
    return usable


def in_words(column: str) -> str:
    """What readers call a column of scores.

    >>> in_words("concordance_index"), in_words("integrated_brier_score")
    ('c-index', 'integrated Brier score')
    """
    if column == "concordance_index":
        return "c-index"
    return " ".join(_WRITTEN.get(word, word) for word in column.split("_"))


def numbers(frame: pd.DataFrame, *names: str) -> tuple[FloatArray, ...]:
    """The named columns, each as an array of floats."""
    return tuple(frame[name].to_numpy(dtype=float) for name in names)


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
