"""Which columns may define neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.target import FloatArray

_NAME = "subgroup_features"


def chosen_columns(
    X: FloatArray, subgroup_features: Sequence[str | int] | None = None, names: Sequence[str] | None = None
) -> FloatArray:
    """The columns (n, d') of X (n, d) that may define groups, by name or position; all by default."""
    if subgroup_features is None:
        return X
    if isinstance(subgroup_features, (str, int, np.integer)):
        raise ArgumentError.must(_NAME, "list columns", subgroup_features, f"write [{subgroup_features!r}]")
    return X[:, [_position(feature, X.shape[1], names) for feature in subgroup_features]]


def subgroup_columns(
    X: FloatArray, subgroup_features: Sequence[str | int] | None = None, names: Sequence[str] | None = None
) -> FloatArray:
    """The same without columns that do not vary; at least one."""
    columns = chosen_columns(X, subgroup_features, names)
    varying = columns[:, np.ptp(columns, axis=0) > 0] if columns.size else columns
    if varying.shape[1] == 0:
        which = "X" if subgroup_features is None else f"subgroup_features={list(subgroup_features)}"
        raise ValueError(
            f"every column of {which} is the same for all patients, so covariates define no group. "
            "Add a column that varies, or use CoxPH."
        )
    return varying


def _position(feature: Any, n_columns: int, names: Sequence[str] | None) -> int:
    if isinstance(feature, str):
        if names is None:
            raise ArgumentError(
                _NAME,
                f"{_NAME} names {feature!r}, but X has no column names: pass a DataFrame, or positions.",
            )
        if feature not in names:
            raise ArgumentError(_NAME, f"{_NAME} names {feature!r}, which is not in X; it has {list(names)}.")
        return list(names).index(feature)
    if isinstance(feature, bool) or not isinstance(feature, (int, np.integer)):
        raise ArgumentError.must(_NAME, "list names or positions of columns", feature)
    if not -n_columns <= feature < n_columns:
        raise ArgumentError(_NAME, f"{_NAME} holds position {feature}, but X has {n_columns} columns.")
    return int(feature)
