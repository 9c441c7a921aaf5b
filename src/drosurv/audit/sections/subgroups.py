"""Subgroups that nobody named: which differ from the predictions, and what could have been missed."""

from __future__ import annotations

from collections.abc import Iterator

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Statement, Table, plain_rows
from drosurv.repairs.subgroup_bounds import SubgroupBounds

SIGNIFICANT = (
    Column("group", "Subgroup"),
    Column("patients", "Patients", "count"),
    Column("observed", "Events", "count"),
    Column("expected", "Expected", "time"),
    Column("ratio", "Observed / expected", "value"),
    Column("p", "p, adjusted", "p_value"),
)


def collect(evidence: Evidence) -> Part:
    """Return the bounds and the significant subgroups; or why nothing was searched."""
    bounds = evidence.bounds
    if isinstance(bounds, str):
        return Part(statements=(Statement("subgroups", f"Subgroups were not searched: {bounds}."),))
    first, *more = bounds.summary(evidence.time_unit, overall=False).split("\n")
    said = tuple(Statement("subgroups", text) for text in (first, " ".join(more)) if text)
    return Part(statements=said, tables=tuple(_tables(bounds)), facts={"bounds": bounds.to_dict()})


def _tables(bounds: SubgroupBounds) -> Iterator[Table]:
    shown = bounds.to_table()
    yield Table("subgroup_bounds", shown.caption, shown.columns, shown.rows)
    for key, found in (("significant", bounds.significant), ("rescaled", bounds.rescaled)):
        if found is not None and len(found):
            after = ", after all hazards are multiplied by one number" if key == "rescaled" else ""
            yield Table(
                key,
                f"Subgroups that differ from the predictions{after}",
                SIGNIFICANT,
                tuple(plain_rows(found)),
            )


SECTION = Section(
    key="missed",
    heading="What could have been missed",
    place=40,
    collect=collect,
    intro="""
<p>All subgroups that one or two conditions on the columns define, tested at once: how wrong can the model be where
nobody looked? For the audited model.</p>
""",
    template="""
{% for statement in part.statements %}
<p{% if loop.first %} class="lead"{% endif %}>{{ statement.text }}</p>
{% endfor %}
{% for table in part.tables %}
{% if loop.first %}{{ m.plain_table(table) }}{% else %}{{ m.folded(table) }}{% endif %}
{% endfor %}
""",
)
