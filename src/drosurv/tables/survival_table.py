"""A table of patients: features, target, groups and ids."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.errors import (
    ArgumentError,
    ArgumentWarning,
    InputError,
    arg,
    as_names,
    as_number,
    may_be_given,
    require,
    row_number,
    warn_caller,
)
from drosurv.patients.observation import (
    changing_columns,
    check_clusters,
    first_rows,
    given_arguments,
    label_codes,
)
from drosurv.patients.target import (
    BoolArray,
    FloatArray,
    IntArray,
    field_names,
    of_any_cause,
    parse_target,
    with_fields,
)
from drosurv.presentation import counted, counted_patients, listing
from drosurv.tables.dates import in_future
from drosurv.tables.groups import group_labels
from drosurv.tables.ids import (
    names_of_rows,
    patient_columns,
    patient_numbers,
    repeated_id,
    row_numbers,
)
from drosurv.tables.problems import (
    refuse_doubtful,
    refuse_intervals,
    refuse_repeated_outcomes,
    refuse_unnamed_ids,
    row_problems,
    table_problems,
)
from drosurv.tables.reading import Confirmation, FileFormat, TableNote, as_table, require_columns
from drosurv.tables.target_columns import TargetColumns
from drosurv.tables.values import first_wrong, holds_numbers, labels, quoted, to_floats


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """A table of patients, divided into features, target and groups.

    Attributes
    ----------
    frame, X : DataFrame
        The whole table, and its features, not yet encoded (see :class:`TableEncoder`).
    columns, y
        The columns of the target, and event and time (n,).
    sensitive_features : DataFrame, (n, J)
        Labels of the groups, one column for each; no columns if there are no groups.
    patients : (n,) int
        Equal for rows with the same id, or without ids for equal rows, which count as different patients all the same.
        Such rows are never divided between training and testing.
    id, clusters : str or None
        Columns that name the patient, and clusters of different patients who may be alike, such as hospitals.
    all_rows : SurvivalTable or None
        The table as it stands in the file, where this one has one row for each patient with several, or the values of
        the first row in all of them; else None.
    """

    frame: pd.DataFrame
    columns: TargetColumns
    y: NDArray[Any]
    X: pd.DataFrame
    sensitive_features: pd.DataFrame
    patients: IntArray
    id: str | None = None
    all_rows: SurvivalTable | None = None
    clusters: str | None = None

    @staticmethod
    def parse(
        frame: pd.DataFrame,
        columns: TargetColumns,
        *,
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        drop: Sequence[str] = (),
        observed: Mapping[str, str] | None = None,
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        id: str | None = None,
        clusters: str | None = None,
        drop_missing_target: bool = False,
        complete_cases: bool = False,
        modelled: Sequence[str] | None = None,
    ) -> SurvivalTable:
        """Divide a DataFrame; parameters as in :func:`read_survival_table`.

        All commands read a table by this function, which raises where one of its questions must be answered first.
        `modelled` are the columns that a model uses, by default all features.
        """
        columns.require(frame, id=id, clusters=clusters)
        named = {**(observed or {}), **given_arguments(id=id, clusters=clusters)}
        for role, column in named.items():
            require_columns(frame, [column], role)
        require_columns(frame, drop, "drop")
        require_columns(frame, categorical, "categorical")
        not_features = [*columns.names, *drop, *named.values()]
        others = [name for name in frame.columns if name not in (*not_features, *numeric)]
        if id is None:
            known = {*features, *(modelled or ()), *categorical}
            refuse_unnamed_ids(frame, [name for name in others if name not in known], others)
        if columns.time is not None and columns.entry is None:
            refuse_intervals(frame, others, columns.time, id)
        used, events = _features(frame, features, not_features), frame[columns.event]
        if drop_missing_target:
            frame = _keep_rows(frame, columns.known(frame), "no time, a negative time or no event")
        if complete_cases:
            complete = frame[used].drop(columns=[*names_of_rows(frame[used])]).notna().all(axis=1).to_numpy()
            frame = _keep_rows(frame, complete, "no value in some feature")
        values = [*(used if modelled is None else modelled), *groups, *columns.names]
        known_columns = [name for name in dict.fromkeys(values) if name in frame.columns]
        asked = [name for name in known_columns if name not in (*categorical, *numeric)]
        refuse_doubtful(frame, asked, columns.names)
        if frame[list(columns.names)].notna().all(axis=None):
            columns = columns.resolved(frame)
            columns.refuse_empty(events)
        labelled = group_labels(frame, groups, categorical)
        patients = patient_numbers(frame, None if id is None else frame[id], columns.names)
        if clusters is not None:
            label_codes("clusters", frame[clusters], len(frame))
        if clusters is not None and id is not None:
            check_clusters(patients, frame[id], frame[clusters])
        y = columns.parse(frame)
        if id is not None and columns.entry is None:
            # Copies of a row are named elsewhere.
            once = ~pd.Series(row_numbers(frame, [*columns.names, id])).duplicated().to_numpy()
            refuse_repeated_outcomes(id, patients[once], y[once])
        return SurvivalTable(frame, columns, y, frame[used], labelled, patients, id, clusters=clusters)

    @property
    def entry(self) -> FloatArray | None:
        """Entry times, from which the patients are under observation, (n,); None if from time 0."""
        if self.columns.entry is None:
            return None
        column = self.frame[self.columns.entry]
        since = to_floats(column, "entry")
        late = since >= self.y["time"]
        if late.any():
            fault = first_wrong(column, late, "not before the time of the row")
            told = f"{arg('entry')} {fault}: such a row is never at risk. Drop it, or correct its times."
            raise ArgumentError("entry", told)
        return since

    @property
    def event(self) -> BoolArray:
        """Who had the event, of any cause, (n,)."""
        return np.asarray(self.y[field_names(self.y)[0]] > 0)

    @property
    def groups(self) -> pd.DataFrame | None:
        """Labels of the groups, (n, J); None if there are no groups."""
        return self.sensitive_features if self.sensitive_features.shape[1] else None

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns of numbers that define groups, and so are categories, not amounts."""
        named = [name for name in self.sensitive_features.columns if name in self.frame.columns]
        return tuple(one for one in named if holds_numbers(self.frame[one]) and self.frame[one].nunique() > 2)

    @property
    def together(self) -> IntArray:
        """Numbers (n,) of clusters, or else of `patients`: their rows stay in one fold, or side of a hold-out."""
        if self.clusters is None:
            return self.patients
        return patient_numbers(self.frame, self.frame[self.clusters])

    @property
    def order(self) -> IntArray:
        """The rows (n,) in the order in which folds and hold-outs are drawn for them: see :func:`row_order`."""
        y = self.judged_y
        from drosurv.patients.draws import row_order

        return row_order(parse_target(of_any_cause(y)), self.X, y[field_names(y)[0]], self.entry)

    @property
    def ids(self) -> IntArray | None:
        """Number of each row's patient, (n,); None without ids, or if all ids differ."""
        return self.patients if self.n_patients < len(self) else None

    @property
    def n_patients(self) -> int:
        """Number of patients; each row is one if there are no ids."""
        return len(self) if self.id is None else len(np.unique(self.patients))

    @property
    def n_with_event(self) -> int:
        """Number of patients who had an event."""
        return int(self.event.sum()) if self.id is None else len(np.unique(self.patients[self.event]))

    @property
    def size(self) -> str:
        """Numbers of patients, rows and clusters, in words."""
        clusters = 0 if self.clusters is None else self.frame[self.clusters].nunique()
        return counted_patients(self.n_patients, len(self), clusters, self.clusters or "")

    @property
    def judged_y(self) -> NDArray[Any]:
        """The target for functions that judge a model: with entry times, ids and clusters."""
        return with_fields(self.y, entry=self.entry, id=self.ids, clusters=self._clusters)

    @property
    def trained_y(self) -> NDArray[Any]:
        """The target for training: with entry times, and ids and clusters as :attr:`columns_of_rows` says."""
        given: dict[str, Any] = {
            role: self.ids if column == self.id else self._clusters
            for role, column in self.columns_of_rows.items()
        }
        return with_fields(self.y, entry=self.entry, **given)

    @property
    def _clusters(self) -> pd.Series[Any] | None:
        """Labels of the clusters, (n,), numbers or texts."""
        if self.clusters is None:
            return None
        column = self.frame[self.clusters]
        return column if column.dtype.kind in "iu" else labels(column).astype(str).rename(self.clusters)

    @property
    def columns_of_rows(self) -> dict[str, str]:
        """Columns that ``fit`` takes: clusters, and ids with entry times; without, rows of an id are a cluster."""
        found: dict[str, str] = {} if self.clusters is None else {"clusters": self.clusters}
        if self.id is not None and self.ids is not None:
            found.setdefault("clusters" if self.entry is None else "id", self.id)
        return found

    @property
    def repaired_y(self) -> NDArray[Any]:
        """The target for a repair: that of training; patients of clusters have ids, as each row is one."""
        alone = self.entry is None and self.clusters is not None and self.ids is None
        return with_fields(self.trained_y, id=np.arange(len(self))) if alone else self.trained_y

    def warn_of_rows(self, name: str) -> None:
        """Give the warnings about rows that all commands give; messages call the table `name`."""
        for warning in row_problems(self, name):
            warn_caller(warning)

    def problems(
        self,
        name: str = "the table",
        *,
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        keep_columns: Sequence[str] = (),
    ) -> Iterator[ArgumentWarning]:
        """Yield warnings about the training table; messages call it `name`.

        The user declared columns `categorical` codes and columns `numeric` amounts: no warning asks which of the two
        they are; nor whether `keep_columns` are known when a prediction is made.
        """
        yield from self._target_problems()
        yield from table_problems(self, name, [*categorical, *self.codes], numeric, keep_columns)

    def _target_problems(self) -> Iterator[ArgumentWarning]:
        """Yield warnings about times of 0, several events of a patient, nobody censored, and dates after today."""
        zero = self.y["time"] == 0
        if zero.any():
            n, events = int(zero.sum()), int(self.event[zero].sum())
            row = row_number(zero.argmax(), self.frame)
            one = "patient" if self.n_patients == len(self.frame) else "row"
            who = f"{counted(n, one)} {'has' if n == 1 else 'have'}"
            with_event = ("with" if events else "without") if n == 1 else f"{events:,} of them with"
            told = f"{who} the time 0, {with_event} the event (first in row {row})"
            yield ArgumentWarning(None, f"{told}: check whether 0 stands for an unknown time.")
        if several := self.n_with_several_events:
            first = f" To predict the first event, pass {arg('first_event', True)}."
            yield ArgumentWarning(
                None,
                f"{counted(several, 'patient')} of {self.n_patients:,} have several events. Training counts all of "
                f"them; an audit follows each patient until the first.{first if may_be_given('first_event') else ''}",
            )
        name = self.columns.event
        if self.columns.causes and self.event.all():
            held = quoted(labels(self.frame[name]).value_counts())
            yield ArgumentWarning(
                None,
                f"event column {name!r} holds {held} and no 0: every patient has an event of some cause. If one of "
                "these codes means censored, write 0 there, and number the causes from 1.",
            )
        start, end = self.columns.start, self.columns.end
        for argument, column, other in (("start", start, end), ("end", end, start)):
            if column and (late := in_future(self.frame[column], argument, self.frame[other])).any():
                wrong = first_wrong(self.frame[column], late, "after today")
                yield ArgumentWarning(argument, f"{arg(argument)} {wrong}: correct it.")

    @property
    def n_with_several_events(self) -> int:
        """How many patients have several events, in intervals of their time."""
        if self.id is None or self.columns.entry is None:
            return 0
        return int((np.bincount(np.asarray(self.patients)[self.event]) > 1).sum())

    def until_first_event(self) -> SurvivalTable:
        """Return the table without rows that begin at or after the first event of their patient."""
        time, patients = self.y["time"], np.asarray(self.patients)
        first = np.full(patients.max() + 1, np.inf)
        np.minimum.at(first, patients[self.event], time[self.event])
        return self.take(time <= first[patients])

    def at_first_rows(self, *strata: str) -> SurvivalTable:
        """Return the table with the values of each patient's first row in all of the patient's rows (entry, time].

        A model is trained on it because its predictions are made from one row; a note names the features, and columns
        of `strata`, that change over time. The target, ids and clusters stay those of each row.
        """
        first = first_rows(self.judged_y)
        if first is None:
            return self
        if changing := changing_columns(self.frame[[*self.X.columns, *strata]], first):
            used = "only the values of each patient's first row are used, because a prediction is made from one row."
            warn_caller(f"{changing}: {used}", category=TableNote)
        own = [name for name in (*self.columns.names, self.id, self.clusters) if name is not None]
        frame, X, groups = (
            table.iloc[first].set_axis(table.index) for table in (self.frame, self.X, self.sensitive_features)
        )
        frame = frame.assign(**{name: self.frame[name] for name in own})
        return replace(self, frame=frame, X=X, sensitive_features=groups, all_rows=self)

    @property
    def as_read(self) -> SurvivalTable:
        """The table with all rows and their own values, as they stand in the file."""
        return self if self.all_rows is None else self.all_rows

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: NDArray[Any]) -> SurvivalTable:
        """Return the table of some rows, given by position or by a mask."""
        return replace(
            self,
            frame=self.frame.iloc[rows],
            y=self.y[rows],
            X=self.X.iloc[rows],
            sensitive_features=self.sensitive_features.iloc[rows],
            patients=self.patients[rows],
        )

    def with_groups(self, groups: Sequence[str], categorical: Sequence[str] = ()) -> SurvivalTable:
        """Return the table with other groups, as :func:`group_labels` defines them."""
        return replace(self, sensitive_features=group_labels(self.frame, groups, categorical))

    def hold_out(self, share: float, seed: int = 0) -> tuple[SurvivalTable, SurvivalTable]:
        """Split the patients at random into training patients and a held-out share, with equal event rates.

        All rows of a patient, or of a cluster, go to the same part, whatever the order of the rows.
        """
        from sklearn.model_selection import train_test_split

        require(0 < as_number(share) < 1, "share", "lie between 0 and 1", share)
        order = self.order
        unit = np.empty(len(self), dtype=np.intp)
        # Patients are numbered in the order of their first rows.
        unit[order], names = pd.factorize(self.together[order])
        event = np.bincount(unit, self.event) > 0
        # All clusters but one may have an event.
        alone = self.clusters is not None and np.bincount(event, minlength=2).min() < 2
        try:
            _, held_out = train_test_split(
                np.arange(len(names)), test_size=share, stratify=None if alone else event, random_state=seed
            )
        except ValueError as error:
            raise InputError(
                f"{len(names)} {'patients' if self.clusters is None else 'clusters'} are too few to hold out {share:g} "
                "of those with and of those without the event."
            ) from error
        held = np.isin(unit, held_out)
        return self.take(~held), self.take(held)


def noted_id(frame: pd.DataFrame, others: Sequence[str | None], remedy: str) -> str | None:
    """Return the column, not among the `others`, that names patients with several rows, with a note; None if none does.

    The note ends with what to do if the column is no id, the `remedy`.
    """
    id = repeated_id(frame, others)
    if id is not None:
        patients = f"{counted(frame[id].nunique(), 'patient')} in {len(frame):,} rows"
        text = f"column {id!r} names {patients}, and was taken as id; if it is none, {remedy}."
        warn_caller(text, category=TableNote)
    return id


def judged_table(
    frame: pd.DataFrame,
    columns: TargetColumns,
    *,
    id: str | None = None,
    clusters: str | None = None,
    modelled: Sequence[str] | None = None,
    **given: Any,
) -> SurvivalTable:
    """Return the patients on whom a model, or predictions, are judged; parameters as in :meth:`SurvivalTable.parse`.

    Without `id`, a column that is named like one and names patients with several rows is taken, with a note.
    """
    id = id or noted_id(frame, [*columns.names, clusters, *(modelled or ())], "rename it")
    return SurvivalTable.parse(frame, columns, id=id, clusters=clusters, modelled=modelled, **given)


def read_survival_table(
    path: Any,
    *,
    event: str,
    time: str | None = None,
    event_value: str | None = None,
    start: str | None = None,
    end: str | None = None,
    entry: str | None = None,
    groups: Sequence[str] = (),
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    observed: Mapping[str, str] | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    id: str | None = None,
    clusters: str | None = None,
    keep_columns: Sequence[str] = (),
    drop_missing_target: bool = False,
    complete_cases: bool = False,
    first_event: bool = False,
    causes: bool = False,
    file_format: FileFormat | None = None,
) -> SurvivalTable:
    r"""Read a table of patients to train on from a file, and warn of what looks wrong in it.

    Parameters
    ----------
    path : path or DataFrame
        File, as in :func:`read_frame`, or a table of pandas or polars.
    file_format : FileFormat, optional
        How to read a file; recognised by default.
    event, time, event_value, start, end, entry, causes
        As in :class:`TargetColumns`.
    groups : sequence of str
        As in :func:`group_labels`; the columns stay among the features unless dropped.
    features : sequence of str
        Columns to predict from; by default all that have no other role.
    drop : sequence of str
        Columns that are no features.
    observed : mapping, optional
        Columns that say how rows were observed, such as ``{"strata": "hospital"}``; they are no features.
    categorical, numeric : sequence of str
        Columns of whole numbers that are codes, and those that are amounts; others are warned of.
    id : str, optional
        Column that names the patient of a row; no feature.
    clusters : str, optional
        Column that names clusters of different patients who may be alike, such as hospitals, litters or families; no
        feature. All rows of a patient are in one cluster.
    keep_columns : sequence of str
        Columns that are known when a prediction is made: no warning asks about their names.
    drop_missing_target : bool
        Leave out rows without a time or an event, or with a negative time, instead of raising an error.
    complete_cases : bool
        Leave out rows without a value in some feature, instead of filling it in.
    first_event : bool
        Of patients with several events, in rows (`entry`, `time`] with an `id`, leave out the rows after the first.

    Examples
    --------
    >>> import tempfile
    >>> from drosurv import CoxPH
    >>> from drosurv.tables import TableEncoder, read_survival_table
    >>> from sklearn.pipeline import make_pipeline
    >>> lines = ["days,died,age,sex", "5,1,61,f", "9,0,50,m", "2,1,70,f", "7,1,44,m", "8,0,65,f"]
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("\n".join(lines))
    ...     file.flush()
    ...     table = read_survival_table(file.name, time="days", event="died", groups=["sex"])
    >>> model = make_pipeline(TableEncoder(), CoxPH(l2=0.1)).fit(table.X, table.y)
    >>> model[:-1].get_feature_names_out().tolist()
    ['age', 'sex=m']
    """
    columns = TargetColumns(time, event, event_value, start, end, entry, causes)
    groups, features, drop = map(as_names, (groups, features, drop))
    categorical, numeric, keep_columns = map(as_names, (categorical, numeric, keep_columns))
    if isinstance(path, (str, os.PathLike)):
        frame = (file_format or FileFormat()).read(path)
    else:
        frame, path = as_table(path), "the training table"
    # First, so that a mistyped name is reported at once.
    columns.require(frame)
    require_columns(frame, numeric, "numeric")
    rows = {**(observed or {}), **given_arguments(clusters=clusters)}
    named = [*columns.names, *drop, *numeric, *categorical, *groups, *rows.values()]
    if id is None:
        id = noted_id(frame, [*named, *features], f"pass it as {arg('drop')}")
    ids = [] if features else patient_columns(frame, [*named, id])
    for name in ids:
        repeated = frame[name].nunique() < frame[name].count()
        pass_id = f"; pass {arg('id', name)} to keep rows of one patient together" if repeated else ""
        category = TableNote if repeated else Confirmation
        warn_caller(f"column {name!r} names patients and is no feature{pass_id}.", category=category)
    drop = [*drop, *ids]
    for name in numeric:
        to_floats(frame[name], "numeric")
    table = SurvivalTable.parse(
        frame,
        columns,
        groups=groups,
        features=features,
        drop=drop,
        observed=observed,
        categorical=categorical,
        numeric=numeric,
        id=id,
        clusters=clusters,
        drop_missing_target=drop_missing_target,
        complete_cases=complete_cases,
    )
    if table.X.shape[1] == 0:
        why = [f"column {name!r} is dropped" for name in drop]
        why += [f"column {name!r} says how rows were observed" for name in rows.values()]
        why += [f"column {id!r} names patients"] * (id is not None)
        raise InputError(
            f"{path} has no features: besides time and event, {listing(why, 12) or 'there is no column'}. Drop fewer "
            "columns, or add some."
        )
    if not table.event.any():
        raise ArgumentError(
            "event_value",
            f"event column {event!r} holds no event: every one of the {len(table):,} patients is censored. Pass "
            f"{arg('event_value')} if another value means the event.",
        )
    if first_event:
        if id is None or entry is None:
            raise ArgumentError(
                "first_event",
                f"{arg('first_event', True)} needs {arg('entry')} and {arg('id')}: the start and patient of a row.",
            )
        table = table.until_first_event()
    given = {"categorical": categorical, "numeric": numeric, "keep_columns": keep_columns}
    for problem in table.problems(os.path.basename(path), **given):
        warn_caller(problem)
    return table


def _features(frame: pd.DataFrame, wanted: Sequence[str], not_features: Sequence[str]) -> list[str]:
    """Return the columns to predict from: those wanted, or all that have no other role."""
    require_columns(frame, wanted, "features")
    taken = [name for name in wanted if name in not_features]
    if taken:
        raise ArgumentError(
            "features",
            f"{arg('features')} names {taken[0]!r}, which another argument names too: leave it out of one.",
        )
    return list(dict.fromkeys(wanted)) or [name for name in frame.columns if name not in not_features]


def _keep_rows(frame: pd.DataFrame, known: BoolArray, lacking: str) -> pd.DataFrame:
    """Return the rows that are `known`, and note how many others were left out because of what they lack."""
    if not known.any():
        raise InputError(f"all {len(frame):,} rows have {lacking}: no patient is left.")
    if not known.all():
        text = f"{int((~known).sum()):,} of {len(frame):,} rows have {lacking} and were left out."
        warn_caller(text, category=TableNote)
    return frame[known]
