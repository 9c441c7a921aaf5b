"""The report as Markdown: the audited model's summary and every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drosurv.evaluation.literal import literal

if TYPE_CHECKING:
    from drosurv.audit.report import AuditReport
    from drosurv.audit.table import Table


def as_markdown(report: AuditReport) -> str:
    """The audited model's summary and tables, then those that compare models, then the method card."""
    shown = report.audited
    parts = [f"# {literal(report.title)}", literal(report.subtitle), "## Summary"]
    parts.append("\n".join(f"- {literal(statement.text)}" for statement in shown.statements))
    parts += ["## Accuracy and fairness", *map(markdown_table, (shown.accuracy, shown.fairness))]
    parts += ["## By group", *map(markdown_table, (shown.groups, shown.calibration))]
    parts += ["## Accuracy against fairness", *map(markdown_table, (report.trade_off, shown.shrinkage))]
    if report.worst_off is not None:
        parts += ["## Who is worst off", literal(report.worst_off.status)]
        if len(report.worst_off.rules):
            parts.append(markdown_table(report.worst_off.rules))
        parts += [literal(note)] if (note := report.worst_off.note) else []
    parts += ["## Method card", *map(markdown_table, report.method)]
    parts += ["### Limits", "\n".join(f"- {literal(limit)}" for limit in report.limits)]
    parts.append(f"drosurv {report.version}, {report.created}.")
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """A table with its caption above."""
    head = [literal(column.label) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    body = [[literal(cell) for cell in row] for row in table.cells()]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    return "\n".join([literal(table.caption), "", *lines])
