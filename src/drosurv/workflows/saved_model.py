"""A saved model, and what can be done with it and a table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, BlockingWarning, warn_caller
from drosurv.estimators.baseline import Baseline
from drosurv.estimators.persistence import read_saved_model
from drosurv.evaluation.from_entry import first_rows
from drosurv.presentation import counted, first_upper
from drosurv.tables import NumberColumn, SurvivalTable, TargetColumns, UnseenLevelWarning
from drosurv.tables.encoder import TableEncoder
from drosurv.tables.reading import TableNote, require_columns
from drosurv.tables.rows import RowHashes, RowsSeen
from drosurv.target import FloatArray
from drosurv.workflows.training import columns_used, fingerprint, is_plain_cox

# Patients so many standard deviations from the mean are warned of: metres for centimetres are further away, and at most
# one in a hundred of those trained on is.
_FAR = 10


@dataclass(frozen=True, eq=False)
class PlainCox:
    """Plain Cox as a model's notes keep it: coefficients (d,) of the estimator's features."""

    coef_: FloatArray

    score_type: ClassVar[str] = "log hazard"
    curve_type: ClassVar[str] = "step"

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks, (n,)."""
        return X.to_numpy(dtype=self.coef_.dtype) @ self.coef_


@dataclass(frozen=True, eq=False)
class PlainCoxCurves(PlainCox):
    """Plain Cox with the hazard of a patient of risk `log_risk`, which every other patient's is a multiple of."""

    log_risk: float
    baseline: Baseline

    @property
    def unique_times_(self) -> FloatArray:
        """Where the curves change."""
        return self.baseline.times

    def predict_survival_function(self, X: pd.DataFrame, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""
        return np.exp(-self.baseline.cumulative_hazard(self.predict(X) - self.log_risk, times))


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """What a model's file holds, and what can be done with it and a table.

    `model` is what was saved; `notes` are what :meth:`Trained.save` noted, empty for a model saved in Python.
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

    @property
    def encoder(self) -> TableEncoder | None:
        """What makes features of a table; None if the model was saved without it."""
        first = self.model[0] if isinstance(self.model, Pipeline) and len(self.model) == 2 else None
        return first if isinstance(first, TableEncoder) else None

    @property
    def estimator(self) -> Any:
        """The model without its encoder."""
        return self.model if self.encoder is None else self.model[-1]

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The estimator's features of a table."""
        if self.encoder is not None:
            return self.encoder.transform(frame)
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                f"{self.path} was trained on an array without column names, so no column of a table can be told to "
                "be its feature: fit it on a DataFrame."
            )
        require_columns(frame, list(names), "feature")
        return frame[list(names)]

    def readable(self, frame: pd.DataFrame, groups: Sequence[str] = ()) -> pd.DataFrame:
        """Columns that rules may use: those the model uses, and those that define groups."""
        used = columns_used(self.model)
        return frame[list(dict.fromkeys([*used, *(name for name in groups if name in frame.columns)]))]

    def plain_cox(self) -> Any:
        """Plain Cox trained on the same patients, maybe the model itself; None if the file does not hold it."""
        coefficients, baseline = self.notes.get("plain_cox"), self.notes.get("plain_cox_baseline")
        if coefficients is None:
            # A model repaired from plain Cox holds it.
            base = getattr(self.estimator, "base_", None)
            return base if isinstance(base, Pipeline) and is_plain_cox(base[-1]) else None
        if baseline is None:
            return PlainCox(np.array(coefficients))
        if is_plain_cox(self.estimator) and np.array_equal(coefficients, self.estimator.coef_):
            return self.estimator
        # A curve that is kept at fewer times than it has steps lags behind, always in the same direction, which any
        # comparison of many patients would show: between kept times, it rises by the same at each event time.
        followed, kept = self.estimator.follow_up_, baseline["times"]
        times = np.union1d(kept, followed.times[np.diff(followed.survival, prepend=1.0) < 0])
        known = np.searchsorted(times, kept)
        hazard = np.interp(np.arange(len(times)), known, baseline["cumulative_hazard"], left=0.0)
        with np.errstate(divide="ignore"):
            steps = Baseline(times, np.log(hazard))
        return PlainCoxCurves(np.array(coefficients), baseline["log_risk"], steps)

    def predictions(
        self,
        frame: pd.DataFrame,
        *,
        times: Sequence[str] = (),
        keep: Sequence[str] = (),
        strata: str | None = None,
    ) -> pd.DataFrame:
        """Predictions for the patients of a table.

        The column that named patients at training, those in `keep`, ``log_risk``, and ``survival_TIME`` for every
        time, written as it was given. Of a model of causes, ``log_risk_CAUSE`` and ``incidence_CAUSE_TIME``.
        """
        require_columns(frame, keep, "keep")
        named = self.id_column(frame)
        keep = list(dict.fromkeys([*([] if named is None else [named]), *keep]))
        at = _numbers(times)
        with warnings.catch_warnings(action="ignore", category=UnseenLevelWarning):
            # `findings` says it with its rows.
            features = self.features(frame)
        self._warn_of_far(features)
        model, found = self.estimator, frame[list(keep)]
        causes = range(1, getattr(model, "n_causes_", 0) + 1)
        columns = {f"log_risk_{cause}": model.predict(features, cause) for cause in causes}
        columns = columns or {"log_risk": model.predict(features)}
        given = self.observed(frame, strata) if at else {}
        curves = {
            f"incidence_{cause}": model.predict_cumulative_incidence(features, at, cause, **given)
            for cause in (causes if at else ())
        }
        if at:
            curves["survival"] = model.predict_survival_function(features, times=at, **given)
            self._warn_of_late(at, features, given)
        for name, values in curves.items():
            columns |= {f"{name}_{time}": values[:, k] for k, time in enumerate(times)}
        return found.assign(**columns)

    def _warn_of_late(self, times: Sequence[float], features: Any, given: Mapping[str, Any]) -> None:
        """Say so where nobody was followed long enough in training to tell."""
        end = self.estimator.follow_up_.times[-1]
        if late := [time for time in times if time > end]:
            first = {name: values[:1] for name, values in given.items()}
            curve = self.estimator.predict_survival_function(features[:1], times=[end, late[0]], **first)[0]
            how = "by a formula, which no patient confirms there"
            if curve[0] == curve[1]:
                how = "as it was then, which is too good"
            warn_caller(
                f"times {late[0]:g} lies beyond the longest follow-up in training, {end:g}: survival is "
                f"given {how}.",
                argument="times",
            )

    def _warn_of_far(self, features: pd.DataFrame) -> None:
        """Say so where numbers lie so far from those of training that they may be in another unit."""
        columns = [] if self.encoder is None else self.encoder.columns_
        for column in (one for one in columns if isinstance(one, NumberColumn) and one.is_scaled):
            distance = features[column.name].to_numpy()
            if far := int((np.abs(distance) > _FAR).sum()):
                value = column.mean + column.deviation * distance[np.abs(distance).argmax()]
                warn_caller(
                    f"column {column.name!r} holds {value:.4g}, but in training its mean was {column.mean:.4g} and its "
                    f"standard deviation {column.deviation:.4g}: {counted(far, 'row')} so far away (over {_FAR} "
                    "standard deviations) that nobody like that was learned from. Check the unit."
                )

    def observed(self, frame: pd.DataFrame, strata: str | None = None) -> dict[str, Any]:
        """What predictions for a table need besides features: the strata, from the column named here or at training."""
        column = strata or self.notes.get("observed", {}).get("strata")
        if column is None:
            return {}
        require_columns(frame, [column], "strata")
        return {"strata": frame[column].to_numpy()}

    def id_column(self, frame: pd.DataFrame) -> str | None:
        """The column that named patients at training, where a table has it."""
        noted = self.notes.get("id")
        return noted if noted in frame.columns else None

    def findings(self, frame: pd.DataFrame, strata: str | None = None) -> pd.DataFrame:
        """What was made up or left aside in a table, apart from the columns of the target and of the strata."""
        if self.encoder is None:
            return pd.DataFrame({"column": [], "rows": [], "done": []})
        named = [
            strata,
            *self.notes.get("target", {}).values(),
            *self.notes.get("observed", {}).values(),
            self.notes.get("id"),
        ]
        return self.encoder.findings(frame[[name for name in frame.columns if name not in named]])

    def table(
        self,
        frame: pd.DataFrame,
        *,
        groups: Sequence[str] = (),
        categorical: Sequence[str] = (),
        id: str | None = None,
        drop_missing_target: bool = False,
        **named: str | None,
    ) -> SurvivalTable:
        """The patients of a table with their target: as in :class:`TargetColumns`, or else as at training."""
        given = {name: value for name, value in named.items() if value is not None}
        noted = self.notes.get("target", {})
        times = {"time", "start", "end"}
        stale = times if times & given.keys() else set()
        if given.get("event", noted.get("event")) != noted.get("event"):
            stale = stale | {"event_value"}
        kept = {name: value for name, value in noted.items() if name not in stale}
        target = {"time": None, **kept, **given}
        if "event" not in target or not any(target.get(name) for name in times):
            raise ArgumentError(
                "time",
                f"{self.path} does not say which columns hold the target: pass time=COLUMN and event=COLUMN.",
            )
        if len(frame) < 2:
            raise ValueError("the table holds a single patient: a model is judged on at least two.")
        target["causes"] = hasattr(self.estimator, "predict_cumulative_incidence")
        columns = TargetColumns(**target)
        known = [] if self.encoder is None else self.encoder.categorical
        id = id or self.id_column(frame)
        table = SurvivalTable.parse(
            frame,
            columns,
            groups=groups,
            categorical=[*categorical, *(name for name in known if name in frame.columns)],
            id=id,
            drop_missing_target=drop_missing_target,
        )
        patient = id or self.notes.get("observed", {}).get("id")
        if table.entry is not None and patient is not None and patient in table.frame.columns:
            table = _one_row_each(table, patient)
        if not table.event.any():
            raise ArgumentError(
                "event_value",
                f"event column {columns.event!r} holds no event, so there is nothing to judge a model by: pass "
                f"event_value if another value means the event, or more patients.",
            )
        return table

    @property
    def warnings(self) -> list[dict[str, str]]:
        """Warnings given in training, each with a severity ("blocking" or "note") and a text."""
        return list(self.notes.get("warnings", []))

    def rows_seen(self, table: SurvivalTable, data: Path) -> RowsSeen | None:
        """Count the rows of a table, read from the file `data`, that the model was trained on; None if unknown."""
        if self.notes.get("trained_on") == fingerprint(data):
            return RowsSeen(len(table), len(table))
        kept = self.notes.get("row_hashes")
        return None if kept is None else RowHashes.from_dict(kept).seen_in(table.frame, table.y)

    def note_rows_seen(self, frame: pd.DataFrame, data: Path) -> None:
        """Note how many rows of a table to predict were trained on, where the table has the target to tell it."""
        seen = None
        if self.notes.get("trained_on") == fingerprint(data):
            seen = RowsSeen(len(frame), len(frame))
        else:
            try:
                with warnings.catch_warnings(action="ignore"):
                    table = self.table(frame, drop_missing_target=True)
            except ValueError:
                # Tables of new patients have no target.
                return
            seen = self.rows_seen(table, data)
        if seen is not None and seen.seen:
            warn_caller(f"the model was trained on {seen} of {data}.", category=TableNote)

    def warn_of_rows_seen(self, table: SurvivalTable, data: Path) -> RowsSeen | None:
        """Say how many rows of a table the model was trained on: numbers of those rows are too good."""
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
            why = ": too few to matter, or patients who are alike by chance" if seen.seen else ""
            warn_caller(f"the model was trained on {seen} of {data}{why}.", category=TableNote)
        return seen


def _numbers(texts: Sequence[str]) -> list[float]:
    try:
        return [float(text) for text in texts]
    except ValueError as error:
        raise ArgumentError.must("times", "be numbers separated by commas", ",".join(texts)) from error


def _one_row_each(table: SurvivalTable, patient: str) -> SurvivalTable:
    """Of patients with several rows (entry, time] the first ones, with what happened to the patients."""
    first, y, notes = first_rows(table.y, table.entry, table.frame[patient])
    for note in notes:
        warn_caller(first_upper(note), category=TableNote)
    return replace(table.take(first), y=y)
