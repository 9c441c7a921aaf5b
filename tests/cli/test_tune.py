"""Tuning on a table of one's own: the library's choice, saved and explained."""

import pandas as pd
import pytest

from drosurv import workflows
from drosurv.cli.tune import make_rule
from drosurv.datasets import make_hidden_minority
from drosurv.tuning import AccuracyBudget, BestScore, CarefulBudget, OneStandardError, ParetoPoint
from drosurv.tuning.folds import parse_folds

AS_IT_IS = ("--set", "recalibrate=false")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    data = make_hidden_minority(n_samples=200, random_state=0)
    frame = data.X.round(3).iloc[:, :3].assign(days=data.y["time"], died=data.y["event"].astype(int))
    frame["site"] = ["north", "south"] * 100
    path = tmp_path_factory.mktemp("tune") / "patients.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def tune(drosurv, table):
    common = (table, "--time", "days", "--event", "died", "--folds", "2")
    return lambda how, *options: getattr(drosurv, how)("tune", *common, *options)


@pytest.fixture(autouse=True, scope="module")
def searched_once():
    """Commands that ask for the same search get the same: they differ in what they show and write."""
    tune, found = workflows.tune, {}

    def once(table, estimator, grid, rule, **options):
        options["verbose"] = False
        asked = table.frame.to_csv(), repr((table.columns, table.id, estimator, grid, rule, options))
        if asked not in found:
            found[asked] = tune(table, estimator, grid, rule, **options)
        return found[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflows, "tune", once)
        yield


BUDGET = ("--groups", "site", "--grid", "alpha=.3,1", "--rule", "budget", "--set", "l2=0.01", *AS_IT_IS)


def test_the_choice_is_explained_and_the_model_saved(tune, drosurv, table, tmp_path):
    scores, model, picture = (tmp_path / name for name in ("scores.csv", "model", "front.png"))
    shown = tune("ok", *BUDGET, "-o", model, "--table", scores, "--plot", picture).stdout
    assert "lowest concordance imparity" in shown
    assert "concordance imparity ± se" in " ".join(shown.split())
    assert "gain kept" in shown
    assert f"Saved to {model}." in shown
    settings = pd.read_csv(scores)
    assert settings["alpha"].tolist() == [0.3, 1.0]
    assert picture.read_bytes().startswith(b"\x89PNG")
    predicted = drosurv.ok("predict", model, table).stdout
    assert len(predicted.splitlines()) == 201


def test_json_holds_every_setting_and_the_control(tune):
    found = tune("json", *BUDGET)
    assert found["chosen"]["alpha"] in (0.3, 1.0)
    assert found["reason"]
    assert found["recalibration"] is None
    assert len(found["settings"]) == 2
    assert found["control"][0]["gain_share"] == pytest.approx(1.0)
    assert found["unregularised"]["concordance_index"] > 0.5


def test_by_default_the_plain_model_is_a_candidate_and_the_reason_names_all_three(tune):
    options = ("--groups", "site", "--grid", "alpha=0.3,1.0", *AS_IT_IS)
    found = tune("json", *options)
    assert [row["plain"] for row in found["settings"]] == [False, False, True]
    # With alpha = 1 the model is the plain one, so nothing but alpha = 0.3 can be preferred.
    assert found["chosen"] in ({}, {"alpha": 0.3})
    for told in ("concordance imparity", "c-index", "likelihood gain"):
        assert told in found["reason"]
    shown = tune("ok", *options, "--rule", "careful").stdout
    assert "3 settings" in shown
    assert "plain" in shown


def test_without_groups_the_best_c_index_is_chosen(tune):
    found = tune("json", "--grid", "alpha=0.3,1.0", *AS_IT_IS)
    best = max(found["settings"], key=lambda row: row["concordance_index"])
    assert found["chosen"] == ({} if best["plain"] else {"alpha": best["alpha"]})
    assert [row["plain"] for row in found["settings"]] == [False, False, True]
    assert found["reason"].startswith("highest c-index")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("careful", CarefulBudget(tolerance=0.1, minimise="group_disparity")),
        ("budget", AccuracyBudget(tolerance=0.1, minimise="group_disparity")),
        ("best", BestScore()),
        ("one-se", OneStandardError(minimise="group_disparity")),
        ("pareto", ParetoPoint(minimise="group_disparity")),
    ],
)
def test_every_rule_has_a_name_and_gets_its_options(name, rule):
    assert make_rule(name, 0.1, "group_disparity") == rule


def test_groups_too_small_to_be_compared_have_no_error_to_show(drosurv, table, tmp_path):
    rows = pd.read_csv(table).assign(site=["rare"] * 30 + ["common"] * 170)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    grid = ("--groups", "site", "--grid", "alpha=0.5", "--rule", "best", *AS_IT_IS)
    common = ("tune", tmp_path / "rows.csv", "--time", "days", "--event", "died", *grid)
    # What is shown anyway is shown once.
    again = ("--folds", "2", "--minimise", "concordance_index")
    assert drosurv.ok(*common, *again).stdout.count("c-index ± se") == 1
    # The results are told before a picture fails.
    failed = drosurv(*common, "--validation", "0.3", "--plot", tmp_path / "front.png")
    assert failed.exit_code == 2
    assert "highest c-index" in failed.stdout
    assert "no setting has a value of" in failed.stderr


def test_robust_settings_are_recalibrated_by_default(tune):
    common = ("--groups", "site", "--grid", "alpha=0.2", "--rule", "budget")
    assert "Log risks were multiplied by" in tune("ok", *common).stdout
    assert "--entry is not supported by a search" in tune("fails", *common, "--entry", "x1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "luck"], "rule must be one of careful, budget, best, one-se, pareto, got 'luck'"),
        (
            ["--groups", "site", "--minimise", "luck"],
            "--minimise 'luck' is not a metric that a search can compute",
        ),
        (["--groups", "site", "--minimise", "dynamic_auc"], "--minimise 'dynamic_auc': higher values"),
        (["--rule", "budget"], "--rule budget compares groups: pass --groups"),
        (["--minimise", "zzz"], "--minimise names a disparity between groups: pass --groups"),
        (["--plot", "p.png"], "plot shows a disparity between groups: pass --groups"),
        (["--grid", "alpha"], "--grid needs NAME=VALUES"),
        (["--grid", "alpha=7"], "must lie in (0, 1]"),
        (["--folds", "1"], "folds must be at least 2, got 1; for a single part pass --validation SHARE"),
        (["--jobs", "0"], "jobs must be at least 1"),
        (["--grid", "alhpa=0.2"], "--grid alhpa has no meaning for DROCox, which takes alpha"),
        (["--grid", "alpha=x"], "Error: --grid alpha must lie in (0, 1], got 'x'"),
        (["--set", "l2=-1"], "--set l2 must be a finite number that is not negative, got -1"),
        (["--tolerance", "-1"], "tolerance must be a share in [0, 1)"),
        (["--model", "cox"], "--grid l2=0,0.01,0.1"),
        (["--validation", "2"], "validation must be a share of the patients"),
        (["--model", "null-model"], "nothing to tune"),
        (["--groups", "site", "--plot", "front"], "must end in .png"),
        (["--model", "forest"], "model 'forest' is not one of"),
        (["--groups", "height"], "'height' is not in the table"),
    ],
)
def test_bad_input_is_one_line(tune, options, message):
    assert message in tune("fails", *options)


def test_rows_of_one_patient_are_never_both_trained_on_and_scored(drosurv, table, tmp_path, monkeypatch):
    rows = pd.read_csv(table).assign(patient=[place // 2 for place in range(200)])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    taken = []

    def spied(*arguments):
        taken.extend(parse_folds(*arguments))
        return taken

    monkeypatch.setattr("drosurv.tuning.search.parse_folds", spied)
    common = ("--time", "days", "--event", "died", "--id", "patient", "--folds", "2")
    drosurv.ok("tune", tmp_path / "rows.csv", *common, "--model", "cox", "--grid", "l2=0.1")
    assert len(taken) == 2
    for train, scored in taken:
        assert set(rows["patient"].iloc[train]).isdisjoint(rows["patient"].iloc[scored])


def test_the_data_are_never_overwritten(tune, table):
    before = table.read_bytes()
    assert "is an input, which would be overwritten" in tune("fails", "-o", table)
    assert table.read_bytes() == before


def test_a_chosen_model_that_plain_cox_dominates_is_warned_about(tune, compared):
    # A ridge as strong as this leaves hardly any difference between patients.
    options = ("--grid", "l2=5,10", "--set", "alpha=0.9", "--set", "recalibrate=false")
    result = tune("ok", *options, "--groups", "site", "--rule", "budget")
    assert "Warning: Its calibration slope is" in result.stderr
    assert "plain Cox" in result.stderr
    assert tune("json", "--model", "cox", "--grid", "l2=0")["against_plain_cox"] is None
