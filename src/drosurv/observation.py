"""How rows were observed (entry times, strata, clusters, offsets, ids), folds of patients, and random generators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from drosurv.errors import ArgumentError, require, warn_caller
from drosurv.target import FloatArray, IntArray, Target

# So many strata without events are named.
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Observation:
    """What ``fit`` was given about the n rows besides features, events and times; None where not given.

    Each row is under observation from `entry` on, and numbered by its place in the sorted labels `strata`, by its
    cluster and by its patient; rows of one patient are a cluster, unless clusters were given. `offset` is added to the
    scores.
    """

    entry: FloatArray | None = None
    stratum: IntArray | None = None
    strata: tuple[Any, ...] = ()
    clusters: IntArray | None = None
    offset: FloatArray | None = None
    patient: IntArray | None = None

    def observe(self, target: Target) -> Target:
        """The target with its entry times and strata."""
        return Target(target.event, target.time, self.entry, self.stratum)

    def patients(self, target: Target) -> Target:
        """The target with one row per patient: seen from the first entry to the first event, or the last time."""
        if self.patient is None:
            return target
        first, until = ends_of_patients(self.patient, target)
        entry = None if target.entry is None else target.entry[first]
        return Target(target.event[until], target.time[until], entry)

    def depend(self, target: Target) -> bool:
        """Whether rows are alike within clusters: those given, or patients of several events.

        Clusters of one row each say nothing. Several rows of a patient with one event are one patient cut into
        stretches of time, and tell nothing twice.
        """
        if self.clusters is None or len(np.unique(self.clusters)) == len(self.clusters):
            return False
        if self.patient is None or not np.array_equal(self.patient, self.clusters):
            return True
        return bool(np.bincount(self.patient, target.event).max() > 1)

    def take(self, rows: NDArray[Any]) -> Observation:
        """The observation of the given rows; strata keep their numbers."""
        parts = (self.entry, self.stratum, self.clusters, self.offset, self.patient)
        entry, stratum, clusters, offset, patient = (None if part is None else part[rows] for part in parts)
        return Observation(entry, stratum, self.strata, clusters, offset, patient)


def in_pandas(labels: Any) -> Any:
    """A table or labels of another data frame library, such as polars, as pandas holds them; else unchanged."""
    if isinstance(labels, (pd.DataFrame, pd.Series, pd.Index, np.ndarray)) or not hasattr(
        labels, "__getitem__"
    ):
        return labels
    if hasattr(labels, "columns"):
        return pd.DataFrame({str(name): labels[name].to_list() for name in labels.columns}, dtype=object)
    if hasattr(labels, "to_list"):
        return pd.Series(labels.to_list(), name=getattr(labels, "name", None) or None, dtype=object)
    return labels


def ends_of_patients(patient: IntArray, target: Target) -> tuple[IntArray, IntArray]:
    """First row of each patient, and the row that the first event, or else the end of observation, is in."""
    event = target.event
    first = np.lexsort((target.time, patient))
    until = np.lexsort((np.where(event, target.time, -target.time), ~event, patient))
    begins = np.flatnonzero(np.diff(patient[first], prepend=-1))
    return first[begins], until[begins]


def parse_observation(
    target: Target,
    *,
    entry: Any = None,
    strata: Any = None,
    clusters: Any = None,
    offset: Any = None,
    id: Any = None,
) -> Observation:
    """Check what ``fit`` was given about the n rows of a target.

    Entry times lie before the rows' own, labels (strata, clusters, id) are numbers or texts, none missing, and offsets
    are finite.
    """
    n = len(target)
    since = None if entry is None else entry_times(entry, target)
    stratum, labels = (None, ()) if strata is None else label_codes("strata", strata, n)
    if stratum is not None:
        _mention_silent(stratum, labels, target)
    patient = None
    if id is not None:
        patient, ids = label_codes("id", id, n)
        _check_rows_of_patients(patient, ids, since, target)
    cluster = patient if clusters is None else label_codes("clusters", clusters, n)[0]
    known = None if offset is None else numbers("offset", offset, n)
    return Observation(since, stratum, labels, cluster, known, patient)


def numbers(name: str, values: Any, n: int) -> FloatArray:
    """Finite numbers (n,) of an argument."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(name, f"{name} must hold numbers, got {array.dtype}.")
    array = array.astype(np.float64)
    require(array.shape == (n,), name, f"have one value per row, shape ({n},)", array.shape)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ArgumentError(
            name,
            f"{name} contains {len(bad)} NaN or infinite values (first at row {bad[0]}); drop or repair "
            "those rows.",
        )
    return array


def with_offset(scores: FloatArray, offset: Any, *, fitted_with: bool) -> FloatArray:
    """Scores (n,) with the known effects, which are given where the model was fitted with them and only there."""
    if fitted_with and offset is None:
        raise ArgumentError("offset", "the model was fitted with an offset: give offset, zeros for none.")
    if offset is not None and not fitted_with:
        raise ArgumentError("offset", "the model was fitted without an offset; leave offset out.")
    return scores if offset is None else scores + numbers("offset", offset, len(scores))


def label_codes(name: str, values: Any, n: int) -> tuple[IntArray, tuple[Any, ...]]:
    """Number (n,) of each row's label, and the labels, sorted; a missing one is an error."""
    given = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    require(given.shape == (n,), name, f"have one label per row, shape ({n},)", given.shape)
    series = pd.Series(given)
    missing = np.flatnonzero(series.isna())
    if len(missing):
        raise ArgumentError(
            name,
            f"{name} contains {len(missing)} missing labels (first at row {missing[0]}): nobody knows whom "
            "those rows belong with. Drop them, or give each a label of its own.",
        )
    codes, found = pd.factorize(series, sort=True)
    return codes.astype(np.intp), tuple(found.tolist())


def entry_times(entry: Any, target: Target) -> FloatArray:
    """Finite times (n,), each before the row's own."""
    since = numbers("entry", entry, len(target))
    late = np.flatnonzero(since >= target.time)
    if len(late):
        row = late[0]
        raise ArgumentError(
            "entry",
            f"entry must be before the time of the row; it is not in {len(late)} rows (first at row "
            f"{row}: entry {since[row]}, time {target.time[row]}). Such a row is never at risk: drop it, or correct "
            "its times.",
        )
    return since


def _mention_silent(stratum: IntArray, labels: tuple[Any, ...], target: Target) -> None:
    events = np.bincount(stratum, target.event, minlength=len(labels))
    silent = [str(labels[k]) for k in np.flatnonzero(events == 0)]
    if silent:
        others = f" and {len(silent) - _NAMED} others" if len(silent) > _NAMED else ""
        warn_caller(
            f"no event in stratum {', '.join(silent[:_NAMED])}{others}: its patients say nothing about the "
            "coefficients, and no curve can be predicted for them."
        )


def _check_rows_of_patients(
    patient: IntArray, labels: tuple[Any, ...], entry: FloatArray | None, target: Target
) -> None:
    """One patient's rows (start, stop] must not overlap."""
    order = np.lexsort((target.time, patient))
    same = patient[order][1:] == patient[order][:-1]
    if not same.any():
        return
    if entry is None:
        first = order[np.flatnonzero(same)[0]]
        raise ArgumentError(
            "id",
            f"id names several rows for {labels[patient[first]]!r}, but there are no entry times: give "
            f"each row's start as entry.",
        )
    over = same & (entry[order][1:] < target.time[order][:-1])
    if over.any():
        later = order[1:][over][0]
        earlier = order[:-1][over][0]
        raise ArgumentError(
            "id",
            f"rows {earlier} and {later} of id {labels[patient[later]]!r} overlap: ({entry[earlier]}, "
            f"{target.time[earlier]}] and ({entry[later]}, {target.time[later]}]. A patient cannot be at risk twice "
            "at one time.",
        )


def generator(random_state: Any) -> np.random.Generator:
    """A random generator, from an int, None, or a generator, which is returned as it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise no_seed(random_state) from error


def no_seed(random_state: Any) -> ArgumentError:
    """Return the error of a `random_state` that is no seed."""
    return ArgumentError.must("random_state", "be a whole number that is not negative, or None", random_state)


def draw_folds(
    n: int,
    n_folds: int,
    rng: np.random.Generator,
    event: ArrayLike | None = None,
    clusters: Any = None,
    strata: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """Draw a random fold, 0 to `n_folds` - 1, for each of n rows.

    Parameters
    ----------
    n : int
        Number of rows.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Source of randomness.
    event : (n,) bool, optional
        Event flags; the events are spread evenly over the folds. Without them the folds do not depend on outcomes,
        as the repair of a frozen model requires.
    clusters : (n,) labels, optional
        Rows with the same label, such as those of one patient, share a fold; a cluster counts as an event if one of
        its rows has one.
    strata : (n,) int, optional
        Stratum of each row, from 0; the events of each stratum are spread evenly.

    Examples
    --------
    >>> event = np.array([True, False] * 10)
    >>> folds = draw_folds(20, 5, np.random.default_rng(0), event)
    >>> np.bincount(folds, event).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    key = np.zeros(n, dtype=np.intp) if event is None else np.asarray(event).astype(np.intp)
    if strata is not None:
        key = key * (1 + np.asarray(strata, dtype=np.intp))
    if clusters is not None:
        labels, cluster = np.unique(clusters, return_inverse=True)
        of_cluster = np.zeros(len(labels), dtype=np.intp)
        np.maximum.at(of_cluster, cluster, key)
        return _deal(of_cluster, n_folds, rng)[cluster]
    return _deal(key, n_folds, rng)


def _deal(key: NDArray[np.intp], n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Deal rows to the folds in turn, those of equal keys after each other in random order."""
    folds = np.empty(len(key), dtype=np.intp)
    folds[np.lexsort((rng.random(len(key)), key))] = np.arange(len(key)) % n_folds
    return folds
