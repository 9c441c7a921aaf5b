"""The models beside each other: accuracy, fairness, and what shrinking alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drosurv.audit.charts.chart import Chart
from drosurv.audit.charts.trade_off import C_INDEX, KEPT, disparity_of, gap_of, trade_off_charts
from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.accuracy import BETWEEN, per_pair
from drosurv.audit.sections.section import Part, Section
from drosurv.audit.stops import Stop
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.presentation import Column, Table, attribute_name, first_upper, is_lower, plain, plain_rows

OVERALL = ("concordance_index", "integrated_brier_score", "share_of_gain", "calibration_slope")


def collect(evidence: Evidence) -> Part:
    """One row per model, the shrinking reference, and each model's disparities beside it."""
    names = [attribute.name for attribute in evidence.attributes]
    tables = [trade_off_table(evidence.stops, evidence.results, names)]
    control = control_table(evidence.audited, names, evidence.reference_name)
    return Part(
        tables=tuple([*tables, control] if control is not None else tables),
        by_model=tuple((shrinkage_table(result, evidence.reference_name),) for result in evidence.results),
        facts={"attributes": names},
    )


def trade_off_table(
    stops: Sequence[Stop], results: Sequence[EvaluationResult], attributes: Sequence[str]
) -> Table:
    """One row per model."""
    rows = tuple(_row(stop, found, attributes) for stop, found in zip(stops, results, strict=True))
    gaps = [
        replace(gap_of(name), label=f"{gap_of(name).label}, {attribute_name(name)}") for name in attributes
    ]
    kept = [KEPT] if any(KEPT.key in row for row in rows) else []
    columns = (Column("model", "Model"), C_INDEX, *gaps, *kept)
    return Table("trade_off", "The models beside each other", columns, rows)


def control_table(result: EvaluationResult, attributes: Sequence[str], reference: str) -> Table | None:
    """What multiplying the reference's scores by factors does to its information and its disparities."""
    if result.control is None:
        return None
    disparities = [
        Column(disparity_of(name).key, f"group disparity, {attribute_name(name)}", "value")
        for name in attributes
        if disparity_of(name).key in result.control.curve
    ]
    columns = (Column("factor", "Factor", "value"), replace(KEPT, interval=None), *disparities)
    caption = f"Scores of {reference}, all multiplied by a factor"
    return Table.of("control", caption, columns, result.control.curve)


def shrinkage_table(result: EvaluationResult, reference: str) -> Table:
    """The model's disparities beside the reference's, as it is and shrunk to the same information."""
    columns = (
        Column("metric", "Disparity of risk"),
        Column("between", "Between"),
        Column("model", "This model", "value"),
        Column("reference", first_upper(reference), "value"),
        Column("shrunken", "The same, shrunk", "value"),
        Column("reading", "Reading"),
    )
    rows = []
    for row in [] if result.control is None else plain_rows(result.control.at_equal_gain):
        scale = per_pair(row["metric"], result.rows[0].n)
        lower = is_lower(row["model"], row["shrunken"])
        rows.append(
            {
                "metric": CATALOGUE[row["metric"]].label,
                "between": BETWEEN.get(row["metric"], attribute_name(row["attribute"])),
                **{
                    name: None if row[name] is None else plain(scale * row[name])
                    for name in ("model", "reference", "shrunken")
                },
                "reading": f"{'lower' if lower else 'no lower'} than by shrinking alone",
            }
        )
    caption = f"Would {reference} look as fair, had it only shrunk its scores until it says as little?"
    return Table("shrinkage", caption, columns, tuple(rows))


def draw(part: Part) -> tuple[Chart, ...]:
    """Accuracy against fairness, for every attribute whose models are not all in one place."""
    trade_off = part.table("trade_off")
    assert trade_off is not None
    return trade_off_charts(trade_off, part.table("control"), part.facts["attributes"])


def _row(stop: Stop, result: EvaluationResult, attributes: Sequence[str]) -> dict[str, Any]:
    numbers = [
        *((Column.measured(metric, ""), result.select(metric=metric, kind="overall")) for metric in OVERALL),
        *((gap_of(row.attribute), [row]) for row in result.gaps("concordance_imparity")),
        *((disparity_of(row.attribute), [row]) for row in result.gaps("group_disparity")),
    ]
    found: dict[str, Any] = {"model": stop.name, "alpha": stop.alpha}
    for column, rows in numbers:
        for row in rows:
            found |= dict(zip(column.keys, map(plain, (row.value, row.low, row.high)), strict=True))
    return found


SECTION = Section(
    key="trade-off",
    heading="Accuracy against fairness",
    place=50,
    collect=collect,
    draw=draw,
    template="""
{% set control = part.table("control") %}
{% call m.section_head(section) %}
{% if report.models | length > 1 %}
<p>Alpha is the smallest share of patients that training protects. One point per model; the one shown is filled, with
its {{ report.level }} intervals.</p>
{% else %}
<p>What the model gives, and what shrinking its scores alone would give.</p>
{% endif %}
{% if control %}
<p><span class="key control">{{ control.caption }} below one: a model on this line has only shrunk</span></p>
{% endif %}
{% endcall %}
<div class="body">
{% set trade_off = part.table("trade_off") %}
{% if drawn %}
<div class="panels">
{% for chart in drawn %}
  {{ m.chart(chart) }}
{% endfor %}
</div>
{% elif report.models | length == 1 %}
<p>There is one model and nothing to draw it against.
{% for column in trade_off.columns[1:] %}
{{ column.label | string | first_upper }}: {{ column.cell(trade_off.rows[0]) }}.
{% endfor %}
</p>
{% else %}
<p>All models lie in the same place, so there is nothing to choose between.</p>
{% endif %}
{% if report.models | length > 1 %}{{ m.folded(trade_off, below=true) }}{% endif %}
{% call(shown, k) m.each_model() %}
  {% set shrinkage = part.of(k, "shrinkage") %}
  {% if shrinkage | length %}<h3>Has the model only shrunk?</h3>{{ m.plain_table(shrinkage) }}{% endif %}
{% endcall %}
{% if control %}{{ m.folded(control, name="The shrinking reference, factor by factor") }}{% endif %}
</div>
""",
)
