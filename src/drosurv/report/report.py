"""The report of an audit: its sections as a page, Markdown and JSON, and a short summary for programs.

The summary is a JSON document with a versioned schema; docs/guide/audit.md describes every field. Within a version
fields may be added; if one is renamed, removed or changes its meaning, the version is increased.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from hashlib import sha256
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from drosurv._version import __version__
from drosurv.evaluation.risks_by_time import COLUMNS
from drosurv.files import import_files, write_file
from drosurv.judging.group_picture import GroupPicture
from drosurv.judging.verdict import FindingRow, to_frame
from drosurv.patients.target import cause_names, has_causes
from drosurv.presentation import (
    Statement,
    Table,
    cause_in_words,
    cause_label,
    cause_title,
    counted,
    counted_patients,
    first_upper,
    listing,
    literal,
)
from drosurv.report.evidence import Evidence, Part, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA, VERSION = "drosurv.report.summary", 4
# Between the ends of an interval, such as 0.70 to 1.01 or 12 % to 15 %.
_BETWEEN = re.compile(r"(?<=[\d%]) to (?=[−-]?\d)")
# Facts of a section that Markdown shows as lists.
_LISTS = {"missing": "Left out, or computed otherwise", "limits": "Limits"}
PathLike = str | os.PathLike[str]


@cache
def all_sections() -> tuple[Section, ...]:
    """Return every :class:`Section` in the files of ``report/sections``, sorted by `place`."""
    package = import_module("drosurv.report.sections")
    modules = import_files(package.__name__)
    found = {value for module in modules for value in vars(module).values() if isinstance(value, Section)}
    return tuple(sorted(found, key=lambda section: section.place))


@dataclass(frozen=True, repr=False)
class AuditReport:
    """The report of an audit.

    Attributes
    ----------
    title, subtitle : str
        Title, and the audited patients in words.
    created : str
        Date.
    version : str
        Version of drosurv.
    level : str
        Confidence level of all intervals, such as "95 %".
    time_unit : str
        Unit of the times, such as "days".
    model : str
        Name of the audited model.
    parts : mapping of str to Part
        What each section shows, by its key.
    all_sections : tuple of Section
        All sections in order, also those with nothing to show.
    """

    title: str
    subtitle: str
    created: str
    version: str
    level: str
    time_unit: str
    model: str
    parts: Mapping[str, Part]
    all_sections: tuple[Section, ...] = field(default_factory=all_sections)

    @staticmethod
    def of(evidence: Evidence) -> AuditReport:
        """Make the report: every section collects what it shows from the evidence."""
        page, cause = evidence.page, evidence.cause
        sections = tuple(sorted([*all_sections(), *page.sections], key=lambda section: section.place))
        found = {section.key: section.collect(evidence) for section in sections}
        parts = {key: part for key, part in found.items() if part is not None}
        titles = [
            evidence.audited_model.name,
            f"on {page.data_name}" if page.data_name else "",
            "" if cause is None else cause_title(cause_label(cause, cause_names(evidence.y))),
        ]
        return AuditReport(
            title=page.title or ", ".join(filter(None, titles)),
            subtitle=_subtitle(evidence),
            created=date.today().isoformat(),
            version=__version__,
            level=f"{100 * evidence.level:g} %",
            time_unit=evidence.time_unit,
            model=evidence.audited_model.name,
            parts=parts,
            all_sections=sections,
        )

    kind: ClassVar[str] = "Audit of a survival model"

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Statements of all sections, those of the verdict first."""
        return tuple(s for section in self.sections for s in self.parts[section.key].statements)

    @property
    def sections(self) -> list[Section]:
        """The sections that have something to show, in order."""
        return [section for section in self.all_sections if section.key in self.parts]

    @property
    def tables(self) -> dict[str, Table]:
        """Tables of all sections, by key."""
        return {table.key: table for part in self.parts.values() for table in part.tables}

    @property
    def _verdict(self) -> Part:
        return self.parts.get("verdict", Part())

    @property
    def status(self) -> str:
        """Status of the verdict, such as "clear" or "miscalibrated" (docs/guide/verdict.md)."""
        return str(self._verdict.facts.get("status", ""))

    @property
    def findings(self) -> pd.DataFrame:
        """What was found, as in :attr:`drosurv.EvaluationResult.findings`; p-values allow for the search too."""
        return to_frame([FindingRow(**row) for row in self._verdict.facts.get("findings", ())])

    @property
    def times(self) -> pd.DataFrame:
        """Predicted and observed risk by a few times, as :attr:`drosurv.EvaluationResult.times`."""
        return pd.DataFrame(self._verdict.facts.get("times", []), columns=list(COLUMNS))

    @property
    def picture(self) -> GroupPicture:
        """Observed over predicted risk of all patients and the groups, and events of subgroups that were found."""
        return GroupPicture.from_records(self._verdict.facts.get("picture", ()))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw :attr:`picture`."""
        return self.picture.plot(ax)

    def __repr__(self) -> str:
        texts = [statement.text for statement in self._verdict.statements]
        return "\n".join([self.title, self.subtitle, *texts, *self.picture.to_text().splitlines()])

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(statement.text)}</li>" for statement in self._verdict.statements)
        table = self._verdict.table("groups")
        groups = "" if table is None else table.to_html()
        return f"<p><b>{escape(self.title)}</b><br>{escape(self.subtitle)}</p><ul>{items}</ul>{groups}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {
            "title": self.title,
            "subtitle": self.subtitle,
            "created": self.created,
            "drosurv": self.version,
            "level": self.level,
            "time": self.time_unit,
            "model": self.model,
            "sections": {
                key: {"statements": [vars(s) for s in part.statements], "facts": dict(part.facts)}
                for key, part in self.parts.items()
            },
            "tables": {key: table.to_dict() for key, table in self.tables.items()},
        }

    def to_summary(self, path: PathLike | None = None) -> str:
        """Return the verdict and its numbers as JSON with a stable schema; also write it to `path` if given."""
        verdict = self._verdict
        missed, method = (self.parts.get(key, Part()) for key in ("missed", "method"))
        texts = {
            code: [s.text for s in verdict.statements if s.code == code]
            for code in ("verdict", "excluded", "closing", "next_step")
        }
        summary = {
            "schema": SCHEMA,
            "version": VERSION,
            "title": self.title,
            "created": self.created,
            "drosurv": self.version,
            "model": self.model,
            "level": self.level,
            "time_unit": self.time_unit,
            "warnings": verdict.facts.get("warnings", []),
            "verdict": {
                "status": verdict.facts.get("status"),
                "text": " ".join([*texts["verdict"], *texts["excluded"], *texts["closing"]]),
                "problems": verdict.facts.get("problems", []),
            },
            "findings": verdict.facts.get("findings", []),
            "groups": [row for table in verdict.tables if table.key == "groups" for row in table.rows],
            "times": verdict.facts.get("times", []),
            "subgroup_bounds": missed.facts.get("bounds"),
            "statements": [vars(s) for s in self.statements],
            "next_steps": texts["next_step"],
            "not_computed": method.facts.get("missing", []),
            "limits": method.facts.get("limits", []),
        }
        return _written(_json(summary), path)

    def to_json(self, path: PathLike | None = None) -> str:
        """Return everything as strict JSON; also write it to `path` if given."""
        return _written(_json(self.to_dict()), path)

    def to_markdown(self, path: PathLike | None = None) -> str:
        """Return all statements and tables as Markdown; also write it to `path` if given."""
        parts = [f"# {literal(self.title)}", literal(self.subtitle)]
        for section in self.sections:
            parts += [f"## {literal(section.heading)}", *_markdown(self.parts[section.key])]
        parts.append(f"drosurv {self.version}, {self.created}.")
        return _written("\n\n".join(parts) + "\n", path)

    def to_html(self, path: PathLike | None = None) -> str:
        """Return the page, which needs no other file and has every value escaped; also write it to `path` if given."""
        shown = [(section, self.parts[section.key]) for section in self.sections]
        return _written(page_of(self, shown), path)


def page_of(report: Any, shown: Sequence[tuple[Section, Part]]) -> str:
    """Return a page of sections in the style of a report with kind, title, subtitle, version, created, to_dict."""
    from importlib.resources import files

    from markupsafe import Markup

    templates = files("drosurv.report").joinpath("templates")
    script = templates.joinpath("page.js").read_text(encoding="utf-8")
    page: str = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            report=report,
            template=_template,
            sections=[(section, part, section.draw(part)) for section, part in shown],
            style=Markup(templates.joinpath("page.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
            tables_json=Markup(script_json(report.to_dict())),
        )
    )
    return page


@lru_cache(maxsize=64)
def _template(text: str) -> Any:
    """Return the template of a section, or of its introduction, compiled once."""
    return _environment().from_string(text)


@cache
def _environment() -> Any:
    """Return the environment of templates, with those of the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("drosurv.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: unbroken(value) if type(value) is str else value,
    )
    environment.filters["first_upper"] = first_upper
    environment.filters["with_code"] = with_code
    return environment


def with_code(text: str) -> Any:
    """Return a text as HTML, in which words between backticks are code, in one line.

    >>> with_code("Pass `--groups sex`.")
    Markup('Pass <code>--groups sex</code>.')
    """
    from markupsafe import Markup

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(unbroken(text)))))


def unbroken(text: str) -> str:
    r"""Return a text in which a line ends neither before a percent sign, nor after "=", nor inside "0.70 to 1.01".

    >>> unbroken("0.84 (0.70 to 1.01), p = 0.01").replace("\u00a0", "_")
    '0.84 (0.70_to_1.01), p_=_0.01'
    """
    text = text.replace(" %", "\u00a0%").replace("p = ", "p\u00a0=\u00a0").replace(" = ", " =\u00a0")
    return _BETWEEN.sub("\u00a0to\u00a0", text)


def script_json(value: Any) -> str:
    """Return JSON for a script element: no character in it can end the element or start a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _markdown(part: Part) -> Iterator[str]:
    if part.statements:
        yield "\n".join(f"- {literal(statement.text)}" for statement in part.statements)
    for table in part.tables:
        if len(table):
            yield table.to_markdown().rstrip()
    for name, heading in _LISTS.items():
        if part.facts.get(name):
            yield "\n".join([f"### {heading}", "", *(f"- {literal(entry)}" for entry in part.facts[name])])
    if part.facts.get("note"):
        yield literal(part.facts["note"])


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def _written(text: str, path: PathLike | None) -> str:
    if path is not None:
        write_file(path, text)
    return text


def _subtitle(evidence: Evidence) -> str:
    y, target = evidence.y, evidence.target
    who = counted_patients(evidence.n_patients, 0, evidence.rows.n_clusters, evidence.rows.clusters_name)
    text = f"{who} with {counted(target.n_events, 'event')}"
    if has_causes(y):
        text += f" of {cause_in_words(evidence.cause, cause_names(y))}"
    if evidence.attributes:
        text += f", in groups by {listing(list(evidence.audited.headings.values()))}"
    trained = evidence.trained_on
    return f"{text}." + (f" The model was trained on {counted(trained[0], 'patient')}." if trained else "")
