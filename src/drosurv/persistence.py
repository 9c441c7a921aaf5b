"""The path of `save` and `load` in 0.2, which will be removed in 0.4."""

from importlib import import_module
from typing import Any

from drosurv.errors import warn_caller


def __getattr__(name: str) -> Any:
    if name not in ("SavedModel", "load", "read_saved_model", "save"):
        raise AttributeError(f"module 'drosurv.persistence' has no attribute {name!r}")
    new = f"drosurv.{name}" if name in ("load", "save") else f"drosurv.estimators.persistence.{name}"
    warn_caller(
        f"drosurv.persistence.{name} is now {new}; the old path will be removed in 0.4.",
        category=DeprecationWarning,
    )
    return getattr(import_module("drosurv.estimators.persistence"), name)
