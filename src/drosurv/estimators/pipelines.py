"""Survival curves of scikit-learn's Pipelines, with the method names that scikit-survival gives them too."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

CURVES = ("predict_survival_function", "predict_cumulative_hazard_function")


def add_curves_to_pipelines() -> None:
    """Let Pipelines predict the curves that their last step predicts, unless they do so already."""
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
