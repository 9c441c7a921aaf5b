"""Sections are found by their files, and what each found is in every view."""

import re
import sys
from pathlib import Path

import pytest

from drosurv import CoxPH
from drosurv.datasets import make_hidden_minority
from drosurv.report import Page, audit, sections
from drosurv.report.report import all_sections

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "audit.md"


@pytest.fixture
def one_more_file(tmp_path, monkeypatch):
    """The file that the guide shows, beside the sections, for as long as the test runs."""
    (shown,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "years_seen.py").write_text(shown)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    all_sections.cache_clear()
    yield
    sys.modules.pop("drosurv.report.sections.years_seen", None)
    all_sections.cache_clear()


def test_a_new_section_is_one_file(one_more_file):
    data = make_hidden_minority(120, random_state=0)
    options = {"search_rules": False, "page": Page(also={"ward": "<ward 7>"})}
    report = audit(CoxPH().fit(data.X, data.y), data.X, data.y, sensitive_features=None, **options)
    said = f"{data.y['time'].sum():,.0f} years were seen on <ward 7>."
    html = report.to_html()
    assert (
        html.index('<section id="calibration"')
        < html.index('<section id="follow-up"')
        < html.index('id="missed"')
    )
    assert '<a href="#follow-up">Follow-up</a>' in html
    assert said.replace("<", "&lt;").replace(">", "&gt;") in html
    assert "## Follow-up" in report.to_markdown()
    assert said in [statement.text for statement in report.statements]
    assert report.to_dict()["tables"]["years_seen"]["rows"][0][0] == "<ward 7>"


def test_every_section_has_a_place_a_heading_and_a_template_of_its_own():
    sections = all_sections()
    assert len({section.key for section in sections}) == len(sections)
    assert [section.place for section in sections] == sorted({section.place for section in sections})
    assert sections[0].key == "verdict"
    for section in sections:
        assert section.heading
        assert section.template.count("<div") == section.template.count("</div")


def test_every_section_of_a_report_is_on_the_page_in_order(report):
    anchors = re.findall(r'<section id="([^"]+)"', report.to_html())
    assert anchors == [section.key for section in all_sections() if section.key in report.parts]
