"""A section of the report: what it collects, and how it is laid out. A new one is a file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from drosurv.audit.evidence import Evidence
from drosurv.presentation import Statement, Table


@dataclass(frozen=True)
class Part:
    """What a section found: plain data, from which every view is made.

    `statements` are of the audited model and `tables` of no model; `by_model` and `said_by_model` hold tables and
    statements of each model, `facts` other values, as JSON knows them.
    """

    statements: tuple[Statement, ...] = ()
    tables: tuple[Table, ...] = ()
    by_model: tuple[tuple[Table, ...], ...] = ()
    said_by_model: tuple[tuple[Statement, ...], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def tables_of(self, model: int) -> tuple[Table, ...]:
        """The tables of one model."""
        return self.by_model[model] if self.by_model else ()

    def said_of(self, model: int) -> tuple[Statement, ...]:
        """What is said of one model."""
        return self.said_by_model[model] if self.said_by_model else ()

    def table(self, key: str, model: int | None = None) -> Table | None:
        """A table of one model, or one that all models share; None where there is none."""
        tables = self.tables if model is None else self.tables_of(model)
        return next((table for table in tables if table.key == key), None)


@dataclass(frozen=True)
class Section:
    """One section, shown in the order of the places; the key is its anchor, and its name in JSON.

    `collect` finds in the evidence what is shown, None for nothing; `draw` makes of that what the template calls
    ``drawn``, such as charts. The introduction, which stands beside the heading, and the template are Jinja: they see
    ``part``, ``drawn``, ``report``, ``section`` and the macros ``m``. By default every sentence and table is shown.
    """

    key: str
    heading: str
    place: int
    collect: Callable[[Evidence], Part | None]
    intro: str = ""
    template: str = "{{ m.findings(part) }}"
    draw: Callable[[Part], Any] = lambda part: None


@cache
def all_sections() -> tuple[Section, ...]:
    """Every :class:`Section` in the files of this folder, by place."""
    package = import_module(__name__.rpartition(".")[0])
    modules = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, Section)}
    return tuple(sorted(found, key=lambda section: section.place))
