"""Sections on calibration: survival curves and tenths of risk in each group, and each competing cause."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pandas as pd

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.attributes import EVERYONE, whose
from drosurv.evaluation.by_cause import judged_by_cause
from drosurv.evaluation.views import OBSERVED, named, survival_columns, time_column
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    counted,
    group_name,
    headings,
    moment,
    plain,
    plain_rows,
    with_interval,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark
from drosurv.report.evidence import FEWEST, Evidence
from drosurv.report.section import Part, Section

# Number of points of each chart that show their values; the curves themselves are finer.
_READINGS = 24


def collect(evidence: Evidence) -> Part:
    """Return curves and tenths of risk of every model."""
    unit = evidence.time_unit
    tables = tuple((survival_table(result, unit), tenths_table(result, unit)) for result in evidence.results)
    return Part(
        by_model=tables, facts={"time_unit": unit, "horizon": plain(evidence.audited.settings.horizon)}
    )


def tenths_table(result: EvaluationResult, time_unit: str) -> Table:
    """Return predicted and observed risk at the horizon, in tenths of the patients by predicted risk."""
    rows = [_with_width(row) for row in plain_rows(result.tenths) if row["attribute"] == EVERYONE]
    columns = (
        Column("predicted", "Predicted risk", "share"),
        Column("observed", "Observed risk", "share", ("low", "high")),
        Column("patients", "Patients", "count"),
        Column("events", "Events", "count"),
    )
    when = moment(result.settings.horizon, time_unit)
    return Table(
        "tenths", f"Predicted and observed risk at {when}, by tenth of predicted risk", columns, tuple(rows)
    )


def _with_width(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out an interval of width 0, which Kaplan-Meier has if all or none of the patients had the event."""
    return row if row["low"] != row["high"] else row | {"low": None, "high": None}


def survival_table(result: EvaluationResult, time_unit: str) -> Table:
    """Return mean predicted survival and Kaplan-Meier with its interval over time.

    Kaplan-Meier ends where fewer than five patients are at risk: its interval does not show how uncertain the end is.
    """
    unknown, called = {"observed": None, "low": None, "high": None}, result.headings
    rows = tuple(
        named(row, called) | (unknown if row["at_risk"] < FEWEST else {})
        for row in plain_rows(result.survival)
    )
    caption = "Mean predicted survival and Kaplan-Meier over time"
    return Table("survival", caption, survival_columns(time_column("time", time_unit)), rows)


def draw(part: Part) -> list[tuple[tuple[Chart, ...], Chart | None]]:
    """Return the curves, and the chart of tenths of risk, of every model."""
    unit = part.facts["time_unit"]
    return [(survival_charts(survival, unit), tenths_chart(tenths)) for survival, tenths in part.by_model]


def tenths_chart(tenths: Table) -> Chart | None:
    """Draw observed against predicted risk; on the diagonal they agree."""
    rows = [row for row in tenths.rows if row["observed"] is not None]
    if not rows:
        return None
    values = [row[key] for row in rows for key in ("predicted", "observed", "high") if row[key] is not None]
    x, y = (
        Axis.over(title, values, kind="share", count=5, include=(0.0, 1.0) if max(values) > 0.9 else (0.0,))
        for title in ("predicted risk", "observed risk")
    )
    largest = max(rows, key=lambda row: abs(row["predicted"] - row["observed"]))
    return Chart(
        tenths.caption,
        f"They differ most where {_risks(largest)}.",
        Frame(x, y, width=380, height=340),
        lines=(Line([(0.0, 0.0), (min(x.high, y.high),) * 2], "control"),),
        marks=tuple(
            Mark(
                row["predicted"],
                row["observed"],
                f"{_risks(row)} ({counted(row['patients'], 'patient')})",
                role="tenth",
                drawn=True,
                reach=[[(row["predicted"], row["low"]), (row["predicted"], row["high"])]]
                if row["high"]
                else (),
            )
            for row in rows
        ),
        nearest="point",
    )


def _risks(row: dict[str, Any]) -> str:
    interval = with_interval(row["observed"], row["low"], row["high"], "share")
    return f"predicted {written(row['predicted'], 'share')}, observed {interval}"


def survival_charts(survival: Table, unit: str) -> tuple[Chart, ...]:
    """Draw mean predicted survival and Kaplan-Meier, one small chart per group, all on the same axes."""
    times = [row["time"] for row in survival.rows]
    x = Axis.over(unit or "time", times, kind="time", count=4, include=(0.0,), margin=0.0)
    shown = [
        row[key] for row in survival.rows for key in ("predicted", "observed", "low") if row[key] is not None
    ]
    bounds = (1.0,) if min(shown, default=0.0) > 0.1 else (0.0, 1.0)
    y = Axis.over("free of the event", shown, kind="share", count=4, include=bounds)
    groups = groupby(survival.rows, key=lambda row: (row["attribute"], row["group"]))
    return tuple(
        _chart(Frame(x, y), unit, group_name(*who) if who[0] else who[1], list(rows)) for who, rows in groups
    )


def _chart(frame: Frame, unit: str, title: str, rows: list[dict[str, Any]]) -> Chart:
    # Neither curve is drawn as steps: steps beside a line would look like a difference.
    observed, predicted = ([(row["time"], row[key]) for row in rows] for key in ("observed", "predicted"))
    read = [row for row in rows[:: max(1, len(rows) // _READINGS)] if row["predicted"] is not None]
    largest = max(
        rows, key=lambda row: abs((row["predicted"] or 0) - (row["observed"] or row["predicted"] or 0))
    )
    return Chart(
        title,
        f"Predicted and observed survival differ most at {_reading(largest, unit)}.",
        frame,
        lines=(Line(observed, "observed"), Line(predicted, "model")),
        bands=([(row["time"], row["low"], row["high"]) for row in rows],),
        marks=tuple(Mark(row["time"], row["predicted"], _reading(row, unit)) for row in read),
    )


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
<p>Predicted and observed survival in each group.
<span class="key model">mean prediction</span>
<span class="key observed">observed (Kaplan-Meier), with its {{ report.level }} band, while at least five patients are
observed</span></p>
<p>Then, patients in tenths by their predicted risk: on the dotted line, as many had the event as predicted. Bars are
{{ report.level }} intervals, not adjusted.</p>
""",
    template="""
{% call(shown, k) m.each_model() %}
{% set charts, tenths = drawn[k] %}
{% if not charts %}
  <p class="aside">The model predicts no survival curves, so calibration cannot be judged.</p>
{% else %}
  {{ m.panels(charts) }}
  {{ m.downloads(part.table("survival", k)) }}
  {% if tenths %}{{ m.chart(tenths) }}{% endif %}
  {{ m.folded(part.table("tenths", k)) }}
{% endif %}
{% endcall %}
""",
)


def collect_causes(evidence: Evidence) -> Part | None:
    """Return the table of causes, and sentences; None for a model of one event."""
    found: pd.DataFrame | None = evidence.also.get("causes")
    if found is None:
        return None
    found = found[found["patients"] >= FEWEST]
    called = headings({str(name): [*labels] for name, labels in found.groupby("attribute")["group"]})
    table = Table(
        "causes",
        "Cumulative incidence by cause and group: predicted, and observed (Aalen-Johansen)",
        (
            Column("cause", "Cause", "count"),
            Column("group", "Group"),
            Column("attribute", "Attribute"),
            time_column("horizon", evidence.time_unit),
            Column("predicted", "Predicted", "share"),
            Column.measured("observed", "Observed", "share"),
            Column("observed_if_others_censored", "If others counted as censored", "share"),
            Column("brier", "Brier score", "value"),
            Column("c_index", "c-index", "value"),
            Column("patients", "Patients", "count"),
            Column("events", "Events", "count"),
        ),
        tuple(named(row, called) for row in plain_rows(found)),
    )
    judged = judged_by_cause(found, evidence.level)
    return Part(statements=tuple(_cause_statements(judged, evidence.time_unit)), tables=(table,))


def _cause_statements(judged: pd.DataFrame, time_unit: str) -> Iterator[Statement]:
    """State for each cause: wrong predictions, the group with the lowest c-index, and the error of censoring others."""
    for cause, rows in judged.groupby("cause"):
        at = moment(rows["horizon"].iloc[0], time_unit)
        for row in plain_rows(rows[rows["off"]]):
            yield Statement(
                "cause_calibration",
                f"Cause {cause}: by {at}, {written(row['observed'], 'share')} of {_who(row)} had it, and "
                f"{written(row['predicted'], 'share')} were predicted to.",
                concern=True,
            )
        yield from _ranking(cause, rows[rows["attribute"] != EVERYONE])
        # NaN if follow-up is too short.
        error = (rows["observed_if_others_censored"] - rows["observed"]).dropna().sort_values()
        *others, most = [None, *plain_rows(rows.loc[error.index])]
        if most is not None:
            yield Statement(
                "cause_censored",
                f"Cause {cause}: if other causes counted as censored, the estimate by {at} for {_who(most)} would be "
                f"{written(most['observed_if_others_censored'], 'share')}, where "
                f"{written(most['observed'], 'share')} had it"
                f"{', the largest error of all groups' if len(others) > 1 else ''}.",
            )


def _ranking(cause: Any, groups: pd.DataFrame) -> Iterator[Statement]:
    """State the largest difference in c-index between two groups of one attribute."""
    ranked = groups[groups["c_index"].notna()].sort_values("c_index")
    gaps = ranked.groupby("attribute")["c_index"].agg(lambda values: values.max() - values.min())
    if len(gaps) and gaps.max() > 0:
        rows = plain_rows(ranked[ranked["attribute"] == gaps.idxmax()])
        yield Statement(
            "cause_ranking",
            f"Cause {cause}: the c-index is lowest for {_who(rows[0])}, {written(rows[0]['c_index'])}, against "
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
<p>The rest of this report is about an event of any cause. This section is about each cause; after an event of another
cause it can no longer happen.</p>
""",
)
