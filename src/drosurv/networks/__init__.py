"""Networks: features in, one risk score per patient out."""

from drosurv.networks.device_linear import DeviceLinear
from drosurv.networks.linear import Linear
from drosurv.networks.mlp import coefficients, linear, mlp
from drosurv.networks.module import ModuleBatch, build, module_scores, seeded
from drosurv.networks.scoring import network_scores
from drosurv.networks.state import module_state, restored
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
    "module_state",
    "network_scores",
    "restored",
    "seeded",
]
