"""The section by group: a forest plot of the group table, and all other metrics with their gaps."""

from __future__ import annotations

from typing import Any

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.group_table import Row
from drosurv.presentation import Column, Table, aligned, plain
from drosurv.report.charts import forest
from drosurv.report.evidence import PATIENTS, WHO, Evidence, Part, Section, judged_counts
from drosurv.report.sections.first_section import group_rows

ENDS = ("low", "high")
# Codes of the statements of an evaluation that the verdict does not repeat.
SHOWN_STATEMENTS = ("overall", "small_groups", "hazards", "hazards_untested")
STRIPS = (
    Column.measured("ratio", "Observed / expected events"),
    Column.measured("gain", "Gain over no model"),
    Column.measured("c_index", "c-index"),
)
# Left out with survival curves: the group table has gain and slope with adjusted intervals, and the p-value would not
# be adjusted.
JUDGED_ELSEWHERE = ("likelihood_gain", "calibration_slope", "d_calibration_p")
# Gaps that the page shows; those of the c-index and the gain depend on how long groups were followed.
GAPS = ("uno_concordance", "brier_skill", "calibration_difference")
# Values of the thin lines in the forest plot.
GUIDES = {"ratio": 1.0, "gain": 0.0}


def collect(evidence: Evidence) -> Part:
    """Return the group table, tables of all metrics, and statements about them."""
    result = evidence.audited
    tables = (forest_table(result, evidence.time_unit), accuracy_table(result), gap_table(result))
    said = result.statements(reference=evidence.page.reference_name)
    statements = tuple(statement for statement in said if statement.code in SHOWN_STATEMENTS)
    # Intervals are adjusted for these tests; those of c-indices, which are plotted without expected events, are not.
    adjusted = result.groups["expected"].notna().any()
    n_tests = result.settings.n_tests if adjusted else None
    return Part(statements=statements, tables=tables, facts={"n_tests": n_tests})


def forest_table(result: EvaluationResult, time_unit: str) -> Table:
    """Return the group table, one block per attribute in the order of the attributes."""
    shown = [
        row
        | {"group": row["label"], "attribute": row["heading"], "note": "", "finding": ""}
        | {"finding" if row["judged"] else "note": row["finding"]}
        for row in group_rows(result)
    ]
    # The c-index, which is not comparable between groups, is plotted only if others are missing.
    strips = [strip for strip in STRIPS if any(row[strip.key] is not None for row in shown)][:2]
    events, _ = judged_counts(result, time_unit)
    return Table("by_group", "Every group", (*WHO, PATIENTS, events, *aligned(strips, shown)), tuple(shown))


def accuracy_table(result: EvaluationResult) -> Table:
    """Return every metric of all patients."""
    columns = (
        Column("metric", "Measure"),
        Column("meaning", "Meaning"),
        Column("value", "Estimate", "value", ENDS),
    )
    rows = [
        row
        for row in result.rows
        if row.kind == "overall"
        and CATALOGUE[row.metric].of == "patients"
        and not (len(result.survival) and row.metric in JUDGED_ELSEWHERE)
    ]
    return Table("accuracy", "All patients together", columns, tuple(map(_worded, rows)))


def gap_table(result: EvaluationResult) -> Table:
    """Return differences between groups that are large enough to be judged."""
    rows = [
        _worded(row) | {"metric": f"Gap of {CATALOGUE[metric].label}", "between": row.whose}
        for metric in GAPS
        for row in result.gaps(metric)
    ]
    columns = (
        Column("metric", "Measure"),
        Column("between", "Between"),
        Column("value", "Estimate", "value", ENDS),
    )
    caption = "Differences between groups; 0 is none. They depend on who the patients are, and decide nothing"
    return Table("fairness", caption, columns, tuple(rows))


def _worded(row: Row) -> dict[str, Any]:
    metric = CATALOGUE[row.metric]
    values = {name: plain(getattr(row, name)) for name in ("value", *ENDS)}
    return {"metric": metric.label, "meaning": metric.meaning, **values}


GROUPS = Section(
    key="groups",
    heading="By group",
    place=20,
    collect=collect,
    draw=lambda part: forest(part.tables[0], GUIDES),
    intro="""
<p>A dot is the estimate, the bar its {{ report.level }} interval; an arrow is an estimate beyond the axis.
{% if part.facts.n_tests %}
Intervals of observed / expected events and of gains are adjusted for all {{ part.facts.n_tests }} tests of this report,
other intervals are not. The thin lines mark a ratio of 1 and a gain of 0.</p>
{% else %}
Intervals are not adjusted. The thin line marks all patients.</p>
{% endif %}
""",
    template="""
{{ m.forest(drawn) }}
{{ m.downloads(part.tables[0]) }}
<ul class="statements">
{% for statement in part.statements %}
  <li{% if statement.concern %} class="concern"{% endif %}>{{ statement.text }}</li>
{% endfor %}
</ul>
{% for table in part.tables[1:] if table.rows %}{{ m.folded(table, below=true) }}{% endfor %}
""",
)
