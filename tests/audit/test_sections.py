"""Sections are found by their files, and what each found is in every view."""

import re

from drosurv.audit.contents import all_sections


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
