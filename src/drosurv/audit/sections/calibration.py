"""Do predicted probabilities come true in each group: curves, and differences at a few times."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from drosurv.audit.charts import Axis, Chart, Forest, Frame, Line, Mark, forests
from drosurv.audit.evidence import FEWEST, Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.shown_tables import OBSERVED, calibration_table, named, survival_columns, time_column
from drosurv.presentation import Column, Table, group_name, moment, plain_rows, written

# So many places of each chart can be pointed at; the curves themselves are finer.
_READINGS = 24


def collect(evidence: Evidence) -> Part:
    """Curves and differences of every model."""
    unit = evidence.time_unit
    at = f"{'' if evidence.horizons is None else 'predicted times near '}quartiles of event times"
    tables = tuple((survival_table(r, unit), calibration_table(r, unit, at)) for r in evidence.results)
    return Part(by_model=tables, facts={"time_unit": unit})


def survival_table(result: EvaluationResult, time_unit: str) -> Table:
    """Mean predicted survival and Kaplan-Meier over time, with its interval, for as long as enough are observed.

    The last few patients would draw a curve that falls to 0 with none of the doubt that it is in.
    """
    unknown, called = {"observed": None, "low": None, "high": None}, result.headings
    rows = tuple(
        named(row, called) | (unknown if row["at_risk"] < FEWEST else {})
        for row in plain_rows(result.survival)
    )
    caption = "Mean predicted survival and Kaplan-Meier over time"
    return Table("survival", caption, survival_columns(time_column("time", time_unit)), rows)


def draw(part: Part) -> list[tuple[tuple[Chart, ...], Forest]]:
    """Curves and forest of every model."""
    unit = part.facts["time_unit"]
    curves = [survival_charts(survival, unit) for survival, _ in part.by_model]
    differences = [difference_table(calibration, unit) for _, calibration in part.by_model]
    return list(zip(curves, forests(differences), strict=True))


def difference_table(calibration: Table, unit: str) -> Table:
    """A row per group, a column per horizon: predicted less observed survival."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for row in calibration.rows:
        place = {name: row.get(name) for name in ("attribute", "group", "note")}
        own = groups.setdefault((row["attribute"], row["group"]), place)
        own |= {f"{row['horizon']}{end}": row[f"difference{end}"] for end in ("", "_low", "_high")}
    horizons = dict.fromkeys(row["horizon"] for row in calibration.rows)
    columns = [Column.measured(str(h), f"at {moment(h, unit)}", "signed_points") for h in horizons]
    return Table("differences", calibration.caption, tuple(columns), tuple(groups.values()))


def survival_charts(survival: Table, unit: str) -> tuple[Chart, ...]:
    """Mean predicted survival beside Kaplan-Meier, one small chart per group, all on the same axes."""
    times = [row["time"] for row in survival.rows]
    x = Axis.over(unit or "time", times, kind="time", count=4, include=(0.0,), margin=0.0)
    shown = [
        row[key] for row in survival.rows for key in ("predicted", "observed", "low") if row[key] is not None
    ]
    bounds = (1.0,) if min(shown, default=0.0) > 0.1 else (0.0, 1.0)
    y = Axis.over("alive and free of the event", shown, kind="share", count=4, include=bounds)
    groups = groupby(survival.rows, key=lambda row: (row["attribute"], row["group"]))
    return tuple(
        _chart(Frame(x, y), unit, group_name(*who) if who[0] else who[1], list(rows)) for who, rows in groups
    )


def _chart(frame: Frame, unit: str, title: str, rows: list[dict[str, Any]]) -> Chart:
    # Both curves are drawn from point to point: steps beside a line would look like a difference.
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


SECTION = Section(
    key="calibration",
    heading="Do the predictions come true?",
    place=30,
    collect=collect,
    draw=draw,
    intro="""
<p>Survival that the model predicts, beside what was observed, in each group.
<span class="key model">mean prediction</span>
<span class="key observed">observed (Kaplan-Meier), with its {{ report.level }} band, while at least five patients are
observed</span></p>
<p>Below, a dot is the difference of the two, the bar its {{ report.level }} interval.</p>
""",
    template="""
{% call(shown, k) m.each_model() %}
{% set charts, forest = drawn[k] %}
{% if not charts %}
  <p class="aside">The model predicts no survival curves, so calibration cannot be judged.</p>
{% else %}
  {{ m.panels(charts) }}
  {{ m.downloads(part.table("survival", k)) }}
  {{ m.forest(forest) }}
  {{ m.downloads(part.table("calibration", k)) }}
{% endif %}
{% endcall %}
""",
)
