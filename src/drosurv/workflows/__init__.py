"""What the commands do, as functions: from a table to a model, and from a model and a table to an answer."""

from drosurv.workflows.opened_model import OpenedModel
from drosurv.workflows.repairing import RepairedTable, repair_from_table
from drosurv.workflows.training import Trained, train
from drosurv.workflows.tuning import tune

__all__ = ["OpenedModel", "RepairedTable", "Trained", "repair_from_table", "train", "tune"]
