"""Training data with what ``fit`` was told about the rows: entry times, strata, clusters, offsets, patients."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.baseline import cox_baseline
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training
from drosurv.losses import CoxPartial
from drosurv.observation import ends_of_patients, parse_observation
from drosurv.target import FloatArray, IntArray, Target

EVERYTHING = ("entry", "strata", "clusters", "offset", "id")


def partial_likelihood(training: Training, ties: str) -> CoxPartial:
    """Cox's loss of the training data, with whatever is known of the rows."""
    return CoxPartial(training.target, ties, training.weight, training.observation.offset)


def cox_recipe(training: Training, ties: str, **parts: Any) -> Recipe:
    """Cox's loss with its baseline hazard, and the other parts of a recipe."""
    loss = partial_likelihood(training, ties)
    return Recipe(loss, baseline=partial(cox_baseline, loss), **parts)


def observed_training(
    training: Training, target: Target, given: dict[str, Any], *, name: str, robust: bool
) -> Training:
    """The training data with the given arguments of ``fit``, checked; the target is of all rows the caller gave.

    `name` is the estimator's, for messages; `robust` tells whether patients are weighted by their losses, so that each
    may have only one.
    """
    observation = parse_observation(target, **given).take(training.kept)
    mass = training.mass
    if observation.patient is not None:
        events = np.bincount(observation.patient, training.target.event)
        if events.max() <= 1:
            mass = _mass_of_patients(observation.patient, training)
        elif robust:
            raise ArgumentError(
                f"{name} weighs patients by their loss, and one {Argument('id')} has {int(events.max())} events: give "
                "one event per id, or train the plain model."
            )
    return replace(training, target=observation.observe(training.target), mass=mass, observation=observation)


def _mass_of_patients(patient: IntArray, training: Training) -> FloatArray:
    """Mass of each row when patients are counted, not rows: all of a patient's is on the row of the event, or the last.

    The partial likelihood has a loss only where there is an event, so this is the same as summing a patient's losses.
    """
    _, last = ends_of_patients(patient, training.target)
    mass = np.zeros(len(training.target))
    mass[last] = 1.0 if training.weight is None else training.weight[last]
    share: FloatArray = mass / mass.sum()
    return share
