"""Tables as hospitals have them, through the command line: understood, asked about, or refused with the remedy."""

import numpy as np
import pandas as pd
import pytest
from sksurv.datasets import load_gbsg2

from drosurv.estimators.persistence import load, read_saved_model


@pytest.fixture(scope="module")
def gbsg2():
    """Breast cancer patients, some of them and their columns, with the target in columns."""
    X, y = load_gbsg2()
    frame = X[["age", "horTh", "pnodes"]].astype({"horTh": str})
    return frame.assign(days=y["time"], relapse=np.where(y["cens"], "yes", "no")).iloc[:300]


@pytest.fixture
def fit(drosurv, tmp_path):
    """Fits plain Cox on a table and gives the result; `how` is ok, fails or json."""

    def run(frame, *options, how="ok", write=None, target=("--time", "days", "--event", "relapse")):
        path = tmp_path / "d.csv"
        (write or (lambda: frame.to_csv(path, index=False)))()
        return getattr(drosurv, how)("fit", path, *target, "--model", "cox", "-o", tmp_path / "m", *options)

    return run


def test_yes_and_no_are_understood_and_said_aloud(fit, gbsg2, tmp_path):
    result = fit(gbsg2)
    assert "Note: 'yes' of event column 'relapse' (141 of 300 rows) was taken as the event" in result.stderr
    assert "pass --event-value if another value means it" in result.stderr
    assert "The event is 'yes' of column 'relapse'; the time is 'days'." in result.stdout
    assert read_saved_model(tmp_path / "m").notes["target"]["event_value"] == "yes"


def test_codes_that_name_groups_become_categories(fit, gbsg2):
    coded = gbsg2.assign(race=np.resize([1, 2, 3], len(gbsg2)))
    told = {row["column"]: row["done"] for row in fit(coded, "--groups", "race", how="json")["columns"]}
    assert told["race"] == "indicators of '2', '3' against '1'"


def test_many_codes_are_groups_where_they_are_named_as_categories(fit, drosurv, gbsg2, tmp_path):
    coded = gbsg2.assign(ward=np.resize(np.arange(1, 14), len(gbsg2))).head(150)
    refused = "cut it in two, for example --groups 'ward>7', or name it in --categorical if they are codes."
    assert refused in fit(coded, "--groups", "ward", "--event-value", "yes", how="fails")
    fit(coded, "--groups", "ward", "--categorical", "ward")
    scored = ("--groups", "ward")
    found = drosurv.json("evaluate", tmp_path / "m", tmp_path / "d.csv", *scored)
    assert {row["group"] for row in found["metrics"] if row["attribute"] == "ward"} >= {"1", "13"}
    fit(gbsg2.head(150))
    coded.to_csv(tmp_path / "d.csv", index=False)
    assert "--categorical if they" in drosurv("evaluate", tmp_path / "m", tmp_path / "d.csv", *scored).stderr
    drosurv.ok("evaluate", tmp_path / "m", tmp_path / "d.csv", *scored, "--categorical", "ward")


def test_dates_make_the_time(fit, drosurv, gbsg2, tmp_path):
    start = pd.Timestamp("2001-03-31") + pd.to_timedelta(np.arange(len(gbsg2)) % 700, "D")
    dated = gbsg2.drop(columns="days").assign(
        diagnosed=start.strftime("%d.%m.%Y"),
        seen=(start + pd.to_timedelta(gbsg2["days"].to_numpy(), "D")).strftime("%d.%m.%Y"),
    )
    plain = fit(gbsg2, "--hold-out", tmp_path / "other.csv", how="json")
    target = ("--start", "diagnosed", "--end", "seen", "--event", "relapse")
    found = fit(dated, "--hold-out", tmp_path / "test.csv", target=target, how="json")
    assert found["coefficients"] == pytest.approx(plain["coefficients"], rel=1e-9)
    drosurv.ok("evaluate", tmp_path / "m", tmp_path / "test.csv")
    numbered = dated.assign(diagnosed=9000 + np.arange(len(gbsg2)) % 700)
    numbered["seen"] = numbered["diagnosed"] + gbsg2["days"].to_numpy()
    found = fit(numbered, "--hold-out", tmp_path / "numbered.csv", target=target, how="json")
    assert found["coefficients"] == pytest.approx(plain["coefficients"], rel=1e-9)
    assert found["time"] == "seen minus diagnosed, in the unit of these columns"
    drosurv.ok("evaluate", tmp_path / "m", tmp_path / "numbered.csv")
    assert "the times are needed: pass either --time" in fit(
        gbsg2, target=("--event", "relapse"), how="fails"
    )


def test_rows_without_a_target_are_left_out_on_request(fit, gbsg2):
    frame = gbsg2.copy()
    frame.loc[frame.index[3:7], "days"] = np.nan
    assert "or pass --drop-missing-target to leave them out" in fit(frame, how="fails")
    result = fit(frame, "--drop-missing-target")
    assert "Note: 4 of 300 rows have no time, a negative time or no event and were left out." in result.stderr
    assert "trained on 296 patients" in result.stdout


def test_rows_keep_the_number_they_have_in_the_file(fit, gbsg2):
    frame = pd.concat([gbsg2, gbsg2.iloc[[9]]], ignore_index=True)
    frame["days"] = frame["days"].astype(object)
    frame.loc[[3, 5], "relapse"] = None
    frame.loc[20, "days"] = 0
    told = fit(frame, "--drop-missing-target").stderr
    assert "1 row of the training table is a copy of another row (first: row 301 of row 10)" in told
    assert "1 patient has the time 0" in told
    assert "(first in row 21)" in told
    frame.loc[40, "days"] = "soon"
    told = fit(frame, "--drop-missing-target", how="__call__").stderr
    assert "holds 1 text (first: row 41), which is no number" in told


@pytest.mark.parametrize("option", ["--id", "--strata", "--clusters", "--drop"])
def test_a_column_that_is_not_there_is_named_with_its_option(fit, gbsg2, option):
    assert f"{option} column 'centr' is not in the table." in fit(gbsg2, option, "centr", how="fails")


def test_what_a_model_does_not_understand_is_named(fit, gbsg2):
    repaired, few = ("--model", "repaired-cox"), gbsg2[["age", "days", "relapse"]].assign(at=1)
    told = fit(few, *repaired, "--strata", "at", how="__call__").stderr
    assert "--strata is not supported by RepairedCox, whose rules are for all patients: leave it out" in told
    told = fit(few, "--model", "deep-hit", "--entry", "at", how="__call__").stderr
    assert "DeepHit does not support --entry" in told
    told = fit(few, *repaired, "--bootstrap", "5", how="__call__").stderr
    assert "--bootstrap has no meaning for RepairedCox" in told


def test_a_repaired_model_is_fitted_to_patients_with_several_rows(fit, gbsg2, quick_base):
    frame = gbsg2[["age", "pnodes", "days", "relapse"]].assign(patient=np.arange(300) % 220)
    model = ("--model", "repaired-cox", "--set", "max_conditions=1", "--set", "folds=3")
    result = fit(frame, *model, "--id", "patient")
    assert "with 141 events" in result.stdout


def test_rows_of_a_patient_stay_on_one_side_of_a_hold_out(fit, gbsg2, tmp_path):
    frame = gbsg2.assign(patient=[f"p{k % 170}" for k in range(len(gbsg2))])
    assert (
        "column 'patient' names 170 different patients in 300 rows" in fit(frame, "--drop", "patient").stderr
    )
    told = " ".join(fit(frame, "--id", "patient", "--hold-out", tmp_path / "test.csv").stdout.split())
    assert told.endswith("test.csv")
    # The model's file names the column of patients, which the next command reads from there.
    assert read_saved_model(tmp_path / "m").notes["id"] == "patient"
    away = pd.read_csv(tmp_path / "test.csv")
    sizes = frame["patient"].value_counts()
    assert all(count == sizes[name] for name, count in away["patient"].value_counts().items())
    assert 0.2 < away["patient"].nunique() / 170 < 0.3
    rows, patients = len(away), away["patient"].nunique()
    assert f"trained on {300 - rows} rows of {170 - patients} patients" in told
    assert f"{rows} rows of {patients} patients were held out" in told


def test_predictions_come_in_the_marks_of_the_data(fit, drosurv, gbsg2, tmp_path):
    def write():
        gbsg2.to_csv(tmp_path / "d.csv", index=False, sep=";", decimal=",", encoding="cp1252")

    marks = ("--separator", ";", "--decimal", ",", "--encoding", "cp1252")
    fit(gbsg2, *marks, write=write)
    out = tmp_path / "out.csv"
    drosurv.ok("predict", tmp_path / "m", tmp_path / "d.csv", *marks, "--times", "365", "-o", out)
    found = pd.read_csv(out, sep=";", decimal=",", encoding="cp1252")
    np.testing.assert_allclose(found["log_risk"], load(tmp_path / "m").predict(gbsg2))
    late = drosurv.ok("predict", tmp_path / "m", tmp_path / "d.csv", *marks, "--times", "365,9999").stderr
    assert "--times 9999 lies after the longest follow-up in training, 2612" in late
    shown = drosurv.ok("predict", tmp_path / "m", tmp_path / "d.csv", *marks).stdout
    assert "," in shown.splitlines()[1]
    assert "." not in shown.splitlines()[1]


def test_levels_in_which_nobody_had_the_event_are_named(fit, gbsg2):
    safe = gbsg2.index[gbsg2["relapse"] == "no"][:7]
    wards = gbsg2.assign(ward=np.where(gbsg2.index.isin(safe), "south", "north"))
    told = "Warning: nobody with ward=south (7 patients) had the event"
    found = fit(wards)
    assert told in found.stderr
    assert "(converged, but for levels without events)" in found.stdout
    found = fit(wards, "--l2", "0.1")
    assert "nobody with" not in found.stderr
    assert "(converged)" in found.stdout


def test_zero_times_and_few_events_are_named(fit, gbsg2):
    small = gbsg2.iloc[:60].copy()
    small.loc[small.index[:2], "days"] = 0
    told = fit(small).stderr
    assert "Warning: 2 patients have the time 0" in told
    assert "Warning: 1 patient has the time 0" in fit(small.iloc[1:]).stderr
    assert "features, fewer than 10 for each" in told
    assert "a penalty such as --set l2=0.1" in told or "a penalty such as --l2 0.1" in told


def test_swapped_columns_are_asked_about(fit, gbsg2):
    line = fit(gbsg2, target=("--time", "relapse", "--event", "days"), how="fails")
    assert "--event column 'days' holds 276 different values" in line
    assert "were the columns of time and event swapped?" in line


def test_a_third_event_code_may_be_a_competing_cause(fit, gbsg2):
    frame = gbsg2.assign(relapse=np.resize([0, 1, 2], len(gbsg2)))
    line = fit(frame, how="fails")
    assert "If '0' and" not in line
    assert "'1' and '2' are competing causes" in line.replace("'2' and '1'", "'1' and '2'")
    assert "--model cause-specific-cox" in line
    assert "also holds '2' in 100 rows, taken as censored" in fit(frame, "--event-value", "1").stderr


def test_columns_that_tell_the_outcome_are_named_and_used_only_if_the_user_names_them(fit, gbsg2, tmp_path):
    # Not the first alone: who drops that one has the true culprit still in the table.
    leaks = {"months": gbsg2["days"] / 30.4, "cause": np.where(gbsg2["relapse"] == "yes", "x", "y")}
    leaking = gbsg2[["age", "days", "relapse"]].assign(**leaks)
    said = (
        "column 'months' may give the outcome away (it is the time in other units) and "
        "column 'cause' may give the outcome away (it tells the event of 100 % of the patients). If"
    )
    # A penalised model, whose coefficients are finite, is refused too; and --force is about files alone.
    for options in ((), ("--model", "cox-cv"), ("--force",)):
        result = fit(leaking, *options, how="__call__")
        assert result.exit_code == 2
        assert said in result.stderr
        assert "If a column is not known when a prediction is made, name it in --drop" in result.stderr
        assert "if it is known, name it in --keep-columns" in result.stderr
    assert not (tmp_path / "m").exists()
    fit(leaking, "--keep-columns", "months,cause")
    assert (tmp_path / "m").exists()


def test_parameters_are_named_as_the_command_line_spells_them(drosurv, gbsg2, tmp_path):
    gbsg2.to_csv(tmp_path / "d.csv", index=False)
    target = ("--time", "days", "--event", "relapse", "--model", "subgroup-robust-cox", "-o", tmp_path / "m")
    result = drosurv("fit", tmp_path / "d.csv", *target, "--alpha", "0.125", "--set", "min_group=60")
    assert result.exit_code == 2
    assert "Error: --alpha 0.125 of 300 patients is 37.5, fewer than --set min_group=60" in result.stderr
    assert "Use --set min_group=37 or less, or --alpha 0.2 or more." in result.stderr


def test_a_small_table_is_to_be_audited_in_folds(fit, gbsg2):
    small = gbsg2[["age", "pnodes", "days", "relapse"]].iloc[:40]
    assert fit(small, "--model", "cox-cv").stdout.rstrip().endswith("--folds 5")
