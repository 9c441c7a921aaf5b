"""CSV and Parquet files read into DataFrames, with errors that say what to do; answers are written in kind."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from drosurv.errors import Argument, ArgumentError
from drosurv.files import whole_file
from drosurv.tables.csv_text import read_csv, refuse_repeated

_KINDS = {b"PK\x03\x04": "an Excel workbook or a zip archive", b"\x1f\x8b": "a gzip archive"}


def read_frame(
    path: str | os.PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    A CSV column is read as numbers only if every value in it is one; numbers written with leading zeros are codes
    and stay text. Nothing else is inferred. Every line must have as many fields as the header.

    Parameters
    ----------
    path : path
        The file; Parquet is recognised by its first bytes, whatever its name.
    separator, decimal, encoding : str
        Of a CSV file. With a decimal comma, points that separate thousands are understood.
    missing : sequence of str
        Texts of a CSV file that mean a missing value, besides empty fields, NA, N/A, NaN and null. Written
        ``column=text``, it means so in that column only, such as ``"age=999"``.

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
    for magic, kind in _KINDS.items():
        if start.startswith(magic):
            raise ValueError(
                f"{path} is {kind}, not a CSV or Parquet file: unpack it, or save its table as CSV."
            )
    if start == b"PAR1":
        frame = _parquet(path)
    else:
        frame = read_csv(path, separator=separator, decimal=decimal, encoding=encoding, missing=missing)
    frame.columns = frame.columns.map(str)
    refuse_repeated(list(frame.columns), path)
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows.")
    return frame


@dataclass(frozen=True)
class FileFormat:
    """Marks of a CSV file; parameters as in :func:`read_frame`."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    def read(self, path: str | os.PathLike[str]) -> pd.DataFrame:
        """The table of a CSV or Parquet file."""
        return read_frame(path, **asdict(self))

    def write(self, frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
        """Write a table as CSV with the same marks, whole or not at all."""
        with whole_file(path) as part:
            frame.to_csv(part, index=False, sep=self.separator, decimal=self.decimal, encoding=self.encoding)

    def text(self, frame: pd.DataFrame) -> str:
        """A table as the text of such a CSV file."""
        return str(frame.to_csv(index=False, sep=self.separator, decimal=self.decimal))


def require_columns(frame: pd.DataFrame, columns: Sequence[str], role: str) -> None:
    """Raise if a column is not there, with the nearest name that is; `role` is the argument that names it."""
    from difflib import get_close_matches

    for column in columns:
        if column not in frame.columns:
            near = get_close_matches(column, list(frame.columns), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            shown = ", ".join(map(str, frame.columns[:30])) + (", ..." if frame.shape[1] > 30 else "")
            raise ArgumentError(
                Argument(role), f" column {column!r} is not in the table.{hint} It has: {shown}."
            )


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} begins like a Parquet file but cannot be read: {error}") from error
    return frame.reset_index(drop=frame.index.names == [None])
