"""Working through units: on all cores, each stored when finished, with an estimate of the time left."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from drosurv.paper.store import Store
from drosurv.paper.unit import Unit

Evaluate = Callable[[Unit], Mapping[str, Any]]


@dataclass(frozen=True)
class Failure:
    """A unit that could not be evaluated, and the error with its traceback."""

    unit: Unit
    error: str
    traceback: str


@dataclass(frozen=True)
class Progress:
    """Where the work stands.

    Parameters
    ----------
    done, total : int
        Units finished or failed, and all units asked for; those found in the store count as finished.
    unit : Unit, optional
        The one that has just ended; None at the start.
    seconds_left : float, optional
        Estimate from units of the same dataset and method where one was timed; None before the first.
    """

    done: int
    total: int
    unit: Unit | None
    seconds_left: float | None


@dataclass(frozen=True)
class Outcome:
    """What became of the units: how many were reused and computed, and which failed."""

    reused: int
    computed: int
    failures: tuple[Failure, ...]


def work_through(
    units: Sequence[Unit],
    store: Store,
    evaluate: Evaluate,
    *,
    n_jobs: int = 1,
    report: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Evaluate every unit that is not stored yet, and store each as soon as it is finished.

    Killing it at any moment loses at most the units in hand; calling it again continues. A unit that fails
    does not stop the others.

    Parameters
    ----------
    units : sequence of Unit
        What is wanted.
    store : Store
        Where finished units are, and where new ones go.
    evaluate : callable
        Takes a unit, returns the result that :func:`drosurv.paper.check_result` accepts. With more than one
        job it must be importable by name (a module's function, or a ``functools.partial`` of one).
    n_jobs : int
        Processes; 1 works in this one.
    report : callable, optional
        Called with a :class:`Progress` at the start and after every unit.

    Returns
    -------
    Outcome
    """
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1, got {n_jobs}.")
    units = list(dict.fromkeys(units))
    clock = _Clock(n_jobs)
    waiting = []
    for unit in units:
        stored = store.get(unit)
        if stored is None:
            waiting.append(unit)
        else:
            clock.learn(unit, stored.get("seconds"))
    reused = len(units) - len(waiting)
    left = dict.fromkeys(waiting)
    failures = []

    def tell(unit: Unit | None) -> None:
        if report is not None:
            report(Progress(len(units) - len(left), len(units), unit, clock.seconds_left(list(left))))

    tell(None)
    ended = _serial if n_jobs == 1 or len(waiting) < 2 else _parallel
    for unit, seconds, failure in ended(waiting, store, evaluate, n_jobs):
        del left[unit]
        clock.learn(unit, seconds)
        if failure is not None:
            failures.append(failure)
        tell(unit)
    return Outcome(reused, len(waiting) - len(failures), tuple(failures))


_End = tuple[Unit, float | None, Failure | None]


def _serial(units: Sequence[Unit], store: Store, evaluate: Evaluate, n_jobs: int) -> Iterator[_End]:
    for unit in units:
        yield _finish(unit, store, evaluate)


def _parallel(units: Sequence[Unit], store: Store, evaluate: Evaluate, n_jobs: int) -> Iterator[_End]:
    # Forking a process that holds torch's threads or a GPU hangs; fresh interpreters do not.
    pool = ProcessPoolExecutor(min(n_jobs, len(units)), get_context("spawn"), initializer=_one_thread)
    try:
        futures = [pool.submit(_finish, unit, store, evaluate) for unit in units]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process was killed, most often for lack of memory. What was finished is stored: run "
            "again to continue, with fewer jobs."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    """Parallelism is across units: threads inside one would only compete."""
    os.environ["OMP_NUM_THREADS"] = "1"


def _finish(unit: Unit, store: Store, evaluate: Evaluate) -> _End:
    start = time.perf_counter()
    try:
        result = dict(evaluate(unit))
        seconds = time.perf_counter() - start
        store.put(unit, {**result, "seconds": seconds})
    except Exception as error:
        return unit, None, Failure(unit, f"{type(error).__name__}: {error}", traceback.format_exc())
    return unit, seconds, None


class _Clock:
    """Mean seconds by dataset and method, and over all, as far as they are known."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.seconds: dict[tuple[str, str], list[float]] = {}

    def learn(self, unit: Unit, seconds: float | None) -> None:
        if seconds is not None:
            self.seconds.setdefault((unit.dataset, unit.method.name), []).append(seconds)

    def seconds_left(self, units: Sequence[Unit]) -> float | None:
        if not self.seconds:
            return None
        mean = {kind: sum(times) / len(times) for kind, times in self.seconds.items()}
        overall = sum(mean.values()) / len(mean)
        return sum(mean.get((unit.dataset, unit.method.name), overall) for unit in units) / self.n_jobs
