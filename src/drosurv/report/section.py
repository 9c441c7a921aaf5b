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
EXPECTED = Column("expected", "Expected", "time")


def judged_counts(until: str) -> tuple[Column, Column]:
    """Return the columns of observed and expected events: of the whole follow-up, or weighted, `until` a time."""
    if not until:
        return EVENTS, EXPECTED
    return replace(EVENTS, label=f"Events by {until}, weighted"), replace(
        EXPECTED, label=f"Expected by {until}"
    )


@dataclass(frozen=True)
class Part:
    """What a section shows, as data from which every view is made.

    `statements` are about the audited model; `tables` do not depend on the model. `by_model` and `statements_by_model`
    hold tables and statements of each model of the slider, `facts` other values that JSON can hold.
    """

    statements: tuple[Statement, ...] = ()
    tables: tuple[Table, ...] = ()
    by_model: tuple[tuple[Table, ...], ...] = ()
    statements_by_model: tuple[tuple[Statement, ...], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def tables_of(self, model: int) -> tuple[Table, ...]:
        """Return the tables of one model."""
        return self.by_model[model] if self.by_model else ()

    def statements_of(self, model: int) -> tuple[Statement, ...]:
        """Return the statements about one model."""
        return self.statements_by_model[model] if self.statements_by_model else ()

    def table(self, key: str, model: int | None = None) -> Table | None:
        """Return a table by its key, of one model or of none; None if there is none."""
        tables = self.tables if model is None else self.tables_of(model)
        return next((table for table in tables if table.key == key), None)


@dataclass(frozen=True)
class Section:
    """A section of the report. Sections are sorted by `place`; `key` is the anchor in the page and the name in JSON.

    `collect` returns what the section shows of the evidence, None for nothing. `draw` returns what the template gets as
    ``drawn``, such as charts. The introduction, shown beside the heading, and the template are Jinja templates with the
    variables ``part``, ``drawn``, ``report`` and ``section``, and the macros ``m``. The default template shows every
    statement and table. With a text `folded`, the section is folded away behind it.
    """

    key: str
    heading: str
    place: int
    collect: Callable[[Evidence], Part | None] = lambda evidence: None
    intro: str = ""
    template: str = "{{ m.findings(part) }}"
    draw: Callable[[Part], Any] = lambda part: None
    folded: str = ""
