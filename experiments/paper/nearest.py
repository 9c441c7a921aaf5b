"""The setting of a grid nearest to a published row: it tells a difference in training from one in the choice."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from drosurv.presentation import Table, Text
from experiments.paper.comparison import AGREEMENT, NOT_COUNTED
from experiments.paper.methods import AS_PUBLISHED, METHODS, TABLE_METRICS
from experiments.paper.plan import EXPERIMENTS
from experiments.paper.tables import beside
from experiments.paper.unit import PARAMETERS

_SCALE = {metric.name: metric.printed_scale for metric in TABLE_METRICS if metric.name not in NOT_COUNTED}
_INTERVAL = {"low": "concordance_imparity_low", "high": "concordance_imparity_high"}
_BRIER = "IBS misaligned / published"
_COLUMNS = [
    *("experiment", "method", "trained", "metric", *PARAMETERS, "nearest_mean", "low", "high"),
    *("nearest_difference_in_sds", "published_mean", "misaligned_brier_score", "published_brier_score"),
]


def nearest_settings(grid: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """For every published row the one setting, kept in all repeats, that agrees in most of its cells.

    Rows of the split methods have two: of the right training and of the published one.

    It is found by looking at the published numbers, so it is no result; but where it gives the whole row, the
    training and the metrics are the published ones, and only the choice of a setting is not.

    One row per published cell that is counted and of which we have numbers: ``experiment``, ``method``, ``trained``
    (the method, or the one that stands for it), ``metric``, the setting's parameters, ``nearest_mean`` over repeats on
    the test set, in the printed unit, with ``low`` and ``high`` for CI, ``nearest_difference_in_sds``,
    ``published_mean``, and of the row ``misaligned_brier_score`` and ``published_brier_score``.
    """
    names = list(_SCALE)
    settings = grid.loc[grid["part"] == "test"].groupby(["dataset", "attribute", "method", "candidate"])
    # A setting that diverged in one repeat is not judged by the others.
    complete = settings[names].count().eq(settings.size(), axis="index")
    means = settings[names].mean().where(complete).mul(list(_SCALE.values())).dropna()
    others = settings[[*_INTERVAL.values(), "misaligned_brier_score"]].mean()
    known = means.join(settings[list(PARAMETERS)].first()).join(others)
    by_method = dict(list(known.groupby(level=["dataset", "attribute", "method"])))
    rows: list[pd.DataFrame] = []
    row_of = ["experiment", "dataset", "attribute", "method"]
    for (experiment, dataset, attribute, method), cells in published.groupby(row_of, sort=False):
        theirs = cells.set_index("metric")
        stands_for = AS_PUBLISHED.get(str(method))
        for trained in (method, *([stands_for.name] if stands_for else [])):
            own = by_method.get((dataset, attribute, trained))
            if own is None:
                continue
            z = (own[names] - theirs.loc[names, "mean"]) / theirs.loc[names, "sd"]
            ranked = pd.DataFrame({"near": -(z.abs() <= AGREEMENT).sum(axis=1), "far": z.abs().max(axis=1)})
            best = ranked.sort_values(["near", "far"], kind="stable").index[0]
            row = own.loc[best]
            found = pd.DataFrame({"nearest_mean": row[names], "nearest_difference_in_sds": z.loc[best]})
            found["published_mean"] = theirs.loc[names, "mean"]
            for end, column in _INTERVAL.items():
                found.loc["concordance_imparity", end] = _SCALE["concordance_imparity"] * row[column]
            of_row = {
                **{"experiment": experiment, "method": method, "trained": trained},
                **row[list(PARAMETERS)],
                "misaligned_brier_score": row["misaligned_brier_score"],
                "published_brier_score": theirs.loc["integrated_brier_score", "mean"],
            }
            rows.append(found.rename_axis("metric").reset_index().assign(**of_row))
    return pd.concat(rows)[_COLUMNS].reset_index(drop=True) if rows else pd.DataFrame(columns=_COLUMNS)


def nearest_table(nearest: pd.DataFrame) -> Table:
    """Each published row, the setting nearest to it, and how many of its cells that setting gives."""
    rows: list[tuple[str | Text, ...]] = []
    for head, cells, brier in _by_row(nearest):
        z = cells["nearest_difference_in_sds"].abs()
        rows.append((*head, f"{int((z <= AGREEMENT).sum())} of {len(z)}", f"{z.max():.1f}", brier))
    header = ("table", "method", "setting", "cells that agree", "largest difference (sds)", _BRIER)
    return Table.of_markdown(
        "The setting nearest to each published row (DIAGNOSTIC: found with the published numbers, not a result)",
        header,
        rows,
        (
            "The one setting of the grid that, kept in all repeats, agrees in most cells of the row, IBS aside. Where "
            "it agrees in all, a difference of ours comes from the choice of a setting, not from training; in a row "
            "called as published, from the published gradient.",
        ),
    )


def published_gradient_table(nearest: pd.DataFrame) -> Table:
    """Published rows of the split methods beside the nearest setting trained with the published gradient."""
    rows: list[tuple[str | Text, ...]] = []
    columns = [metric for metric in TABLE_METRICS if metric.name in _SCALE]
    shown = nearest.loc[nearest["trained"] != nearest["method"]].assign(counted=True, codes="")
    for head, cells, brier in _by_row(shown.rename(columns=lambda name: name.removeprefix("nearest_"))):
        by_metric = cells.set_index("metric").to_dict("index")
        rows.append((*head, *(beside(by_metric[metric.name], metric) for metric in columns), brier))
    return Table.of_markdown(
        "DRO-COX (SPLIT) trained with the published gradient (DIAGNOSTIC: settings found with the published numbers)",
        ("table", "method", "setting", *(metric.label for metric in columns), _BRIER),
        rows,
        (
            "The log term of the loss counts as a constant in the gradient, and features are standardised by D1. "
            "Ours / published (difference in published standard deviations), at the nearest setting, kept in all "
            "repeats. Bold: more than two. CI in percent, with its bootstrap interval on the one test set.",
        ),
    )


def _by_row(nearest: pd.DataFrame) -> Iterator[tuple[tuple[str | Text, ...], pd.DataFrame, str]]:
    """What each row of a table begins with, its cells, and its Brier scores."""
    for (experiment, name), cells in nearest.groupby(["experiment", "trained"], sort=False):
        row = cells.iloc[0]
        setting = ", ".join(f"{name} {row[name]:g}" for name in PARAMETERS if row[name] == row[name])
        head = (EXPERIMENTS[str(experiment)].title, METHODS[str(name)].heading, setting)
        yield head, cells, f"{row['misaligned_brier_score']:.4f} / {row['published_brier_score']:.4f}"
