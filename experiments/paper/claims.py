"""What of the paper's claims survives: each claim as a table of the numbers it stands or falls with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.presentation import Table
from experiments.cells import table_of_markdown
from experiments.paper.comparison import load_published
from experiments.paper.methods import METHODS
from experiments.paper.plan import EXPERIMENTS
from experiments.paper.tables import number

# The unregularised method, the paper's two, and the shrinkage control, for each network.
_ROWS = {
    "linear": ("cox", "dro-cox", "dro-cox-split", "cox-scaled"),
    "MLP": ("deepsurv", "deep-dro-cox", "deep-dro-cox-split", "deepsurv-scaled"),
}


@dataclass(frozen=True)
class Claim:
    """A claim in the paper's sense, what our numbers say to it, and the numbers.

    `finding` is what to know for reading them.
    """

    claim: str
    verdict: str
    finding: str
    table: Table


def check_claims(
    summary: pd.DataFrame, comparison: pd.DataFrame, diagnostic: pd.DataFrame
) -> tuple[Claim, ...]:
    """Those of the paper's main claims for which the numbers are there.

    `summary` may hold any experiments, tuned by CI and by F_A; `comparison` and `diagnostic` are those of settings
    chosen on the validation and on the test set.
    """
    if summary.empty:
        return ()
    cells = _Cells(summary)
    found = (_imparity(cells), _choice(comparison, diagnostic), _average_disparity(cells), _brier(cells))
    return tuple(claim for claim in found if claim is not None)


class _Row(NamedTuple):
    """A row of a claim's table; `methods` are the network's, the unregularised one first."""

    experiment: str
    network: str
    methods: Sequence[str]

    @property
    def head(self) -> tuple[str, str]:
        return EXPERIMENTS[self.experiment].title, self.network


class _Cells:
    """Rows of a summary with a mean, by tuning, experiment, method and metric; and the published means."""

    def __init__(self, summary: pd.DataFrame) -> None:
        key = ["tuned_by", "experiment", "method", "metric"]
        self.found = summary.loc[np.isfinite(summary["mean"])].set_index(key).to_dict("index")
        self.published: dict[Any, float] = load_published().set_index(key[1:])["mean"].to_dict()

    def rows(self, tuned_by: str, metric: str, needed: Sequence[int] = (0, 1)) -> list[_Row]:
        """Those whose needed methods have a number."""
        return [
            _Row(experiment, network, methods)
            for experiment in EXPERIMENTS
            for network, methods in _ROWS.items()
            if all((tuned_by, experiment, methods[k], metric) in self.found for k in needed)
        ]

    def means(self, tuned_by: str, row: _Row, metric: str) -> list[float]:
        """Of the row's methods; NaN where there is none."""
        cells = (self.found.get((tuned_by, row.experiment, name, metric), {}) for name in row.methods)
        return [cell.get("mean", np.nan) for cell in cells]

    def printed(self, row: _Row, metric: str, digits: int) -> list[str]:
        """The published values of the unregularised and the first robust method."""
        keys = ((row.experiment, name, metric) for name in row.methods[:2])
        return [number(self.published.get(key, np.nan), digits) for key in keys]


def _imparity(cells: _Cells) -> Claim | None:
    metric = "concordance_imparity"
    rows = cells.rows("ci", metric)
    if not rows:
        return None
    lower, beyond, table = 0, 0, []
    for row in rows:
        plain, robust = (cells.found["ci", row.experiment, name, metric] for name in row.methods[:2])
        lower += robust["mean"] < plain["mean"]
        low, high = _paired_interval(plain, robust)
        beyond += high < 0
        shown = (f"{cell['mean']:.2f} [{cell['low']:.2f}, {cell['high']:.2f}]" for cell in (plain, robust))
        difference = f"{robust['mean'] - plain['mean']:+.2f} [{number(low, 2)}, {number(high, 2)}]"
        table.append((*row.head, *shown, difference, *cells.printed(row, metric, 2)))
    header = (
        "table",
        "network",
        "Cox or DeepSurv",
        "DRO-COX",
        "difference",
        "published, plain",
        "published, DRO-COX",
    )
    return Claim(
        "Tuned by concordance imparity (CI), DRO-COX has a lower one than the unregularised model.",
        f"Lower in {lower} of {len(rows)} comparisons, and by more than the sampling error in {beyond or 'none'}.",
        "Brackets are 95 % bootstrap intervals on the one test set that all repeats share. The interval of the "
        "difference is paired: both models are scored on the same drawn patients, and CI is averaged over repeats "
        "in each replicate. By more than the sampling error: that interval lies below zero.",
        table_of_markdown("Concordance imparity (%)", header, table),
    )


def _paired_interval(plain: dict[Any, Any], robust: dict[Any, Any]) -> tuple[float, float]:
    """95 % percentile interval of robust minus plain over replicates that drew the same patients."""
    if plain.get("draws") is None or robust.get("draws") is None:
        return np.nan, np.nan
    low, high = np.nanquantile(np.subtract(robust["draws"], plain["draws"]), [0.025, 0.975])
    return float(low), float(high)


def _choice(comparison: pd.DataFrame, diagnostic: pd.DataFrame) -> Claim | None:
    """Which choice of settings gives the published CI: the one the text describes, or one on the test set."""
    if comparison.empty or diagnostic.empty:
        return None
    key = ["experiment", "method"]
    on_validation, on_test = (
        frame.loc[(frame["metric"] == "concordance_imparity") & frame["agrees"].notna()]
        for frame in (comparison, diagnostic)
    )
    both = on_validation.merge(on_test, on=key, suffixes=("", "_test"))
    both = both.loc[[EXPERIMENTS[name].setting is None for name in both["experiment"]]]
    robust = both["method"].map(lambda name: METHODS[name].estimator.startswith("DRO")).astype(bool)
    if not robust.any():
        return None
    near = [
        f"{int(rows[column].sum())} of {len(rows)}"
        for rows in (both.loc[robust], both.loc[~robust])
        for column in ("agrees", "agrees_test")
    ]
    table = [
        (
            EXPERIMENTS[row["experiment"]].title,
            METHODS[row["method"]].label,
            f"{row['published_mean']:.2f} ({row['published_sd']:.2f})",
            f"{row['mean']:.2f} ({row['difference_in_sds']:+.1f})",
            f"{row['mean_test']:.2f} ({row['difference_in_sds_test']:+.1f})",
        )
        for row in both.loc[robust].to_dict("records")
    ]
    header = ("table", "method", "published (sd)", "chosen on validation (sds)", "chosen on test (sds)")
    return Claim(
        "Settings are chosen on the validation set.",
        f"Our CI of DRO-COX is within two standard deviations of the published one in {near[0]} cells when they are "
        f"chosen there, and in {near[1]} when they are chosen on the test set; for the other methods, in {near[2]} and "
        f"{near[3]}.",
        "A choice on the test set gives no valid result; it is shown because the published values may have been chosen "
        "that way. In parentheses: the difference from the published value in published standard deviations.",
        table_of_markdown("Published CI (%) and the choice of settings", header, table),
    )


def _average_disparity(cells: _Cells) -> Claim | None:
    rows = cells.rows("fa", "average_disparity", needed=(0, 1, 3))
    if not rows:
        return None
    lower, beaten, table = 0, 0, []
    for row in rows:
        values, shares = (cells.means("fa", row, metric) for metric in ("average_disparity", "gain_share"))
        lower += values[1] < values[0]
        beaten += values[3] <= values[1]
        pairs = zip(values, shares, strict=True)
        shown = (f"{value:.3f} ({share:.2f})" if np.isfinite(value) else "–" for value, share in pairs)
        table.append((*row.head, *shown))
    header = ("table", "network", "unregularised", "DRO-COX", "DRO-COX (SPLIT)", "unregularised x c")
    return Claim(
        "Tuned by the average disparity F_A, DRO-COX has a lower one at nearly the same c-index.",
        f"Lower in {lower} of {len(rows)} comparisons; but merely shrinking the unregularised model's scores does at "
        f"least as well in {beaten} of {len(rows)}.",
        "Shrinking multiplies all scores by one number c < 1, tuned under the same budget: that changes neither the "
        "c-index nor who is ranked above whom. In parentheses: the gain in log partial likelihood over no model, as "
        "a share of plain Cox's; near 0, the model has next to nothing left to say.",
        table_of_markdown("Average disparity F_A, tuned by F_A", header, table),
    )


def _brier(cells: _Cells) -> Claim | None:
    metric = "integrated_brier_score"
    # Every attribute of a dataset shows the same test patients: one table each is enough.
    seen: dict[tuple[str, str], _Row] = {}
    for row in cells.rows("ci", metric):
        key = (EXPERIMENTS[row.experiment].datasets[0], row.network)
        if key not in seen or (row.experiment, row.methods[0], metric) in cells.published:
            seen[key] = row
    if not seen:
        return None
    worse, table = 0, []
    for row in seen.values():
        values = cells.means("ci", row, metric)[:3]
        worse += values[1] > values[0]
        table.append((*row.head, *(number(value, 4) for value in values), *cells.printed(row, metric, 4)))
    header = (
        *("table", "network", "unregularised", "DRO-COX", "DRO-COX (SPLIT)"),
        *("published, plain", "published, DRO-COX"),
    )
    return Claim(
        "DRO-COX has a lower integrated Brier score than the unregularised model.",
        f"Higher (worse) in {worse} of {len(seen)} comparisons.",
        "Predictions and outcomes are those of the same patients. The published values pair predictions sorted by "
        "time with labels in another order.",
        table_of_markdown("Integrated Brier score", header, table),
    )
