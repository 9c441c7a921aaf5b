"""How well each group is served: a forest plot, the same axes for every model."""

from __future__ import annotations

from drosurv.audit.charts import forests
from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.shown_tables import named
from drosurv.evaluation.statements import judged_gaps
from drosurv.presentation import Column, Table

# What a reader must know before trusting a group's numbers.
_NOTES = {"small group": "small group: read with care", "undefined": "some measures are undefined here"}


def collect(evidence: Evidence) -> Part:
    """One table of groups per model, and what is said of it."""
    said = tuple(
        result.statements(reference=evidence.reference_name, time_unit=evidence.time_unit)
        for result in evidence.results
    )
    return Part(by_model=tuple((group_table(result),) for result in evidence.results), said_by_model=said)


def group_table(result: EvaluationResult) -> Table:
    """Every metric of every group; the strips show ranking, and the error that the model saves the group."""
    worst = next((gap for gap in judged_gaps(result, "concordance_index") if gap.size > 0), None)
    rows, called = [], result.headings
    for own in result.group_records():
        is_worst = worst is not None and (own["attribute"], own["group"]) == (worst.attribute, worst.worst[0])
        flags = {
            "worst": is_worst,
            "may_be_chance": is_worst and worst is not None and not worst.beyond_chance,
            "note": _NOTES.get(own["status"], ""),
        }
        rows.append(named(own, called) | flags)
    columns = [
        Column("group", "Group"),
        Column("attribute", "Attribute"),
        Column("patients", "Patients", "count"),
        Column("events", "Events", "count"),
        Column.measured("concordance_index", "Pairs ranked rightly (c-index)"),
    ]
    if result.select(metric="brier_skill", kind="overall"):
        columns.append(Column.measured("brier_skill", "Error saved against no model", "share"))
    return Table("by_group", "How well each group is served", tuple(columns), tuple(rows))


SECTION = Section(
    key="groups",
    heading="By group",
    place=20,
    collect=collect,
    draw=lambda part: forests([tables[0] for tables in part.by_model]),
    intro="""
<p>A dot is the estimate, the bar its {{ report.level }} interval. The thin line marks all patients, or zero where the
measure compares with no model.</p>
""",
    template="""
{% call(shown, k) m.each_model() %}
  {% if not shown.audited %}
  <p class="aside">This is {{ shown.name }}, a model trained for comparison, not the audited one.</p>
  {% endif %}
  {{ m.forest(drawn[k]) }}
  {{ m.downloads(part.by_model[k][0]) }}
  <h3>In words</h3>
  <ul class="statements">
  {% for statement in part.said_by_model[k] %}
    <li{% if statement.concern %} class="concern"{% endif %}>{{ statement.text }}</li>
  {% endfor %}
  </ul>
{% endcall %}
""",
)
