"""What a search tries: the paper's grids, one that suits an estimator, and plain models to compare settings with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from drosurv.errors import ArgumentError, require
from drosurv.estimators import CoxPH
from drosurv.estimators.grid import batches
from drosurv.estimators.network_estimator import NetworkEstimator

LEARNING_RATES = (0.01, 0.001, 0.0001)
# Learning rates of trees: with Adam's smaller rates 500 trees would learn almost nothing.
TREE_RATES = (0.02, 0.05, 0.1)
WEIGHTS = (1.0, 0.7, 0.4)
ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]


def default_grid(estimator: NetworkEstimator) -> dict[str, list[Any]]:
    """The paper's grid of an estimator: alpha or the penalty's weight, and Adam's learning rate.

    The learning rate is left out where the convex solver finds the optimum, which does not depend on it. Trees have
    other rates.

    Examples
    --------
    >>> from drosurv import DROCox
    >>> default_grid(DROCox())
    {'alpha': [0.1, 0.15, 0.2, 0.3, 0.4, 0.5]}
    >>> sorted(default_grid(DROCox(network="mlp")))
    ['alpha', 'lr']
    """
    parameters = estimator.get_params(deep=False)
    grid: dict[str, list[Any]] = {}
    if "alpha" in parameters:
        grid["alpha"] = list(ALPHAS)
    if "weight" in parameters:
        grid["weight"] = list(WEIGHTS)
    if not estimator._uses_convex:
        grid["lr"] = list(TREE_RATES if estimator.network == "trees" else LEARNING_RATES)
    if not grid:
        raise ArgumentError(
            "grid",
            f"grid must be given for {type(estimator).__name__} with the convex solver: it has no "
            "alpha, weight or learning rate to tune. Name a parameter, for example l2 with the values 0, 0.01 and 0.1.",
        )
    return grid


def grid_points(grid: Grid) -> list[dict[str, Any]]:
    """Every combination of the grid's values, the last parameter varying fastest; of several grids one by one.

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
        raise ArgumentError("grid", "grid holds no setting; name at least one parameter and its values.")
    return points


def plain_models(candidates: Sequence[NetworkEstimator]) -> list[NetworkEstimator]:
    """Unregularised models: what a plain Cox model has of each candidate's parameters, each model once."""
    known = CoxPH().get_params()
    models: list[NetworkEstimator] = []
    for candidate in candidates:
        shared = {name: value for name, value in candidate.get_params(deep=False).items() if name in known}
        # Only robust training shrinks risks, which recalibration corrects.
        shared["recalibrate"] = False
        # Plain models use the candidate's solver: 500 steps of Adam are not the optimum. For networks the solver also
        # decides whether they stop early.
        if candidate._is_linear:
            shared["solver"] = "convex" if candidate._uses_convex else "adam"
        if candidate._uses_convex:
            shared["lr"] = known["lr"]
        model = CoxPH(**shared)
        # Parameters that no batch may differ in and equal learning rates: the same model.
        if not any(len(batches([model, other])) == 1 and model.lr == other.lr for other in models):
            models.append(model)
    return models
