"""Comparison of the models: accuracy, fairness, and what smaller log risks of the reference alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.result_views import shrinkage_table
from drosurv.presentation import Column, Table, first_upper, plain
from drosurv.report.alpha_path import Stop
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark, Points
from drosurv.report.evidence import Evidence
from drosurv.report.section import Part, Section

OVERALL = ("concordance_index", "integrated_brier_score", "share_of_gain", "calibration_slope")
C_INDEX = Column.measured("concordance_index", "c-index")
KEPT = Column.measured("share_of_gain", "share of the reference's likelihood gain", "share")
# Points closer than this share of the drawing look like one.
_APART = 0.03
Row = dict[str, Any]


def gap_of(attribute: str) -> Column:
    """Return the column of concordance imparity of an attribute's groups."""
    return Column.measured(f"imparity {attribute}", "concordance imparity")


def disparity_of(attribute: str) -> Column:
    """Return the column of the group disparity of risk."""
    return Column.measured(f"group_disparity {attribute}", "group disparity of risk")


def collect(evidence: Evidence) -> Part | None:
    """Return a row per model, the shrinkage control, and disparities of each model; None without a comparison."""
    if len(evidence.stops) == 1 and not evidence.is_compared:
        return None
    called, reference = evidence.audited.headings, evidence.page.reference_name
    rows = tuple(map(_row, evidence.stops, evidence.results))
    gaps = [replace(gap_of(name), label=f"{gap_of(name).label}, {title}") for name, title in called.items()]
    kept = [KEPT] if any(KEPT.key in row for row in rows) else []
    columns = (Column("model", "Model"), C_INDEX, *gaps, *kept)
    return Part(
        tables=(
            Table("trade_off", "Comparison of the models", columns, rows),
            *_control(evidence.audited, reference),
        ),
        by_model=tuple((shrinkage_table(result, reference),) for result in evidence.results),
        facts={"attributes": called},
    )


def _row(stop: Stop, result: EvaluationResult) -> Row:
    numbers = [
        *(
            (Column.measured(metric, ""), row)
            for metric in OVERALL
            for row in result.select(metric=metric, kind="overall")
        ),
        *((gap_of(row.attribute), row) for row in result.gaps("concordance_imparity")),
        *((disparity_of(row.attribute), row) for row in result.gaps("group_disparity")),
    ]
    found: Row = {"model": stop.name, "alpha": stop.alpha}
    for column, row in numbers:
        found |= dict(zip(column.keys, map(plain, (row.value, row.low, row.high)), strict=True))
    return found


def _control(result: EvaluationResult, reference: str) -> list[Table]:
    """Return likelihood gain and disparities of the reference with its log risks multiplied by factors."""
    if result.control is None:
        return []
    disparities = [
        Column(disparity_of(name).key, f"group disparity, {title}", "value")
        for name, title in result.headings.items()
        if disparity_of(name).key in result.control.curve
    ]
    columns = (Column("factor", "Factor", "value"), replace(KEPT, interval=None), *disparities)
    caption = f"{first_upper(reference)}, its log risks multiplied by a factor"
    return [Table.of("control", caption, columns, result.control.curve)]


def draw(part: Part) -> list[Chart]:
    """Draw, for every attribute, ranking against the concordance gap, and the gain against the disparity of risk.

    Charts in which all models are at one point are left out.
    """
    models, control = part.tables[0].rows, part.table("control")
    charts = []
    for name, called in part.facts["attributes"].items():
        title = f"{called}: likelihood gain, and disparity of risk"
        shrunk = () if control is None else control.rows
        charts.append(_chart(models, gap_of(name), C_INDEX, f"{called}: ranking, and its gap", ()))
        charts.append(_chart(models, disparity_of(name), KEPT, title, shrunk))
    return [chart for chart in charts if chart.marks and _spread(chart)]


def _chart(models: Sequence[Row], across: Column, up: Column, title: str, shrunk: Sequence[Row]) -> Chart:
    def known(row: Row) -> bool:
        return row.get(across.key) is not None and row.get(up.key) is not None

    points = [(stop, row) for stop, row in enumerate(models) if known(row)]
    rows, line = [row for _, row in points], list(filter(known, shrunk))
    # Axes cover the intervals: otherwise small differences would look large.
    x, y = (
        Axis.over(title, [row.get(key) for row in [*rows, *line] for key in column.keys], kind=column.kind)
        for title, column in ((f"{across.label} →", across), (str(up.label), up))
    )
    frame = Frame(x, y, width=360, height=290, left=56, top=34, bottom=46)
    path = Line([(row[across.key], row[up.key]) for row in rows if row["alpha"] is not None], "path")
    marks = tuple(
        Mark(
            row[across.key],
            row[up.key],
            f"{row['model']}: {up.label} {up.cell(row)}; {across.label} {across.cell(row)}",
            role="path",
            label="audited" if row["alpha"] is None else f"{row['alpha']:g}",
            stop=stop,
            drawn=True,
            reach=_reach(row, across, up),
        )
        for stop, row in points
    )
    description = ""
    if rows:
        best, fairest = max(rows, key=lambda row: row[up.key]), min(rows, key=lambda row: row[across.key])
        description = f"Highest {up.label}: {best['model']}. Lowest {across.label}: {fairest['model']}."
    control = [Line([(row[across.key], row[up.key]) for row in line], "control")] if line else []
    return Chart(title, description, frame, lines=(*control, path), marks=marks, nearest="point")


def _spread(chart: Chart) -> bool:
    """Whether a chart shows more than one dot: points that differ, or the line of the shrinkage control."""
    if any(line.role == "control" for line in chart.lines):
        return True
    frame = chart.frame
    xs, ys = [frame.across(mark.x) for mark in chart.marks], [frame.down(mark.y) for mark in chart.marks]
    return max(xs) - min(xs) > _APART * frame.width or max(ys) - min(ys) > _APART * frame.height


def _reach(row: Row, across: Column, up: Column) -> list[Points]:
    """Return the intervals of a point in both directions, where they are known."""
    level = [(row[key], row[up.key]) for key in across.interval or () if row.get(key) is not None]
    upright = [(row[across.key], row[key]) for key in up.interval or () if row.get(key) is not None]
    return [points for points in (level, upright) if points]


SECTION = Section(
    key="trade-off",
    heading="Accuracy against fairness",
    place=50,
    folded="Disparities of risk (F_I, F_G, F_cap) beside accuracy, as in the paper",
    collect=collect,
    draw=draw,
    intro="""
{% set control = part.table("control") %}
{% if report.models | length > 1 %}
<p>Alpha is the smallest share of patients that training protects. One point per model; the one shown is filled, with
its {{ report.level }} intervals.</p>
{% else %}
<p>Accuracy and fairness of the model{% if control %}, and of a reference with smaller log risks{% endif %}.</p>
{% endif %}
{% if control %}
<p><span class="key control">{{ control.caption }} below one: only a model to the left of this line has less disparity
than smaller log risks alone would give</span></p>
{% endif %}
""",
    template="""
{% set control = part.table("control") %}
{% set trade_off = part.table("trade_off") %}
{% if drawn %}
{{ m.panels(drawn) }}
{% else %}
<p>The models do not differ visibly.</p>
{% endif %}
{% if report.models | length > 1 %}{{ m.folded(trade_off, below=true) }}{% endif %}
{% call(shown, k) m.each_model() %}
  {% set shrinkage = part.table("shrinkage", k) %}
  {% if shrinkage | length %}<h3>Disparities at the same likelihood gain</h3>{{ m.plain_table(shrinkage) }}{% endif %}
{% endcall %}
{% if control %}{{ m.folded(control, name=control.caption) }}{% endif %}
""",
)
