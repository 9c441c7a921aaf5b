"""The command plan: the numbers of the function, from rates, a pilot table or a model."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv.datasets import make_hidden_minority


@pytest.fixture
def run(drosurv):
    return partial(drosurv, "plan")


@pytest.fixture
def pilot(tmp_path):
    data = make_hidden_minority(n_samples=400, random_state=0)
    path = tmp_path / "pilot.csv"
    frame = data.X.assign(
        months=data.y["time"], died=data.y["event"].astype(int), sex=np.where(data.X["x3"] > 0, "f", "m")
    )
    frame.to_csv(path, index=False)
    return path


def test_rates_on_the_command_line_give_the_numbers_of_the_function(run):
    words = ("--events", 0.25, "--groups", "women=0.4,over 75=0.15", "--ratio", 1.3, "--n", 1000)
    expected = drosurv.plan(event_rate=0.25, groups={"women": 0.4, "over 75": 0.15}, ratio=1.3, n=1000)
    result = run(*words, "--json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)["table"]
    assert [row["patients"] for row in rows] == expected.table["patients"].tolist()
    printed = run(*words).stdout
    assert "over 75" in printed
    assert "with 1,000" in printed
    assert "pass --c-index or --spread if you know them" in " ".join(printed.split())


def test_a_pilot_table_gives_rates_shares_spread_and_columns(run, pilot):
    result = run(pilot, "--time", "months", "--event", "died", "--groups", "sex", "--tests", 1, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    frame = pd.read_csv(pilot)
    rows = {row["question"]: row["patients"] for row in found["table"]}
    women = (frame["sex"].eq("f") * frame["died"]).mean()
    needed = (1.959964 / np.log(1.2)) ** 2
    assert rows["observed / expected events within a factor of 1.2, sex f"] == np.ceil(needed / women)
    assert rows["observed / expected events within a factor of 1.2, everybody"] == np.ceil(
        needed / frame["died"].mean()
    )
    assert f"{frame.shape[1] - 2} columns may define subgroups" in found["notes"][-1]
    assert "pass c_index" not in " ".join(found["notes"])


def test_patients_with_several_rows_are_refused(run, pilot):
    frame = pd.read_csv(pilot)
    frame.assign(patient_id=np.arange(len(frame)) // 2).to_csv(pilot, index=False)
    for named in ((), ("--id", "patient_id")):
        result = run(pilot, "--time", "months", "--event", "died", *named)
        assert result.exit_code == 2
        assert "names 200 patients in 400 rows" in " ".join(result.stderr.split())


def test_a_saved_model_gives_the_spread(run, pilot, tmp_path):
    frame = pd.read_csv(pilot)
    X = frame.drop(columns=["months", "died", "sex"])
    y = drosurv.Surv.from_dataframe("died", "months", frame)
    model = drosurv.CoxPH().fit(X, y)
    model.save(tmp_path / "model")
    result = run(
        pilot, "--model", tmp_path / "model", "--time", "months", "--event", "died", "--json", "--ratio", 1.4
    )
    assert result.exit_code == 0, result.output
    log_risk, hazard = model.predict(X), model.cum_baseline_hazard_(frame["months"])
    spread = np.sqrt(np.cov(log_risk, aweights=hazard * np.exp(log_risk), ddof=0))
    notes = " ".join(json.loads(result.stdout)["notes"])
    assert f"standard deviation {spread:.2f} at the events" in notes


def test_groups_may_have_their_own_rate_of_events(run):
    result = run("--events", 0.3, "--groups", "women=0.4,over 75=0.15:0.5", "--json")
    groups = {"women": 0.4, "over 75": (0.15, 0.5)}
    wanted = drosurv.plan(event_rate=0.3, groups=groups).to_dict()
    assert json.loads(result.stdout)["table"] == json.loads(json.dumps(wanted["table"]))


def test_the_picture_is_written_and_announced(run, tmp_path):
    result = run("--events", 0.3, "--plot", tmp_path / "plan.png")
    assert result.exit_code == 0
    assert "The picture is in" in result.stderr
    assert (tmp_path / "plan.png").stat().st_size > 1000
