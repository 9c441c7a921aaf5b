"""Full-batch Adam for many models at once: parameters, scores and gradients carry a leading batch axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from drosurv.solvers.arrays import in_numpy
from drosurv.solvers.stopping import Enough
from drosurv.target import FloatArray

DECAY_FIRST, DECAY_SECOND, EPSILON = 0.9, 0.999, 1e-8


class ScoredCriterion(Protocol):
    """What Adam minimises; arrays are NumPy's or torch's, as the network gives them."""

    def __call__(self, scores: Any, extra: Any = None) -> tuple[Any, Any, Any]:
        """Values (B,) at scores (B, n) and extra parameters (B, K), and the gradients in both."""
        ...


class Network(Protocol):
    """A batch of models on fixed features; arrays are NumPy's or torch's, as the criterion takes them."""

    parameters: list[Any]

    def scores(self) -> Any:
        """Scores (B, n) at the current parameters."""
        ...

    def pullback(self, gradient: Any) -> list[Any]:
        """Gradients in the parameters, given the gradient (B, n) in the last scores."""
        ...


def adam(
    network: Network,
    criterion: ScoredCriterion,
    lr: FloatArray,
    steps: int,
    l2: float = 0.0,
    on_step: Callable[[int], None] | None = None,
    extra: Any = None,
) -> FloatArray:
    """Run Adam for a fixed number of steps and keep the last iterate, as the paper does.

    Parameters
    ----------
    network : Network
        Its parameters are updated in place.
    criterion : ScoredCriterion
        Scores (B, n) and extra parameters to values (B,) and gradients.
    lr : (B,) float64
        Learning rate of each model.
    steps : int
        Number of steps.
    l2 : float
        Adds l2/2 ||parameters||^2 to each model's objective; the extra parameters are free of it.
    on_step : callable or None
        Told the number of each finished step; may raise :class:`~drosurv.solvers.stopping.Enough`.
    extra : (B, K) array or None
        Extra parameters of the loss, updated in place as the network's are.

    Returns
    -------
    (B, steps) float64
        The objective before each step.
    """
    parameters = network.parameters
    trained = parameters if extra is None else [*parameters, extra]
    rates = [_like(lr, p) for p in trained]
    first: list[Any] = [p * 0 for p in trained]
    second: list[Any] = [p * 0 for p in trained]
    history: list[Any] = []
    for step in range(1, steps + 1):
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
        history.append(value)
        shrink = (1 - DECAY_SECOND**step) ** 0.5
        for p, g, m, v, rate in zip(trained, gradients, first, second, rates, strict=True):
            m *= DECAY_FIRST
            m += (1 - DECAY_FIRST) * g
            v *= DECAY_SECOND
            v += (1 - DECAY_SECOND) * (g * g)
            p -= rate / (1 - DECAY_FIRST**step) * m / (v**0.5 / shrink + EPSILON)
        if on_step is not None:
            try:
                on_step(step)
            except Enough:
                break
    return np.stack([in_numpy(value) for value in history], axis=-1) if history else np.empty((len(lr), 0))


def _like(lr: FloatArray, parameter: Any) -> Any:
    """Learning rates shaped to broadcast over one parameter."""
    shaped = lr.reshape(-1, *([1] * (parameter.ndim - 1)))
    if isinstance(parameter, np.ndarray):
        return shaped
    import torch

    return torch.as_tensor(shaped, dtype=parameter.dtype, device=parameter.device)
