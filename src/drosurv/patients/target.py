"""The survival target, event and time of each patient, parsed and checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drosurv.errors import ArgumentError, ArgumentTypeError, InputError, arg, row_number, warn_caller
from drosurv.patients.arrays import BoolArray as BoolArray
from drosurv.patients.arrays import FloatArray as FloatArray
from drosurv.patients.arrays import IntArray as IntArray
from drosurv.patients.arrays import (
    as_labels,
    numbers,
    require_before,
    require_not_negative,
    set_to,
    stable_order,
    without_rounding,
)
from drosurv.patients.outcome_names import doubt_of_event, value_of_event

if TYPE_CHECKING:
    import pandas as pd

#: Fields of y after event and time.
FIELDS = ("entry", "id", "clusters", "weight")
_BUILD = "drosurv.Surv.from_arrays(event, time)"


class _Observed:
    """What targets have in common: times, and perhaps entry times and other fields, of n patients."""

    time: FloatArray
    entry: FloatArray | None

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the target of some rows (indices or a mask)."""
        values = (getattr(self, field.name) for field in fields_of(cast(Any, self)))
        return type(self)(*(None if of_rows is None else of_rows[rows] for of_rows in values))

    @property
    def since_entry(self) -> Self:
        """The same target with times that count from entry on."""
        if self.entry is None:
            return self
        since = replace(cast(Any, self), time=without_rounding(self.time - self.entry), entry=None)
        return cast(Self, since)


@dataclass(frozen=True, eq=False)
class Target(_Observed):
    """Event flags and times (of event or censoring) of n patients, in the caller's row order.

    Times are finite and not negative. Patients are under observation from `entry` on, which is before their time; None
    means from time 0. Risk sets are formed within each `stratum`, numbered from 0; None means one stratum. If the event
    is of one of several causes, patients in `other` had one of another cause at their time: they are not censored, and
    never have this event. None means that there are no such patients.
    """

    event: BoolArray
    time: FloatArray
    entry: FloatArray | None = None
    stratum: IntArray | None = None
    other: BoolArray | None = None

    @property
    def ended(self) -> BoolArray:
        """Whether each patient had an event of any cause, and was not censored, (n,)."""
        return self.event if self.other is None else self.event | self.other

    @property
    def others_censored(self) -> Target:
        """The same target, in which patients who had an event of another cause are censored."""
        return self if self.other is None else replace(self, other=None)

    @cached_property
    def order(self) -> IntArray:
        """Rows sorted by time; equal times keep their row order."""
        return stable_order(self.time)

    @property
    def n_events(self) -> int:
        """Number of observed events."""
        return int(self.event.sum())

    @property
    def curve_times(self) -> FloatArray:
        """0 and all event times, (K,): the times of curves unless others are given."""
        return np.unique(np.append(self.time[self.event], 0.0))

    @cached_property
    def compared(self) -> IntArray:
        """Stratum (n,) of each patient; -1 for patients who are at risk at no event time."""
        if self.is_plain:
            # In a third of the time.
            return np.where(self.time >= self.time[self.event].min(initial=np.inf), 0, -1)
        stratum = np.zeros(len(self), dtype=np.intp) if self.stratum is None else self.stratum
        last = np.full(stratum.max(initial=0) + 1, -np.inf)
        first = -last
        np.minimum.at(first, stratum[self.event], self.time[self.event])
        np.maximum.at(last, stratum[self.event], self.time[self.event])
        at_risk = self.time >= first[stratum]
        if self.entry is not None:
            at_risk &= self.entry < last[stratum]
        return np.where(at_risk, stratum, -1)

    def until(self, end: float) -> Target:
        """Return the target with everybody who is observed longer than `end` censored there."""
        inside = self.time <= end
        other = None if self.other is None else self.other & inside
        return replace(self, event=self.event & inside, time=np.where(inside, self.time, end), other=other)

    @property
    def is_plain(self) -> bool:
        """Whether there are neither entry times nor strata."""
        return self.entry is None and self.stratum is None

    def to_structured(self) -> NDArray[Any]:
        """Return scikit-survival's structured array with fields ``event`` and ``time``."""
        return Surv.from_arrays(self.event, self.time)


@dataclass(frozen=True, eq=False)
class CompetingTarget(_Observed):
    """Cause (0 for censoring, or 1 to K) and time of n patients; other fields as in :class:`Target`."""

    cause: IntArray
    time: FloatArray
    entry: FloatArray | None = None
    stratum: IntArray | None = None

    @property
    def n_causes(self) -> int:
        """Number of causes K."""
        return int(self.cause.max())

    def of_cause(self, cause: int) -> Target:
        """Return the target of one cause, with every other event counted as censoring."""
        return Target(self.cause == cause, self.time, self.entry, self.stratum)

    def among_others(self, cause: int) -> Target:
        """Return the target of one cause in which patients with another one never have the event."""
        other = (self.cause > 0) & (self.cause != cause)
        return Target(self.cause == cause, self.time, self.entry, self.stratum, other)

    def of_others(self, cause: int) -> int:
        """Return the number of events of other causes."""
        return int(((self.cause > 0) & (self.cause != cause)).sum())

    def of_any_cause(self) -> Target:
        """Return the target of an event of any cause."""
        return Target(self.cause > 0, self.time, self.entry, self.stratum)


def has_causes(y: Any) -> bool:
    """Whether a target holds causes, as :meth:`Surv.competing` returns it, and not flags of one event."""
    fields = field_names(y)
    return len(fields) >= 2 and y[fields[0]].dtype.kind in "iu"


def field_names(y: Any) -> tuple[str, ...]:
    """Return the names of the fields of a structured array; empty for anything else."""
    return tuple(getattr(getattr(y, "dtype", None), "names", None) or ())


def y_field(y: Any, name: str) -> NDArray[Any] | None:
    """Return one of the fields of `y` after event and time, (n,); None if it is not there."""
    return y[name] if name in field_names(y)[2:] else None


def _metadata(y: Any) -> Mapping[str, Any]:
    return getattr(getattr(y, "dtype", None), "metadata", None) or {}


def clusters_name(y: Any) -> str:
    """Return what the clusters of a target are called, the name of their column; empty if not known."""
    return str(_metadata(y).get("clusters", ""))


def _first_two(y: Any, name: str = "y", first: str = "event (bool)", build: str = _BUILD) -> tuple[str, str]:
    """Return the names of the first two fields; raise for fewer, for unknown further ones, and for other shapes."""
    fields = field_names(y)
    if len(fields) < 2:
        raise InputError(
            f"{name} must be a structured array whose first two fields are {first} and time (float); got "
            f"{type(y).__name__}. Build one with {build}."
        )
    if unknown := [field for field in fields[2:] if field not in FIELDS]:
        raise InputError(
            f"{name} has a field {unknown[0]!r}, which is not known: fields after event and time are called "
            f"{', '.join(FIELDS)}. Leave it out, or rename it."
        )
    if y.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {y.shape}.")
    return fields[0], fields[1]


def cause_names(y: Any) -> tuple[str, ...]:
    """Return what the causes 1, 2, ... of a target are called; empty if they have numbers only, or there are none."""
    return tuple(_metadata(y).get("causes", ()))


def number_of_cause(cause: Any, names: Sequence[str]) -> int:
    """Return the number of a cause that is given by its number or, where causes have `names`, by its name."""
    given = str(int(cause) if isinstance(cause, float) and cause.is_integer() else cause)
    named = {name.casefold(): number for number, name in enumerate(names, start=1)}
    if given.casefold() in named:
        return named[given.casefold()]
    if not given.isdecimal() or int(given) == 0 or (named and int(given) > len(named)):
        wanted = (
            f"be one of {', '.join(map(repr, names))}, or its number"
            if named
            else "be the number of a cause, 1, 2, ..."
        )
        raise ArgumentError.must("cause", wanted, cause)
    return int(given)


def chosen_cause(cause: Any, y: Any) -> int | None:
    """Return the number of the cause that was chosen by number or name; unchanged if `y` has no causes."""
    known = cause is not None and has_causes(y)
    return number_of_cause(cause, cause_names(y)) if known else cast(int | None, cause)


def require_same_causes(names: Sequence[str], y: Any, model: str = "model") -> None:
    """Raise if `y` has the causes that a model calls `names` in another order; warn if it names other causes."""
    called = cause_names(y)
    own, of_y = ([name.casefold() for name in some] for some in (names, called))
    if all(first == second for first, second in zip(own, of_y, strict=False)):
        return
    both = f"{arg(model)} has the causes {', '.join(map(repr, names))}, and y {', '.join(map(repr, called))}"
    if set(own) & set(of_y):
        raise ArgumentError("y", f"{both}: number the causes of y in the order of the model.")
    warn_caller(f"{both}: causes are matched by their numbers.", argument="y")


def of_any_cause(y: Any, *, require_event: bool = True) -> Any:
    """Return the target of an event of any cause, with its further fields; a target of one event is unchanged."""
    if not has_causes(y):
        return y
    return of_events(y, parse_competing_target(y, complete=False, require_event=require_event).cause > 0)


def of_events(y: NDArray[Any], event: BoolArray) -> NDArray[Any]:
    """Return `y` with other event flags (n,)."""
    first, *others = field_names(y)
    values = {"event" if first == "cause" else first: event, **{name: y[name] for name in others}}
    return _structured(values, clusters=clusters_name(y))


def with_times(y: NDArray[Any], time: FloatArray) -> NDArray[Any]:
    """Return `y` with other times (n,)."""
    values = {name: y[name] for name in field_names(y)} | {field_names(y)[1]: time}
    return _structured(values, **_metadata(y))


def _structured(fields: Mapping[str, NDArray[Any]], **metadata: Any) -> NDArray[Any]:
    """Return a structured array of fields (n,); selections of its rows keep the metadata."""
    types = [(name, "<i8" if values.dtype == np.intp else values.dtype) for name, values in fields.items()]
    known = {key: value for key, value in metadata.items() if value}
    dtype = np.dtype(types, metadata=known) if known else np.dtype(types)
    y: NDArray[Any] = np.empty(len(next(iter(fields.values()))), dtype)
    for name, values in fields.items():
        y[name] = values
    return y


def parse_competing_target(
    y: Any, *, name: str = "y", complete: bool = True, require_event: bool = True
) -> CompetingTarget:
    """Turn the structured array of :meth:`Surv.competing` into a checked :class:`CompetingTarget`.

    With `complete`, as for training, raise unless every cause from 1 to the largest occurs.
    """
    if isinstance(y, CompetingTarget):
        return y
    first, build = "cause (whole numbers, 0 is censored)", "drosurv.Surv.competing(cause, time)"
    cause, time = _first_two(y, name, first, build)
    if not has_causes(y):
        raise InputError(
            f"the first field of {name}, {cause!r}, must hold whole numbers, 0 for censored and 1, 2, ... for the "
            f"causes, got {y.dtype[cause]}. Build {name} with {build}."
        )
    y = Surv.competing(y[cause], y[time])
    found = np.unique(y["cause"])
    missing = sorted(set(range(1, int(found.max()) + 1)) - set(found.tolist()))
    if require_event and found.max() == 0:
        raise InputError(f"{name} contains no event: every patient is censored (cause 0).")
    if missing and complete:
        raise InputError(
            f"cause {missing[0]} of {name} never happens, but cause {found.max()} does: "
            f"number the causes from 1 without gaps (found {found.tolist()})."
        )
    return CompetingTarget(y["cause"].astype(np.intp), without_rounding(y["time"]))


def parse_target(y: Any, *, name: str = "y", require_event: bool = True) -> Target:
    """Turn scikit-survival's structured array (n,) into a checked :class:`Target`.

    Its first field is the event flag (bool), its second the time (number); their names do not matter. Times that differ
    by rounding errors only, such as 0.1 + 0.2 and 0.3, become equal. Further fields are not read here
    (:class:`drosurv.patients.observation.Rows`), but must be known. Messages call it `name`.
    """
    if isinstance(y, Target):
        return y
    build = f"{_BUILD} or drosurv.Surv.from_dataframe('event', 'time', data)"
    fields = _first_two(y, name, build=build)
    event, time = y[fields[0]], y[fields[1]]
    if event.dtype != np.bool_:
        raise InputError(
            f"the first field of {name}, {fields[0]!r}, must be bool (True = event), got {event.dtype}. Convert it "
            "with drosurv.Surv.from_arrays(event, time); causes, from Surv.competing, need CauseSpecificCox."
        )
    times = _checked_times(time, name)
    if require_event and not event.any():
        raise InputError(
            f"{name} contains no event: every patient is censored, so there is nothing to learn a risk from. "
            "Check the coding of the event flag (True = event)."
        )
    return Target(np.ascontiguousarray(event), without_rounding(times))


def parse_entry(y: Any, target: Target) -> FloatArray | None:
    """Return the entry times (n,) of `y`, which must be before the times of its `target`, or else those of `target`.

    Those that differ from any time by rounding errors only are set to it: such a patient is not at risk at that time.
    """
    given = y_field(y, "entry")
    if given is None:
        return target.entry
    since = set_to(numbers("entry", given, len(target)), np.unique(target.time))
    require_before(since, target.time)
    return since


def _checked_times(time: NDArray[Any], name: str) -> FloatArray:
    """Return times (n,) as floats; raise unless they are finite and not negative."""
    if time.dtype.kind not in "iuf":
        raise InputError(f"the times of {name} must be numbers, in a unit of your choice, got {time.dtype}.")
    time = np.ascontiguousarray(time, dtype=np.float64)
    if len(time) == 0:
        raise InputError(f"{name} is empty: at least one patient is needed.")
    known = np.isfinite(time)
    if not known.all():
        row, n = int(known.argmin()), int((~known).sum())
        raise InputError(
            f"{name} contains {n:,} NaN or infinite time{'s' * (n > 1)} (first at row {row_number(row)}: {time[row]}): "
            "drop or correct such rows."
        )
    if time.min() < 0:
        row = int((time < 0).argmax())
        raise InputError(
            f"{name} contains a negative time (row {row_number(row)}: {time[row]}); times must be >= 0."
        )
    return time


class Surv:
    """Functions that build the structured array ``y`` that every estimator and metric takes.

    Its first two fields are the event and the time. Further fields say how a row was observed, and stay with it in
    ``y[train]``, ``train_test_split``, ``cross_val_score`` and ``GridSearchCV``:

    - ``entry``: the time from which the row is under observation, before its time (left truncation);
    - ``id``: the patient of the row, if patients have several rows;
    - ``clusters``: patients who may be alike, such as those of one hospital, have the same label;
    - ``weight``: how often the row counts. Functions that judge a model take whole numbers, as if the row were there
      so often.

    Entry times and weights are finite numbers, ids and clusters whole numbers or texts without missing values.

    Examples
    --------
    >>> from drosurv import Surv
    >>> Surv.from_arrays([True, False], [2.0, 5.0])
    array([( True, 2.), (False, 5.)], dtype=[('event', '?'), ('time', '<f8')])
    >>> y = Surv.from_arrays([True, False], [2.0, 5.0], entry=[0.0, 1.0], clusters=["A", "B"])
    >>> y[1:]
    array([(False, 5., 1., 'B')],
          dtype=[('event', '?'), ('time', '<f8'), ('entry', '<f8'), ('clusters', '<U1')])
    """

    @staticmethod
    def from_arrays(
        event: ArrayLike,
        time: ArrayLike,
        *,
        entry: ArrayLike | None = None,
        id: Any = None,
        clusters: Any = None,
        weight: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Build ``y`` from event flags (bool, or numbers 0 and 1) and times, each of length n.

        Entry times, ids, clusters and weights, each of length n, are optional fields; see :class:`Surv`.
        """
        flags = _as_flags(np.asarray(_unmasked("event", event)), "event")
        given = {"entry": entry, "id": id, "clusters": clusters, "weight": weight}
        return _joined("event", flags, np.asarray(_unmasked("time", time)), given)

    @staticmethod
    def competing(
        cause: ArrayLike,
        time: ArrayLike,
        names: Sequence[str] = (),
        *,
        entry: ArrayLike | None = None,
        id: Any = None,
        clusters: Any = None,
        weight: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Build ``y`` for competing risks from causes (whole numbers; 0 is censored) and times, each of length n.

        `names` are what causes 1, 2, ... are called in tables and sentences; by default their numbers. Other arguments
        are as in :meth:`from_arrays`.

        Examples
        --------
        >>> from drosurv import Surv
        >>> Surv.competing([1, 0, 2], [2.0, 5.0, 3.0], names=["cancer", "other death"])["cause"]
        array([1, 0, 2])
        """
        causes = _as_causes(np.asarray(_unmasked("cause", cause)))
        if len(names) and (isinstance(names, str) or len(names) < causes.max(initial=0)):
            raise InputError(f"names must be a text for each of {causes.max()} causes, got {names!r}.")
        given = {"entry": entry, "id": id, "clusters": clusters, "weight": weight}
        return _joined("cause", causes, np.asarray(_unmasked("time", time)), given, tuple(map(str, names)))

    @staticmethod
    def from_dataframe(
        event: str,
        time: str,
        data: pd.DataFrame,
        *,
        entry: str | None = None,
        id: str | None = None,
        clusters: str | None = None,
        weight: str | None = None,
    ) -> NDArray[Any]:
        """Build ``y`` from the names of columns of a DataFrame: of the event, the time and, optionally, other fields.

        The first two fields are called as their columns, the others ``entry``, ``id``, ``clusters`` and ``weight``.

        Examples
        --------
        >>> import pandas as pd
        >>> from drosurv import Surv
        >>> table = pd.DataFrame({"died": [1, 0], "stop": [2.0, 5.0], "start": [0.0, 1.0]})
        >>> Surv.from_dataframe("died", "stop", table, entry="start").dtype.names
        ('died', 'stop', 'entry')
        """
        if not hasattr(data, "columns"):
            raise ArgumentTypeError(
                "data",
                f"data must be a DataFrame, got {type(data).__name__}: Surv.from_dataframe('event', 'time', data).",
            )
        named = {"entry": entry, "id": id, "clusters": clusters, "weight": weight}
        named = {field: column for field, column in named.items() if column is not None}
        for argument, column in {"event": event, "time": time, **named}.items():
            if column not in list(data.columns):
                raise InputError(f"{argument} column {column!r} is not in data; it has {list(data.columns)}.")
        events, times = data[event].to_numpy(), data[time].to_numpy()
        if not _are_flags(events) and _are_flags(times) and events.dtype.kind in "iuf":
            raise InputError(
                f"event column {event!r} holds times and time column {time!r} holds flags: they are swapped. The event "
                f"comes first: Surv.from_dataframe({time!r}, {event!r}, data)."
            )
        if _are_flags(events):
            _refuse_unclear(events.astype(np.bool_), times, str(event), str(time))
        given = {field: data[column] for field, column in named.items()}
        # A column may have the name of another field.
        first = "event" if event in FIELDS else str(event)
        time_name = "time" if time in FIELDS else str(time)
        return _joined(first, _as_flags(events, str(event)), times, given, time_name=time_name)

    @staticmethod
    def event_time(y: Any) -> NDArray[Any]:
        """Return the first two fields of ``y`` alone, event and time, as scikit-survival takes them.

        Causes keep their names.

        Examples
        --------
        >>> from drosurv import Surv
        >>> y = Surv.from_arrays([True, False], [2.0, 5.0], weight=[1, 2])
        >>> Surv.event_time(y)
        array([( True, 2.), (False, 5.)], dtype=[('event', '?'), ('time', '<f8')])
        """
        first, second = _first_two(y)
        return _structured({first: y[first], second: y[second]}, causes=cause_names(y))


def with_fields(y: Any, **fields: Any) -> NDArray[Any]:
    """Return a structured `y` with other or further fields, in the order of `FIELDS`; None leaves a field out.

    >>> with_fields(Surv.from_arrays([True], [2.0], weight=[3]), id=["a"], weight=None).dtype.names
    ('event', 'time', 'id')
    """
    first, second = _first_two(y)
    given = {name: fields[name] if name in fields else y_field(y, name) for name in FIELDS}
    return _joined(
        first, y[first], y[second], given, cause_names(y), time_name=second, clusters=clusters_name(y)
    )


def _unmasked(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array, whose mask would be lost: leave those patients out.")
    return values


def _joined(
    name: str,
    first: NDArray[Any],
    time: NDArray[Any],
    given: Mapping[str, Any],
    causes: Sequence[str] = (),
    *,
    time_name: str = "time",
    clusters: str = "",
) -> NDArray[Any]:
    """Return a structured array of event or cause, called `name`, time, and the given fields, after checking them.

    Its metadata, which selections of rows keep, are the names of the `causes` and the name of the `clusters`.
    """
    if time.shape != first.shape or first.ndim != 1:
        raise InputError(
            f"{name} and time must be one-dimensional and of equal length, got shapes {first.shape} and {time.shape}."
        )
    times = _checked_times(time, "time")
    n, found = len(first), {name: first, time_name: times}
    for field, values in given.items():
        if values is not None:
            checked = as_labels if field in ("id", "clusters") else numbers
            found[field] = checked(field, _unmasked(field, values), n)
    if "entry" in found:
        require_before(found["entry"], times, given["entry"])
    if "weight" in found:
        require_not_negative("weight", found["weight"], given["weight"])
    called = getattr(given.get("clusters"), "name", None)
    called = clusters if called is None else str(called)
    return _structured(found, causes=tuple(causes), clusters=called if "clusters" in found else "")


def _as_causes(cause: NDArray[Any]) -> IntArray:
    if cause.dtype.kind not in "biuf" or not np.isfinite(cause).all() or (cause != np.floor(cause)).any():
        values = list(dict.fromkeys(cause.ravel().tolist()))[:5]
        raise InputError(
            f"cause must be whole numbers, 0 for censored and 1, 2, ... for the causes; found values {values}. "
            "Number the causes first, for example with cause.map({'censored': 0, 'cancer': 1, 'other': 2})."
        )
    if (cause < 0).any():
        raise InputError(f"cause must not be negative, got {cause.min()}; 0 is censored.")
    return cause.astype(np.intp)


def _are_flags(event: NDArray[Any]) -> bool:
    if event.dtype == object:
        return all(isinstance(flag, (bool, np.bool_)) for flag in event.ravel())
    return bool(event.dtype == np.bool_ or (event.dtype.kind in "iuf" and np.isin(event, (0, 1)).all()))


def _refuse_unclear(flags: BoolArray, times: NDArray[Any], event: str, time: str) -> None:
    """Raise if the name of a column of flags does not say that true is the event, or the times contradict it.

    A name that says nothing is that of flags.
    """
    reading = value_of_event([str(int(flag)) for flag in np.unique(flags)], event)
    why = "Its name does not say whether 1 or 0 does"
    if reading.value is not None:
        known_name = reading.by not in ("name and times", "nothing")
        reading = reading if known_name else reading._replace(by="convention")
        known = np.isfinite(times) if times.dtype.kind in "iuf" else np.zeros(len(times), np.bool_)
        why = doubt_of_event(reading, times[known], flags[known])
        if not why and reading.value == "0":
            why = "Its name says that 0 does"
    if why:
        calls = " or ".join(f"Surv.from_arrays(data[{event!r}] == {k}, data[{time!r}])" for k in (1, 0))
        raise InputError(f"which value of event column {event!r} means the event? {why}: pass {calls}.")


def _as_flags(event: NDArray[Any], name: str) -> BoolArray:
    if _are_flags(event):
        return event.astype(np.bool_)
    if event.dtype.kind == "f" and _are_flags(event[~np.isnan(event)]):
        missing = f"{np.isnan(event).sum():,} of {event.size:,} patients"
        raise InputError(f"{name} is missing for {missing}: leave out their rows.")
    values = list(dict.fromkeys(event.ravel().tolist()))[:5]
    # Suggest a value only if it clearly means the event: a wrong suggestion would swap events and censoring.
    known = {f"{value:g}" if isinstance(value, (int, float)) else str(value): value for value in values}
    found = value_of_event(list(known), name).value
    example = f"{name} == {known[found]!r}" if found in known else f"{name} == VALUE"
    raise InputError(
        f"{name} must be bool, or numbers that are all 0 (censored) or 1 (event); found values {values}. "
        f"Say which value means the event, for example {example}."
    )
