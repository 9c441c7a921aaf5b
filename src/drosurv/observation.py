"""How rows were observed (entry times, strata, clusters, offsets, ids, weights), folds, and how inference is made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from drosurv.errors import ArgumentError, arg, as_number, require, require_extra, row_number, warn_caller
from drosurv.presentation import counted
from drosurv.target import FloatArray, IntArray, Target, of_any_cause, parse_target

# Packages whose tables are converted.
_DATA_FRAME_LIBRARIES = frozenset(
    ("polars", "pyarrow", "modin", "cudf", "dask", "duckdb", "ibis", "pyspark", "narwhals")
)
# Largest number of strata without events that a warning names.
_NAMED = 5
#: Of more patients, repairs, remedies and drawn curves use a random sample, and replicates of metrics.
MANY_PATIENTS, MANY_RESAMPLED = 100_000, 20_000
# A sample has so many events, but at most `MANY_PATIENTS`. Standard errors of 2,000 events are within 2 %; those of 500
# replicates within 3 %.
_SAMPLED_EVENTS, _RESAMPLED_EVENTS = 20_000, 2_000
# A sample in which groups are compared has about so many patients of the smallest group.
_SAMPLED_OF_SMALLEST = 150


@dataclass(frozen=True, eq=False)
class Observation:
    """Arguments of ``fit`` about the n rows besides features, events and times; None if not given.

    Each row is under observation from its `entry` time on. `stratum`, `clusters` and `patient` are numbers of each
    row's stratum (in the sorted labels `strata`), cluster and patient; rows of one patient are a cluster, unless
    clusters were given. `offset` is added to the scores.
    """

    entry: FloatArray | None = None
    stratum: IntArray | None = None
    strata: tuple[Any, ...] = ()
    clusters: IntArray | None = None
    offset: FloatArray | None = None
    patient: IntArray | None = None

    def patients(self, target: Target) -> Target:
        """Return the target with one row per patient: from the first entry to the first event, or the last time."""
        if self.patient is None:
            return target
        first, until = ends_of_patients(self.patient, target)
        entry = None if target.entry is None else target.entry[first]
        return Target(target.event[until], target.time[until], entry)

    def depend(self, target: Target) -> bool:
        """Whether rows may be correlated: with clusters of several rows, or patients with several events.

        Several rows of a patient with at most one event are intervals of one patient's time, and are not correlated.
        """
        if self.clusters is None or len(np.unique(self.clusters)) == len(self.clusters):
            return False
        if self.patient is None or not np.array_equal(self.patient, self.clusters):
            return True
        return bool(np.bincount(self.patient, target.event).max() > 1)

    def take(self, rows: NDArray[Any]) -> Observation:
        """Return the observation of some rows; strata keep their numbers."""
        given = vars(self).items()
        parts: dict[str, Any] = {name: part[rows] for name, part in given if isinstance(part, np.ndarray)}
        return replace(self, **parts)


def given_arguments(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Rows:
    """Arguments about the n rows of predicted patients besides features, events and times; None if not given.

    Each row is under observation from its `entry` time on. `strata` and `offset` are for models that were fitted with
    them. `id` names the patient of each row, `clusters`, called `clusters_name` if they have a name, different patients
    who may be alike; `weight` is the number of copies that a row stands for. `labels` are those of
    :func:`drosurv.errors.row_labels`.
    """

    entry: FloatArray | None = None
    strata: NDArray[Any] | None = None
    offset: FloatArray | None = None
    id: NDArray[Any] | None = None
    clusters: NDArray[Any] | None = None
    weight: FloatArray | None = None
    labels: NDArray[Any] | None = None
    clusters_name: str = ""

    @staticmethod
    def parse(
        y: Any,
        *,
        entry: Any = None,
        strata: Any = None,
        offset: Any = None,
        id: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
    ) -> Rows:
        """Check that each argument has one value per row of y: entry times before the times, no missing labels.

        All rows of a patient must be in one cluster. The name of the clusters is that of a column.
        """
        target = parse_target(of_any_cause(y))
        n = len(target)
        labels = {"strata": strata, "id": id, "clusters": clusters}
        for name, given in labels.items():
            if given is not None:
                label_codes(name, given, n)
                labels[name] = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
        if id is not None and clusters is not None:
            check_clusters(label_codes("id", id, n)[0], id, clusters)
        called = getattr(clusters, "name", None)
        return Rows(
            entry=None if entry is None else entry_times(entry, target),
            offset=None if offset is None else numbers("offset", offset, n),
            weight=None if sample_weight is None else copies(sample_weight, n),
            clusters_name="" if called is None else str(called),
            **labels,
        )

    @property
    def for_models(self) -> dict[str, Any]:
        """The arguments that a model's predictions may need: strata and offset, as far as given."""
        return {name: value for name, value in self.observed.items() if name != "entry"}

    @property
    def observed(self) -> dict[str, Any]:
        """Entry times, strata and offset, as far as given."""
        return given_arguments(entry=self.entry, strata=self.strata, offset=self.offset)

    @property
    def for_cox(self) -> dict[str, Any]:
        """Entry times, strata, offset and clusters, as far as given."""
        return self.observed | given_arguments(clusters=self.cluster_codes)

    @property
    def copies(self) -> IntArray | None:
        """Row numbers, each repeated as often as its weight says; None if all weights are 1."""
        if self.weight is None or (self.weight == 1).all():
            return None
        return np.repeat(np.arange(len(self.weight)), self.weight.astype(np.intp))

    @property
    def patient_codes(self) -> IntArray | None:
        """Number (n,) of each row's patient; None without ids."""
        return None if self.id is None else label_codes("id", self.id, len(self.id))[0]

    @property
    def cluster_codes(self) -> IntArray | None:
        """Number (n,) of each row's cluster or, without clusters, of its patient; None if all differ.

        Sums, variances, replicates and folds go by it.
        """
        if self.clusters is None:
            codes = self.patient_codes
        else:
            codes = label_codes("clusters", self.clusters, len(self.clusters))[0]
        return None if codes is None or np.bincount(codes).max(initial=0) < 2 else codes

    @property
    def n_clusters(self) -> int:
        """Number of the given clusters; 0 without clusters."""
        return 0 if self.clusters is None else len(pd.unique(self.clusters))

    def only(self, names: Collection[str]) -> Rows:
        """Return the rows with only those of strata and offset that are named."""
        left_out: dict[str, Any] = {name: None for name in ("strata", "offset") if name not in names}
        return replace(self, **left_out)

    def take(self, rows: Any) -> Rows:
        """Return the arguments of some rows: indices, a mask or a slice."""
        given = vars(self).items()
        parts: dict[str, Any] = {name: part[rows] for name, part in given if isinstance(part, np.ndarray)}
        return replace(self, **parts)


@dataclass(frozen=True)
class Inference:
    """How intervals and tests are computed.

    `level` is the coverage of intervals, `n_bootstrap` the number of replicates, `random_state` their seed. `n_jobs`
    replicates are computed at once, `verbose` shows a progress bar; by default one per processor core, and in a
    terminal. Findings are adjusted for `further_tests` of the number of events, too.
    """

    level: float = 0.95
    n_bootstrap: int = 500
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool | None = None
    further_tests: int = 0

    def __post_init__(self) -> None:
        """Raise for a level outside of (0, 1), or a number of replicates that is 1, negative or not whole."""
        require(0 < as_number(self.level) < 1, "level", "lie between 0 and 1", self.level)
        number = self.n_bootstrap
        whole = isinstance(number, (int, float, np.integer)) and number >= 0 and number % 1 == 0
        require(whole and number != 1, "n_bootstrap", "be 0 or a whole number from 2", number)
        object.__setattr__(self, "n_bootstrap", int(number))


def copies(sample_weight: Any, n: int) -> FloatArray:
    """Return the weights (n,) of rows, the number of copies that each stands for: whole numbers, not all of them 0."""
    weight = weights(sample_weight, n)
    wrong = weight[weight % 1 != 0]
    require(
        not len(wrong), "sample_weight", "hold whole numbers, the copies of each row", next(iter(wrong), None)
    )
    if not weight.any():
        raise ArgumentError(
            "sample_weight",
            f"{arg('sample_weight')} is 0 in every row, so that no patient counts: give patients who count a weight "
            "of at least 1.",
        )
    return weight


def weights(sample_weight: Any, n: int) -> FloatArray:
    """Return the weights (n,) of rows, finite and not negative."""
    weight = numbers("sample_weight", sample_weight, n)
    if (weight < 0).any():
        row = int((weight < 0).argmax())
        raise ArgumentError(
            "sample_weight",
            f"sample_weight must be finite and not negative, got {weight[row]} at row "
            f"{row_number(row, sample_weight)}.",
        )
    return weight


def require_rows(name: str, table: Any, n: int) -> None:
    """Raise unless a table or an array, the argument `name`, has a row for each of n patients."""
    rows = (getattr(table, "shape", None) or (n,))[0]
    if rows != n:
        raise ArgumentError(name, f"{arg(name)}: the table has {rows} rows, but y has {n} patients.")


def in_pandas(table: Any) -> Any:
    """Convert a table or a column of another data frame library, such as polars, to pandas; return others unchanged.

    Enums keep the order of their levels. A lazy table is an error that says to collect it.
    """
    if type(table).__module__.partition(".")[0] not in _DATA_FRAME_LIBRARIES:
        return table
    require_extra("narwhals", "polars", f"a table of type {type(table).__name__}")
    import narwhals as nw

    found = nw.from_native(table, allow_series=True, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        raise ArgumentError(
            "X",
            f"a {type(table).__name__} is not computed yet: pass its rows, with .collect() in polars or .compute() in "
            "Dask.",
        )
    if isinstance(found, nw.Series):
        return _column_in_pandas(found)
    if isinstance(found, nw.DataFrame):
        return pd.DataFrame({str(name): _column_in_pandas(found[name]) for name in found.columns})
    return table


def _column_in_pandas(column: Any) -> pd.Series[Any]:
    import narwhals as nw

    name = column.name or None
    if column.dtype in (nw.Categorical, nw.Enum):
        known = column.cast(nw.String).to_numpy()
        # Only an enum declares the order of its levels.
        levels = list(column.dtype.categories) if column.dtype == nw.Enum else None
        return pd.Series(pd.Categorical(known, categories=levels), name=name)
    if column.dtype == nw.Decimal:
        column = column.cast(nw.Float64)
    values = column.to_numpy()
    if column.dtype == nw.Boolean and column.null_count():
        values = np.array([None if value is None else bool(value) for value in column], dtype=object)
    return pd.Series(values, name=name)


def ends_of_patients(patient: IntArray, target: Target) -> tuple[IntArray, IntArray]:
    """Return the first row of each patient, and the row with the first event or else the end of observation."""
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
    """Check arguments of ``fit`` about the n rows of a target.

    Entry times must lie before the times of the rows, labels (strata, clusters, id) must not be missing, and offsets
    must be finite.
    """
    n = len(target)
    since = None if entry is None else entry_times(entry, target)
    stratum, labels = (None, ()) if strata is None else label_codes("strata", strata, n)
    if stratum is not None:
        _warn_of_strata_without_events(stratum, labels, target)
    patient = None
    if id is not None:
        patient, ids = label_codes("id", id, n)
        _check_rows_of_patients(patient, ids, since, target)
    cluster = patient if clusters is None else label_codes("clusters", clusters, n)[0]
    if patient is not None and clusters is not None:
        check_clusters(patient, id, clusters)
    known = None if offset is None else numbers("offset", offset, n)
    return Observation(since, stratum, labels, cluster, known, patient)


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


def with_offset(scores: FloatArray, offset: Any, *, fitted_with: bool) -> FloatArray:
    """Add the offset to scores (n,); raise if it is missing, or given to a model fitted without one."""
    if fitted_with and offset is None:
        raise ArgumentError(
            "offset", f"the model was fitted with an offset: give {arg('offset')}, zeros for none."
        )
    if offset is not None and not fitted_with:
        raise ArgumentError("offset", f"the model was fitted without an offset; leave {arg('offset')} out.")
    return scores if offset is None else scores + numbers("offset", offset, len(scores))


def label_codes(name: str, values: Any, n: int) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the number (n,) of each row's label, and the sorted labels; raise if one is missing."""
    given = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    require(given.shape == (n,), name, f"have one label per row, shape ({n},)", given.shape)
    series = pd.Series(given)
    missing = np.flatnonzero(series.isna())
    if len(missing):
        raise ArgumentError(
            name,
            f"{arg(name)} contains {counted(len(missing), 'missing label')} (first at row "
            f"{row_number(missing[0], values)}): drop such rows, or give each a label of its own.",
        )
    codes, found = pd.factorize(series, sort=True)
    return codes.astype(np.intp), tuple(found.tolist())


def check_clusters(patient: IntArray, id: Any, clusters: Any) -> None:
    """Raise if rows of one `patient` (n,), numbered from 0, are in several of the clusters; `id` are their labels."""
    first, codes = np.unique(patient, return_index=True)[1][patient], pd.factorize(np.asarray(clusters))[0]
    elsewhere = np.flatnonzero(codes != codes[first])
    if len(elsewhere):
        row = elsewhere[0]
        (named,) = np.asarray(id)[[row]].tolist()
        here, there = np.asarray(clusters)[[first[row], row]].tolist()
        raise ArgumentError(
            "clusters",
            f"{arg('clusters')} must hold all rows of a patient in one cluster: patient {named!r} is in {here!r} and, "
            f"in row {row_number(row, clusters)}, in {there!r}.",
        )


def entry_times(entry: Any, target: Target) -> FloatArray:
    """Return entry times (n,); raise unless they are finite and before the times of the rows."""
    since = numbers("entry", entry, len(target))
    late = np.flatnonzero(since >= target.time)
    if len(late):
        row = late[0]
        raise ArgumentError(
            "entry",
            f"{arg('entry')} must be before the time of the row; it is not in {counted(len(late), 'row')} (first at "
            f"row {row_number(row, entry)}: entry {since[row]}, time {target.time[row]}). Such a row is never at risk: "
            "drop it, or correct its times.",
        )
    return since


def _warn_of_strata_without_events(stratum: IntArray, labels: tuple[Any, ...], target: Target) -> None:
    events = np.bincount(stratum, target.event, minlength=len(labels))
    without = [str(labels[k]) for k in np.flatnonzero(events == 0)]
    if without:
        others = f" and {counted(len(without) - _NAMED, 'other')}" if len(without) > _NAMED else ""
        warn_caller(
            f"no event in stratum {', '.join(without[:_NAMED])}{others}: its patients do not contribute to the "
            "coefficients, and no curve can be predicted for them."
        )


def _check_rows_of_patients(
    patient: IntArray, labels: tuple[Any, ...], entry: FloatArray | None, target: Target
) -> None:
    """Raise if rows (start, stop] of one patient overlap."""
    order = np.lexsort((target.time, patient))
    same = patient[order][1:] == patient[order][:-1]
    if not same.any():
        return
    if entry is None:
        first = order[np.flatnonzero(same)[0]]
        raise ArgumentError(
            "id",
            f"{arg('id')} names several rows of one patient (first at row {row_number(first)}), but there are no "
            f"entry times: give each row's start as {arg('entry')}; or, if rows run at the same time, as those of two "
            f"eyes, name the patient in {arg('clusters')} instead.",
        )
    over = same & (entry[order][1:] < target.time[order][:-1])
    if over.any():
        later = order[1:][over][0]
        earlier = order[:-1][over][0]
        raise ArgumentError(
            "id",
            f"rows {row_number(earlier)} and {row_number(later)} of one id overlap: "
            f"({entry[earlier]}, {target.time[earlier]}] and ({entry[later]}, {target.time[later]}]. "
            "A patient cannot be at risk twice at one time.",
        )


def generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from an int or None; a generator is returned unchanged."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise no_seed(random_state) from error


def no_seed(random_state: Any) -> ArgumentError:
    """Return the error for a `random_state` that is not a seed."""
    return ArgumentError.must("random_state", "be a whole number that is not negative, or None", random_state)


def sample_rows(
    n: int, size: int, rng: np.random.Generator, clusters: IntArray | None = None
) -> NDArray[np.intp]:
    """Draw `size` of n rows without replacement, in ascending order; all rows if there are fewer.

    Of numbered `clusters` (n,), whole ones are drawn until they have so many rows.

    >>> sample_rows(3, 5, np.random.default_rng(0))
    array([0, 1, 2])
    """
    if n <= size:
        return np.arange(n)
    if clusters is None:
        return np.sort(rng.choice(n, size, replace=False))
    order = rng.permutation(int(clusters.max()) + 1)
    counts = np.bincount(clusters, minlength=len(order))
    kept = np.zeros(len(order), np.bool_)
    kept[order[: int(np.searchsorted(np.cumsum(counts[order]), size)) + 1]] = True
    return np.flatnonzero(kept[clusters])


def sample_size(n: float, events: float, most: int, wanted: int) -> int:
    """Return the size of a sample of n patients with `wanted` events: at least `wanted` and at most `most` patients."""
    return int(np.clip(wanted * n / max(events, 1.0), min(wanted, most), most))


def sample_of_many(
    target: Target, clusters: Any = None, *, resampled: bool = False, smallest: int | None = None
) -> NDArray[np.intp] | None:
    """Return the rows of a random sample of very many patients, with a fixed seed; None if there are fewer.

    For bootstrap replicates (`resampled`) fewer patients are enough. If groups are compared, `smallest` is the size of
    the smallest group: the sample is then large enough to contain patients of it. Rows of one cluster (`clusters`, n
    labels) are drawn together.
    """
    n = len(target)
    many, wanted = (MANY_RESAMPLED, _RESAMPLED_EVENTS) if resampled else (MANY_PATIENTS, _SAMPLED_EVENTS)
    size = sample_size(n, target.n_events, MANY_PATIENTS, wanted)
    if smallest is not None:
        size = max(size, -(-_SAMPLED_OF_SMALLEST * n // max(smallest, 1)))
    if n <= max(many, size):
        return None
    codes = None if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return sample_rows(n, size, np.random.default_rng(0), codes)


def draw_folds(
    n: int,
    n_folds: int,
    rng: np.random.Generator,
    event: ArrayLike | None = None,
    clusters: Any = None,
    strata: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """Draw a random fold, 0 to `n_folds` - 1, for each of n rows.

    Events (n,) are spread evenly over the folds, also those of each of the `strata` (n,), numbered from 0. Without
    event flags the folds do not depend on outcomes, as the repair of a frozen model requires. Rows of one of the
    `clusters` (n,), any labels, such as those of one patient, share a fold; a cluster counts as an event if one of its
    rows has one.
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
    """Assign rows to the folds in turn, sorted by key and in random order within a key."""
    folds = np.empty(len(key), dtype=np.intp)
    folds[np.lexsort((rng.random(len(key)), key))] = np.arange(len(key)) % n_folds
    return folds
