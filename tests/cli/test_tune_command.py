"""Tuning on a table of one's own: the choice is shown, explained and saved."""

import pandas as pd
import pytest

from drosurv.datasets import make_hidden_minority
from drosurv.workflows import tuning

COMMON = ("--groups", "site", "--grid", "alpha=.3,1", "--set", "l2=0.01", "--set", "recalibrate=false")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    data = make_hidden_minority(n_samples=200, random_state=0)
    frame = data.X.round(3).iloc[:, :3].assign(days=data.y["time"], died=data.y["event"].astype(int))
    frame["site"] = ["north", "south"] * 100
    path = tmp_path_factory.mktemp("tune") / "patients.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def tune(drosurv, table, monkeypatch):
    monkeypatch.setattr(tuning, "_REPLICATES", 30)
    common = (table, "--time", "days", "--event", "died", "--folds", "2")
    return lambda how, *options: getattr(drosurv, how)("tune", *common, *options)


def test_the_choice_is_explained_and_the_model_saved(tune, drosurv, table, tmp_path):
    scores, model = tmp_path / "scores.csv", tmp_path / "model"
    shown = tune("ok", *COMMON, "-o", model, "--table", scores).stdout
    assert "3 settings; * is chosen" in shown
    assert (
        "Chosen: plain Cox: no setting predicts the worst group significantly better than plain Cox" in shown
    )
    assert f"Saved to {model}." in shown
    settings = pd.read_csv(scores)
    assert settings["alpha"].fillna(0).tolist() == [0, 0.3, 1.0]
    assert settings["chosen"].tolist() == [True, False, False]
    predicted = drosurv.ok("predict", model, table).stdout
    assert len(predicted.splitlines()) == 201


def test_json_has_every_setting(tune):
    found = tune("json", *COMMON[2:])
    assert found["chosen"] == {}
    assert "predicts everybody" in found["reason"]
    assert found["recalibration"] is None
    assert [row["alpha"] for row in found["settings"]] == [None, 0.3, 1.0]
    assert found["settings"][0]["concordance_index"] > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grid", "alpha"], "--grid needs NAME=VALUES"),
        (["--grid", "alpha=7"], "--grid alpha must lie in (0, 1], got 7"),
        (["--folds", "1"], "--folds must be a whole number from 2"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--grid", "alhpa=0.2"], "--grid alhpa has no meaning for DROCox, which takes alpha"),
        (["--set", "l2=-1"], "--set l2 must be a finite number that is not negative, got -1"),
        (["--tolerance", "-1"], "--tolerance must be a share in [0, 1)"),
        (["--model", "cox"], "CoxPH has no parameter that is tuned by default"),
        (["--model", "null-model"], "NullModel has no parameter that is tuned by default"),
        (["--model", "forest"], "--model 'forest' is not one of"),
        (["--groups", "height"], "'height' is not in the table"),
        (["--entry", "x1"], "--entry is not supported by a search"),
    ],
)
def test_bad_input_is_one_line(tune, options, message):
    assert message in tune("fails", *options)
