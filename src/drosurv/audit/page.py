"""The page: one HTML file, everything inline, nothing loaded, every value escaped."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

from drosurv.audit.collected import CollectedAudit
from drosurv.presentation import first_upper, written


def render(report: CollectedAudit) -> str:
    """The whole page."""
    from importlib.resources import files

    from jinja2 import ChoiceLoader, DictLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = files("drosurv.audit").joinpath("templates")
    script = templates.joinpath("page.js").read_text(encoding="utf-8")
    own = {f"sections/{section.key}": section.template for section in report.sections}
    own |= {f"intros/{section.key}": section.intro for section in report.sections}
    environment = Environment(
        loader=ChoiceLoader([DictLoader(own), PackageLoader("drosurv.audit")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["written"] = written
    environment.filters["first_upper"] = first_upper
    shown = [(section, report.parts[section.key]) for section in report.sections]
    return environment.get_template("page.html.jinja").render(
        report=report,
        sections=[(section, part, section.draw(part)) for section, part in shown],
        style=Markup(templates.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        tables_json=Markup(script_json(report.to_dict())),
    )


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: no character in it can end the element or start a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
