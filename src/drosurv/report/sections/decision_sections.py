"""The section on decision curves: net benefit of treating by the model, in each group."""

from __future__ import annotations

from typing import Any

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.curves_by_group import MANY_GROUPS
from drosurv.evaluation.result_views import named
from drosurv.presentation import (
    Column,
    Table,
    group_name,
    moment,
    plain,
    plain_rows,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark
from drosurv.report.evidence import Evidence
from drosurv.report.section import Part, Section

_READINGS = 24


def collect(evidence: Evidence) -> Part | None:
    """Return the curves of every model, and a table of the threshold, if one is given."""
    if not len(evidence.audited.decision_curves):
        return None
    tables = []
    for result in evidence.results:
        curves = curve_table(result, evidence.time_unit)
        marked = tuple(row for row in curves.rows if row["threshold"] == result.settings.threshold)
        columns = tuple(column for column in curves.columns if column.key != "threshold")
        at = written(result.settings.threshold, "share")
        tables.append((curves, Table("at_threshold", f"If treated from a risk of {at}", columns, marked)))
    return Part(by_model=tuple(tables), facts={"threshold": plain(evidence.audited.settings.threshold)})


def _shown(result: EvaluationResult) -> list[dict[str, Any]]:
    """Return rows of everybody and of the judged groups of attributes with few groups."""
    judged = {(row["attribute"], row["group"]) for row in plain_rows(result.groups) if row["judged"]}
    counts = result.groups["attribute"].value_counts()
    return [
        row
        for row in plain_rows(result.decision_curves.dropna(subset="net_benefit"))
        if (row["attribute"], row["group"]) in judged | {(EVERYONE, "all")}
        and counts.get(row["attribute"], 0) <= MANY_GROUPS
    ]


def curve_table(result: EvaluationResult, time_unit: str) -> Table:
    """Return net benefit by group and threshold."""
    columns = (
        Column("group", "Group"),
        Column("attribute", "Attribute"),
        Column("threshold", "Treated from a risk of", "share"),
        Column("net_benefit", "Net benefit of the model", "value", ("low", "high")),
        Column("treat_all", "Of treating everybody", "value"),
        Column("avoided_per_100", "Treatments avoided per 100", "time"),
    )
    when = moment(result.settings.horizon, time_unit)
    rows = tuple(named(row, result.headings) for row in _shown(result))
    return Table("decision_curves", f"Net benefit by risk at {when} from which one treats", columns, rows)


def draw(part: Part) -> list[tuple[Chart, ...]]:
    """Return the curves of every model, one small chart per group."""
    return [decision_charts(table, part.facts["threshold"]) for table, _ in part.by_model]


def decision_charts(table: Table, threshold: float | None) -> tuple[Chart, ...]:
    """Draw net benefit against the threshold, one small chart per group, all on the same axes."""
    rows = table.rows
    x = Axis.over(
        "risk at which one would treat", [row["threshold"] for row in rows], kind="share", include=(0.0,)
    )
    top = max(
        [row[key] for row in rows for key in ("net_benefit", "treat_all", "high") if row[key]], default=0.1
    )
    y = Axis.over("benefit", [-0.25 * top, top], count=4)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["attribute"], row["group"]), []).append(row)
    return tuple(_chart(Frame(x, y), *who, own, threshold) for who, own in groups.items())


def _chart(
    frame: Frame, attribute: str, group: str, rows: list[dict[str, Any]], threshold: float | None
) -> Chart:
    low = frame.y.low
    # Treating everybody has large negative values at high thresholds, where the line ends.
    everybody = [(row["threshold"], row["treat_all"] if row["treat_all"] > low else None) for row in rows]
    band = [(row["threshold"], row["low"], row["high"]) for row in rows if row["low"] is not None]
    above = [row for row in rows if row["net_benefit"] > max(row["treat_all"], 0.0) + 1e-9]
    best = (
        f"Treating by the model has the most benefit from {written(above[0]['threshold'], 'share')} to "
        f"{written(above[-1]['threshold'], 'share')}."
        if above
        else "Treating by the model never has the most benefit."
    )
    marked = (
        [Line([(threshold, low), (threshold, frame.y.high)], "threshold")] if threshold is not None else []
    )
    return Chart(
        group_name(attribute, group) if attribute else group,
        best,
        frame,
        lines=(
            Line([(frame.x.low, 0.0), (frame.x.high, 0.0)], "control"),
            Line(everybody, "everybody"),
            *marked,
            Line([(row["threshold"], row["net_benefit"]) for row in rows], "model"),
        ),
        bands=(band,),
        marks=tuple(
            Mark(row["threshold"], row["net_benefit"], _reading(row))
            for row in rows[:: max(1, len(rows) // _READINGS)]
        ),
    )


def _reading(row: dict[str, Any]) -> str:
    avoided = f"{written(row['avoided_per_100'], 'time')} treatments avoided per 100"
    return f"from {written(row['threshold'], 'share')}: benefit {written(row['net_benefit'])}; {avoided}"


SECTION = Section(
    key="decision_curves",
    heading="Would treating by the model help?",
    place=32,
    collect=collect,
    draw=draw,
    intro="""
<p>Net benefit if those are treated whose predicted risk is at least a threshold: true positives per patient, less
false positives weighted by the odds of the threshold. Whoever would treat from a risk of 10 % accepts nine needless
treatments for one that is needed.</p>
<p><span class="key model">treat by the model, with a {{ report.level }} band for the whole curve</span>
<span class="key everybody">treat everybody</span> The dotted line at 0 is treating nobody.{% if part.facts.threshold %}
The dashed line is the given threshold.{% endif %}</p>
""",
    template="""
{% call(shown, k) m.each_model() %}
  {{ m.panels(drawn[k]) }}
  {{ m.downloads(part.table("decision_curves", k)) }}
  {% set marked = part.table("at_threshold", k) %}
  {% if marked | length %}{{ m.plain_table(marked, below=true) }}{% endif %}
{% endcall %}
""",
)
