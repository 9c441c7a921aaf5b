"""The patients served worst, described by rules that nobody named beforehand."""

from __future__ import annotations

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Statement, Table, with_interval

COLUMNS = (
    Column("rule", "Rule"),
    Column("patients", "Patients", "count"),
    Column("share", "Of all", "share"),
    Column("events", "Events", "count"),
    Column("harm", "Harm there", "value", ("harm_low", "harm_high")),
    Column("rest", "Harm elsewhere", "value", ("rest_low", "rest_high")),
    Column("stability", "Found again", "share"),
    Column("verdict", "Verdict"),
)


def collect(evidence: Evidence) -> Part:
    """The rules, or why there are none."""
    found = evidence.worst_off
    if found is None:
        text = f"Rules for the worst off were not searched: {evidence.not_searched}."
        return Part(statements=(Statement("rules", text),))
    overall = with_interval(found.overall.value, found.overall.low, found.overall.high)
    note = (
        "Harm is how much worse than by no model a patient is predicted, in log likelihood, averaged over patients not "
        f"used to find the rule; negative is a gain. All patients: {overall}. Smallest group looked for: "
        f"{found.min_group} patients."
    )
    if found.findings:
        note += (
            " Found again: share of repeated samples in which the search comes back to the same group. Each end of an "
            f"interval holds with {100 * evidence.level:g} % confidence, for all rules together. A patient who meets "
            "several rules counts under the first."
        )
    rules = Table.of("worst_off", "Every rule that the search proposed", COLUMNS, found.to_frame())
    harmed = any(row["verdict"] == "harmed" for row in rules.rows)
    return Part(statements=(Statement("rules", found.status, harmed),), tables=(rules,), facts={"note": note})


SECTION = Section(
    key="worst-off",
    heading="Who is worst off",
    place=40,
    collect=collect,
    template="""
{% call m.section_head(section) %}
<p>Groups that nobody named beforehand: rules found by search, then checked on patients not used to find them. For the
audited model.</p>
{% endcall %}
<div class="body">
{% for statement in part.statements %}<p class="lead">{{ statement.text }}</p>{% endfor %}
{% set rules = part.table("worst_off") %}
{% if rules and rules | length %}
<ul class="rules">
{% for row in rules.rows %}
  <li>
    <span class="rule">{{ row.rule }}</span>
    <span class="verdict">
    {%- for column in rules.columns[1:] -%}
      {{ column.label }}: {{ column.cell(row) }}{% if not loop.last %} · {% endif %}
    {%- endfor -%}
    </span>
  </li>
{% endfor %}
</ul>
{{ m.folded(rules, below=true) }}
{% endif %}
{% if part.facts.get("note") %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
</div>
""",
)
