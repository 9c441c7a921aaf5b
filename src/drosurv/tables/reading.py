"""CSV and Parquet files read into DataFrames, with errors that say what to do."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

# "None" is not among them: it is a level of many medical columns.
MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "<NA>", "null", "NULL")
_KINDS = {b"PK\x03\x04": "an Excel workbook or a zip archive", b"\x1f\x8b": "a gzip archive"}


def read_frame(
    path: str | os.PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    missing: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    A CSV column is read as numbers only if every value in it is one; numbers written with leading zeros are codes
    and stay text. Nothing else is inferred.

    Parameters
    ----------
    path : path
        The file; Parquet is recognised by its first bytes, whatever its name.
    separator, decimal : str
        Of a CSV file.
    missing : sequence of str
        Texts of a CSV file that mean a missing value, besides empty fields, NA, N/A, NaN and null.

    Returns
    -------
    DataFrame
        Columns of floats or of text, or as the Parquet file has them.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: check its name and folder.")
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        return _checked(_parquet(path), path)
    for magic, kind in _KINDS.items():
        if start.startswith(magic):
            raise ValueError(
                f"{path} is {kind}, not a CSV or Parquet file: unpack it, or save its table as CSV."
            )
    for name, mark in (("separator", separator), ("decimal", decimal)):
        if len(mark) != 1:
            raise ValueError(f"{name} must be one character, got {mark!r}.")
    text = _csv(path, separator, missing)
    return _checked(text.apply(_typed, decimal=decimal), path)


def require_columns(frame: pd.DataFrame, columns: Sequence[str], role: str) -> None:
    """Raise if a column is not there, with the nearest name that is."""
    from difflib import get_close_matches

    for column in columns:
        if column not in frame.columns:
            near = get_close_matches(column, list(frame.columns), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            shown = ", ".join(map(str, frame.columns[:30])) + (", ..." if frame.shape[1] > 30 else "")
            raise ValueError(f"{role} column {column!r} is not in the table.{hint} It has: {shown}.")


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} begins like a Parquet file but cannot be read: {error}") from error
    return frame.reset_index() if frame.index.names != [None] else frame


def _csv(path: Path, separator: str, missing: Sequence[str]) -> pd.DataFrame:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = _header(next(csv.reader(file, delimiter=separator), []), path, separator)
        with warnings.catch_warnings():
            # Rows longer than the header: pandas only warns that it drops their end.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=separator,
                dtype=str,
                keep_default_na=False,
                na_values=[*MISSING, *missing],
                encoding="utf-8-sig",
                skipinitialspace=True,
                index_col=False,
                header=0,
                names=header,
            )
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 (byte {error.start}): save it as UTF-8 CSV."
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise ValueError(
            f"{path} is not a regular table: {error}. Every line needs as many fields as the header."
        ) from error


def _header(fields: list[str], path: Path, separator: str) -> list[str]:
    if not any(field.strip() for field in fields):
        raise ValueError(f"{path} is empty: its first line must name the columns.")
    names = [field.strip() or f"column {place}" for place, field in enumerate(fields, start=1)]
    if len(names) == 1:
        other = next((mark for mark in (";", "\t", "|", ",") if mark != separator and mark in names[0]), None)
        if other is not None:
            raise ValueError(
                f"{path} has a single column {names[0][:60]!r}; its fields seem to be separated by {other!r}: pass "
                f"separator={other!r}."
            )
    _refuse_repeated(names, path)
    return names


def _refuse_repeated(names: Sequence[str], path: Path) -> None:
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"{path} has two columns named {repeated!r}: rename one.")


def _typed(column: pd.Series[str], decimal: str) -> pd.Series[float] | pd.Series[str]:
    text = column.str.strip()
    present = text.dropna()
    if present.str.match(r"[+-]?0\d").any():
        return text
    plain = present if decimal == "." else present.str.replace(decimal, ".", regex=False)
    numbers = pd.to_numeric(plain, errors="coerce")
    return text if numbers.isna().any() else numbers.astype(float).reindex(text.index)


def _checked(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    frame.columns = frame.columns.map(str)
    _refuse_repeated(list(frame.columns), path)
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows.")
    return frame
