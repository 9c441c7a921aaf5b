"""Decisions at the threshold that was given: what treating the patients above it would mean, by group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section
from drosurv.audit.verdict import ALL_PATIENTS, adjusted_p_values
from drosurv.evaluation.attributes import whose
from drosurv.presentation import Column, Statement, Table, moment, plain_rows, written

GAP = "gap"
METRICS = {
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
    "ppv": "Positive predictive value",
    "npv": "Negative predictive value",
    "net_benefit": "Net benefit",
}
UNKNOWN = "cannot be estimated"


def collect(evidence: Evidence) -> Part | None:
    """Return a table of every group and one of the gaps between groups; None without a threshold."""
    table, settings = evidence.audited.decisions, evidence.audited.settings
    if table is None:
        return None
    groups = table[table["group"] != GAP]
    positives = groups[groups["attribute"] == "overall"].iloc[0]
    lead = (
        f"{written(positives['positives'], 'count')} of {written(positives['patients'], 'count')} patients have a "
        f"predicted probability of an event by {moment(settings.horizon, evidence.time_unit)} of at least "
        f"{written(settings.threshold, 'share')}, and would be treated."
    )
    said = [Statement("decisions", lead), *_gap_statements(evidence)]
    unknown = groups[groups["value"].isna()]
    for (attribute, group), part in unknown.groupby(["attribute", "group"], sort=False):
        names = ", ".join(METRICS[metric].lower() for metric in part["metric"])
        who = whose(str(attribute), str(group), ALL_PATIENTS)
        said.append(Statement("decisions", f"For {who}, {names} {UNKNOWN}: {part['reason'].iloc[0]}."))
    shown = [_wide(part) for _, part in groups.groupby(["attribute", "group"], sort=False)]
    columns = [Column("who", "Group"), Column("patients", "Patients", "count")]
    columns += [Column("positives", "Treated", "count")]
    columns += [Column.measured(metric, label) for metric, label in METRICS.items()]
    if len(unknown):
        columns.append(Column("reason", UNKNOWN.capitalize()))
    by_group = Table("decisions", "Decisions by group", tuple(columns), tuple(shown))
    return Part(statements=tuple(said), tables=(by_group, *_gap_table(evidence, table)))


def _wide(part: pd.DataFrame) -> dict[str, Any]:
    """One row of a group from its rows of metrics."""
    rows = plain_rows(part)
    first = rows[0]
    found = {
        "who": whose(first["attribute"], first["group"], ALL_PATIENTS),
        "patients": first["patients"],
        "positives": first["positives"],
        "reason": "; ".join(
            f"{METRICS[row['metric']].lower()}: {row['reason']}" for row in rows if row["reason"]
        ),
    }
    for row in rows:
        found |= {
            f"{row['metric']}{end}": row[key]
            for end, key in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
    return found


def _gap_statements(evidence: Evidence) -> Iterator[Statement]:
    """Whether gaps are more than chance, by the p-values that decide the verdict."""
    found = [p for p in evidence.verdict.problems if p.status == "wrong_decisions"]
    for problem in found:
        yield Statement("decisions", problem.text, concern=True)
    if not found and (evidence.tests["status"] == "wrong_decisions").any():
        yield Statement("decisions", "No gap between groups is more than chance would explain.")


def _gap_table(evidence: Evidence, table: pd.DataFrame) -> Iterator[Table]:
    """Largest differences between the groups of each attribute, with the p-values that decide the verdict."""
    gaps = table[table["group"] == GAP]
    if gaps.empty:
        return
    tests = evidence.tests
    adjusted = adjusted_p_values(tests, evidence.audited.settings.n_tests)
    keys = zip(tests["status"], tests["attribute"], tests["metric"], strict=True)
    p_values = dict(zip(keys, adjusted, strict=True))
    rows = [
        {
            "between": evidence.audited.headings[row["attribute"]],
            "metric": METRICS[row["metric"]],
            **{name: row[name] for name in ("value", "low", "high")},
            "p_value": p_values.get(("wrong_decisions", row["attribute"], row["metric"])),
            "reason": row["reason"] and f"{UNKNOWN}: {row['reason']}",
        }
        for row in plain_rows(gaps)
    ]
    columns = (
        Column("between", "Between groups of"),
        Column("metric", "Measure"),
        Column("value", "Largest difference", "value", ("low", "high")),
        Column("p_value", "p, adjusted", "p_value"),
        Column("reason", "Note"),
    )
    yield Table("decision_gaps", "Differences between groups in decisions", columns, tuple(rows))


SECTION = Section(
    key="decisions",
    heading="Decisions",
    place=33,
    collect=collect,
    intro="""
<p>If patients above the threshold are treated: how many of those with an event are treated (sensitivity), how many
without one are not (specificity), and how often the decision is right (predictive values). Events are estimated by
Kaplan-Meier among the treated and the others.</p>
""",
    template="""
{% for statement in part.statements %}
<p{% if loop.first %} class="lead"{% elif statement.concern %} class="concern"{% endif %}>{{ statement.text }}</p>
{% endfor %}
{{ m.plain_table(part.tables[0], below=true) }}
{% for table in part.tables[1:] %}{{ m.folded(table, below=true) }}{% endfor %}
""",
)
