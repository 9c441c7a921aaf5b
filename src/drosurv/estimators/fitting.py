"""One way to train: recipes on their training sets, by the solver that the schedule asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from drosurv.errors import ArgumentError, OnProcessorOnly
from drosurv.estimators.device import cuda_started, resolve_device, worth_moving
from drosurv.estimators.fitted import Fitted, Solved, warn_unless_converged
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.steps import by_adam, divided
from drosurv.estimators.training import Training
from drosurv.losses import ConvexLoss
from drosurv.objectives import Evaluation, Mean
from drosurv.presentation.progress import bar
from drosurv.solvers import Criterion, Growth, LinearProblem, best_round, boost, held_out, minimise
from drosurv.solvers.networks import recordable, squared_norm
from drosurv.target import FloatArray


def train(recipes: Sequence[Recipe], trainings: Sequence[Training], schedule: Schedule) -> list[list[Fitted]]:
    """Train B models on each training set, by one recipe for each; on an accelerator all of them at once."""
    pairs = [
        (_with_neighborhoods(recipe, training, schedule), training)
        for recipe, training in zip(recipes, trainings, strict=True)
    ]
    device = _device(recipes, trainings, schedule)
    if device != "cpu":
        criteria = [recipe.criterion(training) for recipe, training in pairs]
        try:
            results = by_adam(criteria, trainings, schedule, device)
            found = zip(results, pairs, criteria, strict=True)
            return [_evaluated(*own, *pair, one, schedule) for own, pair, one in found]
        except OnProcessorOnly:
            # The rule of "auto" does not know every loss; what cannot be moved stays.
            if schedule.device != "auto":
                raise
    return [_train_here(recipe, training, schedule) for recipe, training in pairs]


def _device(recipes: Sequence[Recipe], trainings: Sequence[Training], schedule: Schedule) -> str:
    if schedule.solver != "adam":
        return "cpu"
    n, d = trainings[0].X.shape
    models, weights, network = len(trainings) * len(schedule.lr), d, not schedule.linear
    recorded = recipes[0].loss.recordable
    if schedule.device == "auto" and network:
        if resolve_device("auto", worthwhile=True) == "cpu":
            return "cpu"
        assert schedule.module is not None, "Adam trains a network"
        module = schedule.module(d, 0)
        weights = sum(p.numel() for p in module.parameters())
        recorded = recorded and recordable(module)
    worthwhile = worth_moving(n, models, weights, cuda_started(), network, recorded)
    return resolve_device(schedule.device, worthwhile)


def _with_neighborhoods(recipe: Recipe, training: Training, schedule: Schedule) -> Recipe:
    find: Any = recipe.neighborhoods
    if not recipe.finds_neighborhoods:
        return recipe
    plain = replace(recipe, objective=Mean(), blocks=None, regret=True, neighborhoods=None, penalty=None)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # The plain model is only used to find neighbourhoods: do not warn the user about its training.
        (model, *_) = _train_here(plain, training, replace(schedule, lr=schedule.lr[:1], verbose=False))
    return replace(recipe, neighborhoods=find(model.entries[0]))


def _train_here(recipe: Recipe, training: Training, schedule: Schedule) -> list[Fitted]:
    criterion = recipe.criterion(training)
    how = {"convex": _to_the_optimum, "adam": _by_adam, "trees": _by_trees, "start": _at_the_start}
    found = how[_solver(criterion, schedule)](training, criterion, schedule)
    return _evaluated(found, None, recipe, training, criterion, schedule)


def _solver(criterion: Criterion, schedule: Schedule) -> str:
    """The solver that suits the loss: without second derivatives no optimum is certified."""
    convex = isinstance(criterion.loss, ConvexLoss)
    if schedule.solver == "convex" and not convex:
        raise ArgumentError(
            "solver",
            f"solver='convex' cannot train {schedule.name}: its loss has no second derivatives. Use "
            f"solver='adam'.",
        )
    if schedule.solver == "auto":
        return "convex" if convex else "adam"
    return schedule.solver


def _at_the_start(training: Training, criterion: Criterion, schedule: Schedule) -> list[Solved]:
    n, d = training.X.shape
    return [Solved(np.zeros(d), np.zeros(n), criterion.loss.start, 0, "converged", 0.0, np.zeros(0))]


def _to_the_optimum(training: Training, criterion: Criterion, schedule: Schedule) -> list[Solved]:
    problem = LinearProblem(training.X, criterion, schedule.l2)
    found = minimise(problem, tol=schedule.tol, max_iter=schedule.max_iter)
    warn_unless_converged(schedule.name, found)
    loss, theta = criterion.loss, problem.coefficients(found.x)
    extra = loss.start + found.x[problem.n_coefficients :]
    if loss.shift is not None:
        # The problem's features are centred. The extra parameters take off what the centre adds to the scores.
        extra = extra - np.atleast_1d(theta @ problem.centre) @ np.atleast_2d(loss.shift)
    rest = (found.n_iter, found.status, found.gap, found.history)
    return [Solved(theta, training.X @ theta.T, extra, *rest)]


def _by_adam(training: Training, criterion: Criterion, schedule: Schedule) -> list[Solved]:
    return by_adam([criterion], [training], schedule)[0][0]


def _by_trees(training: Training, criterion: Criterion, schedule: Schedule) -> list[Solved]:
    X, weight, rounds, status = training.X, training.weight, schedule.max_iter, "steps_done"
    growth = partial(Growth, lr=float(schedule.lr[0]), parameters=schedule.tree_params, seed=training.seed)
    stopping = schedule.stopping
    with bar(schedule.name, rounds, shown=schedule.verbose) as on_round:
        if stopping and (parts := divided(stopping, training, criterion)):
            rows, held = parts
            part = growth(X[rows], criterion.take(rows), weight=None if weight is None else weight[rows])
            theirs = held_out(criterion, rows, held, lambda: part.scores()[None])
            # The watched say how many rounds; the trees that are kept are grown on them too.
            rounds = best_round(part, X[held], theirs, stopping.patience, rounds, on_round)
            status = "stopped_early"
        grown = boost(growth(X, criterion, weight=weight), rounds, on_round)
    rest = (len(grown.history), status, np.nan, np.array(grown.history))
    return [Solved(grown.trees(), grown.scores(), grown.extra, *rest)]


def _evaluated(
    found: list[Solved],
    values: FloatArray | None,
    recipe: Recipe,
    training: Training,
    criterion: Criterion,
    schedule: Schedule,
) -> list[Fitted]:
    """The models with their final objective; its values (B,) are computed unless they are known."""
    scores, extra = np.stack([m.scores for m in found]), np.stack([m.extra for m in found])
    entries = criterion.entries(scores, extra)
    at = criterion.objective(entries, criterion.mass)
    if values is None:
        values = at.value
        if criterion.penalty is not None:
            values = values + criterion.penalty_weight * criterion.penalty(scores)[0]
        if schedule.l2 > 0:
            norms = np.array([squared_norm(model.network) for model in found])
            values = values + 0.5 * schedule.l2 * norms
    out = []
    for b, model in enumerate(found):
        own = Evaluation(at.value[b : b + 1], at.weights[b : b + 1], at.eta[b : b + 1])
        out.append(
            Fitted(
                **vars(model),
                recipe=recipe,
                training=training,
                criterion=criterion,
                objective=float(values[b]),
                entries=entries[b : b + 1],
                at=own,
            )
        )
    return out
