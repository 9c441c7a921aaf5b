"""Frozen predictions at few times: what repairs gain, and what was wrong before and after, at the predicted times.

A search for repairs, the corrections that it fits, the gains and likelihood ratios that decide on them, and the numbers
that are shown are made from the outcomes and probabilities at the predicted times, as :mod:`drosurv.judging` judges
them. Nothing is assumed between the times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from drosurv.judging.few_times import ResidualsAtTimes, bounded
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.judged import Judged
from drosurv.judging.log_score import outcome_scores
from drosurv.judging.residual_tests import fit_at_one_time, level, slope
from drosurv.judging.residuals import Sums
from drosurv.patients.observation import Rows
from drosurv.patients.target import BoolArray, FloatArray
from drosurv.predictions import Predicted, as_predictions
from drosurv.repairs.checked_search import Trial
from drosurv.repairs.expected import Expected, log_risk
from drosurv.repairs.repair import CONFIDENCE, HeldOutNumber, Repair


@dataclass(frozen=True, eq=False)
class AtFewTimes:
    """Predicted survival (n, m) of n patients at m times, their outcomes `y`, entry times and clusters.

    A patient counts in gains by his `share` (n,) in his cluster.
    """

    predicted: Predicted
    times: FloatArray
    y: Any
    rows: Rows
    share: FloatArray

    @staticmethod
    def of(predicted: Predicted, y: Any, rows: Rows, share: FloatArray) -> AtFewTimes | None:
        """Return the predictions; None if curves are known throughout."""
        curves = predicted.survival_curves
        if curves.times is None or curves.known_throughout:
            return None
        return AtFewTimes(predicted, curves.times, y, rows, share)

    @cached_property
    def _survival(self) -> FloatArray:
        return self.predicted.survival_curves.survival(self.times)

    def judged(self, r: FloatArray) -> Judged:
        """Return what tests are made from after hazards are multiplied by exp(r), r (n,)."""
        survival = self._survival ** np.exp(r)[:, None]
        # A repair may make steps small or probabilities less round; outcomes stay those at the predicted times.
        predicted = as_predictions((self.times, survival), None, len(r))
        return judged_patients(predicted, self.y, self.rows, at_its_times=True)

    @cached_property
    def _residuals(self) -> ResidualsAtTimes:
        """Residuals of the predictions without repairs, whose outcomes all gains are made from."""
        found = self.judged(np.zeros(len(self.share))).residuals
        assert isinstance(found, ResidualsAtTimes)
        return found

    @cached_property
    def _at_last(self) -> tuple[FloatArray, FloatArray]:
        """Outcomes and probabilities (n,) by the last time until which each patient was followed; 0 if by none."""
        found, rows = self._residuals, np.arange(len(self.share))
        followed = found.followed & (found.weight > 0)[:, None]
        last = np.maximum(followed.sum(axis=1) - 1, 0)
        outcome, F = (
            part[rows, last] * followed[:, 0] for part in (found.outcome, bounded(found.probability))
        )
        return outcome, F

    def expected(self, times: FloatArray) -> Expected:
        """Return events and hazards with the score function of the probabilities; log risks are taken at the times.

        Events x and probabilities F = 1 - exp(-H) by a time have the same score by the log of the hazard as Poisson
        events x H / F with mean H, and no more information.
        """
        outcome, F = self._at_last
        hazard = -np.log1p(-F)
        events = np.divide(outcome * hazard, F, out=np.zeros(len(F)), where=F > 0)
        return Expected(events, hazard, log_risk(self.predicted.survival_curves, times))

    def gains(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return gains (v, n) in log score, of log hazard ratios `after` (v, n) over those `before` (n,)."""
        return self.share * (np.stack([self._score(r) for r in after]) - self._score(before))

    def log_ratios(self, before: FloatArray, after: FloatArray, rows: BoolArray) -> FloatArray:
        """Return log likelihood ratios (v,) of some rows, as far as what is known of these patients says.

        Gains of right predictions vary more with censoring than without it; divided by how many times more, their
        exponential has a mean of at most about 1.
        """
        outcome, F = self._at_last
        found = self.gains(before, after)
        for gain, r in zip(found, after, strict=True):
            then, now = (bounded(1 - (1 - F) ** np.exp(one)) for one in (r, before))
            change = self.share * (np.log(then / now) - np.log((1 - then) / (1 - now)))
            known = change**2 @ (now * (1 - now))
            gain /= max(float(change**2 @ (outcome - now) ** 2) / known, 1.0) if known > 0 else 1.0
        total: FloatArray = found[:, rows].sum(axis=1)
        return total

    def _score(self, r: FloatArray) -> FloatArray:
        found = self._residuals
        survival = (1 - found.probability) ** np.exp(r)[:, None]
        judged: FloatArray = (found.weight > 0) * outcome_scores(survival, found.outcome, found.followed)
        return judged

    def fit(self, r: FloatArray, counted: BoolArray, z: FloatArray, penalty: FloatArray) -> FloatArray | None:
        """Return effects theta (p,) of columns z (n, p) with which events by the last time agree; None if none do.

        Of the counted patients, the sums of z times their residuals are zero, up to the penalties (p,), after hazards
        are multiplied by exp(r + z theta).
        """
        outcome, F = self._at_last
        hazard, known = -np.log1p(-F[counted]) * np.exp(r[counted]), (F[counted] > 0).astype(np.float64)
        return fit_at_one_time(hazard, z[counted], outcome[counted], known, penalty)

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
        of_group, of_checked = (self._events(judged, inside) for inside in (trial.group, trial.inside))
        if of_group is None or of_checked is None:
            return None
        (by, group), (_, checked) = of_group, of_checked
        ratio = level(checked)
        fitted = slope(judged.at_horizon.of_group(trial.inside), judged.score, trial.inside)
        return {
            "by": by,
            "observed": max(float(group.observed.sum()), 0.0),
            "expected": float(group.expected.sum()),
            "ratio": HeldOutNumber(ratio.value, *ratio.interval(1 - CONFIDENCE)),
            "slope": float("nan") if fitted is None else fitted.value,
        }

    @staticmethod
    def _events(judged: Judged, member: BoolArray) -> tuple[float, Sums] | None:
        """Return the last time until which a group was followed, and its events by then; None if there is none."""
        own = judged.residuals.of_group(member)
        assert isinstance(own, ResidualsAtTimes)
        last = own.known_parts - 1
        if last < 0 or not member.any():
            return None
        return float(own.ends[last]), own.by(last).sums(member.astype(np.float64))
