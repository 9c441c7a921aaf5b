"""Neighbourhoods that are groups known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import Argument, ArgumentError
from drosurv.neighborhoods.partitions import Partitions
from drosurv.target import FloatArray


def known_groups(groups: ArrayLike, *, sample_weight: FloatArray | None = None) -> Partitions:
    """Average each patient over the members of its own group, by labels (n,), none missing, and weights (n,).

    >>> known_groups(["a", "b", "a"]).average(np.array([1.0, 5.0, 3.0]))
    array([2., 5., 2.])
    """
    import pandas as pd

    labels: Any = np.asarray(groups)
    if labels.ndim != 1:
        raise ArgumentError.must("groups", "be one label per patient", labels.shape)
    codes, _ = pd.factorize(labels)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        missing = f" has {int((codes < 0).sum())} missing labels (first at row {row}); name them."
        raise ArgumentError(Argument("groups"), missing)
    return Partitions(codes[None], sample_weight)
