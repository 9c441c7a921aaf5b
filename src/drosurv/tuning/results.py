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
#: Column of a search's table that marks the row of the plain model.
PLAIN = "plain"
# Metrics for which a search reports confidence intervals.
WITH_INTERVAL = ("concordance_index", "concordance_imparity")
# Spelling of the words in column names.
_SPELLING = {"auc": "AUC", "brier": "Brier", "d": "D", "uno": "Uno's"}


def average_folds(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Mean of each metric over folds, with its standard error sd / sqrt(folds) as ``<metric>_se``.

    If the value of a setting is not finite in one fold, its mean is NaN.

    `results` has one row per setting and fold, with the columns ``candidate`` (the number of the setting), ``fold``,
    the metrics, and any others, which keep the value of the setting's first fold. The returned table has one row per
    setting, indexed by ``candidate`` in order of first appearance.

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
    first = results.drop_duplicates(CANDIDATE).set_index(CANDIDATE).drop(columns=FOLD)
    if not len(metrics):
        return first
    values = results[[*metrics]].astype(float)
    by_setting = values.groupby(results[CANDIDATE], sort=False)
    mean, size = by_setting.mean(), by_setting.size()
    # The mean leaves out missing values.
    finite = np.isfinite(mean) & by_setting.count().eq(size, axis=0)
    errors = by_setting.std(ddof=1).div(np.sqrt(size), axis=0).add_suffix("_se")
    # All columns are added at once: one after the other would take longer than the rest.
    averaged = pd.concat([first.drop(columns=[*metrics]), mean.where(finite)], axis=1)
    return pd.concat([averaged[[*first]], errors], axis=1)


def candidates(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the settings for which all given metrics are finite; results by fold are averaged first."""
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
            f"none of the {len(results)} settings has a finite {' and '.join(map(in_words, metrics))}: training "
            "diverged (lower the learning rate), or a validation set has no patients or events of a group (use fewer "
            "folds or merge small groups)."
        )
    return usable


def in_words(column: str) -> str:
    """Return the name of a column of scores in words.

    >>> in_words("concordance_index"), in_words("integrated_brier_score")
    ('c-index', 'integrated Brier score')
    """
    if column == "concordance_index":
        return "c-index"
    return " ".join(_SPELLING.get(word, word) for word in column.split("_"))


def numbers(frame: pd.DataFrame, *names: str) -> tuple[FloatArray, ...]:
    """Return the named columns, each as an array of floats."""
    return tuple(frame[name].to_numpy(dtype=float) for name in names)


def setting_table(folds: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return one row per setting, indexed by its number: means over folds, standard errors and intervals.

    The means are over the metrics and their columns by attribute. With a single fold, its standard errors and intervals
    are used.
    """
    if (folds[FOLD] == 0).all():
        return folds.drop(columns=[FOLD, DRAWS], errors="ignore").set_index(CANDIDATE)
    by_attribute = tuple(f"{metric}_" for metric in attribute_metrics())
    table = average_folds(
        folds, [name for name in map(str, folds) if name in metrics or name.startswith(by_attribute)]
    )
    # The t distribution accounts for the uncertainty of a standard error from few folds.
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
    """Return the mean difference of each setting from the plain model, ``<metric>_difference``, and its ``..._se``.

    Differences are paired by fold or, with a single validation set, by bootstrap replicate.
    """
    base = plain.set_index(FOLD)
    of_plain = base[metric].reindex(folds[FOLD]).to_numpy(dtype=float)
    by_setting = (folds[metric] - of_plain).groupby(folds[CANDIDATE], sort=False)
    mean, error = by_setting.mean(), by_setting.sem()
    if len(base) == 1 and DRAWS in folds:
        reference = base[DRAWS].iloc[0]
        error = pd.Series(
            {row[CANDIDATE]: _paired_error(row[DRAWS], reference, metric) for row in folds.to_dict("records")}
        )
    return pd.DataFrame({f"{metric}_difference": mean, f"{metric}_difference_se": error})


def with_plain(table: pd.DataFrame, plain: pd.Series[Any], differences: pd.DataFrame) -> pd.DataFrame:
    """Add the differences from the plain model to the table of settings, and the plain model as its last row."""
    joined = table.join(differences)
    joined[PLAIN] = False
    row = plain.to_frame().T
    # Drop parameters that the grid does not have.
    row = row.drop(columns=[name for name in row if name not in joined])
    row.index = pd.Index([len(table)], name=table.index.name)
    row[[*differences]], row[PLAIN] = 0.0, True
    return pd.concat([joined, row.infer_objects()])


def _paired_error(draws: Any, reference: Any, metric: str) -> float:
    """Standard deviation of the differences between the replicates of two settings; NaN if training failed."""
    if not all(isinstance(found, dict) and metric in found for found in (draws, reference)):
        return float("nan")
    differences = draws[metric] - reference[metric]
    known = differences[np.isfinite(differences)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")
