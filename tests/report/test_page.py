import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from drosurv.report.report import script_json

VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """Elements, their attributes, and texts by element; also checks that every element is closed."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append((self.open[-1] if self.open else "", text))

    def all(self, tag):
        return [attributes for found, attributes in self.elements if found == tag]


def test_script_json_cannot_leave_its_element_and_reads_back(hostile):
    value = {hostile: ["<!--", "]]>", "&amp;", "\u2028", None, 1.5]}
    text = script_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_hostile_names_and_values_stay_text(report_with, hostile):
    page = Page(report_with(hostile, hostile, hostile, title=hostile).to_html())
    assert [attributes.get("type") for attributes in page.all("script")] == ["application/json", None]
    assert page.all("img") == []
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)
    # It is shown as it is, not dropped.
    assert sum(hostile in text for tag, text in page.texts if tag == "th") >= 2
    assert [text for tag, text in page.texts if tag == "h1"] == [hostile]


def test_the_page_loads_nothing(report):
    page = Page(report.to_html())
    for tag in ("link", "img", "iframe", "object", "embed", "base"):
        assert page.all(tag) == []
    addresses = [a[name] for _, a in page.elements for name in ("src", "href", "action", "data") if name in a]
    assert all(address.startswith("#") for address in addresses)
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]


def test_ids_are_unique_and_every_reference_has_its_target(report):
    page = Page(report.to_html())
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("for", "aria-labelledby", "aria-describedby"):
            assert all(target in ids for target in attributes.get(name, "").split())
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_tables_have_captions_and_scoped_headers(report):
    page = Page(report.to_html())
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("scope" in attributes for attributes in page.all("th"))


def test_the_embedded_tables_are_the_reports(report):
    html = report.to_html()
    embedded = re.search(r'<script type="application/json" id="tables">(.*?)</script>', html, re.DOTALL)
    assert json.loads(embedded.group(1)) == report.to_dict()


@pytest.mark.parametrize("missing", ["verdict", "missed", "method"])
def test_sections_that_found_nothing_are_left_out(report, missing):
    kept = {key: part for key, part in report.parts.items() if key != missing}
    shorter = replace(report, parts=kept)
    ids = [attributes.get("id") for _, attributes in Page(shorter.to_html()).elements]
    assert missing not in ids
    assert shorter.to_markdown()
    assert shorter.to_summary()


def test_the_verdict_is_the_first_thing_on_the_page_and_tables_are_folded(report):
    html = report.to_html()
    assert html.index("Not fit for age") < html.index('id="groups"') < html.index('id="missed"')
    page = Page(html)
    folded = [place for place, (tag, _) in enumerate(page.elements) if tag == "details"]
    assert len(folded) >= 3
    assert all("open" not in page.elements[place][1] for place in folded)


def test_warnings_stand_at_the_top_and_blocking_ones_above_the_verdict(report):
    html = report.to_html()
    blocking, note = html.index("may give the outcome away"), html.index("are copies.")
    assert blocking < html.index("Not fit for age") < note < html.index('id="groups"')
    assert "may give the outcome away" in report.to_markdown()
    assert "may give the outcome away" in report.to_json()
