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
    from drosurv.judging import certify as certify
    from drosurv.monitoring import monitor as monitor
    from drosurv.paper import RegularizedCox as RegularizedCox
    from drosurv.patients.target import Surv as Surv
    from drosurv.planning import plan as plan
    from drosurv.repairs import RepairedCox as RepairedCox
    from drosurv.repairs.repair_model import repair as repair
    from drosurv.report.audit import audit as audit
    from drosurv.workflows.check import check as check

_SUBPACKAGES = (
    "datasets",
    "distributed",
    "estimators",
    "evaluation",
    "judging",
    "losses",
    "metrics",
    "monitoring",
    "objectives",
    "paper",
    "planning",
    "repairs",
    "report",
    "tables",
)
# Names of this module that are no models of drosurv.estimators, and where they are defined: first what is done with a
# model and its patients, in the order of the reference.
_HOME = {
    "check": "drosurv.workflows.check",
    "evaluate": "drosurv.evaluation.evaluate",
    "compare": "drosurv.evaluation.compare",
    "audit": "drosurv.report.audit",
    "certify": "drosurv.judging.certification",
    "repair": "drosurv.repairs.repair_model",
    "plan": "drosurv.planning",
    "monitor": "drosurv.monitoring",
    "summary": "drosurv.estimators.coefficient_inference",
    "Surv": "drosurv.patients.target",
    "save": "drosurv.estimators.persistence",
    "load": "drosurv.estimators.persistence",
    "RepairedCox": "drosurv.repairs",
    "RegularizedCox": "drosurv.paper",
    "MLP": "drosurv.estimators",
    "Trees": "drosurv.estimators",
    "all_estimators": "drosurv.estimators.base",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_HOME, *_models(), *_SUBPACKAGES, "__version__"]
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
