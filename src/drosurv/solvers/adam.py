"""Adam for many models at once: parameters, scores and gradients carry a leading batch axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from drosurv.solvers.arrays import fetched, in_numpy, vector_beside
from drosurv.solvers.replay import Replay
from drosurv.target import FloatArray, IntArray

DECAY_FIRST, DECAY_SECOND, EPSILON = 0.9, 0.999, 1e-8


class ScoredCriterion(Protocol):
    """What Adam minimises; arrays are NumPy's or torch's, as the network gives them."""

    @property
    def recordable(self) -> bool:
        """Whether it is work on an accelerator that never waits for it; see :class:`drosurv.solvers.replay.Replay`."""

    def __call__(self, scores: Any, extra: Any = None) -> tuple[Any, Any, Any]:
        """Values (B,) at scores (B, n) and extra parameters (B, K), and the gradients in both."""


class Network(Protocol):
    """A batch of models on fixed features; arrays are NumPy's or torch's, as the criterion takes them."""

    parameters: list[Any]

    @property
    def recordable(self) -> bool:
        """As of the criterion."""

    def scores(self) -> Any:
        """Scores (B, n) at the current parameters."""

    def pullback(self, gradient: Any) -> list[Any]:
        """Gradients in the parameters, given the gradient (B, n) in the last scores."""


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

    The parameters of B models, and the loss's extra parameters (B, K) where it has any, are updated in place. `l2` adds
    l2/2 ||parameters||^2 to each model's objective; the extra parameters are free of it. `on_step` is told the number
    of each finished step, and ends the training where it says True. What comes back is the objective (B, steps) before
    each step.
    """
    step = make_step(network, criterion, lr, l2, extra)
    take = Replay(step) if network.recordable and criterion.recordable else step
    history: list[Any] = []
    for number in range(1, steps + 1):
        history.append(take())
        if on_step is not None and on_step(number):
            break
    # Those of an accelerator are fetched at once.
    return fetched(history).T if history else np.empty((len(lr), 0))


def make_step(
    network: Network, criterion: ScoredCriterion, lr: FloatArray, l2: float = 0.0, extra: Any = None
) -> Callable[[], Any]:
    """One step of Adam after the other, each of which gives the objective (B,) before it; arguments as above.

    Everything that changes from step to step lies beside the parameters, so that one recording is all steps.
    """
    parameters = network.parameters
    trained = parameters if extra is None else [*parameters, extra]
    rates = [_like(lr, p) for p in trained]
    first: list[Any] = [p * 0 for p in trained]
    second: list[Any] = [p * 0 for p in trained]
    # Extra parameters may lie elsewhere than a network's.
    places = [_place(p) for p in trained]
    decays = {place: _lying(place, [DECAY_FIRST, DECAY_SECOND]) for place in places}
    left = {place: _lying(place, [1.0, 1.0]) for place in places}

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
        for place, powers in left.items():
            powers *= decays[place]
            # torch is slower with NumPy's numbers than with plain ones.
            own = powers.tolist() if place is None else powers
            corrections[place] = 1 - own[0], (1 - own[1]) ** 0.5
        for p, g, m, v, rate, place in zip(trained, gradients, first, second, rates, places, strict=True):
            grown, shrink = corrections[place]
            m *= DECAY_FIRST
            m += (1 - DECAY_FIRST) * g
            v *= DECAY_SECOND
            v += (1 - DECAY_SECOND) * (g * g)
            p -= rate / grown * m / (v**0.5 / shrink + EPSILON)
        return value

    return step


def _place(parameter: Any) -> Any:
    """The device that a parameter lies on; None on the processor."""
    here = isinstance(parameter, np.ndarray) or parameter.device.type == "cpu"
    return None if here else parameter.device


def _lying(place: Any, numbers: list[float]) -> Any:
    """Numbers in double precision at a place."""
    if place is None:
        return np.array(numbers)
    import torch

    return torch.tensor(numbers, dtype=torch.float64, device=place)


def _like(lr: FloatArray, parameter: Any) -> Any:
    """Learning rates shaped to broadcast over one parameter."""
    return vector_beside(parameter, lr.reshape(-1, *([1] * (parameter.ndim - 1))))


class MiniBatches:
    """Plays both network and criterion for Adam, on one random batch of patients per step.

    The network is of all n patients; `make_criterion` takes rows (b,) to the criterion among those. Every epoch visits
    the patients in another random order, in `n_batches` batches of about `size`.
    """

    # Every step has patients of its own.
    recordable = False

    def __init__(
        self, network: Any, make_criterion: Callable[[IntArray], Any], n: int, size: int, seed: int
    ) -> None:
        self.network, self.make_criterion = network, make_criterion
        self.parameters = network.parameters
        # The remainder is shared out: a last batch of few patients, or one, would have few to compare.
        self.n_batches = max(n // size, 1)
        self._batches = self._forever(n, self.n_batches, seed)
        self._part: Any = network
        self._criterion: Any = None

    @staticmethod
    def _forever(n: int, n_batches: int, seed: int) -> Iterator[IntArray]:
        rng = np.random.default_rng(seed)
        while True:
            yield from np.array_split(rng.permutation(n), n_batches)

    def scores(self) -> Any:
        """Scores (B, b) of the next batch."""
        rows = next(self._batches)
        self._part, self._criterion = self.network.take(rows), self.make_criterion(rows)
        return self._part.scores()

    def pullback(self, gradient: Any) -> list[Any]:
        """Gradients in the parameters from the current batch."""
        out: list[Any] = self._part.pullback(gradient)
        return out

    def __call__(self, scores: Any, extra: Any = None) -> tuple[Any, Any, Any]:
        """The criterion of the current batch."""
        assert self._criterion is not None, "scores come before the criterion"
        found: tuple[Any, Any, Any] = self._criterion(scores, extra)
        return found
