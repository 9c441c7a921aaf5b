"""How rows were observed: entry times, strata, clusters, offsets, ids, weights; samples; one row for each patient."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.errors import (
    ArgumentError,
    InputError,
    arg,
    as_number,
    require,
    require_extra,
    row_number,
    warn_caller,
)
from drosurv.patients.arrays import (
    as_labels,
    is_tensor,
    numbers,
    require_labels,
    require_not_negative,
    without_rounding,
)
from drosurv.patients.target import (
    FloatArray,
    IntArray,
    Surv,
    Target,
    clusters_name,
    field_names,
    of_any_cause,
    parse_entry,
    parse_target,
    with_times,
    y_field,
)
from drosurv.presentation import counted, listing

# Packages whose tables are converted.
_DATA_FRAME_LIBRARIES = frozenset(
    ("polars", "pyarrow", "modin", "cudf", "dask", "duckdb", "ibis", "pyspark", "narwhals")
)
# Largest number of strata without events that a warning names.
_NAMED = 5
#: Of more patients, repairs, remedies and drawn curves use a random sample.
MANY_PATIENTS = 100_000
# A sample has so many events, but at most `MANY_PATIENTS`.
_SAMPLED_EVENTS = 20_000
# Largest number of columns that a note names.
_MOST_NAMED = 5
# What the first values of columns that change over time were used for.
_TRAINED = "to train, to predict and to judge."
_JUDGED = (
    "to predict and to judge. If the model was trained on later values too, its predictions may be wrong for this "
    "reason alone: train it on first rows, as drosurv fit does."
)


def given_rows(y: Any, strata: Any = None, offset: Any = None) -> tuple[str, ...]:
    """Return which of entry, strata, clusters, offset and id are given, as fields of `y` or as arguments."""
    names = ("entry", "strata", "clusters", "offset", "id")
    given = {**{name: y_field(y, name) for name in names}, "strata": strata, "offset": offset}
    return tuple(name for name in names if given[name] is not None)


def given_arguments(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Rows:
    """What is known about n rows besides features, events and times; None if not given.

    Each row is under observation from its `entry` time on. `stratum` numbers each row's stratum in the sorted labels
    `strata`; `offset` is added to the scores. `patient` numbers the patient of each row, `clusters`, called
    `clusters_name` if they have a name, different patients who may be alike; `weight` says how often a row counts.
    """

    entry: FloatArray | None = None
    stratum: IntArray | None = None
    strata: tuple[Any, ...] = ()
    offset: FloatArray | None = None
    patient: IntArray | None = None
    clusters: IntArray | None = None
    weight: FloatArray | None = None
    clusters_name: str = ""

    @staticmethod
    def parse(
        y: Any, *, strata: Any = None, offset: Any = None, judged: bool = True, require_event: bool = True
    ) -> Rows:
        """Check the fields of `y`, strata and offset, each with one value per row.

        Entry times must lie before the times, and no label may be missing; all rows of a patient must be in one
        cluster. Rows that are `judged` have weights that are whole numbers, and several rows of one patient without
        entry times are correlated; with entry times they must follow each other. In training, several rows of a patient
        need entry times, and weights are left to :class:`drosurv.solvers.TrainingData`.
        """
        target = parse_target(of_any_cause(y, require_event=require_event), require_event=require_event)
        n = len(target)
        if judged and not target.time.any():
            raise InputError("every time in y is 0, so that nobody was followed: check the times.")
        since = parse_entry(y, target)
        stratum, labels = (None, ()) if strata is None else label_codes("strata", strata, n)
        numbered: dict[str, IntArray | None] = {}
        for name in ("id", "clusters"):
            given = y_field(y, name)
            numbered[name] = None if given is None else label_codes(name, as_labels(name, given, n), n)[0]
        patient, clusters = numbered["id"], numbered["clusters"]
        if patient is not None and clusters is not None:
            check_clusters(patient, y["id"], y["clusters"])
        weight = y_field(y, "weight") if judged else None
        if judged:
            weight = None if weight is None else copies(weight, n)
            if patient is not None and since is not None:
                _check_rows_of_patients(patient, since, target, judged=True)
        else:
            if stratum is not None:
                _warn_of_strata_without_events(stratum, labels, target)
            if patient is not None:
                _check_rows_of_patients(patient, since, target)
        return Rows(
            entry=since,
            stratum=stratum,
            strata=labels,
            offset=None if offset is None else numbers("offset", offset, n),
            patient=patient,
            clusters=clusters,
            weight=weight,
            clusters_name=clusters_name(y),
        )

    @property
    def for_models(self) -> dict[str, Any]:
        """The arguments that a model's predictions may need: strata and offset, as far as given."""
        strata = None
        if self.stratum is not None:
            known = np.empty(len(self.strata), dtype=object)
            known[:] = self.strata
            strata = known[self.stratum]
        return given_arguments(strata=strata, offset=self.offset)

    @property
    def observed(self) -> tuple[str, ...]:
        """Which of entry, strata and offset are given."""
        given = {"entry": self.entry, "strata": self.stratum, "offset": self.offset}
        return tuple(name for name, value in given.items() if value is not None)

    @property
    def copies(self) -> IntArray | None:
        """Row numbers, each repeated as often as its weight says; None if all weights are 1."""
        if self.weight is None or (self.weight == 1).all():
            return None
        return np.repeat(np.arange(len(self.weight)), self.weight.astype(np.intp))

    @property
    def cluster(self) -> IntArray | None:
        """Number (n,) of each row's cluster or, without clusters, of its patient."""
        return self.patient if self.clusters is None else self.clusters

    @property
    def cluster_codes(self) -> IntArray | None:
        """The same, numbered without gaps; None if all differ. Sums, variances, replicates and folds go by it."""
        codes = None if self.cluster is None else np.unique(self.cluster, return_inverse=True)[1]
        return None if codes is None or np.bincount(codes).max(initial=0) < 2 else codes

    @property
    def patient_codes(self) -> IntArray | None:
        """Number (n,) of each row's patient, without gaps; None without ids."""
        return None if self.patient is None else np.unique(self.patient, return_inverse=True)[1]

    @property
    def n_clusters(self) -> int:
        """Number of the given clusters; 0 without clusters."""
        return 0 if self.clusters is None else len(np.unique(self.clusters))

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
        if self.cluster_codes is None:
            return False
        if self.patient is None or (
            self.clusters is not None and not np.array_equal(self.patient, self.clusters)
        ):
            return True
        return bool(np.bincount(self.patient, target.event).max() > 1)

    def only(self, names: Collection[str]) -> Rows:
        """Return the rows with only those of strata and offset that are named."""
        left_out: dict[str, Any] = {} if "offset" in names else {"offset": None}
        left_out |= {} if "strata" in names else {"stratum": None, "strata": ()}
        return replace(self, **left_out)

    def take(self, rows: Any) -> Rows:
        """Return some rows, given by indices, a mask or a slice; strata, patients and clusters keep their numbers."""
        given = vars(self).items()
        parts: dict[str, Any] = {name: part[rows] for name, part in given if isinstance(part, np.ndarray)}
        return replace(self, **parts)


@dataclass(frozen=True)
class Inference:
    """How intervals and tests are computed.

    `level` is the coverage of intervals. If subgroups are `searched`, the search has its share of the error rate; a
    ratio within the factor `relevance` of 1 is no problem.
    """

    level: float = 0.95
    searched: bool = False
    relevance: float = 1.05

    def __post_init__(self) -> None:
        """Raise for a level outside of (0, 1), or a factor below 1."""
        require(0 < as_number(self.level) < 1, "level", "lie between 0 and 1", self.level)
        require(
            1 <= as_number(self.relevance) < np.inf, "relevance", "be a factor of at least 1", self.relevance
        )


def given_weight(y: Any, sample_weight: Any = None) -> Any:
    """Return the weights that are given, as the field of `y` or as an argument; None for none, an error for both."""
    weight = y_field(y, "weight")
    if weight is not None and sample_weight is not None:
        raise ArgumentError(
            "sample_weight", f"y has weights, and {arg('sample_weight')} is given too: give one of them."
        )
    return sample_weight if weight is None else weight


def copies(weight: Any, n: int) -> FloatArray:
    """Return the weights (n,) of rows, the number of copies that each stands for: whole numbers, not all of them 0."""
    found = weights(weight, n, "weight")
    wrong = np.flatnonzero(found % 1)
    if len(wrong):
        raise ArgumentError(
            "weight",
            f"{arg('weight')} must hold whole numbers, the copies of each row, where a model is judged; row "
            f"{row_number(wrong[0])} has {found[wrong[0]]:g}. Round the weights, or leave them out.",
        )
    if not found.any():
        raise ArgumentError(
            "weight",
            f"{arg('weight')} is 0 in every row, so that no patient counts: give patients who count a weight of at "
            "least 1.",
        )
    return found


def weights(given: Any, n: int, name: str = "sample_weight") -> FloatArray:
    """Return the weights (n,) of rows, finite and not negative."""
    weight = numbers(name, given, n)
    require_not_negative(name, weight, given)
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


def select_rows(given: Any, rows: IntArray) -> Any:
    """Select rows of an argument with one value per row; models and None are returned unchanged."""
    if given is None or hasattr(given, "predict"):
        return given
    if type(given).__module__.startswith("drosurv."):
        # Predictions and curves.
        return given.take(rows)
    if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[1]) == 2:
        return given[0], take(given[1], rows)
    if isinstance(given, (list, tuple)):
        # Not as an array, which would turn a missing label among texts into the text "nan".
        return [given[row] for row in rows]
    if isinstance(given, Mapping):
        return {name: select_rows(values, rows) for name, values in given.items()}
    return take(given, rows)


def take(X: Any, rows: Any) -> Any:
    """Return rows of an array, DataFrame or tensor."""
    X = in_pandas(X)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if is_tensor(X) else np.asarray(X)[rows]


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


def first_rows(y: Any) -> IntArray | None:
    """Return the first row of each row's patient, (n,); None unless patients have several rows (entry, time]."""
    if y_field(y, "id") is None or y_field(y, "entry") is None:
        return None
    labels, patient = np.unique(y["id"], return_inverse=True)
    if len(labels) == len(patient):
        return None
    target = parse_target(of_any_cause(y, require_event=False), require_event=False)
    return ends_of_patients(patient, target)[0][patient]


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
    require_labels(name, given, values)
    codes, found = pd.factorize(pd.Series(given), sort=True)
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
    patient: IntArray, entry: FloatArray | None, target: Target, *, judged: bool = False
) -> None:
    """Raise if rows (start, stop] of one patient overlap or, where they are judged, leave a gap."""
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
    begins, ends = entry[order][1:], target.time[order][:-1]

    def pair(wrong: NDArray[np.bool_]) -> tuple[str, str]:
        earlier, later = order[:-1][wrong][0], order[1:][wrong][0]
        return f"rows {row_number(earlier)} and {row_number(later)} of one {arg('id')}", (
            f"({entry[earlier]}, {target.time[earlier]}] and ({entry[later]}, {target.time[later]}]"
        )

    together = "Keep all rows of a patient together when you split patients: GroupKFold with groups=y['id']."
    if (over := same & (begins < ends)).any():
        named, intervals = pair(over)
        remedy = f" {together}" if judged else ""
        raise ArgumentError(
            "id", f"{named} overlap: {intervals}. A patient cannot be at risk twice at one time.{remedy}"
        )
    if judged and (gap := same & (begins > ends)).any():
        named, intervals = pair(gap)
        raise ArgumentError(
            "id",
            f"{named} leave a gap: {intervals}. A patient is followed from the first row to the last. {together} If "
            "the patient was not observed in between, drop the later rows.",
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


def sample_of_many(target: Target, clusters: Any = None) -> NDArray[np.intp] | None:
    """Return the rows of a random sample of very many patients, with a fixed seed; None if there are fewer.

    Rows of one cluster (`clusters`, n labels) are drawn together.
    """
    n = len(target)
    size = sample_size(n, target.n_events, MANY_PATIENTS, _SAMPLED_EVENTS)
    if n <= max(MANY_PATIENTS, size):
        return None
    codes = None if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return sample_rows(n, size, np.random.default_rng(0), codes)


class Patients(NamedTuple):
    """Targets of patients, what is known about their rows, the `taken` rows of the table, and notes.

    `taken` are None if they are all rows in order. `changing`, the last note, names features that change over time;
    it is empty if none does.
    """

    y: NDArray[Any]
    rows: Rows
    taken: IntArray | None = None
    notes: tuple[str, ...] = ()
    changing: str = ""

    def of(self, given: Any) -> Any:
        """Select the patients' rows of an argument with one value per row of the table."""
        return given if self.taken is None else select_rows(given, self.taken)


def one_row_each(y: Any, rows: Rows, features: Any = None, *, trained: bool = False) -> Patients:
    """Return one row for each patient who has several rows (entry, time], and copies of rows of weight above 1.

    A prediction can use only the first row; a note says so if the `features` of later rows differ, and whether models
    are `trained` on first rows too. The target of a patient is the first event, or the end of the last row. The result
    has neither ids, because every row is a patient, nor weights, and `y` only events and times, of which those that
    differ by rounding errors are made equal. Without entry times, rows of one patient stay: they are correlated.
    """
    y, notes, changing = Surv.event_time(y), [], ""
    y = _with_equal_times(y, rows.entry)
    taken = until = np.arange(len(y))
    if rows.patient is not None and rows.entry is not None:
        patient = rows.patient
        target = parse_target(of_any_cause(y, require_event=False), require_event=False)
        taken, until = ends_of_patients(patient, target)
        rows = replace(rows, patient=None)
        if len(taken) < len(y):
            notes.append(
                f"the {len(y):,} rows are of {len(taken):,} patients: each is predicted from the first row, and "
                "followed until the first event or the end of the last row."
            )
            changing = changing_columns(features, taken[patient])
            if changing:
                use = _TRAINED if trained else _JUDGED
                changing += f": only the values of each patient's first row were used {use}"
                notes.append(changing)
    copies = rows.take(taken).copies
    rows = replace(rows, weight=None)
    if copies is not None:
        taken, until = taken[copies], until[copies]
    if len(taken) == len(y) and np.array_equal(taken, np.arange(len(y))):
        return Patients(y, rows, None, tuple(notes), changing)
    return Patients(y[until], rows.take(taken), taken, tuple(notes), changing)


def _with_equal_times(y: NDArray[Any], entry: FloatArray | None) -> NDArray[Any]:
    """Return `y` with times that are equal up to rounding errors made equal, but after the `entry` of their rows."""
    time = y[field_names(y)[1]].astype(np.float64)
    equal = without_rounding(time)
    if equal is time:
        return y
    return with_times(y, equal if entry is None else np.where(equal > entry, equal, time))


def changing_columns(features: Any, first: IntArray) -> str:
    """Say which columns have a known value that differs from that of the patient's `first` row, (n,); empty if none."""
    if features is None:
        return ""
    X = in_pandas(features)
    if not hasattr(X, "columns"):
        X = pd.DataFrame(np.asarray(X.detach().cpu() if is_tensor(X) else X)).add_prefix("x")
    known = ((str(name), pd.factorize(column)[0]) for name, column in X.items())
    names = [repr(name) for name, codes in known if ((codes != codes[first]) & (codes >= 0)).any()]
    change = "changes" if len(names) == 1 else "change"
    return f"{listing(names, _MOST_NAMED)} {change} over time" if names else ""
