"""The numbers printed in the paper, cell by cell."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd


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
    with files("drosurv.paper").joinpath("published.csv").open(encoding="utf-8") as source:
        return pd.read_csv(source)
