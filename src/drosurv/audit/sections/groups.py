"""The group table as a forest plot, for every model, and all other numbers with the gaps between groups."""

from __future__ import annotations

from typing import Any

from drosurv.audit.charts import forests
from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.audit.verdict import adjusted_p_values
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import JUDGED_GAPS, Row
from drosurv.evaluation.views import BETWEEN, named, per_pair
from drosurv.presentation import Column, Statement, Table, plain, plain_rows

ENDS = ("low", "high")
# What statements of an evaluation say that the verdict does not.
SAID = ("overall", "shrinkage", "small_groups", "hazards")
STRIPS = (
    Column("ratio", "Observed / expected events", "value", ("ratio_low", "ratio_high")),
    Column("gain", "Gain over no model", "value", ("gain_low", "gain_high")),
    Column("c_index", "c-index", "value", ("c_index_low", "c_index_high")),
)
# The value that a strip is compared with; all patients' where there is none.
GUIDES = {"ratio": 1.0, "gain": 0.0}


def collect(evidence: Evidence) -> Part:
    """Return, for every model, the group table and tables of all numbers, with what is said of them."""
    tables = tuple(
        (forest_table(result), accuracy_table(result), gap_table(result, evidence if stop.audited else None))
        for stop, result in zip(evidence.stops, evidence.results, strict=True)
    )
    said = tuple(_said(evidence, result) for result in evidence.results)
    return Part(by_model=tables, said_by_model=said)


def _said(evidence: Evidence, result: EvaluationResult) -> tuple[Statement, ...]:
    found = result.statements(reference=evidence.reference_name, time_unit=evidence.time_unit)
    return tuple(statement for statement in found if statement.code in SAID)


def forest_table(result: EvaluationResult) -> Table:
    """The group table, one block per attribute in the order of the attributes."""
    rows = plain_rows(result.groups)
    order = ["overall", *result.headings]
    rows = sorted(
        (row for row in rows if row["attribute"] in order), key=lambda row: order.index(row["attribute"])
    )
    shown = [
        named(row, result.headings)
        | {"note": "" if row["judged"] else f"not judged: {row['why']}", "worst": bool(row["concern"])}
        for row in rows
    ]
    columns = (
        Column("group", "Group"),
        Column("attribute", "Attribute"),
        Column("patients", "Patients", "count"),
        Column("observed", "Events", "count"),
        *_strips(shown),
    )
    return Table("by_group", "Every group", columns, tuple(shown))


def _strips(rows: list[dict[str, Any]]) -> list[Column]:
    """What is judged; the c-index, which cannot be compared between groups, only where there is nothing else."""
    known = [strip for strip in STRIPS if any(row[strip.key] is not None for row in rows)]
    return known[:2]


def accuracy_table(result: EvaluationResult) -> Table:
    """Every metric of all patients."""
    columns = (
        Column("metric", "Measure"),
        Column("meaning", "Meaning"),
        Column("value", "Estimate", "value", ENDS),
    )
    rows = [row for row in result.rows if row.kind == "overall" and CATALOGUE[row.metric].of == "patients"]
    return Table("accuracy", "All patients together", columns, tuple(map(_worded, rows)))


def gap_table(result: EvaluationResult, evidence: Evidence | None) -> Table:
    """Differences between groups and between patients; of the audited model with the p-values of the verdict."""
    rows = []
    p_values = {} if evidence is None else _p_values(evidence)
    for metric in (*JUDGED_GAPS, "group_disparity"):
        words = {"metric": f"Gap of {CATALOGUE[metric].label}"} if CATALOGUE[metric].of == "patients" else {}
        for row in result.gaps(metric):
            p_value = p_values.get(row.attribute) if metric == "concordance_imparity" else None
            rows.append(_worded(row) | words | {"between": row.whose, "p_value": p_value})
    for metric, between in BETWEEN.items():
        rows += [
            _worded(row, per_pair(metric, result)) | {"between": between}
            for row in result.select(metric=metric, kind="overall")
        ]
    columns = (
        Column("metric", "Measure"),
        Column("between", "Between"),
        Column("value", "Estimate", "value", ENDS),
        Column("p_value", "p, adjusted", "p_value"),
    )
    return Table(
        "fairness", "Differences between groups and between patients; 0 is none", columns, tuple(rows)
    )


def _p_values(evidence: Evidence) -> dict[str, float]:
    """Adjusted p-values of concordance imparity by attribute."""
    tests = evidence.tests
    adjusted = adjusted_p_values(tests, evidence.audited.settings.n_tests) if len(tests) else []
    return {
        attribute: p
        for attribute, status, p in zip(tests["attribute"], tests["status"], adjusted, strict=True)
        if status == "unequal"
    }


def _worded(row: Row, scale: float = 1.0) -> dict[str, Any]:
    metric = CATALOGUE[row.metric]
    values = {name: plain(scale * getattr(row, name)) for name in ("value", *ENDS)}
    return {"metric": metric.label, "meaning": metric.meaning, **values}


SECTION = Section(
    key="groups",
    heading="By group",
    place=20,
    collect=collect,
    draw=lambda part: forests([tables[0] for tables in part.by_model], GUIDES),
    intro="""
<p>A dot is the estimate, the bar its {{ report.level }} interval. Intervals of observed / expected events and of gains
are adjusted for all groups. The thin line marks 1 and 0.</p>
""",
    template="""
{% call(shown, k) m.each_model() %}
  {% if not shown.audited %}
  <p class="aside">This is {{ shown.name }}, a model trained for comparison, not the audited one.</p>
  {% endif %}
  {{ m.forest(drawn[k]) }}
  {{ m.downloads(part.by_model[k][0]) }}
  <ul class="statements">
  {% for statement in part.said_by_model[k] %}
    <li{% if statement.concern %} class="concern"{% endif %}>{{ statement.text }}</li>
  {% endfor %}
  </ul>
  {% for table in part.by_model[k][1:] %}{{ m.folded(table, below=true) }}{% endfor %}
{% endcall %}
""",
)
