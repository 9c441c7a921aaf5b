"""Adam for a batch of models, on all patients or on mini-batches, with early stopping."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import chain, count
from typing import Any, Protocol

import numpy as np

from drosurv.patients.target import FloatArray, IntArray
from drosurv.solvers.arrays import array_like, in_numpy, stack_in_numpy
from drosurv.solvers.device import Replay

DECAY_FIRST, DECAY_SECOND, EPSILON = 0.9, 0.999, 1e-8


class ScoredCriterion(Protocol):
    """A criterion that Adam minimises; arrays are NumPy or torch arrays, as those of the network."""

    @property
    def recordable(self) -> bool:
        """Whether it can be recorded as a CUDA graph; see :class:`drosurv.solvers.device.Replay`."""

    def __call__(self, scores: Any, extra: Any = None) -> tuple[Any, Any, Any]:
        """Return values (B,) at scores (B, n) and extra parameters (B, K), and the gradients in both."""


class Network(Protocol):
    """A batch of models on fixed features; arrays are NumPy or torch arrays, as those of the criterion."""

    parameters: list[Any]

    @property
    def recordable(self) -> bool:
        """Whether its scores and gradients can be recorded as a CUDA graph."""

    def scores(self) -> Any:
        """Return the scores (B, n) at the current parameters."""

    def pullback(self, gradient: Any) -> list[Any]:
        """Return the gradients in the parameters, given the gradient (B, n) in the last scores."""


def adam(
    network: Network,
    criterion: ScoredCriterion,
    lr: FloatArray,
    steps: int,
    l2: float = 0.0,
    on_step: Callable[[int], bool | None] | None = None,
    extra: Any = None,
) -> FloatArray:
    """Run Adam for a fixed number of steps and keep the last iterate, as the paper does.

    The parameters of B models and the extra parameters (B, K) of the loss are updated in place. `l2` adds
    l2/2 ||parameters||^2 to each objective, without the extra parameters. `on_step` is called with the number of each
    finished step; training ends if it returns True. Return the objective (B, steps) before each step.
    """
    step = make_step(network, criterion, lr, l2, extra)
    take = Replay(step) if network.recordable and criterion.recordable else step
    history: list[Any] = []
    for number in range(1, steps + 1):
        history.append(take())
        if on_step is not None and on_step(number):
            break
    # Values are copied from an accelerator only once.
    return stack_in_numpy(history).T if history else np.empty((len(lr), 0))


def make_step(
    network: Network, criterion: ScoredCriterion, lr: FloatArray, l2: float = 0.0, extra: Any = None
) -> Callable[[], Any]:
    """Return a function that takes one step of Adam and returns the objective (B,) before it.

    All state is on the device of the parameters, so that one step can be recorded as a CUDA graph and replayed.
    """
    parameters = network.parameters
    trained = parameters if extra is None else [*parameters, extra]
    # Learning rates in a shape that broadcasts over each parameter.
    rates = [array_like(p, lr.reshape(-1, *([1] * (p.ndim - 1)))) for p in trained]
    first: list[Any] = [p * 0 for p in trained]
    second: list[Any] = [p * 0 for p in trained]
    # Extra parameters may be on another device than the network; None is the CPU.
    devices = [None if isinstance(p, np.ndarray) or p.device.type == "cpu" else p.device for p in trained]
    decays = {device: _on_device(device, [DECAY_FIRST, DECAY_SECOND]) for device in devices}
    powers_of = {device: _on_device(device, [1.0, 1.0]) for device in devices}

    def step() -> Any:
        value, slope, by_extra = criterion(network.scores(), extra)
        gradients = network.pullback(slope)
        if l2 > 0.0:
            squares = [(p * p).reshape(len(p), -1).sum(-1) for p in parameters]
            if isinstance(value, np.ndarray):
                squares = [in_numpy(square) for square in squares]
            value = value + l2 / 2 * sum(squares)
            gradients = [g + l2 * p for g, p in zip(gradients, parameters, strict=True)]
        if extra is not None:
            gradients = [*gradients, by_extra]
        corrections = {}
        for device, powers in powers_of.items():
            powers *= decays[device]
            # torch is slower with NumPy scalars than with Python floats.
            first_power, second_power = powers.tolist() if device is None else powers
            corrections[device] = 1 - first_power, (1 - second_power) ** 0.5
        for p, g, m, v, rate, device in zip(trained, gradients, first, second, rates, devices, strict=True):
            first_correction, second_correction = corrections[device]
            m *= DECAY_FIRST
            m += (1 - DECAY_FIRST) * g
            v *= DECAY_SECOND
            v += (1 - DECAY_SECOND) * (g * g)
            p -= rate / first_correction * m / (v**0.5 / second_correction + EPSILON)
        return value

    return step


def _on_device(device: Any, numbers: list[float]) -> Any:
    """Return numbers in double precision on a device."""
    if device is None:
        return np.array(numbers)
    import torch

    return torch.tensor(numbers, dtype=torch.float64, device=device)


class MiniBatches:
    """Network and criterion on one random batch of patients per step.

    The network is that of all patients; `make_criterion` maps rows (b,) to the criterion of these patients. Every
    epoch goes through the patients in a new random order, in `n_batches` batches of about `size` patients. With the
    `order` (n,) of :func:`drosurv.patients.draws.row_order` they do not depend on the order of the rows.
    """

    # Every step uses other patients.
    recordable = False

    def __init__(
        self, network: Any, make_criterion: Callable[[IntArray], Any], order: IntArray, size: int, seed: int
    ) -> None:
        self.network, self.make_criterion = network, make_criterion
        self.parameters = network.parameters
        # The remainder is spread over the batches: a small last batch would have small risk sets.
        self.n_batches = max(len(order) // size, 1)
        rng = np.random.default_rng(seed)
        epochs = (np.array_split(rng.permutation(order), self.n_batches) for _ in count())
        self._batches = chain.from_iterable(epochs)
        self._part: Any = network
        self._criterion: Any = None

    def scores(self) -> Any:
        """Return the scores (B, b) of the next batch."""
        rows = next(self._batches)
        self._part, self._criterion = self.network.take(rows), self.make_criterion(rows)
        return self._part.scores()

    def pullback(self, gradient: Any) -> list[Any]:
        """Return the gradients in the parameters from the current batch."""
        out: list[Any] = self._part.pullback(gradient)
        return out

    def __call__(self, scores: Any, extra: Any = None) -> tuple[Any, Any, Any]:
        """Return the criterion of the current batch and its gradients."""
        found: tuple[Any, Any, Any] = self._criterion(scores, extra)
        return found


class EarlyStopping:
    """Evaluate B networks on a validation set after every epoch, and store the parameters of each at its best epoch.

    `network` has the features of the validation set and shares the trained parameters; `extra` (B, K) are the extra
    parameters of the loss. Training stops after `n_iter_no_change` epochs of `epoch_steps` steps without improvement.
    """

    def __init__(
        self, network: Any, criterion: Any, n_iter_no_change: int, epoch_steps: int = 1, extra: Any = None
    ) -> None:
        self.n_iter_no_change, self.epoch_steps = n_iter_no_change, epoch_steps
        self.trained = [*network.parameters, *([] if extra is None else [extra])]

        def value() -> Any:
            return criterion(network.evaluated(), extra)[0]

        self._value = Replay(value) if network.recordable and criterion.recordable else value
        batch = len(network.parameters[0])
        self.best = np.full(batch, np.inf)
        self.best_epoch: IntArray = np.zeros(batch, dtype=np.intp)
        self.kept: list[Any] = []

    def stops(self, step: int) -> bool:
        """Evaluate the validation set after a step, store the best parameters, and return whether to stop."""
        if step % self.epoch_steps:
            return False
        value: FloatArray = in_numpy(self._value())
        better = value < self.best
        if not self.kept:
            self.kept = copy.deepcopy(self.trained)
        for b in np.flatnonzero(better):
            for kept, p in zip(self.kept, self.trained, strict=True):
                kept[b] = p[b]
        epoch = step // self.epoch_steps
        self.best, self.best_epoch = np.fmin(value, self.best), np.where(better, epoch, self.best_epoch)
        return bool((epoch - self.best_epoch >= self.n_iter_no_change).all())

    def restore(self) -> None:
        """Set every network to its best parameters."""
        for kept, p in zip(self.kept, self.trained, strict=True):
            p[...] = kept
