import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import CoxPH
from drosurv.datasets import make_hidden_minority
from drosurv.evaluation import Predictions
from drosurv.report.evidence import AuditedModel, Evidence
from drosurv.report.sections.subgroup_sections import find_remedy

NAMES = {f"x{j}": f"lab{j}" for j in range(1, 7)}


def sample(seed, minority=0.25, n=700):
    return make_hidden_minority(n, n_features=6, minority=minority, random_state=seed)


def evidence_of(audited, test, follow_up):
    # The remedies' intervals are not those of the bootstrap.
    given = {"follow_up": follow_up, "sensitive_features": None, "features": test.X.iloc[:, [0, 4]]}
    return Evidence(audited_model=audited, y=test.y, **given)


def remedy_of(audited, test, follow_up):
    return find_remedy(evidence_of(audited, test, follow_up))


@pytest.fixture(scope="module")
def evidence():
    train, test = sample(0), sample(1)
    train, test = (replace(part, X=part.X.rename(columns=NAMES)) for part in (train, test))
    # The scaler gives arrays, whose columns have no names.
    plain = make_pipeline(StandardScaler(), CoxPH()).fit(train.X, train.y)
    return evidence_of(AuditedModel.of(plain, test.X, None), test, plain[-1].follow_up_)


@pytest.fixture(scope="module")
def planted(evidence):
    return find_remedy(evidence)


def test_the_next_step_names_those_whom_the_remedy_corrects(evidence, planted):
    (step,) = (step for step in evidence.verdict.steps if step.startswith("Correct the predictions for "))
    groups = {row["group"] for row in planted.table("remedies").rows}
    assert groups == set(re.findall(r"patients with (.+?)(?= and patients|, patients| \()", step))


def test_remedies_stand_side_by_side_on_the_group_that_was_found(planted):
    found = planted.table("remedies").rows
    groups = {row["group"] for row in found}
    assert len(groups) >= 1
    assert all("lab5" in group for group in groups)
    rows = {row["remedy"]: row for row in found if row["group"] == found[0]["group"]}
    assert list(rows) == [
        "as it is",
        "repair",
        "recalibration of everyone",
        "flexible correction (boosted trees)",
    ]
    assert rows["as it is"]["gain"] == 0
    assert rows["repair"]["gain_low"] > 0
    assert rows["repair"]["gain"] > rows["recalibration of everyone"]["gain"]
    assert rows["repair"]["ratio_low"] < 1 < rows["repair"]["ratio_high"]
    assert all(row["gain_low"] <= row["gain"] <= row["gain_high"] for row in rows.values())


def test_the_section_says_it_in_words_and_in_a_table(planted):
    assert all(statement.concern for statement in planted.statements)
    text = " ".join(statement.text for statement in planted.statements)
    assert "lab5 > " in text
    # Effects of columns too are told by the names that the Pipeline takes.
    assert {"lab1", "lab2", "lab3", "lab4", "lab6"} & set(re.findall(r"\w+", text))
    assert not re.findall(r"\bx\d", text)
    assert "evaluated on patients who were left out" in planted.facts["note"]


def test_a_right_model_has_no_remedy():
    test = sample(3, minority=0.0, n=600)
    times = np.linspace(0.05, 4, 60)
    survival = np.exp(-np.outer(np.exp(test.truth["log_risk"]), times))
    model = Predictions(test.truth["log_risk"], survival, times)
    assert remedy_of(AuditedModel("elsewhere", model), test, test.y) is None


def test_a_model_without_curves_has_no_remedy():
    test = sample(3, n=200)
    model = Predictions(np.arange(200.0))
    assert remedy_of(AuditedModel("ranks", model), test, test.y) is None


def test_without_a_repair_that_helps_the_problem_is_not_denied(monkeypatch):
    """A subgroup may be shown to be wrong although too few patients are there to learn a repair from."""
    test = sample(3, n=200)
    none = SimpleNamespace(repairs_=[], checked_=[], in_words=list, status_="No group was found.")
    monkeypatch.setattr(Evidence, "repaired", none)
    model = CoxPH().fit(test.X, test.y)
    found = remedy_of(AuditedModel("CoxPH", model, test.X), test, test.y)
    (said,) = found.statements
    assert "collect more patients" in said.text
    assert "No group" not in said.text
