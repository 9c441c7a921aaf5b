"""Use a saved model with a table: predict, evaluate, and recognise rows that it was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, BlockingWarning, InputError, arg, warn_caller
from drosurv.estimators import PublishedCox
from drosurv.estimators.persistence import read_saved_model
from drosurv.patients.observation import Rows, first_rows, one_row_each
from drosurv.patients.target import of_any_cause, parse_target, with_fields
from drosurv.predictions.any_model import columns_used
from drosurv.predictions.given import ask_unit_of_score
from drosurv.presentation import cause_label, counted, first_upper
from drosurv.tables import SurvivalTable, UnseenLevelWarning
from drosurv.tables.columns import NumberColumn
from drosurv.tables.encoder import TableEncoder
from drosurv.tables.ids import names_of_rows, patient_numbers
from drosurv.tables.problems import copied_rows, refuse_doubtful
from drosurv.tables.reading import Confirmation, TableNote, require_columns
from drosurv.tables.survival_table import judged_table
from drosurv.tables.target_columns import TargetColumns
from drosurv.workflows.row_hashes import RowHashes, RowsSeen
from drosurv.workflows.training import fingerprint, is_plain_cox

# Values more than so many standard deviations from the training mean are warned of: they may be in another unit.
_FAR = 10
# So are columns of which the middle value of so many rows or more is farther than this.
_SHIFTED, _FEWEST_SHIFTED = 4, 10


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A saved model with its notes.

    `notes` are those of :meth:`Trained.save`; empty for a model saved in Python.
    """

    path: Path
    model: Any
    notes: dict[str, Any]

    @staticmethod
    def open(path: Path) -> OpenedModel:
        """Open a model's file."""
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file: name a model that was saved.")
        saved = read_saved_model(path)
        return OpenedModel(path, saved.model, saved.notes)

    @staticmethod
    def of_score(path: Path) -> OpenedModel:
        """Read a published score from a CSV file of its coefficients."""
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file: name the coefficients of a score.")
        return OpenedModel(path, PublishedCox.read(path), {})

    @property
    def encoder(self) -> TableEncoder | None:
        """The encoder of tables; None if the model was saved without one."""
        first = self.model[0] if isinstance(self.model, Pipeline) and len(self.model) == 2 else None
        return first if isinstance(first, TableEncoder) else None

    @property
    def estimator(self) -> Any:
        """The model without its encoder."""
        return self.model if self.encoder is None else self.model[-1]

    @property
    def has_causes(self) -> bool:
        """Whether the model has several causes."""
        return hasattr(self.estimator, "predict_cumulative_incidence")

    @property
    def cause_names(self) -> tuple[str, ...]:
        """What causes 1, 2, ... are called; empty if they have numbers only."""
        noted = self.notes.get("target", {}).get("cause_names", ())
        return tuple(getattr(self.estimator, "cause_names_", ()) or noted)

    @property
    def needs_predictions(self) -> bool:
        """Whether the file holds repairs of predictions, and no model that predicts."""
        return getattr(self.estimator, "base_", self) is None

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the estimator's features of a table."""
        if self.encoder is not None:
            return self.encoder.transform(frame)
        if isinstance(self.estimator, PublishedCox):
            # Its errors name the term that needs a column.
            self.estimator.predict(frame)
        if not hasattr(self.estimator, "feature_names_in_"):
            raise InputError(
                f"{self.path} was trained on an array without column names, so its features cannot be found in a "
                "table: fit it on a DataFrame."
            )
        # A model that was fitted to a table with categories encodes it itself.
        names = columns_used(self.estimator)
        require_columns(frame, names, "feature")
        return frame[names]

    @property
    def _features_in(self) -> list[str]:
        """Columns of a table that the model predicts from."""
        return list(columns_used(self.model)) if hasattr(self.model, "feature_names_in_") else []

    @property
    def _categorical(self) -> list[str]:
        """Columns of numbers that the model takes as categories."""
        return [] if self.encoder is None else list(self.encoder.categorical)

    def kept_columns(self, named: Sequence[str], frame: pd.DataFrame, described: pd.DataFrame) -> list[str]:
        """Return the columns of `described` that are known when a prediction is made: those `named`, and the model's.

        A model's columns were checked when it was trained, those of a published score were not. Raise if `frame`, the
        whole table, lacks a column that is named.
        """
        require_columns(frame, named, "keep_columns")
        own = [] if isinstance(self.model, PublishedCox) else self._features_in
        return [name for name in (*named, *own) if name in described]

    def readable(self, frame: pd.DataFrame, groups: Sequence[str] = ()) -> pd.DataFrame:
        """Return the columns that rules may use: those of the model, and those that define groups."""
        used = columns_used(self.model)
        return frame[list(dict.fromkeys([*used, *(name for name in groups if name in frame.columns)]))]

    def describing(self, table: SurvivalTable, groups: Sequence[str] = ()) -> pd.DataFrame:
        """Return the columns of a table that may define subgroups.

        For a published score these are all but those that name patients or rows and are no part of the score.
        """
        if not isinstance(self.model, PublishedCox):
            return self.readable(table.frame, groups)
        others = table.X.drop(columns=[name for name in self._features_in if name in table.X.columns])
        if ids := names_of_rows(others):
            text = f"not used, because it names patients or rows: {', '.join(ids)}."
            warn_caller(text, category=Confirmation)
        return table.X.drop(columns=list(ids))

    def subgroup_columns(self, table: SurvivalTable, groups: Sequence[str] = ()) -> pd.DataFrame:
        """Return the columns of :meth:`describing` for a search: codes that the model takes as categories are these."""
        columns = self.describing(table, groups)
        known = [name for name in self._categorical if name in columns]
        codes = [name for name in known if pd.api.types.is_numeric_dtype(columns[name])]
        return columns.astype(dict.fromkeys(codes, "category"))

    def plain_cox(self) -> Any:
        """Return plain Cox trained on the same patients, or the model itself if it is plain Cox; None if not saved."""
        # A repair of plain Cox holds it as its base model.
        base = getattr(self.estimator, "base_", None)
        of_repair = base if isinstance(base, Pipeline) and is_plain_cox(base[-1]) else None
        noted = self.notes.get("plain_cox", of_repair)
        return self.estimator if noted is True else noted

    def predictions(
        self,
        frame: pd.DataFrame,
        *,
        times: Sequence[str] = (),
        keep: Sequence[str] = (),
        strata: str | None = None,
        numeric: Sequence[str] = (),
    ) -> pd.DataFrame:
        """Predict for the patients of a table; numbers such as 999 in `numeric` columns are amounts.

        Return the column that identified patients in training, those in `keep`, ``log_risk``, and ``survival_TIME`` for
        every time as it was written. A model of causes has ``log_risk_CAUSE`` and ``incidence_CAUSE_TIME``, with the
        cause's name, or its number if it has none.
        """
        require_columns(frame, keep, "keep")
        self.ask_about_values(frame, numeric)
        named = self.id_column(frame)
        keep = list(dict.fromkeys([*([] if named is None else [named]), *keep]))
        try:
            at = [float(time) for time in times]
        except ValueError as error:
            raise ArgumentError.must("times", "be numbers separated by commas", ",".join(times)) from error
        self._warn_of_far(frame)
        with warnings.catch_warnings(action="ignore", category=UnseenLevelWarning):
            # `findings` reports it.
            features = self.features(frame)
        model, found = self.estimator, frame[list(keep)]
        causes = {k: cause_label(k, self.cause_names) for k in range(1, getattr(model, "n_causes_", 0) + 1)}
        columns = {f"log_risk_{called}": model.predict(features, cause=k) for k, called in causes.items()}
        columns = columns or {"log_risk": model.predict(features)}
        given = self.observed(frame, strata) if at else {}
        curves = {
            f"incidence_{called}": model.predict_cumulative_incidence(features, at, k, **given)
            for k, called in (causes if at else {}).items()
        }
        if at:
            curves["survival"] = model.predict_survival_function(features, times=at, **given)
            self._warn_of_late(at, features, given)
        for name, values in curves.items():
            columns |= {f"{name}_{time}": values[:, k] for k, time in enumerate(times)}
        return found.assign(**columns)

    def ask_about_values(self, frame: pd.DataFrame, numeric: Sequence[str] = ()) -> None:
        """Raise if the model's columns hold values that may be none, as other commands do: :func:`refuse_doubtful`."""
        require_columns(frame, numeric, "numeric")
        used = [name for name in self._features_in if name in frame.columns]
        refuse_doubtful(frame, [name for name in used if name not in (*self._categorical, *numeric)])

    def _warn_of_late(self, times: Sequence[float], features: Any, given: Mapping[str, Any]) -> None:
        """Warn of times after the longest follow-up in training."""
        end = self.estimator.follow_up_.times[-1]
        if late := [time for time in times if time > end]:
            first = {name: values[:1] for name, values in given.items()}
            curve = self.estimator.predict_survival_function(features[:1], times=[end, late[0]], **first)[0]
            how = "extrapolated by the model's formula"
            if curve[0] == curve[1]:
                how = "given as at that time, which is too high"
            warn_caller(
                f"{arg('times')} {late[0]:g} lies after the longest follow-up in training, {end:g}: survival is {how}.",
                argument="times",
            )

    def _warn_of_far(self, frame: pd.DataFrame) -> None:
        """Warn of numbers so far from those of training that they may be in another unit."""
        columns = [] if self.encoder is None else self.encoder.columns_
        for column in (one for one in columns if isinstance(one, NumberColumn) and one.is_scaled):
            require_columns(frame, [column.name], "feature")
            distance = column.encode(frame[column.name], "reference")[:, 0]
            several = len(distance) >= _FEWEST_SHIFTED
            limit = _SHIFTED if several and np.median(np.abs(distance)) > _SHIFTED else _FAR
            if far := int((np.abs(distance) > limit).sum()):
                value = column.mean + column.deviation * distance[np.abs(distance).argmax()]
                warn_caller(
                    f"column {column.name!r} holds {value:.4g}, but in training its mean was {column.mean:.4g} and its "
                    f"standard deviation {column.deviation:.4g}: {counted(far, 'row')} more than {limit} standard "
                    "deviations away, unlike the training patients. Check the unit."
                )

    def observed(self, frame: pd.DataFrame, strata: str | None = None) -> dict[str, Any]:
        """Return further arguments of predictions for a table: strata, from the given column or the training column."""
        column = strata or self.notes.get("observed", {}).get("strata")
        if column is None:
            return {}
        require_columns(frame, [column], "strata")
        return {"strata": frame[column].to_numpy()}

    def id_column(self, frame: pd.DataFrame) -> str | None:
        """Return the column that identified patients in training, if a table has it; else None."""
        noted = self.notes.get("id")
        return noted if noted in frame.columns else None

    def findings(self, frame: pd.DataFrame, strata: str | None = None) -> pd.DataFrame:
        """Return what was filled in or ignored in a table, besides columns of the target and of the strata."""
        if self.encoder is None:
            return pd.DataFrame({"column": [], "rows": [], "done": []})
        named = [strata, self.notes.get("id"), self.notes.get("clusters")]
        named += [name for role in ("target", "observed") for name in self.notes.get(role, {}).values()]
        return self.encoder.findings(frame[[name for name in frame.columns if name not in named]])

    def table(
        self,
        frame: pd.DataFrame,
        *,
        groups: Sequence[str] = (),
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        id: str | None = None,
        clusters: str | None = None,
        drop_missing_target: bool = False,
        in_use: bool = False,
        all_rows: bool = False,
        **named: str | None,
    ) -> SurvivalTable:
        """Return the patients of a table; `named` are columns of the target. Those of training are the default.

        Patients with several rows (entry, time] get one, unless `all_rows` are wanted. The table of a model `in_use`
        may begin with one patient, and without events.
        """
        if self.needs_predictions:
            raise InputError(
                f"{self.path} holds repairs of predictions, and no model: apply it with `drosurv predict {self.path} "
                "new.csv -o repaired.csv`, and audit what it writes with `drosurv audit --predictions repaired.csv`."
            )
        given = {name: value for name, value in named.items() if value is not None}
        noted = self.notes.get("target", {})
        changed = {name for name, value in given.items() if value != noted.get(name)}
        stale = {"start", "end"} if "time" in given else set()
        if {"start", "end"} & given.keys():
            stale = {"time"}
        if {"time", "start", "end"} & changed:
            stale |= {"time_unit"}
        if "event" in changed:
            stale |= {"event_value"}
        kept = {name: value for name, value in noted.items() if name not in stale}
        target = {"time": None, **kept, **given}
        has_time = target["time"] or target.get("start") or target.get("end")
        if "event" not in target or not has_time:
            raise ArgumentError(
                "time",
                f"{self.path} does not say which columns hold the target: pass {arg('time', text='COLUMN')} and "
                f"{arg('event', text='COLUMN')}.",
            )
        if len(frame) < 2 and not in_use:
            raise InputError("the table holds a single patient: an evaluation needs at least two.")
        target["causes"] = self.has_causes
        columns = TargetColumns(**target)
        columns.require(frame)
        if "event_value" not in given:
            columns = columns.with_noted_event(frame)
        noted_clusters = self.notes.get("clusters")
        if clusters is None and noted_clusters in frame.columns and not (in_use or noted_clusters == id):
            clusters = noted_clusters
        id = id or self.id_column(frame)
        table = judged_table(
            frame,
            columns,
            groups=groups,
            categorical=[*categorical, *(name for name in self._categorical if name in frame.columns)],
            numeric=numeric,
            modelled=self._features_in,
            id=id,
            clusters=clusters,
            drop_missing_target=drop_missing_target,
        )
        first = first_rows(table.judged_y)
        self._warn_of_far(table.frame if first is None else table.frame.iloc[np.unique(first)])
        if table.entry is not None and table.id is not None and not all_rows:
            table = _one_row_each(table, [name for name in self._features_in if name in table.X.columns])
        if not table.event.any() and not in_use:
            raise ArgumentError(
                "event_value",
                f"event column {columns.event!r} holds no event, so a model cannot be evaluated: pass "
                f"{arg('event_value')} if another value means the event, or give more patients.",
            )
        self.ask_unit(table)
        return table

    def ask_unit(self, table: SurvivalTable) -> None:
        """Raise if the baseline of a published score seems to be at times in another unit than those of a table."""
        if isinstance(self.estimator, PublishedCox) and table.entry is None and table.event.any():
            survival = self.estimator.predict_survival_function(table.frame, return_array=True)
            at = self.estimator.unique_times_
            ask_unit_of_score(survival, at, parse_target(of_any_cause(table.y)), table.columns.unit)

    @property
    def warnings(self) -> list[dict[str, str]]:
        """Warnings given in training, each with a severity ("blocking" or "note") and a text."""
        return list(self.notes.get("warnings", []))

    def rows_seen(self, table: SurvivalTable, data: Path) -> RowsSeen | None:
        """Count the rows of a table, read from the file `data`, that the model was trained on; None if unknown.

        Where ids name the patients, count patients: one is seen if any row is.
        """
        kept = self.notes.get("row_hashes")
        # Training rows are hashed as they stand in their file, so these must be too.
        rows = table.as_read
        patients = None if table.id is None else rows.patients
        seen = None if kept is None else RowHashes.from_dict(kept).seen_in(rows.frame, rows.y, patients)
        if self.notes.get("trained_on") == fingerprint(data) and (seen is None or not seen.is_leak):
            # Hashes may not be kept, and differ where the target is read in another way.
            count = table.n_patients
            trained = getattr(self.estimator, "n_patients_", count)
            return RowsSeen(count, min(count, trained), unit="rows" if table.id is None else "patients")
        return seen

    def note_rows_seen(self, frame: pd.DataFrame, data: Path) -> None:
        """Note how many rows of a table to predict were trained on, if the table has the target."""
        try:
            with warnings.catch_warnings(action="ignore"):
                table = self.table(frame, drop_missing_target=True)
        except ValueError:
            # Tables of new patients have no target.
            return
        seen = self.rows_seen(table, data)
        if seen is not None and seen.seen:
            # Rows without a target were not trained on.
            rows = len(frame)
            if table.id is not None:
                rows = len(np.unique(patient_numbers(frame, frame[table.id])))
            seen = seen._replace(rows=rows)
            warn_caller(f"the model was trained on {seen} of {data}.", category=TableNote)

    def note_copies(self, frame: pd.DataFrame, data: Path) -> None:
        """Note how many rows of a table to predict are copies of others: without a target, patients may be alike."""
        target = [name for name in self.notes.get("target", {}).values() if isinstance(name, str)]
        for copies in copied_rows(frame, target, data.name, self.id_column(frame), "Each is predicted."):
            warn_caller(str(copies), category=TableNote)

    def warn_of_rows_seen(self, table: SurvivalTable, data: Path) -> RowsSeen | None:
        """Warn of rows of a table that the model was trained on, for which an evaluation is too good."""
        seen = self.rows_seen(table, data)
        if seen is None:
            return None
        if seen.is_leak:
            warn_caller(
                f"{self.path} was trained on {seen} of {data}, so these numbers are too good. Hold patients out with "
                "`drosurv fit ... --hold-out test.csv` and use that file here.",
                category=BlockingWarning,
            )
        else:
            why = ": so few that the results hardly change, or other patients with equal values"
            text = f"the model was trained on {seen} of {data}{why if seen.seen else ''}."
            warn_caller(text, category=TableNote if seen.seen else Confirmation)
        return seen


def _one_row_each(table: SurvivalTable, used: list[str]) -> SurvivalTable:
    """Return the first row of each patient with several rows (entry, time], with the target of the patient.

    Notes name the `used` columns that change over time.
    """
    y = with_fields(table.y, entry=table.entry, id=table.patients)
    patients = one_row_each(y, Rows.parse(y), table.X[used])
    for note in patients.notes:
        warn_caller(first_upper(note), category=TableNote)
    if patients.taken is None:
        return table
    return replace(table.take(patients.taken), y=patients.y, all_rows=table)
