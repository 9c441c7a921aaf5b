"""Predictions made by any program, for example with R, lifelines or a vendor's software: what the numbers are.

They are survival or event probabilities at times, as fractions or in percent, and risk scores: log risks or hazard
ratios. Their kind is recognised from their values; if that is not possible, an error asks for it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import mannwhitneyu

from drosurv.curves import parse_survival
from drosurv.errors import ArgumentError, require
from drosurv.metrics.follow_up import free_until
from drosurv.predictions import Predictions
from drosurv.tables.prediction_columns import prediction_numbers
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
_SMALLEST_HAZARD = 1e-10


class ReadPredictions(NamedTuple):
    """Predictions, or a pair (times, survival), and notes on how they were read."""

    predictions: Any
    notes: tuple[str, ...]


def read_predictions(
    probabilities: Any,
    y: Any,
    *,
    times: Any = None,
    risk: Any = None,
    kind: Kind | None = None,
    risk_kind: RiskKind | None = None,
) -> ReadPredictions:
    """Return predictions that any program made as :class:`~drosurv.evaluation.Predictions`, and notes on them.

    Parameters
    ----------
    probabilities : (n, k) array or DataFrame, or None
        Predicted survival or event probabilities at k times, one column each (a DataFrame's column names may be the
        times), as fractions or in percent.
    y : structured array, (n,)
        Events and times of the patients, from which the kind of probabilities at one time is recognised.
    times : (k,) array, optional
        Times of the columns.
    risk : (n,) array, optional
        Risk scores to rank patients by; by default the log of the mean predicted cumulative hazard. Scores that do not
        agree with the probabilities as log hazards are not used.
    kind : {"survival", "event probability"}, optional
        What the probabilities are. By default, probabilities that decrease with time are survival; for a single time it
        is decided by whether patients with or without the event have higher values.
    risk_kind : {"log risk", "hazard ratio", "other"}, optional
        What the risk scores are. By default it is recognised from the probabilities: with them either the scores agree,
        or their logarithms.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.given_predictions import read_predictions
    >>> y = drosurv.Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> found = read_predictions([[10, 30], [5, 20], [1, 2]], y, times=[1.0, 2.0])
    >>> found.predictions.survival[0].tolist(), len(found.notes)
    ([0.9, 0.7], 2)
    """
    require(kind is None or kind in KINDS, "kind", f"be one of {KINDS}", kind)
    require(risk_kind is None or risk_kind in RISK_KINDS, "risk_kind", f"be one of {RISK_KINDS}", risk_kind)
    if probabilities is None or np.ndim(probabilities) == 1:
        scores = risk if probabilities is None else probabilities
        if scores is None:
            raise ArgumentError(
                "predictions", "predictions or risk is needed: pass probabilities at times, or risk scores."
            )
        return ReadPredictions(*_scores_alone(scores, risk_kind))
    if times is None and hasattr(probabilities, "columns"):
        times = _times_of(probabilities.columns)
    if times is None:
        raise ArgumentError("times", "times is needed: pass the time of each column of predictions.")
    target, at, values = (
        parse_target(y),
        np.asarray(times, dtype=np.float64),
        prediction_numbers(probabilities),
    )
    if len(values) != len(target):
        raise ArgumentError(
            "predictions",
            f"predictions have {len(values):,} rows for {len(target):,} patients: give one row per patient.",
        )
    survival, notes = as_survival(values, at, target, kind)
    curves = parse_survival(survival, len(target), at)
    implied = log_mean_hazard(curves.cumulative_hazard(at[at > 0]))
    score, more = (implied, ()) if risk is None else log_risk(risk, implied, risk_kind)
    return ReadPredictions(Predictions(score, survival, at), (*notes, *more))


def log_mean_hazard(hazard: FloatArray) -> FloatArray:
    """Return the log of each patient's mean (n,) of cumulative hazards (n, k) at k times.

    Under proportional hazards it is the log hazard ratio, up to a constant.
    """
    risk: FloatArray = np.log(np.maximum(hazard.mean(axis=1), _SMALLEST_HAZARD))
    return risk


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
    score = prediction_numbers(np.reshape(np.asarray(risk, dtype=object), (-1, 1)))[:, 0]
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
    score = prediction_numbers(np.reshape(np.asarray(risk, dtype=object), (-1, 1)))[:, 0]
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


def _times_of(columns: Any) -> FloatArray:
    try:
        return np.array([float(name) for name in columns])
    except (TypeError, ValueError):
        raise ArgumentError(
            "times",
            f"times is needed: the columns of predictions are not named by times: "
            f"{[str(name) for name in columns]}.",
        ) from None
