import gzip
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from drosurv.errors import ArgumentError
from drosurv.tables import TableEncoder, read_survival_table
from drosurv.tables.columns import refuse_texts
from drosurv.tables.reading import FileFormat, TableNote, read_frame
from drosurv.workflows.table_to_check import WantedColumns, prepare_table


@pytest.fixture
def write(tmp_path):
    def written(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def test_a_column_is_numbers_only_if_every_value_is(write):
    frame = read_frame(write("a,b,c\n1,1,1e3\n2.5,x,-.5\n"))
    assert frame["a"].tolist() == [1.0, 2.5]
    assert frame["b"].tolist() == ["1", "x"]
    assert frame["c"].tolist() == [1000.0, -0.5]


def test_a_number_is_the_float_nearest_to_its_text(write):
    rng = np.random.default_rng(0)
    values = rng.normal(size=500) * 10.0 ** rng.integers(-12, 12, 500)
    frame = read_frame(write("a,b\n" + "".join(f"{value!r},{value:.9g}\n" for value in values.tolist())))
    assert frame["a"].tolist() == values.tolist()
    assert frame["b"].tolist() == [float(f"{value:.9g}") for value in values]


def test_codes_with_leading_zeros_stay_text(write):
    frame = read_frame(write("code,zero,share\n007,0,0.5\n012,1,0.25\n"))
    assert frame["code"].tolist() == ["007", "012"]
    assert frame["zero"].tolist() == [0, 1]
    assert frame["share"].tolist() == [0.5, 0.25]


def test_whole_numbers_too_long_for_a_float_stay_text_and_apart(write):
    frame = read_frame(write("id,n\n12345678901234567,123456789012345\n12345678901234568,1\n"))
    assert frame["id"].tolist() == ["12345678901234567", "12345678901234568"]
    assert frame["n"].tolist() == [123456789012345, 1]


def test_usual_spellings_of_missing_are_missing_and_none_is_a_level(write):
    frame = read_frame(write("a,b\nNA,None\n1,x\nnull,None\n,x\nnan,x\n3,x\n"))
    np.testing.assert_array_equal(frame["a"], [np.nan, 1, np.nan, np.nan, np.nan, 3])
    assert frame["b"].tolist() == ["None", "x", "None", "x", "x", "x"]


def test_what_pandas_takes_as_missing_is_missing_here_too_in_either_case(write):
    from pandas._libs.parsers import STR_NA_VALUES

    texts = sorted({*STR_NA_VALUES, "na", "n/a", "null", "."} - {"None"})
    frame = read_frame(write("a,b\n" + "".join(f"{text},x\n" for text in [*texts, "5"])))
    assert frame["a"].isna().tolist() == [True] * len(texts) + [False]
    assert frame["a"].iloc[-1] == 5.0


def test_own_spellings_of_missing_are_added(write):
    path = write("a\n1\n?\n-99\n")
    np.testing.assert_array_equal(read_frame(path, missing=["?", "-99"])["a"], [1, np.nan, np.nan])


def test_a_text_that_is_missing_in_one_column_leaves_it_a_column_of_numbers(write):
    path = write("cd4,stage\n<50,<50\n120,II\n999.0,II\n")
    frame = read_frame(path, missing=["cd4=<50", "cd4=999"])
    np.testing.assert_array_equal(frame["cd4"], [np.nan, 120, np.nan])
    assert frame["stage"].tolist() == ["<50", "II", "II"]


def test_a_missing_text_and_a_name_may_hold_the_sign_of_equality(write):
    path = write("gfr,a=b,c\n70,1,x\n>=90,2,>=90\n80,?,y\n")
    frame = read_frame(path, missing=["gfr = >=90", "a=b=?"])
    np.testing.assert_array_equal(frame["gfr"], [70, np.nan, 80])
    np.testing.assert_array_equal(frame["a=b"], [1, 2, np.nan])
    assert frame["c"].tolist() == ["x", ">=90", "y"]


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_few_texts_among_numbers_are_asked_about_with_their_row(write, decimal):
    lines = [f"{k};{k % 2};{k / 7:.17g}".replace(".", decimal) for k in range(1, 101)]
    path = write("\n".join(["days;died;wmi", *lines, "101;1;unknown", "102;0;>89", "103;1;"]))
    asked = (
        r"'wmi' holds 'unknown' in 1 row, '>89' in 1 row \(first: row 101\), which are no numbers: .*missing="
    )
    read = {"time": "days", "event": "died", "file_format": FileFormat(";", decimal)}
    for reading in (
        lambda: prepare_table(path, WantedColumns(), read["file_format"], "t"),
        lambda: read_survival_table(path, **read),
        lambda: TableEncoder().fit(read_frame(path, separator=";", decimal=decimal)[["wmi"]]),
    ):
        with pytest.raises(ArgumentError, match=asked) as error:
            reading()
        assert error.value.argument in ("missing", "drop")
    absent = replace(read["file_format"], missing=("wmi=*",))
    wmi = read_survival_table(path, **{**read, "file_format": absent}).X["wmi"]
    np.testing.assert_allclose(wmi, [*np.arange(1, 101) / 7, np.nan, np.nan, np.nan])
    as_category = read_survival_table(path, **read, categorical=["wmi"])
    assert as_category.X["wmi"].nunique() == 102


@pytest.mark.parametrize("name", ["lab", "days"])
@pytest.mark.parametrize(
    ("typed", "remedy", "correct"),
    [
        ("1,2E3", r"'1,2E3' in 1 row \(first: row 7\), .*: if the comma .*, write points", "1.2E3"),
        (
            "12 mg/l",
            r"\(first: row 7\), .*: write numbers without units there, such as 12 for '12 mg/l'",
            "12",
        ),
        ("12kg", r"\(first: row 7\), .*: write numbers without units there, such as 12 for '12kg'", "12"),
    ],
)
def test_a_number_in_another_form_is_named_with_its_row_and_a_remedy_that_works(
    write, name, typed, remedy, correct
):
    lines = [f'{k / 4},{k % 2},"{typed if k == 7 else k / 8}"' for k in range(1, 101)]
    text = "\n".join([f"{'days' if name == 'lab' else 'lab'},died,{name}", *lines])
    with pytest.raises(ArgumentError, match=f"column '{name}' .*{remedy}"):
        read_survival_table(write(text), time="days", event="died")
    table = read_survival_table(write(text.replace(typed, correct)), time="days", event="died")
    assert table.frame[name].iloc[6] == float(correct)


def test_commas_in_one_column_of_a_table_with_points_are_asked_about_by_check_too(write):
    lines = [f'{k}.5,{k % 2},"{k % 90},5",{50 + k % 7}.25' for k in range(1, 101)]
    path = write("\n".join(["days,died,lab,age", *lines]))
    for reading in (
        lambda: prepare_table(path, WantedColumns(), None, "t"),
        lambda: TableEncoder().fit(read_frame(path)),
    ):
        with pytest.raises(ArgumentError, match="column 'lab' holds '1,5' in 2 rows"):
            reading()


def test_a_text_among_times_is_asked_about_and_not_left_out(write):
    lines = [f"{k}{'+' if k == 7 else ''},{k % 2},{k % 13}" for k in range(1, 101)]
    path = write("\n".join(["months,died,age", *lines]))
    for named in ({}, {"time": "months", "event": "died"}):
        with pytest.raises(
            ValueError,
            match=r"column 'months' holds '7\+' in 1 row \(first: row 7\), .*missing=\['months=\*'\]",
        ):
            prepare_table(path, WantedColumns(**named), None, "t")
    found = prepare_table(path, WantedColumns(), FileFormat(missing=("months=*",)), "t")
    assert found.n_unusable == 1


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        ([*map(str, range(90)), *["low"] * 10], True),
        ([*map(str, range(200)), *"abcdefg"], True),
        ([f"{k:04}" for k in range(1, 100)] + ["unknown"], True),
        (pd.Categorical([*map(str, range(99)), "unknown"]), True),
        (pd.Categorical([*map(str, range(99)), "unknown"] * 2), False),
        (["1", "2", "unknown"] * 33, False),
        (["1", "2", "3", "x"] * 33, False),
        (["1", "2", "3", "unknown"] * 33, True),
    ],
    ids=[
        *(
            "many rows",
            "many texts",
            "leading zeros",
            "names as categories",
            "categories",
            "two codes",
            "codes",
        ),
        "grades",
    ],
)
def test_texts_among_numbers_that_are_no_codes_are_asked_about(values, asked):
    frame = pd.DataFrame({"a": values})
    if asked:
        with pytest.raises(ArgumentError, match="column 'a' holds"):
            refuse_texts(frame)
    else:
        refuse_texts(frame)


@pytest.mark.parametrize(
    "row", [["years", "months", "", "mg/l"], ["age of the patient", "time", "0/1", "see A"]]
)
def test_a_second_header_is_named(write, row):
    lines = [f"{40 + k % 30};{k + 0.5};{k % 2};{k % 7}" for k in range(30)]
    names = "age;months;died;crp"
    with pytest.raises(
        ValueError, match=f"row below the names .* holds '{row[0]}' in 'age', '{row[1]}' in 'months'"
    ):
        read_frame(write("\n".join([names, ";".join(row), *lines])))
    # A patient with a number, and texts in columns of texts, are no header.
    for patient in (["years", "months", "1", ""], ["50", "months", "0", "unknown"]):
        assert len(read_frame(write("\n".join([names, ";".join(patient), *lines])), separator=";")) == 31
    assert len(read_frame(write("\n".join([names, *["a;b;c;d"] * 20])), separator=";")) == 20


def test_a_mistyped_column_of_a_missing_text_is_named(write):
    path = write("age,note\n999,a=1\n50,b\n")
    assert read_frame(path, missing=["a=1"])["note"].isna().tolist() == [True, False]


def test_spaces_around_a_missing_value_and_its_decimals_do_not_matter(write):
    frame = read_frame(write('a,b,c\nNA ,-9 , "-9 "\n 1,-9.0,2\n\t,3,-90\n'), missing=["-9"])
    np.testing.assert_array_equal(frame, [[np.nan, np.nan, np.nan], [1, np.nan, 2], [np.nan, 3, -90]])


def test_a_missing_number_is_written_as_in_its_file_or_with_a_point(write):
    path = write("a;b\n1,5;1\n99,9;2\n")
    for text in ("99,9", "a=99,9", "99.9"):
        assert read_frame(path, separator=";", decimal=",", missing=[text])["a"].isna().tolist() == [
            False,
            True,
        ]


def test_a_missing_number_leaves_a_column_of_numbers(write):
    assert read_frame(write("a,b\n1,\n,2\n")).isna().to_numpy().tolist() == [[False, True], [True, False]]


def test_spaces_byte_order_marks_and_quotes_are_not_part_of_the_data(write):
    frame = read_frame(write('\ufeffage , sex\n 61 , f \n50,"m, or so"\n'))
    assert list(frame.columns) == ["age", "sex"]
    assert frame["sex"].tolist() == ["f", "m, or so"]
    assert frame["age"].tolist() == [61, 50]


def test_a_column_without_a_name_is_called_by_its_place(write):
    assert list(read_frame(write(",age\n0,50\n1,60\n")).columns) == ["column 1", "age"]


def test_other_separators_and_decimal_commas_are_read_when_named(write):
    path = write("a;b\n1,5;x\n2;y\n")
    assert read_frame(path, separator=";", decimal=",")["a"].tolist() == [1.5, 2.0]


def test_a_table_that_r_wrote_with_spaces_is_read(write):
    path = write('"t" "sex"\n1.5 "f"\n2 "a b"\n')
    with pytest.warns(TableNote, match="was read with separator=' '"):
        assert read_frame(path).to_dict("list") == {"t": [1.5, 2.0], "sex": ["f", "a b"]}
    assert read_frame(write("my notes\nand tomorrow too\nof today\n")).columns.tolist() == ["my notes"]


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_separator_is_recognised_with_a_note(write, mark):
    path = write(f"a{mark}b\n1{mark}2\n")
    with pytest.warns(
        TableNote, match=f"was read with separator={mark!r}".replace("\\", r"\\").replace("|", r"\|")
    ):
        assert read_frame(path).to_dict("list") == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("text", "marks", "column"),
    [
        ("a;b\n1,5;x\n2,25;y\n", FileFormat(";", ",", "utf-8"), [1.5, 2.25]),
        ("a;b\n1.5;x, z\n2.25;y\n", FileFormat(";", ".", "utf-8"), [1.5, 2.25]),
        ("a\tb\n1.234,5\tx\n2,25\ty\n", FileFormat("\t", ",", "utf-8"), [1234.5, 2.25]),
        # More commas than semicolons, but only semicolons divide every line alike.
        ('a;b\n1;"x, y; z"\n2;u, v, w\n', FileFormat(";", ".", "utf-8"), [1, 2]),
        ('a,"b;c;d"\n1,x\n2,y;z\n', FileFormat(",", ".", "utf-8"), [1, 2]),
        ("a;Größe\n1,5;x\n2;y\n".encode("cp1252"), FileFormat(";", ",", "cp1252"), [1.5, 2]),
        ("a;b\n1,5;ä\n2;y\n".encode("utf-16"), FileFormat(";", ",", "utf-16"), [1.5, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore::drosurv.tables.reading.TableNote")
def test_separator_decimal_mark_and_encoding_are_recognised(write, text, marks, column):
    path = write(text)
    assert FileFormat().recognised(path) == marks
    assert read_frame(path)["a"].tolist() == column
    packed = write(gzip.compress(path.read_bytes()), "data.csv.gz")
    pd.testing.assert_frame_equal(read_frame(packed), read_frame(path))


def test_marks_that_are_given_are_not_recognised(write):
    path = write("a;b\n1,5;x\n2,5;y\n")
    assert FileFormat(separator=";", decimal=".").recognised(path).decimal == "."
    with pytest.warns(TableNote, match="separator=';'"):
        assert FileFormat(decimal=",").recognised(path).separator == ";"


FRAME = pd.DataFrame({"age": [61.5, 50.0, 44.0], "sex": ["f", "m", "f"], "n": [1.0, np.nan, 3.0]})


@pytest.mark.parametrize("suffix", [".xlsx", ".dta", ".sav"])
def test_other_formats_hold_the_same_table(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    if suffix == ".xlsx":
        FRAME.to_excel(path, index=False)
    elif suffix == ".dta":
        FRAME.to_stata(path, write_index=False)
    else:
        pyreadstat.write_sav(FRAME, path)
    found = read_frame(path)
    assert found["age"].tolist() == [61.5, 50, 44]
    assert found["sex"].astype(str).tolist() == ["f", "m", "f"]
    assert found["n"].isna().tolist() == [False, True, False]


def test_texts_of_other_formats_that_mean_missing_are_missing(tmp_path):
    pd.DataFrame({"a": ["1.5", "n/k", "2"], "b": [1.0, 999.0, 999.0], "c": ["x", "n/k", "y"]}).to_stata(
        tmp_path / "t.dta", write_index=False
    )
    frame = read_frame(tmp_path / "t.dta", missing=["a=n/k", "b=999"])
    np.testing.assert_array_equal(frame["a"], [1.5, np.nan, 2.0])
    np.testing.assert_array_equal(frame["b"], [1.0, np.nan, np.nan])
    assert frame["c"].tolist() == ["x", "n/k", "y"]


def test_empty_texts_of_other_formats_are_missing(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", ""]}).to_stata(tmp_path / "t.dta", write_index=False)
    assert read_frame(tmp_path / "t.dta")["b"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("suffix", "package"), [(".xlsx", "openpyxl"), (".sav", "pyreadstat"), (".parquet", "pyarrow")]
)
def test_a_format_whose_package_is_not_installed_names_the_extra(tmp_path, monkeypatch, suffix, package):
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        path.write_bytes(b"PAR1")
    else:
        FRAME.to_excel(tmp_path / "t.xlsx")
        (tmp_path / "t.xlsx").rename(path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=rf'needs the package {package}.*pip install "drosurv\[formats\]"'):
        read_frame(path)


@pytest.mark.parametrize("suffix", [".dta", ".sas7bdat", ".xpt", ".xlsx"])
def test_a_damaged_file_of_another_format_is_one_sentence(write, suffix):
    with pytest.raises(ValueError, match=f"cannot be read as a {suffix} file"):
        read_frame(write(b"nothing of the kind", f"t{suffix}"))


def test_parquet_is_known_by_its_bytes_and_keeps_its_types(tmp_path):
    frame = pd.DataFrame({"n": [1, 2], "t": ["a", None], "b": [True, False]})
    frame["i"] = pd.array([1, None], dtype="Int64")
    path = tmp_path / "table-without-suffix"
    frame.to_parquet(path)
    found = read_frame(path)
    assert found["n"].tolist() == [1, 2]
    assert found["t"].isna().tolist() == [False, True]
    assert found["b"].tolist() == [True, False]
    assert found["i"].isna().tolist() == [False, True]


def test_a_named_index_of_a_parquet_file_is_a_column(tmp_path):
    pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="id")).to_parquet(tmp_path / "t")
    assert read_frame(tmp_path / "t")["id"].tolist() == [7, 8]


def test_csv_and_parquet_of_one_table_read_the_same(tmp_path):
    frame = pd.DataFrame({"age": [61.5, None, 50.0], "sex": ["f", "m", None], "n": [1.0, 2.0, 3.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    ours, theirs = (read_frame(tmp_path / name).astype(object) for name in ("t.csv", "t.parquet"))
    pd.testing.assert_frame_equal(ours.where(ours.notna(), None), theirs.where(theirs.notna(), None))


TWO, COMMA = "age,b\n1,2\n", {"separator": ";", "decimal": ","}
# What a file holds, how it is read, and what is said.
REFUSED = [
    ("", {}, "is empty"),
    ("\n", {}, "is empty"),
    ("a,b\n", {}, "has no rows"),
    ("a,a\n1,2\n", {}, "two columns named 'a'"),
    ("a,b\n1,2\n1,2,3\n", {}, "not a regular table: line 3 has 3 fields, the header 2"),
    ("a,b\n1,2,3\n1,2,3\n", {}, "not a regular table: line 2 has 3 fields, the header 2"),
    ("a,b,c\n1,2,3\n4\n", {}, "line 3 has 1 fields, the header 3"),
    ("sep=;\ntime;died\n5;1\n7\n", {}, "line 4 has 1 fields, the header 2"),
    ('a,b\n1,"2\n', {}, "not a regular table: a quote is never closed"),
    (b"a,b\n1,\x81\xff\n", {}, "not text in CP1252"),
    (b"PK\x03\x04rest", {}, "is a zip archive"),
    ("<HTML><table><tr><td>age</td></tr></table></HTML>", {}, "is an HTML or XML page: save its table"),
    # One byte of another encoding, as of a line that was pasted.
    (b"b\n" + "München\n".encode() * 3 + b"K\xf6ln\n", {}, r"not text in UTF-8 \(byte 30\): .*cp1252"),
    (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], {}, "gzip archive but cannot be read"),
    (b"PAR1 and nothing of the kind", {}, "Parquet file but cannot be read"),
    ("a;b\n1;2\n", {"separator": ","}, "pass separator=';'"),
    ("a\tb\n1\t2\n", {"separator": ","}, r"pass separator='\\t'"),
    ("a|b\n1|2\n", {"separator": ","}, r"pass separator='\|'"),
    *(
        (TWO, {name: mark}, f"{name} must be one character")
        for name in ("separator", "decimal")
        for mark in ("", ";;")
    ),
    (TWO, {"encoding": "utf-88"}, "encoding must be one that Python knows, such as cp1252, got 'utf-88'"),
    (
        "name,b\nMüller,1\n".encode("cp1252"),
        {"encoding": "utf-8"},
        "is not text in UTF-8 .*pass encoding='cp1252'",
    ),
    (
        "name,b\nMüller,1\n".encode("utf-16"),
        {"encoding": "utf-8"},
        "is not text in UTF-8 .*pass encoding='utf-16'",
    ),
    # The place of the byte is counted from the beginning.
    (b"a\n" + b"1\n" * 15_000 + b"\xff\n", {"encoding": "utf-8"}, r"not text in UTF-8 \(byte 30,002\)"),
    (TWO, {"sheet": "Data"}, "sheet must be given for an Excel workbook only"),
    (TWO, {"missing": ["agee=1"]}, r"missing column 'agee' is not in the table. Did you mean 'age'\?"),
    (
        "age,sex\n61,f\n50,m\n",
        {"missing": ["sex=*"]},
        "column 'sex' holds no number, so that all of it would be",
    ),
    *(
        (
            f"a;b\n1,5;x\n{number};x\n",
            COMMA,
            rf"column 'a' holds '{number}', with a point .* although decimal=','",
        )
        for number in ("3.14", "0.987", "12.34,5", "1234.567")
    ),
]


@pytest.mark.parametrize(("content", "options", "message"), REFUSED)
@pytest.mark.filterwarnings("ignore::drosurv.tables.reading.TableNote")
def test_a_file_that_cannot_be_read_so_is_refused_with_the_reason(write, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_frame(write(content), **options)


def test_a_table_without_names_of_columns_is_noted(write):
    said = "most columns have numbers as names: if the first row is a patient, write names above"
    with pytest.warns(TableNote, match=said):
        read_frame(write("P1,61,f,4.3,1\nP2,50,m,7.1,0\n"))
    # Warnings are errors.
    assert read_frame(write("id,y2019,2020\nP1,1,2\n")).shape == (1, 3)
    assert read_frame(write("id,0.5,1,10\nP1,.9,.8,.3\n")).shape == (1, 4)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv is not a file"):
        read_frame(tmp_path / "nothing.csv")
    with pytest.raises(IsADirectoryError, match="is a folder: name the CSV or Parquet file"):
        read_frame(tmp_path)


def test_lines_of_separators_alone_are_no_patients_but_missing_values_are(write):
    frame = read_frame(write('a;b\n1;"x\n;"\n;\n\nNA;NA\n ; \n2;y\n;\n'), separator=";")
    np.testing.assert_array_equal(frame["a"], [1, np.nan, 2])
    assert frame["b"].fillna("-").tolist() == ["x\n;", "-", "y"]
    assert frame.index.tolist() == [0, 1, 2]


def test_a_line_of_spaces_is_no_patient(write):
    assert read_frame(write("a,b\n1,2\n   \n3,4\n \t\n"))["b"].tolist() == [2, 4]
    assert read_frame(write("a\n1\n   \n2\n"))["a"].tolist() == [1, 2]


def test_whole_numbers_come_back_whole(write, tmp_path):
    text = "id,age,dose,note\n10165,31,0.5,x\n10229,,1.0,y\n"
    FileFormat().write(read_frame(write(text)), tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_text() == text
    table = pd.DataFrame({"far": [1e300, 1.0], "endless": [np.inf, 1.0]})
    assert FileFormat(separator=";").text(table) == "far;endless\n1e+300;inf\n1.0;1.0\n"


def test_blank_lines_and_line_breaks_in_quotes_are_no_fault(write):
    frame = read_frame(write('a,b\n\n1,"x\ny"\n\n2,z\n'))
    assert frame["b"].tolist() == ["x\ny", "z"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["1.213,5", "987"], [1213.5, 987.0]),
        (["1.213", "987"], [1213.0, 987.0]),
        (["-1.234.567,25", "0,5"], [-1234567.25, 0.5]),
        (["1,5", "2,5e3"], [1.5, 2500.0]),
    ],
)
def test_with_a_decimal_comma_points_separate_thousands(write, numbers, expected):
    path = write("a;b\n" + "".join(f"{number};x\n" for number in numbers))
    assert read_frame(path, separator=";", decimal=",")["a"].tolist() == expected


def test_points_in_text_are_no_numbers(write):
    frame = read_frame(write("a;b\nv1.2;1,5\nv1.3;2,5\n"), separator=";", decimal=",")
    assert frame["a"].tolist() == ["v1.2", "v1.3"]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-8"])
def test_other_encodings_are_read_when_named(write, encoding):
    path = write("name,b\nMüller,1\n".encode(encoding))
    assert read_frame(path, encoding=encoding)["name"].tolist() == ["Müller"]
