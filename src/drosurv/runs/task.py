"""What can be worked through and stored: anything with a key that changes whenever its result would."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any


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
