"""Sections on calibration: calibration curves and survival curves of each group, and each competing cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.by_cause import at_middle, findings_by_cause
from drosurv.evaluation.evaluator import rows_by_group, whose
from drosurv.evaluation.plots import corner_text
from drosurv.evaluation.result_views import OBSERVED, in_many_groups, named, survival_columns, time_column
from drosurv.judging.group_picture import MANY_GROUPS
from drosurv.judging.verdict import PROBLEMS
from drosurv.patients.groups import EVERYONE
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    cause_title,
    complement,
    first_upper,
    group_name,
    headings,
    moment,
    plain,
    plain_rows,
    with_interval,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark, by_group
from drosurv.report.evidence import EXPECTED, FEWEST, PATIENTS, WHO, Evidence, Part, Section

# Number of points of each chart that show their values; the curves themselves are finer.
_READINGS = 24
_NUMBERS = {"ratio": "Observed / expected by {at}", "slope": "Slope of observed on predicted risk at {at}"}


NO_CURVES = "The model predicts no survival curves, so calibration cannot be judged."
LATE_ENTRY = (
    "Patients enter late, and survival since entry is not known from these predictions, so that no curves are drawn. "
    "The group table judges the events after entry."
)


def collect(evidence: Evidence) -> Part:
    """Return calibration curves and survival curves."""
    result, unit = evidence.audited, evidence.time_unit
    last, (points, numbers) = result.last_judged, curve_tables(result, unit)
    when = "over the whole follow-up" if last is None else f"by {moment(last, unit)}, weighted for censoring"
    return Part(
        tables=(points, numbers, over_time(result, unit, of_cause=evidence.cause is not None)),
        facts={
            "time_unit": unit,
            "at_few_times": last is not None,
            "shown": sorted(shown_in(points, numbers)),
            "event": evidence.event,
            "method": " (plain Kaplan-Meier)" if evidence.cause is None else "",
            "horizon": plain(result.settings.horizon),
            "at": moment(result.settings.horizon, unit),
            "judged": when,
            "histograms": histogram_rows(result),
            "why_not": NO_CURVES if evidence.rows.entry is None else LATE_ENTRY,
        },
    )


def curve_tables(result: EvaluationResult, time_unit: str) -> tuple[Table, Table]:
    """Return the points of the calibration curves, and their numbers, of groups that are not too small to be shown."""
    at, called, curves = (
        moment(result.settings.horizon, time_unit),
        result.headings,
        result.calibration_curves,
    )
    shown = _shown(result)
    points, numbers = (
        tuple(named(row, called) for row in plain_rows(table) if (row["attribute"], row["group"]) in shown)
        for table in ((pd.DataFrame(),) * 2 if curves is None else (curves.points, curves.numbers))
    )
    risks = (
        *WHO,
        Column("predicted", "Predicted risk", "share"),
        Column("observed", "Observed risk", "share", ("low", "high")),
    )
    counted_events = (
        *WHO,
        PATIENTS,
        Column("observed", f"Events by {at}, weighted", "time"),
        EXPECTED,
        *(Column.measured(key, label.format(at=at), right=1.0) for key, label in _NUMBERS.items()),
        Column("ici", "ICI", "value"),
    )
    return (
        Table("calibration_curves", f"Calibration curves at {at}: points", risks, points),
        Table("calibration_numbers", f"Calibration at {at}", counted_events, numbers),
    )


def shown_in(points: Table, numbers: Table) -> Iterator[str]:
    """Yield what the charts of calibration show: "curves", "dots", their "intervals", "slope" and "ici"."""
    for row in points.rows:
        if row["observed"] is not None:
            yield "curves" if row["kind"] == "spline" else "dots"
            if row["high"] is not None:
                yield "intervals"
    for row in numbers.rows:
        yield from (name for name in ("slope", "ici") if row[name] is not None)


def _shown(result: EvaluationResult) -> set[tuple[str, str]]:
    """Return attribute and label of the groups that are shown: no very small ones, no attributes with many groups."""
    curves = result.calibration_curves
    if curves is None or curves.numbers.empty:
        return set()
    kept = curves.numbers[(curves.numbers["patients"] >= FEWEST) & ~in_many_groups(curves.numbers)]
    return set(zip(kept["attribute"], kept["group"], strict=True))


def histogram_rows(result: EvaluationResult) -> list[dict[str, Any]]:
    """Return the histogram of predicted risks in each group, relative to its largest bin."""
    if result.calibration_curves is None:
        return []
    table, shown = result.calibration_curves.histogram, _shown(result)
    rows = []
    for (attribute, group), part in table.groupby(["attribute", "group"], sort=False):
        if (attribute, group) in shown:
            heights = (part["patients"] / max(float(part["patients"].max()), 1.0)).round(2)
            who = named({"attribute": attribute, "group": group}, result.headings)
            edges = [plain(float(part["low"].iloc[0])), *map(plain, part["high"].tolist())]
            rows.append({**who, "edges": edges, "heights": heights.tolist()})
    return rows


def over_time(result: EvaluationResult, time_unit: str, *, of_cause: bool = False) -> Table:
    """Return mean predicted and observed survival with its interval over time; of a cause, incidences.

    The observed curve ends where fewer than five patients are at risk: its interval does not show how uncertain the end
    is. Attributes with many groups are left out.
    """
    unknown, called = {"observed": None, "low": None, "high": None}, result.headings
    counts = result.groups["attribute"].value_counts()
    rows = tuple(
        named(row, called) | (unknown if row["at_risk"] < FEWEST else {})
        for row in plain_rows(result.survival)
        if counts[row["attribute"]] <= MANY_GROUPS
    )
    columns = survival_columns(time_column("time", time_unit))
    if not of_cause:
        return Table("survival", "Mean predicted survival and plain Kaplan-Meier over time", columns, rows)
    turned = {"predicted": "predicted", "observed": "observed", "low": "high", "high": "low"}
    rows = tuple(row | {name: complement(row[other]) for name, other in turned.items()} for row in rows)
    return Table("incidence", "Mean predicted and observed cumulative incidence over time", columns, rows)


def draw(part: Part) -> tuple[tuple[Chart, ...], tuple[Chart, ...]]:
    """Return the calibration curves, and curves over time."""
    (points, numbers, curves), facts = part.tables, part.facts
    return (
        calibration_charts(points, numbers, facts["histograms"]),
        charts_over_time(curves, facts["time_unit"], dots=facts["at_few_times"]),
    )


def calibration_charts(
    points: Table, numbers: Table, histograms: Sequence[Mapping[str, Any]]
) -> tuple[Chart, ...]:
    """Draw observed against predicted risk, one small chart per group, all on the same axes."""
    rows = [row for row in points.rows if row["observed"] is not None]
    if not rows:
        return ()
    # All risks may be 0.
    top = min(1.0, 1.1 * max(row[key] for row in rows for key in ("predicted", "observed"))) or 1.0
    x = Axis.over("predicted risk", [0.0, top], kind="share", count=4, include=(0.0, top))
    # Wide intervals are cut off at twice the risks.
    peak = min(1.0, 2 * top, max([top, *(row["high"] for row in rows if row["high"] is not None)]))
    upper = Axis.over("observed risk", [0.0, peak], kind="share", count=5, include=(0.0, peak))
    # Room for the numbers above, and for the histogram below.
    y = replace(upper, low=-0.2 * peak, high=1.35 * peak)
    charts = []
    for row in numbers.rows:
        who = row["attribute"], row["group"]
        own = [point for point in rows if (point["attribute"], point["group"]) == who]
        bars = next((one for one in histograms if (one["attribute"], one["group"]) == who), None)
        if own:
            charts.append(_calibration_chart(Frame(x, y, height=300), row, own, bars, top, peak))
    return tuple(charts)


def _calibration_chart(
    frame: Frame,
    group: dict[str, Any],
    points: list[dict[str, Any]],
    histogram: Mapping[str, Any] | None,
    top: float,
    peak: float,
) -> Chart:
    """Return the chart of a group, with a histogram below; curves end at the risk `top`, intervals at `peak`."""
    is_curve = points[0]["kind"] == "spline"
    largest = max(points, key=lambda point: abs(point["predicted"] - point["observed"]))
    inside = [point for point in points if point["predicted"] <= top]
    ends = [None if point["high"] is None else min(point["high"], peak) for point in inside]
    lines, bands = [Line([(0.0, 0.0), (top, top)], "control")], []
    if is_curve:
        lines.append(Line([(point["predicted"], point["observed"]) for point in inside], "model"))
        bands = [[(point["predicted"], point["low"], end) for point, end in zip(inside, ends, strict=True)]]
    # Points that can be read with the mouse; of a curve some, which are not drawn.
    read = inside[:: max(1, len(inside) // _READINGS)] if is_curve else points
    corner = corner_text(group).split("\n")
    return Chart(
        group_name(group["attribute"], group["group"]) if group["attribute"] else group["group"],
        f"{'; '.join(corner)}. Predicted and observed risk differ most where {_risks(largest)}.",
        frame,
        lines=tuple(lines),
        bands=tuple(bands),
        marks=tuple(
            Mark(
                point["predicted"],
                point["observed"],
                _risks(point),
                role="part",
                drawn=not is_curve,
                reach=() if is_curve else _interval(point, peak),
            )
            for point in read
        ),
        nearest="x" if is_curve else "point",
        bars=() if histogram is None else tuple(_bars(histogram, top, frame.y.low)),
        corner=tuple(corner),
    )


def _interval(point: dict[str, Any], peak: float) -> Sequence[list[tuple[float, float]]]:
    """Return the line of a dot's interval, cut off at `peak`; none without an interval."""
    if point["high"] is None:
        return ()
    return [[(point["predicted"], point["low"]), (point["predicted"], min(point["high"], peak))]]


def _bars(histogram: Mapping[str, Any], top: float, bottom: float) -> Iterator[tuple[float, float, float]]:
    """Yield start, end and upper end of the bars of a histogram until the risk `top`, which stand on `bottom`."""
    edges = histogram["edges"]
    for start, end, height in zip(edges, edges[1:], histogram["heights"], strict=False):
        if height > 0 and start < top:
            yield start, end, (1 - 0.8 * height) * bottom


def _risks(row: dict[str, Any]) -> str:
    interval = with_interval(row["observed"], row["low"], row["high"], "share")
    return f"predicted {written(row['predicted'], 'share')}, observed {interval}"


def charts_over_time(curves: Table, unit: str, *, dots: bool = False) -> tuple[Chart, ...]:
    """Draw mean predicted and observed survival, or incidence, a small chart per group, all on the same axes.

    Predictions at few times are `dots`; at a single time, which the group table shows, nothing is drawn.
    """
    times = [row["time"] for row in curves.rows]
    if dots and len({*times, 0.0}) < 3:
        return ()
    margin = 0.06 if dots else 0.0
    x = Axis.over(unit or "time", times, kind="time", count=4, include=(0.0,), margin=margin)
    rises = curves.key == "incidence"
    ends = ("predicted", "observed", "high" if rises else "low")
    shown = [row[key] for row in curves.rows for key in ends if row[key] is not None]
    bounds = (1.0,) if min(shown, default=0.0) > 0.1 else (0.0, 1.0)
    y = Axis.over("free of the event", shown, kind="share", count=4, include=bounds)
    if rises:
        y = Axis.over("cumulative incidence", shown, kind="share", count=4, include=(0.0,))
    groups, frame = by_group(curves.rows), Frame(x, y)
    return tuple(_chart(frame, unit, name, rows, curves.key, dots) for name, rows in groups)


def _chart(frame: Frame, unit: str, title: str, rows: list[dict[str, Any]], what: str, dots: bool) -> Chart:
    # Neither curve is drawn as steps: steps beside a line would look like a difference.
    observed, predicted = ([(row["time"], row[key]) for row in rows] for key in ("observed", "predicted"))
    labelled = [row for row in rows[:: max(1, len(rows) // _READINGS)] if row["predicted"] is not None]
    known = [row for row in rows if row["predicted"] is not None and row["observed"] is not None]
    largest = max(known, key=lambda row: abs(row["predicted"] - row["observed"]), default=rows[0])
    description = f"Predicted and observed {what} differ most at {_reading(largest, unit)}."
    if dots:
        marks = tuple(mark for row in rows if row["time"] > 0 for mark in _dots(row, unit))
        return Chart(title, description, frame, marks=marks, nearest="point")
    return Chart(
        title,
        description,
        frame,
        lines=(Line(observed, "observed"), Line(predicted, "model")),
        bands=([(row["time"], row["low"], row["high"]) for row in rows],),
        marks=tuple(Mark(row["time"], row["predicted"], _reading(row, unit)) for row in labelled),
    )


def _dots(row: dict[str, Any], unit: str) -> Iterator[Mark]:
    """Yield the observed value at a time with its interval, and the mean prediction, as far as they are known."""
    time, at = row["time"], moment(row["time"], unit)
    if row["observed"] is not None:
        known = row["low"] is not None and row["high"] is not None
        reach = [[(time, row["low"]), (time, row["high"])]] if known else ()
        text = f"{at}: observed {OBSERVED.cell(row)}"
        yield Mark(time, row["observed"], text, "part observed", drawn=True, reach=reach)
    if row["predicted"] is not None:
        text = f"{at}: predicted {written(row['predicted'], 'share')}"
        yield Mark(time, row["predicted"], text, drawn=True)


def _reading(row: dict[str, Any], unit: str) -> str:
    predicted = written(row["predicted"], "share")
    return f"{moment(row['time'], unit)}: predicted {predicted}, observed {OBSERVED.cell(row)}"


CALIBRATION = Section(
    key="calibration",
    heading="Do the predictions come true?",
    place=30,
    collect=collect,
    draw=draw,
    intro="""
{% set shown, intervals = part.facts.shown, "intervals" in part.facts.shown %}
{% if "curves" in shown or "dots" in shown %}
<p>Observed against predicted risk in each group: on the dotted line, as many had {{ part.facts.event }} as predicted.
{%- if "curves" in shown and intervals %} The band contains the whole curve with a probability of {{ report.level }},
for each group.{% endif %}
{%- if "dots" in shown %}{% if "curves" in shown %} Groups with few events have dots instead of a curve.{% endif %}
 A dot shows all patients of a group, or a part of them with similar predicted risks.
{%- if intervals %} The lines of all dots of a group contain the true risks with a probability of
{{ report.level }}.{% endif %}{% endif %}
 The bars below show the distribution of predicted risks.</p>
<p>All numbers are of risks by {{ part.facts.at }}. O/E: observed over predicted risk; 1 is right.
{%- if "slope" in shown %} Slope of observed on predicted risk: below 1, predicted risks differ too much.{% endif %}
{%- if "ici" in shown %} ICI: mean distance of the curve from the dotted line.{% endif %}
{% if "slope" in shown %}
 The ratio and the calibration slope of the group table, which the verdict uses, are other numbers: they count events
{{ part.facts.judged }}, and their intervals are adjusted for the number of tests.</p>
{% else %}
 The ratio of the group table, which the verdict uses, is another number: it counts events {{ part.facts.judged }}, and
its interval is adjusted for the number of tests.</p>
{% endif %}
{% endif %}
""",
    template="""
{% set curves, over_time = drawn %}
{% if not part.tables[2].rows %}
  <p class="aside">{{ part.facts.why_not }}</p>
{% else %}
  {{ m.panels(curves) }}
  {{ m.folded(part.table("calibration_numbers")) }}
  {{ m.downloads(part.table("calibration_curves")) }}
  {% if over_time %}
  {% set dots, interval = (" dot", "interval") if part.facts.at_few_times else ("", "band") %}
  <h3>Over time</h3>
  <p class="aside"><span class="key model{{ dots }}">mean prediction</span>
  <span class="key observed{{ dots }}">observed{{ part.facts.method }}, with its {{ report.level }} {{ interval }},
  while at least five patients are observed</span></p>
  <p class="aside">The observed curve assumes that censoring has nothing to do with risk. The observed risks by time
  below the verdict do not, so they may differ from it.</p>
  {{ m.panels(over_time) }}
  {{ m.downloads(part.tables[2]) }}
  {% endif %}
{% endif %}
""",
)


def collect_causes(evidence: Evidence) -> Part | None:
    """Return the table of causes, and sentences; None for a model of one event."""
    found: pd.DataFrame | None = evidence.page.also.get("causes")
    if found is None:
        return None
    found = found[found["patients"] >= FEWEST]
    called = headings({str(name): [*labels] for name, labels in found.groupby("attribute")["group"]})
    table = Table(
        "causes",
        "Cumulative incidence by cause and group: predicted, and observed (Aalen-Johansen)",
        (
            Column("cause", "Cause"),
            *WHO,
            time_column("horizon", evidence.time_unit),
            Column("predicted", "Predicted", "share"),
            Column.measured("observed", "Observed", "share"),
            Column("observed_if_others_censored", "If others counted as censored", "share"),
            Column("brier", "Brier score", "value"),
            Column("c_index", "c-index", "value"),
            PATIENTS,
            Column("events", "Events", "count"),
        ),
        tuple(
            named(row, called) | {"cause": first_upper(cause_title(row["cause"]))}
            for row in plain_rows(found)
        ),
    )
    how: dict[str, Any] = {"level": evidence.level, "relevance": evidence.relevance}
    members = rows_by_group(evidence.attributes)
    patients = evidence.predicted, evidence.y, evidence.rows, members
    judged = findings_by_cause(*patients, **how, time_unit=evidence.time_unit)
    wrong = [(cause, row.text) for cause, row in judged if row.status in PROBLEMS]
    statements = tuple(cause_statements(at_middle(found), wrong, evidence.time_unit))
    return Part(statements=statements, tables=(table,), facts={"event": evidence.event})


def cause_statements(
    table: pd.DataFrame, wrong: Sequence[tuple[int | str, str]], time_unit: str
) -> Iterator[Statement]:
    """State for each cause: wrong predictions, the group with the lowest c-index, and the error of censoring others."""
    for label in table["cause"].unique().tolist():
        rows = table[table["cause"] == label]
        at, cause = moment(rows["horizon"].iloc[0], time_unit), first_upper(cause_title(label))
        for _, text in (pair for pair in wrong if pair[0] == label):
            yield Statement("cause_calibration", f"{cause}: {text}", concern=True)
        yield from _ranking(cause, rows[rows["attribute"] != EVERYONE])
        # NaN if follow-up is too short.
        error = (rows["observed_if_others_censored"] - rows["observed"]).dropna().sort_values()
        *others, most = [None, *plain_rows(rows.loc[error.index])]
        if most is not None:
            largest = len(others) > 1 and most["attribute"] != EVERYONE
            yield Statement(
                "cause_censored",
                f"{cause}: if other causes counted as censored, the estimate by {at} for {_who(most)} would be "
                f"{written(most['observed_if_others_censored'], 'share')}, where "
                f"{written(most['observed'], 'share')} had it"
                f"{', the largest error of the groups with enough patients' if largest else ''}.",
            )


def _ranking(cause: str, groups: pd.DataFrame) -> Iterator[Statement]:
    """State the largest difference in c-index between two groups of one attribute."""
    ranked = groups[groups["c_index"].notna()].sort_values("c_index")
    gaps = ranked.groupby("attribute")["c_index"].agg(lambda values: values.max() - values.min())
    if len(gaps) and gaps.max() > 0:
        rows = plain_rows(ranked[ranked["attribute"] == gaps.idxmax()])
        yield Statement(
            "cause_ranking",
            f"{cause}: the c-index is lowest for {_who(rows[0])}, {written(rows[0]['c_index'])}, against "
            f"{written(rows[-1]['c_index'])} for {_who(rows[-1])}. Whether it is chance was not tested.",
        )


def _who(row: dict[str, Any]) -> str:
    return whose(row["attribute"], row["group"])


CAUSES = Section(
    key="causes",
    heading="Cause by cause",
    place=35,
    collect=collect_causes,
    intro="""
<p>The rest of this report is about {{ part.facts.event }}. This section evaluates each cause; events of
other causes compete with it.</p>
""",
)
