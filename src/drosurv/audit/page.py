"""The report as one HTML file: everything inline, nothing loaded, every value escaped."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from drosurv.audit.charts.forest import Forest, calibration_forests, group_forests
from drosurv.audit.charts.survival import survival_charts
from drosurv.audit.charts.trade_off import trade_off_charts

if TYPE_CHECKING:
    from drosurv.audit.charts.chart import Chart
    from drosurv.audit.report import AuditReport

CONTENTS = (
    ("summary", "Summary"),
    ("accuracy", "Accuracy and fairness"),
    ("groups", "By group"),
    ("calibration", "Calibration and survival by group"),
    ("trade-off", "Accuracy against fairness"),
    ("worst-off", "Who is worst off"),
    ("method", "Method card"),
)


@dataclass(frozen=True)
class ModelView:
    """The drawings of one model."""

    groups: Forest
    calibration: Forest
    survival: tuple[Chart, ...]


def as_html(report: AuditReport) -> str:
    """The whole page."""
    from importlib.resources import files

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = files("drosurv.audit").joinpath("templates")
    script = templates.joinpath("page.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("drosurv.audit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    models = report.models
    groups = group_forests([model.groups for model in models])
    calibration = calibration_forests([model.calibration for model in models], report.audited.groups)
    curves = [survival_charts(model.survival, report.time_title) for model in models]
    views = [ModelView(*drawings) for drawings in zip(groups, calibration, curves, strict=True)]
    return environment.get_template("page.html.jinja").render(
        report=report,
        contents=CONTENTS,
        views=views,
        trade_off_charts=trade_off_charts(report.trade_off, report.control, report.attributes),
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
