"""Networks: features in, one risk score per patient out."""

from drosurv.networks.linear import Linear
from drosurv.networks.mlp import linear, mlp
from drosurv.networks.module import ModuleBatch, build, module_scores, seeded
from drosurv.networks.state import module_state, restored

__all__ = [
    "Linear",
    "ModuleBatch",
    "build",
    "linear",
    "mlp",
    "module_scores",
    "module_state",
    "restored",
    "seeded",
]
