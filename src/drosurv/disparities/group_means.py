"""Mean hazards of groups: what the group and the intersectional disparity are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from drosurv.target import BoolArray, FloatArray

# A numpy array or a torch tensor.
Array: TypeAlias = Any


class GroupMembership:
    """Who belongs to which group, as a matrix.

    Parameters
    ----------
    codes : (n,) or (R, n) int
        Group of each patient, 0 to ``n_groups - 1``.
    n_groups : int
        Groups without a patient are allowed.

    Attributes
    ----------
    member : (n, G) or (R, n, G) float64
        1 where the patient belongs to the group.
    size : (1, G) or (R, 1, G) float64
    present : (1, G) or (R, 1, G) bool
        Whether the group holds a patient; the others never enter a maximum.
    """

    member: FloatArray
    size: FloatArray
    present: BoolArray

    def __init__(self, codes: NDArray[np.int64], n_groups: int) -> None:
        codes = np.asarray(codes)
        if codes.ndim not in (1, 2) or codes.shape[-1] == 0:
            raise ValueError(f"codes must have shape (n,), or (R, n) for R training sets; got {codes.shape}.")
        if not np.issubdtype(codes.dtype, np.integer) or codes.min() < 0 or codes.max() >= n_groups:
            raise ValueError(
                f"codes must be integers from 0 to n_groups - 1 = {n_groups - 1}; got {codes.dtype} from "
                f"{codes.min()} to {codes.max()}. Number the groups first, for example with np.unique(..., "
                "return_inverse=True)."
            )
        self.codes = codes
        self.member = (codes[..., None] == np.arange(n_groups)).astype(np.float64)
        self.size = self.member.sum(axis=-2, keepdims=True)
        self.present = self.size > 0


def group_means(h: Array, member: Array, size: Array, *, smooth: bool) -> Array:
    """Mean hazard of each group.

    m_g = (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth, otherwise sum_{i in g} h_i / n_g

    Parameters
    ----------
    h : (..., B, n)
        Hazards, numpy or torch.
    member : (..., n, G)
    size : (..., 1, G)
    smooth : bool

    Returns
    -------
    (..., B, G)
        Of a group without a patient the value means nothing.
    """
    total = h @ member
    if smooth:
        return (total + 0.5) / (size + 1.0)
    return total / (size + (size == 0))
