"""The patients served worst, described by rules that nobody named beforehand."""

from __future__ import annotations

from dataclasses import replace

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Statement


def collect(evidence: Evidence) -> Part:
    """The rules, or why there are none."""
    found = evidence.worst_off
    if isinstance(found, str):
        text = f"Rules for the worst off were not searched: {found}."
        return Part(statements=(Statement("rules", text),))
    rules = replace(found.to_table(), caption="Every rule that the search proposed", notes=())
    said = Statement("rules", found.status, bool(found.groups))
    return Part(statements=(said,), tables=(rules,), facts={"note": found.note})


SECTION = Section(
    key="worst-off",
    heading="Who is worst off",
    place=40,
    collect=collect,
    intro="""
<p>Groups that nobody named beforehand: rules found by search, then checked on patients not used to find them. For the
audited model.</p>
""",
    template="""
{% for statement in part.statements %}<p class="lead">{{ statement.text }}</p>{% endfor %}
{% set rules = part.table("worst_off") %}
{% if rules and rules | length %}
{% set held_up = rules.rows | selectattr("verdict", "equalto", "harmed") | list %}
{% if held_up %}
<ul class="rules">
{% for row in held_up %}
  <li>
    <span class="rule">{{ row.rule }}</span>
    <span class="verdict">
    {%- for column in rules.columns[1:-1] -%}
      {{ column.label }}: {{ column.cell(row) }}{% if not loop.last %} · {% endif %}
    {%- endfor -%}
    </span>
  </li>
{% endfor %}
</ul>
{% endif %}
{{ m.folded(rules, below=true) }}
{% endif %}
{% if part.facts.get("note") %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
""",
)
