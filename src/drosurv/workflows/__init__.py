"""What the commands do, as functions: train, repair and save a model, and use a saved one."""

from drosurv.workflows.repairing import (
    corrected,
    noted_predictions,
    predictions_in,
    repair_from_table,
    repaired_predictions,
    same_patients,
)
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.training import Trained, save_with_notes, train

__all__ = [
    "OpenedModel",
    "Trained",
    "corrected",
    "noted_predictions",
    "predictions_in",
    "repair_from_table",
    "repaired_predictions",
    "same_patients",
    "save_with_notes",
    "train",
]
