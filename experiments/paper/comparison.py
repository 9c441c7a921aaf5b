"""Ours beside the published numbers: the difference in published standard deviations, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.resources import files

import pandas as pd

from experiments.paper.known_reasons import (
    AGREES_WITH_TIES,
    ONE_SETTING,
    ONE_SETTING_AS_PUBLISHED,
    TIES_EFFECT,
    known_reasons,
)

AGREEMENT = 2.0
# No correct program matches the published IBS, so it is shown and not counted.
NOT_COUNTED = ("integrated_brier_score",)
_CELL = ["experiment", "dataset", "attribute", "method", "metric"]


def compare(
    summary: pd.DataFrame,
    *,
    published: pd.DataFrame | None = None,
    nearest: pd.DataFrame | None = None,
    circumstances: Collection[str] = (),
) -> pd.DataFrame:
    """Put every published cell beside ours; with z = (ours - published mean) / published sd it agrees if abs(z) <= 2.

    `summary` is tuned by CI (or at the ablations' setting), as the published tables are; `published` is by default all
    that :func:`load_published` gives. `nearest` is from ``nearest_settings``: a row that one setting gives as a whole
    differs only by the choice of a setting, or by the published gradient where it is trained with that. The
    `circumstances` of our run are for ``known_reasons``.

    One row per published cell: the cell, ``published_mean``, ``published_sd``, our ``mean``, ``sd``, ``low``, ``high``,
    ``repeats``, ``difference_in_sds`` (z), ``agrees`` (missing where we have no number), ``counted`` (False for IBS),
    ``misaligned`` (our IBS computed as the published one, NaN for other metrics); where a cell does not agree or is
    not counted, ``codes`` and ``reason`` say what is known about it, and ``demonstrated`` is the code of the cause that
    a computation shows with the right sign and size, empty where there is none.
    """
    published = load_published() if published is None else published
    tuned = summary.loc[summary["tuned_by"] != "fa"]
    ours = tuned[[*_CELL, "mean", "sd", "low", "high", "repeats"]]
    theirs = published.rename(columns={"mean": "published_mean", "sd": "published_sd"})
    table = theirs.merge(ours, on=_CELL, how="left", validate="one_to_one")
    table["difference_in_sds"] = (table["mean"] - table["published_mean"]) / table["published_sd"]
    agrees = (table["difference_in_sds"].abs() <= AGREEMENT).astype("boolean")
    table["agrees"] = agrees.mask(table["difference_in_sds"].isna())
    table["counted"] = ~table["metric"].isin(NOT_COUNTED)
    misaligned = tuned.loc[tuned["metric"] == "misaligned_brier_score", [*_CELL, "mean"]]
    misaligned = misaligned.assign(metric="integrated_brier_score").rename(columns={"mean": "misaligned"})
    table = table.merge(misaligned, on=_CELL, how="left", validate="one_to_one")
    wanted = ~table["agrees"].fillna(True).astype(bool) | ~table["counted"]
    with_ties = _agree_with_ties(table)
    whole = {} if nearest is None else _given_by_one_setting(table, nearest, with_ties)
    reasons = []
    for show, tied, cell in zip(wanted, with_ties, _cells(table), strict=True):
        own = [*circumstances, *whole.get((cell[0], cell[2]), ()), *([AGREES_WITH_TIES] if tied else [])]
        reasons.append(known_reasons(*cell, own) if show else ())
    table["codes"] = ["; ".join(reason.code for reason in known) for known in reasons]
    table["reason"] = [" ".join(reason.text for reason in known) for known in reasons]
    table["demonstrated"] = [
        next((reason.code for reason in known if reason.kind == "demonstrated"), "") for known in reasons
    ]
    return table


def _agree_with_ties(table: pd.DataFrame) -> pd.Series[bool]:
    """Cells of the log partial likelihood that agree once the effect of the published running sum is added."""
    effect = table["dataset"].map(TIES_EFFECT).where(table["metric"] == "log_partial_likelihood")
    corrected = table["difference_in_sds"] + effect / table["published_sd"]
    return corrected.abs() <= AGREEMENT


def agreement(comparison: pd.DataFrame, by: str = "dataset") -> pd.DataFrame:
    """How many published cells (IBS aside) lie within two published standard deviations, by a column of the cells.

    ``cells`` that we have a number for, ``agree``, ``fraction`` = agree / cells, ``demonstrated`` (cells that differ by
    a demonstrated cause), ``not_reproduced``, and ``missing`` (published cells without our number).
    """
    counted = comparison.loc[comparison["counted"]]
    known, agree = counted["agrees"].notna(), counted["agrees"].fillna(False).astype(bool)
    flags = {
        "cells": known,
        "agree": agree,
        "demonstrated": known & ~agree & (counted["demonstrated"] != ""),
        "missing": ~known,
    }
    counts = pd.DataFrame(flags).astype(int).groupby(counted[by], sort=False).sum().reset_index()
    counts["fraction"] = counts["agree"] / counts["cells"]
    counts["not_reproduced"] = counts["cells"] - counts["agree"] - counts["demonstrated"]
    return counts[[by, "cells", "agree", "fraction", "demonstrated", "not_reproduced", "missing"]]


def _given_by_one_setting(
    table: pd.DataFrame, nearest: pd.DataFrame, with_ties: pd.Series[bool]
) -> dict[tuple[str, str], list[str]]:
    """For rows (experiment, method) that one setting gives, apart from cells that ties account for: which training."""
    key = ["experiment", "method", "metric"]
    needed = list(_cells(table.loc[table["counted"] & ~with_ties]))
    found: dict[tuple[str, str], list[str]] = {}
    right = nearest["trained"] == nearest["method"]
    near = nearest["nearest_difference_in_sds"].abs() <= AGREEMENT
    for circumstance, trained in ((ONE_SETTING, right), (ONE_SETTING_AS_PUBLISHED, ~right)):
        given = set(nearest.loc[trained & near, key].itertuples(index=False, name=None))
        missed = {(cell[0], cell[2]) for cell in needed if (cell[0], cell[2], cell[3]) not in given}
        for row in set(nearest.loc[trained, key[:2]].itertuples(index=False, name=None)) - missed:
            found.setdefault(row, []).append(circumstance)
    return found


def _cells(table: pd.DataFrame) -> Iterator[tuple[str, str, str, str]]:
    return zip(*(table[name] for name in ("experiment", "dataset", "method", "metric")), strict=True)


def load_published() -> pd.DataFrame:
    """Every mean and standard deviation that the paper prints in its result tables.

    They are the tables tuned by CI of FLC (age), SUPPORT (gender) and SEER (race), the table over n2 and the
    one of one side against both; the paper's source holds no numbers for the other tables.

    One row per cell: ``experiment`` (a name in ``EXPERIMENTS``), ``dataset``, ``attribute``, ``method`` (a name in
    ``METHODS``), ``metric`` (a name in ``TABLE_METRICS``), ``mean`` and ``sd`` over ten repeats, in the printed unit
    (concordance imparity in percent).

    Examples
    --------
    >>> cells = load_published().set_index(["experiment", "method", "metric"])
    >>> float(cells.loc[("flc-age", "cox", "concordance_index"), "mean"])
    0.8032
    """
    with files("experiments.paper").joinpath("published.csv").open(encoding="utf-8") as source:
        return pd.read_csv(source)
