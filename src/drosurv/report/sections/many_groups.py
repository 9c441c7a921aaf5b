"""The section on attributes with many groups, such as hospitals: a funnel plot, and ratios shrunken to their mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np

from drosurv.evaluation.curves_by_group import FUNNEL_LEVELS, NEW_GROUP, funnel
from drosurv.evaluation.result_views import named
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    counted,
    listing,
    plain_rows,
    ratio_text,
    with_interval,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark
from drosurv.report.evidence import FEWEST, PATIENTS, WHO, Evidence, Part, Section, judged_counts


def collect(evidence: Evidence) -> Part | None:
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


SECTION = Section(
    key="many_groups",
    heading="Many groups, such as hospitals",
    place=31,
    collect=collect,
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
