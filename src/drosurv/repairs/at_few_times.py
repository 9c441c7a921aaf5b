"""Frozen predictions at few times: a level and slope that fit at one time, and what repairs gain and do at the times.

A search for repairs, and its e-values, need expected events at each patient's own time, for which curves are completed
between the times. Which version of a repair is chosen, what it gains, and what was wrong before and after, is judged at
the predicted times themselves, as :mod:`drosurv.findings` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drosurv.findings.from_predictions import judged_patients
from drosurv.findings.judged import Judged
from drosurv.findings.known_curves import known_throughout
from drosurv.findings.questions import group_sums
from drosurv.findings.residual_tests import fit_at_one_time, level, slope
from drosurv.findings.weighted_residuals import LEAST_OBSERVED, WeightedResiduals, uncensored_share
from drosurv.observation import Rows
from drosurv.predictions import Predicted, as_predictions
from drosurv.repairs.checked_search import Trial
from drosurv.repairs.repair import CONFIDENCE, Estimate, Repair
from drosurv.target import BoolArray, FloatArray, parse_target


@dataclass(frozen=True, eq=False)
class AtFewTimes:
    """Predicted survival (n, m) of n patients at m times, their outcomes `y`, entry times and clusters.

    Censoring may depend on `features`. A patient counts in gains by his `share` (n,) in his cluster.
    """

    times: FloatArray
    survival: FloatArray
    y: Any
    rows: Rows
    features: Any
    share: FloatArray

    @staticmethod
    def of(predicted: Predicted, y: Any, rows: Rows, features: Any, share: FloatArray) -> AtFewTimes | None:
        """Return the predictions; None if curves are known throughout."""
        curves = predicted.survival_curves
        if curves.times is None or known_throughout(curves, parse_target(y)):
            return None
        return AtFewTimes(curves.times, curves.survival(curves.times), y, rows, features, share)

    def judged(self, r: FloatArray, rows: Any = slice(None)) -> Judged:
        """Return what tests are made from, of some patients, after hazards are multiplied by exp(r), r (n,)."""
        return judged_patients(
            self._predicted(r, rows), self.y[rows], self.rows.take(rows), features=self.features.iloc[rows]
        )

    def _predicted(self, r: FloatArray, rows: Any = slice(None)) -> Predicted:
        survival = self.survival[rows] ** np.exp(r[rows])[:, None]
        return as_predictions((self.times, survival), None, len(survival))

    def gains(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return gains (v, n) in log score, of log hazard ratios `after` (v, n) over those `before` (n,).

        The weights for censoring are those of the predictions without repairs.
        """
        return self.share * (np.stack([self._over_given(r) for r in after]) - self._over_given(before))

    def _over_given(self, r: FloatArray) -> FloatArray:
        """Return the gain in log score (n,) over the given predictions, after hazards are multiplied by exp(r)."""
        if not r.any():
            return np.zeros(len(r))
        given = self._predicted(np.zeros(len(r)))
        judged = judged_patients(
            given, self.y, self.rows, features=self.features, reference=self._predicted(r)
        )
        assert judged.over_reference is not None
        return -judged.over_reference

    def fit(self, r: FloatArray, counted: BoolArray, z: FloatArray, penalty: FloatArray) -> FloatArray | None:
        """Return effects theta (p,) of columns z (n, p) with which events by the only time agree; None with several.

        Of the counted patients, the sums of z times their residuals are zero, up to the penalties (p,), after hazards
        are multiplied by exp(r + z theta). None, too, if most of them were censored before the time.
        """
        target, weight = parse_target(self.y[counted]), np.ones(int(counted.sum()))
        share = uncensored_share(self.times[:1], target.time, ~target.event, weight)
        if len(self.times) > 1 or share[0] < LEAST_OBSERVED:
            return None
        residuals = self.judged(r, np.flatnonzero(counted)).residuals
        if not isinstance(residuals, WeightedResiduals):
            return None
        hazard = -np.log1p(-np.clip(residuals.probability[:, -1], 1e-9, 1 - 1e-9))
        happened, known = residuals.happened[:, -1], residuals.inverse[:, -1]
        return fit_at_one_time(hazard, z[counted], happened, known, penalty)

    def described(self, repair: Repair, trial: Trial) -> Repair:
        """Return a repair with the events, ratios and slopes of the predicted times, of patients not used for it."""
        before, after = (self._numbers(r, trial) for r in (trial.r_before, trial.r_after))
        if before is None or after is None:
            return repair
        return replace(
            repair,
            by=before["by"],
            events=before["observed"],
            predicted=before["expected"],
            predicted_after=after["expected"],
            before=before["ratio"],
            after=after["ratio"],
            slope_before=before["slope"],
            slope_after=after["slope"],
        )

    def _numbers(self, r: FloatArray, trial: Trial) -> dict[str, Any] | None:
        judged = self.judged(r)
        group, checked = (
            group_sums(judged.residuals, inside, None) for inside in (trial.group, trial.inside)
        )
        if group is None or checked is None:
            return None
        ratio = level(checked)
        fitted = slope(judged.at_horizon, judged.score, trial.inside)
        return {
            "by": float(judged.residuals.ends[len(group.observed) - 1]),
            "observed": max(float(group.observed.sum()), 0.0),
            "expected": float(group.expected.sum()),
            "ratio": Estimate(ratio.value, *ratio.interval(1 - CONFIDENCE)),
            "slope": float("nan") if fitted is None else fitted.value,
        }
