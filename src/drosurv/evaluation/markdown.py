"""An evaluation as a Markdown document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluated import Evaluated
from drosurv.evaluation.shown_tables import calibration_table, shrinkage_table
from drosurv.presentation import Column, Table, label_name, literal, written

_ENDS = ("low", "high")


def document(result: Evaluated, sentences: Sequence[str]) -> str:
    """The given sentences, then tables: overall, by attribute, calibration, shrinkage."""
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


def _overall(result: Evaluated) -> str:
    rows = [vars(row) | {"metric": CATALOGUE[row.metric].label} for row in result.select(kind="overall")]
    return _table([Column("metric", "metric"), Column("value", "value", "value", _ENDS)], rows)


def _groups(result: Evaluated, attribute: str) -> str:
    rows = [
        own | {"group": label_name(attribute, own["group"])}
        for own in result.group_records()
        if own["attribute"] == attribute
    ]
    columns = [
        Column("group", "group"),
        Column("patients", "n", "count"),
        Column("events", "events", "count"),
        Column("censoring", "censored", "share"),
        *(Column.measured(name, metric.label) for name, metric in CATALOGUE.items() if name in rows[0]),
    ]
    return _table(columns, rows)


def _gaps(result: Evaluated, attribute: str) -> str:
    rows = [
        vars(row) | {"metric": CATALOGUE[row.metric].label, "group": label_name(attribute, row.group)}
        for row in result.select(attribute=attribute, kind="gap")
    ]
    columns = [
        Column("metric", "gap"),
        Column("group", "between"),
        Column("value", "size", "value", _ENDS),
        Column("p_value", "p, on its own", "p_value"),
        Column("p_adjusted", "p, all attributes allowed for", "p_value"),
        Column("test", "test"),
    ]
    return _table(columns, rows)


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> str:
    return Table("table", "", tuple(columns), tuple(rows)).to_markdown().rstrip()
