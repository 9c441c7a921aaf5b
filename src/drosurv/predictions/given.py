"""Predictions made by any program, for example with R, lifelines or a vendor's software: what the numbers are.

They are survival or event probabilities at times, as fractions or in percent, and risk scores: log risks or hazard
ratios. Their kind is recognised from their values; if that is not possible, an error asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import mannwhitneyu

from drosurv.curves import checked_total, parse_survival, wrong_incidence
from drosurv.errors import ArgumentError, arg, in_command, may_be_given, require, row_number
from drosurv.metrics.nonparametric import KaplanMeier, free_until
from drosurv.patients.target import FloatArray, Target, cause_names, of_any_cause, parse_target
from drosurv.predictions.columns import PERCENT, PredictionColumns, in_percent, prediction_numbers
from drosurv.predictions.predicted import Predicted, Predictions
from drosurv.presentation import DAYS, cause_in_words, listing, moment, written

Kind: TypeAlias = Literal["survival", "event probability"]
RiskKind: TypeAlias = Literal["log risk", "hazard ratio", "other"]
KINDS: tuple[Kind, ...] = ("survival", "event probability")
RISK_KINDS: tuple[RiskKind, ...] = ("log risk", "hazard ratio", "other")
_ROUNDING = 1e-6
# A risk score is a log hazard if its squared correlation with the log hazard of the probabilities is at least this.
_GOOD_FIT = 0.98
# Above this p-value it is unclear whether patients with the event have higher predictions.
_UNSURE = 1e-3
_SMALLEST_HAZARD = 1e-10
# Mean predictions are implausible if their cumulative hazard is off from Kaplan-Meier's by more than this factor and
# by more than so many standard errors, and in another unit of time by less than half of that.
_IMPLAUSIBLE, _STANDARD_ERRORS = 2.0, 2.0
# A published score is asked about only if its cumulative hazard is off by this factor: it cannot be confirmed.
_FAR_OFF = 10.0
# A time in another unit is offered if it is that close to a whole number, relative to it.
_WHOLE = 0.01


class Form(NamedTuple):
    """How probabilities are written: of survival or of the event, as fractions or in percent."""

    kind: Kind
    percent: bool

    def survival(self, values: FloatArray) -> FloatArray:
        """Return probabilities (n, k) as survival between 0 and 1."""
        values = values / PERCENT if self.percent else values
        return 1 - values if self.kind == "event probability" else values


class ReadPredictions(NamedTuple):
    """Predictions, notes on how they were read, and how the probabilities were written; None if there are none."""

    predictions: Any
    notes: tuple[str, ...]
    form: Form | None = None


def read_predictions(
    probabilities: Any,
    y: Any,
    *,
    times: Any,
    risk: Any = None,
    kind: Kind | None = None,
    risk_kind: RiskKind | None = None,
) -> ReadPredictions:
    """Return predictions that any program made as :class:`~drosurv.evaluation.Predictions`, and notes on them.

    Probabilities (n, k) of survival or of the event are at k `times`, as fractions or in percent. By default those that
    decrease with time are survival, and for a single time it is decided by whether patients with or without the event
    in `y` have higher values; `kind` says it. Risk scores (n,) rank patients, by default the log of the mean predicted
    cumulative hazard; their kind is recognised from the probabilities, with which either the scores agree or their
    logarithms, and `risk_kind` says it. Scores that do not agree with the probabilities as log hazards are not used.

    >>> import drosurv
    >>> y = drosurv.Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    >>> found = read_predictions([[10, 30], [5, 20], [1, 2]], y, times=[1.0, 2.0])
    >>> found.predictions.survival[0].tolist(), len(found.notes)
    ([0.9, 0.7], 2)
    """
    require(kind is None or kind in KINDS, "kind", f"be one of {KINDS}", kind)
    target, at = parse_target(y), np.asarray(times, dtype=np.float64)
    values = prediction_numbers(probabilities)
    form, notes = form_of(values, at, target, kind)
    survival = form.survival(values)
    curves = parse_survival(survival, len(target), at)
    implied = log_mean_hazard(curves.cumulative_hazard(at[at > 0]))
    score, more = (implied, ()) if risk is None else log_risk(risk, implied, risk_kind)
    return ReadPredictions(Predictions(score, survival, at), (*notes, *more), form)


def read_columns(
    found: PredictionColumns,
    y: Any,
    *,
    unit: str = "",
    kind: Kind | None = None,
    risk_kind: RiskKind | None = None,
    cause: int | None = None,
) -> ReadPredictions:
    """Return the predictions in columns of a table, as :func:`read_predictions` does, and notes on them.

    Columns of incidences are read as those of their causes; if there are none, and a `cause` is given, probabilities
    are its incidence.

    A note says at which time each column was read. If its name tells another unit than `unit`, that of the times of
    the table, it is converted; raise if that is not possible, or if the predictions are implausible at the times that
    names tell and plausible in another unit.
    """
    if found.incidence or cause is not None:
        return _read_incidences(found, unit, cause, cause_names(y))
    y = of_any_cause(y)
    if found.survival is None or found.times is None:
        parsed = read_scores(found.risk, risk_kind)
        return parsed._replace(notes=(f"read as risk scores: {found.names[0]}.", *parsed.notes))
    names, times = found.at_times, _in_unit(found, unit)
    by_time = _kind_by_time(found.survival)
    if kind and by_time and kind != by_time:
        raise ArgumentError(
            "kind",
            f"{arg('kind', kind)} contradicts columns {listing(names)}, whose values "
            f"{'fall' if by_time == 'survival' else 'rise'} with time, as {by_time} does.",
        )
    if not found.times_given and not found.unit:
        _ask_if_implausible(names, found.survival, times, parse_target(y), unit, kind)
    kind = kind or _named_kind(found, times, parse_target(y))
    parsed = read_predictions(found.survival, y, times=times, risk=found.risk, kind=kind, risk_kind=risk_kind)
    at = [f"{name} at {moment(time, unit)}" for name, time in zip(names, times, strict=True)]
    scores = "" if found.risk is None else f"; as risk scores: {found.names[-1]}"
    what = "survival" if parsed.form is None or parsed.form.kind == "survival" else "event probabilities"
    notes = [f"read as {what}: {listing(at, 12)}{scores}.", *parsed.notes]
    for name in found.no_scores:
        remedy = f" Pass {arg('risk', name)} if it is." if may_be_given("risk") else ""
        notes.append(
            f"column {name!r} is named like a risk score, but ranks the patients otherwise than {names[-1]}: it was "
            f"not read as one.{remedy}"
        )
    return parsed._replace(notes=tuple(notes))


def _read_incidences(
    found: PredictionColumns, unit: str, cause: int | None, called: Sequence[str]
) -> ReadPredictions:
    """Return the incidences of causes in columns of a table."""
    if found.times is None:
        raise ArgumentError(
            "cause",
            "cause needs columns of incidences at times, such as incidence_1_365; risk scores have none.",
        )
    times = _in_unit(found, unit)
    tables = dict(found.incidence)
    if not tables:
        assert found.survival is not None
        assert cause is not None
        tables = {cause: found.survival}
    notes: list[str] = []
    found_values = tables
    if any(in_percent(values) for values in tables.values()):
        tables = {k: values / PERCENT for k, values in tables.items()}
        notes.append("predictions above 1 were read as percentages.")
    described = []
    for number, (k, values) in enumerate(tables.items()):
        names = found.names[number * len(times) : (number + 1) * len(times)]
        if (wrong := wrong_incidence(values)) is not None:
            place, column = wrong
            raise ArgumentError(
                "survival",
                f"{listing(list(names))} cannot be incidences of {cause_in_words(k, called)}, probabilities of its "
                "event by each time: these lie between 0 and 1 and do not fall with time, but column "
                f"{names[column]!r} holds {found_values[k][place, column]:g} in row "
                f"{row_number(place, found.features)}.",
            )
        at = [f"{name} at {moment(time, unit)}" for name, time in zip(names, times, strict=True)]
        described.append(f"of {cause_in_words(k, called)}, {listing(at, 12)}")
    checked_total(tables, times, found.features)
    notes.insert(0, f"read as incidences: {'; '.join(described)}.")
    form = Form("event probability", len(notes) > 1)
    return ReadPredictions(Predictions(incidence=tables, times=times), tuple(notes), form)


def _in_unit(found: PredictionColumns, unit: str) -> FloatArray:
    """Return the times of the predictions in the unit of the times of the table; raise if that is not possible."""
    assert found.times is not None
    if not found.unit or found.unit == unit:
        return found.times
    if found.unit not in DAYS or unit not in DAYS:
        name = found.names[0]
        # Commands have an option for the unit; in Python there is none.
        first = f"{arg('time_unit')} days, weeks, months or years, or " if in_command() else ""
        raise ArgumentError(
            "survival",
            f"column {name!r} tells {moment(found.times[0], found.unit)}, and the unit of the times of the table is "
            f"{unit or 'not known'}: pass {first}{arg('survival', [f'{name}=TIME'])}, with TIME in that unit.",
        )
    return found.times * DAYS[found.unit] / DAYS[unit]


def _named_kind(found: PredictionColumns, times: FloatArray, target: Target) -> Kind | None:
    """Return the kind of probabilities at one time that names state, or None; raise if the values contradict it."""
    named: Kind | None = next((kind for kind in KINDS if kind == found.kind), None)
    assert found.survival is not None
    if named is None or _kind_by_time(found.survival):
        return None
    try:
        seen, seen_by = _kind_of(found.survival, times, target)
    except ArgumentError:
        return named
    if seen != named:
        raise _kind_needed(f": by its name, column {found.names[0]!r} is {named}, but {seen_by}")
    return named


def _kind_needed(why: str = "") -> ArgumentError:
    values = f"{arg('kind', 'survival')} or {arg('kind', 'event probability')}"
    return ArgumentError("kind", f"{arg('kind')} is needed{why}: pass {values}.")


def _ask_if_implausible(
    names: Sequence[str],
    values: FloatArray,
    times: FloatArray,
    target: Target,
    unit: str,
    kind: Kind | None,
) -> None:
    """Raise if mean predictions (k,) fit the times in another unit much better than in that of the table."""
    scale = PERCENT if in_percent(values) else 1.0
    mean = values.mean(axis=0) / scale
    kind = kind or _kind_by_time(values)
    # Of a single time it is not known yet what the probabilities are: each may be plausible.
    readings = [1 - mean if one == "event probability" else mean for one in ([kind] if kind else KINDS)]
    observed = KaplanMeier.of(target)

    def off(factor: float) -> float:
        return min(_distance(survival, times * factor, observed, target) for survival in readings)

    here, end = off(1.0), target.time.max()
    events = int((target.event & (target.time <= times.max())).sum())
    if here <= max(np.log(_IMPLAUSIBLE), _STANDARD_ERRORS / np.sqrt(max(events, 1))):
        return
    factors = _other_units(unit)
    best = min(factors, key=lambda other: off(factors[other]))
    if not off(factors[best]) < min(here / 2, np.log(_IMPLAUSIBLE)):
        return
    inside = times * factors[best] <= end
    last = int(np.flatnonzero(inside)[-1])
    survival = min(readings, key=lambda one: _distance(one, times * factors[best], observed, target))
    then, now = times[last] * factors[best], times[last]

    def share(time: float) -> str:
        known = observed.at(np.array([time]))[0]
        return (
            f"{written(1 - known, 'share') if np.isfinite(known) else 'unknown'} until {moment(time, unit)}"
        )

    converted = times * factors[best]
    whole = np.round(converted)
    # A conversion between units that are only guessed, or to a time that nobody would choose, is not offered.
    fits = unit in DAYS and (np.abs(converted - whole) <= _WHOLE * whole).all()
    offered = [at for at, meant in ((whole, fits), (times, True)) if meant and at.max() <= end]
    choices = [arg("survival", _entries(names, at)) for at in offered]
    if len(choices) < 2:
        to_fill = arg("survival", _entries(names))
        choices.append(f"{to_fill}, with TIME in the unit of the times of the table, which end at {end:.4g}")
    raise ArgumentError(
        "survival",
        f"at which time are the predictions of column {names[last]!r}? They give {written(1 - survival[last], 'share')}"
        f" of the patients the event; Kaplan-Meier's estimate is {share(now)}"
        f"{f' and {share(then)} ({moment(now, best)})' if best in DAYS else ''}. Pass {' or '.join(choices)}.",
    )


def ask_unit_of_score(survival: FloatArray, times: FloatArray, target: Target, unit: str) -> None:
    """Raise if survival (n, k) of a published score is far off at its times, and fits them in another unit."""
    mean, observed = survival.mean(axis=0), KaplanMeier.of(target)
    here = _distance(mean, times, observed, target)
    factors = _other_units(unit)
    off = {other: _distance(mean, times * factor, observed, target) for other, factor in factors.items()}
    best = min(off, key=lambda other: off[other])
    if here > np.log(_FAR_OFF) and off[best] < np.log(_IMPLAUSIBLE):
        raise ArgumentError(
            "coefficients",
            f"in which unit are the times of the baseline, {listing([f'{time:g}' for time in times])}? Predicted "
            f"survival is far from Kaplan-Meier's estimate there, and near it if they are {best}. In the unit of the "
            f"times of the table, which end at {target.time.max():.4g}, they are "
            f"{listing([f'{time:g}' for time in times * factors[best]])}: write this in the baseline of the score.",
        )


def _entries(names: Sequence[str], times: FloatArray | None = None) -> list[str]:
    """Return COLUMN=TIME for each column, as users write it; without times, the word TIME stands there."""
    at = ["TIME"] * len(names) if times is None else [f"{time:g}" for time in times]
    return [f"{name}={time}" for name, time in zip(names, at, strict=True)]


def _other_units(unit: str) -> dict[str, float]:
    """Return the factors that turn times in other units into those of the table; all of them if its unit is unknown."""
    if unit in DAYS:
        return {other: days / DAYS[unit] for other, days in DAYS.items() if other != unit}
    return {f"{b} in {a}": DAYS[b] / DAYS[a] for a, b in permutations(DAYS, 2)}


def _distance(survival: FloatArray, times: FloatArray, observed: KaplanMeier, target: Target) -> float:
    """Return the mean absolute log ratio of cumulative hazards, predicted (k,) and Kaplan-Meier's, within follow-up."""
    inside = times <= target.time.max()
    if not inside.any():
        return float("inf")
    least = 0.5 / len(target)
    predicted = -np.log(np.clip(survival[inside], _SMALLEST_HAZARD, 1.0))
    seen = -np.log(np.clip(observed.at(times[inside]), _SMALLEST_HAZARD, 1.0))
    return float(np.abs(np.log(np.maximum(predicted, least) / np.maximum(seen, least))).mean())


def log_mean_hazard(hazard: FloatArray) -> FloatArray:
    """Return the log of each patient's mean (n,) of cumulative hazards (n, k) at k times.

    Under proportional hazards it is the log hazard ratio, up to a constant.
    """
    risk: FloatArray = np.log(np.maximum(hazard.mean(axis=1), _SMALLEST_HAZARD))
    return risk


def ranked_by_hazard(predicted: Predicted) -> Predicted:
    """Return predictions at times that come without risk scores with those that they imply, of the type "other"."""
    curves, given = predicted.curves, predicted.given
    if given is None or given.risk is not None or curves is None or curves.times is None:
        return predicted
    implied = log_mean_hazard(curves.cumulative_hazard(curves.times[curves.times > 0]))
    return replace(predicted, model=replace(given, risk=implied, score_type="other"))


def form_of(
    values: FloatArray, times: FloatArray, target: Target, kind: Kind | None = None
) -> tuple[Form, tuple[str, ...]]:
    """Return how probabilities (n, k) are written, and notes on how that was recognised."""
    notes: tuple[str, ...] = ()
    percent = in_percent(values) and values.max() <= PERCENT
    if percent:
        values, notes = values / PERCENT, ("predictions above 1 were read as percentages.",)
    if kind is None:
        kind, seen_by = _kind_of(values, times, target)
        read_as = "event probabilities" if kind == "event probability" else kind
        notes += (f"{seen_by}, so they were read as {read_as}.",) if seen_by else ()
    return Form(kind, percent), notes


def _kind_by_time(values: FloatArray) -> Kind | None:
    """Return whether probabilities (n, k) rise or fall with time; None if they do not change, as at a single time."""
    changes = np.diff(values, axis=1)
    if not np.any(changes):
        return None
    # Values that fall and rise are refused later, with the first row that rises.
    return "event probability" if (changes >= -_ROUNDING).all() else "survival"


def _kind_of(values: FloatArray, times: FloatArray, target: Target) -> tuple[Kind, str]:
    """Return whether probabilities are of survival or of the event, and what shows it; empty if they fall with time."""
    if by_time := _kind_by_time(values):
        return by_time, "predictions rise with time" if by_time == "event probability" else ""
    last = float(times[-1])
    had, free = target.event & (target.time <= last), free_until(target) > last
    if not had.any() or not free.any():
        raise _kind_needed()
    higher = mannwhitneyu(values[had, -1], values[free, -1])
    share = higher.statistic / (had.sum() * free.sum())
    # Where all predictions are equal, some versions of scipy give no p-value.
    if not higher.pvalue <= _UNSURE:
        raise _kind_needed(", because patients with and without the event have similar predictions")
    kind: Kind = "event probability" if share > 0.5 else "survival"
    return kind, f"predictions are {'higher' if share > 0.5 else 'lower'} for patients who had the event"


def log_risk(
    risk: Any, implied: FloatArray, kind: RiskKind | None = None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return a risk score as a log hazard, and a note on how it was read.

    `implied` (n,) is the log hazard that the predicted probabilities imply. If the score agrees with it, it is returned
    unchanged; if its logarithm does, the score is a hazard ratio; otherwise `implied` is returned.
    """
    score, positive = _scores(risk, kind)
    plain_fit = _fit(score, implied)
    log_fit = _fit(np.log(score), implied) if positive else -1.0
    if kind is None:
        if max(plain_fit, log_fit) < -_GOOD_FIT:
            raise ArgumentError(
                "risk",
                f"{arg('risk')} decreases with the predicted risk, but a higher score must mean an earlier event: "
                "multiply it by -1.",
            )
        if plain_fit >= max(_GOOD_FIT, log_fit):
            return score, ()
        if log_fit > _GOOD_FIT:
            return np.log(score), (
                "the risk score was read as a hazard ratio, because its logarithm agrees with the probabilities.",
            )
        kind = "other"
    if kind == "other":
        return implied, (
            "the risk score does not agree with the predicted probabilities as a log hazard, and was left out: "
            "patients are ranked by the probabilities.",
        )
    return (np.log(score) if kind == "hazard ratio" else score), ()


def _scores(risk: Any, kind: RiskKind | None) -> tuple[FloatArray, bool]:
    """Return risk scores (n,), and whether all are above 0; raise if they are not, as hazard ratios must be."""
    require(kind is None or kind in RISK_KINDS, "risk_kind", f"be one of {RISK_KINDS}", kind)
    score = prediction_numbers(np.reshape(np.asarray(risk, dtype=object), (-1, 1)))[:, 0]
    positive = bool((score > 0).all())
    if kind == "hazard ratio" and not positive:
        raise ArgumentError.must("risk", "be above 0 where it is a hazard ratio", float(score.min()))
    return score, positive


# Log hazard ratios with a larger standard deviation would have a c-index of nearly 1.
_MOST_SPREAD = 5.0


def read_scores(risk: Any, kind: RiskKind | None = None) -> ReadPredictions:
    """Return risk scores (n,) without probabilities, and a note if they may be log risks or hazard ratios."""
    score, positive = _scores(risk, kind)
    if kind == "hazard ratio":
        return ReadPredictions(Predictions(np.log(score)), ())
    largest = float(np.abs(score).max()) or 1.0
    points = bool(np.std(score / largest) > _MOST_SPREAD / largest)
    if kind == "log risk" or (kind is None and not positive and not points):
        return ReadPredictions(Predictions(score), ())
    why = (
        "risk scores differ by too much to be log hazard ratios"
        if points
        else "all risk scores are above 0, so they may be hazard ratios or log risks"
    )
    note = (
        f"{why}: only ranking is judged. Pass {arg('risk_kind', 'log risk')} or 'hazard ratio' to judge more."
    )
    return ReadPredictions(Predictions(score, score_type="other"), (note,) if kind is None else ())


def _fit(score: FloatArray, other: FloatArray) -> float:
    """Return the squared correlation of two scores, with its sign."""
    if np.ptp(score) == 0 or np.ptp(other) == 0:
        return 1.0
    # Squares of very large scores overflow.
    r = float(np.corrcoef(score / np.abs(score).max(), other / np.abs(other).max())[0, 1])
    return r * abs(r)
