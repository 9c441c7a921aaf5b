"""Baseline hazards, and the survival curves of patients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drosurv.curve_values import ProportionalValues, ScoreValues, StepFunction, at_own_times
from drosurv.curves import SmoothCurves, StepCurves, SurvivalCurves
from drosurv.errors import ArgumentError, InputError, arg, require
from drosurv.losses import ConvexLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_likelihood import StratifiedLikelihood
from drosurv.solvers import Result, TrainingData
from drosurv.target import FloatArray, IntArray, Target, as_numbers


class Curves(ABC):
    """The survival curves of a model as functions of the scores; a subclass is a dataclass, so that it can be saved.

    `times` (K,) are the default times of predicted curves, `strata` the labels of strata with separate curves. If
    `in_steps`, curves change only at `times`.
    """

    times: FloatArray
    strata: tuple[Any, ...] = ()
    in_steps: ClassVar[bool] = False

    @abstractmethod
    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Return cumulative hazards (n, T) of patients with scores (n,) at the given times, by default at `times`."""

    def at_patient_times(self, scores: FloatArray, times: FloatArray) -> FloatArray:
        """Return cumulative hazards (n,) of patients with scores (n,), each at one time (n,)."""
        return at_own_times(lambda rows, at: self.cumulative_hazard(scores[rows], at), times)

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the first times (n,) at which patients reach given cumulative hazards (n,); infinity if never.

        Between `times` the cumulative hazard is interpolated linearly.
        """
        curves = self.cumulative_hazard(scores)
        # The tolerance is for curves that equal the given hazard up to rounding.
        reached = curves >= hazard[:, None] * (1.0 - 1e-12)
        first, rows = reached.argmax(axis=1), np.arange(len(curves))
        before = np.maximum(first - 1, 0)
        low, high = curves[rows, before], curves[rows, first]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num((hazard - low) / (high - low), nan=1.0), 0.0, 1.0)
        found = self.times[before] + share * (self.times[first] - self.times[before])
        return np.where(reached.any(axis=1), found, np.inf)

    def of_patients(self, strata: Any, n: int) -> Curves:
        """Return the curves for n patients in given strata (n,); `strata` is None for a model without strata."""
        if strata is not None:
            raise ArgumentError("strata", f"the model was fitted without strata; leave {arg('strata')} out.")
        return self

    def of_scores(self, scores: FloatArray, known_until: float) -> SurvivalCurves:
        """Return the curves of patients with scores (n,), or network outputs (n, K)."""
        values = ScoreValues(scores, self.cumulative_hazard, self.at_patient_times)
        return SmoothCurves(values, self.times, max(known_until, float(self.times[-1])))

    def at_zero(self) -> FloatArray:
        """Return cumulative hazards (1, K) of a patient of score zero; with strata, (S, K)."""
        return self.cumulative_hazard(np.zeros(1))


def step_functions(times: FloatArray, values: FloatArray) -> NDArray[Any]:
    """Return one step function per row of values (n, K) at the times (K,)."""
    out = np.empty(len(values), dtype=object)
    out[:] = [StepFunction(times, row) for row in values]
    return out


def checked_times(times: ArrayLike) -> FloatArray:
    """Check the times at which curves are predicted."""
    checked = as_numbers(times)
    if checked.ndim != 1 or not np.isfinite(checked).all() or (checked < 0).any():
        raise ArgumentError.must("times", "be a list of finite times >= 0", times)
    return checked


@dataclass(frozen=True, eq=False)
class Baseline(Curves):
    """Log cumulative baseline hazard at the event times; with strata, one for each stratum.

    `times` (K,) are the event times, and zero if no event is at zero. `log_cumulative` (K,), or (S, K) for S `strata`,
    is minus infinity before the first event, and NaN for a stratum without events. `stratum` (n,) is the number of the
    stratum of each patient for whom curves are predicted.
    """

    times: FloatArray
    log_cumulative: FloatArray
    strata: tuple[Any, ...] = ()
    stratum: IntArray | None = None

    in_steps = True

    @staticmethod
    def breslow(target: Target, scores: FloatArray, weight: FloatArray | None = None) -> Baseline:
        """Breslow's estimator: the hazard at an event time is the number of events over the summed risk at that time.

        It is computed in logs, so that scores of any size do not overflow.
        """
        loss = CoxPartial(Target(target.event, target.time), weight=weight)
        return Baseline.through(loss.event_times, loss.log_hazard_jumps(scores))

    @staticmethod
    def through(at: FloatArray, log_jumps: FloatArray) -> Baseline:
        """From the logs of the jumps (K,) of the cumulative hazard at event times (K,)."""
        return Baseline.from_zero(at, np.logaddexp.accumulate(log_jumps))

    @staticmethod
    def from_zero(at: FloatArray, log_cumulative: FloatArray) -> Baseline:
        """From the log cumulative hazard (K,) at event times (K,); the cumulative hazard before the first is zero."""
        if at[0] > 0:
            at, log_cumulative = np.append(0.0, at), np.append(-np.inf, log_cumulative)
        return Baseline(at, log_cumulative)

    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """See :meth:`Curves.cumulative_hazard`."""
        at = self.times if times is None else checked_times(times)
        return self._values(scores).hazard(slice(None), at)

    def at_patient_times(self, scores: FloatArray, times: FloatArray) -> FloatArray:
        """See :meth:`Curves.at_patient_times`."""
        return self._values(scores).hazard_at_patient_times(slice(None), checked_times(times))

    def _values(self, scores: FloatArray) -> ProportionalValues:
        return ProportionalValues(self.times, self.log_cumulative, scores, self.stratum)

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """See :meth:`Curves.first_at`."""
        # The tolerance is for curves that equal the given hazard up to rounding.
        log_baseline = np.log(hazard) - self._values(scores).bounded_scores - 1e-12
        times, found = np.append(self.times, np.inf), np.empty(len(scores))
        for k, curve in enumerate(np.atleast_2d(self.log_cumulative)):
            inside = slice(None) if self.stratum is None else self.stratum == k
            found[inside] = times[np.searchsorted(curve, log_baseline[inside])]
        return found

    def of_patients(self, strata: Any, n: int) -> Curves:
        """See :meth:`Curves.of_patients`; raise for a stratum that is unknown or had no events in training."""
        if not self.strata:
            return super().of_patients(strata, n)
        if strata is None:
            raise ArgumentError(
                "strata",
                f"the model was fitted with strata {list(self.strata)}: pass {arg('strata')}, one label per patient.",
            )
        given = np.asarray(strata, dtype=object)
        require(given.shape == (n,), "strata", f"have one label per row, shape ({n},)", given.shape)
        numbers = {label: k for k, label in enumerate(self.strata)}
        stratum = np.array([numbers.get(label, -1) for label in given.tolist()], dtype=np.intp)
        if (stratum < 0).any():
            known, unknown = list(self.strata), given[stratum < 0][0]
            raise ArgumentError(
                "strata", f"{arg('strata')} contains {unknown!r}, but the model was fitted with {known}."
            )
        without_events = np.flatnonzero(np.isnan(self.log_cumulative[stratum]).any(axis=1))
        if len(without_events):
            raise InputError(
                f"no curve can be predicted for stratum {given[without_events[0]]!r}: it had no event in training."
            )
        return replace(self, stratum=stratum)

    def of_scores(self, scores: FloatArray, known_until: float) -> StepCurves:
        """See :meth:`Curves.of_scores`."""
        end = max(known_until, float(self.times[-1]))
        return StepCurves(self._values(scores), self.times, end, own_hazard=True)

    def at_zero(self) -> FloatArray:
        """See :meth:`Curves.at_zero`."""
        with np.errstate(over="ignore"):
            return np.exp(np.atleast_2d(self.log_cumulative))


def fitted_curves(result: Result) -> Curves:
    """Return the survival curves of a trained model; by default those of a Cox model, with the ties of the loss."""
    problem = result.problem
    if problem.curves is not None:
        curves: Curves = problem.curves(problem.data, result.scores, result.extra)
        return curves
    loss = problem.loss if isinstance(problem.loss, CoxPartial) else problem.data.cox_loss()
    return cox_baseline(loss, problem.data, result.scores, result.extra)


def cox_baseline(loss: CoxPartial, data: TrainingData, scores: FloatArray, extra: FloatArray) -> Baseline:
    """Return the baseline of a partial likelihood, Breslow's or Efron's; with strata, one for each."""
    jumps = loss.log_hazard_jumps(scores)
    if loss.event_strata is None or data.target.stratum is None:
        return Baseline.through(loss.event_times, jumps)
    strata, stratum = data.observation.strata, loss.event_strata
    times = np.unique(loss.event_times if loss.event_times.min() <= 0 else np.append(loss.event_times, 0.0))
    log_cumulative = np.full((len(strata), len(times)), np.nan)
    for k in np.unique(stratum):
        inside = stratum == k
        steps = np.concatenate([[-np.inf], np.logaddexp.accumulate(jumps[inside])])
        log_cumulative[k] = steps[np.searchsorted(loss.event_times[inside], times, side="right")]
    return Baseline(times, log_cumulative, strata)


def piecewise(loss: ConvexLoss, data: TrainingData, scores: FloatArray, extra: FloatArray) -> Baseline:
    """Return the baseline of a full likelihood, whose extra parameters are the logs of piecewise-constant hazards.

    The cumulative hazard is computed at zero and at every event time.
    """
    strata, times = data.observation.strata, data.target.curve_times
    if not isinstance(loss, StratifiedLikelihood):
        return Baseline(times, _log_cumulative(loss, extra, times))
    log_cumulative = np.full((len(strata), len(times)), np.nan)
    for stratum, part in zip(loss.strata, loss.parts, strict=True):
        # Curves are constant after the last event of the stratum.
        last = data.target.take(part.rows).curve_times[-1]
        log_cumulative[stratum] = _log_cumulative(part.loss, extra[part.psi], np.minimum(times, last))
    return Baseline(times, log_cumulative, strata)


def _log_cumulative(loss: ConvexLoss, psi: FloatArray, times: FloatArray) -> FloatArray:
    """Return the log cumulative hazard (T,) at each time, given log hazards psi (K,) on the intervals of the loss."""
    assert isinstance(loss, PiecewiseExponential), "a full likelihood"
    with np.errstate(divide="ignore"):
        level = psi.max()
        out: FloatArray = np.log(loss.intervals.exposure(times).cumulative(np.exp(psi - level))) + level
    return out
