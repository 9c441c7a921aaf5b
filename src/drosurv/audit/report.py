"""The report of an audit: tables first; pages, Markdown and JSON are views of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drosurv.presentation import Statement, Table


@dataclass(frozen=True)
class ModelAudit:
    """What is known about one model.

    Attributes
    ----------
    name : str
        Such as "DROCox, alpha 0.2".
    alpha : float, optional
        Share of patients that its training protects.
    audited : bool
        Whether it is the model under audit, or one to compare it with.
    statements : tuple of Statement
        The summary.
    headline : dict
        The few numbers that one looks at first, as they are written, by name.
    accuracy, fairness, groups, calibration, survival, shrinkage : Table
    """

    name: str
    alpha: float | None
    audited: bool
    statements: tuple[Statement, ...]
    headline: dict[str, str]
    accuracy: Table
    fairness: Table
    groups: Table
    calibration: Table
    survival: Table
    shrinkage: Table

    @property
    def stop_label(self) -> str:
        """What stands below the slider."""
        return "audited" if self.alpha is None else f"{self.alpha:g}"

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table."""
        return (
            self.accuracy,
            self.fairness,
            self.groups,
            self.calibration,
            self.survival,
            self.shrinkage,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "name": self.name,
            "alpha": self.alpha,
            "audited": self.audited,
            "summary": [vars(statement) for statement in self.statements],
            "headline": self.headline,
            "tables": {table.key: table.to_dict() for table in self.tables},
        }


@dataclass(frozen=True)
class WorstOffAudit:
    """Rules that describe the patients served worst.

    Attributes
    ----------
    status : str
        What was found, in a sentence.
    rules : Table
        Every rule tried, with its verdict.
    note : str
        How harm is measured.
    """

    status: str
    rules: Table
    note: str

    @property
    def found(self) -> bool:
        """Whether a rule held up on patients not used to find it."""
        return any(row.get("verdict") == "harmed" for row in self.rules.rows)


@dataclass(frozen=True)
class AuditReport:
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
    time_title : str
        What the times are, such as "days".
    attributes : tuple of str
        Names of the sensitive attributes.
    models : tuple of ModelAudit
        The audited model and those to compare it with, in the order of the slider.
    trade_off : Table
        One row per model.
    control : Table or None
        The reference model's scores multiplied by factors below one.
    worst_off : WorstOffAudit or None
    method : tuple of Table
        Facts of the data, settings, versions.
    limits : tuple of str
        What the report cannot say.
    """

    title: str
    subtitle: str
    created: str
    version: str
    level: str
    time_title: str
    attributes: tuple[str, ...]
    models: tuple[ModelAudit, ...]
    trade_off: Table
    control: Table | None
    worst_off: WorstOffAudit | None
    method: tuple[Table, ...]
    limits: tuple[str, ...]

    @property
    def start(self) -> int:
        """Number of the audited model among the models."""
        return next(k for k, model in enumerate(self.models) if model.audited)

    @property
    def audited(self) -> ModelAudit:
        """What is known about the audited model."""
        return self.models[self.start]

    @property
    def shared_tables(self) -> Iterator[Table]:
        """The tables that do not depend on the model shown."""
        yield self.trade_off
        if self.control is not None:
            yield self.control
        if self.worst_off is not None:
            yield self.worst_off.rules
        yield from self.method

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "title": self.title,
            "subtitle": self.subtitle,
            "created": self.created,
            "drosurv": self.version,
            "level": self.level,
            "time": self.time_title,
            "models": [model.to_dict() for model in self.models],
            "worst_off": None
            if self.worst_off is None
            else {"status": self.worst_off.status, "note": self.worst_off.note},
            "tables": {table.key: table.to_dict() for table in self.shared_tables},
            "limits": list(self.limits),
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything as strict JSON; also written to `path` if given."""
        return _written(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The audited model's summary and tables as Markdown; also written to `path` if given."""
        from drosurv.audit.markdown import as_markdown

        return _written(as_markdown(self), path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One page that needs nothing but itself; also written to `path` if given."""
        from drosurv.audit.page import as_html

        return _written(as_html(self), path)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
