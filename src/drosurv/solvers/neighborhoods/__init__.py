"""Neighbourhoods: averages of losses over patients whose covariates are alike."""

from drosurv.solvers.neighborhoods.contract import (
    MatrixAverages,
    Neighborhoods,
    TakesPatients,
    as_neighborhoods,
)
from drosurv.solvers.neighborhoods.features import chosen_columns, subgroup_columns
from drosurv.solvers.neighborhoods.forest import forest
from drosurv.solvers.neighborhoods.neighbors import nearest_neighbors
from drosurv.solvers.neighborhoods.partitions import Partitions, known_groups

__all__ = [
    "MatrixAverages",
    "Neighborhoods",
    "Partitions",
    "TakesPatients",
    "as_neighborhoods",
    "chosen_columns",
    "forest",
    "known_groups",
    "nearest_neighbors",
    "subgroup_columns",
]
