"""The observed information of a linear Cox model, turned into the covariance of its coefficients."""

from __future__ import annotations

import numpy as np

from drosurv.coefficients.fitted_cox import FittedCox
from drosurv.target import BoolArray, FloatArray

# Below this share of its own information, a feature's information given the others is rounding.
_DEPENDENT = 1e-11


def inverse_information(fit: FittedCox) -> FloatArray:
    """Inverse (d, d) of the observed information, the model's covariance of its coefficients.

    With a ridge, the information includes it. Features that depend on each other linearly, and constant ones, have no
    coefficient of their own: their rows and columns are NaN.
    """
    return inverse(fit.observed_information + fit.l2 * fit.case_weight.sum() * np.eye(fit.X.shape[1]))


def degrees_of_freedom(information: FloatArray) -> int:
    """Number of features that data tell apart: the rank of their information."""
    return int((_directions(information)[2] > _DEPENDENT).sum())


def inverse(information: FloatArray) -> FloatArray:
    """Inverse of a symmetric matrix, NaN in the rows and columns of its null space."""
    known, size, values, vectors = _directions(information)
    flat = values <= _DEPENDENT
    turned = vectors[:, ~flat]
    part = (turned / values[~flat]) @ turned.T / np.outer(size, size)
    # Features of a direction without information cannot be told apart: their errors are not known.
    lost = (vectors[:, flat] ** 2).sum(axis=1) > 1e-12
    part[lost, :] = part[:, lost] = np.nan
    out = np.full_like(information, np.nan)
    out[np.ix_(known, known)] = part
    return out


def _directions(information: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Features (d,) that have any information, its roots (m,), and what their scaled information is turned by."""
    size = np.sqrt(np.diag(information).clip(min=0.0))
    known = size > 0
    scaled = information[np.ix_(known, known)] / np.outer(size[known], size[known])
    values, vectors = np.linalg.eigh(scaled)
    return known, size[known], values, vectors
