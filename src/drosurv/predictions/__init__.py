"""Predictions of any model, or given as numbers, parsed once into one record."""

from drosurv.predictions.predicted import (
    Predicted,
    Predictions,
    ScoreType,
    as_predictions,
    of_causes,
    require_model,
)

__all__ = ["Predicted", "Predictions", "ScoreType", "as_predictions", "of_causes", "require_model"]
