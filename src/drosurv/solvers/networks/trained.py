"""A trained network of any kind, coefficients (d,), trees or a torch module: its scores, its size, its plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.solvers.networks.module import module_scores
from drosurv.solvers.networks.trees import Trees
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch.nn import Module


def network_scores(network: Any, X: FloatArray, n_outputs: int = 1) -> FloatArray:
    """Scores (n,), or (n, K) of K > 1 outputs."""
    if isinstance(network, np.ndarray):
        return X @ network
    if isinstance(network, Trees):
        return network.scores(X)
    return module_scores(network, X, n_outputs)


def squared_norm(network: Any) -> float:
    """Sum of squares of the parameters that were trained; trees have none."""
    if isinstance(network, np.ndarray):
        return float((network**2).sum())
    if isinstance(network, Trees):
        return 0.0
    return float(sum((p.detach() ** 2).sum() for p in network.parameters() if p.requires_grad))


def network_state(network: Any) -> Any:
    """What can be kept of a network without pickling torch objects: a module's parameters and buffers by name."""
    if isinstance(network, (np.ndarray, Trees)):
        return network
    return {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def restored(state: Any, build: Callable[[], Module]) -> Any:
    """The network that a state was taken of; a module is built anew, in evaluation mode."""
    if isinstance(state, (np.ndarray, Trees)):
        return state
    import torch

    module = build()
    try:
        module.load_state_dict({name: torch.tensor(values) for name, values in state.items()})
    except RuntimeError as error:
        raise ArgumentError(
            "network", f"network builds another shape than the one that was trained: {error}"
        ) from error
    return module.eval()
