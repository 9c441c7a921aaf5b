"""Tables of an evaluation that both its Markdown document and the report show."""

from __future__ import annotations

from typing import Any

from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluated import Evaluated
from drosurv.presentation import (
    Column,
    Table,
    attribute_name,
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


def named(attribute: str, group: str) -> dict[str, Any]:
    """Attribute and group of a row in the words that readers see; everybody has no attribute."""
    if attribute == EVERYONE:
        return {"attribute": "", "group": "all patients"}
    return {"attribute": attribute_name(attribute, group), "group": label_name(attribute, group)}


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

    def told(row: dict[str, Any]) -> dict[str, Any]:
        key = row["attribute"], row["group"]
        return row | named(*key) | {"note": "small group" if key in result.small_groups else ""}

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
        scale = per_pair(row["metric"], result.rows[0].n)
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


def per_pair(metric: str, n: int) -> float:
    """What F_I, printed as a sum, is multiplied by: only those who know how many pairs there are can read a sum."""
    return 2 / (n * (n - 1)) if metric == "individual_disparity" and n > 1 else 1.0
