"""Do predicted probabilities come true in each group: curves, and differences at a few times."""

from __future__ import annotations

from typing import Any, NamedTuple

from drosurv.audit.charts.chart import Chart
from drosurv.audit.charts.forest import Forest, calibration_forests
from drosurv.audit.charts.survival import survival_charts
from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.groups import EVERYONE
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation import EvaluationResult
from drosurv.presentation import Column, Table, attribute_name, label_name, plain_rows

_GROUP = (Column("group", "Group"), Column("attribute", "Attribute"))
_SHARES = (
    Column("predicted", "Predicted", "share"),
    Column("observed", "Observed", "share", ("low", "high")),
)


class Drawings(NamedTuple):
    """The drawings of one model."""

    survival: tuple[Chart, ...]
    calibration: Forest


def collect(evidence: Evidence) -> Part:
    """Curves and differences of every model."""
    return Part(
        by_model=tuple(
            (
                survival_table(result, evidence.time_unit),
                calibration_table(result, evidence.time_unit),
            )
            for result in evidence.results
        ),
        facts={"time_unit": evidence.time_unit},
    )


def calibration_table(result: EvaluationResult, time_unit: str) -> Table:
    """Predicted against observed survival at the horizons."""
    columns = (*_GROUP, _time("horizon", time_unit), *_SHARES, Column("at_risk", "At risk", "count"))
    small = {(row.attribute, row.group) for row in result.rows if row.status == "small group"}
    rows = tuple(
        {**_named(row), "note": "small" if (row["attribute"], row["group"]) in small else ""}
        for row in plain_rows(result.calibration)
    )
    caption = "Predicted less observed survival, in percentage points, at quartiles of event times"
    return Table("calibration", caption, columns, rows)


def survival_table(result: EvaluationResult, time_unit: str) -> Table:
    """Mean predicted survival and Kaplan-Meier over time, with its interval."""
    rows = tuple(map(_named, plain_rows(result.survival)))
    columns = (*_GROUP, _time("time", time_unit), *_SHARES)
    return Table("survival", "Mean predicted survival and Kaplan-Meier over time", columns, rows)


def _time(key: str, unit: str) -> Column:
    return Column(key, f"Time ({unit})" if unit else "Time", "time")


def draw(part: Part) -> list[Drawings]:
    """Curves and forest of every model."""
    unit = part.facts["time_unit"]
    curves = [survival_charts(survival, unit) for survival, _ in part.by_model]
    forests = calibration_forests([calibration for _, calibration in part.by_model], unit)
    return [Drawings(*drawings) for drawings in zip(curves, forests, strict=True)]


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """The row, with the words that readers see for its group."""
    attribute, group = row["attribute"], row["group"]
    if attribute == "overall":
        return {**row, "attribute": "", "group": EVERYONE}
    return {**row, "attribute": attribute_name(attribute), "group": label_name(attribute, group)}


SECTION = Section(
    key="calibration",
    heading="Do the predictions come true?",
    place=30,
    collect=collect,
    draw=draw,
    template="""
{% call m.section_head(section) %}
<p>Survival that the model predicts, beside what was observed, in each group.
<span class="key model">mean prediction</span>
<span class="key observed">observed (Kaplan-Meier), with its {{ report.level }} band</span></p>
{% endcall %}
<div class="body">
{% call(shown, k) m.each_model() %}
{% if not drawn[k].survival %}
  <p class="aside">The model predicts no survival curves, so calibration cannot be judged.</p>
{% else %}
  <div class="panels">
  {% for chart in drawn[k].survival %}
    {{ m.chart(chart) }}
  {% endfor %}
  </div>
  {{ m.downloads(part.of(k, "survival")) }}
  {{ m.forest(drawn[k].calibration) }}
  {{ m.downloads(part.of(k, "calibration")) }}
{% endif %}
{% endcall %}
</div>
""",
)
