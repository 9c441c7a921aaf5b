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
from scipy.special import ndtri

from drosurv.estimators.spline_design import find_knots, knots_for_events
from drosurv.evaluation.at_horizon import OutcomesAtHorizon, simultaneous_reach
from drosurv.findings.weighted_residuals import cloglog
from drosurv.metrics.inference.intervals import Draws, Interval
from drosurv.metrics.nonparametric import weighted_quantiles
from drosurv.splines import spline_columns
from drosurv.target import FloatArray, IntArray

# Least number of patients with the event, and of patients without, for a spline.
_FEWEST_FOR_SPLINE = 30
# Events subtracted for each coefficient of the curve, in the interval of its distance from the predictions.
_EVENTS_PER_COEFFICIENT = 3
# Without a spline, a group is divided in parts: their largest number, the least number of patients in a part, and the
# least mean number of events.
_MOST_PARTS, _FEWEST_IN_PART, _EVENTS_IN_PART = 10, 20, 5
# Least number of patients with the event, and of patients without, for a slope.
_FEWEST_FOR_SLOPE = 10
# Points of a curve, between these quantiles of the predicted risks.
_POINTS, _ENDS = 41, (0.01, 0.99)
_BINS = 20
_MOST_STEPS, _TOLERANCE = 50, 1e-9
# Replicates of a curve, at so many quantiles of the risks, for the interval of its distance from the predictions.
_REPLICATES, _PLACES = 500, 100


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
        the ``slope`` and the mean distance between curve and prediction (``ici``), with ``_low`` and ``_high``.
    histogram : DataFrame
        ``attribute``, ``group``, ``low``, ``high`` and ``patients``: how many have a predicted risk between these.
    """

    points: pd.DataFrame
    numbers: pd.DataFrame
    histogram: pd.DataFrame


class Regression(NamedTuple):
    """Coefficients (q,) of a regression, and their covariance (q, q)."""

    coef: FloatArray
    covariance: FloatArray


def calibration_curves(
    outcomes: OutcomesAtHorizon,
    groups: Mapping[tuple[str, str], IntArray],
    *,
    level: float | None = 0.95,
) -> CalibrationCurves:
    """Return the calibration curves of groups, given by the rows of their patients; without a level, without bands.

    A group whose follow-up ends before the horizon is left out.
    """
    edges = np.linspace(0.0, max(float(outcomes.risk.max(initial=0.0)), 1e-3), _BINS + 1)
    points, numbers, bars = [], [], []
    for (attribute, group), rows in groups.items():
        if outcomes.weight[rows].sum() == 0 or not outcomes.is_known(rows):
            continue
        who = {"attribute": attribute, "group": group}
        found = _Group(outcomes, rows, level or 0.95)
        curve, summary = found.curve(), found.numbers()
        if level is None:
            curve |= {"low": np.nan, "high": np.nan}
            summary |= {key: np.nan for key in summary if key.endswith(("_low", "_high"))}
        points.append(pd.DataFrame(who | curve))
        numbers.append(who | summary)
        counts = np.histogram(outcomes.risk[rows], edges, weights=outcomes.weight[rows])[0]
        bars.append(pd.DataFrame(who | {"low": edges[:-1], "high": edges[1:], "patients": counts}))
    if not numbers:
        return CalibrationCurves(*(pd.DataFrame(columns=["attribute", "group"]) for _ in range(3)))
    return CalibrationCurves(
        pd.concat(points, ignore_index=True), pd.DataFrame(numbers), pd.concat(bars, ignore_index=True)
    )


class _Group:
    """Calibration of the patients in some rows; `alike` is the design effect of clusters."""

    def __init__(self, outcomes: OutcomesAtHorizon, rows: IntArray, level: float) -> None:
        self.outcomes, self.rows, self.level = outcomes, rows, level
        self.risk, self.weight = outcomes.risk[rows], outcomes.weight[rows]
        self.x = cloglog(self.risk)
        known = self.weight * (outcomes.inverse[rows] > 0)
        self.total = float(self.weight.sum())
        self.alike = self._alike()
        self.n_events = float(known @ outcomes.happened[rows]) / self.alike
        self.fewer = min(self.n_events, float(known.sum()) / self.alike - self.n_events)
        self.knots = np.empty(0)
        if self.fewer >= _FEWEST_FOR_SPLINE:
            (self.knots,) = find_knots(self.x[:, None], self.weight, knots_for_events(self.fewer))
        self.fitted = fit_regression(outcomes, rows, self._basis(self.x)) if len(self.knots) else None

    def _alike(self) -> float:
        """Return how many times larger clusters make the variance of observed less expected events."""
        if not self.outcomes.in_several_clusters(self.rows):
            return 1.0
        each = self.outcomes.contributions_of_group(
            self.rows, -self.risk[:, None], np.ones((len(self.rows), 1))
        )
        return float(self.outcomes.design_effects(each, self.rows)[0])

    def _basis(self, x: FloatArray) -> FloatArray:
        return np.vstack([np.ones(len(x)), spline_columns(x, self.knots)]).T

    def curve(self) -> dict[str, Any]:
        """Return points of the curve with their band."""
        if self.fitted is None:
            return self._parts()
        first, last = (float(end) for end in np.quantile(self.risk, _ENDS))
        at = np.linspace(first, last, _POINTS)
        basis = self._basis(cloglog(at))
        reach = simultaneous_reach(basis @ self.fitted.covariance @ basis.T, self.level)
        observed, low, high = (
            -np.expm1(-np.exp(np.minimum(basis @ self.fitted.coef + sign * reach, 5.0)))
            for sign in (0, -1, 1)
        )
        return {
            "kind": "spline",
            "predicted": at,
            "observed": observed,
            "low": low,
            "high": high,
            "patients": np.nan,
        }

    def _parts(self) -> dict[str, Any]:
        """Return points of parts of the patients by predicted risk, with intervals that hold for all at once."""
        n_parts = int(
            min(
                _MOST_PARTS,
                self.total / self.alike // _FEWEST_IN_PART,
                max(self.n_events // _EVENTS_IN_PART, 1),
            )
        )
        order = np.argsort(self.risk, kind="stable")
        place = (np.cumsum(self.weight[order]) - self.weight[order] / 2) / self.total
        part = np.empty(len(order), np.intp)
        part[order] = np.minimum((place * max(n_parts, 1)).astype(np.intp), max(n_parts, 1) - 1)
        # Equal predictions are not divided.
        _, first = np.unique(self.risk, return_inverse=True)
        part = np.array([part[first == k].min() for k in range(first.max() + 1)])[first]
        found = [self._point(np.flatnonzero(part == k), len(np.unique(part))) for k in np.unique(part)]
        names = ("predicted", "observed", "low", "high", "patients")
        columns = dict(zip(names, map(np.array, zip(*found, strict=True)), strict=True))
        return {"kind": "parts" if len(found) > 1 else "point", **columns}

    def _point(self, members: IntArray, n_parts: int) -> tuple[float, float, float, float, float]:
        """Return mean predicted and observed risk of some of the patients, with an interval, and their number."""
        rows, weight = self.rows[members], self.weight[members]
        total = float(weight.sum())
        observed = float(weight @ self.outcomes.events[rows]) / total
        error = self.outcomes.error_of_sum(rows, 0.0, 1.0) / total
        low, high = _score_interval(observed, error, total / self.alike, 1 - (1 - self.level) / n_parts)
        return float(weight @ self.risk[members]) / total, min(observed, 1.0), low, high, total

    def numbers(self) -> dict[str, Any]:
        """Return observed over expected events, the slope and the mean distance from the curve, with intervals."""
        observed = float(self.weight @ self.outcomes.events[self.rows])
        expected = float(self.weight @ self.risk)
        ratio = observed / expected if expected > 0 else np.nan
        error = self.outcomes.error_of_sum(self.rows, -ratio * self.risk, 1.0) if observed > 0 else 0.0
        z = float(ndtri((1 + self.level) / 2))
        if observed > 0:
            ends = ratio * np.exp(np.array([-z, z]) * error / observed)
        else:
            # With no event, the largest rate that a Poisson count of 0 does not exclude.
            ends = np.array([0.0, -np.log((1 - self.level) / 2) / max(expected / self.alike, 1e-12)])
        slope = slope_low = slope_high = np.nan
        if self.fewer >= _FEWEST_FOR_SLOPE and np.ptp(self.x) > 0:
            line = fit_regression(self.outcomes, self.rows, np.column_stack([np.ones(len(self.x)), self.x]))
            if line is not None:
                slope, spread = float(line.coef[1]), float(np.sqrt(line.covariance[1, 1]))
                slope_low, slope_high = slope - z * spread, slope + z * spread
        distance = self._distance()
        return {
            "patients": round(self.total),
            "observed": observed,
            "expected": expected,
            "ratio": ratio,
            "ratio_low": float(ends[0]),
            "ratio_high": float(ends[1]),
            "slope": slope,
            "slope_low": slope_low,
            "slope_high": slope_high,
            "ici": distance.estimate,
            "ici_low": distance.low,
            "ici_high": distance.high,
        }

    def _distance(self) -> Interval:
        """Return the mean distance between curve and prediction, with replicates from the errors of the curve."""
        if self.fitted is None:
            return Interval(np.nan, np.nan, np.nan, self.level)
        ici = (
            float(self.weight @ np.abs(self._curve(self.fitted.coef[None], self.risk)[0] - self.risk))
            / self.total
        )
        at = weighted_quantiles(self.risk, self.weight, (np.arange(_PLACES) + 0.5) / _PLACES)
        rng = np.random.default_rng(0)
        # With few events the curve varies more than its covariance says.
        lost = _EVENTS_PER_COEFFICIENT * len(self.fitted.coef)
        covariance = self.fitted.covariance * self.fewer / (self.fewer - lost)
        coef = rng.multivariate_normal(self.fitted.coef, covariance, _REPLICATES, check_valid="ignore")
        draws = np.abs(self._curve(coef, at) - at).mean(axis=1)
        return Draws(ici, draws, 0.0, 1.0, "distance").interval(self.level)

    def _curve(self, coef: FloatArray, risk: FloatArray) -> FloatArray:
        """Return the curves (r, k) of coefficients (r, q) at risks (k,)."""
        found: FloatArray = -np.expm1(-np.exp(np.minimum(coef @ self._basis(cloglog(risk)).T, 5.0)))
        return found


def fit_regression(outcomes: OutcomesAtHorizon, rows: IntArray, basis: FloatArray) -> Regression | None:
    """Regress the outcomes of some rows on columns (n, q), weighted for censoring, by the complementary log-log link.

    Return None if it does not converge, as where the columns separate events from others. The covariance is that of
    outcomes with the fitted risks, times the design effects of clusters; it includes the estimation error of the
    weights.
    """
    y, inverse = outcomes.happened[rows], outcomes.inverse[rows]
    mass = outcomes.weight[rows] * inverse
    scale = np.maximum(np.abs(basis).max(axis=0), 1e-12)
    B = basis / scale
    q = B.shape[1]
    coef = np.zeros(q)
    share = float(mass @ y / max(mass.sum(), 1e-12))
    coef[0] = float(cloglog(np.array([share]))[0])
    likelihood = -np.inf
    step = np.zeros(q)
    for _ in range(_MOST_STEPS):
        hazard = np.exp(np.clip(B @ (coef + step), -30.0, 3.5))
        free = np.exp(-hazard)
        new = float(mass @ (y * np.log(np.maximum(-np.expm1(-hazard), 1e-300)) - (1 - y) * hazard))
        if new < likelihood - 1e-10 * abs(likelihood):
            step = step / 2
            if np.abs(step).max() < 1e-8:
                break
            continue
        converged = np.abs(step).max() < _TOLERANCE and np.isfinite(likelihood)
        coef, likelihood = coef + step, new
        # Score and expected information by the linear predictor.
        score = hazard * (y * free / np.maximum(-np.expm1(-hazard), 1e-300) - (1 - y))
        information = hazard**2 * free / np.maximum(-np.expm1(-hazard), 1e-300)
        A = (B * (mass * information)[:, None]).T @ B
        if np.linalg.cond(A) > 1e13:
            return None
        if converged:
            break
        step = np.linalg.solve(A, B.T @ (mass * score))
    else:
        return None
    inner = np.linalg.inv(A)
    # Terms of the score are these times the residuals.
    terms, mean = np.zeros((len(outcomes), q)), np.zeros(len(outcomes))
    mean[rows] = -np.expm1(-hazard)
    terms[rows] = B * (hazard / np.maximum(mean[rows], 1e-300))[:, None]
    meat = outcomes.model_covariance(terms, mean)
    if outcomes.in_several_clusters(rows):
        weighted = terms * (outcomes.inverse * (outcomes.happened - mean))[:, None]
        # Design effects of uncorrelated sums: that of the level, then that of the slope given the level.
        root = np.linalg.cholesky(meat + 1e-12 * np.diag(np.diag(meat)))
        each = np.linalg.solve(root, outcomes.contributions(weighted, weighted).T).T
        meat = (root * outcomes.design_effects(each, rows)) @ root.T
    bread = inner / scale
    covariance = bread.T @ meat @ bread
    return Regression(coef / scale, covariance)


def _score_interval(share: float, error: float, n: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a share, for as many patients as have its standard error."""
    z = float(ndtri((1 + level) / 2))
    share = min(max(share, 0.0), 1.0)
    spread = share * (1 - share)
    size = min(spread / error**2, n) if error > 0 and spread > 0 else n
    centre = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    reach = z / (1 + z**2 / size) * np.sqrt(spread / size + z**2 / (4 * size**2))
    return max(centre - reach, 0.0), min(centre + reach, 1.0)
