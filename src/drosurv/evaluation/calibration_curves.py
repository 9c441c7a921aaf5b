r"""Calibration curves: observed against predicted risk at a horizon, by group.

Where a group has enough events, its curve is a regression of the outcome at the horizon, weighted for censoring,

.. math:: \log(-\log(1 - P(T \le t \mid p))) = s(\log(-\log(1 - p))),

with s a restricted cubic spline. If the predictions p are right, s is the identity, at any horizon: hazards need not be
proportional. Smaller groups get up to ten parts by predicted risk, or one point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.estimators.spline_design import find_knots, knots_for_events
from drosurv.judging.few_times import cloglog
from drosurv.metrics.calibration import spline_columns
from drosurv.metrics.estimates import Estimate
from drosurv.metrics.risk_strata import ObservedRisk, risk_strata
from drosurv.patients.target import FloatArray

# Least number of patients with the event, and of patients without, for a spline.
_FEWEST_FOR_SPLINE = 30
# Without a spline, a group is divided in parts: their largest number, the least number of patients in a part, and the
# least mean number of events.
_MOST_PARTS, _FEWEST_IN_PART, _EVENTS_IN_PART = 10, 20, 5
# Least number of patients with the event, and of patients without, for a slope.
_FEWEST_FOR_SLOPE = 10
# Points of a curve, between these quantiles of the predicted risks.
_POINTS, _ENDS = 41, (0.01, 0.99)
_BINS = 20
_MOST_STEPS, _TOLERANCE = 50, 1e-9
# Largest linear predictor of a risk.
_HIGHEST = 3.5


@dataclass(frozen=True, eq=False)
class CalibrationCurves:
    """Calibration of everybody and of every group at the horizon, as tables.

    Attributes
    ----------
    points : DataFrame
        ``attribute``, ``group``, ``kind`` ("spline", "parts" or "point"), ``predicted`` and ``observed`` risk with a
        band ``low`` to ``high`` that contains all of a group's points at once, and ``patients`` of parts.
    numbers : DataFrame
        ``attribute``, ``group``, ``patients``, ``observed`` and ``expected`` events by the horizon, their ``ratio``,
        and the ``slope``, both with ``_low`` and ``_high``, and the mean distance between curve and prediction
        (``ici``), which has no interval: chance adds to it, and the band says how much.
    histogram : DataFrame
        ``attribute``, ``group``, ``low``, ``high`` and ``patients``: how many have a predicted risk between these.
    """

    points: pd.DataFrame
    numbers: pd.DataFrame
    histogram: pd.DataFrame


class Regression(NamedTuple):
    """Coefficients (q,) of a regression, the influence (m, q) of each patient on them, and the leverages (m,)."""

    coef: FloatArray
    influence: FloatArray
    leverage: FloatArray

    def estimates(self, freedom: float) -> list[Estimate]:
        """Return the coefficients with the influence that each patient has by being left out."""
        columns = (self.influence / (1 - self.leverage)[:, None]).T
        return [Estimate(float(b), own, freedom=freedom) for b, own in zip(self.coef, columns, strict=True)]


def calibration_curves(
    groups: Mapping[tuple[str, str], ObservedRisk], *, level: float = 0.95
) -> CalibrationCurves:
    """Return the calibration curves of groups, but of those whose follow-up ends before the horizon."""
    highest = max((float(outcomes.risk.max(initial=0.0)) for outcomes in groups.values()), default=0.0)
    edges = np.linspace(0.0, max(highest, 1e-3), _BINS + 1)
    points, numbers, bars = [], [], []
    for (attribute, group), outcomes in groups.items():
        if not len(outcomes):
            continue
        who = {"attribute": attribute, "group": group}
        found = _Group(outcomes, level)
        points.append(pd.DataFrame(who | found.curve()))
        numbers.append(who | found.numbers())
        counts = np.histogram(outcomes.risk, edges, weights=outcomes.weight)[0]
        bars.append(pd.DataFrame(who | {"low": edges[:-1], "high": edges[1:], "patients": counts}))
    if not numbers:
        return CalibrationCurves(*(pd.DataFrame(columns=["attribute", "group"]) for _ in range(3)))
    return CalibrationCurves(
        pd.concat(points, ignore_index=True), pd.DataFrame(numbers), pd.concat(bars, ignore_index=True)
    )


class _Group:
    """Calibration of the patients of one group."""

    def __init__(self, outcomes: ObservedRisk, level: float) -> None:
        self.outcomes, self.level = outcomes, level
        self.risk, self.weight, self.total = outcomes.risk, outcomes.weight, outcomes.patients
        self.x = cloglog(self.risk)
        known, alike = self.weight * (outcomes.outcomes.inverse > 0), outcomes.alike
        self.n_events = float(known @ outcomes.outcomes.happened) / alike
        self.fewer = min(self.n_events, float(known.sum()) / alike - self.n_events)
        self.knots = np.empty(0)
        if self.fewer >= _FEWEST_FOR_SPLINE:
            (self.knots,) = find_knots(self.x[:, None], self.weight, knots_for_events(self.fewer))
        self.fitted = fit_regression(outcomes, self._basis(self.x)) if len(self.knots) else None

    def _basis(self, x: FloatArray) -> FloatArray:
        return np.vstack([np.ones(len(x)), spline_columns(x, self.knots)]).T

    def curve(self) -> dict[str, Any]:
        """Return points of the curve with their band."""
        if self.fitted is None:
            return self._parts()
        first, last = (float(end) for end in np.quantile(self.risk, _ENDS))
        at = np.linspace(first, last, _POINTS)
        coefficients = self.outcomes.estimates(self.fitted.estimates(self.outcomes.freedom))
        found = coefficients.combinations(self._basis(cloglog(at)), self.level, together=True)
        ends = np.array([(one.estimate, one.low, one.high) for one in found]).T
        return {
            "kind": "spline",
            "predicted": at,
            **dict(zip(("observed", "low", "high"), _risk(ends), strict=True)),
            "patients": np.nan,
        }

    def _parts(self) -> dict[str, Any]:
        """Return points of parts of the patients by predicted risk, with intervals that hold for all at once."""
        most = self.total / self.outcomes.alike // _FEWEST_IN_PART, max(self.n_events // _EVENTS_IN_PART, 1)
        part = risk_strata(self.risk, max(int(min(_MOST_PARTS, *most)), 1), self.weight)
        sizes = np.bincount(part, self.weight)
        whole = len(sizes) == 1
        numbers, predicted = [], np.bincount(part, self.weight * self.risk) / sizes
        for k, size in enumerate([] if whole else sizes):
            member = (part == k) * 1.0
            value = float(self.weight @ (member * self.outcomes.events)) / size
            influence = (self.outcomes.outcomes.influences(member) - value * member * self.weight) / size
            events = np.count_nonzero(member * self.outcomes.events)
            numbers.append(Estimate(min(value, 1.0), influence, "logit", events - 1.0))
        # One part is the group, whose observed risk is that of the table of times.
        numbers = [self.outcomes.observed] if whole else numbers
        found = self.outcomes.estimates(numbers).intervals(self.level, together=True)
        names, ends = ("observed", "low", "high"), [(one.estimate, one.low, one.high) for one in found]
        return {
            "kind": "point" if whole else "parts",
            "predicted": predicted,
            **dict(zip(names, np.array(ends).T, strict=True)),
            "patients": sizes,
        }

    def numbers(self) -> dict[str, Any]:
        """Return observed over expected events and the slope, with intervals, and the mean distance of the curve."""
        expected = float(self.weight @ self.risk) / self.total
        found = self.outcomes.estimates([self.outcomes.observed]).intervals(self.level)[0]
        ends = np.array([found.estimate, found.low, found.high])
        ratio, low, high = (ends / expected if expected > 0 else np.full(3, np.nan)).tolist()
        slope = Estimate.undefined(len(self.outcomes))
        if self.fewer >= _FEWEST_FOR_SLOPE and np.ptp(self.x) > 0:
            line = fit_regression(self.outcomes, np.column_stack([np.ones(len(self.x)), self.x]))
            if line is not None:
                slope = line.estimates(self.outcomes.freedom)[1]
        of_slope = self.outcomes.estimates([slope]).intervals(self.level)[0]
        ici = np.nan
        if self.fitted is not None:
            curve = _risk(self._basis(self.x) @ self.fitted.coef)
            ici = float(self.weight @ np.abs(curve - self.risk)) / self.total
        return {
            "patients": round(self.total),
            "observed": found.estimate * self.total,
            "expected": expected * self.total,
            "ratio": ratio,
            "ratio_low": low,
            "ratio_high": high,
            "slope": slope.value,
            "slope_low": of_slope.low,
            "slope_high": of_slope.high,
            "ici": ici,
        }


def _risk(predictor: FloatArray) -> FloatArray:
    """Return the risks whose complementary log-log is given."""
    return -np.expm1(-np.exp(np.minimum(predictor, _HIGHEST)))


def fit_regression(outcomes: ObservedRisk, basis: FloatArray) -> Regression | None:
    """Regress known outcomes, weighted for censoring, on columns (m, q) by the complementary log-log link.

    Return None if it does not converge, as where the columns separate events from others. Influences include those on
    the weights for censoring.
    """
    y, mass = outcomes.outcomes.happened, outcomes.weight * outcomes.outcomes.inverse
    scale = np.maximum(np.abs(basis).max(axis=0), 1e-12)
    B, q = basis / scale, basis.shape[1]
    coef, step = np.zeros(q), np.zeros(q)
    share = float(mass @ y / max(mass.sum(), 1e-12))
    coef[0] = float(cloglog(np.array([share]))[0])
    likelihood = -np.inf
    for _ in range(_MOST_STEPS):
        hazard = np.exp(np.clip(B @ (coef + step), -30.0, _HIGHEST))
        free, risk = np.exp(-hazard), np.maximum(-np.expm1(-hazard), 1e-300)
        new = float(mass @ (y * np.log(risk) - (1 - y) * hazard))
        if new < likelihood - 1e-10 * abs(likelihood):
            step = step / 2
            if np.abs(step).max() < 1e-8:
                break
            continue
        converged = np.abs(step).max() < _TOLERANCE and np.isfinite(likelihood)
        coef, likelihood = coef + step, new
        # Score and expected information by the linear predictor.
        score = hazard * (y * free / risk - (1 - y))
        A = (B * (mass * hazard**2 * free / risk)[:, None]).T @ B
        if np.linalg.cond(A) > 1e13:
            return None
        if converged:
            break
        step = np.linalg.solve(A, B.T @ (mass * score))
    else:
        return None
    # The derivative of the score, not its expected value.
    observed = y * hazard * free / risk * (hazard / risk - 1) + (1 - y) * hazard
    inverse = np.linalg.inv((B * (mass * observed)[:, None]).T @ B)
    influence = outcomes.outcomes.influences_of_known(B * score[:, None]) @ inverse / scale
    # Each patient pulls the curve; without the patient, it would be this much farther away (MacKinnon and White 1985).
    leverage = mass * observed * ((B @ inverse) * B).sum(axis=1)
    return Regression(coef / scale, influence, np.clip(leverage, 0.0, 0.5))
