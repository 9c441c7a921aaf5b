"""What an audit found: what each section collected from the evidence, and what is known about each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

from drosurv._version import __version__
from drosurv.audit.evidence import Evidence
from drosurv.audit.sections.section import Part, Section, all_sections
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.summary import judged_gaps
from drosurv.presentation import Statement, Table, group_name, listing, written


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
        What its numbers say.
    headline : dict
        The few numbers that one looks at first, as they are written, by name.
    tables : mapping of str to Table
        Its tables by key.
    """

    name: str
    alpha: float | None
    audited: bool
    statements: tuple[Statement, ...]
    headline: dict[str, str]
    tables: Mapping[str, Table]

    @property
    def stop_label(self) -> str:
        """What stands below the slider."""
        return "audited" if self.alpha is None else f"{self.alpha:g}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "name": self.name,
            "alpha": self.alpha,
            "audited": self.audited,
            "summary": [vars(statement) for statement in self.statements],
            "headline": self.headline,
            "tables": {key: table.to_dict() for key, table in self.tables.items()},
        }


@dataclass(frozen=True, repr=False)
class CollectedAudit:
    """What a report is made of; :class:`drosurv.audit.AuditReport` explains the fields."""

    title: str
    subtitle: str
    created: str
    version: str
    level: str
    time_unit: str
    models: tuple[ModelAudit, ...]
    parts: Mapping[str, Part]

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Let every section collect what it shows of the evidence."""
        found = {section.key: section.collect(evidence) for section in all_sections()}
        parts = {key: part for key, part in found.items() if part is not None}
        models = tuple(
            ModelAudit(
                name=stop.name,
                alpha=stop.alpha,
                audited=stop.audited,
                statements=tuple(s for part in parts.values() for s in part.said_of(k)),
                headline=_headline(evidence.results[k]),
                tables={table.key: table for part in parts.values() for table in part.tables_of(k)},
            )
            for k, stop in enumerate(evidence.stops)
        )
        name, data = evidence.stops[evidence.start].name, evidence.data_name
        return cls(
            title=evidence.title or (f"{name}, on {data}" if data else name),
            subtitle=_subtitle(evidence),
            created=date.today().isoformat(),
            version=__version__,
            level=f"{100 * evidence.level:g} %",
            time_unit=evidence.time_unit,
            models=models,
            parts=parts,
        )

    @property
    def start(self) -> int:
        """Number of the audited model among the models."""
        return next(k for k, model in enumerate(self.models) if model.audited)

    @property
    def audited(self) -> ModelAudit:
        """What is known about the audited model."""
        return self.models[self.start]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What the sections say of the audited model, the verdict first."""
        return tuple(s for section in self.sections for s in self.parts[section.key].statements)

    @property
    def sections(self) -> list[Section]:
        """The sections that have something to show, in order."""
        return [section for section in all_sections() if section.key in self.parts]

    @property
    def tables(self) -> dict[str, Table]:
        """The tables that do not depend on the model shown, by key."""
        return {table.key: table for part in self.parts.values() for table in part.tables}

    @property
    def _verdict(self) -> Part:
        return self.parts.get("verdict", Part())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "title": self.title,
            "subtitle": self.subtitle,
            "created": self.created,
            "drosurv": self.version,
            "level": self.level,
            "time": self.time_unit,
            "models": [model.to_dict() for model in self.models],
            "sections": {
                key: {"statements": [vars(s) for s in part.statements], "facts": dict(part.facts)}
                for key, part in self.parts.items()
            },
            "tables": {key: table.to_dict() for key, table in self.tables.items()},
        }


def _headline(result: EvaluationResult) -> dict[str, str]:
    """The few numbers that change as the slider moves."""
    worst = next((gap for gap in judged_gaps(result, "concordance_index") if gap.size > 0), None)
    found = {"c-index": written(result.value("concordance_index"))}
    if worst is not None:
        found["Served worst"] = f"{written(worst.worst[1])}, {group_name(worst.attribute, worst.worst[0])}"
        found["Gap"] = written(worst.size)
    return found


def _subtitle(evidence: Evidence) -> str:
    told = f"{len(evidence.target):,} patients with {evidence.target.n_events:,} events"
    if evidence.attributes:
        told += f", in groups by {listing(list(evidence.audited.headings.values()))}"
    trained = evidence.data.get("Patients trained on")
    return f"{told}." + (f" The model was trained on {trained} patients." if trained else "")
