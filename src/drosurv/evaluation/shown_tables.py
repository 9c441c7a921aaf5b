"""Tables of an evaluation as its Markdown document and the report show them, and that document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.presentation import (
    Column,
    Table,
    first_upper,
    label_name,
    literal,
    plain,
    plain_rows,
    sentences,
    written,
)

_ENDS = ("low", "high")
# Kaplan-Meier survival with its interval.
OBSERVED = Column("observed", "Observed", "share", _ENDS)
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
    """A column of times, with their unit where it is known."""
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


def calibration_table(result: Any, time_unit: str, at: str) -> Table:
    """Predicted against observed survival at the horizons, which `at` describes."""
    called, small = result.headings, result.small_groups

    def formatted(row: dict[str, Any]) -> dict[str, Any]:
        few = (row["attribute"], row["group"]) in small
        return named(row, called) | {"note": "small group" if few else ""}

    difference = Column.measured("difference", "Predicted less observed, points", "signed_points")
    return Table(
        "calibration",
        f"Predicted less observed survival, in percentage points, at {at}",
        survival_columns(time_column("horizon", time_unit), difference),
        tuple(map(formatted, plain_rows(result.calibration))),
    )


def shrinkage_table(result: Any, reference: str) -> Table:
    """Disparities of the model, of the reference, and of the reference shrunk to the same likelihood gain."""
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
    caption = (
        f"Disparities beside those of {reference}, with its scores shrunk until it gains as little likelihood"
    )
    return Table("shrinkage", caption, columns, tuple(rows))


def per_pair(metric: str, result: Any) -> float:
    """Factor that turns F_I, in the paper a sum over pairs, into a mean over pairs; 1 for other metrics."""
    n = result.rows[0].n
    if metric != "individual_disparity" or n < 2:
        return 1.0
    # The tables' convention counts a pair once and divides by both its orders.
    return 2.0 if result.settings.convention == "table" else 2 / (n * (n - 1))


def document(result: Any, sentences: Sequence[str]) -> str:
    """Sentences as Markdown, then tables: overall, by attribute, calibration, shrinkage."""
    settings = result.settings
    parts = [
        f"# Evaluation of {literal(settings.model)}",
        "\n".join(f"- {literal(sentence)}" for sentence in sentences),
        "## Overall",
        _overall(result),
    ]
    for attribute, called in result.headings.items():
        parts += [
            f"## By {literal(called)}",
            _groups(result, attribute),
            _gaps(result, attribute),
        ]
    horizons = ", ".join(written(time, "time") for time in settings.horizons)
    if calibration := calibration_table(result, "", f"times {horizons}"):
        parts += ["## Calibration", calibration.to_markdown().rstrip()]
    if shrinkage := shrinkage_table(result, settings.reference):
        parts += ["## Shrinkage control", shrinkage.to_markdown().rstrip()]
    how = (
        f"{100 * settings.level:g} % intervals from {settings.n_bootstrap:,} bootstrap replicates"
        if settings.n_bootstrap
        else "no intervals"
    )
    parts.append(
        f"_{how}; {settings.n_permutations:,} permutations; disparities in the {settings.convention} convention; "
        f"calibration at {horizons}._"
    )
    return "\n\n".join(parts) + "\n"


def _overall(result: Any) -> str:
    rows = [row._asdict() | {"metric": CATALOGUE[row.metric].label} for row in result.select(kind="overall")]
    return _table([Column("metric", "metric"), Column("value", "value", "value", _ENDS)], rows)


def _groups(result: Any, attribute: str) -> str:
    rows = [
        record | {"group": label_name(attribute, record["group"])}
        for record in result.group_records()
        if record["attribute"] == attribute
    ]
    columns = [
        Column("group", "group"),
        Column("patients", "n", "count"),
        Column("events", "events", "count"),
        Column("censoring", "censored", "share"),
        *(Column.measured(name, metric.label) for name, metric in CATALOGUE.items() if name in rows[0]),
    ]
    return _table(columns, rows)


def _gaps(result: Any, attribute: str) -> str:
    rows = [
        row._asdict() | {"metric": CATALOGUE[row.metric].label, "group": label_name(attribute, row.group)}
        for row in result.select(attribute=attribute, kind="gap")
    ]
    columns = [
        Column("metric", "gap"),
        Column("group", "between"),
        Column("value", "size", "value", _ENDS),
        Column("p_value", "p", "p_value"),
        Column("p_adjusted", "p, adjusted", "p_value"),
        Column("test", "test"),
    ]
    return _table(columns, rows)


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> str:
    return Table("table", "", tuple(columns), tuple(rows)).to_markdown().rstrip()
