"""A run: units worked through into a folder, with a record of what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import active_children
from pathlib import Path
from threading import Event, Thread
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
    peak_memory_mb: float | None
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
    with peak_memory(device) as memory:
        outcome = work_through(
            units, store, evaluate, train=train, n_jobs=jobs, seconds=seconds, report=report
        )
    counts = (outcome.computed, outcome.reused, len(outcome.failures))
    peaks = (memory.megabytes, memory.device_megabytes)
    seconds_taken = perf_counter() - start
    log.add(RunRecord(started, seconds_taken, *counts, jobs, device, *peaks, command))
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


SAMPLE_SECONDS = 0.5


@dataclass
class PeakMemory:
    """Megabytes of main memory, and of what torch allocates on the accelerator; None where it is not known."""

    megabytes: float | None = None
    device_megabytes: float | None = None


@contextmanager
def peak_memory(device: str = "cpu") -> Iterator[PeakMemory]:
    """The most memory that this process and its workers hold at one moment while the block runs.

    Pages that processes share, such as those of libraries, are counted once: Linux gives each process its share of
    them (its proportional set size). It is asked twice a second.
    """
    peak, over = PeakMemory(), Event()

    def watch() -> None:
        while True:
            peak.megabytes = max(peak.megabytes or 0.0, _held_megabytes()) or None
            if over.wait(SAMPLE_SECONDS):
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        if device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(device)
            yield peak
            peak.device_megabytes = torch.cuda.max_memory_allocated(device) / 2**20
        else:
            yield peak
    finally:
        over.set()
        watcher.join()


def _held_megabytes() -> float:
    """What this process and its workers hold now; 0 where the system does not tell."""
    kilobytes = 0
    for process in ("self", *(child.pid for child in active_children())):
        try:
            with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
                kilobytes += next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0)
        except OSError:
            # No such file system, or a worker that has ended since it was listed.
            continue
    return kilobytes / 1024
