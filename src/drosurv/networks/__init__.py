"""Networks: features in, one risk score per patient out."""

from drosurv.networks.linear import Linear
from drosurv.networks.mlp import linear, mlp
from drosurv.networks.module import ModuleBatch, build, module_scores, seeded
from drosurv.networks.scoring import network_scores
from drosurv.networks.state import module_state, restored
from drosurv.networks.trees import Trees, lightgbm

__all__ = [
    "Linear",
    "ModuleBatch",
    "Trees",
    "build",
    "lightgbm",
    "linear",
    "mlp",
    "module_scores",
    "module_state",
    "network_scores",
    "restored",
    "seeded",
]
