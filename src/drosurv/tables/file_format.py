"""How a user's CSV files are written, for reading them and for answering in kind."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

import pandas as pd

from drosurv.files import whole_file
from drosurv.tables.reading import read_frame


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
