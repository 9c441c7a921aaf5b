"""drosurv check: what it prints, writes and asks."""

import pandas as pd

from drosurv import load


def test_one_command_gives_a_page_a_model_and_the_next_command_on_a_table_with_problems(
    drosurv, patients, tmp_path
):
    patients = patients.head(200)
    days = pd.date_range("2020-01-01", periods=len(patients)).strftime("%d.%m.%Y")
    visit = patients["days"].where(patients.index % 3 > 0, patients["days"] + 7)
    messy = patients.assign(seen=patients["days"], admitted=days, visit=visit)
    messy.loc[3, "days"] = -1
    messy["kappa"] = messy["kappa"].map("{:.4f}".format).str.replace(".", ",").replace("nan", "")
    messy.loc[[5, 6], "kappa"] = "n/k"
    messy.loc[[8, 9, 10], "age"] = 999
    path, page, model = (tmp_path / name for name in ("messy.csv.gz", "page.html", "checked"))
    messy.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
    options = ("--event-value", "dead", "--keep-columns", "visit", "-o", page)
    options += ("--missing", "age=999")
    asked = drosurv("check", path, *options).stderr
    assert "column 'kappa' holds 'n/k' in 2 rows (first: row 6), which is no number" in asked
    assert "pass --missing 'kappa=*'" in asked
    options += ("--missing", "kappa=*")
    shown = drosurv.ok("check", path, *options, "--save", model).stdout
    assert len(shown.splitlines()) <= 60
    assert "Time is column 'days'" in shown
    assert f"drosurv fit {path} --time days --event status --id id --groups" in shown.replace("\n", " ")
    assert len(load(model).predict(messy.assign(kappa=patients["kappa"]))) == len(patients)
    found = drosurv.json("check", path, *options)
    assert found["next"][:2] == ["fit", str(path)]
    for word in (
        "seen",
        "admitted",
        "age=999",
        "--drop-missing-target",
        "--event-value",
        "--keep-columns",
        "kappa=*",
    ):
        assert word in found["next"]
    assert {"visit", "kappa"} <= {row["covariate"] for row in found["cox"]}
    words = [str(tmp_path / word) if word in ("test.csv", "model") else word for word in found["next"]]
    drosurv.ok(*words)


def test_a_unit_that_contradicts_the_dates_is_an_error(drosurv, patients, tmp_path):
    first = pd.Timestamp("2020-01-01") + pd.to_timedelta(patients.index, "D")
    last = first + pd.to_timedelta(patients["days"].round(), "D")
    patients.drop(columns="days").assign(first=first, last=last).to_csv(tmp_path / "d.csv", index=False)
    line = drosurv.fails(
        "check", tmp_path / "d.csv", "--start", "first", "--end", "last", "--time-unit", "years"
    )
    assert "the time between these columns is in days" in line


def test_candidates_are_printed_as_commands(drosurv, patients, tmp_path):
    frame = patients.rename(columns={"days": "dtime", "status": "death"})
    frame.assign(rtime=frame["dtime"], recur=frame["death"]).to_csv(tmp_path / "d.csv", index=False)
    line = drosurv.fails("check", tmp_path / "d.csv")
    assert f"drosurv check {tmp_path / 'd.csv'} --time dtime --event death" in line
