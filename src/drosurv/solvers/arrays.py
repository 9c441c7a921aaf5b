"""The few operations that NumPy and torch spell differently, for code that takes arrays of either."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from drosurv.solvers.device import is_tensor as is_tensor

# An array of NumPy or torch.
Array = Any


def is_numpy(array: Array) -> bool:
    """Whether the array is NumPy's, or a number of one."""
    return isinstance(array, (np.ndarray, np.generic))


def library(array: Array) -> Any:
    """NumPy or torch, for what both spell alike."""
    return np if is_numpy(array) else sys.modules["torch"]


def exp(array: Array) -> Array:
    """Exponential of every number."""
    return library(array).exp(array)


def log(array: Array) -> Array:
    """Logarithm of every number."""
    return library(array).log(array)


def double(array: Array) -> Array:
    """The array in double precision."""
    return array.astype(np.float64, copy=False) if is_numpy(array) else array.double()


def in_precision_of(X: Array, array: Array) -> Array:
    """A vector in the features' precision."""
    return array.astype(X.dtype, copy=False) if is_numpy(X) else array.to(X.dtype)


def vector_beside(X: Array, vector: Any) -> Array:
    """Numbers of this process beside an array, in its precision."""
    if is_numpy(X):
        return np.asarray(vector, dtype=X.dtype)
    import torch

    return torch.as_tensor(vector, dtype=X.dtype, device=X.device)


def on_host(array: Any) -> Any:
    """A tensor as an array of NumPy, in the memory of the processor; anything else as it is."""
    return array.detach().cpu().numpy() if is_tensor(array) else array


def in_numpy(array: Array) -> Any:
    """The array in NumPy, in double precision."""
    return on_host(double(array))


def joined(parts: Sequence[Array]) -> Array:
    """Single numbers as one vector, vectors as the rows of one matrix."""
    return library(parts[0]).stack(list(parts))


def fetched(vectors: Sequence[Array]) -> Any:
    """Vectors as the rows of one matrix in NumPy, brought here all at once."""
    return in_numpy(joined(vectors))


# Numbers that an accelerator adds up in one go. It works on rows side by side, and a few long ones leave it idle.
STRETCH = 4096


def running_sums_at(rows: Array, before: Array, places: Array) -> Array:
    """Running sums along each row (d, m), on top of what came before (d,), at rising places (k,)."""
    if is_numpy(rows) or rows.shape[1] < STRETCH:
        out = rows.cumsum(-1)[:, places]
        out += before[:, None]
        return out
    import torch

    whole = rows.shape[1] - rows.shape[1] % STRETCH
    within = rows[:, :whole].view(len(rows), -1, STRETCH).cumsum(-1)
    reached = torch.cat([before[:, None], within[..., -1]], dim=1).cumsum(-1)
    cut = int((places < whole).sum())
    early, late = places[:cut], places[cut:]
    out = rows.new_empty((len(rows), len(places)))
    torch.add(within.flatten(1)[:, early], reached[:, early // STRETCH], out=out[:, :cut])
    torch.add(rows[:, whole:].cumsum(-1)[:, late - whole], reached[:, -1:], out=out[:, cut:])
    return out


def set_places(flags: Array) -> Array:
    """Places of the flags that are set."""
    return np.flatnonzero(flags) if is_numpy(flags) else flags.nonzero().reshape(-1)


def counted_up_to(rising: Array, values: Array) -> Array:
    """How many of the rising numbers are at most each value."""
    return library(rising).searchsorted(rising, values, side="right")


def flipped(array: Array) -> Array:
    """The array from back to front."""
    return library(array).flip(array, (0,))


def summed_by_place(places: Array, values: Array, like: Array) -> Array:
    """Values summed by place."""
    if is_numpy(like):
        return np.bincount(places, weights=values, minlength=len(like))
    import torch

    return torch.zeros_like(like).index_add_(0, places, values)


def blocks_of_equals(rising: Array) -> tuple[Array, Array, Array, Array]:
    """Blocks of equal numbers: the block of each (E,), its first place (K,), its size (E,) and those before (E,)."""
    if is_numpy(rising):
        _, starts, block, counts = np.unique(
            rising, return_index=True, return_inverse=True, return_counts=True
        )
        return block, starts, counts[block], np.arange(len(rising)) - starts[block]
    import torch

    _, block, counts = torch.unique_consecutive(rising, return_inverse=True, return_counts=True)
    starts = counts.cumsum(0) - counts
    return block, starts, counts[block], torch.arange(len(rising), device=rising.device) - starts[block]


def summed_by_block(values: Array, block: Array, starts: Array) -> Array:
    """Values (..., E) summed over blocks that follow each other, (..., K)."""
    if is_numpy(values):
        return np.add.reduceat(values, starts, axis=-1)
    return values.new_zeros((*values.shape[:-1], len(starts))).index_add_(-1, block, values)


def less(array: Array, places: Array, values: Array) -> Array:
    """Return the array minus values at distinct positions."""
    out = array.copy() if is_numpy(array) else array.clone()
    out[places] -= values
    return out
