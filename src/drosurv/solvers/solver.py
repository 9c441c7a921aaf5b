"""Training: solve a problem with Newton's method, Adam or boosted trees, on the CPU or an accelerator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from drosurv.errors import ArgumentError, InputError, OnProcessorOnly, arg, warn_caller
from drosurv.losses import ConvexLoss
from drosurv.objectives.balls import RobustObjective
from drosurv.objectives.objective import Evaluation, Mean, Objective
from drosurv.patients.draws import draw_places
from drosurv.patients.target import FloatArray, IntArray
from drosurv.presentation.drawing import bar
from drosurv.solvers.adam import EarlyStopping, MiniBatches, adam
from drosurv.solvers.arrays import in_numpy
from drosurv.solvers.boosting import Growth, best_round, boost
from drosurv.solvers.compiled_adam import compiled_adam
from drosurv.solvers.convex import LinearProblem, Minimum, minimise, minimise_together
from drosurv.solvers.criterion import validation_criterion
from drosurv.solvers.device import (
    cuda_started,
    resolve_device,
    separate_stream,
    torch_on_one_thread,
    worth_moving,
)
from drosurv.solvers.networks import (
    DeviceLinear,
    Linear,
    ModuleBatch,
    coefficients,
    network_scores,
    products,
    recordable,
    seeded,
    squared_norm,
)
from drosurv.solvers.problem import Options, Problem, Result, TrainingData
from drosurv.solvers.torch_criterion import TorchCriterion

# With fewer events in the training or the validation set, the validation criterion is mostly noise.
FEWEST_EVENTS = 5
# Patients times weights from which torch uses several threads. Relative to one thread, a step with two threads takes 4
# times as long for 50,000 patients and 400 weights, as long for 500,000 and 400, 0.6 times for 200,000 and 70,000.
_WORTH_THREADS = 1e9
# Squared relative error of coefficients without a part of so many patients, in proportion smaller of fewer: the factor
# of recalibration then changes by less than 1e-6.
_ENOUGH, _OF_PATIENTS = 2e-12, 20_000
_REMEDIES = {
    "max_iter": "it reached max_iter; raise max_iter or scale the features",
    "stalled": (
        "no further progress was possible in floating point; scale the features or raise tol, or set l2 > 0 if a "
        "coefficient is huge"
    ),
    "separated": (
        "the scores grew without bound, because some combination of features separates early from late events; "
        "set l2 > 0"
    ),
}


def solve(problem: Problem, options: Options) -> Result:
    """Train one model: find the parameters that minimise the objective of a problem."""
    solver = _choose_solver(problem, options)
    if solver == "adam":
        return solve_together([problem], options)[0][0]
    problem = _with_neighborhoods(problem, options)
    if solver == "convex":
        linear = LinearProblem(problem.data.X, problem.criterion, options.l2)
        found = minimise(linear, tol=options.tol, max_iter=options.max_iter)
        warn_unless_converged(options.name, found, problem.criterion.objective)
        result = _linear_result(problem, linear, found)
        result.linear = linear
        _evaluate([result], options)
        if linear.criterion is not problem.criterion:
            problem.criterion.loss.forget()
        return result
    if solver == "trees":
        result = _grow_trees(problem, options)
    else:
        (n, d), start = problem.data.X.shape, problem.loss.start
        result = Result(problem, np.zeros(d), np.zeros(n), start, 0, "converged", 0.0, history=np.zeros(0))
    return _evaluate([result], options)[0]


def coefficients_without(
    result: Result, options: Options, fold: IntArray, folds: Sequence[int]
) -> list[FloatArray | None]:
    """Return the coefficients (d,) of a convex model without each of the folds; `fold` (n,) are those of the patients.

    They are found from those of all patients. None where the model has to be trained anew.
    """
    # Its loss is not in memory beside those without the parts.
    linear, result.linear = result.linear, None
    found: list[FloatArray | None] = [None] * len(folds)
    if linear is None or result.status != "converged":
        return found
    theta = result.network
    hessians = linear.hessians_without(theta, fold)
    if hessians is None:
        return found
    problems = [linear.without(fold == k) for k in folds]
    smooth = [problem for problem in problems if problem is not None]
    if not smooth:
        return found
    there = [k for k, problem in zip(folds, problems, strict=True) if problem is not None]
    scores, n, smoothing = linear.scores, linear.n, linear.last_smoothing
    linear.criterion.loss.forget()
    del linear
    tol = smooth[0].tol if options.tol is None else options.tol
    smooth = [problem.smoothed(smoothing) for problem in smooth] if smoothing else smooth
    precision = min(_ENOUGH * min(n / _OF_PATIENTS, 1.0), 1e-3 * tol)
    together = iter(minimise_together(smooth, theta, scores, hessians[there], precision))
    found = [None if problem is None else next(together) for problem in problems]
    return [
        minimise(problem, tol=tol, max_iter=options.max_iter, start=theta).x
        if x is None and problem is not None
        else x
        for problem, x in zip(problems, found, strict=True)
    ]


def solve_together(problems: Sequence[Problem], options: Options) -> list[list[Result]]:
    """Train the B models of each problem by Adam; on an accelerator, the models of all problems in one batch.

    `options.lr` holds B learning rates; the objective and penalty of each problem are those of B models.
    """
    problems = [_with_neighborhoods(problem, options) for problem in problems]
    device = _choose_device(problems, options)
    if device != "cpu":
        try:
            found = _solve_adam(problems, options, device)
            return [_evaluate(results, options, values) for results, values in found]
        except OnProcessorOnly:
            # With device="auto", losses that are not implemented on tensors are trained on the CPU.
            if options.device != "auto":
                raise
    return [_evaluate(_solve_adam([problem], options)[0][0], options) for problem in problems]


def _choose_solver(problem: Problem, options: Options) -> str:
    """Return the solver to use; raise if the loss lacks the second derivatives that the convex solver needs."""
    convex = isinstance(problem.loss, ConvexLoss)
    if options.solver == "convex" and not convex:
        raise ArgumentError(
            "solver",
            f"{arg('solver', 'convex')} cannot train {options.name}: its loss has no second derivatives. Use "
            f"{arg('solver', 'adam')}.",
        )
    if options.solver == "auto":
        return "convex" if convex else "adam"
    return options.solver


def _choose_device(problems: Sequence[Problem], options: Options) -> str:
    """Return the device on which a batch of problems is solved: as asked for, or the faster one."""
    n, d = problems[0].data.X.shape
    models, weights, network = len(problems) * len(options.lr), d, not options.linear
    recorded = problems[0].loss.recordable
    if options.device == "auto" and network:
        if resolve_device("auto", worthwhile=True) == "cpu":
            return "cpu"
        assert options.module is not None, "Adam trains a network"
        module = options.module(d, 0)
        weights = sum(p.numel() for p in module.parameters())
        recorded = recorded and recordable(module)
    worthwhile = worth_moving(n, models, weights, cuda_started(), network, recorded)
    return resolve_device(options.device, worthwhile)


def _with_neighborhoods(problem: Problem, options: Options) -> Problem:
    """Find the neighbourhoods of a problem from the regrets of the plain model, which is trained first."""
    if not problem.finds_neighborhoods:
        return problem
    find: Any = problem.neighborhoods
    plain = replace(problem, objective=Mean(), blocks=None, regret=True, neighborhoods=None, penalty=None)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # The plain model is only used to find neighbourhoods: do not warn about its training.
        regrets = solve(plain, replace(options, lr=options.lr[:1], verbose=False)).losses[0]
    return replace(problem, neighborhoods=find(regrets))


def _linear_result(problem: Problem, linear: LinearProblem, found: Minimum) -> Result:
    """Return the result of the convex solver, with parameters for features that are not centred."""
    X, loss = problem.data.X, problem.loss
    theta = linear.coefficients(found.x)
    extra = loss.start + found.x[linear.n_coefficients :]
    if loss.shift is not None:
        # The features were centred: subtract from the extra parameters what the centre adds to the scores.
        extra = extra - np.atleast_1d(theta @ linear.centre) @ np.atleast_2d(loss.shift)
    scores = products(np.atleast_2d(theta), X)
    scores = scores[0] if theta.ndim == 1 else scores.T
    return Result(problem, theta, scores, extra, found.n_iter, found.status, found.gap, found.history)


def warn_unless_converged(name: str, found: Minimum, objective: Objective | None = None) -> None:
    """Warn that the estimator's solver stopped before the optimum, and name a remedy."""
    if found.status == "converged":
        return
    remedy = _REMEDIES[found.status]
    if isinstance(objective, RobustObjective) and objective.smoothed(1.0) is objective:
        remedy = (
            f"the weights of a ball may jump as losses change, and {type(objective).__name__} has no method smoothed "
            f"for that; write it, or pass {arg('solver', 'adam')}"
        )
    warn_caller(
        f"{name} stopped before the optimum (status {found.status!r}, relative gap {found.gap:.1e}): {remedy}.",
        category=ConvergenceWarning,
    )


def _grow_trees(problem: Problem, options: Options) -> Result:
    """Return the result of boosted trees, stopped early if patients are held out."""
    data, criterion, rounds, status = problem.data, problem.criterion, options.max_iter, "steps_done"
    X, weight = data.X, data.weight
    growth = partial(Growth, lr=float(options.lr[0]), parameters=options.tree_params, seed=data.seed)
    with bar(options.name, rounds, shown=options.verbose) as on_round:
        if split := validation_split(options, data, divisible=criterion.divisible):
            training, validation = split
            part_weight = None if weight is None else weight[training]
            part = growth(X[training], criterion.take(training), weight=part_weight)
            judge = validation_criterion(criterion, training, validation, lambda: part.scores()[None])
            # The validation set chooses the number of rounds; the trees that are kept are grown on all patients.
            rounds = best_round(part, X[validation], judge, options.n_iter_no_change, rounds, on_round)
            status = "stopped_early"
        grown = boost(growth(X, criterion, weight=weight), rounds, on_round)
    trees, scores, history = grown.trees(), grown.scores(), np.array(grown.history)
    return Result(problem, trees, scores, grown.extra, len(history), status, np.nan, history)


def _solve_adam(
    problems: Sequence[Problem], options: Options, device: str = "cpu"
) -> list[tuple[list[Result], FloatArray | None]]:
    """Train B models on each of R training sets of equal size by Adam; on the CPU, R = 1.

    Return the results of each set, and their objectives (B,) if an accelerator computed them.
    """
    sizes = {problem.data.X.shape for problem in problems}
    if len(sizes) > 1:
        raise InputError(f"training sets trained together must have one shape, got {sorted(sizes)}.")
    if options.early_stopping and len(problems) > 1:
        # Each problem has its own validation set and stops at a different step.
        return [_solve_adam([problem], options, device)[0] for problem in problems]
    settings, loss, values = len(options.lr), problems[0].loss, None
    network = make_networks([problem.data for problem in problems], options, device, loss.n_outputs)
    criterion: Any = problems[0].criterion
    extra: Any = np.tile(loss.start, (settings, 1)) if loss.n_extra else None
    if device != "cpu":
        criterion = TorchCriterion([problem.criterion for problem in problems], settings, device)
        extra = criterion.first_extra(network.parameters[0].dtype)
    tiled = replace(options, lr=np.tile(options.lr, len(problems)))
    history, best_epoch = _take_steps(network, criterion, extra, tiled, problems[0].data, device)
    if device != "cpu":
        values = criterion.values(network.evaluated(), extra)
        if options.l2 > 0:
            values = values + options.l2 / 2 * sum((p * p).sum(-1) for p in network.parameters)
        values = in_numpy(values).reshape(-1, settings)
    trained = list(network.parameters[0].copy()) if isinstance(network, Linear) else network.trained()
    extras = np.zeros((len(trained), 0)) if extra is None else in_numpy(extra)
    epochs = np.full(len(trained), options.max_iter) if best_epoch is None else best_epoch
    status = "steps_done" if best_epoch is None else "stopped_early"
    out = []
    for r, problem in enumerate(problems):
        results = []
        for k in range(r * settings, (r + 1) * settings):
            scores = network_scores(trained[k], problem.data.X, loss.n_outputs)
            if not np.isfinite(scores).all():
                raise ArgumentError(
                    "lr",
                    f"training diverged to infinite scores; lower {arg('lr')} (now {tiled.lr[k]}) or "
                    "standardise the features.",
                )
            results.append(
                Result(problem, trained[k], scores, extras[k], int(epochs[k]), status, np.nan, history[k])
            )
        out.append((results, None if values is None else values[r]))
    return out


def make_networks(data: Sequence[TrainingData], options: Options, device: str, n_outputs: int = 1) -> Any:
    """Make the networks of all models of all training sets; the models of one set share its features."""
    assert options.module is not None, "Adam trains a network"
    X, settings = [each.X for each in data], len(options.lr)
    d, seed, models = X[0].shape[1], data[0].seed, len(X) * settings
    if options.linear and n_outputs == 1:
        theta = np.tile(coefficients(options.module(d, seed)), (models, 1))
        return Linear(X[0], theta) if device == "cpu" else DeviceLinear(X, theta, device)
    features = X[0] if len(X) == 1 else np.repeat(np.stack(X), settings, axis=0)
    modules = [options.module(d, seed) for _ in range(models)]
    return ModuleBatch(modules, features, None if device == "cpu" else device, n_outputs)


def _take_steps(
    network: Any, criterion: Any, extra: Any, options: Options, data: TrainingData, device: str
) -> tuple[FloatArray, IntArray | None]:
    """Train a batch of models and the extra parameters (B, K) of the loss, in place.

    Return the objective (B, steps) before each step and, with early stopping, the best epoch (B,) of each model.
    """
    trained, minimised, steps, stopping, rows = network, criterion, options.max_iter, None, data
    if split := validation_split(options, data, divisible=criterion.divisible):
        training, validation = split
        trained, minimised, rows = network.take(training), criterion.take(training), data.take(training)
        judge = validation_criterion(criterion, training, validation, trained.evaluated)
        stopping = EarlyStopping(network.take(validation), judge, options.n_iter_no_change, extra=extra)
    size = options.batch_size
    if size is not None and size < minimised.loss.n:
        trained = minimised = MiniBatches(trained, minimised.take, rows.order, size, data.seed)
        steps *= trained.n_batches
        if stopping is not None:
            stopping.epoch_steps = trained.n_batches
    if isinstance(trained, Linear) and stopping is None:
        found = compiled_adam(trained, criterion, options.lr, steps, options.l2)
        if found is not None:
            return found, None
    with (
        bar(options.name, steps, shown=options.verbose) as show_step,
        seeded(data.seed),
        separate_stream(device),
        _threads(network, min(size or len(data.X), len(data.X))),
    ):

        def on_step(step: int) -> bool:
            show_step(step)
            return stopping is not None and stopping.stops(step)

        history = adam(trained, minimised, options.lr, steps, options.l2, on_step, extra)
    if stopping is None:
        return history, None
    stopping.restore()
    return history, stopping.best_epoch


def validation_split(
    options: Options, data: TrainingData, *, divisible: bool = True
) -> tuple[IntArray, IntArray] | None:
    """Draw the rows of a training and a validation set, stratified by event.

    Rows of one cluster stay together. Return None if early stopping is off, or "auto" and not possible.
    """
    if not options.early_stopping:
        return None
    event, clusters, fraction = data.target.event, data.clusters, options.validation_fraction
    # Clusters are numbered in the order of their first rows.
    unit = pd.factorize(clusters[data.order])[0]
    had_event = np.bincount(unit, event[data.order]) > 0
    sizes = np.bincount(had_event, minlength=2)
    drawn = np.round(fraction * sizes).astype(np.intp)
    parts = draw_places(
        had_event.astype(np.intp),
        np.stack([sizes - drawn, drawn], axis=1),
        np.random.default_rng([data.seed, 2]),
    )
    validation = np.empty(len(event), dtype=np.bool_)
    validation[data.order] = parts[unit] == 1
    events = int(event[validation].sum())
    too_few = events < FEWEST_EVENTS or int(event[~validation].sum()) < FEWEST_EVENTS
    if options.early_stopping == "auto" and (too_few or not divisible):
        return None
    if too_few:
        raise ArgumentError(
            "early_stopping",
            f"early_stopping=True needs at least {FEWEST_EVENTS} events in the training set and in the validation "
            f"set, which has {events} of {int(event.sum())}: change validation_fraction={fraction!r}, or use "
            "early_stopping=False.",
        )
    return np.flatnonzero(~validation), np.flatnonzero(validation)


def _threads(network: Any, rows: int) -> AbstractContextManager[None]:
    if not isinstance(network, ModuleBatch):
        return nullcontext()
    weights = sum(p.numel() for p in network.parameters)
    return nullcontext() if rows * weights >= _WORTH_THREADS else torch_on_one_thread()


def _evaluate(results: list[Result], options: Options, values: FloatArray | None = None) -> list[Result]:
    """Set the final objective of B models of one problem; compute it unless `values` (B,) are given."""
    problem = results[0].problem
    criterion = problem.criterion
    scores, extra = np.stack([m.scores for m in results]), np.stack([m.extra for m in results])
    losses = criterion.losses(scores, extra)
    evaluation = criterion.objective(losses, criterion.mass)
    if values is None:
        values = evaluation.value
        if criterion.penalty is not None:
            values = values + criterion.penalty_weight * criterion.penalty(scores)[0]
        if options.l2 > 0:
            norms = np.array([squared_norm(result.network) for result in results])
            values = values + 0.5 * options.l2 * norms
    for b, result in enumerate(results):
        one = slice(b, b + 1)
        result.objective, result.losses = float(values[b]), losses[one]
        result.evaluation = Evaluation(evaluation.value[one], evaluation.weights[one], evaluation.eta[one])
    return results
