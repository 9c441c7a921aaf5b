"""Survival analysis that stays accurate for the patients a model serves worst.

Submodules and estimators are imported when first used, so that ``import drosurv`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drosurv._version import __version__

if TYPE_CHECKING:
    from drosurv.estimators import CoxPH as CoxPH
    from drosurv.estimators import DROCox as DROCox
    from drosurv.estimators import DROCoxSplit as DROCoxSplit
    from drosurv.estimators import GroupDROCox as GroupDROCox
    from drosurv.estimators import NullModel as NullModel
    from drosurv.estimators import RegularizedCox as RegularizedCox
    from drosurv.estimators import SubgroupRobustCox as SubgroupRobustCox
    from drosurv.evaluation import evaluate as evaluate
    from drosurv.persistence import load as load
    from drosurv.persistence import save as save
    from drosurv.repairs import RepairedCox as RepairedCox
    from drosurv.repairs import repair as repair
    from drosurv.target import Surv as Surv

_ROOMS = (
    "audit",
    "datasets",
    "estimators",
    "evaluation",
    "insight",
    "losses",
    "metrics",
    "objectives",
    "repairs",
    "tables",
    "tuning",
)
_ESTIMATORS = (
    "CoxPH",
    "DROCox",
    "DROCoxSplit",
    "GroupDROCox",
    "NullModel",
    "RegularizedCox",
    "SubgroupRobustCox",
)
_HOME = {
    **dict.fromkeys(_ESTIMATORS, "drosurv.estimators"),
    "Surv": "drosurv.target",
    "evaluate": "drosurv.evaluation",
    "load": "drosurv.persistence",
    "save": "drosurv.persistence",
    "RepairedCox": "drosurv.repairs",
    "repair": "drosurv.repairs",
}

__all__ = ["__version__", *_ROOMS, *_HOME]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"drosurv.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'drosurv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
