"""A run: units worked through into a folder, with a record of what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Generic

from drosurv.runs.memory import PeakMemory
from drosurv.runs.run_log import RunLog, RunRecord
from drosurv.runs.schedule import Evaluate, Outcome, Progress, Train, work_through
from drosurv.runs.store import Store, TaskT


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
    check: Callable[[Any, Mapping[str, Any]], None],
    command: str,
    jobs: int,
    train: Train | None = None,
    device: str = "cpu",
    seconds: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Run[TaskT]:
    """Work through the units, keep them under ``output/units``, and add the run to the folder's log.

    `check` raises for a result that is not complete; the others are as in ``work_through`` and ``RunRecord``.
    """
    started, start = datetime.now(UTC).isoformat(timespec="seconds"), perf_counter()
    store, log = Store(Path(output) / "units", check), RunLog(output)
    with PeakMemory(jobs, device) as memory:
        outcome = work_through(
            units, store, evaluate, train=train, n_jobs=jobs, seconds=seconds, report=report
        )
    counts = (outcome.computed, outcome.reused, len(outcome.failures))
    held = (memory.megabytes, memory.device_megabytes)
    seconds_taken = perf_counter() - start
    log.add(RunRecord(started, seconds_taken, *counts, jobs, device, *held, command))
    return Run(outcome, list(store.finished(units)), seconds_taken, log.read())
