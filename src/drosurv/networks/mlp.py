"""The multilayer perceptron, and the torch form of the linear network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.nn import Module


def mlp(n_features: int, hidden: Sequence[int] = (24,)) -> Module:
    """Fully connected layers with ReLU between them and one output, biases included.

    Parameters
    ----------
    n_features : int
        Number of inputs d.
    hidden : sequence of int
        Width of each hidden layer.
    """
    from torch import nn

    widths = [n_features, *hidden]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1))


def linear(n_features: int) -> Module:
    """One linear map to the score, without bias."""
    from torch import nn

    return nn.Linear(n_features, 1, bias=False)
