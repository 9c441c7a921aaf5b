"""Files as people have them: marks of other countries, text cells and sheets of Excel, titles, months, percent."""

import io
import re
import sys
import zipfile
from datetime import date

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest

from drosurv.tables import TableEncoder, read_survival_table
from drosurv.tables.cells import MISSING, Cells, typed
from drosurv.tables.number_texts import decimal_mark
from drosurv.tables.reading import FileFormat, TableNote, _copied, read_frame
from drosurv.tables.values import to_floats

pytestmark = pytest.mark.filterwarnings("ignore::drosurv.tables.reading.TableNote")
RNG = np.random.default_rng(0)
DAYS = np.ceil(RNG.exponential(900, 200)).astype(int)


@pytest.fixture
def write(tmp_path):
    def written(text, name="data.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return written


@pytest.fixture
def book(tmp_path):
    """Writes sheets, each a list of rows, to a workbook."""

    def written(**sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for name, rows in sheets.items():
            sheet = made.create_sheet(name.replace("_", " "))
            for row in rows:
                sheet.append(row)
        made.save(tmp_path / "book.xlsx")
        return tmp_path / "book.xlsx"

    return written


def test_a_decimal_comma_beside_decimal_points_is_to_be_corrected(write):
    """Reading the table with decimal commas helps only if all its numbers have them."""
    masses = [f"{mass}.5" for mass in range(20, 60)]
    frame = read_frame(
        write("\n".join(["time;bmi", *(f"{k};{mass}" for k, mass in enumerate(masses, 1)), "41;27,4"]))
    )
    for use in (lambda: TableEncoder().fit(frame[["bmi"]]), lambda: to_floats(frame["bmi"])):
        with pytest.raises(
            ValueError, match=r"decimal mark, write points, or read .* if all its numbers have commas"
        ):
            use()


@pytest.mark.parametrize("separator", ["\t", "|", ";"])
@pytest.mark.parametrize("age", ["61", "61.5"])
def test_thousands_commas_are_no_decimal_commas(write, separator, age):
    lines = [separator.join([f"{day:,}", age, "1"]) for day in DAYS]
    frame = read_frame(write("\n".join([separator.join(["time", "age", "died"]), *lines])))
    assert frame["time"].tolist() == DAYS.tolist()
    assert frame["age"].tolist() == [float(age)] * len(DAYS)


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_thousands_points_are_no_decimal_points(write, separator):
    lines = [separator.join([f"{day:,}".replace(",", "."), "1"]) for day in DAYS]
    frame = read_frame(write("\n".join([separator.join(["Tage", "tot"]), *lines])))
    assert frame["Tage"].tolist() == DAYS.tolist()


def test_quoted_thousands_in_a_comma_separated_file_are_numbers(write):
    lines = [f'"{day:,}",1' for day in DAYS]
    assert read_frame(write("\n".join(["time,died", *lines])))["time"].tolist() == DAYS.tolist()
    lines = [f'"{day / 10}",1'.replace(".", ",") for day in DAYS]
    assert read_frame(write("\n".join(["time,died", *lines])))["time"].tolist() == (DAYS / 10).tolist()


@pytest.mark.parametrize("mark", [",", "."])
def test_a_number_with_two_meanings_is_asked_about(write, mark):
    path = write(f"time;died\n1{mark}204;1\n2{mark}531;0\n")
    with pytest.raises(ValueError, match=rf"'1\{mark}204', which may be 1204 or 1.204: pass decimal="):
        read_frame(path)
    other = {",": ".", ".": ","}[mark]
    assert read_frame(path, decimal=mark)["time"].tolist() == [1.204, 2.531]
    assert read_frame(path, decimal=other)["time"].tolist() == [1204, 2531]


@pytest.mark.parametrize(("mark", "other"), [(".", ","), (",", ".")])
def test_thousands_that_contradict_the_decimal_mark_of_the_table_are_asked_about(write, mark, other):
    """Values of 900, 950 and 8.800 are thousands in a column alone, and decimals beside a column with 1.5."""
    cells = ["900", "950", "980", f"8{mark}800", f"9{mark}100"]
    path = write("a;b;c\n" + "".join(f"{cell};1{mark}5;0{mark}5\n" for cell in cells))
    with pytest.raises(ValueError, match=rf"'8\{mark}800', which may be 8800 or 8.800: pass decimal="):
        read_frame(path)
    assert read_frame(path, decimal=mark)["a"].tolist() == [900, 950, 980, 8.8, 9.1]
    assert read_frame(write(path.read_text().replace(f"{mark}5", f"{other}5")))["a"].iloc[-1] == 9100


@pytest.mark.parametrize("percent", [["36 %", "0.36"], ["8％", "7"]])
def test_a_percent_sign_beside_numbers_without_one_is_not_left_away(write, percent):
    frame = read_frame(write("a;b\n" + "".join(f"{cell};x\n" for cell in percent)))
    with pytest.raises(ValueError, match=r"write all numbers of the column in the same way"):
        to_floats(frame["a"])
    with pytest.raises(
        ValueError,
        match=r"holds '36 %' in 1 row \(first: row 201\), .*: write all numbers of the column in the same way",
    ):
        TableEncoder().fit(pd.DataFrame({"a": [*map(str, range(200)), "36 %"]}))


@pytest.mark.parametrize(
    ("columns", "separator", "mark"),
    [
        ([["1,204", "2,531"], ["1,5"]], ";", ","),
        ([["1,204", "2,531"], ["1.5"]], ";", "."),
        ([["1.204"]], ",", "."),
        ([["1,204,567"]], ";", "."),
        ([["1.2.2010", "3.4.2011"], ["0,5"]], ";", ","),
        ([["1,5", "2"]], ";", ","),
        ([["1,204", "365", "12", "45"]], "\t", "."),
        ([["1,204", "2,531"]], "\t", None),
        ([["1,204", "NA"], ["0,5"], ["v1.2", "v1.3", "7"]], "\t", ","),
    ],
)
def test_a_column_that_shows_its_mark_decides_for_the_others(columns, separator, mark):
    marks = [Cells.of(column).mark() for column in columns]
    assert decimal_mark(marks, separator) == mark


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["36 %", "7%", "100 %"], [36, 7, 100]),
        (["36,5 %", "7 %", "0,1 %"], [36.5, 7, 0.1]),
        (["1 204", "365", "12 345"], [1204, 365, 12345]),
        (["1\u00a0204,5", "365", "1\u202f000\u202f000"], [1204.5, 365, 1e6]),
        (["1'204.5", "365", "2'000"], [1204.5, 365, 2000]),
        (["−1,5", "2", "3"], [-1.5, 2, 3]),
    ],
)
def test_other_ways_to_write_numbers_are_numbers(write, cells, expected):
    assert read_frame(write("a;b\n" + "".join(f"{cell};x\n" for cell in cells)))["a"].tolist() == expected


def test_german_dates_stand_beside_decimal_commas(write):
    frame = read_frame(write("start;crp\n1.2.2010;1,5\n28.12.2010;12,25\n"))
    assert frame["start"].tolist() == ["1.2.2010", "28.12.2010"]
    assert frame["crp"].tolist() == [1.5, 12.25]
    dated = frame.assign(end=["2.2.2010", "1.1.2011"], died=[1, 0], age=[50, 60])
    table = read_survival_table(dated, start="start", end="end", event="died", drop=["crp"])
    assert table.y["time"].tolist() == [1, 4]


def test_a_first_line_that_names_the_separator_is_none_of_the_table(write):
    path = write("sep=;\r\ntime;died\r\n5;1\r\n7;0\r\n")
    assert read_frame(path).to_dict("list") == {"time": [5, 7], "died": [1, 0]}


def test_titles_above_the_header_are_left_out_with_a_note(write):
    text = "Study of 2020\n\nexported 1.1.2021,,\ntime,died,age\n5,1,61\n7,0,50\n8,0,50\n"
    with pytest.warns(TableNote, match="header_row=4"):
        frame = read_frame(write(text))
    assert frame.to_dict("list") == {"time": [5, 7, 8], "died": [1, 0, 0], "age": [61, 50, 50]}
    pd.testing.assert_frame_equal(read_frame(write(text), header_row=4), frame)


def test_standard_input_is_a_table(monkeypatch):
    _copied.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"time;died\n5,5;1\n7,5;0\n")))
    marks = FileFormat().recognised("-")
    assert marks.read("-").to_dict("list") == {"time": [5.5, 7.5], "died": [1, 0]}
    _copied.cache_clear()


@pytest.mark.parametrize("digits", ["%Y%m", "%Y%m%d"])
def test_months_and_days_as_numbers_are_dates(digits):
    start = pd.to_datetime("2010-01-15") + pd.to_timedelta(RNG.integers(0, 1000, 50), "D")
    end = start + pd.to_timedelta(RNG.integers(40, 1500, 50), "D")
    frame = pd.DataFrame({"dx": start.strftime(digits).astype(int), "last": end.strftime(digits).astype(int)})
    frame = frame.assign(died=[0, 1] * 25, age=RNG.normal(60, 9, 50))
    y = read_survival_table(frame, start="dx", end="last", event="died").y
    if digits == "%Y%m":
        expected = (end.year - start.year) * 12 + end.month - start.month
        assert y["time"].tolist() == expected.tolist()
    else:
        assert y["time"].tolist() == (end - start).days.tolist()


ROWS = [["time", "died", "age"], *[[k + 1, k % 2, 40 + k] for k in range(20)]]


def test_text_cells_of_excel_stay_text(book):
    long = [str(12345678901234567 + k) for k in range(20)]
    rows = [
        ["hospital", "pid", "patient", "weight", "dose"],
        *[[f"{k:04}", f"0{k // 2}" if k % 2 else f"{k // 2}", long[k], f"{k}.5", k] for k in range(20)],
    ]
    frame = read_frame(book(Data=rows))
    assert frame["hospital"].tolist() == [f"{k:04}" for k in range(20)]
    assert frame["pid"].nunique() == 20
    assert frame["patient"].tolist() == long
    assert frame["weight"].tolist() == [k + 0.5 for k in range(20)]
    assert frame["dose"].tolist() == list(range(20))


def test_ids_that_excel_has_rounded_are_told(book):
    rows = [["id", "age"], *[[1.2345678901234567e16, k] for k in range(20)]]
    with pytest.warns(UserWarning, match="more than 15 digits, of which Excel keeps 15"):
        read_frame(book(Data=rows))


def test_a_workbook_with_two_tables_is_asked_about(book):
    path = book(Hospital_A=ROWS, Hospital_B=ROWS, Legend=[["time", "in days"]])
    with pytest.raises(
        ValueError, match=r"which sheet .*'Hospital A' \(21 rows\) and 'Hospital B' \(21 rows\)"
    ):
        read_frame(path)
    assert len(read_frame(path, sheet="Hospital B")) == 20
    assert len(read_frame(path, sheet="2")) == 20
    with pytest.raises(ValueError, match="Did you mean 'Hospital A'"):
        read_frame(path, sheet="Hospital a")


def test_the_only_table_of_a_workbook_is_read_with_a_note(book):
    path = book(Legend=[["time", "in days"], ["died", "1 is dead"]], Data=ROWS)
    with pytest.warns(TableNote, match="sheet 'Data' of .* was read, and not 'Legend'"):
        assert read_frame(path).shape == (20, 3)


def test_titles_and_empty_rows_of_excel_are_left_out(book):
    path = book(Data=[["Study of 2020"], [], ["by", "me"], *ROWS[:10], [None] * 3, *ROWS[10:], [], []])
    with pytest.warns(TableNote, match="header_row=4: 3 rows above it"):
        assert read_frame(path)["age"].tolist() == list(range(40, 60))
    assert read_frame(path, header_row=4)["time"].tolist() == list(range(1, 21))
    with pytest.raises(ValueError, match="header_row must be between 1 and 25, got 99"):
        read_frame(path, header_row=99)


def test_merged_cells_count_for_each_of_their_rows(tmp_path):
    made = openpyxl.Workbook()
    for row in [["hospital", "time"], *[["A" if k == 0 else None, k] for k in range(20)]]:
        made.active.append(row)
    made.active.merge_cells("A2:A21")
    made.save(tmp_path / "merged.xlsx")
    assert read_frame(tmp_path / "merged.xlsx")["hospital"].tolist() == ["A"] * 20


def test_missing_values_of_excel_are_missing_and_its_other_errors_are_asked_about(book):
    rows = [["a", "b", "c"], *[[k, "x", 1.5] for k in range(20)], ["#N/A", "NA", "#N/A"], ["n/k", "y", None]]
    wrong = read_frame(book(Data=[*rows, ["#VALUE!", "x", 1.5]]), missing=["a=n/k"])
    with pytest.raises(ValueError, match=r"column 'a' holds 1 text \(first: row 23\), which is no number"):
        TableEncoder().fit(wrong)
    frame = read_frame(book(Data=rows), missing=["a=n/k", "c=1.5"])
    assert frame["a"].tolist()[:20] == list(range(20))
    assert frame["a"].isna().sum() == 2
    assert frame["b"].isna().sum() == 1
    assert frame["c"].isna().all()


def test_a_workbook_under_another_name_is_known_by_its_bytes(book, tmp_path):
    book(Data=ROWS).rename(tmp_path / "patients.csv")
    assert read_frame(tmp_path / "patients.csv").shape == (20, 3)


def test_every_text_of_a_column_of_numbers_can_mean_missing(write, book):
    text = "age;sex\n61,5;f\nsee letter;m\n<50;f\n50;f\n"
    frame = read_frame(write(text), missing=["age=*"])
    np.testing.assert_array_equal(frame["age"], [61.5, np.nan, np.nan, 50])
    assert frame["sex"].tolist() == ["f", "m", "f", "f"]
    # Excel makes dates of some numbers.
    rows = [["age"], *[[k] for k in range(20)], ["see letter"], [date(2024, 5, 6)], [True]]
    assert read_frame(book(Data=rows), missing=["age=*"])["age"].tolist()[:20] == list(range(20))
    assert read_frame(book(Data=rows), missing=["age=*"])["age"].isna().sum() == 3


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_decimal_comma_that_comes_late_is_asked_about_or_read(write, mark):
    head = "".join(f"{day}{mark}1{mark}\n" for day in range(3_000))
    late = f"900{mark}1{mark}6,732\n"
    with pytest.raises(ValueError, match="'6,732', which may be 6732 or"):
        read_frame(write(f"days{mark}died{mark}lab\n{head}{late}"))
    lab = read_frame(write(f"days{mark}died{mark}lab\n{head}{late}901{mark}0{mark}12,5\n"))["lab"]
    assert lab.dropna().tolist() == [6.732, 12.5]


def test_a_text_among_numbers_of_a_workbook_whose_texts_have_commas_is_left_for_a_question(book):
    """Numbers have no decimal mark in a workbook: a text beside them does not make them wrong."""
    rows = [["typed", "age"], *[[f"{k},5", k + 0.5] for k in range(100)], ["7,5", "see letter"]]
    frame, marks = FileFormat().table(book(Data=rows))
    assert marks.decimal == ","
    with pytest.raises(ValueError, match=r"column 'age' holds 1 text \(first: row 101\), which is no number"):
        TableEncoder().fit(frame)
    assert read_frame(book(Data=rows), missing=["age=*"])["age"].tolist()[:3] == [0.5, 1.5, 2.5]


def test_formulas_without_a_value_beside_numbers_are_named(book):
    rows = [["age", "bmi"], *[[k, f"=A{k}*2" if k in (7, 9) else 2.0 * k] for k in range(2, 22)]]
    with pytest.raises(
        ValueError, match=r"sheet 'Data' of .* has 2 formulas without a value in the file, in B7 and B9: open"
    ):
        read_frame(book(Data=rows))
    # Above the header, and where a program stored an empty text, a formula is no fault.
    path = book(Data=[["=1+1"], [], *[[k if k else "age", k or "bmi"] for k in range(20)]])
    assert len(read_frame(path)) == 19


def test_a_formula_whose_value_is_an_empty_text_is_missing(book):
    path = book(Data=[["age", "bmi"], *[[k, 1.5 if k % 2 else "=A1"] for k in range(20)]])
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    files[sheet] = re.sub(rb'<c r="(B\d+)"([^>]*)><f>', rb'<c r="\1" t="str"><f>', files[sheet])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    assert read_frame(path)["bmi"].isna().sum() == 10


@pytest.mark.parametrize(
    ("cells", "decimal", "wanted"),
    [
        (["６１", "50", "４．５"], ".", [61, 50, 4.5]),
        (["٦١", "50", "-٧"], ".", [61, 50, -7]),
        (["１,５", "2"], ",", [1.5, 2]),
        (["５", "", "NA", "7"], ".", [5, None, None, 7]),
        (["1e3", "+5", ".5", "5.", "-0.25"], ".", [1000, 5, 0.5, 5, -0.25]),
        (["1,204", "1,204,567", "12.5"], ".", [1204, 1204567, 12.5]),
        (["1.204", "1.204.567", "12,5"], ",", [1204, 1204567, 12.5]),
        (["０７", "12"], ".", ["０７", "12"]),
        (["5²", "6"], ".", ["5²", "6"]),
        (["1_000", "6"], ".", ["1_000", "6"]),
        (["12", "0x1A"], ".", ["12", "0x1A"]),
        (["1 2", "6"], ".", ["1 2", "6"]),
        (["12,34", "6.5"], ".", ["12,34", "6.5"]),
        (["1,20,400", "6"], ".", ["1,20,400", "6"]),
        (["36 %", "0.36"], ".", ["36 %", "0.36"]),
        ([36, "40%"], ".", ["36", "40%"]),
        ([1.5, "2,5", None], ",", [1.5, 2.5, None]),
        ([1234.567, "2,5"], ",", [1234.567, 2.5]),
        ([1, 2.5, "x"], ".", ["1", "2.5", "x"]),
        ([True, "x", 1], ".", ["True", "x", "1"]),
    ],
)
def test_cells_become_numbers_only_if_each_of_them_is_one(cells, decimal, wanted):
    values = typed(Cells.of(cells).without({*MISSING}), "a", decimal)
    assert [None if pd.isna(value) else value for value in values] == wanted


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet", ".dta", ".sav"])
def test_the_same_texts_are_the_same_column_in_every_format(tmp_path, suffix):
    texts = pd.DataFrame(
        {
            "n": ["1.5", "NA", "20"],
            "code": ["007", "012", "100"],
            "stage": ["I", "", "II"],
            "wide": ["６", "7", "８"],
        }
    )
    path = tmp_path / f"t{suffix}"
    {
        ".csv": lambda: texts.to_csv(path, index=False),
        ".xlsx": lambda: texts.to_excel(path, index=False),
        ".parquet": lambda: texts.to_parquet(path),
        ".dta": lambda: texts.to_stata(path, write_index=False, version=118),
        ".sav": lambda: pyreadstat.write_sav(texts, path),
    }[suffix]()
    frame = read_frame(path)
    np.testing.assert_array_equal(frame["n"], [1.5, np.nan, 20])
    np.testing.assert_array_equal(frame["wide"], [6, 7, 8])
    assert frame["code"].tolist() == ["007", "012", "100"]
    assert frame["stage"].fillna("-").tolist() == ["I", "-", "II"]


def test_labels_of_single_values_leave_a_column_of_numbers(tmp_path):
    age, grade = [61.0, 999.0, 50.0, 47.0], [1.0, 2.0, 1.0, 2.0]
    table = pd.DataFrame({"age": age, "drinks": [0.0, 97.0, 2.0, 5.0], "grade": grade, "weight": age})
    labels = {
        "age": {999: "unknown"},
        "drinks": {0: "none", 97: "refused"},
        "grade": {1: "low", 2: "high"},
        "weight": {998: "missing"},
    }
    pyreadstat.write_sav(table, tmp_path / "t.sav", variable_value_labels=labels)
    with pytest.warns(
        TableNote, match=r"column 'age' holds numbers, and 1 row with .* 'unknown': taken as missing"
    ):
        frame = read_frame(tmp_path / "t.sav")
    np.testing.assert_array_equal(frame["age"], [61, np.nan, 50, 47])
    assert frame["weight"].tolist() == age
    # Not missing, and no number: the labels stay, and it is said.
    with pytest.warns(
        TableNote, match=r"'drinks' holds numbers, and 2 rows .* 'none', 'refused': read as texts"
    ):
        read_frame(tmp_path / "t.sav")
    assert frame["drinks"].tolist() == ["none", "refused", "2", "5"]
    assert frame["grade"].tolist() == ["low", "high", "low", "high"]
    assert read_frame(tmp_path / "t.sav", missing=["drinks=*"])["drinks"].dropna().tolist() == [2, 5]


def test_lists_of_a_parquet_file_are_texts_and_it_is_said(tmp_path):
    pd.DataFrame({"age": [1.0, 2.0], "drugs": [["a", "b"], None]}).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(TableNote, match="column 'drugs' holds lists or other collections: read as texts"):
        frame = read_frame(tmp_path / "t.parquet")
    assert frame["drugs"].isna().tolist() == [False, True]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_known_by_its_zero_bytes(write, codec):
    assert read_frame(write("Ort\nKöln\n東京\n", encoding=codec))["Ort"].tolist() == ["Köln", "東京"]


def test_zeros_of_a_sas_transport_file_are_zeros(tmp_path):
    pyreadstat.write_xport(
        pd.DataFrame({"died": [0.0, 1.0, -2.5]}), tmp_path / "t.xpt", file_format_version=5
    )
    assert read_frame(tmp_path / "t.xpt")["died"].tolist() == [0, 1, -2.5]


def test_a_new_sas_transport_file_is_named(tmp_path):
    pyreadstat.write_xport(pd.DataFrame({"a": [1.0]}), tmp_path / "t.xpt", file_format_version=8)
    with pytest.raises(ValueError, match=r"transport file .* of version 8, which cannot be read"):
        read_frame(tmp_path / "t.xpt")


TEXTS = ["=1+1", "+neg", "-5 mg", "@me", "+", "++", "-1.5", "+3", "'quoted", "x=1", '=HYPERLINK("a";"b")']


@pytest.mark.parametrize("separator", [",", ";"])
def test_no_spreadsheet_runs_a_text_that_was_written_and_reading_gives_it_back(tmp_path, separator):
    file = FileFormat(separator=separator)
    table = pd.DataFrame({"=cmd": TEXTS, "n": np.arange(len(TEXTS)) - 1.5})
    file.write(table, tmp_path / "t.csv")
    cells = pd.read_csv(tmp_path / "t.csv", sep=separator, dtype=str)
    assert list(cells.columns) == ["'=cmd", "n"]
    unchanged = {"+", "++", "-1.5", "+3", "'quoted", "x=1"}
    assert cells.iloc[:, 0].tolist() == [text if text in unchanged else f"'{text}" for text in TEXTS]
    assert cells["n"].iloc[0] == "-1.5"
    pd.testing.assert_frame_equal(file.read(tmp_path / "t.csv"), table)
