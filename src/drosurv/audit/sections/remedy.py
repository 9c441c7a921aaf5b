"""What would help: repairs that pass, beside robust training, recalibration and a flexible correction."""

from __future__ import annotations

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Statement, Table

COLUMNS = (
    Column("group", "Group"),
    Column("remedy", "Remedy"),
    Column("ratio", "Observed / expected there", "value", ("ratio_low", "ratio_high")),
    Column("gain", "Gain there", "value", ("gain_low", "gain_high")),
    Column("elsewhere", "Gain elsewhere", "value", ("elsewhere_low", "elsewhere_high")),
)
NOTE = (
    "Repair, recalibration and flexible correction are learnt from the audited patients in folds and measured on "
    "patients not used for them; models trained more robustly are measured as they are. Gain: log likelihood per "
    "patient over the audited model. Intervals are of each number alone."
)


def collect(evidence: Evidence) -> Part | None:
    """The repairs in words, and every remedy on the same groups."""
    found = evidence.remedy
    if found is None:
        return None
    said = [Statement("remedy", text, True) for text in found.words] or [Statement("remedy", found.status)]
    tables = (Table("remedies", "Remedies side by side", COLUMNS, found.rows),) if found.rows else ()
    return Part(statements=tuple(said), tables=tables, facts={"note": NOTE} if found.rows else {})


SECTION = Section(
    key="remedy",
    heading="Remedy",
    place=45,
    collect=collect,
    template="""
{% call m.section_head(section) %}
<p>For whom the audited model is wrong in a way that can be put right, and what would do it. A repair is named only if
patients who were not used for it gain.</p>
{% endcall %}
<div class="body">
{% for statement in part.statements %}<p class="lead">{{ statement.text }}</p>{% endfor %}
{% set remedies = part.table("remedies") %}
{% if remedies %}{{ m.folded(remedies, below=true) }}{% endif %}
{% if part.facts.get("note") %}<p class="aside">{{ part.facts.note }}</p>{% endif %}
</div>
""",
)
