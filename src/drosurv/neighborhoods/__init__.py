"""Neighbourhoods: averages of losses over patients whose covariates are alike."""

from drosurv.neighborhoods.contract import MatrixAverages, Neighborhoods, TakesPatients, as_neighborhoods
from drosurv.neighborhoods.features import chosen_columns, subgroup_columns
from drosurv.neighborhoods.forest import forest
from drosurv.neighborhoods.neighbors import nearest_neighbors
from drosurv.neighborhoods.partitions import Partitions, known_groups

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
