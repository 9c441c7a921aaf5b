"""Guidelines and laws are answered only by what the page shows."""

import re

import pytest

from drosurv import CoxPH
from drosurv.datasets import make_hidden_minority
from drosurv.report import audit
from drosurv.report.report import all_sections
from drosurv.report.sections.guidelines import questions


@pytest.fixture(scope="module")
def full():
    train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    model = CoxPH().fit(train.X, train.y)
    searched = {"features": test.X[["x1", "x5"]], "n_bootstrap": 2}
    return audit(model, test.X, test.y, sensitive_features=test.sensitive_features, **searched)


@pytest.fixture(scope="module")
def bare():
    test = make_hidden_minority(200, random_state=2)
    model, options = CoxPH().fit(test.X, test.y), {"n_bootstrap": 0, "search_rules": False}
    return audit(model, test.X, test.y, sensitive_features=None, **options)


def status(report, source, item):
    rows = report.tables["guidelines"].rows
    return next(row["status"] for row in rows if row["source"].startswith(source) and row["item"] == item)


def test_a_question_is_answered_only_where_groups_are_shown_with_intervals(full, bare):
    for source, item in (("TRIPOD", "23a"), ("EU AI Act", "Article 13(3)(b)(v)"), ("FDA", "X.A")):
        assert status(full, source, item) == "answered"
        assert status(bare, source, item) == "to be filled in"


def test_clinical_utility_is_answered_where_there_are_decision_curves(full, bare):
    for report, answer, shown in ((full, "answered", True), (bare, "to be filled in", False)):
        asked = [row for row in report.tables["guidelines"].rows if "clinical utility" in row["question"]]
        assert [row["status"] for row in asked] == [answer]
        assert ("Would treating by the model help?" in asked[0]["where"]) == shown


def test_measures_are_partly_answered_and_data_sets_are_left_to_the_user(full):
    assert status(full, "TRIPOD", "12e") == "partly"
    assert status(full, "EU AI Act", "Article 10(2)(f), (g)") == "to be filled in"


def test_every_section_that_an_answer_names_is_on_the_page(full, bare):
    headings = {section.heading for section in all_sections()}
    assert "Method card" in headings
    for report in (full, bare):
        shown = {section.heading for section in report.sections}
        for row in report.tables["guidelines"].rows:
            named = {heading for heading in headings if re.search(rf"{re.escape(heading)}", row["where"])}
            if row["status"] != "to be filled in":
                assert named <= shown, row


@pytest.mark.parametrize(
    ("source", "items"),
    [
        ("TRIPOD", ["5a", "8b", "9c", "12d, 23b", "12e", "12f", "20c", "24"]),
        (
            "EU AI Act",
            ["Article 13(3)(b)(v)", "Article 15(3)", "Annex IV(2)(g)", "Annex IV(3)", "Annex IV(4)"],
        ),
        ("FDA", ["VI.B", "X.A", "XI", "Appendix E"]),
        ("PROBAST", ["evaluation, predictors", "evaluation, outcome", "development, analysis"]),
        (
            "FDA guidance on predetermined",
            ["description of modifications", "modification protocol", "impact assessment"],
        ),
        ("ONC", ["source attributes"]),
    ],
)
def test_items_are_numbered_as_in_the_published_texts(source, items):
    assert set(items) <= {item for asked, item, *_ in questions() if asked.startswith(source)}
