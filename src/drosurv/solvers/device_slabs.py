"""Slabs on an accelerator: sorted there, centred there, and small enough that no step needs much more memory."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from drosurv.solvers.slab import Scheme, Slab, make_slab
from drosurv.target import BoolArray, FloatArray

if TYPE_CHECKING:
    from torch import Tensor

# Patients of a slab: enough to keep the device busy, few enough that what a step holds is small beside the features.
ROWS = 1 << 21


def device_slabs(
    X: Any,
    time: FloatArray,
    event: BoolArray,
    weight: FloatArray | None,
    in_first: BoolArray | None,
    scheme: Scheme,
    device: Any,
    rows: int = ROWS,
) -> tuple[list[Slab], FloatArray, Tensor]:
    """Slabs of n patients in any order, from the longest to the shortest times.

    Beside them come the centre (d,) of the features and, on the device, the order (n,) of the rows. Features are in
    float32 or float64, the rest is as in :func:`drosurv.solvers.slab.make_slab`. A slab holds about `rows` patients;
    equal times stay together.
    """
    import torch

    with warnings.catch_warnings():
        # A DataFrame's numbers are read-only, which torch warns about; nothing is written here.
        warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
        given, times = (torch.as_tensor(values, device=device) for values in (X, time))
    order = times.argsort(descending=True, stable=True)
    falling = times[order]
    centre = _centre(given, weight)
    # A sum is finite only if all its terms are.
    if not bool(torch.isfinite(centre).all()):
        column = int((~torch.isfinite(centre)).nonzero()[0])
        raise ValueError(f"X contains NaN or infinity (first in column {column}); drop or repair those rows.")
    events, weights, firsts = (
        None if values is None else torch.as_tensor(values, device=device)[order]
        for values in (event, weight, in_first)
    )
    slabs, start, n = [], 0, len(given)
    while start < n:
        stop = min(start + rows, n)
        # To the end of its last time: the next slab starts with another.
        stop = int((falling >= falling[stop - 1]).sum()) if stop < n else n
        own = slice(start, stop)
        features = (given[order[own]] - centre.to(given.dtype)).T.contiguous()
        parts = (None if values is None else values[own] for values in (events, weights, firsts))
        slabs.append(make_slab(features, falling[own], next(parts), next(parts), next(parts), scheme))
        start = stop
    return slabs, centre.cpu().numpy(), order


def _centre(X: Tensor, weight: FloatArray | None) -> Tensor:
    """Mean of the features in float64, without a copy of them."""
    import torch

    if weight is None:
        # A sum in double precision copies what it adds up: not all of X at a time.
        parts = (X[row : row + ROWS] for row in range(0, len(X), ROWS))
        return torch.stack([part.sum(0, dtype=torch.float64) for part in parts]).sum(0) / len(X)
    share = torch.as_tensor(weight / weight.sum(), dtype=X.dtype, device=X.device)
    return (share @ X).double()
