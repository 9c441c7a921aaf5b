"""The setting of a grid nearest to a published row, and how often another method's grid comes as near."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from drosurv.presentation import Table, Text
from experiments.cells import table_of_markdown
from experiments.paper.comparison import AGREEMENT, NOT_COUNTED
from experiments.paper.methods import AS_PUBLISHED, METHODS, TABLE_METRICS
from experiments.paper.plan import EXPERIMENTS
from experiments.paper.tables import beside
from experiments.paper.unit import PARAMETERS

_SCALE = {metric.name: metric.printed_scale for metric in TABLE_METRICS if metric.name not in NOT_COUNTED}
_INTERVAL = {"low": "concordance_imparity_low", "high": "concordance_imparity_high"}
_NAMES = list(_SCALE)
_ROW = ["experiment", "dataset", "attribute", "method"]
_BRIER = "IBS misaligned / published"
_COLUMNS = [
    *("experiment", "method", "trained", "metric", *PARAMETERS, "nearest_mean", "low", "high"),
    *("nearest_difference_in_sds", "published_mean", "misaligned_brier_score", "published_brier_score"),
]


def nearest_settings(grid: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """For every published row the one setting, kept in all repeats, that agrees in most of its cells.

    Rows of the split methods have two: of the right training and of the published one. A setting is found by looking at
    the published numbers, so it is no result.

    One row per published cell that is counted and of which we have numbers: ``experiment``, ``method``, ``trained``
    (the method, or the one that stands for it), ``metric``, the setting's parameters, ``nearest_mean`` over repeats on
    the test set, in the printed unit, with ``low`` and ``high`` for CI, ``nearest_difference_in_sds``,
    ``published_mean``, and of the row ``misaligned_brier_score`` and ``published_brier_score``.
    """
    by_method = _settings(grid)
    rows: list[pd.DataFrame] = []
    for (experiment, dataset, attribute, method), cells in published.groupby(_ROW, sort=False):
        theirs = cells.set_index("metric")
        stands_for = AS_PUBLISHED.get(str(method))
        for trained in (method, *([stands_for.name] if stands_for else [])):
            own = by_method.get((dataset, attribute, trained))
            if own is None:
                continue
            best, z = _nearest(own, theirs)
            row = own.loc[best]
            found = pd.DataFrame({"nearest_mean": row[_NAMES], "nearest_difference_in_sds": z})
            found["published_mean"] = theirs.loc[_NAMES, "mean"]
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


def false_matches(grid: pd.DataFrame, published: pd.DataFrame) -> tuple[int, int]:
    """Count pairs of a published row and another method's grid, and those where some setting agrees in every cell.

    The other methods have the same network and are trained on the same data; a match there shows how little a match
    proves.
    """
    by_method = _settings(grid)
    matches = pairs = 0
    for (_, dataset, attribute, method), cells in published.groupby(_ROW, sort=False):
        theirs, stands_for = cells.set_index("metric"), AS_PUBLISHED.get(str(method))
        for (of, by, other), own in by_method.items():
            same = other == method or (stands_for is not None and other == stands_for.name)
            if (of, by) != (dataset, attribute) or same or METHODS[other].stands_for:
                continue
            if METHODS[other].network == METHODS[str(method)].network:
                pairs += 1
                matches += bool((_nearest(own, theirs)[1].abs() <= AGREEMENT).all())
    return matches, pairs


# Learning rate and alpha of DRO-COX in the README of the authors' repository.
AUTHORS_SETTING = {"flc": (0.01, 0.15), "support": (0.01, 0.15), "seer": (0.01, 0.2)}


def authors_setting_table(grid: pd.DataFrame, published: pd.DataFrame) -> Table:
    """DRO-COX at the setting that the authors' README names, beside the published row."""
    by_method, rows = _settings(grid), []
    columns = [metric for metric in TABLE_METRICS if metric.name in _SCALE]
    for (experiment, dataset, attribute, method), cells in published.groupby(_ROW, sort=False):
        own = by_method.get((str(dataset), str(attribute), str(method)))
        if (
            own is None
            or EXPERIMENTS[str(experiment)].setting is not None
            or not str(method).endswith("dro-cox")
        ):
            continue
        lr, alpha = AUTHORS_SETTING[str(dataset)]
        own = own.loc[(own["lr"] == lr) & (own["alpha"] == alpha)]
        if own.empty:
            continue
        theirs = cells.set_index("metric")
        z = (own[_NAMES].iloc[0] - theirs.loc[_NAMES, "mean"]) / theirs.loc[_NAMES, "sd"]
        values = [
            f"{own[metric.name].iloc[0]:.4f} / {theirs.loc[metric.name, 'mean']:.4f} ({z[metric.name]:+.1f})"
            for metric in columns
        ]
        near = f"{int((z.abs() <= AGREEMENT).sum())} of {len(z)}"
        head = (
            EXPERIMENTS[str(experiment)].title,
            METHODS[str(method)].heading,
            f"lr {lr:g}, alpha {alpha:g}",
        )
        rows.append((*head, *values, near))
    return table_of_markdown(
        "DRO-COX at the setting of the authors' README, kept in all repeats",
        ("table", "method", "setting", *(metric.label for metric in columns), "cells that agree"),
        rows,
        ("Ours / published (difference in published standard deviations).",),
    )


def _settings(grid: pd.DataFrame) -> dict[tuple[str, str, str], pd.DataFrame]:
    """Means over repeats on the test set of every setting, by dataset, attribute and method."""
    settings = grid.loc[grid["part"] == "test"].groupby(["dataset", "attribute", "method", "candidate"])
    # A setting that diverged in one repeat is not judged by the others.
    complete = settings[_NAMES].count().eq(settings.size(), axis="index")
    means = settings[_NAMES].mean().where(complete).mul(list(_SCALE.values())).dropna()
    others = settings[[*_INTERVAL.values(), "misaligned_brier_score"]].mean()
    known = means.join(settings[list(PARAMETERS)].first()).join(others)
    return dict(list(known.groupby(level=["dataset", "attribute", "method"])))


def _nearest(own: pd.DataFrame, theirs: pd.DataFrame) -> tuple[Any, pd.Series[float]]:
    """The setting that agrees in most cells of a row, and its differences in published standard deviations."""
    mean, sd = theirs.loc[_NAMES, ["mean", "sd"]].to_numpy(dtype=float).T
    z = (own[_NAMES].to_numpy(dtype=float) - mean) / sd
    agree, far = (np.abs(z) <= AGREEMENT).sum(axis=1), np.abs(z).max(axis=1)
    best = np.lexsort((far, -agree))[0]
    return own.index[best], pd.Series(z[best], index=_NAMES)


def nearest_table(nearest: pd.DataFrame, matches: int, pairs: int) -> Table:
    """Each published row, the setting nearest to it, and how many of its cells that setting gives.

    `matches` and `pairs` are from :func:`false_matches`.
    """
    rows: list[tuple[str | Text, ...]] = []
    for head, cells, brier in _by_row(nearest):
        z = cells["nearest_difference_in_sds"].abs()
        rows.append((*head, f"{int((z <= AGREEMENT).sum())} of {len(z)}", f"{z.max():.1f}", brier))
    header = ("table", "method", "setting", "cells that agree", "largest difference (sds)", _BRIER)
    return table_of_markdown(
        "The setting nearest to each published row (DIAGNOSTIC: found with the published numbers, not a result)",
        header,
        rows,
        (
            "The one setting of the grid that, kept in all repeats, agrees in most cells of the row, IBS aside.",
            f"Grids of other methods with the same network agree in all cells in {matches} of {pairs} pairs of a "
            "published row and a wrong method, so a match is weak evidence.",
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
    return table_of_markdown(
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
