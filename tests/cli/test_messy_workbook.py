"""A register as a German hospital keeps it in Excel: one command gives the page."""

import json
from datetime import datetime, timedelta

import numpy as np
import pytest
from openpyxl import Workbook

from drosurv.tables.reading import TableNote, read_frame

pytestmark = pytest.mark.sections("verdict", "method", "patients")

N = 200
HEADER = (
    *("Pat.-Nr.", "Alter (Jahre)", "Geschlecht", "CRP", "Stadium", "Diagnosedatum"),
    *("Überlebenszeit (Tage)", "verstorben", "Bemerkung"),
)


@pytest.fixture(scope="module")
def register():
    """Rows of the register, and the true days, deaths and values of CRP."""
    rng = np.random.default_rng(0)
    age = rng.integers(30, 90, N)
    death = np.ceil(rng.exponential(2500 * 2 ** ((60 - age) / 15))).astype(int)
    last = rng.integers(200, 4000, N)
    days, died, crp = np.minimum(death, last), death <= last, rng.lognormal(1, 1, N).round(1)
    sex, stage = rng.choice(["m", "w", "M", "männlich"], N), rng.choice(["I", "II", "III"], N)
    rows = []
    for i in range(N):
        unclear = {0: "k.A.", 1: "<0,5"}.get(i % 50)
        rows.append(
            [
                f"{i:06d}",
                int(age[i]) if i % 50 else None,
                str(sex[i]),
                unclear or f"{crp[i]:.1f}".replace(".", ","),
                str(stage[i]),
                datetime(2010, 1, 1) + timedelta(days=i % 3000),
                f"{days[i]:,}".replace(",", "."),
                "ja" if died[i] else "nein",
                f"Anruf bei Frau {i}" if i % 12 == 0 else None,
            ]
        )
    return rows, days, died, crp


def test_one_command_reads_a_messy_workbook_of_a_hospital(drosurv, register, tmp_path):
    rows, days, died, crp = register
    book = Workbook()
    sheet = book.active
    sheet.title = "Patienten"
    sheet["A1"] = "Register 2010 bis 2020, Stand 1.3.2021"
    sheet.merge_cells("A1:F1")
    for row in ([], HEADER, *rows, ["Summe", None, None, None, None, None, int(days.sum())]):
        sheet.append(row)
    book.create_sheet("Legende").append(["CRP", "mg/l"])
    book.save(tmp_path / "register.xlsx")
    page = tmp_path / "check.html"
    asked = drosurv("check", tmp_path / "register.xlsx").stderr
    assert (
        "column 'CRP' holds 'k.A.' in 4 rows, '<0,5' in 4 rows (first: row 1), which are no numbers" in asked
    )
    absent = ("--missing", "CRP=*")
    told = drosurv.ok("check", tmp_path / "register.xlsx", *absent, "-o", page, "--json")
    found = json.loads(told.stdout)
    assert (found["patients"], found["rows"], found["events"]) == (N, N, int(died.sum()))
    assert found["columns"]["time"] == "Überlebenszeit (Tage)"
    assert found["columns"]["event"] == "verstorben"
    assert found["columns"]["id"] == "Pat.-Nr."
    assert found["event_value"] == "ja"
    assert "sheet 'Patienten' of" in told.stderr
    assert "--header-row 3" in told.stderr
    problems = " ".join(found["problems"])
    assert f"1 row with no event in column 'verstorben' left out (first: row {N + 1})" in problems
    assert "column 'Diagnosedatum' holds dates and was left out" in problems
    assert "Frau" not in problems + page.read_text()
    # Times with a point between thousands, and numbers with a decimal comma, are what they were.
    with pytest.warns(TableNote):
        read = read_frame(tmp_path / "register.xlsx", missing=["CRP=*"])[:N]
    np.testing.assert_array_equal(read["Überlebenszeit (Tage)"], days)
    np.testing.assert_array_equal(read["CRP"], np.where(np.arange(N) % 50 > 1, crp, np.nan))
    # The command that is proposed runs as it stands.
    following = [word if word not in ("test.csv", "model") else tmp_path / word for word in found["next"]]
    trained = drosurv.json(*following)
    assert trained["patients"] + trained["held_out"]["patients"] == N
