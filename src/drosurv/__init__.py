"""Survival analysis that stays accurate for the patients a model serves worst.

Submodules and estimators are imported when first used, so that ``import drosurv`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drosurv._version import __version__ as __version__

if TYPE_CHECKING:
    from drosurv.competing import CauseSpecificCox as CauseSpecificCox
    from drosurv.estimators import *  # noqa: F403 - its table of contents is the list of models
    from drosurv.estimators.discovery import all_estimators as all_estimators
    from drosurv.estimators.natural_units import summary as summary
    from drosurv.estimators.persistence import load as load
    from drosurv.estimators.persistence import save as save
    from drosurv.evaluation import evaluate as evaluate
    from drosurv.repairs import RepairedCox as RepairedCox
    from drosurv.repairs import repair as repair
    from drosurv.target import Surv as Surv

_ROOMS = (
    "audit",
    "coefficients",
    "competing",
    "datasets",
    "distributed",
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
_HOME = {
    "CauseSpecificCox": "drosurv.estimators.competing",
    "RepairedCox": "drosurv.repairs",
    "Surv": "drosurv.target",
    "all_estimators": "drosurv.estimators.discovery",
    "evaluate": "drosurv.evaluation",
    "load": "drosurv.estimators.persistence",
    "repair": "drosurv.repairs",
    "save": "drosurv.estimators.persistence",
    "summary": "drosurv.estimators.natural_units",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *_ROOMS, *_HOME, *_models()]
    if name in _ROOMS:
        return import_module(f"drosurv.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    # Every model is at hand here, a new one without a line in this file.
    if not name.startswith("_") and name in _models():
        return getattr(import_module("drosurv.estimators"), name)
    raise AttributeError(f"module 'drosurv' has no attribute {name!r}")


def _models() -> list[str]:
    return list(import_module("drosurv.estimators").__all__)


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__")})
