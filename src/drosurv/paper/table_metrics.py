"""The nine metrics of the paper's tables, in the order of their columns."""

from __future__ import annotations

from typing import NamedTuple

from drosurv.evaluation.catalogue import CATALOGUE


class TableMetric(NamedTuple):
    """One column of the paper's tables: a metric's name in the catalogue, its headings, and in which way it is better.

    Tables print `printed_scale` times the library's value.
    """

    name: str
    label: str
    latex: str
    higher_is_better: bool
    printed_scale: float


def _column(name: str, latex: str = "", label: str = "", printed_scale: float = 1.0) -> TableMetric:
    """Headings are the catalogue's unless given."""
    metric = CATALOGUE[name]
    label = label or metric.label
    return TableMetric(name, label, latex or label, metric.better == "higher", printed_scale)


TABLE_METRICS = (
    _column("concordance_index"),
    _column("dynamic_auc"),
    _column("log_partial_likelihood"),
    _column("integrated_brier_score"),
    _column("individual_disparity", "F$_I$"),
    _column("group_disparity", "F$_G$"),
    _column("intersectional_disparity", r"F$_{\cap}$", "F_∩"),
    _column("average_disparity", "F$_A$"),
    _column("concordance_imparity", r"CI(\%)", "CI(%)", printed_scale=100.0),
)
METRIC_NAMES = tuple(metric.name for metric in TABLE_METRICS)
