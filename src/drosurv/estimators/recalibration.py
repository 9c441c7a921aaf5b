"""Recalibration: one factor that gives scores the right spread for patients not trained on."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from drosurv.errors import ArgumentError, warn_caller
from drosurv.estimators.baseline import cox_baseline
from drosurv.estimators.fitted import Fitted
from drosurv.estimators.fitting import train
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.training import Training
from drosurv.folds import draw_folds
from drosurv.losses import CoxPartial
from drosurv.solvers.networks import network_scores
from drosurv.target import FloatArray, IntArray, Target

N_FOLDS = 5


def out_of_fold_factor(estimator: Any, training: Training) -> float:
    """The number b that maximises the partial likelihood of b f, each patient scored by a model trained without them.

    It is one, with a warning, where no positive number is best.
    """
    # A copy trains: a recipe may leave notes on its estimator.
    other, fold = clone(estimator).set_params(verbose=False), folds(training)
    scores = np.empty(len(fold))
    with warnings.catch_warnings(action="ignore"):
        # Training on everybody has given these warnings already.
        for k in range(N_FOLDS):
            rows, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if not len(held):
                continue
            try:
                model = other._trained(training.part(rows))
            except ValueError as error:
                raise ArgumentError(
                    "recalibrate",
                    f"recalibrate=True trains on four fifths of the patients too, and there: "
                    f"{str(error).rstrip('.')}; or use recalibrate=False.",
                ) from error
            scores[held] = network_scores(model.network, training.X[held])
    factor = stretch(scores, fold, training, estimator.ties)
    if not 0 < factor < np.inf:
        warn_caller(
            f"recalibration leaves the scores as they are: on patients not trained on the best factor is {factor:.3g}. "
            "The model may have learned nothing that holds for others."
        )
        return 1.0
    return factor


def folds(training: Training) -> IntArray:
    """Fold (n,) of each row, the same for the same seed; members of a cluster share one."""
    rng, clusters = np.random.default_rng(training.seed), training.observation.clusters
    return draw_folds(len(training.X), N_FOLDS, rng, training.target.event, clusters)


def stretch(scores: FloatArray, fold: IntArray, training: Training, ties: str) -> float:
    """The factor of the scores (n,) that maximises the partial likelihood within folds; one for equal scores.

    Patients are compared within their fold: scores of different models share no zero.
    """
    target = training.target
    _, within = np.unique(
        fold if target.stratum is None else np.stack([fold, target.stratum]), axis=-1, return_inverse=True
    )
    spread = float(np.std(scores - (np.bincount(fold, scores) / np.maximum(np.bincount(fold), 1))[fold]))
    if spread <= 1e-12 * max(float(np.abs(scores).max()), 1e-300):
        return 1.0
    observed = Target(target.event, target.time, target.entry, within.reshape(-1).astype(np.intp))
    loss = CoxPartial(observed, ties, training.weight, training.observation.offset)
    one = replace(training, X=(scores / spread)[:, None], target=observed)
    with warnings.catch_warnings(action="ignore"):
        ((found,),) = train([Recipe(loss)], [one], Schedule("convex", "recalibration"))
    return np.inf if found.status == "separated" else float(found.network[0]) / spread


def stretched(fitted: Fitted, factor: float, ties: str) -> Fitted:
    """The trained model with its scores, and linear coefficients, times a factor, and a baseline that suits them."""
    network = fitted.network * factor if isinstance(fitted.network, np.ndarray) else fitted.network
    # A baseline that was trained beside the scores belongs to their old spread.
    recipe = replace(fitted.recipe, baseline=partial(cox_baseline, fitted.training.likelihood(ties)))
    return replace(fitted, network=network, scores=fitted.scores * factor, recipe=recipe)
