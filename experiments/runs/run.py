"""A run: units worked through into a folder, with a record of what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Generic

from experiments.runs.schedule import Evaluate, Outcome, Progress, Train, work_through
from experiments.runs.store import Store, TaskT


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


@dataclass(frozen=True, eq=False)
class Run(Generic[TaskT]):
    """What became of the units, those finished now or before with their results, and all runs into the folder."""

    outcome: Outcome
    finished: list[tuple[TaskT, dict[str, Any]]]
    wall_seconds: float
    records: list[RunRecord]


def run_units(
    output: str | Path,
    units: Sequence[TaskT],
    evaluate: Evaluate,
    *,
    command: str,
    jobs: int,
    train: Train | None = None,
    device: str = "cpu",
    seconds: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Run[TaskT]:
    """Work through the units, keep them under ``output/units``, and add the run to the folder's log.

    Arguments are as in ``work_through`` and ``RunRecord``.
    """
    started, start = datetime.now(UTC).isoformat(timespec="seconds"), perf_counter()
    store, log = Store(Path(output) / "units"), RunLog(output)
    outcome = work_through(units, store, evaluate, train=train, n_jobs=jobs, seconds=seconds, report=report)
    counts = (outcome.computed, outcome.reused, len(outcome.failures))
    seconds_taken = perf_counter() - start
    log.add(RunRecord(started, seconds_taken, *counts, jobs, device, command))
    return Run(outcome, list(store.finished(units)), seconds_taken, log.read())


def command_line(command: str, **options: Any) -> str:
    """What to type to get the same again; an option that is None was not given, and of a path only the name counts."""
    words = [f"python -m experiments.{command}"]
    for name, value in options.items():
        if isinstance(value, Path):
            value = value.name
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = ",".join(value)
        if value is not None:
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)
