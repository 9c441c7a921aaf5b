"""How much of the training events a model uses to estimate the expected events of a subgroup."""

from __future__ import annotations

import numpy as np

from drosurv.predictions import Predicted, final_step, prepared
from drosurv.solvers.arrays import is_tensor
from drosurv.target import FloatArray

# The estimation error of a linear model with more coefficients is not computed.
_MOST_COLUMNS = 60


def linear_columns(predicted: Predicted) -> FloatArray | None:
    """Return the design matrix of a linear model: a column of ones, then its standardised features.

    None for other models, and for more than 60 coefficients.
    """
    estimator = final_step(predicted.model)
    coef = np.asarray(getattr(estimator, "coef_", ()), dtype=float)
    if predicted.X is None or coef.ndim != 1 or not 0 < coef.size <= _MOST_COLUMNS:
        return None
    Z = prepared(predicted.model, predicted.X)
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
