"""Recognise rows that a model was trained on, by salted hashes in its file."""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.patients.target import BoolArray, IntArray
from drosurv.tables.ids import hash_rows
from drosurv.tables.values import labels

# A table of which a larger share of rows was seen in training, beyond chance, does not hold new patients.
MOST_SEEN = 0.05
_SALT_BYTES = 16
_HASH_BITS = 32


class RowsSeen(NamedTuple):
    """How many `rows` of a table a model was trained on, or patients where ids name them: `unit` says which.

    `by_chance` estimates the share of new patients who equal a training patient in every column, by the share of
    training rows that equal another one. It is near 0 unless there are few columns with few values.
    """

    rows: int
    seen: int
    by_chance: float = 0.0
    unit: str = "rows"

    @property
    def is_leak(self) -> bool:
        """Whether more than 5 % of the rows or patients were seen, and more than chance explains."""
        rows, chance = self.rows, self.by_chance
        if rows == 0 or chance >= 1:
            return False
        beyond = self.seen - chance * rows
        return beyond > MOST_SEEN * (1 - chance) * rows and beyond > 3 * sqrt(rows * chance * (1 - chance))

    def __str__(self) -> str:
        return f"{self.seen:,} of {self.rows:,} {self.unit}"


@dataclass(frozen=True, eq=False)
class RowHashes:
    """Hashes of the training rows (features, time and event), sorted.

    A hash has 32 bits and is salted, so that files of two models cannot be compared with each other. Values are hashed
    as text, numbers with ten digits, so that a row keeps its hash when a table is written to CSV and read again.
    """

    columns: tuple[str, ...]
    salt: bytes
    hashes: NDArray[np.uint32]

    @classmethod
    def of(cls, X: pd.DataFrame, y: Any) -> RowHashes:
        """Hash the rows of a table."""
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(tuple(map(str, X.columns)), salt, np.sort(_hash(X, y, salt)))

    def seen_in(self, X: pd.DataFrame, y: Any, patients: IntArray | None = None) -> RowsSeen | None:
        """Count the rows of a table that were trained on; None if the table lacks a column.

        With the numbers of the `patients` (n,), count the patients with at least one row that was trained on.
        """
        if not set(self.columns) <= set(X.columns):
            return None
        found = np.isin(_hash(X[list(self.columns)], y, self.salt), self.hashes)
        _, copies = np.unique(self.hashes, return_counts=True)
        by_chance = copies[copies > 1].sum() / max(len(self.hashes), 1)
        if patients is None:
            return RowsSeen(len(found), int(found.sum()), float(by_chance))
        named, patient, rows = np.unique(patients, return_inverse=True, return_counts=True)
        # A patient with more rows has more chances of one that equals a training row.
        by_chance = (1 - (1 - by_chance) ** rows).mean() if len(rows) else 0.0
        return RowsSeen(len(named), len(np.unique(patient[found])), float(by_chance), "patients")

    def to_dict(self) -> dict[str, Any]:
        """Return what a model's file keeps."""
        packed = b64encode(self.hashes.astype("<u4").tobytes()).decode()
        return {"columns": list(self.columns), "salt": self.salt.hex(), "hashes": packed}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> RowHashes:
        """Read what :meth:`to_dict` returned."""
        hashes = np.frombuffer(b64decode(kept["hashes"]), dtype="<u4").astype(np.uint32)
        return cls(tuple(kept["columns"]), bytes.fromhex(kept["salt"]), hashes)


def _hash(X: pd.DataFrame, y: Any, salt: bytes) -> NDArray[np.uint32]:
    """Return one hash per row, (n,): the upper bits of a sum over columns, so that their order does not matter."""
    event, time = (y[name] for name in y.dtype.names)
    columns = {f"x {name}": X[name] for name in X.columns}
    columns |= {"time": pd.Series(time), "event": pd.Series(np.asarray(event, dtype=np.int64))}
    total = np.zeros(len(X), dtype=np.uint64)
    for name, column in columns.items():
        codes, values = pd.factorize(column, use_na_sentinel=True)
        hashed = [_hash_of(name, canonical_text(value), salt) for value in values]
        total += np.array([*hashed, _hash_of(name, "", salt)], dtype=np.uint64)[codes]
    return (total >> np.uint64(_HASH_BITS)).astype(np.uint32)


def _hash_of(name: str, text: str, salt: bytes) -> int:
    return int.from_bytes(blake2b(f"{name}\0{text}".encode(), digest_size=8, key=salt).digest(), "little")


def canonical_text(value: Any) -> str:
    """Return a value as text that CSV files preserve: 1, 1.0 and "1.0" are the same, as are dates and their text."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text.removesuffix(" 00:00:00")
    return f"{number:.10g}" if isfinite(number) else text.lower()


def patients_not_in(frame: pd.DataFrame, others: pd.DataFrame, id: str | None = None) -> BoolArray:
    """Return which rows, (n,), are of patients who are not in another table, by `id` or else by all shared columns."""
    shared = [name for name in frame.columns if name in others.columns]
    if id is not None and id in shared:
        new = ~labels(frame[id]).isin(set(labels(others[id]).dropna()))
    elif shared:
        new = ~hash_rows(frame[shared]).isin(set(hash_rows(others[shared])))
    else:
        return np.ones(len(frame), dtype=np.bool_)
    return new.to_numpy(dtype=np.bool_)
