"""Every number of all patients together, and every gap between groups with its test."""

from __future__ import annotations

from math import isnan
from typing import Any

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import JUDGED_GAPS, Row
from drosurv.evaluation.shown_tables import BETWEEN, per_pair
from drosurv.metrics.inference import is_beyond_chance
from drosurv.presentation import Column, Table, plain

ENDS = ("low", "high")


def collect(evidence: Evidence) -> Part:
    """Two tables per model."""
    return Part(by_model=tuple((accuracy_table(r), fairness_table(r)) for r in evidence.results))


def accuracy_table(result: EvaluationResult) -> Table:
    """Every metric of all patients."""
    columns = (
        Column("metric", "Measure"),
        Column("meaning", "Meaning"),
        Column("value", "Estimate", "value", ENDS),
    )
    own = [row for row in result.rows if row.kind == "overall" and CATALOGUE[row.metric].of == "patients"]
    rows = tuple(map(_worded, own))
    return Table("accuracy", "How well the model predicts, all patients together", columns, rows)


def fairness_table(result: EvaluationResult) -> Table:
    """Gaps between groups with their tests, then disparities between intersections and between patients."""
    rows = []
    for metric in (*JUDGED_GAPS, "group_disparity"):
        words = {"metric": f"Gap of {CATALOGUE[metric].label}"} if CATALOGUE[metric].of == "patients" else {}
        for row in result.gaps(metric):
            rows.append(_worded(row) | words | {"between": row.whose} | _tested(row, result.settings.level))
    for metric, between in BETWEEN.items():
        rows += [
            _worded(row, per_pair(metric, result)) | {"between": between}
            for row in result.select(metric=metric, kind="overall")
        ]
    columns = (
        Column("metric", "Measure"),
        Column("between", "Between"),
        Column("value", "Estimate", "value", ENDS),
        Column("p_alone", "p, on its own", "p_value"),
        Column("p_value", "p, all attributes allowed for", "p_value"),
        Column("reading", "Reading"),
    )
    caption = "Differences between groups and between patients; 0 is none"
    return Table("fairness", caption, columns, tuple(rows))


def _worded(row: Row, scale: float = 1.0) -> dict[str, Any]:
    metric = CATALOGUE[row.metric]
    values = {name: plain(scale * getattr(row, name)) for name in ("value", *ENDS)}
    return {"metric": metric.label, "meaning": metric.meaning, **values}


def _tested(row: Row, level: float) -> dict[str, Any]:
    """Both p-values of a gap, and how they are read."""
    reading = "beyond chance" if is_beyond_chance(row.p_adjusted, level) else "may be chance"
    return {
        "p_value": plain(row.p_adjusted),
        "p_alone": plain(row.p_value),
        "reading": "" if isnan(row.p_adjusted) else reading,
    }


SECTION = Section(
    key="accuracy",
    heading="All numbers",
    place=60,
    collect=collect,
    intro="""
<p>Every number with its {{ report.level }} interval from a bootstrap over patients. A difference whose test is not
significant may be chance.</p>
""",
)
