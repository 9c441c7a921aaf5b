"""Working through units: on all cores, each stored when finished, with an estimate of the time left."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from drosurv.runs.store import Store
from drosurv.runs.task import Task

Evaluate = Callable[..., Mapping[str, Any]]
Train = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Failure:
    """A unit that could not be evaluated, and the error with its traceback."""

    unit: Task
    error: str
    traceback: str


@dataclass(frozen=True)
class Progress:
    """Where the work stands.

    Parameters
    ----------
    done, total : int
        Units finished or failed, and all units asked for; those found in the store count as finished.
    unit : Task, optional
        The one that has just ended; None at the start.
    seconds_left : float, optional
        Estimate from units of the same kind where one was timed; None before the first.
    """

    done: int
    total: int
    unit: Task | None
    seconds_left: float | None


@dataclass(frozen=True)
class Outcome:
    """What became of the units: how many were reused and computed, which failed, and how many had to wait."""

    reused: int
    computed: int
    failures: tuple[Failure, ...]
    waiting: int = 0


def work_through(
    units: Sequence[Task],
    store: Store,
    evaluate: Evaluate,
    *,
    train: Train | None = None,
    n_jobs: int = 1,
    seconds: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Evaluate every unit that is not stored yet, and store each as soon as it is finished.

    Killing it at any moment loses at most the units in hand; calling it again continues. A unit that fails
    does not stop the others.

    Parameters
    ----------
    units : sequence of Task
        What is wanted.
    store : Store
        Where finished units are, and where new ones go.
    evaluate : callable
        Takes a unit, returns the result that the store accepts. With more than one job it
        must be importable by name (a module's function, or a ``functools.partial`` of one).
    train : callable, optional
        Trains units of one kind, all at once and in this process, as an accelerator wants
        it; `evaluate` is then called with a unit and what its training gave, in processes meanwhile.
    n_jobs : int
        Processes; 1 works in this one.
    seconds : float, optional
        Start no unit later than this; those left wait for the next call. Not together with `train`.
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
            clock.learn(unit, _cost(stored))
    reused = len(units) - len(waiting)
    left = dict.fromkeys(waiting)
    failures = []

    def tell(unit: Task | None) -> None:
        if report is not None:
            report(Progress(len(units) - len(left), len(units), unit, clock.seconds_left(list(left))))

    tell(None)
    if train is not None:
        ends = _bundled(waiting, store, train, evaluate, n_jobs)
    elif n_jobs == 1 or len(waiting) < 2:
        ends = _serial(_in_time(waiting, seconds), store, evaluate)
    else:
        ends = _parallel(_in_time(waiting, seconds), store, evaluate, min(n_jobs, len(waiting)))
    for unit, cost, failure in ends:
        del left[unit]
        clock.learn(unit, cost)
        if failure is not None:
            failures.append(failure)
        tell(unit)
    return Outcome(reused, len(waiting) - len(failures) - len(left), tuple(failures), len(left))


# Trained units that may wait to be scored, per process.
_AHEAD = 4
# Seconds of training in the process that trains for all, and of the rest.
_Cost = tuple[float, float]
_End = tuple[Task, _Cost | None, Failure | None]


def _in_time(units: Sequence[Task], seconds: float | None) -> Iterator[Task]:
    """The units one by one, until the time is up."""
    end = float("inf") if seconds is None else time.monotonic() + seconds
    for unit in units:
        if time.monotonic() >= end:
            return
        yield unit


def _serial(units: Iterator[Task], store: Store, evaluate: Evaluate) -> Iterator[_End]:
    for unit in units:
        yield _finish(unit, store, evaluate)


def _parallel(units: Iterator[Task], store: Store, evaluate: Evaluate, n_jobs: int) -> Iterator[_End]:
    with _workers(n_jobs) as pool:
        # No more than the processes can take: what has not been handed out can still be left for the next run.
        pending = {pool.submit(_finish, unit, store, evaluate) for unit in islice(units, n_jobs)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            pending |= {pool.submit(_finish, unit, store, evaluate) for unit in islice(units, len(done))}
            yield from (future.result() for future in done)


def _bundled(
    units: Sequence[Task], store: Store, train: Train, evaluate: Evaluate, n_jobs: int
) -> Iterator[_End]:
    bundles: dict[tuple[str, ...], list[Task]] = {}
    for unit in units:
        bundles.setdefault(unit.kind, []).append(unit)
    with _workers(n_jobs) as pool:
        pending: set[Future[_End]] = set()
        for bundle in bundles.values():
            start = time.perf_counter()
            try:
                trained = train(bundle)
            except Exception as error:
                yield from ((unit, None, _failure(unit, error)) for unit in bundle)
                continue
            share = (time.perf_counter() - start) / len(bundle)
            for unit, given in zip(bundle, trained, strict=True):
                pending.add(pool.submit(_finish, unit, store, partial(evaluate, trained=given), share))
            # Waiting scores are held in memory, so training does not run far ahead.
            while len(pending) > _AHEAD * n_jobs:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in as_completed(pending):
            yield future.result()


class _Here(Executor):
    """Does the work in this process, when it is asked for."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*arguments, **options))
        return future


@contextmanager
def _workers(n: int) -> Iterator[Executor]:
    if n == 1:
        yield _Here()
        return
    # Forking a process that holds torch's threads or a GPU hangs; fresh interpreters do not.
    pool = ProcessPoolExecutor(n, get_context("spawn"), initializer=_prepare_worker)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process was killed, most often for lack of memory. What was finished is stored: run "
            "again to continue, with fewer jobs."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare_worker() -> None:
    """Keep a worker to one thread, and from living on when the process that it works for is killed."""
    # Parallelism is across units: threads inside one would only compete.
    os.environ["OMP_NUM_THREADS"] = "1"
    # Ctrl-C reaches every process of a terminal; the one that started the workers decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: BaseProcess) -> None:
    """Wait for the end of the parent. Whole workers end with it: their queue is never closed by a kill."""
    parent.join()
    os._exit(1)


def _finish(unit: Task, store: Store, evaluate: Evaluate, training: float = 0.0) -> _End:
    """Evaluate and store a unit on whose training some seconds were already spent."""
    start = time.perf_counter()
    try:
        result = dict(evaluate(unit))
        seconds = time.perf_counter() - start + training
        result |= {"seconds": seconds, "training_seconds": training}
        store.put(unit, result)
    except Exception as error:
        return unit, None, _failure(unit, error)
    return unit, _cost(result), None


def _cost(result: Mapping[str, Any]) -> _Cost | None:
    seconds, training = result.get("seconds"), result.get("training_seconds") or 0.0
    return None if seconds is None else (training, seconds - training)


def _failure(unit: Task, error: Exception) -> Failure:
    return Failure(unit, f"{type(error).__name__}: {error}", traceback.format_exc())


class _Clock:
    """Mean cost by kind of unit, and over all, as far as it is known.

    One process trains for all, one unit after the other, while the rest of the work is shared out among the
    workers: whichever takes longer is the time left.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.costs: dict[tuple[str, ...], list[_Cost]] = {}

    def learn(self, unit: Task, cost: _Cost | None) -> None:
        if cost is not None:
            self.costs.setdefault(unit.kind, []).append(cost)

    def seconds_left(self, units: Sequence[Task]) -> float | None:
        if not self.costs:
            return None
        mean = {kind: _mean(costs) for kind, costs in self.costs.items()}
        overall = _mean(list(mean.values()))
        left = [mean.get(unit.kind, overall) for unit in units]
        return max(sum(training for training, _ in left), sum(rest for _, rest in left) / self.n_jobs)


def _mean(costs: Sequence[_Cost]) -> _Cost:
    training, rest = (sum(part) / len(costs) for part in zip(*costs, strict=True))
    return training, rest
