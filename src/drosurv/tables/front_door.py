"""Tables at the door of an estimator: text, categories and missing values become features, the rest passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import Argument, ArgumentError
from drosurv.tables.encoder import TableEncoder
from drosurv.tables.values import holds_numbers


def enter(model: Any, X: Any, y: Any = None, *, fit: bool = False) -> Any:
    """The features that a model takes of X.

    A DataFrame with text, categories, dates or missing values is given to a :class:`TableEncoder`, which is fitted
    with the model and kept as its ``encoder_``; its numbers stay in their own units. Everything else is unchanged,
    and a model that is fitted again loses its old encoder.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise ArgumentError(
            Argument("X"), " is a masked array, whose mask would be lost: fill it, or pass a DataFrame with missing "
            "values.",
        )  # fmt: skip
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        raise ArgumentError(
            Argument("X"), " holds dates: turn them into numbers, such as ages or numbers of days."
        )
    if fit:
        model.__dict__.pop("encoder_", None)
        if _needs_encoding(X):
            model.encoder_ = TableEncoder(standardize=False).fit(X, y)
    encoder = getattr(model, "encoder_", None)
    return X if encoder is None else encoder.transform(X)


def _needs_encoding(X: Any) -> bool:
    return isinstance(X, pd.DataFrame) and any(
        not (column.dtype.kind in "bc" or holds_numbers(column)) or column.isna().any()
        for _, column in X.items()
    )
