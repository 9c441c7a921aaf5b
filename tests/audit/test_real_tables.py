"""Verdicts on real tables on which an earlier version was wrong, or contradicted itself."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sksurv.datasets import load_aids
from sksurv.preprocessing import OneHotEncoder

from drosurv import CoxPH, Surv
from drosurv.audit import audit
from drosurv.datasets import load_nwtco


def audited(model, X, y, **options):
    with warnings.catch_warnings(action="ignore"):
        return audit(model, X, y, n_bootstrap=0, **options)


@pytest.fixture(scope="module")
def wilms():
    data = load_nwtco()
    rng = np.random.default_rng(0)
    train = rng.random(len(data.y)) < 0.5
    X = pd.DataFrame(data.X).fillna(0.0)
    model = CoxPH().fit(X[train], data.y[train])
    groups = {"infants": np.where(X["age"] <= (12 if X["age"].max() > 30 else 1), "yes", "no")[~train]}
    return audited(
        model, X[~train].reset_index(drop=True), data.y[~train], sensitive_features=groups, search_rules=False
    )


def test_a_group_of_few_expected_events_is_not_called_wrong():
    """AIDS trial: patients with cd4 <= 62 and priorzdv > 46, of whom nobody in the held-out quarter had an event."""
    X, y = load_aids()
    X = OneHotEncoder().fit_transform(X).astype(float)
    y = Surv.from_arrays(*(y[name] for name in y.dtype.names))
    held = np.random.default_rng(0).random(len(y)) < 0.25
    model = CoxPH(l2=0.01).fit(X[~held], y[~held])
    few = np.where((X["cd4"] <= 62) & (X["priorzdv"] > 46), "few cells", "others")[held]
    report = audited(model, X[held].reset_index(drop=True), y[held], sensitive_features={"cells": few})
    row = next(row for row in report.tables["groups"].rows if "few cells" in row["who"])
    assert row["finding"].startswith("not judged: fewer than")
    named = [problem["who"] for problem in report.parts["verdict"].facts["problems"]]
    assert not any("few cells" in who for who in named)


def test_the_c_index_of_a_large_group_never_leads(wilms):
    """Wilms tumour: older children have the lowest c-index, infants the predictions that are furthest off."""
    facts = wilms.parts["verdict"].facts
    assert facts["status"] != "unequal"
    rows = {row["group"]: row for row in wilms.audited.tables["by_group"].rows}
    worst = max(("yes", "no"), key=lambda group: abs(np.log(rows[group]["ratio"] or 1.0)))
    assert wilms.audited.headline["Furthest from 1"].endswith(worst) or not rows[worst]["judged"]


def test_one_gap_has_one_interval_on_the_page(wilms):
    table = {row["who"]: row for row in wilms.tables["groups"].rows}
    for row in wilms.audited.tables["by_group"].rows[1:]:
        shown = table[
            f"infants {row['group']}" if f"infants {row['group']}" in table else f"infants = {row['group']}"
        ]
        if row["judged"]:
            assert (row["ratio_low"], row["ratio_high"]) == (shown["ratio_low"], shown["ratio_high"])
            assert (row["gain_low"], row["gain_high"]) == (shown["gain_low"], shown["gain_high"])


def test_proportional_hazards_that_fail_are_said_to(wilms):
    said = [statement.text for statement in wilms.audited.statements if statement.code == "hazards"]
    assert any("age" in text for text in said)


def test_a_blocking_warning_of_a_leaking_column_forbids_a_clear_verdict(wilms):
    data = load_nwtco()
    X = pd.DataFrame(data.X).fillna(0.0)
    leak = {"severity": "blocking", "text": "column 'rtime' may give the outcome away"}
    report = audited(
        CoxPH().fit(X, data.y), X, data.y, sensitive_features=None, search_rules=False, warnings=[leak]
    )
    assert report.parts["verdict"].facts["status"] == "data_problem"
    assert "rtime" in report.to_html()[: report.to_html().index('id="patients"')]
