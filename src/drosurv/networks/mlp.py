"""The multilayer perceptron, and the torch form of the linear network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch.nn import Module


def mlp(n_features: int, hidden: Sequence[int] = (24,), dropout: float = 0.0, n_outputs: int = 1) -> Module:
    """Fully connected layers with ReLU between them, biases included.

    `hidden` are the widths, `dropout` the share of hidden units that each training step leaves out.
    """
    from torch import nn

    widths = [n_features, *hidden]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        if dropout > 0.0:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(widths[-1], n_outputs))


def linear(n_features: int) -> Module:
    """One linear map to the score, without bias."""
    from torch import nn

    return nn.Linear(n_features, 1, bias=False)


def coefficients(module: Any) -> FloatArray:
    """Coefficients (d,) of one linear map to one score."""
    theta: FloatArray = module.weight.detach().numpy().reshape(-1).astype(np.float64)
    return theta
