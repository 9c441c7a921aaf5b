"""What a rule chooses among: one row per setting of a grid, averaged over folds where there are folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from drosurv.target import FloatArray

FOLD, CANDIDATE = "fold", "candidate"
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
