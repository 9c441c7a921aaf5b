from functools import partial

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPHCV, load
from drosurv.datasets import make_hidden_minority
from drosurv.workflows import repairing

N = 500


@pytest.fixture(scope="module")
def minority():
    data = make_hidden_minority(n_samples=N, n_features=6, minority=0.25, random_state=0)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "days": np.ceil(1000 * data.y["time"]).astype(int) + 1,
            "died": data.y["event"].astype(int),
            "age": np.round(60 + 10 * data.X["x5"], 1),
            "kappa": data.X["x1"].where(np.arange(N) % 20 > 0),
            "lambda": data.X["x2"],
            "sex": np.where(data.X["x3"] > 0, "f", "m"),
        }
    )


@pytest.fixture
def table(minority, tmp_path):
    path = tmp_path / "minority.csv"
    minority.to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True, scope="module")
def repaired_once():
    """Commands that ask for the same repair get the same, with three folds: they differ in what they show and write."""
    repair, found = partial(repairing.repair_from_table, folds=3), {}

    def once(table, estimator, *, opened, predictions, **options):
        if opened is not None or predictions is not None:
            return repair(table, estimator, opened=opened, predictions=predictions, **options)
        asked = table.X.to_csv(), table.y.tobytes(), repr((table.columns, estimator, options))
        if asked not in found:
            found[asked] = repair(table, estimator, **options)
        return found[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repairing, "repair_from_table", once)
        yield


TARGET = ["--time", "days", "--event", "died", "--drop", "id"]
SIMPLE = ("--max-conditions", "1")


def test_the_group_is_told_in_words_and_the_repaired_model_predicts(drosurv, table, tmp_path):
    shown = drosurv.ok("repair", table, *TARGET, *SIMPLE, "--model", "cox", "-o", tmp_path / "m").stdout
    assert "patients with age > 6" in shown
    assert "CoxPH was corrected for age > 6" in shown
    assert (
        "would look the same: compare with the base model CoxPHCV (`drosurv repair --model cox-cv`)" in shown
    )
    assert "times the predicted events, after the repair" in shown
    assert "Hazard ratios per unit: for everyone, then in the repaired subgroups" in shown
    found = drosurv.json("predict", tmp_path / "m", table, "--times", "300")
    assert len(found) == N
    assert all(0 <= row["survival_300"] <= 1 for row in found)


def test_fit_trains_the_same_repaired_model_and_says_its_rules_in_the_units_of_the_table(
    drosurv, table, tmp_path, quick_base
):
    judges = tmp_path / "judges.csv"
    how = [table, *TARGET, "--categorical", "sex", "--hold-out", judges]
    shown = drosurv.ok(
        "fit",
        *how,
        "--model",
        "repaired-cox",
        "--set",
        "max_conditions=1",
        "--set",
        "folds=3",
        "-o",
        tmp_path / "fitted",
    )
    assert "CoxPHCV was corrected for" in shown.stdout
    assert "age > 6" in shown.stdout
    shown = drosurv.ok("repair", *how, *SIMPLE, "-o", tmp_path / "repaired").stdout
    # Without a model, cross-validated Cox is repaired.
    model = load(tmp_path / "repaired")
    assert isinstance(model.base_[-1], CoxPHCV)
    assert model.status_ in shown
    one, other = (
        drosurv.ok("predict", tmp_path / name, judges, "--times", "300").stdout
        for name in ("repaired", "fitted")
    )
    assert one == other


def test_json_holds_everything(drosurv, table):
    found = drosurv.json("repair", table, *TARGET, *SIMPLE, "--model", "cox")
    (repair,) = found["repairs"]
    assert repair["who"].startswith("age > 6")
    assert found["status"] == f"CoxPH was corrected for {repair['who']}."
    assert {row["who"] for row in found["hazard_ratios"]} == {"everyone", repair["who"]}


def test_predictions_made_elsewhere_are_repaired_and_written(drosurv, minority, table, tmp_path):
    times = np.array([50.0, 100, 200, 400, 800, 1600, 3200])
    hazard = np.exp(0.8 * minority["kappa"].fillna(0) + 0.5 * minority["lambda"]) / 1000
    made, out = tmp_path / "p.csv", tmp_path / "q.csv"
    survival = np.exp(-np.outer(hazard, times))
    pd.DataFrame(survival, columns=[f"survival_{t:g}" for t in times]).to_csv(made, index=False)
    saved = tmp_path / "repairs"
    options = ("--predictions", made, "--corrected", out, "-o", saved)
    shown = drosurv.ok("repair", table, *TARGET, *SIMPLE, *options).stdout
    assert "age > 6" in shown
    # What was written, and the command that applies it.
    said = " ".join(shown.split())
    assert f"The repairs of the predictions were saved to {saved}" in said
    assert f"`drosurv predict {saved} new_predictions.csv`" in said
    assert f"The repaired predictions of these patients were saved to {out}" in said
    corrected = pd.read_csv(out)
    assert list(corrected.columns) == [*minority.columns, *(f"survival_{t:g}" for t in times)]
    corrected = corrected[[f"survival_{t:g}" for t in times]]
    assert ((corrected >= 0) & (corrected <= 1)).all(axis=None)
    assert abs(corrected.to_numpy() - survival).max() > 0.1
    # One table that `drosurv audit` reads: event probabilities in percent, beside the outcomes and the columns.
    percent = pd.DataFrame(100 * (1 - survival), columns=[f"risk_{t:g}" for t in times])
    both = tmp_path / "both.csv"
    pd.concat([pd.read_csv(table), percent], axis=1).to_csv(both, index=False)
    result = drosurv.ok(
        "repair", both, *TARGET, *SIMPLE, "--predictions", both, "--corrected", tmp_path / "r.csv"
    )
    assert "age > 6" in result.stdout
    assert "predictions rise with time, so they were read as event probabilities" in result.stderr
    found = pd.read_csv(tmp_path / "r.csv")[list(corrected.columns)]
    np.testing.assert_allclose(found, corrected, atol=0.01)


def test_the_unit_of_times_that_no_name_tells_is_given(drosurv, minority, tmp_path):
    made, hazard = tmp_path / "p.csv", np.exp(0.8 * minority["kappa"].fillna(0) + 0.5 * minority["lambda"])
    table = minority.rename(columns={"days": "fu"}).assign(surv_2y=np.exp(-0.3 * hazard))
    table.to_csv(made, index=False)
    given = ("repair", "--predictions", made, "--time", "fu", "--event", "died", "--drop", "id", *SIMPLE)
    assert "pass --time-unit days, weeks, months or years, or --survival" in drosurv.fails(*given)
    found = drosurv.ok(*given, "--time-unit", "days")
    assert "surv_2y at 730 days" in found.stderr
    assert "events happened by 730 days" in " ".join(found.stdout.split())


def test_a_saved_model_stays_as_it_is_and_is_repaired_with_other_patients(drosurv, table, tmp_path):
    there = make_hidden_minority(n_samples=300, n_features=6, minority=0.0, random_state=3)
    frame = pd.DataFrame(
        {
            "days": np.ceil(1000 * there.y["time"]).astype(int) + 1,
            "died": there.y["event"].astype(int),
            "age": np.round(60 + 10 * there.X["x5"], 1),
            "kappa": there.X["x1"],
            "lambda": there.X["x2"],
            "sex": np.where(there.X["x3"] > 0, "f", "m"),
        }
    )
    frame.to_csv(tmp_path / "there.csv", index=False)
    drosurv.ok("fit", tmp_path / "there.csv", *TARGET[:4], "--model", "cox", "-o", tmp_path / "m")
    found = drosurv.json("repair", table, *TARGET, *SIMPLE, "--model", tmp_path / "m", "-o", tmp_path / "r")
    assert any(repair["who"].startswith("age > 6") for repair in found["repairs"])
    assert drosurv.ok("predict", tmp_path / "r", table, "--times", "300").stdout.startswith("log_risk")


def test_nothing_found_is_said_with_what_would_have_been_found(drosurv, data, target, tmp_path):
    options = ("--model", "cox", "--max-repairs", "0", "-o", tmp_path / "m")
    shown = drosurv.ok("repair", data, *target, *options).stdout
    assert "The model was saved unchanged to" in shown
    assert (
        "Nothing was repaired: no correction of CoxPH, for all patients or for a group of at least 20,"
        in shown
    )
    assert "would probably have been found" in shown


def test_bad_predictions_are_named(drosurv, table, minority, tmp_path):
    made = tmp_path / "p.csv"
    minority[["lambda"]].to_csv(made, index=False)
    line = drosurv.fails("repair", table, *TARGET, "--predictions", made)
    assert "no column of the table is recognised as predictions" in line
    minority[["lambda"]].rename(columns={"lambda": "risk"}).to_csv(made, index=False)
    line = drosurv.fails("repair", table, *TARGET, "--predictions", made)
    assert "hold risk scores only, which a repair cannot use" in line
    rising = pd.DataFrame({"10": np.full(N, 0.5), "20": np.resize([0.4, 0.8], N)})
    rising.to_csv(made, index=False)
    named = ("--survival", "10=10,20=20")
    assert "survival cannot rise" in drosurv.fails("repair", table, *TARGET, "--predictions", made, *named)
    pd.DataFrame({"10": np.full(7, 0.5)}).to_csv(made, index=False)
    assert "one row per patient" in drosurv.fails("repair", table, *TARGET, "--predictions", made)
    pd.DataFrame({"10": np.full(N, 0.5)}).to_csv(made, index=False)
    assert "--kind is needed" in drosurv.fails("repair", table, *TARGET, "--predictions", made)


def test_entry_times_reach_the_repair(drosurv, minority, table, tmp_path):
    path, cox = tmp_path / "late.csv", (*SIMPLE, "--model", "cox")
    same = drosurv.json("repair", table, *TARGET, *cox)
    minority.assign(since=0).to_csv(path, index=False)
    found = drosurv.json("repair", path, *TARGET, *cox, "--entry", "since")
    (repair,), (other,) = found["repairs"], same["repairs"]
    assert repair["who"] == other["who"]
    assert [repair[name] for name in ("events", "before", "after")] == pytest.approx(
        [other[name] for name in ("events", "before", "after")], rel=1e-4
    )
    assert found["base"] == "CoxPH"
    # Who enters late has fewer expected events.
    minority.assign(since=minority["days"] // 2).to_csv(path, index=False)
    late = drosurv.json("repair", path, *TARGET, *cox, "--entry", "since")
    assert late["repairs"] != same["repairs"]
