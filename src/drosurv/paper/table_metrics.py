"""The nine metrics of the paper's tables, in the order of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TableMetric:
    """One column of the paper's tables.

    Parameters
    ----------
    name : str
        Column of results; the function of that name in ``drosurv.metrics`` computes it.
    label, latex : str
        Heading in plain text and in LaTeX.
    kind : "accuracy" or "fairness"
        Which half of the table it stands in.
    higher_is_better : bool
        Direction of the heading's arrow.
    percent : bool
        Whether tables print a hundred times the library's value.
    """

    name: str
    label: str
    latex: str
    kind: Literal["accuracy", "fairness"]
    higher_is_better: bool = False
    percent: bool = False

    @property
    def printed_scale(self) -> float:
        """What the library's value is multiplied by in print."""
        return 100.0 if self.percent else 1.0


TABLE_METRICS = (
    TableMetric("concordance_index", "c-index", "c-index", "accuracy", higher_is_better=True),
    TableMetric("dynamic_auc", "AUC", "AUC", "accuracy", higher_is_better=True),
    TableMetric("log_partial_likelihood", "LPL", "LPL", "accuracy", higher_is_better=True),
    TableMetric("integrated_brier_score", "IBS", "IBS", "accuracy"),
    TableMetric("individual_disparity", "F_I", "F$_I$", "fairness"),
    TableMetric("group_disparity", "F_G", "F$_G$", "fairness"),
    TableMetric("intersectional_disparity", "F_∩", r"F$_{\cap}$", "fairness"),
    TableMetric("average_disparity", "F_A", "F$_A$", "fairness"),
    TableMetric("concordance_imparity", "CI(%)", r"CI(\%)", "fairness", percent=True),
)
METRIC_NAMES = tuple(metric.name for metric in TABLE_METRICS)
