"""Networks: features in, one risk score per patient out."""

from drosurv.solvers.networks.linear import DeviceLinear, Linear
from drosurv.solvers.networks.module import (
    ModuleBatch,
    build,
    coefficients,
    linear,
    mlp,
    module_scores,
    recordable,
    seeded,
)
from drosurv.solvers.networks.trained import network_scores, network_state, restored, squared_norm
from drosurv.solvers.networks.trees import Trees, lightgbm

__all__ = [
    "DeviceLinear",
    "Linear",
    "ModuleBatch",
    "Trees",
    "build",
    "coefficients",
    "lightgbm",
    "linear",
    "mlp",
    "module_scores",
    "network_scores",
    "network_state",
    "recordable",
    "restored",
    "seeded",
    "squared_norm",
]
