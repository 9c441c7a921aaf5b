"""Mean and standard deviation over repeats, in the unit that tables print."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from drosurv.paper.selection import CELL
from drosurv.paper.shrinkage import SHRINKAGE
from drosurv.paper.table_metrics import METRIC_NAMES, TABLE_METRICS

OVER_REPEATS = ("mean", "sd", "repeats", "se", "low", "high")
_SCALE = {metric.name: metric.printed_scale for metric in TABLE_METRICS}


def over_repeats(rows: pd.DataFrame, metric: str) -> dict[str, float]:
    """Mean and sd, in the printed unit, of one metric over rows that are repeats of the same thing.

    A repeat without a finite value is left out and not counted in ``repeats``; ``sd`` is NaN for one repeat. ``se``,
    ``low`` and ``high`` are the bootstrap standard error and interval, averaged over repeats where rows hold one: all
    repeats share one test set, so repeating does not make that interval narrower.
    """
    scale = _SCALE.get(metric, 1.0)
    values = scale * rows[metric].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    record: dict[str, float] = {
        "mean": values.mean() if len(values) else np.nan,
        "sd": values.std(ddof=1) if len(values) > 1 else np.nan,
        "repeats": len(values),
    }
    for bound in ("se", "low", "high"):
        column = f"{metric}_{bound}"
        record[bound] = scale * rows[column].mean() if column in rows else np.nan
    return record


def average(rows: pd.DataFrame, keys: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """One row per combination of the keys, in their order, and metric: what :func:`over_repeats` gives."""
    records = [
        {**dict(zip(keys, key, strict=True)), "metric": metric, **over_repeats(part, metric)}
        for key, part in rows.groupby(list(keys), sort=False)
        for metric in metrics
    ]
    return pd.DataFrame(records, columns=[*keys, "metric", *OVER_REPEATS])


def summarise(chosen: pd.DataFrame) -> pd.DataFrame:
    """Every metric of every chosen method over repeats, the shrinkage control and the misaligned IBS among them.

    One row per cohort, method and metric: what :func:`over_repeats` gives, CI in percent, and ``fallbacks``, in how
    many repeats no setting met the accuracy budget.
    """
    summary = average(chosen, CELL, (*METRIC_NAMES, *SHRINKAGE, "misaligned_brier_score"))
    fallbacks = chosen["fallback"].astype(bool).groupby([chosen[name] for name in CELL]).sum()
    return summary.join(fallbacks.rename("fallbacks"), on=list(CELL))
