"""The summary for programs: a small JSON document whose schema is versioned and stays.

Version 1; docs/guide/audit.md describes every field. Fields may be added within a version; one that is renamed, removed
or changes its meaning raises it.
"""

from __future__ import annotations

from typing import Any

from drosurv.audit.collected import CollectedAudit
from drosurv.audit.sections.section import Part

SCHEMA = "drosurv.audit.summary"
VERSION = 1


def summary_of(report: CollectedAudit) -> dict[str, Any]:
    """The summary of a report; fields of sections that it does not have are empty."""
    verdict, method, guidelines = (
        report.parts.get(key, Part()) for key in ("verdict", "method", "guidelines")
    )
    said = {code: [s.text for s in verdict.statements if s.code == code] for code in ("verdict", "next_step")}
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": report.title,
        "created": report.created,
        "drosurv": report.version,
        "model": report.audited.name,
        "level": report.level,
        "time_unit": report.time_unit,
        "verdict": {"status": verdict.facts.get("status"), "text": " ".join(said["verdict"])},
        "per_100": verdict.facts.get("per_100", {}),
        "groups": verdict.facts.get("groups", []),
        "gaps": verdict.facts.get("gaps", []),
        "statements": [vars(s) for s in (*report.statements, *report.audited.statements)],
        "next_steps": said["next_step"],
        "not_computed": method.facts.get("missing", []),
        "limits": method.facts.get("limits", []),
        "guidelines": [row for table in guidelines.tables for row in table.rows],
    }
