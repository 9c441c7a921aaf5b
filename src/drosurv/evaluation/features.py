"""Features that distances between patients are taken in, and the plain Cox model fitted on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.estimators import CoxPH
from drosurv.evaluation.predictions import final_step
from drosurv.metrics import FollowUp
from drosurv.solvers.arrays import on_host
from drosurv.standardise import standardise
from drosurv.target import FloatArray

# Columns further out than this are not standardised, whatever the sample.
_MEAN, _SPREAD = 1.0, 3.0


@dataclass(frozen=True, eq=False)
class Features:
    """Standardised features of the scored (n, d) and of the training patients (m, d), where there are any.

    The note is what a reader of distances should know.
    """

    test: FloatArray | None
    train: FloatArray | None
    note: str = ""


def standardised_features(X: Any, X_train: Any) -> Features:
    """Features scaled to mean 0 and deviation 1 by the training patients, if given, else as they are."""
    test, train = _as_numbers(X), _as_numbers(_in_order_of(X, X_train))
    if test is None:
        reason = "X was not given" if X is None else "X holds text or missing values"
        return Features(
            None, None, f"disparities between patients (F_I, F_A, censoring-aware) are left out: {reason}."
        )
    if train is None:
        far = np.abs(test.mean(axis=0)).max() > _MEAN or test.std(axis=0).max() > _SPREAD
        note = "F_I takes distances in X as it is, which is not standardised: pass a numeric X_train to scale by."
        return Features(test, None, note if far else "")
    if train.shape[1] != test.shape[1]:
        raise ArgumentError(
            "X_train", f"X_train has {train.shape[1]} columns, X has {test.shape[1]}: they must be the same."
        )
    scaled_train, scaled_test = standardise(train, test)
    return Features(scaled_test, scaled_train)


def plain_cox(model: Any) -> CoxPH:
    """Plain Cox with ties as in the model: else it would be found to differ from itself."""
    return CoxPH(ties=getattr(final_step(model), "ties", "breslow"))


def fit_plain_cox(model: Any, features: Features, y_train: Any) -> tuple[CoxPH | None, str]:
    """Plain Cox fitted on the training patients, beside the model; or None, and a note that says why."""
    if isinstance(y_train, FollowUp) or features.train is None or features.test is None:
        return None, (
            "the share of plain Cox's likelihood gain and the shrinkage control are left out: pass a fitted reference "
            "model, or, where there are no entry times, strata, offsets or causes, y_train and numeric X_train to fit "
            "plain Cox on."
        )
    if len(features.train) != len(y_train):
        raise ArgumentError(
            "X_train", f"X_train has {len(features.train)} rows, y_train has {len(y_train)}: they must match."
        )
    return plain_cox(model).fit(features.train, y_train), ""


def _in_order_of(X: Any, X_train: Any) -> Any:
    """Training features in the order of the scored patients' columns, where both have names."""
    if not (hasattr(X, "columns") and hasattr(X_train, "columns")):
        return X_train
    if odd := set(X.columns) ^ set(X_train.columns):
        raise ArgumentError(
            "X_train",
            f"X_train and X must have the same columns; only one of them has "
            f"{', '.join(sorted(map(str, odd)))}.",
        )
    return X_train[list(X.columns)]


def _as_numbers(X: Any) -> FloatArray | None:
    """X as a finite (n, d) float64 array; None if it is not one."""
    if X is None:
        return None
    try:
        rows = np.asarray(on_host(X), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 and rows.shape[1] > 0 and np.isfinite(rows).all() else None
