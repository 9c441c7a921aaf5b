"""Figure 1 as data: what alpha does to DRO-COX on the three datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drosurv.paper.plan import ALPHA_FIGURE, FIGURE_LEARNING_RATE
from drosurv.paper.shrinkage import gain_share
from drosurv.paper.summary import OVER_REPEATS, over_repeats
from drosurv.paper.table_metrics import TABLE_METRICS

if TYPE_CHECKING:
    import pandas as pd

CURVE_METRICS = tuple(
    metric for metric in TABLE_METRICS if metric.kind == "fairness" or metric.name == "concordance_index"
)


def alpha_curves(grid: pd.DataFrame) -> pd.DataFrame:
    """Mean and sd over repeats of linear DRO-COX's test metrics at each alpha, at learning rate .01.

    Parameters
    ----------
    grid : DataFrame
        From :func:`drosurv.paper.gather`.

    Returns
    -------
    DataFrame, one row per dataset, alpha and metric
        What :func:`drosurv.paper.summary.over_repeats` gives, CI in percent; ``gain_share`` is among the
        metrics.
    """
    import pandas as pd

    grid = grid.assign(gain_share=gain_share(grid))
    shown = grid.loc[
        grid["method"].isin(ALPHA_FIGURE.methods)
        & (grid["part"] == "test")
        & (grid["lr"] == FIGURE_LEARNING_RATE)
    ]
    names = [*(metric.name for metric in CURVE_METRICS), "gain_share"]
    records: list[dict[str, Any]] = []
    for dataset, attribute in ALPHA_FIGURE.cohorts:
        cohort = shown.loc[(shown["dataset"] == dataset) & (shown["attribute"] == attribute)]
        for alpha, rows in cohort.groupby("alpha"):
            key = {"dataset": dataset, "attribute": attribute, "alpha": alpha}
            records.extend({**key, "metric": name, **over_repeats(rows, name)} for name in names)
    return pd.DataFrame(records, columns=["dataset", "attribute", "alpha", "metric", *OVER_REPEATS])
