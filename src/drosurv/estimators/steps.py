"""Models trained by steps of Adam, on the processor or on an accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.estimators.fitted import Solved
from drosurv.estimators.recipe import Schedule
from drosurv.estimators.training import Training
from drosurv.presentation.progress import bar
from drosurv.solvers import (
    Criterion,
    MiniBatches,
    Stopping,
    TorchCriterion,
    Watch,
    adam,
    compiled_adam,
    held_out,
)
from drosurv.solvers.arrays import in_numpy
from drosurv.solvers.networks import DeviceLinear, Linear, ModuleBatch, coefficients, network_scores, seeded
from drosurv.solvers.replay import beside_the_default_stream
from drosurv.solvers.threads import torch_on_one_thread
from drosurv.target import FloatArray, IntArray

# Patients x weights from which a step of torch is shared among threads. With two of them, a step of 50,000 patients and
# 400 weights takes four times as long as with one, one of 500,000 and 400 as long, one of 200,000 and 70,000 .6 times.
_WORTH_SHARING = 1e9


def by_adam(
    criteria: Sequence[Criterion], trainings: Sequence[Training], schedule: Schedule, device: str = "cpu"
) -> list[tuple[list[Solved], FloatArray | None]]:
    """Train B models on each of R training sets of one size; on the processor there is one set.

    What comes back are the models of each set, and their objectives (B,) where an accelerator has them.
    """
    sizes = {training.X.shape for training in trainings}
    if len(sizes) > 1:
        raise ValueError(f"training sets trained together must have one shape, got {sorted(sizes)}.")
    if schedule.stopping is not None and len(trainings) > 1:
        # Each draws its own watched patients, and stops when it is time for it.
        pairs = zip(criteria, trainings, strict=True)
        return [by_adam([one], [training], schedule, device)[0] for one, training in pairs]
    settings, loss, values = len(schedule.lr), criteria[0].loss, None
    network = network_of(trainings, schedule, device, loss.n_outputs)
    criterion: Any = criteria[0]
    extra: Any = np.tile(loss.start, (settings, 1)) if loss.n_extra else None
    if device != "cpu":
        criterion = TorchCriterion(criteria, settings, device)
        extra = criterion.first_extra(network.parameters[0].dtype)
    tiled = replace(schedule, lr=np.tile(schedule.lr, len(trainings)))
    history, best_pass = take_steps(network, criterion, extra, tiled, trainings[0], device)
    if device != "cpu":
        values = criterion.values(network.evaluated(), extra)
        if schedule.l2 > 0:
            values = values + schedule.l2 / 2 * sum((p * p).sum(-1) for p in network.parameters)
        values = in_numpy(values).reshape(-1, settings)
    trained = list(network.parameters[0].copy()) if isinstance(network, Linear) else network.trained()
    extras = np.zeros((len(trained), 0)) if extra is None else in_numpy(extra)
    passes = np.full(len(trained), schedule.max_iter) if best_pass is None else best_pass
    status = "steps_done" if best_pass is None else "stopped_early"
    out = []
    for r, training in enumerate(trainings):
        models = []
        for k in range(r * settings, (r + 1) * settings):
            scores = network_scores(trained[k], training.X, loss.n_outputs)
            if not np.isfinite(scores).all():
                raise ArgumentError(
                    "lr",
                    f"training diverged to infinite scores; lower lr (now {tiled.lr[k]}) or "
                    "standardise the features.",
                )
            models.append(Solved(trained[k], scores, extras[k], int(passes[k]), status, np.nan, history[k]))
        out.append((models, None if values is None else values[r]))
    return out


def network_of(trainings: Sequence[Training], schedule: Schedule, device: str, n_outputs: int = 1) -> Any:
    """The models of all training sets; those of one set have the same features."""
    assert schedule.module is not None, "Adam trains a network"
    X, settings = [training.X for training in trainings], len(schedule.lr)
    d, seed, models = X[0].shape[1], trainings[0].seed, len(X) * settings
    if schedule.linear and n_outputs == 1:
        theta = np.tile(coefficients(schedule.module(d, seed)), (models, 1))
        return Linear(X[0], theta) if device == "cpu" else DeviceLinear(X, theta, device)
    features = X[0] if len(X) == 1 else np.repeat(np.stack(X), settings, axis=0)
    modules = [schedule.module(d, seed) for _ in range(models)]
    return ModuleBatch(modules, features, None if device == "cpu" else device, n_outputs)


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
