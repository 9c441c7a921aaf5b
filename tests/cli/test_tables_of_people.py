"""Files as people have them, through the command line: pipes, sheets, titles, thousands, months."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from drosurv.tables.reading import _copied


@pytest.fixture
def patients():
    """200 patients; the times are exponential with a rate that doubles in ten years of age."""
    rng = np.random.default_rng(0)
    age = rng.integers(40, 80, 200)
    days = np.ceil(rng.exponential(1500 * 2 ** ((60 - age) / 10))).astype(int)
    return pd.DataFrame({"days": days, "died": rng.integers(0, 2, 200), "age": age})


@pytest.fixture
def fit(drosurv, tmp_path):
    def run(path, *options, how="json", target=("--time", "days", "--event", "died")):
        return getattr(drosurv, how)("fit", path, *target, "--model", "cox", "-o", tmp_path / "m", *options)

    return run


@pytest.fixture
def coefficient(fit, patients, tmp_path):
    patients.to_csv(tmp_path / "plain.csv", index=False)
    return fit(tmp_path / "plain.csv")["coefficients"]["age"]


def test_thousands_commas_beside_tabs_give_the_right_model(fit, patients, coefficient, tmp_path):
    marked = patients.assign(days=patients["days"].map("{:,}".format))
    marked.to_csv(tmp_path / "us.tsv", index=False, sep="\t")
    assert fit(tmp_path / "us.tsv")["coefficients"]["age"] == coefficient


def test_a_table_comes_through_a_pipe_and_the_next_command_says_so(fit, patients, coefficient, monkeypatch):
    invoke = CliRunner.invoke
    sent = patients.to_csv(index=False)
    monkeypatch.setattr(CliRunner, "invoke", lambda *given: invoke(*given, input=sent))
    _copied.cache_clear()
    found = fit("-")
    _copied.cache_clear()
    assert found["coefficients"]["age"] == coefficient
    assert found["next"][2] == "-"


def test_a_sheet_below_titles_gives_the_right_model(fit, patients, coefficient, tmp_path):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        patients.to_excel(book, sheet_name="First", index=False, startrow=3)
        book.sheets["First"]["A1"] = "Patients of 2020"
        patients.head(50).to_excel(book, sheet_name="Second", index=False)
    assert "pass --sheet 'First' or another one" in fit(path, how="fails")
    told = fit(path, "--sheet", "First", how="ok")
    assert "was read with --header-row 4" in told.stderr
    assert fit(path, "--sheet", "First", "--header-row", "4")["coefficients"]["age"] == coefficient


def test_months_as_numbers_give_times_in_months(fit, drosurv, patients, tmp_path):
    start = pd.Timestamp("2001-03-31") + pd.to_timedelta(np.arange(200), "D")
    end = start + pd.to_timedelta(patients["days"].to_numpy(), "D")
    months = patients.drop(columns="days").assign(dx=start.strftime("%Y%m"), last=end.strftime("%Y%m"))
    months.to_csv(tmp_path / "months.csv", index=False)
    target = ("--start", "dx", "--end", "last", "--event", "died")
    assert fit(tmp_path / "months.csv", target=target)["time"] == "months from dx to last"
    shown = drosurv.ok("certify", tmp_path / "m", tmp_path / "months.csv").stdout
    assert "months" in shown
    months.assign(last="999912").to_csv(tmp_path / "open.csv", index=False)
    assert "--end column 'last' holds '999912', no dates" in fit(
        tmp_path / "open.csv", target=target, how="fails"
    )
