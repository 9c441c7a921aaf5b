"""Fitting: batches of estimators on their training data, by the solver they ask for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from drosurv.estimators.device import resolve_device, train_on_device
from drosurv.estimators.progress import maybe_bar
from drosurv.estimators.training import Training
from drosurv.networks import Linear, ModuleBatch, module_scores, seeded
from drosurv.objectives import Evaluation
from drosurv.solvers import Composite, LinearProblem, MiniBatches, adam, compiled_adam, compiles, minimise
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from drosurv.estimators.base import CoxEstimator

STATUS = {
    "max_iter": "it ran out of iterations; raise max_iter or scale the features",
    "stalled": "no further progress was possible in floating point; scale the features or raise tol",
    "separated": (
        "the scores grew without bound, because some combination of features separates early from late events; "
        "set l2 > 0"
    ),
}


def fit_batch(batch: Sequence[CoxEstimator], training: Training) -> None:
    """Fit estimators that differ only in what a batch may differ in, all on the same patients.

    Linear models with a convex objective are solved one by one; everything else is one batch of Adam.
    """
    fit_batches([batch], [training])


def fit_batches(batches: Sequence[Sequence[CoxEstimator]], trainings: Sequence[Training]) -> None:
    """Fit one batch of estimators on each training set; on an accelerator all of them at once."""
    lead = batches[0][0]
    device = "cpu" if lead._uses_convex else resolve_device(lead.device, lead._worth_moving)
    if device == "cpu":
        for batch, training in zip(batches, trainings, strict=True):
            if lead._uses_convex:
                for estimator in batch:
                    _fit_convex(estimator, training)
            else:
                _fit_adam(batch, training)
        return
    results = train_on_device(batches, trainings, device)
    for batch, training, result in zip(batches, trainings, results, strict=True):
        _accept(batch, training, _composite(batch, training, penalised=False), *result)


def _composite(batch: Sequence[CoxEstimator], training: Training, penalised: bool = True) -> Composite:
    lead = batch[0]
    loss = lead._loss(training)
    penalty, weight = lead._penalty(batch, training) if penalised else (None, None)
    return Composite(
        loss,
        lead._objective(batch, training),
        lead._mass(training),
        lead._blocks(loss, training),
        penalty,
        weight,
    )


def _fit_convex(estimator: CoxEstimator, training: Training) -> None:
    composite = _composite([estimator], training)
    problem = LinearProblem(training.X, composite, estimator.l2)
    tol = estimator._tol if estimator.tol is None else estimator.tol
    solution = minimise(problem, tol=tol, max_iter=estimator.max_iter)
    estimator.coef_ = solution.x
    estimator.n_iter_, estimator.converged_ = solution.n_iter, solution.status == "converged"
    estimator.status_, estimator.gap_ = solution.status, solution.gap
    estimator.history_ = solution.history
    if not estimator.converged_:
        warnings.warn(
            f"{type(estimator).__name__} stopped before the optimum (status {solution.status!r}, relative gap "
            f"{solution.gap:.1e}): {STATUS[solution.status]}.",
            ConvergenceWarning,
            stacklevel=5,
        )
    _close([estimator], training, composite, (training.X @ solution.x)[None, :])


def _fit_adam(batch: Sequence[CoxEstimator], training: Training) -> None:
    lead = batch[0]
    d, seed = training.X.shape[1], training.seed
    modules = [lead._module(d, seed) for _ in batch]
    lr = np.array([estimator.lr for estimator in batch], dtype=np.float64)
    network: Any
    if lead._is_linear:
        starts = [module.weight.detach().numpy().reshape(-1).astype(np.float64) for module in modules]
        network = Linear(training.X, np.stack(starts))
    else:
        network = ModuleBatch(modules, training.X)
    composite, steps = _composite(batch, training), lead.max_iter
    trainee: Any = network
    criterion: Any = composite
    size = getattr(lead, "batch_size", None)
    if size is not None and size < len(training.X):
        trainee = criterion = MiniBatches(network, composite.take, len(training.X), size, seed)
        steps *= trainee.n_batches
    if compiles(trainee, criterion):
        history = compiled_adam(trainee, criterion, lr, steps, lead.l2)
    else:
        with maybe_bar(lead, steps) as on_step, seeded(seed):
            history = adam(trainee, criterion, lr, steps, lead.l2, on_step)
    trained = list(network.parameters[0]) if lead._is_linear else network.trained()
    _accept(batch, training, composite, trained, history)


def _accept(
    batch: Sequence[CoxEstimator],
    training: Training,
    composite: Composite,
    trained: Sequence[Any],
    history: FloatArray,
    values: FloatArray | None = None,
) -> None:
    """Give estimators trained by Adam their coefficients (d,) or modules, and what follows from them."""
    scores = np.empty((len(batch), len(training.X)))
    for b, (estimator, found) in enumerate(zip(batch, trained, strict=True)):
        if estimator._is_linear:
            estimator.coef_ = np.array(found, dtype=np.float64)
            scores[b] = training.X @ estimator.coef_
        else:
            estimator.network_ = found
            scores[b] = module_scores(found, training.X)
        if not np.isfinite(scores[b]).all():
            raise ValueError(
                f"training diverged to infinite scores; lower lr (now {estimator.lr}) or standardise the features."
            )
        estimator.n_iter_, estimator.converged_ = estimator.max_iter, True
        estimator.status_, estimator.gap_ = "steps_done", np.nan
        estimator.history_ = history[b]
    _close(batch, training, composite, scores, values)


def _close(
    batch: Sequence[CoxEstimator],
    training: Training,
    composite: Composite,
    scores: FloatArray,
    values: FloatArray | None = None,
) -> None:
    """Set the final objective, unless its values (B,) are known, and everything else fitted estimators carry."""
    at = composite.objective(composite.losses(scores), composite.mass)
    weights = composite.patient_weights(at)
    if values is None:
        values = at.value
        if composite.penalty is not None and composite.penalty_weight is not None:
            values = values + composite.penalty_weight * composite.penalty(scores)[0]
        values = values + [0.5 * e.l2 * squared_norm(e) if e.l2 > 0 else 0.0 for e in batch]
    for b, estimator in enumerate(batch):
        estimator.objective_ = float(values[b])
        own = Evaluation(at.value[b : b + 1], at.weights[b : b + 1], at.eta[b : b + 1])
        estimator._finish(training, scores[b], own, weights[b])


def squared_norm(estimator: CoxEstimator) -> float:
    """Sum of squares of the parameters that an estimator trains."""
    if estimator._is_linear:
        return float(estimator.coef_ @ estimator.coef_)
    return float(sum((p.detach() ** 2).sum() for p in estimator.network_.parameters() if p.requires_grad))
