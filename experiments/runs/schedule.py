"""Working through units: on all cores, each stored when finished, with an estimate of the time left."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import takewhile
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from drosurv.errors import as_whole, require
from experiments.runs.store import Store, Task

if TYPE_CHECKING:
    from drosurv.patients.target import FloatArray

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
    """Where the work stands: units finished or failed, and all; those found in the store count as finished.

    `unit` is the one that has just ended, None at the start; `seconds_left` is estimated from units of the same kind
    where one was timed, None before the first.
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

    Killing it at any moment loses at most the units in hand; calling it again continues. A unit that fails does not
    stop the others. No unit is taken up after so many `seconds`, and `report` is called at the start and after every
    unit.

    `train` is for an accelerator: it trains units of one kind, all at once and in this process, and `evaluate` is then
    called with a unit and what its training gave, in processes meanwhile; not together with `seconds`. With one job
    all is done in this process. Under a ``joblib.parallel_config`` its backend decides: with Dask's, units are
    evaluated by the workers of a cluster, and stored here.
    """
    require(as_whole(n_jobs) >= 1, "n_jobs", "be a whole number, at least 1", n_jobs)
    units = list(dict.fromkeys(units))
    clock = _Clock(n_jobs)
    waiting = []
    for unit in units:
        stored = store.get(unit)
        if stored is None:
            waiting.append(unit)
        else:
            clock.learn(unit, stored)
    reused = len(units) - len(waiting)
    left = dict.fromkeys(waiting)
    failures = []

    def tell(unit: Task | None) -> None:
        if report is not None:
            report(Progress(len(units) - len(left), len(units), unit, clock.seconds_left(left)))

    tell(None)
    finish = delayed(partial(_finish, os.getpid()))
    jobs = min(n_jobs, max(len(waiting), 1))
    if train is None:
        end = time.monotonic() + (float("inf") if seconds is None else seconds)
        in_time = takewhile(lambda _: time.monotonic() < end, waiting)
        # One unit for each process: those not yet handed out can be left for the next run.
        ends = _worked((finish(unit, evaluate) for unit in in_time), jobs, "n_jobs")
    else:
        # What is trained and waits to be scored is held in memory, so training does not run far ahead.
        ends = _worked(_trained(waiting, train, evaluate, finish), jobs, "4 * n_jobs")
    for unit, found in ends:
        del left[unit]
        try:
            if not isinstance(found, Failure):
                store.put(unit, found)
                clock.learn(unit, found)
        except Exception as error:
            # A disk that is full.
            found = _failure(unit, error)
        if isinstance(found, Failure):
            failures.append(found)
        tell(unit)
    return Outcome(reused, len(waiting) - len(failures) - len(left), tuple(failures), len(left))


_End = tuple[Task, dict[str, Any] | Failure]


def _trained(
    units: Sequence[Task], train: Train, evaluate: Evaluate, finish: Callable[..., Any]
) -> Iterator[Any]:
    """Tasks that score units, each kind of which is trained here and at once when its first is asked for."""
    bundles: dict[tuple[str, ...], list[Task]] = {}
    for unit in units:
        bundles.setdefault(unit.kind, []).append(unit)
    for bundle in bundles.values():
        start = time.perf_counter()
        try:
            trained = train(bundle)
        except Exception as error:
            # There is nothing left to do but to tell.
            yield from (delayed(tuple)((unit, _failure(unit, error))) for unit in bundle)
            continue
        share = (time.perf_counter() - start) / len(bundle)
        for unit, given in zip(bundle, trained, strict=True):
            yield finish(unit, partial(evaluate, trained=given), share)


def _worked(tasks: Iterator[Any], n_jobs: int, ahead: str) -> Iterator[_End]:
    """What tasks give, in the order in which they end: in processes, or where joblib's active backend says."""
    pool = Parallel(n_jobs, batch_size=1, pre_dispatch=ahead, return_as="generator_unordered")
    try:
        yield from pool(tasks)
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process was killed, most often for lack of memory. What was finished is stored: run "
            "again to continue, with fewer jobs."
        ) from error


def _finish(home: int, unit: Task, evaluate: Evaluate, training: float = 0.0) -> _End:
    """Evaluate a unit on whose training some seconds were already spent, for the process `home`."""
    _end_with(home)
    start = time.perf_counter()
    try:
        result = dict(evaluate(unit))
    except Exception as error:
        return unit, _failure(unit, error)
    return unit, result | {"seconds": time.perf_counter() - start + training, "training_seconds": training}


@cache
def _end_with(home: int) -> None:
    """Keep a worker of this machine from living on when the process that it works for is killed."""
    # The workers of a cluster work in other threads, and know themselves when to end.
    if os.getpid() == home or os.getppid() != home or current_thread() is not main_thread():
        return
    # Ctrl-C reaches every process of a terminal; the one that started the workers decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_watch, args=(home,), daemon=True).start()


def _watch(home: int) -> None:
    """Wait for another parent: no queue is closed by a kill."""
    while os.getppid() == home:
        time.sleep(0.1)
    os._exit(1)


def _failure(unit: Task, error: Exception) -> Failure:
    return Failure(unit, f"{type(error).__name__}: {error}", traceback.format_exc())


class _Clock:
    """Mean cost by kind of unit, and over all, as far as it is known.

    One process trains for all, one unit after the other, while the rest of the work is shared out among the
    workers: whichever takes longer is the time left.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        # Seconds of training, and of the rest.
        self.costs: dict[tuple[str, ...], list[tuple[float, float]]] = {}

    def learn(self, unit: Task, result: Mapping[str, Any]) -> None:
        seconds, training = result.get("seconds"), result.get("training_seconds") or 0.0
        if seconds is not None:
            self.costs.setdefault(unit.kind, []).append((training, seconds - training))

    def seconds_left(self, units: Iterable[Task]) -> float | None:
        if not self.costs:
            return None
        mean: dict[Any, FloatArray] = {kind: np.mean(costs, axis=0) for kind, costs in self.costs.items()}
        overall: FloatArray = np.mean(list(mean.values()), axis=0)
        left = np.zeros(2)
        for kind, count in Counter(unit.kind for unit in units).items():
            left += count * mean.get(kind, overall)
        return float(max(left[0], left[1] / self.n_jobs))


@contextmanager
def one_thread(*, with_torch: bool) -> Iterator[None]:
    """Keep numerical libraries and joblib to one thread: tensors here are small, and parallelism is across units.

    Scoring takes no torch, and does not load it: its libraries would be most of a worker's memory.
    """
    from joblib import parallel_config
    from threadpoolctl import threadpool_limits

    if with_torch:
        from drosurv.solvers.device import torch_on_one_thread

        torch_too = torch_on_one_thread()
    else:
        torch_too = nullcontext()
    with torch_too, threadpool_limits(1), parallel_config("sequential"):
        yield
