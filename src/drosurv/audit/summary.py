"""The summary for programs: a small JSON document whose schema is versioned and stays.

Version 1; docs/guide/audit.md describes every field. Fields may be added within a version; one that is renamed, removed
or changes its meaning raises it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA = "drosurv.audit.summary"
VERSION = 1


def summary_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a report, which is given as :meth:`~drosurv.audit.AuditReport.to_dict` writes it."""
    sections = report["sections"]
    verdict = sections.get("verdict", {"statements": [], "facts": {}})
    facts = verdict["facts"]
    audited = next(model for model in report["models"] if model["audited"])
    said = {
        code: [s["text"] for s in verdict["statements"] if s["code"] == code]
        for code in ("verdict", "next_step")
    }
    method = sections.get("method", {"facts": {}})["facts"]
    guidelines = report["tables"].get("guidelines", {"columns": [], "rows": []})
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": report["title"],
        "created": report["created"],
        "drosurv": report["drosurv"],
        "model": audited["name"],
        "level": report["level"],
        "time_unit": report["time"],
        "verdict": {"status": facts.get("status"), "text": " ".join(said["verdict"])},
        "per_100": facts.get("per_100", {}),
        "groups": facts.get("groups", []),
        "gaps": facts.get("gaps", []),
        "statements": [
            *(s for section in sections.values() for s in section["statements"]),
            *audited["summary"],
        ],
        "next_steps": said["next_step"],
        "not_computed": method.get("missing", []),
        "limits": method.get("limits", []),
        "guidelines": [dict(zip(guidelines["columns"], row, strict=True)) for row in guidelines["rows"]],
    }
