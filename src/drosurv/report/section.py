"""Sections of the report of an audit, and what each shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from drosurv.presentation import Column, Statement, Table
from drosurv.report.evidence import Evidence

# Columns of several tables: names of a group, and its counts.
WHO = (Column("group", "Group"), Column("attribute", "Attribute"))
PATIENTS, EVENTS = Column("patients", "Patients", "count"), Column("observed", "Events", "count")
EXPECTED = Column("expected", "Events expected", "time")


def judged_counts(until: str) -> tuple[Column, Column]:
    """Return the columns of observed and expected events: of the whole follow-up, or weighted, `until` a time."""
    if not until:
        return EVENTS, replace(EXPECTED, label="Events expected during follow-up")
    return replace(EVENTS, label=f"Events by {until}, weighted"), replace(
        EXPECTED, label=f"Expected by {until}"
    )


@dataclass(frozen=True)
class Part:
    """What a section shows, as data from which every view is made.

    `facts` are other values that JSON can hold.
    """

    statements: tuple[Statement, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def table(self, key: str) -> Table | None:
        """Return a table by its key; None if there is none."""
        return next((table for table in self.tables if table.key == key), None)


@dataclass(frozen=True)
class Section:
    """A section of the report. Sections are sorted by `place`; `key` is the anchor in the page and the name in JSON.

    `collect` returns what the section shows of the evidence, None for nothing. `draw` returns what the template gets as
    ``drawn``, such as charts. The introduction, shown beside the heading, and the template are Jinja templates with the
    variables ``part``, ``drawn``, ``report`` and ``section``, and the macros ``m``. The default template shows every
    statement and table.
    """

    key: str
    heading: str
    place: int
    collect: Callable[[Evidence], Part | None] = lambda evidence: None
    intro: str = ""
    template: str = "{{ m.findings(part) }}"
    draw: Callable[[Part], Any] = lambda part: None
