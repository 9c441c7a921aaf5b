"""Tables in which patients have several rows: every command counts patients, without being asked to."""

import json
import re

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.sections("verdict", "groups", "method", "patients")

PATIENTS = 120


@pytest.fixture(scope="module")
def eyes():
    """Both eyes of patients, as diabetic of R's survival has them."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(PATIENTS), 2)
    age, treated = np.repeat(rng.integers(20, 80, PATIENTS), 2), np.tile([0, 1], PATIENTS)
    time = rng.exponential(40 * np.exp(0.7 * treated - 0.01 * age))
    return pd.DataFrame(
        {
            "id": patient + 1,
            "months": np.minimum(time, 60).round(2) + 0.01,
            "status": (time < 60).astype(int),
            "age": age,
            "treated": treated,
            "risk": rng.integers(6, 13, 2 * PATIENTS),
        }
    )


@pytest.fixture
def files(drosurv, eyes, tmp_path):
    eyes.to_csv(tmp_path / "eyes.csv", index=False)
    target = ("--time", "months", "--event", "status", "--model", "cox")
    return drosurv.json(
        "fit", tmp_path / "eyes.csv", *target, "--hold-out", tmp_path / "test.csv", "-o", tmp_path / "m"
    )


def test_fit_takes_the_id_that_it_recognises(files):
    assert (files["patients"], files["rows"]) == (90, 180)
    assert (files["held_out"]["patients"], files["held_out"]["rows"]) == (30, 60)


def test_check_counts_patients_on_the_page_and_in_json(drosurv, eyes, tmp_path):
    eyes.to_csv(tmp_path / "eyes.csv", index=False)
    found = drosurv.json("check", tmp_path / "eyes.csv", "-o", tmp_path / "c.html")
    assert (found["patients"], found["rows"]) == (PATIENTS, 2 * PATIENTS)
    page = (tmp_path / "c.html").read_text()
    assert f"{PATIENTS} patients with" in page
    assert f"{2 * PATIENTS} patients" not in page


def test_audit_certify_and_evaluate_count_and_draw_patients(drosurv, files, eyes, tmp_path):
    # All patients, so that there are enough; that the model knows them does not matter here.
    paths, options = (tmp_path / "m", tmp_path / "eyes.csv"), ("--no-rules",)
    drosurv.ok("audit", *paths, *options, "-o", tmp_path / "r.html")
    assert f"{PATIENTS} patients with" in (tmp_path / "r.html").read_text()
    summary = json.loads((tmp_path / "r.summary.json").read_text())
    assert summary["groups"][0]["patients"] == PATIENTS
    assert drosurv.json("certify", *paths)["n_patients"] == PATIENTS
    told = drosurv.ok("evaluate", *paths).stdout
    assert f"CoxPH on {2 * PATIENTS} rows of {PATIENTS} patients" in told


def test_audit_of_predictions_takes_the_id_that_it_recognises(drosurv, eyes, tmp_path):
    hazard = np.exp(-0.7 * eyes["treated"] + 0.01 * eyes["age"]) / 40
    eyes.assign(S12=np.exp(-12 * hazard), S24=np.exp(-24 * hazard)).to_csv(tmp_path / "p.csv", index=False)
    given = ("--predictions", tmp_path / "p.csv", "--time", "months", "--event", "status")
    run = drosurv.ok("audit", *given, "--no-rules", "-o", tmp_path / "r.html")
    summary = json.loads((tmp_path / "r.summary.json").read_text())
    note = f"column 'id' names {PATIENTS} patients in {2 * PATIENTS} rows, and was taken as id"
    assert any(note in warning["text"] for warning in summary["warnings"])
    told, censored = run.stdout, 100 * (1 - eyes["status"].mean())
    assert f"With these {PATIENTS} patients" in told
    assert f"{2 * PATIENTS} rows of {PATIENTS} patients" in told
    assert f"({censored:.1f} % of the rows censored)" in told
    # A patient has an event of each eye, and events are counted until the last predicted time.
    assert re.search(
        r"[\d.]+ events happened by 24 months, with those censored before counted like others of their risk; [\d.]+ ",
        told,
    )
