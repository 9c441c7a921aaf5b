"""Recalibration: multiply the scores by the factor that is best for patients not trained on."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from drosurv.errors import ArgumentError, warn_caller
from drosurv.estimators.baseline import cox_baseline
from drosurv.losses import CoxPartial
from drosurv.observation import draw_folds
from drosurv.solvers import Options, Problem, Result, TrainingData, solve
from drosurv.solvers.networks import network_scores
from drosurv.target import FloatArray, IntArray, Target

N_FOLDS = 5
# With fewer events recalibrate="auto" leaves the scores as they are: the standard error of the factor is about
# 1 / (standard deviation of the log hazards * sqrt(events)), .2 to .3 with 50 events, as large as what it corrects.
FEWEST_EVENTS = 50


def out_of_fold_factor(estimator: Any, data: TrainingData) -> float | None:
    """Return the factor b that maximises the partial likelihood of b f, each score f from a model trained without it.

    It is 1, with a warning, where no positive factor is best. With ``recalibrate="auto"`` it is None where there are
    few events, four fifths of the patients cannot be trained on, or no positive factor is best.
    """
    auto = estimator.recalibrate == "auto"
    if auto and data.n_events < FEWEST_EVENTS:
        return None
    # A copy trains, because making the problem may set attributes of its estimator.
    other, fold = (
        clone(estimator).set_params(verbose=False),
        recalibration_folds(data, estimator.random_state),
    )
    scores = np.empty(len(fold))
    with warnings.catch_warnings(action="ignore"):
        # Training on all patients has given these warnings already.
        for k in range(N_FOLDS):
            training, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if not len(held_out):
                continue
            try:
                result = solve(other._problem(data.take(training), [other]), other._options([other]))
            except ValueError as error:
                if auto:
                    return None
                raise ArgumentError(
                    "recalibrate",
                    f"recalibrate=True also trains on four fifths of the patients, and there: "
                    f"{str(error).rstrip('.')}; or use recalibrate=False.",
                ) from error
            scores[held_out] = network_scores(result.network, data.X[held_out])
    factor = best_factor(scores, fold, data, estimator.ties)
    if not 0 < factor < np.inf:
        if auto:
            return None
        warn_caller(
            f"recalibration leaves the scores as they are: on patients not trained on the best factor is {factor:.3g}. "
            "The model may have learned nothing that holds for others."
        )
        return 1.0
    return factor


def recalibration_folds(data: TrainingData, random_state: Any) -> IntArray:
    """Return the fold (n,) of each row, the same for the same seed; members of a cluster share one.

    Without a random state the seed is 0, so that linear models, which need no random numbers otherwise, are the same
    in every fit.
    """
    rng = np.random.default_rng(0 if random_state is None else data.seed)
    return draw_folds(len(data.X), N_FOLDS, rng, data.target.event, data.observation.clusters)


def best_factor(scores: FloatArray, fold: IntArray, data: TrainingData, ties: str) -> float:
    """Return the factor of the scores (n,) that maximises the partial likelihood within folds; 1 for equal scores.

    Patients are compared within their fold, because scores of different models differ by a constant.
    """
    target = data.target
    _, within = np.unique(
        fold if target.stratum is None else np.stack([fold, target.stratum]), axis=-1, return_inverse=True
    )
    spread = float(np.std(scores - (np.bincount(fold, scores) / np.maximum(np.bincount(fold), 1))[fold]))
    if spread <= 1e-12 * max(float(np.abs(scores).max()), 1e-300):
        return 1.0
    by_fold = Target(target.event, target.time, target.entry, within.reshape(-1).astype(np.intp))
    loss = CoxPartial(by_fold, ties, data.weight, data.observation.offset)
    one_feature = replace(data, X=(scores / spread)[:, None], target=by_fold)
    with warnings.catch_warnings(action="ignore"):
        found = solve(Problem(one_feature, loss), Options("convex", "recalibration"))
    return np.inf if found.status == "separated" else float(found.network[0]) / spread


def rescaled(result: Result, factor: float, ties: str) -> Result:
    """Return a trained model with its scores, and linear coefficients, times a factor, and Cox's baseline for them."""
    network = result.network * factor if isinstance(result.network, np.ndarray) else result.network
    problem = result.problem
    out = replace(result, network=network, scores=result.scores * factor)
    # A baseline that was trained together with the scores belongs to their old spread.
    out.problem = replace(problem, curves=partial(cox_baseline, problem.data.cox_loss(ties)))
    out.objective, out.losses, out.evaluation = result.objective, result.losses, result.evaluation
    return out
