"""The report as Markdown: the audited model's summary and every table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from drosurv.presentation import Table, literal

if TYPE_CHECKING:
    from drosurv.audit.report import AuditReport


def as_markdown(report: AuditReport) -> str:
    """The audited model's summary and tables, then those that compare models, then the method card."""
    shown = report.audited
    parts = [f"# {literal(report.title)}", literal(report.subtitle), "## Summary"]
    parts.append("\n".join(f"- {literal(statement.text)}" for statement in shown.statements))
    parts += ["## Accuracy and fairness", *_all((shown.accuracy, shown.fairness))]
    parts += ["## By group", *_all((shown.groups, shown.calibration))]
    parts += ["## Accuracy against fairness", *_all((report.trade_off, shown.shrinkage))]
    if report.worst_off is not None:
        parts += ["## Who is worst off", literal(report.worst_off.status)]
        if len(report.worst_off.rules):
            parts += _all((report.worst_off.rules,))
        parts += [literal(note)] if (note := report.worst_off.note) else []
    parts += ["## Method card", *_all(report.method)]
    parts += ["### Limits", "\n".join(f"- {literal(limit)}" for limit in report.limits)]
    parts.append(f"drosurv {report.version}, {report.created}.")
    return "\n\n".join(parts) + "\n"


def _all(tables: Iterable[Table]) -> list[str]:
    return [table.to_markdown().rstrip() for table in tables]
