"""A bare result at a prompt or in a notebook is a small table, and nothing in it can be markup."""

import pytest

import drosurv
from drosurv import certify
from drosurv.datasets import make_hidden_minority
from drosurv.report import Page, audit


@pytest.fixture(scope="module")
def results():
    train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    model = drosurv.CoxPH().fit(train.X, train.y)
    groups = test.sensitive_features["membership"].map({"minority": "<b>few", "majority": "many"})
    found = {
        "result": drosurv.evaluate(model, test.X, test.y, y_train=train.y, sensitive_features=groups),
        "bounds": certify(model, test.X, test.y, n_bootstrap=59),
        "repaired": drosurv.RepairedCox(drosurv.CoxPH(), max_conditions=1, random_state=0).fit(
            train.X, train.y
        ),
        "report": audit(
            model, test.X, test.y, sensitive_features=groups, search_rules=False, page=Page(time_unit="years")
        ),
    }
    return found


@pytest.mark.parametrize("name", ["result", "bounds", "report"])
def test_a_bare_result_is_a_small_table(results, name):
    html = results[name]._repr_html_()
    assert html.count("<table>") == 1
    assert html.count("<tr>") <= 10
    assert "<b>few" not in html


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("result", "c-index"),
        ("bounds", "no subgroup is beyond"),
        ("repaired", "RepairedCox"),
        ("report", "CoxPH"),
    ],
)
def test_a_printed_result_fits_a_terminal(results, name, words):
    shown = repr(results[name])
    assert words in shown
    assert len(shown.splitlines()) < 24
    assert "array(" not in shown


def test_rules_and_repairs_read_as_sentences(results):
    for repair in results["repaired"].repairs_:
        assert repr(repair.rule) == f"<Rule: {repair.rule}>"
        assert str(repair.rule) in repr(repair)
        assert len(repr(repair).splitlines()) == 1
