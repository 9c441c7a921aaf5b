"""Rats of litters: every command counts rats, keeps litters together, and judges by litter."""

import json

import numpy as np
import pandas as pd
import pytest

import drosurv as library
from drosurv.patients.target import with_fields
from drosurv.tables.reading import read_frame

pytestmark = pytest.mark.sections("verdict", "method", "patients")

RATS, LITTERS = 240, 80
TARGET = ("--time", "weeks", "--event", "tumour")


@pytest.fixture(scope="module")
def rats(tmp_path_factory):
    rng = np.random.default_rng(0)
    litter = np.repeat(np.arange(LITTERS), RATS // LITTERS)
    dose, sex = rng.normal(size=RATS).round(2), rng.choice(["f", "m"], RATS)
    rate = 0.02 * rng.gamma(2, 0.5, LITTERS)[litter] * np.exp(0.7 * dose)
    time = np.minimum(rng.exponential(1 / rate), 100).round(1) + 0.1
    table = pd.DataFrame({"litter": litter + 1, "weeks": time, "tumour": (time < 100).astype(int)})
    table = table.assign(dose=dose, sex=sex).sample(frac=1, random_state=0)
    path = tmp_path_factory.mktemp("rats") / "rats.csv"
    table.to_csv(path, index=False)
    return path, table


@pytest.fixture(scope="module")
def files(drosurv, rats, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    how = ("--clusters", "litter", "--model", "cox", "--hold-out", folder / "test.csv")
    drosurv.ok("fit", rats[0], *TARGET, *how, "--hold-out-share", "0.5", "-o", folder / "m")
    return folder


def test_fit_asks_about_litters(drosurv, rats, tmp_path):
    told = drosurv.ok("fit", rats[0], *TARGET, "--model", "cox", "-o", tmp_path / "m").stderr
    assert "pass --clusters 'litter'; or name it in" in " ".join(told.split())


def test_litters_stay_on_one_side_of_a_hold_out_and_are_no_feature(files, rats):
    held = set(pd.read_csv(files / "test.csv")["litter"])
    assert len(held) == LITTERS // 2
    model = library.load(files / "m")
    assert list(model.feature_names_in_) == ["dose", "sex"]
    kept = rats[1][~rats[1]["litter"].isin(held)]
    y = library.Surv.from_dataframe("tumour", "weeks", kept)
    alone = library.CoxPH().fit(model[0].transform(kept), with_fields(y, clusters=kept["litter"]))
    np.testing.assert_allclose(
        library.summary(model)["se(coef)"] * model[0].scale_, alone.summary()["se(coef)"], rtol=1e-4
    )


def test_commands_use_the_litters_that_a_model_was_trained_with(drosurv, files):
    paths, size = (
        (files / "m", files / "test.csv"),
        f"{RATS // 2} patients in {LITTERS // 2} clusters (litter)",
    )
    found = drosurv.json("evaluate", *paths)
    table = read_frame(files / "test.csv")
    model, y = library.load(files / "m"), library.Surv.from_dataframe("tumour", "weeks", table)
    wanted = library.evaluate(
        model, table[["dose", "sex"]], with_fields(y, clusters=table["litter"])
    ).to_dict()
    level = [next(row for row in one["findings"] if row["question"] == "level") for one in (found, wanted)]
    assert (level[0]["low"], level[0]["p"]) == pytest.approx((level[1]["low"], level[1]["p"]))
    assert (found["settings"]["clusters"], found["settings"]["clusters_name"]) == (LITTERS // 2, "litter")
    bounds = drosurv.json("certify", *paths, "--replicates", "59", "--alpha", "0.3")
    assert (bounds["n_patients"], bounds["notes"]) == (RATS // 2, [f"there are {size}."])
    page = files / "page.html"
    drosurv.ok("audit", *paths, "--no-rules", "-o", page)
    assert f"{size} with " in page.read_text()


def test_monitoring_says_that_litters_count_as_independent(drosurv, files, tmp_path):
    log = pd.read_csv(files / "test.csv").assign(born=0.0)
    log.to_csv(tmp_path / "log.csv", index=False)
    how = (*TARGET, "--start", "born", "--every", "20", "-o", tmp_path / "m.html")
    told = drosurv.ok("monitor", files / "m", tmp_path / "log.csv", *how).stderr
    assert "trained with clusters (litter). Monitoring takes their patients as independent" in " ".join(
        told.split()
    )
    assert "are copies of another row" not in told
    pd.concat([log, log.head(3)]).to_csv(tmp_path / "log.csv", index=False)
    told = drosurv.ok("monitor", files / "m", tmp_path / "log.csv", *how, "--force").stderr
    assert "3 rows of log.csv are copies of another row" in " ".join(told.split())


def test_litters_can_be_named_where_a_model_is_judged(drosurv, rats, files, tmp_path):
    drosurv.ok("fit", rats[0], *TARGET, "--drop", "litter", "--model", "cox", "-o", tmp_path / "m")
    paths = (tmp_path / "m", files / "test.csv")
    assert "cluster" not in drosurv.ok("evaluate", *paths).stdout
    named = drosurv.ok("evaluate", *paths, "--clusters", "litter").stdout
    assert f"{RATS // 2} patients in {LITTERS // 2} clusters (litter)" in named
    refused = drosurv.fails("evaluate", *paths, "--clusters", "litter", "--id", "litter")
    assert "--id and --clusters both name column 'litter'" in refused


def test_predictions_are_audited_by_litter(drosurv, rats, tmp_path):
    path, page = tmp_path / "predictions.csv", tmp_path / "page.html"
    rats[1].assign(survival_50=np.exp(-0.02 * 50 * np.exp(0.7 * rats[1]["dose"]))).to_csv(path, index=False)
    options = ("--clusters", "litter", "--no-rules", "-o", page)
    drosurv.ok("audit", "--predictions", path, *TARGET, *options)
    assert f"{RATS} patients in {LITTERS} clusters (litter) with" in page.read_text()


def test_check_counts_rats_and_names_the_litters_in_its_next_command(drosurv, rats, tmp_path):
    page = tmp_path / "page.html"
    how = (*TARGET, "--clusters", "litter", "-o", page, "--save", tmp_path / "m")
    found = drosurv.json("check", rats[0], *how)
    assert (found["patients"], found["rows"]) == (RATS, RATS)
    assert (found["columns"]["clusters"], found["columns"]["id"]) == ("litter", None)
    assert not any("litter" in problem for problem in found["problems"])
    assert [row["covariate"] for row in found["cox"]] == ["dose", "sex=f"]
    assert found["next"][found["next"].index("--clusters") + 1] == "litter"
    assert found["report"]["subtitle"].startswith(f"{RATS} patients in {LITTERS} clusters (litter) with")
    report = tmp_path / "report.json"
    drosurv.ok("audit", tmp_path / "m", rats[0], "--folds", "3", "--no-rules", "-o", report)
    assert "clusters (litter)" in json.loads(report.read_text())["subtitle"]
