"""Networks: features in, one risk score per patient out."""

from drosurv.networks.linear import DeviceLinear, Linear
from drosurv.networks.module import (
    ModuleBatch,
    build,
    coefficients,
    linear,
    mlp,
    module_scores,
    recordable,
    seeded,
)
from drosurv.networks.trained import network_scores, network_state, restored, squared_norm
from drosurv.networks.trees import Trees, lightgbm

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
