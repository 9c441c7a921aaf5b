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

from drosurv.curves import minus_log, parse_survival
from drosurv.judging.few_times import ResidualsAtTimes, bounded
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.judged import Judged
from drosurv.judging.residual_tests import fit_at_one_time, level, slope
from drosurv.judging.residuals import Sums
from drosurv.metrics.likelihood_gain import outcome_scores
from drosurv.patients.observation import Rows
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.predictions import Predicted, as_predictions
from drosurv.repairs.checked_search import Trial
from drosurv.repairs.expected import Expected, log_risk
from drosurv.repairs.repair import CONFIDENCE, HeldOutNumber, Repair

# No patient's factor of a likelihood ratio is smaller.
_LEAST_RATIO = 0.01


@dataclass(frozen=True, eq=False)
class AtFewTimes:
    """Predicted survival (n, m) of n patients at m times, their outcomes `y`, entry times and clusters.

    A patient counts in gains by his `share` (n,) in his cluster. With one `cause` of several, `y` has the causes, the
    probabilities are its incidences, and repairs multiply its hazard, those of the others being unchanged.
    """

    predicted: Predicted
    times: FloatArray
    y: Any
    rows: Rows
    share: FloatArray
    cause: int | None = None

    @staticmethod
    def of(
        predicted: Predicted, y: Any, rows: Rows, share: FloatArray, cause: int | None = None
    ) -> AtFewTimes | None:
        """Return the predictions; None if curves are known throughout."""
        curves, given = predicted.survival_curves, predicted.given
        if cause is not None:
            if given is None or given.incidence is None:
                return None
            curves = parse_survival(
                1 - np.asarray(given.incidence[cause], np.float64), len(share), given.times
            )
        if curves.times is None or curves.known_throughout:
            return None
        return AtFewTimes(predicted, curves.times, y, rows, share, cause)

    def _risks(self, r: FloatArray) -> FloatArray:
        """Return probabilities (n, m) of the event by all times, after hazards are multiplied by exp(r)."""
        if self.cause is None:
            survival = self.predicted.survival_curves.survival(self.times)
            return np.asarray(1 - survival ** np.exp(r)[:, None], np.float64)
        given = self.predicted.given
        assert given is not None
        assert given.incidence is not None
        tables = {cause: np.asarray(F, np.float64) for cause, F in given.incidence.items()}
        survival = 1 - sum(tables.values(), np.zeros(1))
        before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
        left = before - survival
        hazard = minus_log(np.divide(survival, before, out=np.ones_like(before), where=before > 0))
        own = np.diff(tables[self.cause], axis=1, prepend=0.0)
        own = hazard * np.divide(own, left, out=np.zeros_like(left), where=left > 0)
        # Hazards of the causes are in proportion to each other between two times.
        repaired = own * np.exp(r)[:, None]
        total = np.maximum(hazard - own, 0.0) + repaired
        free = np.exp(-np.cumsum(total, axis=1))
        before = np.column_stack([np.ones(len(free)), free[:, :-1]])
        share = np.divide(repaired, total, out=np.zeros_like(total), where=total > 0)
        return np.asarray(np.cumsum(share * (before - free), axis=1), np.float64)

    def judged(self, r: FloatArray) -> Judged:
        """Return what tests are made from after hazards are multiplied by exp(r), r (n,)."""
        # A repair may make steps small or probabilities less round; outcomes stay those at the predicted times.
        predicted = as_predictions((self.times, 1 - self._risks(r)), None, len(r))
        return judged_patients(predicted, self.y, self.rows, cause=self.cause, at_its_times=True)

    def _probability(self, r: FloatArray) -> FloatArray:
        """Return probabilities (n, J) by the times of the residuals, after hazards are multiplied by exp(r)."""
        if self.cause is not None:
            return bounded(self._risks(r)[:, np.searchsorted(self.times, self._residuals.ends)])
        return bounded(1 - (1 - bounded(self._residuals.probability)) ** np.exp(r)[:, None])

    @cached_property
    def _residuals(self) -> ResidualsAtTimes:
        """Residuals of the predictions without repairs, whose outcomes all gains are made from."""
        found = self.judged(np.zeros(len(self.share))).residuals
        assert isinstance(found, ResidualsAtTimes)
        return found

    def _at_last(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Outcomes and probabilities (n,) by the last time until which each patient was followed; 0 if by none."""
        found, rows = self._residuals, np.arange(len(self.share))
        followed = found.followed & (found.weight > 0)[:, None]
        last = np.maximum(followed.sum(axis=1) - 1, 0)
        outcome, F = (part[rows, last] * followed[:, 0] for part in (found.outcome, self._probability(r)))
        return outcome, F

    def expected(self, times: FloatArray) -> Expected:
        """Return events and hazards with the score function of the probabilities; log risks are taken at the times."""
        events, hazard = (part / self.share for part in self.events_after(np.zeros(len(self.share))))
        return Expected(events, hazard, log_risk(self.predicted.survival_curves, times))

    def events_after(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return events and hazards (n,) by the last time, after hazards are multiplied by exp(r).

        Events x and probabilities F = 1 - exp(-H) by a time have the same score by the log of the hazard as Poisson
        events x H / F with mean H, and no more information. Both are multiplied by the patient's share.
        """
        outcome, F = self._at_last(r)
        hazard = -np.log1p(-F)
        factor = np.divide(hazard, F, out=np.zeros(len(F)), where=F > 0)
        return self.share * outcome * factor, self.share * hazard

    def gains(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return gains (v, n) in log score, of log hazard ratios `after` (v, n) over those `before` (n,)."""
        return self.share * (np.stack([self._score(r) for r in after]) - self._score(before))

    def log_ratios(self, before: FloatArray, after: FloatArray, rows: BoolArray) -> FloatArray:
        r"""Return logs (v,) of numbers with mean 1 if the predictions with `before` (n,) are right, of some rows.

        The likelihood ratio of a patient is linear in the events in the intervals, and so has the mean 1 of
        pseudo-values too, whose means are those of the events. Censoring adds to its variance. The product over
        patients grows fastest if each patient's ratio L becomes

        .. math:: 1 + \frac{v}{v + c} (L - 1)

        with v its variance without censoring and c what censoring adds: patients of whom little is known count less.
        """
        found = self._residuals
        known = found.followed[rows] & (found.weight[rows] > 0)[:, None]
        happened = np.where(known, np.diff(found.outcome[rows], axis=1, prepend=0.0), 0.0)
        then = np.where(known, np.diff(self._probability(before)[rows], axis=1, prepend=0.0), 0.0)
        free = 1 - np.cumsum(then, axis=1)
        logs = []
        for r in after:
            now = np.where(known, np.diff(self._probability(r)[rows], axis=1, prepend=0.0), 0.0)
            none = (1 - now.sum(axis=1)) / free[:, -1]
            ratio = np.divide(now, then, out=np.ones_like(then), where=then > 0)
            change = np.where(known, ratio - none[:, None], 0.0)
            deviation = (happened * change).sum(axis=1) + none - 1
            variance = (then * (ratio - 1) ** 2).sum(axis=1) + free[:, -1] * (none - 1) ** 2
            # As a sum over events until each time, which censoring makes vary.
            until = change - np.column_stack([change[:, 1:], np.zeros(len(change))])
            added = np.zeros(len(change))
            for j in range(until.shape[1]):
                later = 2 * (until[:, j + 1 :] * free[:, j + 1 :]).sum(axis=1) / free[:, j]
                added += known[:, j] * found.by_censoring[rows, j] * until[:, j] * (until[:, j] + later)
            share = np.divide(variance, variance + added, out=np.zeros(len(added)), where=variance > 0)
            logs.append(self.share[rows] @ np.log(np.maximum(1 + share * deviation, _LEAST_RATIO)))
        return np.array(logs)

    def _score(self, r: FloatArray) -> FloatArray:
        found = self._residuals
        judged: FloatArray = (found.weight > 0) * outcome_scores(
            1 - self._probability(r), found.outcome, found.followed
        )
        return judged

    def fit(self, r: FloatArray, rows: IntArray, z: FloatArray, penalty: FloatArray) -> FloatArray | None:
        """Return effects theta (p,) of columns z (m, p) of some rows (m,), with which events by the last time agree.

        The sums of z times the residuals are zero, up to the penalties (p,), after hazards are multiplied by
        exp(r + z theta), r (n,). None if Newton's method finds no such effects.
        """
        outcome, F = (part[rows] for part in self._at_last(r))
        return fit_at_one_time(-np.log1p(-F), z, outcome, self.share[rows] * (F > 0), penalty)

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
        """Return the numbers of a trial's group with log hazard ratios r (n,); None if too few were followed."""
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
