import gzip

import numpy as np
import pandas as pd
import pytest

from drosurv.tables import read_frame


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


def test_codes_with_leading_zeros_stay_text(write):
    frame = read_frame(write("code,zero,share\n007,0,0.5\n012,1,0.25\n"))
    assert frame["code"].tolist() == ["007", "012"]
    assert frame["zero"].tolist() == [0, 1]
    assert frame["share"].tolist() == [0.5, 0.25]


def test_usual_spellings_of_missing_are_missing_and_none_is_a_level(write):
    frame = read_frame(write("a,b\nNA,None\n1,x\nnull,None\n,x\nnan,x\n3,x\n"))
    np.testing.assert_array_equal(frame["a"], [np.nan, 1, np.nan, np.nan, np.nan, 3])
    assert frame["b"].tolist() == ["None", "x", "None", "x", "x", "x"]


def test_own_spellings_of_missing_are_added(write):
    path = write("a\n1\n?\n-99\n")
    np.testing.assert_array_equal(read_frame(path, missing=["?", "-99"])["a"], [1, np.nan, np.nan])


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


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_separator_is_suggested_not_guessed(write, mark):
    with pytest.raises(ValueError, match="separator="):
        read_frame(write(f"a{mark}b\n1{mark}2\n"))


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("a,b\n", "has no rows"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("a,b\n1,2\n1,2,3\n", "not a regular table"),
        ("a,b\n1,2,3\n1,2,3\n", "not a regular table"),
        ('a,b\n1,"2\n', "not a regular table"),
        (b"a,b\n1,\xff\n", "not text in UTF-8"),
        (b"PK\x03\x04rest", "Excel workbook"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "gzip archive"),
        (b"PAR1 and nothing of the kind", "Parquet file but cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_the_reason(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_frame(write(text))


@pytest.mark.parametrize("mark", ["", ";;", "\\t"])
@pytest.mark.parametrize("name", ["separator", "decimal"])
def test_a_mark_is_one_character(write, name, mark):
    with pytest.raises(ValueError, match=f"{name} must be one character"):
        read_frame(write("a,b\n1,2\n"), **{name: mark})


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv is not a file"):
        read_frame(tmp_path / "nothing.csv")
    with pytest.raises(IsADirectoryError, match="is a folder: name the CSV or Parquet file"):
        read_frame(tmp_path)
