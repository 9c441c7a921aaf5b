"""The report of an audit as readers want it: the page, Markdown and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from drosurv.audit.collected import CollectedAudit
from drosurv.audit.page import render
from drosurv.audit.sections.section import Part
from drosurv.audit.summary import summary_of
from drosurv.files import write_file
from drosurv.presentation import literal

# Facts of a section that Markdown shows as lists.
_LISTS = {"missing": "What could not be computed", "limits": "Limits"}


@dataclass(frozen=True, repr=False)
class AuditReport(CollectedAudit):
    """The report.

    Attributes
    ----------
    title, subtitle : str
        What was audited, and on whom.
    created : str
        Date.
    version : str
        Of drosurv.
    level : str
        Of all intervals, such as "95 %".
    time_unit : str
        What the times count, such as "days".
    models : tuple of ModelAudit
        The audited model and those to compare it with, in the order of the slider.
    parts : mapping of str to Part
        What each section found, by its key.
    """

    def __repr__(self) -> str:
        said = [statement.text for statement in self._verdict.statements]
        return "\n".join([self.title, self.subtitle, *said])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(statement.text)}</li>" for statement in self._verdict.statements)
        tables = "".join(table.to_html() for table in self._verdict.tables)
        return f"<p><b>{escape(self.title)}</b><br>{escape(self.subtitle)}</p><ul>{said}</ul>{tables}"

    def to_summary(self, path: str | os.PathLike[str] | None = None) -> str:
        """The verdict and the numbers behind it as JSON of a stable schema; also written to `path` if given."""
        return _written(_json(summary_of(self)), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything as strict JSON; also written to `path` if given."""
        return _written(_json(self.to_dict()), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """What is said and every table of the audited model as Markdown; also written to `path` if given."""
        parts = [f"# {literal(self.title)}", literal(self.subtitle)]
        for section in self.sections:
            parts += [f"## {literal(section.heading)}", *_markdown(self.parts[section.key], self.start)]
        parts.append(f"drosurv {self.version}, {self.created}.")
        return _written("\n\n".join(parts) + "\n", path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One page that needs nothing but itself; also written to `path` if given."""
        return _written(render(self), path)


def _markdown(part: Part, shown: int) -> Iterator[str]:
    said = [*part.statements, *part.said_of(shown)]
    if said:
        yield "\n".join(f"- {literal(statement.text)}" for statement in said)
    for table in (*part.tables_of(shown), *part.tables):
        if len(table):
            yield table.to_markdown().rstrip()
    for name, heading in _LISTS.items():
        if part.facts.get(name):
            yield "\n".join([f"### {heading}", "", *(f"- {literal(entry)}" for entry in part.facts[name])])
    if part.facts.get("note"):
        yield literal(part.facts["note"])


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        write_file(path, text)
    return text
