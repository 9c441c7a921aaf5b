"""Sections by group: the group table with all other metrics and their gaps, and attributes with many groups.

Of many groups, such as hospitals, there are a funnel plot and ratios shrunken to their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.curves_by_group import FUNNEL_LEVELS, NEW_GROUP, funnel
from drosurv.evaluation.group_table import Row
from drosurv.evaluation.result_views import named
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    aligned,
    counted,
    listing,
    plain,
    plain_rows,
    ratio_text,
    with_interval,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark, forest
from drosurv.report.evidence import FEWEST, PATIENTS, WHO, Evidence, Part, Section, judged_counts
from drosurv.report.sections.first_section import group_rows

ENDS = ("low", "high")
# Codes of the statements of an evaluation that the verdict does not repeat.
SHOWN_STATEMENTS = ("overall", "small_groups", "hazards", "hazards_untested")
STRIPS = (
    Column.measured("ratio", "Observed / expected events", right=1.0),
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
    # The plot shows observed over expected events, with intervals adjusted for these tests. Without expected events it
    # shows c-indices, whose intervals are not adjusted.
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


def collect_many(evidence: Evidence) -> Part | None:
    """Return the ratios of the groups; None if no attribute has many."""
    found = evidence.audited.shrunken
    if not len(found):
        return None
    called, alike = evidence.audited.headings, evidence.audited.design_effects
    rows = [
        (named(row, called) if row["group"] != NEW_GROUP else row | {"attribute": called[row["attribute"]]})
        | {"design_effect": alike.get(row["attribute"], 1.0)}
        for row in plain_rows(found)
        if row["patients"] is None or row["patients"] >= FEWEST
    ]
    columns = (
        *WHO,
        PATIENTS,
        *judged_counts(evidence.audited, evidence.time_unit),
        Column("ratio", "Observed / expected", "value"),
        Column("shrunken", "Shrunken", "value", ("low", "high")),
    )
    table = Table("many_groups", "Observed over expected events of many groups", columns, tuple(rows))
    tiny = [attribute for attribute, _ in evidence.tiny_groups]
    numbers = {called[a.name]: len(a.labels) + tiny.count(a.name) for a in evidence.attributes}
    return Part(statements=tuple(_statements(rows, numbers, evidence.level)), tables=(table,))


def _by_attribute(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for attribute, own in groupby(rows, key=lambda row: str(row["attribute"])):
        yield attribute, list(own)


def _is_outside(row: dict[str, Any]) -> bool:
    """Whether a group lies outside the outer lines of the funnel plot."""
    low, high = funnel(np.array([row["expected"]]), FUNNEL_LEVELS[-1], row["design_effect"])
    return not low[0] <= row["ratio"] <= high[0]


def _statements(rows: list[dict[str, Any]], numbers: Mapping[str, int], level: float) -> Iterator[Statement]:
    for attribute, own in _by_attribute(rows):
        *groups, new = own
        outside = [row["group"] for row in groups if _is_outside(row)]
        beyond = f" Outside the outer lines: {listing(outside, 5)}." if outside else ""
        shown = counted(len(groups), "group")
        if len(groups) < numbers[attribute]:
            shown = f"{len(groups)} of {numbers[attribute]} groups; the others are too small"
        yield Statement(
            "many_groups",
            f"{attribute}: {shown}. A new group would have {ratio_text(new['low'])} to {ratio_text(new['high'])} "
            f"times the predicted events ({100 * level:g} % prediction interval).{beyond}",
            concern=bool(outside),
        )


def draw(part: Part) -> list[Chart]:
    """Return a funnel plot of each attribute."""
    return [
        funnel_chart(attribute, [row for row in rows if row["group"] != NEW_GROUP])
        for attribute, rows in _by_attribute(part.tables[0].rows)
    ]


def funnel_chart(attribute: str, rows: list[dict[str, Any]]) -> Chart:
    """Draw observed over expected events against expected events, with the limits of chance."""
    expected, alike = [row["expected"] for row in rows], rows[0]["design_effect"]
    x = Axis.over("expected events", expected, kind="count", count=5, include=(0.0,))
    highest = 1.1 * max(2.0, *(row["ratio"] for row in rows))
    y = Axis.over("observed / expected events", [0.0, highest], include=(0.0,))
    at = np.linspace(max(0.5 * min(expected), 0.2), x.high, 80)
    limits = [side for level in FUNNEL_LEVELS for side in funnel(at, level, alike)]
    lines = [
        Line(
            [(float(e), float(v) if v <= y.high else None) for e, v in zip(at, values, strict=True)],
            "control" if k < 2 else "everybody",
        )
        for k, values in enumerate(limits)
    ]
    furthest = max(rows, key=lambda row: abs(np.log(row["shrunken"])))
    return Chart(
        f"Observed over expected events by {attribute}",
        f"{len(rows)} groups. The shrunken ratio furthest from 1 is that of {furthest['group']}: {_ratio(furthest)}.",
        Frame(x, y, width=560, height=356, top=32, bottom=52),
        lines=(Line([(x.low, 1.0), (x.high, 1.0)], "path"), *lines),
        marks=tuple(
            Mark(
                row["expected"],
                row["ratio"],
                f"{row['group']}: {written(row['observed'], 'count')} events, {written(row['expected'], 'time')} "
                f"expected; shrunken {_ratio(row)}",
                role="part named" if _is_outside(row) else "part",
                label=row["group"] if _is_outside(row) else "",
                drawn=True,
            )
            for row in rows
        ),
        nearest="point",
    )


def _ratio(row: dict[str, Any]) -> str:
    return with_interval(row["shrunken"], row["low"], row["high"])


MANY_GROUPS = Section(
    key="many_groups",
    heading="Many groups, such as hospitals",
    place=31,
    collect=collect_many,
    draw=draw,
    intro="""
<p>Funnel plot: each dot is a group. If the model is right, 95 % of the groups lie between the dotted lines and 99.8 %
between the full lines; groups with few events vary more.</p>
<p>The ratios in the table are shrunken towards the mean of all groups (random effects): the fewer events a group has,
the more.</p>
""",
    template="""
{% for statement in part.statements %}<p class="lead">{{ statement.text }}</p>{% endfor %}
{% for each in drawn %}{{ m.chart(each) }}{% endfor %}
{{ m.folded(part.tables[0]) }}
""",
)
