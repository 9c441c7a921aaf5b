"""The nine metrics of the paper's tables, in the order of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drosurv.evaluation.catalogue import CATALOGUE


@dataclass(frozen=True)
class TableMetric:
    """One column of the paper's tables; what it is and which way is better stands in the catalogue under its name.

    Headings are the catalogue's unless given; with `percent`, tables print a hundred times the library's value.
    """

    name: str
    kind: Literal["accuracy", "fairness"]
    label: str = ""
    latex: str = ""
    percent: bool = False

    def __post_init__(self) -> None:
        """Take headings from the catalogue."""
        label = self.label or CATALOGUE[self.name].label
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "latex", self.latex or label)

    @property
    def higher_is_better(self) -> bool:
        """Direction of the heading's arrow."""
        return CATALOGUE[self.name].better == "higher"

    @property
    def printed_scale(self) -> float:
        """What the library's value is multiplied by in print."""
        return 100.0 if self.percent else 1.0


TABLE_METRICS = (
    TableMetric("concordance_index", "accuracy"),
    TableMetric("dynamic_auc", "accuracy"),
    TableMetric("log_partial_likelihood", "accuracy"),
    TableMetric("integrated_brier_score", "accuracy"),
    TableMetric("individual_disparity", "fairness", latex="F$_I$"),
    TableMetric("group_disparity", "fairness", latex="F$_G$"),
    TableMetric("intersectional_disparity", "fairness", "F_∩", r"F$_{\cap}$"),
    TableMetric("average_disparity", "fairness", latex="F$_A$"),
    TableMetric("concordance_imparity", "fairness", "CI(%)", r"CI(\%)", percent=True),
)
METRIC_NAMES = tuple(metric.name for metric in TABLE_METRICS)
