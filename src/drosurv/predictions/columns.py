"""Predictions of any model in the columns of a table: which columns they are, and their times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError, arg, row_number
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.presentation import counted, listing
from drosurv.tables.ids import names_of_rows
from drosurv.tables.values import first_wrong, has_decimal_comma, numbers_in, to_floats

_ROUNDING = 1e-6
_NAMES = "x|s|t|p|surv|survival|prob|pred|risk|mort|mortality|death|event|cif|incidence"
_UNITS = {
    "days": "d|days?|tage?|jours?",
    "weeks": "w|wks?|weeks?|wochen?|semaines?",
    "months": "m|mos?|mths?|months?|monate?|mois",
    "years": "y|yrs?|years?|jahre?|ans?",
}
_UNIT = "|".join(_UNITS.values())
_SPACE = r"[\s_.(=-]*"
# "365", "S365", "S(365)", "survival_365", "surv.12", "risk_365", "surv_1y", and "X365", which R makes of a column
# called 365.
_AT_TIME = re.compile(
    rf"(?P<name>(?:{_NAMES})?{_SPACE}(?:at{_SPACE})?)(?P<time>\d+(?:\.\d+)?){_SPACE}(?P<unit>{_UNIT})?\)?",
    re.IGNORECASE,
)
# "5-year risk" and "1y_survival".
_TIME_FIRST = re.compile(
    rf"(?P<time>\d+(?:\.\d+)?){_SPACE}(?P<unit>{_UNIT}){_SPACE}(?P<name>{_NAMES})", re.IGNORECASE
)
# Words before the cause in names of incidences, such as "incidence_2_365" and "CIF cancer 5y".
_OF_CAUSE = "incidence|cuminc|cif|risk|prob|pred|p|f|event|death|mort|mortality|cause"
# Names like those of predictions; they are not used if others are.
_PERHAPS = re.compile(rf"(?:surv|prob|pred)[a-z]*{_SPACE}\d", re.IGNORECASE)
# Names of fewer letters, such as p53, may be those of anything.
_LONG_NAME = 4
_SURVIVAL = re.compile(r"(?:s|surv|survival)(?![a-z])", re.IGNORECASE)
_EVENT = re.compile(r"(?:risk|mort|mortality|death|event|cif|incidence)(?![a-z])", re.IGNORECASE)
_RISK = re.compile(
    r"partial_hazard|hazard_ratio|hr|risk|risk_score|log_risk|lp|linear_predictor|score|prediction",
    re.IGNORECASE,
)
# A column that is only named like a risk score is one if its rank correlation with the probabilities is at least this
# large. Fewer patients tell nothing.
_RELATED, _FEWEST = 0.5, 20
# A text column with more levels identifies patients, and defines no groups.
MOST_LEVELS = 20
# Columns named like predictions are meant as such if at least this share of the patients has values that can be.
_NEARLY = 0.9
PERCENT = 100.0


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """Predictions found in a table.

    `survival` (n, k) are probabilities at increasing `times` (k,) as in the table, of survival or of the event; `kind`
    ("survival", "event probability" or empty) and `unit` are what names of columns say. `times_given` says whether the
    user gave the times. With `incidence` of each cause by the times, `survival` is None. `risk` (n,) are risk scores.

    `names` are the columns of these; after incidences, those of survival and risk scores, which say the same. Not used
    are columns with names like predictions without a clear time, `unread`, and those that name patients or number the
    rows, `ids`. Rules may use the others, `features` (n, d); `no_scores` are named like risk scores, as `hr` for a
    heart rate is, but do not rank the patients as the probabilities do.
    """

    survival: FloatArray | None
    times: FloatArray | None
    risk: FloatArray | None
    names: tuple[str, ...]
    unread: tuple[str, ...]
    ids: tuple[str, ...]
    features: pd.DataFrame
    no_scores: tuple[str, ...] = ()
    unit: str = ""
    times_given: bool = False
    kind: str = ""
    incidence: Mapping[int, FloatArray] = field(default_factory=dict)

    @property
    def at_times(self) -> list[str]:
        """Columns of predictions at times."""
        return [] if self.times is None else list(self.names[: len(self.times)])

    def take(self, rows: IntArray) -> PredictionColumns:
        """Return the predictions of some rows."""
        return replace(
            self,
            survival=None if self.survival is None else self.survival[rows],
            risk=None if self.risk is None else self.risk[rows],
            incidence={cause: values[rows] for cause, values in self.incidence.items()},
            features=self.features.iloc[rows],
        )


def prediction_columns(
    frame: pd.DataFrame, *, survival: Sequence[str] = (), risk: str | None = None, causes: Sequence[str] = ()
) -> PredictionColumns:
    """Find the predictions of a table.

    Parameters
    ----------
    frame : DataFrame, (n, ...)
        Predictions and other columns of the patients, without time and event.
    survival : sequence of str
        Columns of predicted survival, whose names tell their times, or ``COLUMN=TIME``; by default those whose
        names are times (``365``, ``S365``, ``S(365)``, ``survival_365``, ``surv_1y``) and whose values can be survival.
    risk : str, optional
        Column of risk scores; by default one with a name such as ``risk`` or ``lp``.
    causes : sequence of str
        Names of the causes 1, 2, ...: columns whose names hold the number or the name of a cause and a time are its
        incidences, such as ``incidence_2_365`` and ``CIF cancer 5y``.
    """
    frame = frame.rename(columns=str)
    if risk is not None and risk not in frame.columns:
        raise ArgumentError("risk", f"{arg('risk', risk)} is not a column; the table has {[*frame.columns]}.")
    named = [name for name in frame.columns if _RISK.fullmatch(name)] if risk is None else [risk]
    scores = next(iter(named), None)
    by_cause = {} if survival else _of_causes(frame, causes)
    if by_cause:
        return _incidences(frame, by_cause, scores, causes)
    # Columns with missing values are considered only if there is no risk score; then they are an error.
    known = frame if scores is None else frame.dropna(axis=1)
    at = _given(frame, survival) if survival else _recognised(known, beside_scores=scores is not None)
    ordered = _by_time(at)
    related = [name for name in named if risk or not at or _related(frame[name], frame[ordered[-1]])]
    scores = next(iter(related), None)
    return PredictionColumns(
        survival=probabilities(frame[ordered]) if at else None,
        times=np.array([at[name].time for name in ordered]) if at else None,
        risk=None if scores is None else prediction_numbers(frame[[scores]])[:, 0],
        unit=next((at[name].unit for name in ordered), ""),
        times_given=all(at[name].given for name in ordered),
        kind=next((at[name].kind for name in ordered), ""),
        no_scores=tuple(name for name in named if name not in related),
        **_beside(frame, (*ordered, *([] if scores is None else [scores]))),
    )


def _related(scores: pd.Series[Any], probabilities: pd.Series[Any]) -> bool:
    """Whether numbers rank the patients (n,) nearly as probabilities do; true if there are too few to tell."""
    if len(scores) < _FEWEST:
        return True
    # Of constants the correlation is not known.
    with np.errstate(invalid="ignore", divide="ignore"):
        ranks = pd.Series(numbers_in(scores)).rank().corr(pd.Series(numbers_in(probabilities)).rank())
    return not abs(ranks) < _RELATED


def named_like_predictions(frame: pd.DataFrame, survival: Sequence[str], risk: str | None) -> list[str]:
    """Return the columns that are given as predictions, or have names like those of predictions."""
    given = {risk, *survival, *(entry.rpartition("=")[0] for entry in survival)}
    return [
        name for name in map(str, frame.columns) if name in given or _named(name) or _RISK.fullmatch(name)
    ]


def _beside(frame: pd.DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the names of predictions, and which of the other columns are not read, ids, and features."""
    others = frame.drop(columns=list(names))
    numbers = others.select_dtypes("number")
    unread = tuple(name for name in numbers.columns if _PERHAPS.match(name))
    ids = names_of_rows(others)
    free = [name for name in others.columns if name not in (*unread, *ids)]
    levels = others[free].nunique()
    # Rules may use columns that are not constant, and hold numbers or few levels.
    used = [name for name in free if levels[name] > 1 and (name in numbers or levels[name] <= MOST_LEVELS)]
    return {"names": names, "unread": unread, "ids": ids, "features": others[used]}


def _of_causes(frame: pd.DataFrame, causes: Sequence[str]) -> dict[int, dict[str, _AtTime]]:
    """Return the columns of incidences of each cause that has some, and what their names say."""
    found: dict[int, dict[str, _AtTime]] = {}
    for number, cause in enumerate(causes, start=1):
        words = rf"(?:(?:{_OF_CAUSE}){_SPACE})"
        # A number is that of a cause only after a word.
        by_name = "" if cause == str(number) else rf"|{words}*{re.escape(cause)}"
        called = rf"(?:{words}+{number}{by_name})"
        pattern = re.compile(
            rf"{called}{_SPACE}(?:at{_SPACE})?(?P<time>(?<!\d)\d+(?:\.\d+)?){_SPACE}(?P<unit>{_UNIT})?\)?",
            re.IGNORECASE,
        )
        for name in frame.columns:
            match = pattern.fullmatch(name)
            if match is not None and _like_numbers(frame[name]):
                at = _AtTime(float(match["time"]), _unit_of(match["unit"]), "event probability")
                found.setdefault(number, {})[name] = at
    return found


def _incidences(
    frame: pd.DataFrame, by_cause: dict[int, dict[str, _AtTime]], scores: str | None, causes: Sequence[str]
) -> PredictionColumns:
    """Return predictions by cause; raise if their times differ. Survival beside them says the same, and is not used."""
    ordered = {k: _by_time(at) for k, at in by_cause.items()}
    when = {k: [(by_cause[k][name].time, by_cause[k][name].unit) for name in ordered[k]] for k in by_cause}
    first = next(iter(when))
    for cause, times in when.items():
        if times != when[first]:
            raise ArgumentError(
                "survival",
                f"columns {', '.join(ordered[first])} and {', '.join(ordered[cause])} hold incidences of two causes at "
                "different times: give all causes at the same times.",
            )
    names = [name for columns in ordered.values() for name in columns]
    names += [] if scores is None else [scores]
    # Columns of survival, and risk scores of a cause, say nothing that incidences do not.
    names += [
        name
        for name in frame.columns
        if ((named := _named(name)) and named.kind == "survival")
        or _RISK.fullmatch(re.sub(rf"[\s_.-]*(?:\d+|{'|'.join(map(re.escape, causes))})$", "", name))
    ]
    return PredictionColumns(
        survival=None,
        times=np.array([time for time, _ in when[first]]),
        risk=None if scores is None else prediction_numbers(frame[[scores]])[:, 0],
        incidence={k: prediction_numbers(frame[columns]) for k, columns in ordered.items()},
        unit=when[first][0][1],
        kind="event probability",
        **_beside(frame, tuple(dict.fromkeys(names))),
    )


class _AtTime(NamedTuple):
    """What the name of a column, or the user, says about its predictions."""

    time: float
    unit: str = ""
    kind: str = ""
    # What the name has besides time and unit.
    stem: str = ""
    given: bool = False


def _by_time(named: Mapping[str, _AtTime]) -> list[str]:
    return sorted(named, key=lambda name: named[name].time)


def _named(name: str) -> _AtTime | None:
    """Return what a name says; None if it is not that of predictions at a time.

    >>> _named("surv_5y")
    _AtTime(time=5.0, unit='years', kind='survival', stem='surv_', given=False)
    """
    match = _AT_TIME.fullmatch(name) or _TIME_FIRST.fullmatch(name)
    if match is None:
        return None
    unit = _unit_of(match["unit"])
    stem = match["name"].lower()
    kind = "survival" if _SURVIVAL.match(stem) else "event probability" if _EVENT.match(stem) else ""
    return _AtTime(float(match["time"]), unit, kind, stem)


def _unit_of(written: str | None) -> str:
    """Return the unit of times, such as "years", from its abbreviation in a name; empty for none."""
    return next(
        (unit for unit, words in _UNITS.items() if re.fullmatch(words, written or "", re.IGNORECASE)), ""
    )


def _given(frame: pd.DataFrame, entries: Sequence[str]) -> dict[str, _AtTime]:
    found: dict[str, _AtTime] = {}
    for entry in entries:
        name, _, time = entry.rpartition("=") if entry not in frame.columns else (entry, "", "")
        match = re.search(r"(\d+(?:\.\d+)?)\)?\s*$", time or name)
        named = _named(name)
        if name in frame.columns and not time and named is not None:
            found[name] = named
            continue
        if name not in frame.columns or match is None:
            raise ArgumentError(
                "survival",
                f"{arg('survival', entry)} must be a column whose name ends in its time, or COLUMN=TIME; the "
                f"table has {[*frame.columns]}.",
            )
        found[name] = _AtTime(float(match[1]), kind="" if named is None else named.kind, given=bool(time))
    if len({at.unit for at in found.values()}) > 1:
        raise ArgumentError(
            "survival",
            f"{arg('survival')} names columns with times in different units: {', '.join(entries)}. Pass COLUMN=TIME "
            "for each, in the unit of the times of the table.",
        )
    return found


def _recognised(frame: pd.DataFrame, beside_scores: bool) -> dict[str, _AtTime]:
    """Return the largest set of columns with names alike and a time in them, whose values can be probabilities.

    Only columns with names alike belong together: a hormone called T3 does not belong to S365 and S730. Raise if there
    are none, unless there are risk scores; and if the values of only a few patients cannot be probabilities.
    """
    alike: dict[tuple[str, str], dict[str, _AtTime]] = {}
    for name in frame.columns:
        named = _named(name)
        if named is not None and _like_numbers(frame[name]):
            alike.setdefault((named.stem, named.unit), {})[name] = named
    seen = [_Candidate.of(frame, named) for named in alike.values()]
    fit = [one for one in seen if not one.fault]
    if fit:
        # Fractions are preferred to percentages.
        return max(fit, key=lambda one: (not one.percent, len(one.columns), one.complete)).columns
    best = max(seen, key=lambda one: (one.right, len(one.columns)), default=None)
    meant = best is not None and best.right >= _NEARLY
    several = best is not None and len(best.columns) > 1
    if beside_scores and not (best and meant and several and next(iter(best.columns.values())).kind):
        return {}
    if best and meant:
        raise ArgumentError("survival", best.fault)
    called, example = "", ["S365=365", "S730=730"]
    if best:
        names = _by_time(best.columns)
        called = f". By name, {listing(names)} may be, but {best.fault.rstrip('.')}"
        # A name that tells the unit is enough: its time may be another number in the unit of the table.
        own = {name: best.columns[name] for name in names}
        example = [name if at.unit else f"{name}={at.time:g}" for name, at in own.items()]
    raise ArgumentError(
        "survival",
        f"no column of the table is recognised as predictions{called}: pass "
        f"{arg('survival', example)} for columns of probabilities at times, or "
        f"{arg('risk', text='COLUMN')} for one of risk scores.",
    )


def _like_numbers(column: pd.Series[Any]) -> bool:
    """Whether most values present in a column are numbers, also if a few texts make it a column of texts."""
    if pd.api.types.is_numeric_dtype(column):
        return True
    present = column.dropna().astype(object)
    numbers = ~np.isnan(numbers_in(present)) | present.map(has_decimal_comma).to_numpy(dtype=np.bool_)
    return bool(len(present)) and bool(numbers.mean() > 0.5)


class _Candidate(NamedTuple):
    """Columns whose names are those of predictions at times.

    `fault` says why their values cannot be probabilities; it is empty if they can. `right` is the share of patients
    whose values can be.
    """

    columns: dict[str, _AtTime]
    fault: str
    right: float
    percent: bool
    complete: bool

    @classmethod
    def of(cls, frame: pd.DataFrame, named: dict[str, _AtTime]) -> _Candidate:
        """Judge columns by their values."""
        ordered = _by_time(named)
        table = frame[ordered]
        values = np.column_stack([numbers_in(table[name]) for name in ordered])
        text = np.isnan(values) & table.notna().to_numpy()
        known, percent = values[~np.isnan(values)], in_percent(values)
        fault, wrong = _no_probabilities(table, values, percent)
        # A single column up to 100 may be any amount, unless its name says more.
        amount = percent and len(named) == 1 and len(named[ordered[0]].stem.strip(" _.(=-")) < _LONG_NAME
        if text.any():
            fault, wrong = _text_in(table), wrong | text.any(axis=1)
        elif len(known) == 0:
            fault, wrong = "they are empty.", ~wrong
        elif np.isin(known, (0.0, 1.0)).all():
            levels = " and ".join(f"{level:g}" for level in np.unique(known))
            fault, wrong = f"they hold only the value{'s' * (' ' in levels)} {levels}.", np.ones_like(wrong)
        elif amount:
            fault, wrong = "their values may be any amount.", np.ones_like(wrong)
        # Whole numbers, such as counts, do not look like probabilities.
        right = ~wrong & (percent | (values % 1 > 0).any(axis=1))
        return cls(named, fault, float(np.mean(right)), percent, not table.isna().any(axis=None))


def in_percent(values: FloatArray) -> bool:
    """Whether probabilities (n, k) are in percent: most of those at the last time are above 1."""
    last = values[:, -1][~np.isnan(values[:, -1])]
    return bool(len(last)) and bool(np.mean(last > 1 + _ROUNDING) > 0.5)


def probabilities(frame: pd.DataFrame, percent: bool | None = None) -> FloatArray:
    """Return probabilities at increasing times (n, k) as in the table; raise with the first that cannot be one.

    `percent` says whether they are in percent, by default as :func:`in_percent` recognises it.
    """
    values = prediction_numbers(frame)
    fault, _ = _no_probabilities(frame, values, in_percent(values) if percent is None else percent)
    if fault:
        raise ArgumentError("survival", fault)
    return values


def _no_probabilities(frame: pd.DataFrame, values: FloatArray, percent: bool) -> tuple[str, BoolArray]:
    """Return the first reason why values (n, k) are no probabilities, empty if they can be, and for whom (n,)."""
    most = PERCENT if percent else 1.0
    outside = (values < -_ROUNDING) | (values > most * (1 + _ROUNDING))
    changes = np.diff(values, axis=1)
    up, down = changes > _ROUNDING, changes < -_ROUNDING
    falling = down.sum() >= up.sum()
    contrary = up if falling else down
    wrong = np.asarray(np.column_stack([outside, contrary]).any(axis=1), np.bool_)
    scale = "in percent lie between 0 and 100" if percent else "lie between 0 and 1, or are all in percent"
    if outside.any():
        place = int(outside.any(axis=0).argmax())
        column = frame.iloc[:, place]
        return f"{first_wrong(column, outside[:, place], 'no probability')}: probabilities {scale}.", wrong
    if contrary.any():
        row = int(contrary.any(axis=1).argmax())
        place = int(contrary[row].argmax())
        first, then = (repr(str(name)) for name in frame.columns[place : place + 2])
        return (
            f"column {then} holds {values[row, place + 1]:g} in row {row_number(row, frame)}, "
            f"{'above' if falling else 'below'} {values[row, place]:g} in column {first} "
            f"({counted(int(contrary.any(axis=1).sum()), 'such row')}): survival cannot rise with time, nor the "
            "probability of the event fall. Correct such values, and check the times of the columns."
        ), wrong
    return "", wrong


def _text_in(frame: pd.DataFrame) -> str:
    """Return the error about the first text in columns of numbers."""
    try:
        prediction_numbers(frame)
    except InputError as error:
        return str(error)
    raise AssertionError("the columns hold a text")


def prediction_numbers(predictions: Any) -> FloatArray:
    """Return predictions (n, k) as numbers; raise if a value is missing."""
    named = isinstance(predictions, pd.DataFrame)
    if named:
        columns = [to_floats(predictions.iloc[:, place]) for place in range(predictions.shape[1])]
        values: FloatArray = np.column_stack(columns) if columns else np.empty(predictions.shape)
    else:
        try:
            values = pd.DataFrame(np.asarray(predictions)).to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise ArgumentError("predictions", f"{arg('predictions')} must hold numbers only.") from None
    if np.isnan(values).any():
        rows = np.flatnonzero(np.isnan(values).any(axis=1))
        first = row_number(rows[0], predictions)
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} are missing for {counted(len(rows), 'patient')}, the first in row {first}: "
            "leave such patients out, and report that.",
        )
    return values
