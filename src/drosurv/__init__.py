"""Survival models, and audits and repairs of their predictions for groups of patients.

Submodules and estimators are imported when first used, so that ``import drosurv`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drosurv._version import __version__ as __version__

if TYPE_CHECKING:
    from drosurv.estimators import *  # noqa: F403 - its table of contents is the list of models
    from drosurv.estimators.base import all_estimators as all_estimators
    from drosurv.estimators.coefficient_inference import summary as summary
    from drosurv.estimators.persistence import load as load
    from drosurv.estimators.persistence import save as save
    from drosurv.evaluation.compare import compare as compare
    from drosurv.evaluation.evaluate import evaluate as evaluate
    from drosurv.monitoring import monitor as monitor
    from drosurv.planning import plan as plan
    from drosurv.repairs import RepairedCox as RepairedCox
    from drosurv.repairs import certify as certify
    from drosurv.repairs.repair_model import repair as repair
    from drosurv.report.audit import audit as audit
    from drosurv.target import Surv as Surv
    from drosurv.workflows.check import check as check

_SUBPACKAGES = (
    "datasets",
    "distributed",
    "estimators",
    "evaluation",
    "losses",
    "metrics",
    "monitoring",
    "objectives",
    "planning",
    "repairs",
    "report",
    "tables",
)
# Names of this module that are no models of drosurv.estimators, and where they are defined.
_HOME = {
    "MLP": "drosurv.estimators",
    "RepairedCox": "drosurv.repairs",
    "Surv": "drosurv.target",
    "Trees": "drosurv.estimators",
    "all_estimators": "drosurv.estimators.base",
    "audit": "drosurv.report.audit",
    "certify": "drosurv.repairs.certification",
    "check": "drosurv.workflows.check",
    "compare": "drosurv.evaluation.compare",
    "evaluate": "drosurv.evaluation.evaluate",
    "load": "drosurv.estimators.persistence",
    "monitor": "drosurv.monitoring",
    "plan": "drosurv.planning",
    "repair": "drosurv.repairs.repair_model",
    "save": "drosurv.estimators.persistence",
    "summary": "drosurv.estimators.coefficient_inference",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *_SUBPACKAGES, *_HOME, *_models()]
    if name in _SUBPACKAGES:
        return import_module(f"drosurv.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    # Every model is a name of this module, also new ones.
    if not name.startswith("_") and name in _models():
        return getattr(import_module("drosurv.estimators"), name)
    raise AttributeError(f"module 'drosurv' has no attribute {name!r}")


def _models() -> list[str]:
    estimators = import_module("drosurv.estimators")
    return [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")]


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__")})
