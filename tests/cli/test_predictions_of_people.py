"""Predictions of a nomogram beside times in months, as people have them, through the command line."""

import json

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.sections("verdict", "method")

N = 300
FAST = ("--no-rules",)


@pytest.fixture(scope="module")
def patients():
    """Patients with exponential times, in months, and the true probability of the event until a time."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=N)
    hazard = 0.008 * np.exp(0.8 * x)
    time, censoring = rng.exponential(1 / hazard), rng.uniform(30, 130, N)
    frame = pd.DataFrame(
        {
            "pat_id": [f"P{i:03d}" for i in range(N)],
            "months": np.minimum(time, censoring).round(1),
            "died": (time <= censoring).astype(int),
            "sex": rng.choice(["f", "m"], N),
        }
    )
    return frame, lambda months: 1 - np.exp(-hazard * months)


@pytest.fixture
def audit(drosurv, patients, tmp_path):
    def run(how, *options, time="months", unit=1.0, **columns):
        frame, _ = patients
        frame = frame.assign(months=frame["months"] / unit).rename(columns={"months": time})
        frame.assign(**columns).to_csv(tmp_path / "p.csv", index=False)
        given = ("--predictions", tmp_path / "p.csv", "--time", time, "--event", "died", *FAST)
        return getattr(drosurv, how)("audit", *given, "-o", tmp_path / "r.html", "--force", *options)

    return run


@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ({"p5": (60, 1)}, "--survival 'p5=60' or --survival 'p5=5'"),
        ({"risk10": (120, 100)}, "--survival 'risk10=120' or --survival 'risk10=10'"),
        ({"S1": (12, -1), "S5": (60, -1)}, "--survival 'S1=12,S5=60' or --survival 'S1=1,S5=5'"),
    ],
    ids=["one time", "percent", "survival"],
)
def test_years_beside_months_are_asked_for_and_the_answer_is_right(
    audit, patients, columns, remedy, tmp_path
):
    _, probability = patients
    values = {
        name: scale * probability(months) if scale > 0 else 1 - probability(months)
        for name, (months, scale) in columns.items()
    }
    line = audit("fails", **values)
    assert "at which time are the predictions of column" in line
    assert "Kaplan-Meier" in line
    assert line.endswith(f"Pass {remedy}.")
    told = audit("ok", "--survival", remedy.split("'")[1], **values)
    last, months = list(columns)[-1], max(months for months, _ in columns.values())
    assert f"{last} at {months} months" in told.stderr
    assert "wrong" not in told.stdout.splitlines()[1]
    assert f"{last} at {months} months" in (tmp_path / "r.html").read_text()


def test_a_unit_in_the_name_is_converted_to_that_of_the_times(audit, patients):
    _, probability = patients
    for name in ("survival 5 years", "S(1826d)"):
        told = audit("ok", **{name: 1 - probability(60)})
        assert f"read as survival: {name} at 60" in told.stderr
        assert "No problem is shown" in told.stdout
    told = audit("ok", **{"5-year risk": probability(60)})
    assert "read as event probabilities: 5-year risk at 60 months" in told.stderr
    line = audit("fails", time="fu", surv_5y=1 - probability(60))
    assert "column 'surv_5y' tells 5 years, and the unit of the times of the table is not known" in line
    assert "pass --time-unit days, weeks, months or years, or --survival 'surv_5y=TIME'" in line
    assert (
        "surv_5y at 60 months"
        in audit("ok", "--time-unit", "months", time="fu", surv_5y=1 - probability(60)).stderr
    )


def test_days_beside_years_after_all_follow_up_are_asked_for(audit, patients):
    _, probability = patients
    line = audit("fails", time="years", unit=12, S365=1 - probability(12), S1826=1 - probability(60))
    assert "is unknown until 1,826 years" in line
    assert "until 5 years (1,826 days)" in line
    # Times after the end of follow-up are not offered, and those in years are whole numbers.
    end = "in the unit of the times of the table, which end at 10.83."
    assert line.endswith(
        f"Pass --survival 'S365=1,S1826=5' or --survival 'S365=TIME,S1826=TIME', with TIME {end}"
    )


@pytest.mark.parametrize(
    ("name", "time", "offered"),
    [("S150", "fu", ""), ("S5", "fu", "--survival 'S5=5' or "), ("S150", "months", "")],
    ids=["after all follow-up", "in a unit that is not known", "no whole number in another unit"],
)
def test_times_that_nobody_would_choose_are_not_offered(audit, patients, name, time, offered):
    _, probability = patients
    line = audit("fails", time=time, **{name: 1 - probability(4.93 if time == "months" else 60)})
    assert f" Pass {offered}--survival '{name}=TIME', with TIME in the unit" in line


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.6], ids=["too low", "right", "too high"])
def test_predictions_at_their_times_are_judged_and_not_asked_about(audit, patients, factor):
    _, probability = patients
    survival = {f"S{months}": (1 - probability(months)) ** factor for months in (12, 36, 60)}
    told = audit("ok", **survival)
    assert "S12 at 12 months, S36 at 36 months and S60 at 60 months" in told.stderr
    assert ("No problem is shown" in told.stdout) == (factor == 1)


def test_a_name_that_says_risk_for_survival_is_asked_about(audit, patients):
    _, probability = patients
    line = audit("fails", risk60=1 - probability(60))
    assert "--kind is needed: by its name, column 'risk60' is event probability" in line
    assert "No problem is shown" in audit("ok", "--kind", "survival", risk60=1 - probability(60)).stdout


def test_a_kind_that_the_values_contradict_is_refused(audit, patients):
    _, probability = patients
    line = audit("fails", "--kind", "survival", risk12=probability(12), risk60=probability(60))
    assert "contradicts columns risk12 and risk60, whose values rise with time" in line


def test_times_between_dates_are_days_whatever_unit_is_named(drosurv, patients, tmp_path):
    frame, probability = patients
    first = pd.Timestamp("2015-03-01") + pd.to_timedelta(np.arange(N) % 700, "D")
    last = first + pd.to_timedelta((30.44 * frame["months"]).round(), "D")
    frame.drop(columns="months").assign(
        first=first, last=last, r1=probability(12), r5=probability(60)
    ).to_csv(tmp_path / "p.csv", index=False)
    given = (
        "--predictions",
        tmp_path / "p.csv",
        "--start",
        "first",
        "--end",
        "last",
        "--event",
        "died",
        *FAST,
    )
    line = drosurv.fails("audit", *given, "--survival", "r1=1,r5=5", "--time-unit", "years")
    assert "the time between these columns is in days" in line
    wrong = drosurv("audit", *given, "--survival", "r1=365,r5=1826", "--horizon", 5)
    assert "Error: --horizon must be one of the times of the predictions" in wrong.stderr


def test_the_times_stand_in_the_report_for_programs(audit, patients, tmp_path):
    _, probability = patients
    audit("ok", "-o", tmp_path / "r.json", S60=1 - probability(60))
    assert "S60 at 60 months" in json.dumps(json.loads((tmp_path / "r.json").read_text()))


def hospital(n, seed):
    """Patients of whom those over 68 have three times the predicted hazard, and their predictions in percent."""
    rng = np.random.default_rng(seed)
    age = np.round(60 + 10 * rng.normal(size=n))
    predicted = 0.008 * np.exp(0.8 * rng.normal(size=n))
    time = rng.exponential(1 / (predicted * np.where(age > 68, 3.0, 1.0)))
    censoring = rng.uniform(30, 130, n)
    frame = pd.DataFrame(
        {
            "pat_id": [f"P{seed}{i:03d}" for i in range(n)],
            "months": np.minimum(time, censoring).round(1) + 0.1,
            "died": (time <= censoring).astype(int),
            "age": age,
        }
    )
    risks = {f"risk_{at}": (100 * (1 - np.exp(-predicted * at))).round(2) for at in (12, 60)}
    return frame, pd.DataFrame({"pat_id": frame["pat_id"], **risks})


def test_repaired_predictions_name_patients_and_are_applied_to_others_and_audited(drosurv, tmp_path):
    (frame, made), (others, theirs) = hospital(500, 1), hospital(300, 2)
    data, shuffled, new = tmp_path / "data.csv", tmp_path / "made.csv", tmp_path / "new.csv"
    frame.to_csv(data, index=False)
    # A vendor's table has its own order, and more patients.
    pd.concat([made, theirs]).sample(frac=1, random_state=0).to_csv(shuffled, index=False)
    target = ("--time", "months", "--event", "died")
    saved, written = tmp_path / "repaired", tmp_path / "corrected.csv"
    options = ("--predictions", shuffled, "--corrected", written, "-o", saved, "--max-conditions", "1")
    assert "age > 6" in drosurv.ok("repair", data, *target, *options).stdout
    corrected = pd.read_csv(written)
    pd.testing.assert_frame_equal(corrected[list(frame.columns)], frame, check_dtype=False)
    # The same repair applied by hand: patients over 68 only have their hazard multiplied.
    ratio = np.log(corrected["survival_60"]) / np.log(1 - made["risk_60"] / 100)
    assert ratio[frame["age"] > 70].median() > 2 * ratio[frame["age"] < 65].median()
    # New patients, whose predictions are in a table of their own, or beside their columns.
    others.to_csv(new, index=False)
    theirs[::-1].to_csv(tmp_path / "theirs.csv", index=False)
    keep = ("--keep", "months,died,age", "-o")
    drosurv.ok("predict", saved, new, "--predictions", tmp_path / "theirs.csv", *keep, tmp_path / "a.csv")
    others.merge(theirs).to_csv(new, index=False)
    drosurv.ok("predict", saved, new, *keep, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    found = pd.read_csv(tmp_path / "a.csv")
    assert list(found.columns) == ["pat_id", "months", "died", "age", "survival_12", "survival_60"]

    def verdict(path):
        given = ("--predictions", path, *target, "--groups", "age>68", *FAST, "--force")
        return drosurv.ok("audit", *given, "-o", tmp_path / "r.html").stdout.splitlines()[1]

    assert "wrong" in verdict(new)
    assert "predicted events" not in verdict(tmp_path / "a.csv")
    assert "apply it with `drosurv predict" in drosurv.fails("audit", saved, new, *target)
    assert "leave out --times" in drosurv.fails("predict", saved, new, "--times", "12")
    line = drosurv.fails("repair", data, *target, "--predictions", tmp_path / "theirs.csv")
    assert "lack 500 patients of the table, by column 'pat_id' (first in row 1)" in line
