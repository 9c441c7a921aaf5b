"""Survival models, and audits and repairs of their predictions for groups of patients.

Submodules and estimators are imported when first used, so that ``import drosurv`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drosurv._version import __version__ as __version__

if TYPE_CHECKING:
    from drosurv.estimators import *  # noqa: F403 - its table of contents is the list of models
    from drosurv.estimators.all_models import all_estimators as all_estimators
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
# The names of this module, and where they are defined, in the order of the reference.
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
    "CoxPH": "drosurv.estimators.cox",
    "CoxPHCV": "drosurv.estimators.cox_cv",
    "DROCox": "drosurv.estimators.dro_cox",
    "RepairedCox": "drosurv.repairs",
}
# Names that can be imported from here too, beside all other models of drosurv.estimators and what is in drosurv.paper.
_ALSO = {
    "MLP": "drosurv.estimators",
    "Trees": "drosurv.estimators",
    "all_estimators": "drosurv.estimators.all_models",
}
# `__version__` and the subpackages are no part of it, as in scikit-learn: a star import brings functions and models.
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"drosurv.{name}")
    if home := _HOME.get(name) or _ALSO.get(name):
        return getattr(import_module(home), name)
    # Every model is a name of this module, also new ones.
    if not name.startswith("_"):
        estimators = import_module("drosurv.estimators")
        if name in estimators.__all__ and hasattr(getattr(estimators, name), "fit"):
            return getattr(estimators, name)
        paper = import_module("drosurv.paper")
        if name in paper.__all__:
            return getattr(paper, name)
    raise AttributeError(f"module 'drosurv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOME, *_SUBPACKAGES, "__version__"])
