"""The contents of a report: every section that has a file in ``sections``, in order."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from drosurv.audit.sections.section import Section


@cache
def all_sections() -> tuple[Section, ...]:
    """The ``SECTION`` of every file in ``sections``, by place."""
    room = import_module(Section.__module__.rpartition(".")[0])
    modules = [import_module(f"{room.__name__}.{found.name}") for found in iter_modules(room.__path__)]
    found = [module.SECTION for module in modules if hasattr(module, "SECTION")]
    return tuple(sorted(found, key=lambda section: section.place))
