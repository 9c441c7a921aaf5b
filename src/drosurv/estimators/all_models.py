"""All survival models, found in the files of the library, and the curves that they give to Pipelines."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from drosurv.estimators.base import SurvivalModel
from drosurv.files import import_files

CURVES = ("predict_survival_function", "predict_cumulative_hazard_function")
# Subpackages that export estimators.
_SUBPACKAGES = ("drosurv.estimators", "drosurv.paper", "drosurv.repairs")


def add_models(contents: dict[str, Any]) -> None:
    """Add the models that the files of a package define to its names and to its ``__all__``."""
    for module in import_files(contents["__name__"]):
        for name, cls in vars(module).items():
            public = name not in contents and not name.startswith("_")
            if public and _is_model(cls) and cls.__module__ == module.__name__:
                contents[name] = cls
                contents["__all__"].append(name)


def _is_model(found: Any) -> bool:
    """Whether something is a survival model, and not only the base class of others."""
    return isinstance(found, type) and issubclass(found, SurvivalModel) and hasattr(found, "capabilities")


def all_estimators(causes: bool = False) -> list[tuple[str, type[SurvivalModel]]]:
    """Return the name and class of every survival model of drosurv, sorted by name.

    Parameters
    ----------
    causes : bool
        Whether to include models of competing risks, whose target is made by :meth:`drosurv.Surv.competing`.

    Examples
    --------
    >>> import drosurv
    >>> [name for name, _ in drosurv.all_estimators() if name.startswith("DROCox")]
    ['DROCox', 'DROCoxSplit']
    """
    found = {}
    for package in map(import_module, _SUBPACKAGES):
        for name in package.__all__:
            exported = getattr(package, name)
            if _is_model(exported) and (causes or not getattr(exported, "_several_causes", False)):
                found[name] = exported
    return sorted(found.items())


def add_curves_to_pipelines() -> None:
    """Let Pipelines predict the curves of their last step, as scikit-survival does, unless they do so already."""
    for name in CURVES:
        if not hasattr(Pipeline, name):
            setattr(Pipeline, name, _curves_of_last_step(name))


def _curves_of_last_step(name: str) -> Any:
    def last_step_predicts(pipeline: Pipeline) -> bool:
        return hasattr(pipeline.steps[-1][1], name)

    def predict(self: Pipeline, X: Any, **options: Any) -> Any:
        """Predict curves of patients as the last step does; parameters as there."""
        features = self[:-1].transform(X) if len(self.steps) > 1 else X
        return getattr(self.steps[-1][1], name)(features, **options)

    predict.__name__ = name
    predict.__qualname__ = f"Pipeline.{name}"
    return available_if(last_step_predicts)(predict)
