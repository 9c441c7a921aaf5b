"""The tables: datasets, methods by metrics with the shrinkage control, ours beside the published, and the agreement."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Dataset
from drosurv.presentation import NOTHING, Table, Text, counted, text
from drosurv.presentation.wording import HUGE
from experiments.cells import bold, marked, table_of_markdown
from experiments.paper.comparison import AGREEMENT
from experiments.paper.known_reasons import KNOWN_REASONS
from experiments.paper.methods import METHODS, TABLE_METRICS, TableMetric
from experiments.paper.plan import DATASET_LABELS, EXPERIMENTS
from experiments.paper.selection import SHRINKAGE

_Row = tuple[str | Text, ...]
_NETWORKS = {"linear": "linear", "mlp": "MLP"}
_TUNED = {
    "ci": "tuned by CI within the accuracy budget",
    "fa": "tuned by F_A within the accuracy budget",
    "fixed": "at one fixed setting",
}
_INTERVAL_NOTE = (
    "CI in percent. Brackets: bootstrap interval on the one test set that all repeats share (mean of its "
    "ends over repeats)."
)
_SHRINKAGE_NOTE = (
    "LPL gain / Cox's: gain in log partial likelihood over no model, as a share of plain Cox's. Slope: "
    "calibration slope. A share near 0 or a slope far above 1 means that scores have shrunk, and disparities "
    "fall with them."
)
# As printed: samples, features, censoring rate.
PUBLISHED_CHARACTERISTICS = {
    "flc": (7874, 6, 0.725),
    "support": (9105, 14, 0.319),
    "seer": (4024, 13, 0.847),
}
# A reason has the same letter in every table.
_LETTERS = dict(zip((reason.code for reason in KNOWN_REASONS), string.ascii_letters, strict=False))


def result_table(summary: pd.DataFrame) -> Table:
    """Methods by metrics, mean (sd) over repeats, with the interval of CI and the shrinkage control.

    The summary is of one experiment and one way of tuning.
    """
    experiment = EXPERIMENTS[summary["experiment"].iloc[0]]
    title = f"{experiment.title}, {_TUNED[summary['tuned_by'].iloc[0]]}"
    cells = _cells(summary)
    rows: list[_Row] = []
    for method in _ordered(experiment.methods, cells):
        found = cells[method]
        fallbacks = found["concordance_index"]["fallbacks"]
        rows.append(
            (
                *_row_head(method, f"‡{fallbacks}" if fallbacks else ""),
                *(_measured(found[metric.name], metric, sd=True) for metric in TABLE_METRICS),
                *(number(found[name]["mean"], 2) for name in SHRINKAGE),
            )
        )
    low, high = int(summary["repeats"].min()), int(summary["repeats"].max())
    repeats = counted(high, "repeat") if low == high else f"{low} to {high} repeats"
    notes = [f"Mean (sd) over {repeats} on the test set.", _INTERVAL_NOTE, _SHRINKAGE_NOTE]
    if summary["fallbacks"].any():
        notes.append(
            "‡k: in k repeats no setting was inside the accuracy budget; the highest c-index was taken."
        )
    header: _Row = ("method", "network", *map(_heading, TABLE_METRICS), "LPL gain / Cox's", "slope")
    return table_of_markdown(title, header, rows, notes)


def comparison_table(comparison: pd.DataFrame) -> Table:
    """Ours / published, with the difference in published standard deviations; bold where it exceeds two."""
    experiment = EXPERIMENTS[comparison["experiment"].iloc[0]]
    cells = _cells(comparison)
    rows: list[_Row] = [
        (*_row_head(method), *(beside(cells[method][metric.name], metric) for metric in TABLE_METRICS))
        for method in _ordered(experiment.methods, cells)
    ]
    header: _Row = ("method", "network", *map(_heading, TABLE_METRICS))
    title = f"{experiment.title}: ours beside the published values"
    return table_of_markdown(title, header, rows, comparison_notes(comparison))


def comparison_notes(*comparisons: pd.DataFrame) -> tuple[str, ...]:
    """How to read comparisons of any experiments, and the reasons that their cells are marked with."""
    used = {code for frame in comparisons for codes in frame.get("codes", ()) for code in _codes(codes)}
    return (
        "Ours / published (difference in published standard deviations). Bold: more than two. Letters: what is "
        "known about the difference.",
        _INTERVAL_NOTE,
        *(f"{_LETTERS[reason.code]}: {reason.text}" for reason in KNOWN_REASONS if reason.code in used),
    )


def agreement_table(agreement: pd.DataFrame) -> Table:
    """Published cells (IBS aside) within two published standard deviations."""
    header = [str(name).replace("_", " ") for name in agreement.columns]
    rows = [
        [number(value, 3) if isinstance(value, float) else str(value) for value in row]
        for row in agreement.itertuples(index=False, name=None)
    ]
    note = (
        "Demonstrated: differs, and a computation shows the cause with the right sign and size. Not reproduced: the "
        "other cells that differ. Missing: published, but not run here."
    )
    title = "Published cells (IBS aside) within two published standard deviations"
    return table_of_markdown(title, header, rows, (note,))


def _cells(frame: pd.DataFrame) -> dict[str, dict[str, dict[Any, Any]]]:
    """Row of the frame by method and metric."""
    cells: dict[str, dict[str, dict[Any, Any]]] = {}
    for row in frame.to_dict("records"):
        cells.setdefault(row["method"], {})[row["metric"]] = row
    return cells


def _ordered(methods: Sequence[str], cells: dict[str, Any]) -> list[str]:
    """Linear before MLP, as in the paper, and otherwise in the experiment's order."""
    present = [name for name in methods if name in cells]
    return sorted(present, key=lambda name: METHODS[name].network)


def _row_head(name: str, mark: str = "") -> tuple[Text, str]:
    label, network = METHODS[name].heading, _NETWORKS[METHODS[name].network]
    return marked(label, mark), network


def _heading(metric: TableMetric) -> Text:
    plain, latex = ("↑", r"$\uparrow$") if metric.higher_is_better else ("↓", r"$\downarrow$")
    return Text(f"{metric.label} {plain}", metric.latex + latex)


def number(value: float, digits: int = 4) -> str:
    """With so many decimals, or as a power of ten where it is huge; a dash where there is none."""
    if not np.isfinite(value):
        return NOTHING
    return f"{value:.{digits}f}" if abs(value) < HUGE else f"{value:.3g}"


def _measured(cell: dict[Any, Any], metric: TableMetric, *, sd: bool = False) -> str:
    """The mean; CI is never shown without its interval, unknown ends as unknown."""
    shown = number(cell["mean"]) + (f" ({number(cell['sd'])})" if sd else "")
    if metric.name != "concordance_imparity":
        return shown
    return f"{shown} [{number(cell['low'], 2)}, {number(cell['high'], 2)}]"


def beside(cell: dict[Any, Any], metric: TableMetric) -> Text:
    """Ours / published (difference in published standard deviations), with what is known about the difference."""
    ours = _measured(cell, metric)
    z = cell["difference_in_sds"]
    difference = f"{'+' if z >= 0 else ''}{number(z, 1)}"
    misaligned = cell.get("misaligned", np.nan)
    ours += f", misaligned {number(misaligned)}" if np.isfinite(misaligned) else ""
    shown = text(f"{ours} / {number(cell['published_mean'])} ({difference})")
    if cell["counted"] and abs(z) > AGREEMENT:
        shown = bold(shown)
    mark = ",".join(_LETTERS[code] for code in _codes(cell["codes"]))
    return marked(shown, mark)


def _codes(joined: str) -> list[str]:
    return joined.split("; ") if joined else []


def characteristics(datasets: Iterable[Dataset]) -> pd.DataFrame:
    """Samples, features, censoring rate and sensitive attributes of each dataset before splitting.

    The first three also as published, with the prefix ``published_``.
    """
    records = []
    for dataset in datasets:
        samples, features, censoring = PUBLISHED_CHARACTERISTICS[dataset.name]
        records.append(
            {
                "dataset": dataset.name,
                "samples": len(dataset),
                "published_samples": samples,
                "features": dataset.X.shape[1],
                "published_features": features,
                "censoring": dataset.censoring,
                "published_censoring": censoring,
                "sensitive_attributes": ", ".join(map(str, dataset.sensitive_features.columns)),
            }
        )
    return pd.DataFrame(records)


def characteristics_table(frame: pd.DataFrame) -> Table:
    """Table 1, ours / published, from :func:`characteristics`."""
    header = ("dataset", "sensitive attributes", "samples", "features", "censoring rate")
    rows = tuple(
        (
            DATASET_LABELS[row["dataset"]],
            row["sensitive_attributes"],
            f"{row['samples']:,} / {row['published_samples']:,}",
            f"{row['features']} / {row['published_features']}",
            f"{row['censoring']:.3f} / {row['published_censoring']:.3f}",
        )
        for row in frame.to_dict("records")
    )
    return table_of_markdown("Basic dataset characteristics", header, rows, ("Ours / published.",))
