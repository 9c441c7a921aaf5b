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
    from drosurv.estimators.base import all_estimators as all_estimators
    from drosurv.estimators.coefficient_inference import summary as summary
    from drosurv.estimators.persistence import load as load
    from drosurv.estimators.persistence import save as save
    from drosurv.evaluation import compare as compare
    from drosurv.evaluation import evaluate as evaluate
    from drosurv.repairs import RepairedCox as RepairedCox
    from drosurv.repairs import repair as repair
    from drosurv.repairs.subgroup_bounds import certify as certify
    from drosurv.report import audit as audit
    from drosurv.target import Surv as Surv
    from drosurv.workflows.check import check as check

_SUBPACKAGES = (
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
    "report",
    "tables",
    "tuning",
)
_HOME = {
    "CauseSpecificCox": "drosurv.estimators.competing",
    "RepairedCox": "drosurv.repairs",
    "Surv": "drosurv.target",
    "all_estimators": "drosurv.estimators.base",
    "audit": "drosurv.report",
    "certify": "drosurv.repairs.subgroup_bounds",
    "check": "drosurv.workflows.check",
    "compare": "drosurv.evaluation",
    "evaluate": "drosurv.evaluation",
    "load": "drosurv.estimators.persistence",
    "repair": "drosurv.repairs",
    "save": "drosurv.estimators.persistence",
    "summary": "drosurv.estimators.coefficient_inference",
}

# Public names of earlier versions, and what to use now. A name in a subpackage raises through `missing_name`.
_EXPERIMENT = "it is in the repository, not in the installed package: {}."
_RIVAL = _EXPERIMENT.format("`from experiments.rivals import {}`")
_BOUNDS = "certify returns a SubgroupBounds, with bounds for all subgroups that one or two conditions define."
_REMOVED = {
    "drosurv.AdversarialReweighting": _RIVAL.format("AdversarialReweighting"),
    "drosurv.DroppedOutlierDRO": _RIVAL.format("DroppedOutlierDRO"),
    "drosurv.JustTrainTwice": _RIVAL.format("JustTrainTwice"),
    "drosurv.estimators.AdversarialReweighting": _RIVAL.format("AdversarialReweighting"),
    "drosurv.estimators.DroppedOutlierDRO": _RIVAL.format("DroppedOutlierDRO"),
    "drosurv.estimators.JustTrainTwice": _RIVAL.format("JustTrainTwice"),
    "drosurv.benchmark": _EXPERIMENT.format("`python -m experiments.benchmark`, or `make benchmark`"),
    "drosurv.paper": _EXPERIMENT.format("`python -m experiments.paper`, or `make reproduce`"),
    "drosurv.insight.Certificate": _BOUNDS,
    "drosurv.insight.SubgroupCurve": _BOUNDS,
    "drosurv.losses.PoissonDeviance": "use drosurv.losses.PiecewiseExponential.",
    "drosurv.losses.poisson_deviance": "use drosurv.losses.full_likelihood.",
    "drosurv.objectives.power": "use chi_square (order 2) or cvar (order 1) of drosurv.objectives.",
}


def missing_name(module: str, name: str) -> Exception:
    """Return the error for a name that a module does not have; ImportError with the remedy if it was removed.

    ImportError, because `from module import name` hides the message of an AttributeError.
    """
    if remedy := _REMOVED.get(f"{module}.{name}"):
        return ImportError(f"{module}.{name} was removed in drosurv 0.3; {remedy}", name=f"{module}.{name}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


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
    raise missing_name("drosurv", name)


def _models() -> list[str]:
    return list(import_module("drosurv.estimators").__all__)


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__")})
