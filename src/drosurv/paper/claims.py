"""What of the paper's claims survives: each claim as a table of the numbers it stands or falls with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.paper.methods import METHODS
from drosurv.paper.plan import EXPERIMENTS
from drosurv.paper.published import load_published
from drosurv.presentation import Table

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
    summary: pd.DataFrame, comparison: pd.DataFrame | None = None, diagnostic: pd.DataFrame | None = None
) -> tuple[Claim, ...]:
    """Those of the paper's main claims for which the numbers are there.

    `summary` may hold any experiments, tuned by CI and by F_A; `comparison` and `diagnostic` are those of settings
    chosen on the validation and on the test set.
    """
    cells = _Cells(summary)
    found = [_imparity(cells)]
    if comparison is not None and diagnostic is not None:
        found.append(_choice(comparison, diagnostic))
    found += [_average_disparity(cells), _brier(cells)]
    return tuple(claim for claim in found if claim is not None)


class _Cells:
    """Rows of a summary with a mean, by tuning, experiment, method and metric; and the published means."""

    def __init__(self, summary: pd.DataFrame) -> None:
        key = ["tuned_by", "experiment", "method", "metric"]
        known = summary.loc[np.isfinite(summary["mean"])].set_index(key, drop=False)
        self.found: dict[Any, dict[str, Any]] = dict(zip(known.index, known.to_dict("records"), strict=True))
        published = load_published().set_index(key[1:])["mean"]
        self.published: dict[Any, float] = published.to_dict()

    def mean(self, *key: str) -> float:
        """NaN where there is none."""
        return float(self.found[key]["mean"]) if key in self.found else float("nan")

    def rows(self, tuned_by: str, metric: str) -> list[tuple[str, str, Sequence[str]]]:
        """Experiment, network and its methods, where the unregularised and the first robust one have a number."""
        return [
            (experiment, network, methods)
            for experiment in EXPERIMENTS
            for network, methods in _ROWS.items()
            if all((tuned_by, experiment, method, metric) in self.found for method in methods[:2])
        ]


def _imparity(cells: _Cells) -> Claim | None:
    rows = cells.rows("ci", "concordance_imparity")
    if not rows:
        return None
    lower, outside, table = 0, 0, []
    for experiment, network, methods in rows:
        plain, robust = (cells.found["ci", experiment, name, "concordance_imparity"] for name in methods[:2])
        lower += robust["mean"] < plain["mean"]
        outside += robust["high"] < plain["mean"]
        published = [cells.published.get((experiment, name, "concordance_imparity")) for name in methods[:2]]
        table.append(
            (
                EXPERIMENTS[experiment].title,
                network,
                _with_interval(plain),
                _with_interval(robust),
                *("–" if value is None else f"{value:.2f}" for value in published),
            )
        )
    header = ("table", "network", "Cox or DeepSurv", "DRO-COX", "published, plain", "published, DRO-COX")
    return Claim(
        "Tuned by concordance imparity (CI), DRO-COX has a lower one than the unregularised model.",
        f"Lower in {lower} of {len(rows)} comparisons, and by more than the sampling error in {outside or 'none'}.",
        "By more than the sampling error: the whole bootstrap interval of its own value, in brackets, on the one test "
        "set that all repeats share, lies below the unregularised model's value.",
        Table.of_markdown("Concordance imparity (%)", header, table),
    )


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
        "Choosing on the test set is no way to get a result: it is shown to see how the published values may have "
        "come about. In parentheses: the difference from the published value in published standard deviations.",
        Table.of_markdown("Published CI (%) and the choice of settings", header, table),
    )


def _average_disparity(cells: _Cells) -> Claim | None:
    rows = cells.rows("fa", "average_disparity")
    rows = [row for row in rows if ("fa", row[0], row[2][3], "average_disparity") in cells.found]
    if not rows:
        return None
    lower, beaten, table = 0, 0, []
    for experiment, network, methods in rows:
        values = [cells.mean("fa", experiment, name, "average_disparity") for name in methods]
        lower += values[1] < values[0]
        beaten += values[3] <= values[1]
        shown = (
            f"{value:.3f} ({cells.mean('fa', experiment, name, 'gain_share'):.2f})"
            if np.isfinite(value)
            else "–"
            for value, name in zip(values, methods, strict=True)
        )
        table.append((EXPERIMENTS[experiment].title, network, *shown))
    header = ("table", "network", "unregularised", "DRO-COX", "DRO-COX (SPLIT)", "unregularised x c")
    return Claim(
        "Tuned by the average disparity F_A, DRO-COX has a lower one at nearly the same c-index.",
        f"Lower in {lower} of {len(rows)} comparisons; but merely shrinking the unregularised model's scores does at "
        f"least as well in {beaten} of {len(rows)}.",
        "Shrinking multiplies all scores by one number c < 1, tuned under the same budget: that changes neither the "
        "c-index nor who is ranked above whom. In parentheses: the gain in log partial likelihood over no model, as "
        "a share of plain Cox's; near 0, the model has next to nothing left to say.",
        Table.of_markdown("Average disparity F_A, tuned by F_A", header, table),
    )


def _brier(cells: _Cells) -> Claim | None:
    rows = cells.rows("ci", "integrated_brier_score")
    # Every attribute of a dataset shows the same test patients: one table each is enough.
    seen: dict[tuple[str, str], tuple[str, str, Sequence[str]]] = {}
    for row in rows:
        key = (EXPERIMENTS[row[0]].datasets[0], row[1])
        if key not in seen or (row[0], row[2][0], "integrated_brier_score") in cells.published:
            seen[key] = row
    if not seen:
        return None
    worse, table = 0, []
    for experiment, network, methods in seen.values():
        values = [cells.mean("ci", experiment, name, "integrated_brier_score") for name in methods[:3]]
        worse += values[1] > values[0]
        published = [
            cells.published.get((experiment, name, "integrated_brier_score")) for name in methods[:2]
        ]
        table.append(
            (
                EXPERIMENTS[experiment].title,
                network,
                *(f"{value:.4f}" if np.isfinite(value) else "–" for value in values),
                *("–" if value is None else f"{value:.4f}" for value in published),
            )
        )
    header = (
        *("table", "network", "unregularised", "DRO-COX", "DRO-COX (SPLIT)"),
        *("published, plain", "published, DRO-COX"),
    )
    return Claim(
        "DRO-COX has a lower integrated Brier score than the unregularised model.",
        f"Higher (worse) in {worse} of {len(seen)} comparisons.",
        "Predictions and outcomes are those of the same patients. The published values pair predictions sorted by "
        "time with labels in another order.",
        Table.of_markdown("Integrated Brier score", header, table),
    )


def _with_interval(cell: dict[str, Any]) -> str:
    return f"{cell['mean']:.2f} [{cell['low']:.2f}, {cell['high']:.2f}]"
