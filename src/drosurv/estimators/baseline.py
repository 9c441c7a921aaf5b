"""Baseline hazards, and the survival curves they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches

from drosurv.errors import ArgumentError, require
from drosurv.losses import ConvexLoss, CoxPartial, PiecewiseExponential, StratifiedLikelihood
from drosurv.solvers import TrainingData
from drosurv.step_function import StepFunction
from drosurv.target import FloatArray, IntArray, Target, as_numbers

# Log of the largest cumulative hazard; larger ones are set to it.
_LARGEST = 700.0
# Number of patients per batch where each has a different time: hazards of m patients at m times cost m * m.
_TOGETHER = 256


class Curves(ABC):
    """What a model's survival curves are read from; a subclass is a dataclass, so that it can be saved.

    `times` (K,) are those at which curves are given unless others are asked for, `strata` the labels of those that have
    separate curves. Curves `in_steps` change at their times only.
    """

    times: FloatArray
    strata: tuple[Any, ...] = ()
    in_steps: ClassVar[bool] = False

    @abstractmethod
    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Cumulative hazards (n, T) of patients with the given scores, at the given times or those of the curve."""

    def at_patient_times(self, scores: FloatArray, times: FloatArray) -> FloatArray:
        """Cumulative hazards (n,) of patients with the given scores, each at that patient's time (n,)."""
        found = np.empty(len(scores))
        for rows in gen_batches(len(scores), _TOGETHER):
            distinct, column = np.unique(times[rows], return_inverse=True)
            hazard = self.cumulative_hazard(scores[rows], distinct)
            found[rows] = hazard[np.arange(len(column)), column]
        return found

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """First times (n,) at which patients reach a cumulative hazard (n,); infinity for those who never do.

        Between the times of the curve the cumulative hazard is interpolated linearly. Override this where a formula
        gives the times.
        """
        curves = self.cumulative_hazard(scores)
        # Rounding must not keep a curve from reaching it.
        reached = curves >= hazard[:, None] * (1.0 - 1e-12)
        first, rows = reached.argmax(axis=1), np.arange(len(curves))
        before = np.maximum(first - 1, 0)
        low, high = curves[rows, before], curves[rows, first]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num((hazard - low) / (high - low), nan=1.0), 0.0, 1.0)
        found = self.times[before] + share * (self.times[first] - self.times[before])
        return np.where(reached.any(axis=1), found, np.inf)

    def of_patients(self, strata: Any, n: int) -> Curves:
        """The curves of n patients by the labels (n,) of their strata, None for a model without any."""
        if strata is not None:
            raise ArgumentError("strata", "the model was fitted without strata; leave strata out.")
        return self

    def at_zero(self) -> FloatArray:
        """Cumulative hazards (1, K) of a patient of score zero, or (S, K) of one in each stratum."""
        return self.cumulative_hazard(np.zeros(1))


def step_functions(times: FloatArray, values: FloatArray) -> NDArray[Any]:
    """One step function per row of values (n, K) at the times (K,)."""
    out = np.empty(len(values), dtype=object)
    for i, row in enumerate(values):
        out[i] = StepFunction(times, row)
    return out


def checked_times(times: ArrayLike) -> FloatArray:
    """The times of curves, checked."""
    wanted = as_numbers(times)
    if wanted.ndim != 1 or not np.isfinite(wanted).all() or (wanted < 0).any():
        raise ArgumentError.must("times", "be a list of finite times >= 0", times)
    return wanted


@dataclass(frozen=True, eq=False)
class Baseline(Curves):
    """Cumulative baseline hazard on a grid of times, in logs; one for each stratum where there are strata.

    `times` (K,) are zero (unless someone had the event then) and each time of an event. `log_cumulative` (K,), or (S,
    K) of the S `strata`, is minus infinity where the hazard is still zero, and NaN for a stratum without events. Then
    `stratum` (n,) is the number of each patient's.
    """

    times: FloatArray
    log_cumulative: FloatArray
    strata: tuple[Any, ...] = ()
    stratum: IntArray | None = None

    in_steps = True

    @staticmethod
    def breslow(target: Target, scores: FloatArray, weight: FloatArray | None = None) -> Baseline:
        """Breslow's estimate: at each event time, events over the summed risks of those at risk.

        Everything stays in logs, so that scores of any size give a baseline.
        """
        loss = CoxPartial(Target(target.event, target.time), weight=weight)
        return Baseline.through(loss.event_times, loss.log_hazard_jumps(scores))

    @staticmethod
    def through(at: FloatArray, log_jumps: FloatArray) -> Baseline:
        """From the logs of the jumps (K,) at event times (K,), from zero on."""
        return Baseline.from_zero(at, np.logaddexp.accumulate(log_jumps))

    @staticmethod
    def from_zero(at: FloatArray, log_cumulative: FloatArray) -> Baseline:
        """From the log cumulative hazard (K,) at event times (K,), with zero before the first."""
        if at[0] > 0:
            at, log_cumulative = np.append(0.0, at), np.append(-np.inf, log_cumulative)
        return Baseline(at, log_cumulative)

    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Cumulative hazards (n, T) of patients with the given scores, at the given times or those of the curve."""
        log_base = self.log_cumulative
        if times is not None:
            place = np.searchsorted(self.times, checked_times(times), side="right") - 1
            log_base = np.where(place >= 0, log_base[..., np.maximum(place, 0)], -np.inf)
        log_base = log_base if self.stratum is None else log_base[self.stratum]
        return np.exp(log_base + self._bounded(scores)[:, None])

    def at_patient_times(self, scores: FloatArray, times: FloatArray) -> FloatArray:
        """Cumulative hazards (n,) of patients with the given scores, each at that patient's time (n,)."""
        place = np.searchsorted(self.times, checked_times(times), side="right") - 1
        stratum = () if self.stratum is None else (self.stratum,)
        log_base = np.where(place >= 0, self.log_cumulative[(*stratum, np.maximum(place, 0))], -np.inf)
        hazard: FloatArray = np.exp(log_base + self._bounded(scores))
        return hazard

    def _bounded(self, scores: FloatArray) -> FloatArray:
        """Scores whose hazards are numbers: nobody survives the largest, and their differences are numbers too."""
        return np.minimum(scores, _LARGEST - float(np.nanmax(self.log_cumulative)))

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """First times (n,) at which patients reach a cumulative hazard (n,); infinity for those who never do."""
        # Rounding must not keep a curve from reaching it.
        wanted = np.log(hazard) - self._bounded(scores) - 1e-12
        times, found = np.append(self.times, np.inf), np.empty(len(scores))
        for k, curve in enumerate(np.atleast_2d(self.log_cumulative)):
            inside = slice(None) if self.stratum is None else self.stratum == k
            found[inside] = times[np.searchsorted(curve, wanted[inside])]
        return found

    def of_patients(self, strata: Any, n: int) -> Curves:
        """The curves of n patients by the labels (n,) of their strata; one that has no baseline hazard is an error."""
        if not self.strata:
            return super().of_patients(strata, n)
        if strata is None:
            raise ArgumentError(
                "strata",
                f"the model was fitted with strata {list(self.strata)}: give strata, one for each patient.",
            )
        given = np.asarray(strata, dtype=object)
        require(given.shape == (n,), "strata", f"have one label per row, shape ({n},)", given.shape)
        place = {label: k for k, label in enumerate(self.strata)}
        found = np.array([place.get(label, -1) for label in given.tolist()], dtype=np.intp)
        if (found < 0).any():
            known, unknown = list(self.strata), given[found < 0][0]
            raise ArgumentError(
                "strata", f"strata contains {unknown!r}, but the model was fitted with {known}."
            )
        silent = np.flatnonzero(np.isnan(self.log_cumulative[found]).any(axis=1))
        if len(silent):
            raise ValueError(
                f"no curve can be predicted for stratum {given[silent[0]]!r}: it had no event in data."
            )
        return replace(self, stratum=found)

    def at_zero(self) -> FloatArray:
        """Cumulative hazards (1, K) of a patient of score zero, or (S, K) of one in each stratum."""
        with np.errstate(over="ignore"):
            return np.exp(np.atleast_2d(self.log_cumulative))


def cox_baseline(loss: CoxPartial, data: TrainingData, scores: FloatArray, extra: FloatArray) -> Baseline:
    """The baseline that goes with a partial likelihood: Breslow's or Efron's, one for each stratum."""
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
    """The piecewise-constant hazard whose logs are the full likelihood's extra parameters, one for each stratum.

    It is read at zero and every event time.
    """
    strata, times = data.observation.strata, data.target.curve_times
    if not isinstance(loss, StratifiedLikelihood):
        return Baseline(times, _log_cumulative(loss, extra, times))
    log_cumulative = np.full((len(strata), len(times)), np.nan)
    for stratum, part in zip(loss.strata, loss.parts, strict=True):
        # Constant after the last event of the stratum, as every curve is.
        last = data.target.take(part.rows).curve_times[-1]
        log_cumulative[stratum] = _log_cumulative(part.loss, extra[part.psi], np.minimum(times, last))
    return Baseline(times, log_cumulative, strata)


def _log_cumulative(loss: ConvexLoss, psi: FloatArray, times: FloatArray) -> FloatArray:
    """Log (T,) of the integral up to each time of the hazard with logs psi (K,) on the loss's intervals."""
    assert isinstance(loss, PiecewiseExponential), "a full likelihood"
    with np.errstate(divide="ignore"):
        level = psi.max()
        out: FloatArray = np.log(loss.intervals.exposure(times).cumulative(np.exp(psi - level))) + level
    return out
