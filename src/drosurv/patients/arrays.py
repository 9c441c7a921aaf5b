"""Arrays with one value for each row: numbers and labels, checked; their order, and their rows in batches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, arg, require, row_number
from drosurv.presentation import counted

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

# For more times than this, sorting them before a lookup is several times faster.
_SORT_BEFORE_LOOKUP = 10_000
# For fewer numbers than this, NumPy's stable sort is as fast as any.
_MANY_TO_SORT = 1_500
# Times that differ by a smaller share are equal. Of a million times that are drawn at random about five are merged.
_ROUNDING = 1e-11
# Whether more times than this have rounding errors is seen in so many of them: sorting all would take as long as a fit.
_MANY_TIMES, _SAMPLED_TIMES = 200_000, 20_000


def is_tensor(array: Any) -> bool:
    """Return whether something is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def on_host(array: Any) -> Any:
    """Return a tensor as a NumPy array on the CPU, and anything else unchanged."""
    return array.detach().cpu().numpy() if is_tensor(array) else array


def as_numbers(values: Any) -> FloatArray:
    """Return numbers as an array, or a single NaN if some are no numbers; it fails every check of a range."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([np.nan])


def numbers(name: str, values: Any, n: int) -> FloatArray:
    """Return an argument as finite numbers (n,); raise otherwise."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and all(isinstance(value, Real) for value in array.ravel()):
        # A column of a table may hold numbers as objects.
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(name, f"{arg(name)} must hold numbers, got {array.dtype}.")
    array = array.astype(np.float64)
    require(array.shape == (n,), name, f"have one value per row, shape ({n},)", array.shape)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ArgumentError(
            name,
            f"{arg(name)} contains {counted(len(bad), 'NaN or infinite value')} (first at row "
            f"{row_number(bad[0], values)}); drop or correct such rows.",
        )
    return array


def as_labels(name: str, values: Any, n: int) -> NDArray[Any]:
    """Return the labels (n,) of a field, ids or clusters, as whole numbers or fixed-width text; raise otherwise."""
    given: NDArray[Any]
    if hasattr(values, "to_numpy"):
        given = values.to_numpy()
    else:
        given = np.asarray(values)
        if given.dtype.kind in "US" and not isinstance(values, np.ndarray):
            # A list of texts with a missing value, or a number, has become texts.
            given = np.array(list(values), dtype=object)
    require(given.shape == (n,), name, f"have one label per row, shape ({n},)", given.shape)
    if given.dtype.kind in "OfMm":
        require_labels(name, given, values)
    if given.dtype.kind == "b":
        return given.astype(np.int64)
    if given.dtype.kind in "iuUS":
        return given
    whole = given.dtype.kind == "f" and bool((given == np.floor(given)).all() and (abs(given) < 2**53).all())
    if whole or (given.dtype.kind == "O" and all(isinstance(label, Integral) for label in given)):
        try:
            return given.astype(np.int64)
        except OverflowError:
            pass
    if given.dtype.kind == "O" and all(isinstance(label, str) for label in given):
        return given.astype(np.str_)
    if given.dtype.kind == "O":
        wrong = [not isinstance(label, (str, Integral)) for label in given]
        wrong = (
            wrong if any(wrong) else [isinstance(label, str) != isinstance(given[0], str) for label in given]
        )
    else:
        wrong = [
            given.dtype.kind != "f" or label != np.floor(label) or abs(label) >= 2**53 for label in given
        ]
    row, dates = int(np.argmax(wrong)), given.dtype.kind in "mM"
    label = (given.astype(f"{given.dtype.kind}8[s]").astype(str) if dates else given)[row : row + 1].tolist()[
        0
    ]
    raise ArgumentError(
        name,
        f"{arg(name)} must hold whole numbers or texts, and not both; row {row_number(row, values)} has "
        f"{label!r}. Write all labels as texts, for example with astype(str).",
    )


def require_labels(name: str, given: NDArray[Any], values: Any = None) -> None:
    """Raise if a label (n,) is missing; `values` are the labels as the user gave them."""
    import pandas as pd  # Here, because commands that compute nothing start without it.

    missing = np.flatnonzero(pd.isna(given))
    if len(missing):
        raise ArgumentError(
            name,
            f"{arg(name)} contains {counted(len(missing), 'missing label')} (first at row "
            f"{row_number(missing[0], values)}): drop such rows, or give each a label of its own.",
        )


def require_before(entry: FloatArray, time: FloatArray, values: Any = None) -> None:
    """Raise unless entry times (n,) are before the times of the rows; `values` are those that the user gave."""
    late = np.flatnonzero(entry >= time)
    if len(late):
        row = late[0]
        raise ArgumentError(
            "entry",
            f"{arg('entry')} must be before the time of the row; it is not in {counted(len(late), 'row')} (first at "
            f"row {row_number(row, values)}: entry {entry[row]}, time {time[row]}). Such a row is never at risk: "
            "drop it, or correct its times.",
        )


def require_not_negative(name: str, weight: FloatArray, values: Any = None) -> None:
    """Raise if a weight (n,) is negative; `values` are the weights as the user gave them."""
    if (weight < 0).any():
        row = int((weight < 0).argmax())
        raise ArgumentError(
            name,
            f"{arg(name)} must be finite and not negative, got {weight[row]} at row {row_number(row, values)}: correct "
            "it, or drop the row.",
        )


def stable_order(values: FloatArray) -> IntArray:
    """Return the positions (n,) of values (n,) from smallest to largest; equal values keep their order."""
    n = len(values)
    if n < _MANY_TO_SORT or (values[1:] >= values[:-1]).all():
        return np.argsort(values, kind="stable")
    # Sorting whole numbers takes half the time: the bits of each value, with its position for the lowest bits. Adding
    # 0.0 makes -0.0 equal to 0.0.
    bits, keys = n.bit_length(), (values + 0.0).view(np.int64)
    keys ^= (keys >> 63) & np.int64(2**63 - 1)
    order = (keys >> bits << bits) | np.arange(n)
    order.sort()
    order &= (1 << bits) - 1
    ordered = values[order]
    # Numbers that differ in their lowest bits only are out of order.
    return order if (ordered[1:] >= ordered[:-1]).all() else order[np.argsort(ordered, kind="stable")]


def same_times(first: FloatArray, second: FloatArray) -> BoolArray:
    """Return whether times (n,) are equal up to rounding errors."""
    same: BoolArray = np.abs(first - second) <= _ROUNDING * np.abs(second)
    return same


def without_rounding(times: FloatArray) -> FloatArray:
    """Return times (n,), of which those that are equal up to rounding errors are equal: the smallest of them.

    Differences such as 0.3 - 0.1 and 0.2 are no order of events.

    >>> without_rounding(np.array([0.3 - 0.1, 0.2, 0.5])).tolist()
    [0.19999999999999998, 0.19999999999999998, 0.5]
    """
    if len(times) > _MANY_TIMES:
        some = np.random.default_rng(0).integers(len(times), size=_SAMPLED_TIMES)
        if not _rounded(np.sort(times[some])).any():
            return times
    # Sorting the numbers alone takes a tenth of the time of sorting their positions, which few data need.
    ordered = np.sort(times)
    if not _rounded(ordered).any():
        return times
    order = stable_order(times)
    first = np.append(True, ~same_times(ordered[:-1], ordered[1:]))
    found = np.empty_like(ordered)
    found[order] = ordered[first][np.cumsum(first) - 1]
    return found


def _rounded(ordered: FloatArray) -> BoolArray:
    """Return whether each of the ascending times (n,) but the last differs from the next by rounding errors only."""
    before, after = ordered[:-1], ordered[1:]
    rounded: BoolArray = same_times(before, after) & (before != after)
    return rounded


def set_to(values: FloatArray, known: FloatArray, within: float = _ROUNDING) -> FloatArray:
    """Return numbers (n,), of which each that is one of the ascending `known` (K,) up to rounding is set to it.

    >>> set_to(np.array([0.1 + 0.2, 0.4]), np.array([0.2, 0.3])).tolist()
    [0.3, 0.4]
    """
    if len(known) == 0:
        return values
    right = np.minimum(places_in(known, values, "left"), len(known) - 1)
    for near in (known[right], known[np.maximum(right - 1, 0)]):
        values = np.where(np.abs(values - near) <= within * np.abs(near), near, values)
    return values


def places_in(times: FloatArray, at: FloatArray, side: Literal["left", "right"]) -> IntArray:
    """Return ``np.searchsorted(times, at, side)``, for many times `at` in less time."""
    if at.ndim != 1 or len(at) <= _SORT_BEFORE_LOOKUP:
        return np.searchsorted(times, at, side=side)
    order = stable_order(at)
    found = np.empty(len(at), dtype=np.intp)
    found[order] = np.searchsorted(times, at[order], side=side)
    return found


def batches(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` of n rows."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def inverse(order: IntArray) -> IntArray:
    """Return the position (n,) of each row in an order of all rows (n,)."""
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    return position


def distinct(ascending: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct values (K,) of ascending ones (m,), and the index (m,) of each among them."""
    new = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new], np.cumsum(new) - 1
