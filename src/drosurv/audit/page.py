"""The page: one HTML file, everything inline, nothing loaded, every value escaped."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import written


def render(report: Any, sections: Sequence[tuple[Section, Part]], data: Mapping[str, Any]) -> str:
    """The whole page.

    Parameters
    ----------
    report : AuditReport
        What the templates read.
    sections : sequence of pairs
        What to show, in order.
    data : mapping
        What the page's script and downloads read.
    """
    from importlib.resources import files

    from jinja2 import ChoiceLoader, DictLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = files("drosurv.audit").joinpath("templates")
    script = templates.joinpath("page.js").read_text(encoding="utf-8")
    own = DictLoader({f"sections/{section.key}": section.template for section, _ in sections})
    environment = Environment(
        loader=ChoiceLoader([own, PackageLoader("drosurv.audit")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["written"] = written
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    shown = [(section, part, section.draw(part)) for section, part in sections]
    return environment.get_template("page.html.jinja").render(
        report=report,
        sections=shown,
        style=Markup(templates.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        tables_json=Markup(script_json(data)),
    )


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: no character in it can end the element or start a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
