"""Group labels of patients as integer codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, InputError, arg
from drosurv.patients.observation import in_pandas
from drosurv.patients.target import BoolArray, FloatArray, IntArray

Missing = Literal["group", "drop"]
MISSING_LABEL = "missing"
#: Attribute and group of all patients in tables.
EVERYONE, ALL = "overall", "all"


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each of n patients: the position of its label in `labels`, or -1 for a patient left out.

    The label of an intersection of several attributes is a tuple of labels. Messages call the groups `name`.
    """

    codes: IntArray
    labels: tuple[Any, ...]
    name: str = "groups"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def kept(self) -> BoolArray:
        """Patients that belong to a group, (n,) bool."""
        return self.codes >= 0

    def of_kept(self) -> Groups:
        """Return the groups without the patients left out."""
        return Groups(self.codes[self.kept], self.labels, self.name)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of the patients' values in each group, (n_groups,)."""
        totals = np.bincount(self.codes, weights=values, minlength=len(self))
        return totals.astype(np.float64, copy=False)


def parse_groups(
    groups: Any,
    n: int | None = None,
    *,
    name: str = "groups",
    argument: str = "",
    missing: Missing = "group",
    labels: Sequence[Any] | None = None,
    at_least: int = 2,
) -> Groups:
    """Turn labels (n,), or (n, J) whose intersections are the groups, into codes.

    Patients without a label form a group called ``"missing"``, or are left out (`missing` "drop"). `labels` are those
    that may occur, in the wanted order; one that no patient has is an empty group. By default they are the labels that
    occur, sorted. Raise if there are fewer groups than `at_least`. Messages call the labels `name`; `argument` is the
    argument that holds them, if it is called otherwise.

    Examples
    --------
    >>> parse_groups(["b", "a", None]).labels
    ('a', 'b', 'missing')
    >>> parse_groups(["b", "a", None], missing="drop").codes.tolist()
    [1, 0, -1]
    """
    if isinstance(groups, Groups):
        return _of_length(groups, n)
    if missing not in ("group", "drop"):
        raise InputError(f"missing must be 'group' or 'drop', got {missing!r}.")
    columns = [_coded(column, name, argument or name, missing) for column in _columns(groups, name)]
    coded = _of_length(columns[0] if len(columns) == 1 else intersections(columns, name), n)
    if labels is not None:
        coded = _relabelled(coded, tuple(labels), missing)
    if len(coded) < at_least:
        held = ", ".join(repr(label) for label in coded.labels) or "none"
        raise ArgumentError(
            argument or name,
            f"{name} must hold at least {at_least} groups, got {len(coded)} ({held}): "
            "a difference between groups needs patients of two.",
        )
    return coded


def ratio_by_group(groups: Groups, numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the sum of numerators over the sum of denominators in each group, (n_groups,); NaN for 0 / 0."""
    above, below = groups.sums(numerator), groups.sums(denominator)
    below[below == 0] = np.nan
    return above / below


def _of_length(groups: Groups, n: int | None) -> Groups:
    if n is not None and len(groups.codes) != n:
        raise InputError(
            f"{groups.name} has {len(groups.codes)} labels for {n} patients: give one row per patient."
        )
    return groups


def _columns(groups: Any, name: str) -> list[Any]:
    """Return the columns of labels in a table, an array or a list; raise for other values."""
    found: list[Any]
    groups = in_pandas(groups)
    if isinstance(groups, pd.DataFrame):
        found = [groups.iloc[:, j] for j in range(groups.shape[1])]
    elif isinstance(groups, np.ndarray) and groups.ndim == 2:
        found = list(groups.T)
    elif isinstance(groups, (np.ndarray, pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        found = [groups]
    elif isinstance(groups, Sequence) and not isinstance(groups, (str, bytes)):
        if len(groups) and isinstance(groups[0], list):
            return _columns(pd.DataFrame(groups, dtype=object), name)
        # As objects: np.asarray alone would turn ["a", nan] into the strings "a" and "nan".
        found = [pd.Series(groups, dtype=object)]
    else:
        raise InputError(
            f"{name} must be one label per patient (list, array or Series) or one column per attribute "
            f"(DataFrame or 2-D array), got {type(groups).__name__}."
        )
    if not found or any(np.ndim(column) != 1 for column in found):
        raise InputError(f"{name} must be one- or two-dimensional with at least one column.")
    if len(found[0]) == 0:
        raise InputError(f"{name} is empty: at least one patient is needed.")
    return found


def _coded(column: Any, name: str, argument: str, missing: Missing) -> Groups:
    """Return codes of the distinct labels: sorted, or in the order of a pandas Categorical."""
    if column.dtype.kind in "US":
        # NumPy's strings have no missing values, and pandas would convert each to an object first.
        found, codes = np.unique(column, return_inverse=True)
        return Groups(codes, tuple(found.tolist()), name)
    categories = isinstance(column.dtype, pd.CategoricalDtype)
    codes, found = pd.factorize(column, sort=categories)
    labels = tuple(found.tolist())
    dates: Any = found
    if isinstance(dates, pd.DatetimeIndex) and (dates == dates.normalize()).all():
        # Dates without a time of day.
        labels = tuple(one.date() for one in dates)
    if not categories:
        # Sorting the distinct labels here takes less time than ``pd.factorize(column, sort=True)``.
        order = _sorted_positions(found)
        ranks = np.empty(len(order) + 1, dtype=np.intp)
        ranks[order] = np.arange(len(order))
        # A missing label has code -1.
        ranks[-1] = -1
        codes, labels = ranks[codes], tuple(map(labels.__getitem__, order.tolist()))
    if missing == "drop" or codes.min() >= 0:
        return Groups(codes, labels, name)
    if MISSING_LABEL in labels:
        raise ArgumentError(
            argument,
            f"{name} has patients without a label and a group called {MISSING_LABEL!r}: rename that group, "
            f"or pass {arg('missing', 'drop')}.",
        )
    return Groups(np.where(codes < 0, len(labels), codes), (*labels, MISSING_LABEL), name)


def _sorted_positions(labels: Any) -> IntArray:
    """Return the positions of distinct labels from the first to the last, numbers before texts."""
    try:
        return np.asarray(labels).argsort()
    except TypeError:
        pass
    mixed = labels.tolist()
    try:
        return np.array(sorted(range(len(mixed)), key=lambda k: (isinstance(mixed[k], str), mixed[k])))
    except TypeError:
        # Labels that cannot be sorted, such as dates and numbers, stay in the order in which they occur.
        return np.arange(len(mixed))


def intersections(columns: Sequence[Groups], name: str) -> Groups:
    """Return the intersections that have a patient, each with the tuple of its labels."""
    kept = np.flatnonzero(np.logical_and.reduce([column.kept for column in columns]))
    cells: NDArray[np.intp] = np.zeros(len(kept), dtype=np.intp)
    first = cells
    for column in columns:
        # Renumbered after every attribute, so that many attributes with many labels do not overflow.
        combined = cells * len(column) + column.codes[kept]
        _, first, cells = np.unique(combined, return_index=True, return_inverse=True)
    codes = np.full(len(columns[0].codes), -1, dtype=np.intp)
    codes[kept] = cells
    labels = tuple(tuple(column.labels[column.codes[row]] for column in columns) for row in kept[first])
    return Groups(codes, labels, name)


def _relabelled(coded: Groups, wanted: tuple[Any, ...], missing: Missing) -> Groups:
    if missing == "group" and MISSING_LABEL in coded.labels and MISSING_LABEL not in wanted:
        wanted = (*wanted, MISSING_LABEL)
    unseen = [label for label in coded.labels if label not in wanted]
    if unseen:
        raise InputError(
            f"{coded.name} holds labels that are not among the known ones: {unseen}; "
            f"known are {list(wanted)}. Add them to labels, or map them to a known group."
        )
    position = {label: k for k, label in enumerate(wanted)}
    rank = np.array([*(position[label] for label in coded.labels), -1], dtype=np.intp)
    return Groups(rank[coded.codes], wanted, coded.name)
