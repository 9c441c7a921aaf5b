"""Operations that have different names in NumPy and torch, for code that takes arrays of either library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from drosurv.patients.arrays import on_host

# An array of NumPy or torch.
Array = Any


def is_numpy(array: Array) -> bool:
    """Whether something is a NumPy array or scalar."""
    return isinstance(array, (np.ndarray, np.generic))


def library(array: Array) -> Any:
    """Return the library of an array: NumPy or torch."""
    return np if is_numpy(array) else sys.modules["torch"]


def exp(array: Array) -> Array:
    """Return the elementwise exponential."""
    return library(array).exp(array)


def log(array: Array) -> Array:
    """Return the elementwise logarithm."""
    return library(array).log(array)


def double(array: Array) -> Array:
    """Return the array in double precision."""
    return array.astype(np.float64, copy=False) if is_numpy(array) else array.double()


def in_precision_of(X: Array, array: Array) -> Array:
    """Return an array in the precision of the features X."""
    return array.astype(X.dtype, copy=False) if is_numpy(X) else array.to(X.dtype)


def array_like(X: Array, vector: Any) -> Array:
    """Return numbers as an array of the same library, precision and device as X."""
    if is_numpy(X):
        return np.asarray(vector, dtype=X.dtype)
    import torch

    return torch.as_tensor(vector, dtype=X.dtype, device=X.device)


def in_numpy(array: Array) -> Any:
    """Return the array as a NumPy array in double precision."""
    return on_host(double(array))


def stack(parts: Sequence[Array]) -> Array:
    """Stack numbers to a vector, or vectors to the rows of a matrix."""
    return library(parts[0]).stack(list(parts))


def stack_in_numpy(vectors: Sequence[Array]) -> Any:
    """Stack vectors to the rows of a NumPy matrix, with one copy from the device."""
    return in_numpy(stack(vectors))


# Length of the pieces that an accelerator sums in parallel: summing few long rows would use little of it.
PIECE = 4096


def cumulative_sums_at(rows: Array, before: Array, positions: Array) -> Array:
    """Return `before` (d,) plus the cumulative sums of each row (d, m) at ascending positions (k,), as (d, k)."""
    if is_numpy(rows) or rows.shape[1] < PIECE:
        out = rows.cumsum(-1)[:, positions]
        out += before[:, None]
        return out
    import torch

    whole = rows.shape[1] - rows.shape[1] % PIECE
    within = rows[:, :whole].view(len(rows), -1, PIECE).cumsum(-1)
    reached = torch.cat([before[:, None], within[..., -1]], dim=1).cumsum(-1)
    cut = int((positions < whole).sum())
    early, late = positions[:cut], positions[cut:]
    out = rows.new_empty((len(rows), len(positions)))
    torch.add(within.flatten(1)[:, early], reached[:, early // PIECE], out=out[:, :cut])
    torch.add(rows[:, whole:].cumsum(-1)[:, late - whole], reached[:, -1:], out=out[:, cut:])
    return out


def flatnonzero(flags: Array) -> Array:
    """Return the positions of the flags that are true."""
    return np.flatnonzero(flags) if is_numpy(flags) else flags.nonzero().reshape(-1)


def searchsorted_right(ascending: Array, values: Array) -> Array:
    """Return for each value how many of the ascending numbers are at most that value."""
    return library(ascending).searchsorted(ascending, values, side="right")


def flip(array: Array) -> Array:
    """Return the array in reverse order."""
    return library(array).flip(array, (0,))


def sum_by_position(positions: Array, values: Array, like: Array) -> Array:
    """Return an array of the shape of `like` with the sums of the values at each position."""
    if is_numpy(like):
        return np.bincount(positions, weights=values, minlength=len(like))
    import torch

    return torch.zeros_like(like).index_add_(0, positions, values)


def equal_blocks(ascending: Array) -> tuple[Array, Array, Array, Array]:
    """Find blocks of equal numbers among ascending numbers (E,).

    Return the block of each number (E,), the first position of each block (K,), and for each number the size of its
    block and how many numbers of the block come before it, both (E,).
    """
    if is_numpy(ascending):
        _, starts, block, counts = np.unique(
            ascending, return_index=True, return_inverse=True, return_counts=True
        )
        return block, starts, counts[block], np.arange(len(ascending)) - starts[block]
    import torch

    _, block, counts = torch.unique_consecutive(ascending, return_inverse=True, return_counts=True)
    starts = counts.cumsum(0) - counts
    return block, starts, counts[block], torch.arange(len(ascending), device=ascending.device) - starts[block]


def sum_by_block(values: Array, block: Array, starts: Array) -> Array:
    """Return the sums (..., K) of values (..., E) over consecutive blocks."""
    if is_numpy(values):
        return np.add.reduceat(values, starts, axis=-1)
    return values.new_zeros((*values.shape[:-1], len(starts))).index_add_(-1, block, values)


def subtract_at(array: Array, positions: Array, values: Array) -> Array:
    """Return the array with values subtracted at distinct positions."""
    out = array.copy() if is_numpy(array) else array.clone()
    out[positions] -= values
    return out
