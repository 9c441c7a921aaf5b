"""Training on an accelerator: many training sets and settings as one batch of models."""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.schedule import Schedule
from drosurv.estimators.training import Training
from drosurv.networks import DeviceLinear, ModuleBatch, coefficients, seeded
from drosurv.presentation.progress import bar
from drosurv.solvers import TorchCriterion, Watch, adam
from drosurv.solvers.arrays import in_numpy
from drosurv.solvers.replay import beside_the_default_stream
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor


def check_device(device: Any) -> None:
    """Reject a name that is not a device. Whether the device exists is checked when it is needed."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return
    import torch

    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(
            Argument("device", device), " is not a device that torch knows; use 'auto', 'cpu' or 'cuda'."
        ) from error


# Measured on one H200 and on two cores beside it (docs/performance.md; to measure here: python -m bench.devices).
# A recorded step on the accelerator takes .3 ms however small. On the processor each patient and model takes about
# 20 ns, and 1 ns for each weight of the network: the two meet at 2e5 patients x models x (10 + weights).
_WORTH_MOVING = 3e5
_OF_THE_LOSS = 10
# Numbers in X from which an optimum is found sooner on the accelerator, the way there included.
_WORTH_SOLVING_THERE = 2.5e5
# So many times as much where CUDA has yet to be started in this process, which takes a second or two with torch.
_STARTING = 30
# What a fit there needs at most, in sizes of X.
_ROOM = 4


def cuda_started() -> bool:
    """Whether CUDA is in use in this process already."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def worth_moving(rows: int, models: int, weights: int, started: bool = True) -> bool:
    """Whether Adam is faster on an accelerator: the rule of ``device="auto"``, from a model of one step's cost.

    `models` are trained together, all training sets counted; `weights` are the numbers that one of them trains;
    `started` tells whether CUDA is in use already.
    """
    border = _WORTH_MOVING if started else _STARTING * _WORTH_MOVING
    return rows * models * (_OF_THE_LOSS + weights) >= border


def worth_solving_there(rows: int, features: int, started: bool = True) -> bool:
    """Whether a linear model's optimum is found sooner on an accelerator: the rule of ``device="auto"``."""
    return rows * features >= (_WORTH_SOLVING_THERE if started else _STARTING * _WORTH_SOLVING_THERE)


def solves_there(rows: int, features: int) -> bool:
    """Whether that is so, and there is an accelerator with room for the features in double precision."""
    if resolve_device("auto", worth_solving_there(rows, features, cuda_started())) == "cpu":
        return False
    import torch

    free, _ = torch.cuda.mem_get_info()
    return free >= _ROOM * 8 * rows * features


def _has_driver() -> bool:
    """Whether CUDA's driver is installed. Asking torch would import it, which takes as long as many a fit."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def resolve_device(device: str, worthwhile: bool) -> str:
    """The device to train on: "auto" takes CUDA where there is one and the work is worth moving."""
    if device == "cpu" or (device == "auto" and not worthwhile):
        return "cpu"
    if device == "auto" and "torch" not in sys.modules and not _has_driver():
        return "cpu"
    import torch

    available = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if available else "cpu"
    if torch.device(device).type == "cuda" and not available:
        raise ArgumentError(
            Argument("device", device), " was asked for, but torch sees no CUDA device; use 'cpu'."
        )
    return device


class JoinedParameters:
    """A network whose parameters are parts of one tensor: a solver then takes one step instead of one for each.

    On an accelerator those steps are many small launches, which take longer than their arithmetic. The network's
    parameters are replaced by views of the joined one, (B, P) for B models.
    """

    def __init__(self, network: ModuleBatch) -> None:
        import torch

        apart = network.parameters
        joined = _joined(apart)
        parts = torch.split(joined, [p[0].numel() for p in apart], dim=1)
        network.parameters = [part.view(p.shape) for part, p in zip(parts, apart, strict=True)]
        self.network, self.parameters = network, [joined]

    @property
    def recordable(self) -> bool:
        """Whether a solver may record its steps."""
        return self.network.recordable

    def scores(self) -> Tensor:
        """Scores (B, n) at the current parameters."""
        scores: Tensor = self.network.scores()
        return scores

    def pullback(self, gradient: Tensor) -> list[Tensor]:
        """Gradient in the joined parameters, given that in the last scores (B, n)."""
        return [_joined(self.network.pullback(gradient))]

    def evaluated(self) -> Tensor:
        """Scores (B, n) as they are outside of training."""
        scores: Tensor = self.network.evaluated()
        return scores

    def take(self, rows: IntArray) -> JoinedParameters:
        """The same models on fewer patients, sharing the parameters."""
        part = copy.copy(self)
        part.network = self.network.take(rows)
        return part

    def trained(self) -> list[Any]:
        """The modules with their current parameters, on the processor."""
        return self.network.trained()


def _joined(parts: Sequence[Tensor]) -> Tensor:
    import torch

    return torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)


class DeviceResult(NamedTuple):
    """The B models of one training set, and what training said of them.

    Attributes
    ----------
    networks : list of (d,) float64 or torch.nn.Module
        Coefficients, or modules on the processor.
    extra : (B, K) float64 or None
    history : (B, steps) float64
        Objectives before each step.
    values : (B,) float64
        Objectives after the last one.
    best_pass : (B,) int or None
        The step that was kept, where watched patients chose it.
    """

    networks: list[Any]
    extra: FloatArray | None
    history: FloatArray
    values: FloatArray
    best_pass: IntArray | None = None


def train_on_device(
    recipes: Sequence[Recipe], trainings: Sequence[Training], schedule: Schedule, device: str
) -> list[DeviceResult]:
    """Train B models on each of R training sets of the same size, all at once, by a schedule of Adam's."""
    sizes = {training.X.shape for training in trainings}
    if len(sizes) > 1:
        raise ValueError(f"training sets trained together must have one shape, got {sorted(sizes)}.")
    if schedule.stopping is not None and len(trainings) > 1:
        # Each draws its own watched patients, and stops when it is time for it.
        pairs = zip(recipes, trainings, strict=True)
        return [train_on_device([one], [training], schedule, device)[0] for one, training in pairs]
    settings, seed = len(schedule.lr), trainings[0].seed
    criteria = [one.criterion(training) for one, training in zip(recipes, trainings, strict=True)]

    def criterion_of(rows: IntArray | None) -> TorchCriterion:
        """The criterion among some of the patients, or all."""
        among = criteria if rows is None else [criterion.take(rows) for criterion in criteria]
        return TorchCriterion(among, settings, device)

    everybody = minimised = criterion_of(None)
    network = trainee = device_network(trainings, schedule, device)
    extra, watch = everybody.first_extra(network.parameters[0].dtype), None
    if schedule.stopping and (parts := schedule.stopping.divided(trainings[0].target.event, seed)):
        rows, held = parts
        trainee, minimised = network.take(rows), criterion_of(rows)
        watch = Watch(network.take(held), criterion_of(held), schedule.stopping.patience, extra=extra)
    rates, steps = np.tile(schedule.lr, len(recipes)), schedule.max_iter
    with (
        bar(schedule.name, steps, shown=schedule.verbose) as told,
        seeded(seed),
        beside_the_default_stream(device),
    ):
        on_step = told if watch is None else watch.after(told)
        history = adam(trainee, minimised, rates, steps, schedule.l2, on_step, extra)
    if watch is not None:
        watch.restore()
    values = everybody.values(network.evaluated(), extra)
    if schedule.l2 > 0:
        values = values + schedule.l2 / 2 * sum((p * p).sum(-1) for p in network.parameters)
    final, found = in_numpy(values), None if extra is None else in_numpy(extra)
    trained = network.trained()
    return [
        DeviceResult(
            trained[part],
            None if found is None else found[part],
            history[part],
            final[part],
            None if watch is None else watch.best_pass,
        )
        for part in (slice(r * settings, (r + 1) * settings) for r in range(len(recipes)))
    ]


def device_network(
    trainings: Sequence[Training], schedule: Schedule, device: str
) -> DeviceLinear | JoinedParameters:
    """The models of all training sets; those of one set have the same features."""
    assert schedule.module is not None, "Adam trains a network"
    (_, d), settings, seed = trainings[0].X.shape, len(schedule.lr), trainings[0].seed
    models, X = len(trainings) * settings, [training.X for training in trainings]
    if schedule.linear:
        return DeviceLinear(X, np.tile(coefficients(schedule.module(d, seed)), (models, 1)), device)
    modules = [schedule.module(d, seed) for _ in range(models)]
    features = X[0] if len(X) == 1 else np.repeat(np.stack(X), settings, axis=0)
    return JoinedParameters(ModuleBatch(modules, features, device))
