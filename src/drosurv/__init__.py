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
    from drosurv.estimators import RegularizedCox as RegularizedCox
    from drosurv.target import Surv as Surv

_ROOMS = ("datasets", "losses", "metrics", "objectives")
_HOME = {
    "CoxPH": "drosurv.estimators",
    "DROCox": "drosurv.estimators",
    "DROCoxSplit": "drosurv.estimators",
    "RegularizedCox": "drosurv.estimators",
    "Surv": "drosurv.target",
}

__all__ = [
    "CoxPH",
    "DROCox",
    "DROCoxSplit",
    "RegularizedCox",
    "Surv",
    "__version__",
    "datasets",
    "losses",
    "metrics",
    "objectives",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"drosurv.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'drosurv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
