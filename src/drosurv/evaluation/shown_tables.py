"""Tables of an evaluation that both its Markdown document and the report show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluated import Evaluated
from drosurv.presentation import (
    Column,
    Table,
    first_upper,
    label_name,
    plain,
    plain_rows,
    sentences,
)

# Kaplan-Meier survival with its interval.
OBSERVED = Column("observed", "Observed", "share", ("low", "high"))
# What disparities of everybody are between.
BETWEEN = {
    "intersectional_disparity": "intersections of all groups",
    "individual_disparity": "patients, per pair",
}


def named(row: dict[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """A row whose attribute and group are in the words that readers see; everybody has no attribute."""
    attribute, group = row["attribute"], row["group"]
    if attribute == EVERYONE:
        return row | {"attribute": "", "group": "all patients"}
    return row | {"attribute": called[attribute], "group": label_name(attribute, group)}


def time_column(key: str, unit: str) -> Column:
    """A column of times, with their unit where somebody said it."""
    return Column(key, f"Time ({unit})" if unit else "Time", "time")


def survival_columns(time: Column, *more: Column) -> tuple[Column, ...]:
    """Columns of predicted beside observed survival."""
    return (
        Column("group", "Group"),
        Column("attribute", "Attribute"),
        time,
        Column("predicted", "Predicted", "share"),
        OBSERVED,
        *more,
        Column("at_risk", "At risk", "count"),
    )


def calibration_table(result: Evaluated, time_unit: str, at: str) -> Table:
    """Predicted against observed survival at the horizons, which `at` describes."""
    called, small = result.headings, result.small_groups

    def told(row: dict[str, Any]) -> dict[str, Any]:
        few = (row["attribute"], row["group"]) in small
        return named(row, called) | {"note": "small group" if few else ""}

    difference = Column.measured("difference", "Predicted less observed, points", "signed_points")
    return Table(
        "calibration",
        f"Predicted less observed survival, in percentage points, at {at}",
        survival_columns(time_column("horizon", time_unit), difference),
        tuple(map(told, plain_rows(result.calibration))),
    )


def shrinkage_table(result: Evaluated, reference: str) -> Table:
    """The model's disparities beside the reference's, as it is and shrunk to the same information."""
    factor = "" if result.control is None else f" x {result.control.factor:.2f}"
    columns = (
        Column("metric", "Disparity of risk"),
        Column("between", "Between"),
        Column("model", "This model", "value"),
        Column("reference", first_upper(reference), "value"),
        Column("shrunken", f"The same, shrunk{factor}", "value"),
        Column("reading", "Reading"),
    )
    rows = []
    for row in [] if result.control is None else plain_rows(result.control.at_equal_gain):
        scale = per_pair(row["metric"], result)
        lower = sentences.is_lower(row["model"], row["shrunken"])
        rows.append(
            {
                "metric": CATALOGUE[row["metric"]].label,
                "between": BETWEEN.get(row["metric"]) or result.headings[row["attribute"]],
                **{
                    name: None if row[name] is None else plain(scale * row[name])
                    for name in ("model", "reference", "shrunken")
                },
                "reading": f"{'lower' if lower else 'no lower'} than by shrinking alone",
            }
        )
    caption = f"Would {reference} look as fair, had it only shrunk its scores until it says as little?"
    return Table("shrinkage", caption, columns, tuple(rows))


def per_pair(metric: str, result: Evaluated) -> float:
    """What F_I is multiplied by: only those who know how many pairs there are can read the paper's sum over them."""
    n = result.rows[0].n
    if metric != "individual_disparity" or n < 2:
        return 1.0
    # The tables' convention counts a pair once and divides by both its orders.
    return 2.0 if result.settings.convention == "table" else 2 / (n * (n - 1))
