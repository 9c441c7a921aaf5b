"""Finished units on disk: written at once and whole, or not at all."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from drosurv.errors import InputError, warn_caller
from drosurv.files import write_file
from drosurv.presentation import plain


class Task(ABC):
    """One method on one dataset, one of several times; hashable and picklable."""

    @property
    @abstractmethod
    def address(self) -> tuple[str, str, str, int]:
        """Dataset, method, what is counted, and its number, such as ``("flc", "cox", "repeat", 3)``."""

    @abstractmethod
    def determinants(self) -> dict[str, Any]:
        """Everything that the result depends on, as JSON holds it."""

    @property
    def place(self) -> str:
        """Where its result is filed: folders and a stem, such as ``"flc/cox/repeat-03"``."""
        return "{}/{}/{}-{:02d}".format(*self.address)

    @property
    def kind(self) -> tuple[str, ...]:
        """What tasks share that take about equally long, and may be trained together."""
        return self.address[:2]

    def __str__(self) -> str:
        return "{}/{}/{} {}".format(*self.address)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the determinants, 64 hexadecimal digits, the same in every process and machine."""
        text = json.dumps(self.determinants(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


TaskT = TypeVar("TaskT", bound=Task)


class Store:
    """A folder of results, one file per finished unit.

    A file is written under another name and then renamed, so a reader sees a whole file or none, and several
    processes may share the folder: if two finish the same unit, the later file replaces an equal one. The file's name
    holds the unit's key, so a changed setting looks for another file.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, unit: Task) -> Path:
        """Where the unit's result is, or will be."""
        return self.folder / f"{unit.place}-{unit.key[:16]}.json"

    def put(self, unit: Task, result: Mapping[str, Any]) -> None:
        """Store the result of a finished unit; numbers that are not finite come back as None."""
        stored = plain(result, digits=None)
        document = {
            "key": unit.key,
            "checksum": _checksum(stored),
            "determinants": unit.determinants(),
            "result": stored,
        }
        path = self.path(unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(document, allow_nan=False))

    def get(self, unit: Task) -> dict[str, Any] | None:
        """The result of a unit, or None if it is not there; a broken file is not there, with a warning."""
        path = self.path(unit)
        try:
            return _result(path.read_text(encoding="utf-8"), unit)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            warn_caller(f"the stored result {path} is ignored and will be computed again: {error}.")
            return None

    def finished(self, units: Iterable[TaskT]) -> Iterator[tuple[TaskT, dict[str, Any]]]:
        """The units that are stored, with their results."""
        for unit in units:
            result = self.get(unit)
            if result is not None:
                yield unit, result


def _result(text: str, unit: Task) -> dict[str, Any]:
    try:
        document = json.loads(text)
        key, checksum, result = document["key"], document["checksum"], document["result"]
    except (ValueError, KeyError, TypeError):
        raise InputError("it is truncated or not a result") from None
    if key != unit.key:
        raise InputError("it belongs to other settings")
    if checksum != _checksum(result):
        raise InputError("its contents were altered")
    found: dict[str, Any] = result
    return found


def _checksum(result: Any) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()
