"""What the commands do, as functions: train, repair and save a model, and use a saved one."""

from drosurv.workflows.repairing import corrected, predictions_in, repair_from_table
from drosurv.workflows.saved_model import OpenedModel
from drosurv.workflows.training import Trained, save_with_notes, train

__all__ = [
    "OpenedModel",
    "Trained",
    "corrected",
    "predictions_in",
    "repair_from_table",
    "save_with_notes",
    "train",
]
