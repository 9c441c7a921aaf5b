"""The models beside each other: accuracy, fairness, and what shrinking alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from drosurv.presentation import Column, Table, plain

if TYPE_CHECKING:
    from drosurv.audit.report import ModelAudit
    from drosurv.evaluation import EvaluationResult
    from drosurv.evaluation.rows import Row


def ends_of(key: str) -> tuple[str, str]:
    """Names of the ends of a value's interval."""
    return (f"{key}_low", f"{key}_high")


def imparity_of(attribute: str) -> str:
    """Name of an attribute's concordance imparity in the rows."""
    return f"imparity {attribute}"


def disparity_of(attribute: str) -> str:
    """Name of an attribute's group disparity in the rows."""
    return f"group_disparity {attribute}"


C_INDEX = Column("concordance_index", "c-index", "value", ends_of("concordance_index"))
KEPT = Column("share_of_gain", "information kept", "share", ends_of("share_of_gain"))


def trade_off_table(
    models: Sequence[ModelAudit], results: Sequence[EvaluationResult], attributes: Sequence[str]
) -> Table:
    """One row per model.

    Parameters
    ----------
    models : sequence of ModelAudit
        Names and shares.
    results : sequence of EvaluationResult
        Their evaluations.
    attributes : sequence of str
        Names of the attributes.
    """
    rows = tuple(_row(model, found, attributes) for model, found in zip(models, results, strict=True))
    kept = [KEPT] if any("share_of_gain" in row for row in rows) else []
    columns = (
        Column("model", "Model"),
        C_INDEX,
        *(
            Column(imparity_of(name), f"concordance imparity, {name}", "value", ends_of(imparity_of(name)))
            for name in attributes
        ),
        *kept,
    )
    return Table("trade_off", "The models beside each other", columns, rows)


def control_table(result: EvaluationResult, attributes: Sequence[str], reference: str) -> Table | None:
    """What multiplying the reference's scores by factors does to its information and its disparities."""
    if result.control is None:
        return None
    disparities = [
        Column(disparity_of(name), f"group disparity, {name}", "value")
        for name in attributes
        if disparity_of(name) in result.control.curve
    ]
    columns = (
        Column("factor", "Factor", "value"),
        Column("share_of_gain", "information kept", "share"),
        *disparities,
    )
    caption = f"Scores of {reference}, all multiplied by a factor"
    return Table.of("control", caption, columns, result.control.curve)


def _row(model: ModelAudit, result: EvaluationResult, attributes: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"model": model.name, "alpha": model.alpha, "stop": model.stop_label}
    for metric in ("concordance_index", "integrated_brier_score", "share_of_gain", "calibration_slope"):
        found |= _numbers(result.select(metric=metric, kind="overall"), metric)
    for name in attributes:
        for metric, key in (
            ("concordance_imparity", imparity_of(name)),
            ("group_disparity", disparity_of(name)),
        ):
            found |= _numbers(result.select(metric=metric, attribute=name, kind="gap"), key)
    return found


def _numbers(rows: list[Row], key: str) -> dict[str, Any]:
    low, high = ends_of(key)
    return {
        name: plain(value)
        for row in rows
        for name, value in ((key, row.value), (low, row.low), (high, row.high))
    }
