"""A model of any library: its last step, its columns, its name, whether it is fitted, and how it is fitted."""

from __future__ import annotations

from collections.abc import Collection
from inspect import signature
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError, arg
from drosurv.estimators import CoxPH
from drosurv.patients.observation import first_rows, given_arguments, in_pandas, take
from drosurv.patients.target import FIELDS, Surv, field_names, with_fields, y_field
from drosurv.tables.encoder import TableEncoder


def unwrapped(model: Any) -> Any:
    """Return the best model of a finished search, or the model inside of a frozen one; any other model unchanged."""
    if hasattr(model, "best_estimator_") and not hasattr(model, "predict_survival_function"):
        return unwrapped(model.best_estimator_)
    if type(model).__name__ == "FrozenEstimator":
        return unwrapped(model.estimator)
    return model


def final_step(model: Any) -> Any:
    """Return the last step of a Pipeline, or the model itself; for a finished search, of its best model."""
    steps = getattr(unwrapped(model), "steps", None)
    return unwrapped(steps[-1][1]) if steps else unwrapped(model)


def require_fitted(model: Any) -> Any:
    """Return the last step of a model; raise NotFittedError if it is an estimator that is not fitted."""
    fitted = final_step(model)
    if isinstance(fitted, BaseEstimator) and hasattr(fitted, "fit"):
        check_is_fitted(fitted)
    return fitted


def is_score(model: Any) -> bool:
    """Whether a model, and not an array of predictions, is a published score: known at some times, and never fitted."""
    final = final_step(model)
    return hasattr(final, "predict") and getattr(final, "curve_type", None) == "points"


def model_name(model: Any) -> str:
    """Return the name of a model for tables: its class, or "predictions" for arrays."""
    return type(model).__name__ if hasattr(model, "predict") else "predictions"


def name_of_reference(reference: Any) -> str:
    """Return what sentences call the model to compare with: plain Cox if none was given, else its class."""
    if reference is None:
        return "plain Cox"
    return model_name(reference) if hasattr(reference, "predict") else "the reference"


def training_follow_up(model: Any) -> Any:
    """Return the follow-up of the training patients, which fitted models of this library keep; None for others."""
    return getattr(final_step(model), "follow_up_", None)


def columns_used(model: Any, X: Any = None) -> list[str]:
    """Return the columns of a table that a model predicts from; all columns of `X` if the model keeps no names.

    Predictions that were given as numbers have none.
    """
    model = unwrapped(model)
    if not hasattr(model, "predict"):
        return []
    first = model[0] if hasattr(model, "steps") else getattr(model, "encoder_", None)
    used = getattr(model, "feature_names_in_", getattr(X, "columns", ()))
    if isinstance(first, TableEncoder):
        used = getattr(first, "used_", [name for name in used if name not in first.drop])
    return [str(name) for name in used]


def own_columns(model: Any, X: Any) -> Any:
    """Return the columns of a DataFrame that a model was fitted on, in their order; any other X unchanged."""
    names, X = getattr(model, "feature_names_in_", None), in_pandas(X)
    # The rules of a repaired model may use further columns: it takes its own.
    if names is None or not isinstance(X, pd.DataFrame) or getattr(model, "_own_features", False):
        return X
    differ = list(X.columns) != list(names) and set(names) <= set(X.columns)
    return X[list(names)] if differ else X


def prepared(model: Any, X: Any) -> Any:
    """Return X transformed by all steps of a Pipeline but the last; for other models, the columns that they take."""
    model = unwrapped(model)
    X = own_columns(model, X)
    return model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X


def fit_any(
    estimator: Any, X: Any, y: Any, needed: Collection[str] = ("entry",), similar: Any = None, **options: Any
) -> Any:
    """Fit a copy of an estimator of any library; `options` are further arguments of ``fit``, of a Pipeline's last step.

    An estimator of this library gets the fields of `y` that it supports. Others get event and time, and weights as
    ``sample_weight``. A field that is `needed`, or weights, and not supported are an error; other fields are left out.
    The same estimator fitted on `similar` patients tells where a search of parameters may begin.
    """
    final = final_step(estimator)
    # A search says nothing of itself: its estimator does.
    inner = final_step(final.estimator) if hasattr(final, "estimator") else final
    able = getattr(final, "capabilities", getattr(inner, "capabilities", None))
    missing = [
        name
        for name in ("entry", "id", "clusters")
        if y_field(y, name) is not None and (able is None or name not in able.row_arguments)
    ]
    options = given_arguments(**options)
    if able is None:
        options |= given_arguments(sample_weight=y_field(y, "weight"))
    takes = signature(final.fit).parameters
    refused = [name for name in missing if name in needed] + [name for name in options if name not in takes]
    if refused:
        # Weights are a field of y, whatever fit calls them.
        name = "weight" if refused[0] == "sample_weight" else refused[0]
        leave = "leave it out of y, as Surv.event_time(y) does" if name in FIELDS else "leave it out"
        raise ArgumentError(
            name, f"{type(final).__name__} does not support {arg(name)}: {leave}, or choose another model."
        )
    if able is None and len(field_names(y)) > 2:
        y = Surv.event_time(y)
    elif missing:
        y = with_fields(y, **dict.fromkeys(missing))
    prefix = f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""
    copy = clone(estimator)
    if similar is not None and hasattr(final, "begin_near"):
        final_step(copy).begin_near(final_step(similar))
    return copy.fit(X, y, **{prefix + name: value for name, value in options.items()})


def plain_cox(model: Any) -> CoxPH:
    """Return a plain Cox model with the same method for ties as the model."""
    return CoxPH(ties=getattr(final_step(model), "ties", "breslow"))


def fitted_plain_cox(model: Any, X: Any, y: Any) -> CoxPH:
    """Fit plain Cox, with which a model is compared, with the values of each patient's first row (entry, time]."""
    first = first_rows(y)
    return plain_cox(model).fit(X if first is None else take(X, first), y)
