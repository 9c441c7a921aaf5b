"""Scores of patients under any trained network."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.networks.module import module_scores
from drosurv.networks.trees import Trees
from drosurv.target import FloatArray


def network_scores(network: Any, X: FloatArray, n_outputs: int = 1) -> FloatArray:
    """Scores (n,), or (n, K) of K > 1 outputs, under coefficients (d,), trees or a torch module."""
    if isinstance(network, np.ndarray):
        scores: FloatArray = X @ network
        return scores
    if isinstance(network, Trees):
        return network.scores(X)
    return module_scores(network, X, n_outputs)
