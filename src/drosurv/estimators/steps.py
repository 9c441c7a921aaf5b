"""Models trained by steps of Adam, on the processor or on an accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.fitted import Solved
from drosurv.estimators.recipe import Schedule
from drosurv.estimators.training import Training
from drosurv.networks import Linear, ModuleBatch, network_scores, seeded
from drosurv.presentation.progress import bar
from drosurv.runs import torch_on_one_thread
from drosurv.solvers import MiniBatches, Stopping, Watch, adam, compiled_adam, held_out
from drosurv.solvers.replay import beside_the_default_stream
from drosurv.target import FloatArray, IntArray

# Patients x weights from which a step of torch is shared among threads. With two of them, a step of 50,000 patients and
# 400 weights takes four times as long as with one, one of 500,000 and 400 as long, one of 200,000 and 70,000 .6 times.
_WORTH_SHARING = 1e9


def take_steps(
    network: Any, criterion: Any, extra: Any, schedule: Schedule, training: Training, device: str = "cpu"
) -> tuple[FloatArray, IntArray | None]:
    """Train a batch of models, and the loss's extra parameters (B, K) where there are any, in place.

    What comes back is the objective (B, steps) before each step and, where watched patients chose it, the pass (B,)
    that was kept of each model.
    """
    trainee, minimised, steps, watch = network, criterion, schedule.max_iter, None
    stopping, seed = schedule.stopping, training.seed
    if stopping and (parts := divided(stopping, training, criterion)):
        rows, held = parts
        trainee, minimised = network.take(rows), criterion.take(rows)
        theirs = held_out(criterion, rows, held, trainee.evaluated)
        watch = Watch(network.take(held), theirs, stopping.patience, extra=extra)
    size = schedule.batch_size
    if size is not None and size < (n := minimised.loss.n):
        trainee = minimised = MiniBatches(trainee, minimised.take, n, size, seed)
        steps *= trainee.n_batches
        if watch is not None:
            watch.every = trainee.n_batches
    if isinstance(trainee, Linear) and watch is None:
        found = compiled_adam(trainee, criterion, schedule.lr, steps, schedule.l2)
        if found is not None:
            return found, None
    with (
        bar(schedule.name, steps, shown=schedule.verbose) as told,
        seeded(seed),
        beside_the_default_stream(device),
        _threads(network, min(size or len(training.X), len(training.X))),
    ):

        def on_step(step: int) -> bool:
            told(step)
            return watch is not None and watch.look(step)

        history = adam(trainee, minimised, schedule.lr, steps, schedule.l2, on_step, extra)
    if watch is None:
        return history, None
    watch.restore()
    return history, watch.best_pass


def divided(stopping: Stopping, training: Training, criterion: Any) -> tuple[IntArray, IntArray] | None:
    """Rows that are trained on, and rows that are watched; None where everybody is trained on."""
    divisible = criterion.divisible
    return stopping.divided(training.target.event, training.together, training.seed, divisible=divisible)


def _threads(network: Any, rows: int) -> AbstractContextManager[None]:
    if not isinstance(network, ModuleBatch):
        return nullcontext()
    weights = sum(p.numel() for p in network.parameters)
    return nullcontext() if rows * weights >= _WORTH_SHARING else torch_on_one_thread()


def stepped(
    networks: Sequence[Any],
    training: Training,
    n_outputs: int,
    schedule: Schedule,
    extra: FloatArray | None,
    history: FloatArray,
    best_pass: IntArray | None,
) -> list[Solved]:
    """The models of one training set, coefficients (d,) or modules, as :func:`take_steps` left them."""
    out = []
    for b, network in enumerate(networks):
        scores = network_scores(network, training.X, n_outputs)
        if not np.isfinite(scores).all():
            raise ArgumentError(
                f"training diverged to infinite scores; lower {Argument('lr')} (now {schedule.lr[b]}) or standardise "
                "the features."
            )
        own = np.zeros(0) if extra is None else extra[b]
        kept = (schedule.max_iter, "steps_done")
        if best_pass is not None:
            kept = (int(best_pass[b]), "stopped_early")
        out.append(Solved(network, scores, own, *kept, np.nan, history[b]))
    return out
