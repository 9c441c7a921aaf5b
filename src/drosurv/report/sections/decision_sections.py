"""Sections on decisions, by group: decision curves (net benefit of treating by the model), and one threshold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.result_views import DECISIONS, judged_groups, named, unknown_decisions
from drosurv.judging.words import percent, who
from drosurv.presentation import (
    Column,
    Statement,
    Table,
    first_upper,
    moment,
    plain,
    plain_rows,
    written,
)
from drosurv.report.charts import Axis, Chart, Frame, Line, Mark, by_group
from drosurv.report.evidence import PATIENTS, WHO, Evidence, Part, Section

_READINGS = 24


def collect(evidence: Evidence) -> Part | None:
    """Return the curves, and a table of the threshold, if one is given."""
    result = evidence.audited
    if not len(result.decision_curves):
        return None
    curves, threshold = curve_table(result, evidence.time_unit), result.settings.threshold
    marked = tuple(row for row in curves.rows if row["threshold"] == threshold)
    columns = tuple(column for column in curves.columns if column.key != "threshold")
    caption = f"If treated from a risk of {percent(threshold or 0.0)}"
    tables = (curves, Table("at_threshold", caption, columns, marked))
    return Part(tables=tables, facts={"threshold": plain(threshold)})


def curve_table(result: EvaluationResult, time_unit: str) -> Table:
    """Return net benefit by group and threshold."""
    columns = (
        *WHO,
        Column("threshold", "Treated from a risk of", "share"),
        Column("avoided_per_100", "Treatments avoided per 100", "time"),
        Column("net_benefit", "Net benefit of the model", "value", ("low", "high")),
        Column("treat_all", "Of treating everybody", "value"),
    )
    when = moment(result.settings.horizon, time_unit)
    shown, known = judged_groups(result.groups), result.decision_curves.dropna(subset="net_benefit")
    kept = (row for row in plain_rows(known) if (row["attribute"], row["group"]) in shown)
    rows = tuple(named(row, result.headings) for row in kept)
    return Table("decision_curves", f"Net benefit by risk at {when} from which one treats", columns, rows)


def draw(part: Part) -> tuple[Chart, ...]:
    """Return the curves, one small chart per group."""
    return decision_charts(part.tables[0], part.facts["threshold"])


def decision_charts(table: Table, threshold: float | None) -> tuple[Chart, ...]:
    """Draw net benefit against the threshold, one small chart per group, all on the same axes."""
    rows, shown = table.rows, ("net_benefit", "treat_all", "high")
    thresholds = [row["threshold"] for row in rows]
    x = Axis.over("risk at which one would treat", thresholds, kind="share", include=(0.0,))
    top = max([row[key] for row in rows for key in shown if row[key]], default=0.1)
    y = Axis.over("net benefit", [-0.25 * top, top], count=4)
    return tuple(_chart(Frame(x, y), name, own, threshold) for name, own in by_group(rows))


def _chart(frame: Frame, title: str, rows: list[dict[str, Any]], threshold: float | None) -> Chart:
    low = frame.y.low
    # Treating everybody has large negative values at high thresholds, where the line ends.
    everybody = [(row["threshold"], row["treat_all"] if row["treat_all"] > low else None) for row in rows]
    band = [(row["threshold"], row["low"], row["high"]) for row in rows if row["low"] is not None]
    above = [row for row in rows if row["net_benefit"] > max(row["treat_all"], 0.0) + 1e-9]
    best = "Treating by the model never has the most benefit."
    if above:
        within = [row for row in rows if above[0]["threshold"] <= row["threshold"] <= above[-1]["threshold"]]
        at = "" if len(above) == len(within) else f"at {len(above)} of {len(within)} thresholds "
        first, last = (written(row["threshold"], "share") for row in (above[0], above[-1]))
        best = f"Treating by the model has the most benefit {at}from {first} to {last}."
    marked = () if threshold is None else [Line([(threshold, low), (threshold, frame.y.high)], "threshold")]
    return Chart(
        title,
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
<p>Net benefit of treating patients with a predicted risk of at least a threshold: true positives per patient, less
false positives weighted by the odds of the threshold. A threshold of 10 % means that nine needless treatments are
accepted for one that is needed.</p>
<p><span class="key model">treat by the model, with a {{ report.level }} band for the whole curve</span>
<span class="key everybody">treat everybody</span></p>
<p>The dotted line at 0 is treating nobody.
{% if part.facts.threshold %}The dashed line is the given threshold.{% endif %}</p>
""",
    template="""
{{ m.panels(drawn) }}
{{ m.downloads(part.table("decision_curves")) }}
{% set marked = part.table("at_threshold") %}
{% if marked | length %}{{ m.plain_table(marked, below=true) }}{% endif %}
""",
)


GAP = "gap"
METRICS = {metric: first_upper(name) for metric, name in DECISIONS.items() if metric != "net_benefit"}
UNKNOWN = "cannot be estimated"


def collect_decisions(evidence: Evidence) -> Part | None:
    """Return a table of every group and one of the gaps between groups; None without a threshold."""
    table, settings = evidence.audited.decisions, evidence.audited.settings
    if table is None:
        return None
    # Net benefit has a section of its own, with the same weights for censoring in all groups.
    table = table[table["metric"] != "net_benefit"]
    groups = table[table["group"] != GAP]
    positives = groups[groups["attribute"] == "overall"].iloc[0]
    lead = (
        f"{written(positives['positives'], 'count')} of {written(positives['patients'], 'count')} patients have a "
        f"predicted probability of {evidence.event} by {moment(settings.horizon, evidence.time_unit)} of at least "
        f"{percent(settings.threshold or 0.0)}, and would be treated."
    )
    unknown = tuple(unknown_decisions(groups))
    shown = [_wide(part) for _, part in groups.groupby(["attribute", "group"], sort=False)]
    columns = [Column("who", "Group"), PATIENTS, Column("positives", "Treated", "count")]
    for metric, label in METRICS.items():
        columns.append(Column.measured(metric, label))
        if metric == "sensitivity":
            columns.append(Column("sensitivity_predicted", "Sensitivity, predicted", "value"))
    if unknown:
        columns.append(Column("reason", UNKNOWN.capitalize()))
    by_group = Table("decisions", "Decisions by group", tuple(columns), tuple(shown))
    statements = (Statement("decisions", lead), *_found(evidence), *unknown)
    return Part(statements, tables=(by_group, *_decision_gaps(evidence, table)))


def _wide(part: pd.DataFrame) -> dict[str, Any]:
    """Return the metrics of a group, one row each, as one row with a column for each metric."""
    rows = plain_rows(part)
    found = {name: rows[0][name] for name in ("patients", "positives")}
    reasons = (f"{METRICS[row['metric']].lower()}: {row['reason']}" for row in rows if row["reason"])
    found |= {"who": who(rows[0]["attribute"], rows[0]["group"]), "reason": "; ".join(reasons)}
    keys = {"": "value", "_low": "low", "_high": "high", "_predicted": "predicted"}
    return found | {f"{row['metric']}{end}": row[key] for row in rows for end, key in keys.items()}


def _found(evidence: Evidence) -> Iterator[Statement]:
    """State the findings about decisions: patients above and below the threshold."""
    rows = [row for row in evidence.findings if row.question in ("above threshold", "below threshold")]
    wrong = [row for row in rows if row.status == "wrong_decisions"]
    for row in wrong:
        yield Statement("decisions", row.text, concern=True)
    if rows and not wrong:
        text = "Above and below the threshold, events agree with the predictions, in every group that can be judged."
        yield Statement("decisions", text)


def _decision_gaps(evidence: Evidence, table: pd.DataFrame) -> Iterator[Table]:
    """Return the largest differences between the groups of each attribute."""
    gaps = table[table["group"] == GAP]
    if gaps.empty:
        return
    rows = [
        {
            "between": evidence.audited.headings[row["attribute"]],
            "metric": METRICS[row["metric"]],
            **{name: row[name] for name in ("value", "low", "high")},
            "reason": row["reason"] and f"{UNKNOWN}: {row['reason']}",
        }
        for row in plain_rows(gaps)
    ]
    columns = (
        Column("between", "Between groups of"),
        Column("metric", "Measure"),
        Column("value", "Largest difference", "value", ("low", "high")),
        Column("reason", "Note"),
    )
    caption = (
        "Differences between groups in decisions. Right predictions have them too, if risks of groups differ"
    )
    yield Table("decision_gaps", caption, columns, tuple(rows))


DECISIONS_AT_THRESHOLD = Section(
    key="decisions",
    heading="Decisions",
    place=33,
    collect=collect_decisions,
    intro="""
<p>If patients above the threshold are treated: the share of patients with an event who are treated (sensitivity), the
share of patients without an event who are not treated (specificity), and the shares of right decisions among the
treated and the untreated (predictive values). Patients whose outcome is known are weighted for those who were censored
before; censoring may depend on the predicted risk and the columns.</p>
""",
    template="""
{% for statement in part.statements %}
<p{% if loop.first %} class="lead"{% elif statement.concern %} class="concern"{% endif %}>{{ statement.text }}</p>
{% endfor %}
{{ m.plain_table(part.tables[0], below=true) }}
{% for table in part.tables[1:] %}{{ m.folded(table, below=true) }}{% endfor %}
""",
)
