import io

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, load
from drosurv.datasets import make_hidden_minority


def test_predictions_are_those_of_the_loaded_model(drosurv, model, data, tmp_path, patients):
    out = tmp_path / "out.csv"
    drosurv.ok("predict", model, data, "--times", "365,1000.5", "--keep", "id", "-o", out)
    found = pd.read_csv(out)
    expected = load(model)
    assert list(found.columns) == ["id", "log_risk", "survival_365", "survival_1000.5"]
    assert found["id"].tolist() == patients["id"].tolist()
    np.testing.assert_allclose(found["log_risk"], expected.predict(patients))
    np.testing.assert_allclose(
        found[["survival_365", "survival_1000.5"]],
        expected[-1].predict_survival_function(expected[0].transform(patients), times=[365, 1000.5]),
    )


def test_no_spreadsheet_runs_what_is_kept_beside_predictions(drosurv, model, patients, tmp_path):
    texts = ["=1+1", "@SUM(A1)", "+pos", "-5 mg", "-1.5", "plain"]
    new = patients[: len(texts)].assign(note=texts).rename(columns={"note": "=cmd()"})
    new.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    drosurv.ok("predict", model, tmp_path / "new.csv", "--keep", "=cmd()", "-o", out)
    printed = drosurv.ok("predict", model, tmp_path / "new.csv", "--keep", "=cmd()").stdout
    for written in (out, io.StringIO(printed)):
        found = pd.read_csv(written, dtype=str)
        assert found.columns[0] == "'=cmd()"
        assert found["'=cmd()"].tolist() == ["'=1+1", "'@SUM(A1)", "'+pos", "'-5 mg", "-1.5", "plain"]


def test_without_a_file_the_table_goes_to_stdout_and_the_rest_to_stderr(drosurv, model, data):
    result = drosurv.ok("predict", model, data)
    assert pd.read_csv(io.StringIO(result.stdout)).shape == (400, 1)
    assert "filled with" in result.stderr


def test_rows_that_the_model_was_trained_on_are_counted(drosurv, model, patients, data, tmp_path):
    assert "Note: the model was trained on 400 of 400 rows" in drosurv.ok("predict", model, data).stderr
    older = patients["age"][:30] + np.repeat([0.0, 0.5], [10, 20])
    patients[:30].assign(age=older).to_csv(tmp_path / "some.csv", index=False)
    told = drosurv.ok("predict", model, tmp_path / "some.csv").stderr
    assert "Note: the model was trained on 10 of 30 rows" in told
    patients[:30].drop(columns=["days", "status"]).to_csv(tmp_path / "new.csv", index=False)
    assert "trained on" not in drosurv.ok("predict", model, tmp_path / "new.csv").stderr


@pytest.mark.parametrize("hashes", ["--row-hashes", "--no-row-hashes"])
def test_rows_of_the_training_file_that_were_not_used_do_not_count_as_trained_on(
    drosurv, patients, target, tmp_path, hashes
):
    data, model = tmp_path / "gaps.csv", tmp_path / "m"
    patients.assign(days=patients["days"].mask(patients.index < 20)).to_csv(data, index=False)
    options = ["--drop-missing-target", "--hold-out", tmp_path / "test.csv", "--model", "cox", hashes]
    assert drosurv.json("fit", data, *target, *options, "-o", model)["patients"] == 285
    assert "trained on 285 of 400 rows" in drosurv.ok("predict", model, data).stderr
    shown = drosurv.ok("evaluate", model, data, "--drop-missing-target").stderr
    assert "trained on 285 of 380 rows" in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cox", "given as at that time, which is too high"),
        ("accelerated-failure-time", "extrapolated by the model's formula"),
    ],
)
def test_times_after_the_follow_up_are_told_as_the_model_gives_them(
    drosurv, data, target, tmp_path, patients, name, said
):
    drosurv.ok("fit", data, *target, "--model", name, "-o", tmp_path / "m")
    end = patients["days"].max()
    result = drosurv.ok("predict", tmp_path / "m", data, "--times", f"{end:g},{2 * end:g}")
    assert f"--times {2 * end:g} lies after the longest follow-up in training, {end:g}" in result.stderr
    assert said in result.stderr
    survival = pd.read_csv(io.StringIO(result.stdout)).iloc[:, 1:].to_numpy()
    assert np.array_equal(survival[:, 0], survival[:, 1]) == (name == "cox")


def test_json_holds_the_same_numbers(drosurv, model, data, patients):
    rows = drosurv.json("predict", model, data, "--keep", "id,sex")
    assert rows[0].keys() == {"id", "sex", "log_risk"}
    np.testing.assert_allclose([row["log_risk"] for row in rows], load(model).predict(patients))


def test_new_patients_need_no_target_and_what_was_made_up_is_told(drosurv, model, tmp_path):
    new = pd.DataFrame(
        {"stage": ["IV", "I"], "sex": ["f", None], "age": [None, 70], "kappa": [0.1, 0.2], "extra": "x"}
    )
    new.to_csv(tmp_path / "new.csv", index=False)
    result = drosurv.ok("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    told = result.stderr
    assert "1 text, not seen in training, taken as 'I'" in told
    assert "extra" in told
    assert "not used by the model" in told
    assert "Warning" not in told
    assert len(pd.read_csv(tmp_path / "out.csv")) == 2


def test_numbers_far_from_those_of_training_are_warned_of_by_name(drosurv, model, patients, tmp_path):
    # Ages in days, of some.
    new = patients.head(5).assign(age=[60.0, 21900.0, 55.0, 24820.0, 70.0])
    new.to_csv(tmp_path / "new.csv", index=False)
    told = " ".join(drosurv.ok("predict", model, tmp_path / "new.csv").stderr.split())
    mean, sd = patients["age"].mean(), patients["age"].std(ddof=0)
    assert f"Warning: column 'age' holds 2.482e+04, but in training its mean was {mean:.4g}" in told
    assert f"standard deviation {sd:.4g}: 2 rows more than 10 standard deviations away" in told
    assert "'kappa' holds" not in told


def test_a_model_saved_in_python_predicts_from_a_table_of_its_features(drosurv, tmp_path):
    data = make_hidden_minority(n_samples=100, random_state=0)
    CoxPH().fit(data.X, data.y).save(tmp_path / "m")
    data.X.assign(note="x").to_csv(tmp_path / "d.csv", index=False)
    rows = drosurv.json("predict", tmp_path / "m", tmp_path / "d.csv")
    np.testing.assert_allclose([row["log_risk"] for row in rows], load(tmp_path / "m").predict(data.X))
    CoxPH().fit(data.X.to_numpy(), data.y).save(tmp_path / "m")
    assert "without column names" in drosurv.fails("predict", tmp_path / "m", tmp_path / "d.csv")


def test_a_broken_model_and_the_wrong_way_round_are_one_line(drosurv, model, data, tmp_path):
    assert "not a model saved by drosurv" in drosurv.fails("predict", data, model)
    cut = tmp_path / "cut"
    cut.write_bytes(model.read_bytes()[:-5])
    assert "not a model saved by drosurv, or is incomplete" in drosurv.fails("predict", cut, data)


def test_an_output_is_a_file_written_whole_through_links_and_never_a_device(drosurv, model, data, tmp_path):
    assert "is a device, a pipe or a socket" in drosurv("predict", model, data, "-o", "/dev/null").stderr
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    assert "exists and was not written by drosurv" in drosurv.fails("predict", model, data, "-o", link)
    assert real.read_text() == "old"
    drosurv.ok("predict", model, data, "-o", link, "--force")
    assert link.is_symlink()
    assert len(pd.read_csv(real)) == 400
    assert sorted(path.name for path in tmp_path.glob(".*")) == []
