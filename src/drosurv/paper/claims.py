"""What of the paper's claims survives: each claim as a table of the numbers it stands or falls with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.paper.plan import EXPERIMENTS
from drosurv.paper.published import load_published
from drosurv.paper.table import Table, text

if TYPE_CHECKING:
    import pandas as pd

# The unregularised method, the paper's two, and the shrinkage control, for each network.
_ROWS = {
    "linear": ("cox", "dro-cox", "dro-cox-split", "cox-scaled"),
    "MLP": ("deepsurv", "deep-dro-cox", "deep-dro-cox-split", "deepsurv-scaled"),
}


@dataclass(frozen=True)
class Claim:
    """A claim, what our numbers say to it in a sentence, and the numbers.

    Parameters
    ----------
    claim : str
        In the paper's sense.
    finding : str
        What the numbers say.
    table : Table
        The numbers.
    """

    claim: str
    finding: str
    table: Table


def check_claims(summary: pd.DataFrame) -> tuple[Claim, ...]:
    """Hold the paper's main claims against the reproduced numbers.

    Parameters
    ----------
    summary : DataFrame
        From :func:`drosurv.paper.summarise`, of any experiments, tuned by CI and by F_A.

    Returns
    -------
    tuple of Claim
        Those for which the numbers are there.
    """
    cells = _Cells(summary)
    found = (_imparity(cells), _average_disparity(cells), _brier(cells))
    return tuple(claim for claim in found if claim is not None)


class _Cells:
    """Cells of a summary by tuning, experiment, method and metric."""

    def __init__(self, summary: pd.DataFrame) -> None:
        self.cells: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        for row in summary.to_dict("records"):
            key = (str(row["tuned_by"]), str(row["experiment"]), str(row["method"]), str(row["metric"]))
            self.cells[key] = {str(name): value for name, value in row.items()}
        published = load_published()
        self.published = {
            (str(row["experiment"]), str(row["method"]), str(row["metric"])): float(row["mean"])
            for row in published.to_dict("records")
        }

    def get(self, tuned_by: str, experiment: str, method: str, metric: str) -> dict[str, Any] | None:
        cell = self.cells.get((tuned_by, experiment, method, metric))
        return cell if cell is not None and np.isfinite(cell["mean"]) else None

    def mean(self, tuned_by: str, experiment: str, method: str, metric: str) -> float:
        cell = self.get(tuned_by, experiment, method, metric)
        return float("nan") if cell is None else float(cell["mean"])

    def rows(self, tuned_by: str, metric: str) -> list[tuple[str, str, Sequence[str]]]:
        """Experiment, network and its methods, where the unregularised and the first robust one have a number."""
        return [
            (experiment, network, methods)
            for experiment in EXPERIMENTS
            for network, methods in _ROWS.items()
            if all(self.get(tuned_by, experiment, method, metric) for method in methods[:2])
        ]


def _imparity(cells: _Cells) -> Claim | None:
    rows = cells.rows("ci", "concordance_imparity")
    if not rows:
        return None
    lower, outside, table = 0, 0, []
    for experiment, network, methods in rows:
        plain, robust = (cells.cells["ci", experiment, name, "concordance_imparity"] for name in methods[:2])
        lower += robust["mean"] < plain["mean"]
        outside += robust["high"] < plain["mean"]
        published = [cells.published.get((experiment, name, "concordance_imparity")) for name in methods[:2]]
        table.append(
            (
                text(EXPERIMENTS[experiment].title),
                text(network),
                text(_with_interval(plain)),
                text(_with_interval(robust)),
                *(text("–" if value is None else f"{value:.2f}") for value in published),
            )
        )
    header = ("table", "network", "Cox or DeepSurv", "DRO-COX", "published, plain", "published, DRO-COX")
    return Claim(
        "Tuned by concordance imparity, DRO-COX has a lower one than the unregularised model.",
        f"Its mean is lower in {lower} of {len(rows)} comparisons when settings are chosen on the validation set. In "
        f"{outside} of them the bootstrap interval of its own value, on the one test set that all repeats share, lies "
        "below the unregularised model's value: elsewhere the difference is inside the sampling error.",
        Table("Concordance imparity (%)", tuple(map(text, header)), tuple(table)),
    )


def _average_disparity(cells: _Cells) -> Claim | None:
    rows = cells.rows("fa", "average_disparity")
    rows = [row for row in rows if cells.get("fa", row[0], row[2][3], "average_disparity")]
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
        table.append((text(EXPERIMENTS[experiment].title), text(network), *map(text, shown)))
    header = ("table", "network", "unregularised", "DRO-COX", "DRO-COX (SPLIT)", "unregularised x c")
    return Claim(
        "Tuned by the average disparity F_A, DRO-COX has a lower one at nearly the same c-index.",
        f"It is lower in {lower} of {len(rows)} comparisons. Multiplying the unregularised model's scores by one "
        "number c < 1 changes neither the c-index nor who is ranked above whom; c tuned under the same budget makes "
        f"F_A at least as low as DRO-COX's in {beaten} of {len(rows)}. In parentheses: the gain in log partial "
        "likelihood over no model, as a share of plain Cox's; near 0, the model has next to nothing left to say.",
        Table("Average disparity F_A, tuned by F_A", tuple(map(text, header)), tuple(table)),
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
                text(EXPERIMENTS[experiment].title),
                text(network),
                *(text(f"{value:.4f}" if np.isfinite(value) else "–") for value in values),
                *(text("–" if value is None else f"{value:.4f}") for value in published),
            )
        )
    header = (
        *("table", "network", "unregularised", "DRO-COX", "DRO-COX (SPLIT)"),
        *("published, plain", "published, DRO-COX"),
    )
    return Claim(
        "DRO-COX has a lower integrated Brier score than the unregularised model.",
        "With predictions and outcomes of the same patients paired, it is higher (worse) in "
        f"{worse} of {len(seen)} comparisons. The published values pair predictions sorted by time with labels in "
        "another order.",
        Table("Integrated Brier score", tuple(map(text, header)), tuple(table)),
    )


def _with_interval(cell: dict[str, Any]) -> str:
    return f"{cell['mean']:.2f} [{cell['low']:.2f}, {cell['high']:.2f}]"
