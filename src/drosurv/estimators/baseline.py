"""Baseline hazards of trained models."""

from __future__ import annotations

import numpy as np

from drosurv.curves import Baseline, FittedCurves
from drosurv.losses import ConvexLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_likelihood import StratifiedLikelihood
from drosurv.patients.target import FloatArray
from drosurv.solvers import Result, TrainingData


def fitted_curves(result: Result) -> FittedCurves:
    """Return the survival curves of a trained model; by default those of a Cox model, with the ties of the loss."""
    problem = result.problem
    if problem.curves is not None:
        curves: FittedCurves = problem.curves(problem.data, result.scores, result.extra)
        return curves
    loss = problem.loss if isinstance(problem.loss, CoxPartial) else problem.data.cox_loss()
    return cox_baseline(loss, problem.data, result.scores, result.extra)


def cox_baseline(loss: CoxPartial, data: TrainingData, scores: FloatArray, extra: FloatArray) -> Baseline:
    """Return the baseline of a partial likelihood, Breslow's or Efron's; with strata, one for each."""
    jumps = loss.log_hazard_jumps(scores)
    if loss.event_strata is None or data.target.stratum is None:
        return Baseline.through(loss.event_times, jumps)
    strata, stratum = data.rows.strata, loss.event_strata
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
    strata, times = data.rows.strata, data.target.curve_times
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
