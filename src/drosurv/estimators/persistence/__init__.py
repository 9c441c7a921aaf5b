"""Saved models: a fitted model in one file, and back."""

from drosurv.estimators.persistence.saved_model import SavedModel, load, read_saved_model, save

__all__ = ["SavedModel", "load", "read_saved_model", "save"]
