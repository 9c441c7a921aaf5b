import csv
import io
import json
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import drosurv
from drosurv import Surv
from drosurv.report.sections.first_section import group_table

pytestmark = pytest.mark.browser

WIDTHS = {"desktop": 1280, "phone": 390}
LEAST_CONTRAST = 4.5
# The first chart of survival over time, of the audited model.
SURVIVAL = "document.querySelector('#calibration .panels ~ .panels svg')"


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    """The page of the report."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.to_html(path)
    return path


@pytest.fixture
def page(browser, path):
    browser.open(path)
    return browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_it_opens_without_complaint_fits_its_width_asks_for_nothing_and_every_text_stands_out(
    browser, path, width, dark
):
    browser.open(path, width=width, dark=dark)
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    colors = browser.run(
        """[...new Set([...document.querySelectorAll('body *')]
            .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.offsetParent)
            .map((e) => getComputedStyle(e).color))]"""
    )
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    inks = browser.run("[...document.querySelectorAll('svg text')].map((e) => getComputedStyle(e).fill)")
    assert len(colors) >= 3
    for color in {*colors, *inks}:
        assert contrast(color, paper) >= LEAST_CONTRAST, color


def contrast(one, other):
    """Contrast of two colours as WCAG 2 defines it."""

    def luminance(color):
        channels = [int(value) / 255 for value in re.findall(r"\d+", color)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_charts_read_aloud_by_keys_and_under_the_pointer(page):
    page.run(f"{SURVIVAL}.focus()")
    page.press("ArrowRight", 39)
    first = page.run("document.querySelector('#said').textContent")
    page.press("ArrowRight", 39)
    second = page.run("document.querySelector('#said').textContent")
    assert first.startswith("0 days: predicted 100.0\u00a0%")
    assert second.startswith("100 days: predicted 95.0\u00a0%")
    assert page.run("document.querySelector('#tip').textContent") == second
    page.press("Escape", 27)
    assert page.run("document.querySelector('#tip').hidden")
    box = page.run(
        f"""(() => {{ const svg = {SURVIVAL}; svg.blur();
                    svg.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                    const b = svg.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()"""
    )
    page.move_mouse(box[0] + 0.95 * box[2], box[1] + box[3] / 2)
    assert page.run("document.querySelector('#tip').textContent").startswith("900 days:")


def in_csv(value):
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        # A spreadsheet would read it as a formula.
        return f"'{value}"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_downloads_are_the_tables_of_the_report(page, report):
    page.run(
        """window.saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return '#'; };
           HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };"""
    )
    for form in ("csv", "json"):
        page.run(
            f"""[...document.querySelectorAll('[data-table="by_group"][data-format="{form}"]')]
                .find((e) => e.offsetParent).click()"""
        )
    text, name, content, _ = page.run(
        "Promise.all(saved.map((entry) => (entry instanceof Blob ? entry.text() : entry)))"
    )
    table = report.tables["by_group"]
    assert name == "by_group.csv"
    cells = [[in_csv(row.get(key)) for key in table.keys] for row in table.rows]
    assert list(csv.reader(io.StringIO(text))) == [list(table.keys), *cells]
    assert json.loads(content) == [{key: row.get(key) for key in table.keys} for row in table.rows]


def test_hostile_values_run_nowhere(browser, report_with, hostile, tmp_path):
    path = tmp_path / "report.html"
    report_with(hostile, hostile, hostile, title=hostile).to_html(path)
    browser.open(path)
    assert browser.run("document.title") == hostile
    assert browser.run("document.querySelectorAll('img, iframe').length") == 0
    browser.run("document.querySelector('#calibration svg').focus()")
    browser.press("ArrowRight", 39)
    assert browser.run("document.querySelectorAll('img, iframe').length") == 0
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_long_names_push_nothing_off_the_page(browser, report_with, tmp_path, width):
    path = tmp_path / "report.html"
    long = "an_attribute_name_without_a_break_" * 4
    report_with(long, f"{long} and words {long}", f"{long} > 3", title=long).to_html(path)
    browser.open(path, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    # No cell of a phone's tables is cut.
    cut = "[...document.querySelectorAll('#groups td, #method td')].filter((e) => e.scrollWidth > e.clientWidth + 1)"
    assert width > 600 or browser.run(f"{cut}.length") == 0


def test_a_group_table_with_every_column_needs_no_scroll_bar(browser, report, tmp_path):
    judged = {"patients": 12345, "observed": 1390, "expected": 1396.2, "ratio_p": 1e-4}
    judged |= {"risk_predicted": 0.748, "risk_observed": 0.711}
    for name in ("ratio", "slope", "c_index"):
        judged |= {name: 1.093, f"{name}_low": 0.984, f"{name}_high": 1.214}
    for name in ("gain", "gain_over_reference"):
        judged |= {name: -0.00295, f"{name}_low": -0.00793, f"{name}_high": 0.00203}
    who = {"who": "T.categ hs", "heading": "T.categ", "label": "hs", "finding": ""}
    small = {"patients": 9, "finding": "not judged: fewer than 50 patients", "label": "id"}
    settings = SimpleNamespace(settings=SimpleNamespace(horizon=2255.0), last_judged=None)
    given = {
        "audited": settings,
        "time_unit": "days",
        "cause": None,
        "page": SimpleNamespace(reference_name="plain Cox"),
        "is_compared": True,
    }
    table = group_table([who | judged, who | small], SimpleNamespace(**given))
    assert len(table.columns) == 13
    verdict = replace(report.parts["verdict"], tables=(table,))
    path = tmp_path / "report.html"
    replace(report, parts={**report.parts, "verdict": verdict}).to_html(path)
    widths = [f"document.querySelector('#verdict .scroll').{side}Width" for side in ("scroll", "client")]
    browser.open(path, width=1280)
    assert browser.run(widths[0]) <= browser.run(widths[1])
    # Where there is less room, the table scrolls, and each interval stands on one line.
    heights = (
        "[...document.querySelectorAll('#verdict td small')].map((e) => e.getBoundingClientRect().height)"
    )
    tall = max(browser.run(heights))
    for width in (1100, 700):
        browser.open(path, width=width)
        assert max(browser.run(heights)) == pytest.approx(tall, abs=1)
        assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(widths[0]) > browser.run(widths[1])
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert (
            browser.run("document.querySelector('#verdict table.wide').getBoundingClientRect().right") <= 700
        )
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


def test_a_tap_reads_a_chart_until_the_next_one_elsewhere(page):
    at = page.run(
        f"""(() => {{ const svg = {SURVIVAL};
                    svg.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                    const b = svg.getBoundingClientRect(); return [b.x + 0.95 * b.width, b.y + b.height / 2]; }})()"""
    )
    page.run("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    touch = {"pointerType": "touch", "clientX": at[0], "clientY": at[1], "bubbles": True}
    for kind in ("pointerdown", "pointerup", "pointerleave"):
        page.run(f"{SURVIVAL}.dispatchEvent(new PointerEvent('{kind}', {json.dumps(touch)}))")
    assert not page.run("document.querySelector('#tip').hidden")
    assert page.run("document.querySelector('#tip').textContent").startswith("900 days:")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A page with every kind of picture: the first screen, curves, decisions, hospitals, patients."""
    rng = np.random.default_rng(0)
    n = 900
    x, hospital = rng.normal(size=n), np.array([f"hospital {k}" for k in range(12)])[np.arange(n) % 12]
    age = np.where(rng.random(n) < 0.1, "infants", np.where(rng.random(n) < 0.03, "over eighty", "others"))
    hazard = 0.3 * np.exp(0.7 * x)
    time, left = rng.exponential(1 / (hazard * np.where(age == "infants", 3, 1))), rng.exponential(4.0, n)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    times = np.linspace(0.1, 6.0, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = drosurv.audit(
            (times, np.exp(-hazard[:, None] * times)),
            None,
            y,
            sensitive_features={"age": age, "hospital": hospital},
            threshold=0.2,
            search_rules=False,
        )
    path = tmp_path_factory.mktemp("pictures") / "report.html"
    report.to_html(path)
    return path


# Texts of charts that overlap or are cut off, charts without a text, and cells of the first screen that overflow.
FAULTS = """(() => {
  const wrong = [];
  document.querySelectorAll('details').forEach((e) => { e.open = true; });
  for (const svg of document.querySelectorAll('.chart svg:not(.sample)')) {
    if (!svg.checkVisibility()) continue;
    const frame = svg.getBoundingClientRect();
    if (!svg.getAttribute('aria-label')) wrong.push('no text');
    const texts = [...svg.querySelectorAll('text')].filter((e) => e.textContent.trim() && !e.closest('.mark'))
      .map((e) => [e.textContent, e.getBoundingClientRect()]);
    for (const [text, b] of texts)
      if (b.left < frame.left - 2 || b.right > frame.right + 12 || b.top < frame.top - 2 || b.bottom > frame.bottom + 2)
        wrong.push(`cut off: ${text}`);
    texts.forEach(([one, a], k) => texts.slice(k + 1).forEach(([other, b]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 4) wrong.push(`${one} over ${other}`);
    }));
  }
  for (const cell of document.querySelectorAll('.picture tbody :is(th, td)'))
    if (cell.checkVisibility() && cell.scrollWidth > cell.clientWidth + 12) wrong.push(`too wide: ${cell.textContent}`);
  return wrong;
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_in_pictures_nothing_overlaps_or_is_cut_off_and_each_has_a_text(browser, pictures, width, dark):
    browser.open(pictures, width=width, dark=dark)
    assert browser.run(FAULTS) == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    charts = "[...document.querySelectorAll('.chart svg')].filter((e) => e.checkVisibility()).length"
    assert browser.run(charts) > 10
    # Groups with a problem come first, in a colour of their own; small ones are grey, without an interval.
    rows = "[...document.querySelectorAll('.picture tbody tr')].map((e) => e.className)"
    found = browser.run(rows)
    assert found[:2] == ["all", "wrong"] or found[0] == "wrong"
    assert "small" in found
    colour = "getComputedStyle(document.querySelector('.picture .wrong .dot')).backgroundColor"
    calm = "getComputedStyle(document.querySelector('.picture .right .dot')).backgroundColor"
    assert browser.run(colour) != browser.run(calm)
    assert (
        browser.run("document.querySelector('.picture .small .reach')?.checkVisibility() ?? false") is False
    )


def test_printed_pictures_fit_the_paper(browser, pictures, tmp_path):
    browser.open(pictures, width=700)
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run(FAULTS) == []
        ends = "[...document.querySelectorAll('table, .chart')].map((e) => e.getBoundingClientRect().right)"
        assert max(browser.run(ends)) <= 700
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")
    browser.print(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000


def test_without_scripts_all_is_shown_and_nothing_is_offered_that_would_not_work(browser, path):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(path)
        root = browser.send("DOM.getDocument")["root"]["nodeId"]

        def is_drawn(selector):
            node = browser.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
            style = browser.send("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"]
            return {entry["name"]: entry["value"] for entry in style}["display"] != "none"

        browser.send("DOM.enable")
        browser.send("CSS.enable")
        assert is_drawn("#calibration svg")
        assert not is_drawn(".downloads")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
