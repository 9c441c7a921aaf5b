"""Models fitted from the command line with entry times, strata, clusters and a bootstrap."""

import numpy as np
import pandas as pd
import pytest

import drosurv as library
from drosurv import CoxPH, Surv


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 120
    age, sex = rng.normal(60, 10, n).round(1), rng.choice(["f", "m"], n)
    time = (rng.exponential(np.exp(-0.05 * (age - 60))) * 10).round(2) + 1
    table = pd.DataFrame({"age": age, "sex": sex, "months": time, "died": (rng.random(n) < 0.7).astype(int)})
    table = table.assign(
        since=(time / 2).round(2), hospital=rng.choice(["x", "y"], n), team=rng.integers(0, 20, n)
    )
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    table.to_csv(path, index=False)
    return path, table


def fitted(drosurv, data, tmp_path, model, *options):
    target = ("--time", "months", "--event", "died", "--model", model, "-o", tmp_path / "model")
    drosurv.ok("fit", data[0], *target, *options)
    return data[1]


def test_columns_say_how_rows_were_observed(drosurv, data, tmp_path):
    options = ("--entry", "since", "--strata", "hospital", "--clusters", "team", "--drop", "sex")
    table = fitted(drosurv, data, tmp_path, "cox", *options)
    wanted = CoxPH().fit(
        table[["age"]],
        Surv.from_dataframe("died", "months", table),
        entry=table["since"],
        strata=table["hospital"],
        clusters=table["team"],
    )
    found, shown = library.summary(library.load(tmp_path / "model")), ["coef", "se(coef)"]
    np.testing.assert_allclose(found.loc["age", shown], wanted.summary().loc["age", shown], rtol=1e-4)
    assert "sandwich" in drosurv.ok("summary", tmp_path / "model").stdout
    assert "toprule" in drosurv.ok("summary", tmp_path / "model", "--format", "latex").stdout
    assert "--format must be text" in drosurv.fails("summary", tmp_path / "model", "--format", "docx")


def test_a_bootstrap_goes_into_the_file(drosurv, data, tmp_path):
    fitted(drosurv, data, tmp_path, "dro-cox", "--bootstrap", "20", "--drop", "since,hospital,team")
    assert "20 refits" in drosurv.ok("summary", tmp_path / "model").stdout
