"""Risk scores and survival curves of any fitted model, or given as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.curves import SurvivalCurves
from drosurv.metrics import likelihood_gains
from drosurv.predictions import (
    Predictions,
    as_predictions,
    final_step,
    prepared,
    take,
)
from drosurv.solvers.arrays import is_tensor
from drosurv.target import FloatArray, Target

# The estimation error of a linear model with more coefficients is not computed.
_MOST_COLUMNS = 60


def predict_risk(model: Any, X: Any, n: int, *, name: str = "model") -> FloatArray:
    """Return the risk scores of n patients."""
    return as_predictions(model, X, n, name=name).risk


def predict_curves(model: Any, X: Any, n: int) -> SurvivalCurves | None:
    """Return the survival curves of n patients, None if the model has none."""
    return as_predictions(model, X, n).curves


def predicted_until(model: Any) -> float:
    """Return the last time of given predictions at some times; infinity for models, and for functions of time."""
    return as_predictions(model, None, 0).until


def gives_risk(model: Any) -> bool:
    """Whether a model, or predictions, come with risk scores."""
    return as_predictions(model, None, 0).has_risk


def gives_curves(model: Any) -> bool:
    """Whether a model, or predictions, come with survival curves."""
    return as_predictions(model, None, 0).has_curves


def gains_over_null(model: Any, curves: SurvivalCurves, follow_up: Any, target: Target) -> FloatArray:
    """Return each patient's likelihood gain over the null model, (n,); `curves` are what the model predicts.

    For predictions of several models, as in cross-validation, the null model of each is fitted to its training
    patients. A null model of all patients would have an advantage: it would be fitted to the predicted patients too.
    """
    if not isinstance(model, Predictions) or model.trained_on is None:
        return likelihood_gains(follow_up, target, curves)
    gains = np.empty(len(target))
    for rows, trained_on in model.trained_on:
        gains[rows] = likelihood_gains(trained_on, target.take(rows), take(model.survival, rows), model.times)
    return gains


def linear_columns(model: Any, X: Any) -> FloatArray | None:
    """Return the design matrix of a linear model: a column of ones, then its standardised features.

    None for other models, and for more than 60 coefficients.
    """
    estimator = final_step(model)
    coef = np.asarray(getattr(estimator, "coef_", ()), dtype=float)
    if X is None or coef.ndim != 1 or not 0 < coef.size <= _MOST_COLUMNS:
        return None
    Z = prepared(model, X)
    Z = np.asarray(Z.detach().cpu() if is_tensor(Z) else Z)
    if not np.issubdtype(Z.dtype, np.number) or Z.ndim != 2 or not np.isfinite(Z).all():
        return None
    design = getattr(estimator, "_design", None)
    if design is not None and Z.shape[1] == estimator.n_features_in_:
        Z = design.standardised(Z.astype(np.float64))
    if Z.shape[1] != coef.size:
        return None
    return np.column_stack([np.ones(len(Z)), (Z - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-12)])


def estimation_share(columns: FloatArray | None, expected: FloatArray, sums: FloatArray) -> FloatArray:
    r"""Return the share (G,) of the training events from which a model estimates the expected events of each subgroup.

    .. math:: \frac{E_g^2}{E \, a_g^T M^{-1} a_g}, \qquad a_g = \sum_{i \in g} e_i z_i, \quad M = \sum_i e_i z_i z_i^T

    with e the expected events of patients (n,), E their sum, E_g that of the subgroup, z the `columns` (n, p) of a
    linear model, and `sums` (G, p) the a_g, whose first column is E_g. A linear model uses all training patients to
    predict a subgroup. Any other model, without `columns`, is assumed to use those of the subgroup only.
    """
    of_subgroup: FloatArray = sums[:, 0] / max(float(expected.sum()), 1e-12)
    if columns is None:
        return of_subgroup
    # The pseudoinverse ignores columns that are constant here.
    inverse = np.linalg.pinv(columns.T @ (expected[:, None] * columns), hermitian=True)
    form = np.einsum("gj,jk,gk->g", sums, inverse, sums)
    share: FloatArray = np.clip(sums[:, 0] * of_subgroup / np.maximum(form, 1e-12), of_subgroup, 1.0)
    return share


def given_arguments(**observed: Any) -> dict[str, Any]:
    """Return the arguments, such as ``entry`` and ``strata``, that are not None."""
    return {name: value for name, value in observed.items() if value is not None}
