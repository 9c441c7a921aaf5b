"""Grids of settings for a search, and the plain models with which settings are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from drosurv.errors import ArgumentError, require
from drosurv.estimators import CoxPH
from drosurv.estimators.grid import batches
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.network_settings import Trees, as_network

LEARNING_RATES = (0.01, 0.001, 0.0001)
# Learning rates of trees. With the smaller rates for Adam, 500 trees would fit almost nothing.
TREE_RATES = (0.02, 0.05, 0.1)
WEIGHTS = (1.0, 0.7, 0.4)
ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]


def default_grid(estimator: NetworkEstimator) -> dict[str, list[Any]]:
    """Return the paper's grid for an estimator: alpha or the weight of the penalty, and the learning rate.

    The grid has no learning rate if the convex solver is used, and larger ones for trees.

    Examples
    --------
    >>> from drosurv import MLP, DROCox
    >>> default_grid(DROCox())
    {'alpha': [0.1, 0.15, 0.2, 0.3, 0.4, 0.5]}
    >>> sorted(default_grid(DROCox(network=MLP())))
    ['alpha', 'network__lr']
    """
    parameters = estimator.get_params(deep=False)
    grid: dict[str, list[Any]] = {}
    if "alpha" in parameters:
        grid["alpha"] = list(ALPHAS)
    if "weight" in parameters:
        grid["weight"] = list(WEIGHTS)
    network = as_network(estimator.network)
    if network is not None:
        grid["network__lr"] = list(TREE_RATES if isinstance(network, Trees) else LEARNING_RATES)
    elif not estimator._uses_convex:
        grid["lr"] = list(LEARNING_RATES)
    if not grid:
        raise ArgumentError(
            "grid",
            f"grid must be given for {type(estimator).__name__} with the convex solver: it has no "
            "alpha, weight or learning rate to tune. Name a parameter, for example l2 with the values 0, 0.01 and 0.1.",
        )
    return grid


def grid_points(grid: Grid) -> list[dict[str, Any]]:
    """Return every combination of the values of a grid, or of several grids; the last parameter varies fastest.

    Examples
    --------
    >>> grid_points({"alpha": [0.1, 0.2], "lr": [0.01]})
    [{'alpha': 0.1, 'lr': 0.01}, {'alpha': 0.2, 'lr': 0.01}]
    """
    points: list[dict[str, Any]] = []
    parts = [grid] if isinstance(grid, Mapping) else grid
    listed = isinstance(parts, (list, tuple)) and all(isinstance(part, Mapping) for part in parts)
    require(listed, "grid", "name parameters and lists of values, such as {'alpha': [0.1, 0.2]}", grid)
    for part in parts:
        for name, values in part.items():
            if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
                raise ArgumentError(
                    "grid",
                    f"grid[{name!r}] must be a list of at least one value, got {values!r}; put a single "
                    "one in a list.",
                )
        points += [dict(zip(part, values, strict=True)) for values in product(*part.values())]
    if not points or not all(points):
        raise ArgumentError("grid", "grid contains no setting; name at least one parameter and its values.")
    return points


def plain_models(candidates: Sequence[NetworkEstimator]) -> list[NetworkEstimator]:
    """Return the distinct plain Cox models with the parameters that they share with the candidates."""
    known = CoxPH().get_params(deep=False)
    models: list[NetworkEstimator] = []
    for candidate in candidates:
        shared = {name: value for name, value in candidate.get_params(deep=False).items() if name in known}
        # Recalibration corrects the shrinkage of robust training; plain models do not need it.
        shared["recalibrate"] = False
        # Plain models use the candidate's solver, because 500 steps of Adam do not reach the optimum. For networks the
        # solver also decides whether training stops early.
        if candidate._is_linear:
            shared["solver"] = "convex" if candidate._uses_convex else "adam"
        if candidate._uses_convex:
            shared["lr"] = known["lr"]
        model = CoxPH(**shared)
        # Models that can be trained in one batch and have the same learning rate are equal.
        if not any(
            len(batches([model, other])) == 1 and learning_rate(model) == learning_rate(other)
            for other in models
        ):
            models.append(model)
    return models


def learning_rate(estimator: NetworkEstimator) -> float:
    """Return the learning rate of an estimator: that of its network, or of a linear model."""
    return (as_network(estimator.network) or estimator).lr
