"""Do predicted probabilities come true in each group: curves, and differences at a few times."""

from __future__ import annotations

from typing import Any, NamedTuple

from drosurv.audit.charts.chart import Chart
from drosurv.audit.charts.forest import Forest, calibration_forests
from drosurv.audit.charts.survival import survival_charts
from drosurv.audit.evidence import FEWEST, Evidence
from drosurv.audit.sections.section import Part, Section, named, time_column
from drosurv.evaluation import EvaluationResult
from drosurv.presentation import Column, Table, plain_rows

_GROUP = (Column("group", "Group"), Column("attribute", "Attribute"))
_SHARES = (
    Column("predicted", "Predicted", "share"),
    Column("observed", "Observed", "share", ("low", "high")),
)
_AT_RISK = Column("at_risk", "At risk", "count")


class Drawings(NamedTuple):
    """The drawings of one model."""

    survival: tuple[Chart, ...]
    calibration: Forest


def collect(evidence: Evidence) -> Part:
    """Curves and differences of every model."""
    return Part(
        by_model=tuple(
            (survival_table(result, evidence.time_unit), calibration_table(result, evidence))
            for result in evidence.results
        ),
        facts={"time_unit": evidence.time_unit},
    )


def calibration_table(result: EvaluationResult, evidence: Evidence) -> Table:
    """Predicted against observed survival at the horizons."""
    columns = (*_GROUP, time_column("horizon", evidence.time_unit), *_SHARES, _AT_RISK)

    def told(row: dict[str, Any]) -> dict[str, Any]:
        key = row["attribute"], row["group"]
        return row | named(*key) | {"note": "small group" if key in result.small_groups else ""}

    rows = tuple(map(told, plain_rows(result.calibration)))
    at = (
        "quartiles of event times"
        if evidence.horizons is None
        else "predicted times near quartiles of event times"
    )
    caption = f"Predicted less observed survival, in percentage points, at {at}"
    return Table("calibration", caption, columns, rows)


def survival_table(result: EvaluationResult, time_unit: str) -> Table:
    """Mean predicted survival and Kaplan-Meier over time, with its interval, for as long as enough are observed.

    The last few patients would draw a curve that falls to 0 with none of the doubt that it is in.
    """
    unknown = {"observed": None, "low": None, "high": None}
    rows = tuple(
        row | named(row["attribute"], row["group"]) | (unknown if row["at_risk"] < FEWEST else {})
        for row in plain_rows(result.survival)
    )
    columns = (*_GROUP, time_column("time", time_unit), *_SHARES, _AT_RISK)
    return Table("survival", "Mean predicted survival and Kaplan-Meier over time", columns, rows)


def draw(part: Part) -> list[Drawings]:
    """Curves and forest of every model."""
    unit = part.facts["time_unit"]
    curves = [survival_charts(survival, unit) for survival, _ in part.by_model]
    forests = calibration_forests([calibration for _, calibration in part.by_model], unit)
    return [Drawings(*drawings) for drawings in zip(curves, forests, strict=True)]


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
<span class="key observed">observed (Kaplan-Meier), with its {{ report.level }} band, while at least five patients are
observed</span> Bars of differences are the interval of the observed alone, group by group; the sentences under By group
judge the difference, and allow for all groups.</p>
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
