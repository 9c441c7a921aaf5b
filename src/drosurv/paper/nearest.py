"""The setting of a grid nearest to a published row: it tells a difference in training from one in the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drosurv.paper.comparison import AGREEMENT, NOT_COUNTED
from drosurv.paper.methods import METHODS
from drosurv.paper.plan import EXPERIMENTS
from drosurv.paper.result import PARAMETERS
from drosurv.paper.table_metrics import TABLE_METRICS
from drosurv.presentation import Table, Text, text

if TYPE_CHECKING:
    import pandas as pd

_SCALE = {metric.name: metric.printed_scale for metric in TABLE_METRICS if metric.name not in NOT_COUNTED}


def nearest_settings(grid: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """For every published row the one setting, kept in all repeats, that agrees in most of its cells.

    It is found by looking at the published numbers, so it is no result; but where it gives the whole row, the
    training and the metrics are the published ones, and only the choice of a setting is not.

    Parameters
    ----------
    grid : DataFrame
        From :func:`drosurv.paper.gather`.
    published : DataFrame
        Like :func:`drosurv.paper.load_published`.

    Returns
    -------
    DataFrame, one row per published cell that is counted and of which we have numbers
        ``experiment``, ``method``, ``metric``, the setting's parameters, ``nearest_mean`` over repeats on the
        test set, in the printed unit, and ``nearest_difference_in_sds``.
    """
    import pandas as pd

    names, scales = list(_SCALE), list(_SCALE.values())
    shown = grid.loc[grid["part"] == "test"]
    row_of = ["experiment", "dataset", "attribute", "method"]
    records: list[dict[str, Any]] = []
    for (experiment, dataset, attribute, method), cells in published.groupby(row_of, sort=False):
        own = (shown["dataset"] == dataset) & (shown["attribute"] == attribute) & (shown["method"] == method)
        settings = shown.loc[own].groupby("candidate")
        # A setting that diverged in one repeat is not judged by the others.
        complete = settings[names].count().eq(settings.size(), axis="index")
        means = settings[names].mean().where(complete).mul(scales).dropna()
        if means.empty:
            continue
        theirs = cells.set_index("metric").loc[names]
        z = (means - theirs["mean"]) / theirs["sd"]
        ranked = pd.DataFrame({"near": -(z.abs() <= AGREEMENT).sum(axis=1), "far": z.abs().max(axis=1)})
        best = ranked.sort_values(["near", "far"], kind="stable").index[0]
        setting = settings[list(PARAMETERS)].first().loc[best].to_dict()
        records.extend(
            {
                "experiment": experiment,
                "method": method,
                "metric": name,
                **setting,
                "nearest_mean": means.loc[best, name],
                "nearest_difference_in_sds": z.loc[best, name],
            }
            for name in names
        )
    columns = ["experiment", "method", "metric", *PARAMETERS, "nearest_mean", "nearest_difference_in_sds"]
    return pd.DataFrame(records, columns=columns)


def nearest_table(nearest: pd.DataFrame) -> Table:
    """Each published row, the setting nearest to it, and how many of its cells that setting gives.

    Parameters
    ----------
    nearest : DataFrame
        From :func:`nearest_settings`.

    Returns
    -------
    Table
    """
    rows = []
    for (experiment, name), cells in nearest.groupby(["experiment", "method"], sort=False):
        method = METHODS[str(name)]
        setting = cells[list(PARAMETERS)].iloc[0].dropna()
        z = cells["nearest_difference_in_sds"].abs()
        rows.append(
            (
                text(EXPERIMENTS[str(experiment)].title),
                Text(method.label, method.latex),
                text(", ".join(f"{parameter} {value:g}" for parameter, value in setting.items())),
                text(f"{int((z <= AGREEMENT).sum())} of {len(z)}"),
                text(f"{z.max():.1f}"),
            )
        )
    header = ("table", "method", "setting", "cells that agree", "largest difference (sds)")
    return Table.of_cells(
        "The setting nearest to each published row (DIAGNOSTIC: found with the published numbers, not a result)",
        tuple(map(text, header)),
        tuple(rows),
        (
            "The one setting of the grid that, kept in all repeats, agrees in most cells of the row, IBS aside. Where "
            "it agrees in all, a difference of ours comes from the choice of a setting, not from training.",
        ),
    )
