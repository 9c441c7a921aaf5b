"""A record of every run into one folder: what it cost, and on what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


def command_line(command: str, **options: Any) -> str:
    """What to type to get the same again; an option that is None was not given, and of a path only the name counts."""
    words = [f"drosurv {command}"]
    for name, value in options.items():
        if isinstance(value, Path):
            value = value.name
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = ",".join(value)
        if value is not None:
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)


@dataclass(frozen=True)
class RunRecord:
    """One run, complete or one of several that continued each other: what it did, what it cost, and on what.

    `started` is when, in ISO 8601; `command` is what was asked for.
    """

    started: str
    wall_seconds: float
    computed: int
    reused: int
    failed: int
    jobs: int
    device: str
    peak_memory_mb: float
    device_memory_mb: float | None = None
    command: str = ""


class RunLog:
    """The runs of one output folder, one JSON object per line."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / "runs.jsonl"

    def add(self, record: RunRecord) -> None:
        """Append a run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            # A run killed while it wrote has left half a line, which must not swallow this one.
            file.write("\n" + json.dumps(asdict(record)) + "\n")

    def read(self) -> list[RunRecord]:
        """Every run that ended by itself, the first one first; a line that is no record is passed over."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, TypeError):
                records.append(RunRecord(**json.loads(line)))
        return records
