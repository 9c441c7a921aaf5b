"""Neighbourhoods that are groups known beforehand."""

from __future__ import annotations

from typing import Any

from drosurv.neighborhoods.partitions import Partitions
from drosurv.observation import label_codes
from drosurv.target import FloatArray


def known_groups(groups: Any, *, sample_weight: FloatArray | None = None) -> Partitions:
    """Average each patient over the members of its own group, by labels (n,), none missing, and weights (n,).

    >>> import numpy as np
    >>> known_groups(["a", "b", "a"]).average(np.array([1.0, 5.0, 3.0]))
    array([2., 5., 2.])
    """
    codes, _ = label_codes("groups", groups, len(groups))
    return Partitions(codes[None], sample_weight)
