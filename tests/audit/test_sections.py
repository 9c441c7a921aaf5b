"""Sections are found by their files, and what each found is in every view."""

import re
import sys

import pytest

from drosurv import CoxPH
from drosurv.audit import audit, sections
from drosurv.audit.contents import all_sections
from drosurv.datasets import make_hidden_minority

# What somebody would write who wants to tell how long patients were followed.
NEW_SECTION = '''
from drosurv.audit.sections.section import Part, Section
from drosurv.presentation import Column, Statement, Table

def collect(evidence):
    ward, years = evidence.also["ward"], float(evidence.target.time.sum())
    table = Table("years", "Followed", (Column("who", "Who"), Column("years", "Years", "count")),
                  ({"who": ward, "years": years},))
    return Part(statements=(Statement("years", f"{years:,.0f} years were seen on {ward}."),), tables=(table,))

SECTION = Section(key="years", heading="Follow-up", place=35, collect=collect, template="""
{% call m.section_head(section) %}<p>How long.</p>{% endcall %}
<div class="body">{{ part.statements[0].text }}{{ m.plain_table(part.tables[0]) }}</div>
""")
'''


@pytest.fixture
def one_more_file(tmp_path, monkeypatch):
    """A file beside the sections, for as long as the test runs."""
    (tmp_path / "years_followed.py").write_text(NEW_SECTION)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    all_sections.cache_clear()
    yield
    sys.modules.pop("drosurv.audit.sections.years_followed", None)
    all_sections.cache_clear()


def test_a_new_section_is_one_file(one_more_file):
    data = make_hidden_minority(120, random_state=0)
    options = {"n_bootstrap": 0, "search_rules": False, "also": {"ward": "<ward 7>"}}
    report = audit(CoxPH().fit(data.X, data.y), data.X, data.y, sensitive_features=None, **options)
    said = f"{data.y['time'].sum():,.0f} years were seen on <ward 7>."
    html = report.to_html()
    assert (
        html.index('<section id="calibration"')
        < html.index('<section id="years"')
        < html.index('id="worst-off"')
    )
    assert '<a href="#years">Follow-up</a>' in html
    assert said.replace("<", "&lt;").replace(">", "&gt;") in html
    assert "## Follow-up" in report.to_markdown()
    assert said in [statement.text for statement in report.statements]
    assert report.to_dict()["tables"]["years"]["rows"][0][0] == "<ward 7>"


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
