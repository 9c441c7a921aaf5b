"""Audit the predictions of any model, made for example with R, lifelines or a vendor's software.

Predictions are survival or event probabilities at times, as fractions or in percent, and risk scores: log risks or
hazard ratios. Their kind is recognised from their values; if that is not possible, an error asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from drosurv.curves import parse_survival
from drosurv.errors import ArgumentError, require, worded
from drosurv.evaluation import Predictions
from drosurv.evaluation.from_entry import curve_times
from drosurv.metrics import FollowUp
from drosurv.metrics.expected_events import known_everywhere
from drosurv.metrics.follow_up import free_until, last_with_enough_at_risk
from drosurv.presentation import counted, moment
from drosurv.repairs.curves import PredictionGrid, log_mean_hazard, reference_times
from drosurv.report.alpha_path import Stop
from drosurv.report.evidence import Evidence
from drosurv.report.report import AuditReport, Section
from drosurv.tables.ids import counts_rows, names_patients
from drosurv.tables.values import row_number
from drosurv.target import FloatArray, Target, parse_target

Kind: TypeAlias = Literal["survival", "event probability"]
RiskKind: TypeAlias = Literal["log risk", "hazard ratio", "other"]
KINDS: tuple[Kind, ...] = ("survival", "event probability")
RISK_KINDS: tuple[RiskKind, ...] = ("log risk", "hazard ratio", "other")
_ROUNDING = 1e-6
_PERCENT = 100.0
# A risk score is a log hazard if its squared correlation with the log hazard of the probabilities is at least this.
_GOOD_FIT = 0.98
# Above this p-value it is unclear whether patients with the event have higher predictions.
_UNSURE = 1e-3
# "365", "S365", "S(365)", "survival_365", "surv.12", "risk_365", and "X365", which R makes of a column called 365.
_AT_TIME = re.compile(
    r"(?:x|s|t|p|surv|survival|prob|pred|risk|mort|mortality|death|event|cif|incidence)?[\s_.(=]*(\d+(?:\.\d+)?)\)?",
    re.IGNORECASE,
)
# Names like those of predictions; "surv_1y" or "pred365d" may be in other units than the times, so they are not used.
_PERHAPS = re.compile(r"(?:surv|prob|pred)[a-z]*[\s_.(=-]*\d", re.IGNORECASE)
_RISKS = (
    "partial_hazard",
    "hazard_ratio",
    "hr",
    "risk",
    "risk_score",
    "log_risk",
    "lp",
    "linear_predictor",
    "score",
    "prediction",
)
# A text column with more levels identifies patients, and defines no groups.
MOST_LEVELS = 20
OWN_FOLLOW_UP = (
    "The training patients are not known. The null model and the censoring distribution are estimated from the audited "
    "patients, for which the likelihood gain is corrected.",
    "Predictions do not show whether the model was trained on any of these patients. If it was, all numbers here are "
    "too good.",
)


def audit_predictions(
    predictions: Any,
    y: Any,
    *,
    times: Any = None,
    risk: Any = None,
    kind: Kind | None = None,
    risk_kind: RiskKind | None = None,
    sensitive_features: Any = None,
    y_train: Any = None,
    features: pd.DataFrame | None = None,
    reference: Any = None,
    reference_name: str = "the reference",
    name: str = "Predictions",
    title: str | None = None,
    data_name: str = "",
    time_title: str = "time",
    n_bootstrap: int = 500,
    level: float = 0.95,
    search_rules: bool = True,
    random_state: int = 0,
    also: Mapping[str, Any] | None = None,
    warnings: Sequence[Mapping[str, str]] = (),
    horizon: float | None = None,
    threshold: float | None = None,
    sections: Sequence[Section] = (),
) -> AuditReport:
    """Audit predictions that were made by any program.

    Parameters
    ----------
    predictions : (n, k) array or DataFrame, Predictions, (n,) array, or None
        Predicted survival or event probabilities at k times, one column each (a DataFrame's column names may be the
        times), as fractions or in percent; or :class:`~drosurv.evaluation.Predictions`; or risk scores, higher meaning
        sooner.
    y : structured array, (n,)
        Events and times of the patients.
    times : (k,) array, optional
        Times of the columns.
    risk : (n,) array, optional
        Risk scores to rank patients by, besides probabilities; by default the log of the mean predicted cumulative
        hazard. Scores that do not agree with the probabilities as log hazards are not used.
    kind : {"survival", "event probability"}, optional
        What the probabilities are. By default, probabilities that decrease with time are survival; for a single time it
        is decided by whether patients with or without the event have higher values.
    risk_kind : {"log risk", "hazard ratio", "other"}, optional
        What the risk scores are. By default it is recognised from the probabilities: with them either the scores agree,
        or their logarithms.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, optional
        One column of group labels per attribute.
    y_train : structured array or FollowUp, optional
        Training target, if it is known; by default that of the audited patients is used.
    features : DataFrame, (n, d), optional
        Columns that rules may use; without them no rules are searched.
    reference : Predictions or (n,) array, optional
        Another model's predictions for the same patients, to compare with.
    reference_name, name : str
        Names of the reference and of the audited model in the report.
    title, data_name, time_title, n_bootstrap, level, search_rules, random_state, also, warnings
        As in :func:`~drosurv.report.audit`.
    horizon, threshold, sections
        As in :func:`~drosurv.report.audit`.

    Returns
    -------
    AuditReport

    Examples
    --------
    >>> from drosurv import CoxPH
    >>> from drosurv.report import audit_predictions
    >>> from drosurv.datasets import make_hidden_minority
    >>> data = make_hidden_minority(400, random_state=0)
    >>> survival = CoxPH().fit(data.X, data.y).predict_survival_function(data.X, times=[0.5, 1.0, 2.0])
    >>> report = audit_predictions(
    ...     survival, data.y, times=[0.5, 1.0, 2.0], sensitive_features=data.sensitive_features, n_bootstrap=20
    ... )
    >>> report.audited.name
    'Predictions'
    """
    require(kind is None or kind in KINDS, "kind", f"be one of {KINDS}", kind)
    require(risk_kind is None or risk_kind in RISK_KINDS, "risk_kind", f"be one of {RISK_KINDS}", risk_kind)
    parsed, found = as_predictions(predictions, times, risk, y, kind)
    missing = ["Proportional hazards were not tested: predictions come without a model's coefficients."]
    horizons: FloatArray | None = None
    ends: tuple[str, ...] = ()
    if isinstance(parsed, PredictionGrid):
        end = float(parsed.times[-1])
        y, ends = until(y, end, "" if time_title == "time" else time_title)
        target = parse_target(y)
        predicted = parsed.times[parsed.times > 0]
        horizon = last_horizon(target, predicted) if horizon is None else horizon
        horizons = np.union1d(nearest_quartiles(target, predicted), horizon)
        implied = log_mean_hazard(parsed.at(predicted))
        score, more = (implied, ()) if risk is None else log_risk(risk, implied, risk_kind)
        found += more
        parsed = completed(parsed, target, score)
    elif parsed.survival is None and not isinstance(predictions, Predictions):
        parsed, more = _scores_alone(parsed.risk, risk_kind)
        found += more
    if features is None:
        missing.append("Subgroups were not searched: no columns were given that could define them.")
    if reference is None:
        missing.append("The model is not compared with another one: no other predictions were given.")
    facts: dict[str, Any] = {"Audited": "predictions; the model itself is not known"}
    if horizons is not None:
        facts["Horizons"] = horizons.tolist()
    notes = [{"severity": "note", "text": worded(text)} for text in found]
    return AuditReport.of(
        Evidence(
            stops=(Stop(name, None, parsed),),
            y=y,
            follow_up=FollowUp.standing_in(parse_target(y)) if y_train is None else y_train,
            sensitive_features=sensitive_features,
            reference=None if reference is None else (reference, None),
            reference_name=reference_name,
            features=features,
            model=facts,
            missing=tuple(missing),
            limits=(*ends, *(OWN_FOLLOW_UP if y_train is None else OWN_FOLLOW_UP[1:])),
            horizons=horizons,
            until=end if ends else None,
            title=title,
            data_name=data_name,
            time_title=time_title,
            n_bootstrap=n_bootstrap,
            level=level,
            search_rules=search_rules,
            random_state=random_state,
            also=dict(also or {}),
            warnings=(*warnings, *notes),
            horizon=horizon,
            threshold=threshold,
            sections=tuple(sections),
        )
    )


def as_predictions(
    predictions: Any, times: Any, risk: Any, y: Any, kind: Kind | None = None
) -> tuple[Predictions | PredictionGrid, tuple[str, ...]]:
    """Check predictions; return them, and notes on how they were read."""
    if isinstance(predictions, Predictions):
        return predictions, ()
    if times is None and hasattr(predictions, "columns"):
        times = _times_of(predictions.columns)
    if predictions is None or np.ndim(predictions) == 1:
        scores = risk if predictions is None else predictions
        if scores is None:
            raise ArgumentError(
                "predictions",
                "predictions or risk is needed: pass probabilities at times, or risk scores.",
            )
        return Predictions(scores), ()
    if times is None:
        raise ArgumentError("times", "times is needed: pass the time of each column of predictions.")
    target = parse_target(y)
    survival, notes = as_survival(as_numbers(predictions), np.asarray(times, dtype=float), target, kind)
    return PredictionGrid.parse((times, survival), len(target)), notes


def as_survival(
    values: FloatArray, times: FloatArray, target: Target, kind: Kind | None = None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return probabilities (n, k) as survival between 0 and 1, and notes on how they were read."""
    notes: tuple[str, ...] = ()
    if 1 + _ROUNDING < values.max(initial=0.0) <= _PERCENT and values.min(initial=0.0) >= 0:
        values, notes = values / _PERCENT, ("predictions above 1 were read as percentages.",)
    if kind is None:
        kind, how = _kind_of(values, times, target)
        notes += (how,) if how else ()
    return (1 - values if kind == "event probability" else values), notes


def _kind_of(values: FloatArray, times: FloatArray, target: Target) -> tuple[Kind, str]:
    """Return whether probabilities are of survival or of the event, and a note on how that was decided."""
    changes = np.diff(values, axis=1)
    if changes.size and np.any(changes):
        if (changes >= -_ROUNDING).all():
            return (
                "event probability",
                "predictions rise with time, so they were read as event probabilities.",
            )
        # Values that fall and rise are refused later, with the first row that rises.
        return "survival", ""
    last = float(times[-1])
    had, free = target.event & (target.time <= last), free_until(target) > last
    if not had.any() or not free.any():
        raise ArgumentError("kind", "kind is needed: pass kind='survival' or kind='event probability'.")
    higher = mannwhitneyu(values[had, -1], values[free, -1])
    share = higher.statistic / (had.sum() * free.sum())
    # Where all predictions are equal, some versions of scipy give no p-value.
    if not higher.pvalue <= _UNSURE:
        raise ArgumentError(
            "kind",
            "kind is needed, because patients with and without the event have similar predictions: pass "
            "kind='survival' or kind='event probability'.",
        )
    if share > 0.5:
        return (
            "event probability",
            "predictions are higher for patients who had the event, so they were read as event probabilities.",
        )
    return "survival", "predictions are lower for patients who had the event, so they were read as survival."


def log_risk(
    risk: Any, implied: FloatArray, kind: RiskKind | None = None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return a risk score as a log hazard, and a note on how it was read.

    `implied` (n,) is the log hazard that the predicted probabilities imply. If the score agrees with it, it is returned
    unchanged; if its logarithm does, the score is a hazard ratio; otherwise `implied` is returned.
    """
    score = as_numbers(np.reshape(np.asarray(risk, dtype=object), (-1, 1)))[:, 0]
    positive = bool((score > 0).all())
    if kind == "hazard ratio" and not positive:
        raise ArgumentError.must("risk", "be above 0 where it is a hazard ratio", float(score.min()))
    plain_fit = _fit(score, implied)
    log_fit = _fit(np.log(score), implied) if positive else -1.0
    if kind is None:
        if max(plain_fit, log_fit) < -_GOOD_FIT:
            raise ArgumentError(
                "risk",
                "risk decreases with the predicted risk, but higher must mean sooner: pass it with the other sign.",
            )
        kind = (
            "log risk"
            if plain_fit >= max(_GOOD_FIT, log_fit)
            else "hazard ratio"
            if log_fit > _GOOD_FIT
            else "other"
        )
        if kind == "hazard ratio":
            return np.log(score), (
                "the risk score was read as a hazard ratio, because its logarithm agrees with the probabilities.",
            )
    if kind == "other":
        return implied, (
            "the risk score does not agree with the predicted probabilities as a log hazard, and was left out: "
            "patients are ranked by the probabilities.",
        )
    return (np.log(score) if kind == "hazard ratio" else score), ()


def _scores_alone(risk: Any, kind: RiskKind | None) -> tuple[Predictions, tuple[str, ...]]:
    """Return risk scores without probabilities, and a note if they may be log risks or hazard ratios."""
    score = as_numbers(np.reshape(np.asarray(risk, dtype=object), (-1, 1)))[:, 0]
    positive = bool((score > 0).all())
    if kind == "hazard ratio":
        if not positive:
            raise ArgumentError.must("risk", "be above 0 where it is a hazard ratio", float(score.min()))
        return Predictions(np.log(score)), ()
    if kind == "log risk" or (kind is None and not positive):
        return Predictions(score), ()
    note = (
        "all risk scores are above 0, so they may be hazard ratios or log risks: only ranking is judged. Pass "
        "risk_kind='log risk' or 'hazard ratio' to judge more.",
    )
    return Predictions(score, score_type="other"), note if kind is None else ()


def _fit(score: FloatArray, other: FloatArray) -> float:
    """Return the squared correlation of two scores, with its sign."""
    if np.ptp(score) == 0 or np.ptp(other) == 0:
        return 1.0
    r = float(np.corrcoef(score, other)[0, 1])
    return r * abs(r)


def until(y: Any, end: float, time_unit: str) -> tuple[Any, tuple[str, ...]]:
    """Censor patients at the last predicted time; return the target, and a sentence for the limits of the report."""
    event, time = y.dtype.names
    later = y[time] > end
    if not later.any():
        return y, ()
    cut = y.copy()
    cut[event] &= ~later
    cut[time] = np.minimum(y[time], end)
    if not cut[event].any():
        raise ArgumentError(
            "predictions",
            f"predictions end at {moment(end, time_unit)}, before the first event: predict later times, "
            "in the unit of the observed times.",
        )
    return cut, (
        f"The predictions end at {moment(end, time_unit)}. Later times ({counted(int(later.sum()), 'patient')}) are "
        "censored there.",
    )


def nearest_quartiles(target: Target, times: FloatArray) -> FloatArray:
    """Return the predicted times nearest to the quartiles of the event times, so that nothing is interpolated."""
    return np.unique(times[np.abs(times - reference_times(target)[:, None]).argmin(axis=1)])


def last_horizon(target: Target, times: FloatArray) -> float:
    """Return the last of the predicted times at which a tenth of the patients is at risk, or else the first."""
    observed = times[times <= last_with_enough_at_risk(target)]
    return float(observed[-1] if len(observed) else times[0])


def completed(grid: PredictionGrid, target: Target, risk: FloatArray) -> Predictions:
    """Return curves that are also known between the predicted times.

    The shape of the hazard there is estimated from the audited patients: a step function would predict no events
    between the times, and a constant hazard would be wrong if the true hazard changes.
    """
    points = grid.times[grid.times > 0]
    curves = parse_survival(np.exp(-grid.at(points)), len(target), points)
    times = np.union1d(points, curve_times(target.time[target.event]))
    return Predictions(risk, known_everywhere(curves, target).survival(times), times, curve_type="step")


def _times_of(columns: Any) -> FloatArray:
    try:
        return np.array([float(name) for name in columns])
    except (TypeError, ValueError):
        raise ArgumentError(
            "times",
            f"times is needed: the columns of predictions are not named by times: "
            f"{[str(name) for name in columns]}.",
        ) from None


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """Predictions found in a table.

    Attributes
    ----------
    survival : (n, k) float64 or None
        Probabilities at `times` as in the table, of survival or of the event.
    times : (k,) float64 or None
        Increasing times.
    risk : (n,) float64 or None
        Risk scores.
    names : tuple of str
        Columns of these predictions.
    unread : tuple of str
        Columns of numbers with names like predictions, but without a clear time; they are not used.
    ids : tuple of str
        Columns that name patients or number the rows; they are not used.
    features : DataFrame, (n, d)
        Other columns, which rules may use.
    """

    survival: FloatArray | None
    times: FloatArray | None
    risk: FloatArray | None
    names: tuple[str, ...]
    unread: tuple[str, ...]
    ids: tuple[str, ...]
    features: pd.DataFrame


def prediction_columns(
    frame: pd.DataFrame, *, survival: Sequence[str] = (), risk: str | None = None
) -> PredictionColumns:
    """Find the predictions of a table.

    Parameters
    ----------
    frame : DataFrame, (n, ...)
        Predictions and other columns of the patients, without time and event.
    survival : sequence of str
        Columns of predicted survival, whose names end in their times, or ``COLUMN=TIME``; by default those whose
        names are times (``365``, ``S365``, ``S(365)``, ``survival_365``) and whose values can be survival.
    risk : str, optional
        Column of risk scores; by default one with a name such as ``risk`` or ``lp``.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.report.predictions import prediction_columns
    >>> found = prediction_columns(pd.DataFrame({"S365": [0.9, 0.8], "S730": [0.7, 0.6], "age": [50, 60]}))
    >>> found.names, found.times.tolist(), list(found.features)
    (('S365', 'S730'), [365.0, 730.0], ['age'])
    """
    frame = frame.rename(columns=str)
    if risk is not None and risk not in frame.columns:
        raise ArgumentError("risk", f"risk={risk!r} is not a column; the table has {[*frame.columns]}.")
    scores = risk or next((name for name in frame.columns if name.lower() in _RISKS), None)
    # Columns with missing values are considered only if there is no risk score; then they are an error.
    at = (
        _given(frame, survival)
        if survival
        else _recognised(frame if scores is None else frame.dropna(axis=1))
    )
    if not at and scores is None:
        raise ArgumentError(
            "survival",
            "no column of the table is recognised as predictions: name columns of predicted survival in "
            "survival, such as S365=365,S730=730, or the column of risk scores in risk.",
        )
    ordered = sorted(at, key=lambda name: at[name])
    names = (*ordered, *([] if scores is None else [scores]))
    others = frame.drop(columns=list(names))
    numbers = others.select_dtypes("number")
    unread = tuple(name for name in numbers.columns if _PERHAPS.match(name))
    ids = tuple(
        name for name in others.columns if names_patients(name, others[name]) or counts_rows(others[name])
    )
    return PredictionColumns(
        survival=as_numbers(frame[ordered]) if at else None,
        times=np.array([at[name] for name in ordered]) if at else None,
        risk=None if scores is None else as_numbers(frame[[scores]])[:, 0],
        names=names,
        unread=unread,
        ids=ids,
        features=others[
            [name for name in others.columns if name not in (*unread, *ids) and _can_define(others[name])]
        ],
    )


def _given(frame: pd.DataFrame, entries: Sequence[str]) -> dict[str, float]:
    found = {}
    for entry in entries:
        name, _, time = entry.rpartition("=") if entry not in frame.columns else (entry, "", "")
        match = re.search(r"(\d+(?:\.\d+)?)\)?\s*$", time or name)
        if name not in frame.columns or match is None:
            raise ArgumentError(
                "survival",
                f"survival={entry!r} must be a column whose name ends in its time, or COLUMN=TIME; the "
                f"table has {[*frame.columns]}.",
            )
        found[name] = float(match[1])
    return found


def _recognised(frame: pd.DataFrame) -> dict[str, float]:
    """Return the largest set of columns with the same prefix and a time in their names, whose values are monotone.

    Only columns with the same prefix belong together: a hormone called T3 does not belong to S365 and S730.
    """
    alike: dict[str, dict[str, float]] = {}
    for name in frame.columns:
        match = _AT_TIME.fullmatch(name)
        if match is not None and pd.api.types.is_numeric_dtype(frame[name]):
            alike.setdefault(name[: match.start(1)].lower(), {})[name] = float(match[1])
    # Fractions are preferred to percentages.
    for most in (1.0, 100.0):
        fit = [named for named in alike.values() if _is_monotone(frame, named, most)]
        if fit:
            return max(fit, key=lambda named: (len(named), frame[[*named]].notna().all(axis=None)))
    return {}


def _is_monotone(frame: pd.DataFrame, named: dict[str, float], most: float) -> bool:
    """Whether columns may be survival or event probabilities at their times, on a scale up to `most`."""
    ordered: list[str] = sorted(named, key=lambda name: named[name])
    values = frame[ordered].to_numpy(dtype=np.float64, na_value=np.nan)
    # Columns of 0 and 1 only are indicators; a single column up to 100 may be any amount.
    if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all() or (most > 1 and len(named) == 1):
        return False
    changes = np.diff(values, axis=1)
    outside = (values < 0) | (values > most)
    return not (outside.any() or ((changes > _ROUNDING).any() and (changes < -_ROUNDING).any()))


def as_numbers(predictions: Any) -> FloatArray:
    """Return predictions (n, k) as numbers; raise if a value is missing."""
    named = isinstance(predictions, pd.DataFrame)
    frame = predictions if named else pd.DataFrame(np.asarray(predictions))
    try:
        values: FloatArray = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        where = f": the columns {[*predictions.columns]}" if named else ""
        raise ArgumentError(
            "predictions",
            f"predictions{where} must hold numbers only. If a comma is the decimal mark, pass decimal=','.",
        ) from None
    if np.isnan(values).any():
        rows = np.flatnonzero(np.isnan(values).any(axis=1))
        first = row_number(predictions.index, rows[0]) if named else rows[0]
        raise ArgumentError(
            "predictions",
            f"predictions are missing for {counted(len(rows), 'patient')}, the first in row {first}: "
            "leave such patients out, and report that.",
        )
    return values


def _can_define(column: pd.Series[Any]) -> bool:
    """Whether rules may use a column: it is not constant, and holds numbers or few levels."""
    levels = column.nunique()
    return levels > 1 and bool(pd.api.types.is_numeric_dtype(column) or levels <= MOST_LEVELS)
