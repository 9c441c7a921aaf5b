import re

import numpy as np
import pandas as pd
import pytest
from sksurv.datasets import load_gbsg2
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import summary
from drosurv.datasets import make_hidden_minority
from drosurv.estimators.persistence import load


@pytest.fixture(scope="module")
def model(drosurv, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("fitted")
    X, y = load_gbsg2()
    frame = X[["age", "pnodes", "horTh"]].assign(days=y["time"], died=y["cens"].astype(int))
    frame.to_csv(tmp_path / "d.csv", index=False)
    drosurv.ok(
        "fit",
        tmp_path / "d.csv",
        *("--time", "days", "--event", "died", "--model", "cox", "-o", tmp_path / "m"),
    )
    return tmp_path / "m"


def test_coefficients_are_on_the_units_of_the_table(drosurv, model):
    X, y = load_gbsg2()
    plain = np.column_stack([X["age"], X["pnodes"], X["horTh"] == "yes"])
    expected = CoxPHSurvivalAnalysis(tol=1e-12).fit(plain, y).coef_
    rows = drosurv.json("summary", model)
    np.testing.assert_allclose([row["coef"] for row in rows], expected, rtol=1e-5)


def test_people_see_a_table_and_a_file_holds_it(drosurv, model, tmp_path):
    shown = drosurv.ok("summary", model, "-o", tmp_path / "t.csv").stdout
    assert "pnodes" in shown
    assert "horTh=yes" in shown
    assert len(pd.read_csv(tmp_path / "t.csv")) == 3
    # What a reader must know to compare it with the table of another program.
    told = " ".join(shown.split())
    assert "Tied event times by Breslow" in told
    assert "Reference levels: horTh 'no'" in told


def test_a_repaired_model_is_told_in_words_and_hazard_ratios(drosurv, model, tmp_path):
    repair = ("repair", model.with_name("d.csv"), "--time", "days", "--event", "died", "--max-repairs", "0")
    drosurv.ok(*repair, "--model", "cox", "-o", tmp_path / "r")
    shown = drosurv.ok("summary", tmp_path / "r").stdout
    assert (
        "Nothing was repaired: no correction of CoxPH, for all patients or for a group of at least 20,"
        in shown
    )
    ratios = {row["effect"]: row["hazard_ratio"] for row in drosurv.json("summary", tmp_path / "r")}
    plain = [row["exp(coef)"] for row in drosurv.json("summary", model)]
    assert list(ratios.values()) == pytest.approx(plain, rel=1e-6)
    # Such a model brings the plain Cox that it was repaired from, and is held against it.
    told = drosurv.ok("evaluate", tmp_path / "r", model.with_name("d.csv")).stdout
    assert re.search(r"share of the reference's likelihood gain +1\.000", told)


@pytest.mark.parametrize("most", [0, 2])
def test_a_repaired_model_that_is_not_linear_has_its_effects_or_its_repairs(drosurv, tmp_path, most):
    data = make_hidden_minority(n_samples=500 if most else 150, n_features=5, minority=0.25, random_state=0)
    data.X.assign(days=data.y["time"], died=data.y["event"].astype(int)).to_csv(
        tmp_path / "d.csv", index=False
    )
    target = ("--time", "days", "--event", "died", "--max-repairs", most, "--max-conditions", "1")
    splined = ("--model", "cox-cv", "--set", "splines=3", "--set", "l2s=0.1,")
    drosurv.ok("repair", tmp_path / "d.csv", *target, *splined, "-o", tmp_path / "r")
    model = load(tmp_path / "r")
    rows = drosurv.json("summary", tmp_path / "r")
    assert bool(model.repairs_) == bool(most)
    if most:
        assert [row["who"] for row in rows] == [repair.who for repair in model.repairs_]
    else:
        assert [row["exp(coef)"] for row in rows] == pytest.approx(
            summary(model.base_)["exp(coef)"].tolist(), nan_ok=True
        )
    shown = " ".join(drosurv.ok("summary", tmp_path / "r").stdout.split())
    assert " ".join("\n".join([model.status_, *model.in_words()]).split()) in shown
