"""The page of a model in use: alarms, counts, one chart for everybody and each group, and what an alarm means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from drosurv._version import __version__
from drosurv.evaluation.evaluator import whose
from drosurv.files import write_file
from drosurv.monitoring.counts import days
from drosurv.patients.groups import EVERYONE
from drosurv.patients.target import FloatArray
from drosurv.presentation import (
    DAYS,
    Column,
    Statement,
    Table,
    counted,
    first_upper,
    listing,
    plain,
    with_interval,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark, Tick
from drosurv.report.evidence import Part, Section
from drosurv.report.report import page_of

# A drosurv.monitoring.Monitoring, whose method to_html imports this file.
Monitoring: TypeAlias = Any
# Ratios with a label on the axis; the axis reaches from the first to the last.
_TICKS = (0.25, 0.5, 1.0, 2.0, 4.0)
# Most points of a chart: of daily looks some are left out.
_MOST_POINTS = 150
_COLUMNS = (
    Column("name", "Group"),
    Column("alarm", "Alarm"),
    Column("patients", "Patients", "count"),
    Column("events", "Events", "count"),
    Column("expected", "Expected", "time"),
    Column("ratio", "Events / expected", "value", ("low", "high")),
)


def monitoring_page(found: Monitoring, path: str | os.PathLike[str] | None, title: str) -> str:
    """Return the page, which needs no other file; also write it to `path` if given."""
    table, changes = _latest(found), _changes(found)
    series = found.latest[["attribute", "group"]].astype(str).to_numpy().tolist()
    parts = {
        "verdict": Part(
            statements=tuple(Statement("alarm", text) for text in _statements(found)),
            tables=(table, *((changes,) if len(changes) else ())),
            # A change is no alarm, but a reason to look.
            facts={
                "status": "miscalibrated" if len(found.alarms) else "" if len(found.changes) else "clear",
                "notes": list(map(first_upper, found.notes)),
            },
        ),
        "charts": Part(facts={"charts": [_chart(found, *who) for who in series]}),
        "meaning": Part(facts={"meaning": _meaning(found)}),
    }
    everybody = found.series(EVERYONE, found.path["group"].iloc[0])
    first, last = (found.date(everybody["date"].iloc[k]) for k in (0, -1))
    counts = everybody.iloc[-1]
    content = {
        **found.to_dict(),
        "tables": {table.key: table.to_dict(), changes.key: changes.to_dict()},
    }
    page = SimpleNamespace(
        kind="Monitoring of a survival model",
        title=title,
        subtitle=f"{counted(int(counts['patients']), 'patient')} with {counted(int(counts['events']), 'event')}"
        f"{f' of {found.of}' if found.of else ''}, {counted(len(everybody), 'look')} from {first} to {last}.",
        created=date.today().isoformat(),
        version=__version__,
        to_dict=lambda: content,
    )
    text = page_of(page, [(section, parts[section.key]) for section in SECTIONS])
    if path is not None:
        write_file(path, text)
    return text


def _statements(found: Monitoring) -> list[str]:
    """Return the headline, alarms and changes, and what cannot be excluded."""
    wrong, changed = (
        list(dict.fromkeys(map(whose, table["attribute"], table["group"])))
        for table in (found.alarms, found.changes)
    )
    # Where a model is wrong from the beginning, it also is lately.
    lately = listing([name for name in changed if name not in wrong])
    headline = [f"The numbers of events differ from the predictions for {listing(wrong)}."] if wrong else []
    if lately:
        headline.append(
            f"{'They' if wrong else 'No alarm, but events'} may have changed lately for {lately}."
        )
    return [*([" ".join(headline)] if headline else ()), *found.sentences, found.excluded]


def _name(attribute: str, group: str) -> str:
    return whose(attribute, group, "Everybody")


def _latest(found: Monitoring) -> Table:
    """Return the table of the latest counts."""
    first = found.alarms.groupby(["attribute", "group"])["date"].min().to_dict()
    rows = []
    for row in found.latest.to_dict("records"):
        key = row["attribute"], row["group"]
        alarm = found.date(first[key]) if key in first else "none"
        name = _name(*key)
        rows.append(
            {**plain({str(k): v for k, v in row.items() if k != "date"}), "name": name, "alarm": alarm}
        )
    caption = "Counts at the last look, with intervals that hold at all dates"
    return Table("latest", caption, _COLUMNS, tuple(rows))


def _changes(found: Monitoring) -> Table:
    """Return the table of recent changes."""
    columns = (
        Column("date", "Found on"),
        Column("name", "Group"),
        Column("since", "Counted since"),
        Column("events", "Events", "count"),
        Column("expected", "Expected", "time"),
        Column("ratio", "Ratio", "value"),
    )
    rows = [
        {**row, "name": _name(row["attribute"], row["group"])}
        for row in found.with_text(found.changes).to_dict("records")
    ]
    return Table("changes", "Recent changes", columns, tuple(plain(rows)))


def _chart(found: Monitoring, attribute: str, group: str) -> Chart:
    """Return the chart of observed over expected events of a group over calendar time."""
    part = found.series(attribute, group)
    alarms, changes = (
        table.loc[(table["attribute"] == attribute) & (table["group"] == group), "date"]
        for table in (found.alarms, found.changes)
    )
    # What happened at a date; an alarm where both did.
    marked = {**dict.fromkeys(changes, "change"), **dict.fromkeys(alarms, "alarm")}
    kept = np.unique(np.linspace(0, len(part) - 1, _MOST_POINTS).round().astype(int))
    shown = part.iloc[np.union1d(kept, np.flatnonzero(part["date"].isin(list(marked))))]
    place = _places(found, shown["date"])
    rows = shown.assign(place=place).to_dict("records")
    span = _places(found, found.path["date"])
    x = _time_axis(found, float(span.min()), float(span.max()))
    y = Axis(
        "events observed / expected",
        float(np.log(_TICKS[0])),
        float(np.log(_TICKS[-1])),
        tuple(Tick(float(np.log(value)), f"{value:g}") for value in _TICKS),
    )
    edges = [np.log(found.tolerance), -np.log(found.tolerance)] if found.tolerance > 1 else [0.0]
    lines = [Line([(x.low, float(edge)), (x.high, float(edge))], "control") for edge in edges]
    lines.append(
        Line([(row["place"], _log(row["ratio"]) if row["events"] else None) for row in rows], "model")
    )
    marks = tuple(
        Mark(
            row["place"],
            _log(row["ratio"]) or 0.0,
            _text(found, row, what := marked.get(row["date"], "")),
            label=what,
            drawn=what != "",
        )
        for row in rows
    )
    description = (
        f"{'Alarm' if len(alarms) else 'No alarm'}, {counted(len(changes), 'recent change')}. "
        f"At the last look, {_text(found, part.iloc[-1].to_dict(), '')}."
    )
    band = [(row["place"], _log(row["low"]), _log(row["high"])) for row in rows]
    return Chart(_name(attribute, group), description, Frame(x, y), tuple(lines), (band,), marks)


def _log(ratio: float) -> float | None:
    """Return the logarithm of a ratio, within the axis; None if it is not known."""
    if np.isnan(ratio):
        return None
    return float(np.log(np.clip(ratio, _TICKS[0], _TICKS[-1])))


def _text(found: Monitoring, row: Mapping[Any, Any], what: str) -> str:
    """Return what is shown when the reader points at a look."""
    ratio = with_interval(*(plain(row[key]) for key in ("ratio", "low", "high")))
    counts = f"{int(row['events']):,} events, {row['expected']:.1f} expected, {ratio}"
    return f"{found.date(row['date'])}{f', {what}' if what else ''}: {counts}"


def _places(found: Monitoring, dates: pd.Series[Any]) -> FloatArray:
    """Return dates as years, or numbers as they are."""
    if not found.calendar.dated:
        return dates.to_numpy(dtype=np.float64)
    return 1970 + days(dates) / DAYS["years"]


def _time_axis(found: Monitoring, low: float, high: float) -> Axis:
    high = max(high, low + 1e-6)
    if not found.calendar.dated:
        return Axis.over("time", [low, high], kind="time", margin=0.0)
    step = max(1, -(-int(np.ceil(high - low)) // 6))
    years = [year for year in range(int(np.floor(low)), int(np.ceil(high)) + 1) if low <= year <= high]
    ticks = tuple(Tick(float(year), str(year)) for year in years[::step])
    return Axis("", low, high, ticks)


def _meaning(found: Monitoring) -> list[str]:
    """Return what an alarm means, and what is assumed."""
    percent = f"{100 * found.alpha:g} %"
    tolerated = (
        f"between {1 / found.tolerance:.2f} and {found.tolerance:.2f}"
        if found.tolerance > 1
        else "equal to 1"
    )
    lag = ""
    if found.lag:
        unit = " days" if found.calendar.dated else ""
        lag = f" Outcomes of the last {found.lag:g}{unit} before each look are not counted: they are not complete."
    return [
        f"An alarm means that the ratio of true to predicted hazards is not {tolerated}. If it is, the "
        f"probability that there is ever an alarm is at most {percent}, for everybody and all groups together and "
        "however often one looks. The bands hold at all dates together in the same sense.",
        "A recent change is no alarm: it is looked for by counting events from later dates on, with less certainty. If "
        "the model is right, one is found at most every 20 years on average"
        f"{'' if found.calendar.dated else ', if each starting point is a month'}, over all groups.",
        "After an alarm: check first whether the data changed (definitions, units, completeness of outcomes), then "
        "audit the model on the recent patients, and recalibrate, repair or refit it.",
        "Assumed: patients are independent of each other, and those who are lost are like those who stay, given the "
        "features; outcomes are complete until each "
        f"look less the lag; the model's predictions do not change treatment.{lag}",
        "Run this again when the table has grown: what is shown of the past stays the same where its outcomes were "
        "complete.",
    ]


SECTIONS = (
    Section(
        key="verdict",
        heading="Alarms",
        place=0,
        template="""
<p class="headline {{ part.facts.status }}">{{ part.statements[0].text }}</p>
{% if part.facts.notes %}
<ul class="warning notes">{% for note in part.facts.notes %}<li>{{ note }}</li>{% endfor %}</ul>
{% endif %}
{% for statement in part.statements[1:] %}<p>{{ statement.text }}</p>{% endfor %}
{{ m.plain_table(part.tables[0], below=true) }}
{% for table in part.tables[1:] %}{{ m.folded(table) }}{% endfor %}
""",
    ),
    Section(
        key="charts",
        heading="Over time",
        place=1,
        intro="""
<p>Events until each date over those expected, with a band that holds at all dates together. Dots are alarms and
recent changes.</p>
<p><span class="key control">tolerated ratios lie between these lines</span></p>
""",
        draw=lambda part: part.facts["charts"],
        template="{{ m.panels(drawn) }}",
    ),
    Section(
        key="meaning",
        heading="What an alarm means",
        place=2,
        intro="<p>And what is assumed.</p>",
        template="{% for text in part.facts.meaning %}<p>{{ text }}</p>{% endfor %}",
    ),
)
