"""The patients: a table of their characteristics by group, beside the training patients, and Kaplan-Meier curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from drosurv.audit.charts import Axis, Chart, Frame, Line, Mark, steps
from drosurv.audit.evidence import FEWEST, Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation.attributes import Attribute
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.presentation import Column, Table, label_name, moment, plain, written
from drosurv.repairs.rules import readable_table
from drosurv.target import BoolArray, Target, parse_target

# Columns and levels of a table that are shown, and groups that a chart can tell apart.
_MOST_COLUMNS = 15
_MOST_LEVELS = 6
_MOST_CURVES = 6
_TIMES_AT_RISK = 5
ALL, TRAINING = "all", "training"


def collect(evidence: Evidence) -> Part:
    """Return a table of characteristics and one of Kaplan-Meier curves for every attribute."""
    attributes: list[Attribute | None] = [*evidence.attributes] or [None]
    tables = [table for a in attributes for table in (_characteristics(evidence, a), _curves(evidence, a))]
    return Part(tables=tuple(tables), facts={"time_unit": evidence.time_unit})


def _members(evidence: Evidence, attribute: Attribute | None) -> dict[str, BoolArray]:
    """Name of each group to a mask of its patients, all audited patients first."""
    everybody = {ALL: np.ones(len(evidence.target), dtype=bool)}
    if attribute is None:
        return everybody
    masks = {
        label_name(attribute.name, label): np.isin(np.arange(len(evidence.target)), rows)
        for (_, label), rows in evidence.rows_of(attribute).items()
    }
    return everybody | masks


def _characteristics(evidence: Evidence, attribute: Attribute | None) -> Table:
    groups, unit = _members(evidence, attribute), evidence.time_unit
    table = None if evidence.features is None else readable_table(evidence.features, len(evidence.target))
    rows: list[dict[str, Any]] = [
        {"name": "Patients"} | {g: written(int(m.sum()), "count") for g, m in groups.items()},
        {"name": "Events"} | {g: _events(evidence.target, m) for g, m in groups.items()},
        {"name": "Median follow-up"} | {g: _follow_up(evidence.target, m, unit) for g, m in groups.items()},
    ]
    before = _training(evidence)
    for row in rows:
        row[TRAINING] = before.get(row["name"])
    if table is not None:
        trained = evidence.features_train
        for column in table.columns[:_MOST_COLUMNS]:
            then = trained[column] if trained is not None and column in trained else None
            rows += _of_column(table[column], groups, then)
    columns = [
        Column("name", "Characteristic"),
        *(Column(g, "All audited" if g == ALL else g) for g in groups),
    ]
    if any(row.get(TRAINING) for row in rows):
        columns.append(Column(TRAINING, "Training"))
    by = "" if attribute is None else f", by {evidence.audited.headings[attribute.name]}"
    key = "patients" if attribute is None else f"patients {attribute.name}"
    return Table(key, f"Characteristics of the patients{by}", tuple(columns), tuple(rows))


def _training(evidence: Evidence) -> dict[str, str]:
    """What is known of the training patients as a whole."""
    known = {"Patients trained on": "Patients", "Events trained on": "Events"}
    found = {name: str(evidence.data[fact]) for fact, name in known.items() if fact in evidence.data}
    y = evidence.follow_up
    if getattr(getattr(y, "dtype", None), "names", None) is not None:
        target = parse_target(y)
        everybody = np.ones(len(target), dtype=bool)
        found |= {"Patients": written(len(target), "count"), "Events": _events(target, everybody)}
        found["Median follow-up"] = _follow_up(target, everybody, evidence.time_unit)
    return found


def _events(target: Target, members: BoolArray) -> str:
    events, patients = int(target.event[members].sum()), int(members.sum())
    return f"{events:,} ({written(events / max(patients, 1), 'share')})"


def _follow_up(target: Target, members: BoolArray, unit: str) -> str:
    """Median time to censoring, by reverse Kaplan-Meier."""
    _, censoring = KaplanMeier.both(target.take(np.flatnonzero(members)))
    reached = np.flatnonzero(censoring.survival <= 0.5)
    return moment(float(censoring.times[reached[0]]), unit) if len(reached) else "not reached"


def _of_column(
    column: pd.Series[Any], groups: dict[str, BoolArray], trained: pd.Series[Any] | None
) -> Iterator[dict[str, Any]]:
    """Mean and standard deviation of numbers, shares of levels, and how many values are missing."""

    def row(name: str, told: Callable[[pd.Series[Any]], str]) -> dict[str, Any]:
        found = {g: told(column[m]) for g, m in groups.items()}
        return {"name": name, **found, TRAINING: None if trained is None else told(trained)}

    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        yield row(f"{column.name}, mean (SD)", _mean)
    else:
        for level in column.dropna().value_counts().index[:_MOST_LEVELS]:
            yield row(f"{column.name} = {level}", partial(_of_level, level))
    if column.isna().any() or (trained is not None and trained.isna().any()):
        yield row(f"{column.name}, missing", lambda values: _share(values.isna()))


def _of_level(level: Any, values: pd.Series[Any]) -> str:
    return _share(values == level)


def _mean(values: pd.Series[Any]) -> str:
    known = values.dropna().astype(float)
    return "–" if known.empty else f"{known.mean():.4g} ({known.std(ddof=0):.3g})"


def _share(hits: pd.Series[Any]) -> str:
    count = int(hits.sum())
    # Whom so few patients are could be recognised.
    return (
        f"under {FEWEST}"
        if 0 < count < FEWEST
        else f"{count:,} ({written(count / max(len(hits), 1), 'share')})"
    )


def _curves(evidence: Evidence, attribute: Attribute | None) -> Table:
    """Steps of the Kaplan-Meier curves of all groups, while enough patients are at risk."""
    groups = _members(evidence, attribute)
    if len(groups) > 1:
        groups.pop(ALL)
    rows = []
    for name, members in groups.items():
        curve = KaplanMeier.of(evidence.target.take(np.flatnonzero(members)))
        shown = curve.at_risk >= FEWEST
        rows.append({"group": name, "time": 0.0, "survival": 1.0, "at_risk": int(members.sum())})
        for time, survival, at_risk in zip(
            curve.times[shown], curve.survival[shown], curve.at_risk[shown], strict=True
        ):
            rows.append(
                {"group": name, "time": plain(time), "survival": plain(survival), "at_risk": int(at_risk)}
            )
    columns = (
        Column("group", "Group"),
        Column("time", f"Time ({evidence.time_unit})" if evidence.time_unit else "Time", "time"),
        Column("survival", "Kaplan-Meier survival", "share"),
        Column("at_risk", "At risk", "count"),
    )
    key = "kaplan_meier" if attribute is None else f"kaplan_meier {attribute.name}"
    by = "" if attribute is None else f" by {evidence.audited.headings[attribute.name]}"
    return Table(key, f"Observed survival{by}", columns, tuple(rows))


def draw(part: Part) -> list[tuple[Table, Chart, Table, Table]]:
    """Return, for every attribute: characteristics, Kaplan-Meier chart, numbers at risk, and the curves as a table."""
    pairs = zip(part.tables[::2], part.tables[1::2], strict=True)
    return [(patients, *_chart(curves, part.facts["time_unit"]), curves) for patients, curves in pairs]


def _chart(curves: Table, unit: str) -> tuple[Chart, Table]:
    by_group: dict[str, list[dict[str, Any]]] = {}
    for row in curves.rows:
        by_group.setdefault(row["group"], []).append(row)
    times = [row["time"] for row in curves.rows]
    x = Axis.over(unit or "time", times, kind="time", count=_TIMES_AT_RISK, include=(0.0,), margin=0.0)
    y = Axis.over("free of the event", [], kind="share", count=4, include=(0.0, 1.0))
    drawn = dict(list(by_group.items())[:_MOST_CURVES])
    chart = Chart(
        curves.caption,
        "Kaplan-Meier curves of all groups; the table below has the numbers at risk.",
        Frame(x, y, width=640, height=320),
        lines=tuple(
            Line(steps([(row["time"], row["survival"]) for row in rows]), f"group-{k}", name)
            for k, (name, rows) in enumerate(drawn.items(), start=1)
        ),
        marks=tuple(
            Mark(
                row["time"],
                row["survival"],
                f"{name}, {moment(row['time'], unit)}: {written(row['survival'], 'share')}, {row['at_risk']:,} at risk",
            )
            for name, rows in drawn.items()
            for row in rows[:: max(1, len(rows) // 12)]
        ),
        nearest="point",
    )
    ticks = [tick for tick in x.ticks if tick.value <= x.high]
    at_risk = [
        {"group": name, **{tick.label: _at_risk(rows, tick.value) for tick in ticks}}
        for name, rows in drawn.items()
    ]
    columns = (
        Column("group", "Number at risk"),
        *(Column(tick.label, tick.label, "count") for tick in ticks),
    )
    return chart, Table("at_risk", "", columns, tuple(at_risk))


def _at_risk(rows: list[dict[str, Any]], time: float) -> int | None:
    """Patients at risk just before a time; None once fewer than five are."""
    later = [row["at_risk"] for row in rows if row["time"] >= time]
    return later[0] if later else None


SECTION = Section(
    key="patients",
    heading="Patients",
    place=15,
    collect=collect,
    draw=draw,
    intro="""
<p>Who was audited, group by group{% if "Training" in part.tables[0].header %}, beside the training patients{% endif %}.
Follow-up is the median time to censoring (reverse Kaplan-Meier). Curves are shown while at least five patients are at
risk.</p>
""",
    template="""
{% for patients, chart, at_risk, curves in drawn %}
{% if loop.first %}{{ m.plain_table(patients) }}{% else %}{{ m.folded(patients) }}{% endif %}
{{ m.chart(chart) }}
{{ m.risk_table(at_risk) }}
{{ m.downloads(curves) }}
{% endfor %}
""",
)
