"""Fit several settings of an estimator to the same patients, in batches that are trained together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from drosurv import (
    AcceleratedFailureTime,
    CoxPH,
    DeepHit,
    DiscreteTimeHazard,
    DROCox,
    DROCoxSplit,
    RegularizedCox,
)
from drosurv.estimators.base import SolvedModel, training_follow_up
from drosurv.estimators.network_settings import MLP
from drosurv.solvers import TrainingData, solve, solve_together

#: Parameters in which models of a batch may differ. Other classes have them as the attribute ``batched``, or none.
BATCHED: dict[type, tuple[str, ...]] = {
    AcceleratedFailureTime: ("lr", "alpha"),
    CoxPH: ("lr",),
    DeepHit: ("lr",),
    DiscreteTimeHazard: ("lr", "alpha"),
    DROCox: ("lr", "alpha"),
    DROCoxSplit: ("lr", "alpha"),
    RegularizedCox: ("lr", "weight"),
}


def batches(estimators: Sequence[SolvedModel]) -> list[list[int]]:
    """Return the positions of the estimators that can be trained together, in order of first appearance.

    They are of the same class and differ only in the learning rate, and in alpha or the weight of the penalty.

    Examples
    --------
    >>> from drosurv import CoxPH, DROCox
    >>> batches([DROCox(alpha=0.1), CoxPH(), DROCox(alpha=0.2), DROCox(alpha=0.1, ball="cvar")])
    [[0, 2], [1], [3]]
    """
    found: list[list[int]] = []
    # Reading parameter names from signatures is slow: do it once for each class.
    names = {kind: kind._get_param_names() for kind in {type(estimator) for estimator in estimators}}
    fixed = [_fixed(estimator, names[type(estimator)]) for estimator in estimators]
    for k, values in enumerate(fixed):
        match = next((batch for batch in found if all(map(_same, fixed[batch[0]], values))), None)
        if match is None:
            found.append([k])
        else:
            match.append(k)
    return found


def fit_grid(
    estimators: Sequence[SolvedModel],
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    sensitive_features: Any = None,
) -> None:
    """Fit several estimators, in place, to the same patients, in as few batches as possible.

    The results equal those of ``fit`` up to rounding.

    Examples
    --------
    >>> from drosurv import DROCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> grid = [DROCox(alpha=alpha, solver="adam", max_iter=50, random_state=0) for alpha in (0.1, 0.5, 1.0)]
    >>> fit_grid(grid, data.X, data.y)
    >>> [model.n_iter_ for model in grid]
    [50, 50, 50]
    """
    given = {"X": X, "y": y, "sample_weight": sample_weight, "sensitive_features": sensitive_features}
    (errors,) = fit_grids([estimators], [given])
    for error in errors:
        if error is not None:
            raise error


def fit_grids(
    grids: Sequence[Sequence[SolvedModel]], training_sets: Sequence[Mapping[str, Any]]
) -> list[list[ValueError | None]]:
    """Fit the same settings, in place, to several training sets; on an accelerator all of them in one batch.

    A training set is a dict of the arguments ``X``, ``y``, ``sample_weight`` and ``sensitive_features`` of fit; groups
    are passed only to estimators that compare them. On an accelerator all training sets must have the same shape.
    Return for every estimator of every list the error of its training, or None.
    """
    errors: list[list[ValueError | None]] = [[None] * len(grid) for grid in grids]
    for positions in batches(grids[0]):
        together = [[grid[k] for k in positions] for grid in grids]
        data = []
        for (lead, *others), given in zip(together, training_sets, strict=True):
            groups = given.get("sensitive_features") if lead._compares_groups is not None else None
            data.append(lead._training_data(given["X"], given["y"], given.get("sample_weight"), groups))
            for estimator in others:
                _share_checks(estimator, lead)
        if _error(fit_together, together, data) is not None:
            for found, batch, training in zip(errors, together, data, strict=True):
                for k, estimator in zip(positions, batch, strict=True):
                    found[k] = _error(fit_together, [[estimator]], [training])
    return errors


def fit_together(batches: Sequence[Sequence[SolvedModel]], data: Sequence[TrainingData]) -> None:
    """Fit one batch of estimators to each training set; those of a batch differ only in `BATCHED` parameters."""
    options = batches[0][0]._options(batches[0])
    if options.solver != "adam":
        # Newton's method and trees train one model at a time.
        for batch, training in zip(batches, data, strict=True):
            for estimator in batch:
                if not estimator._fit_on_accelerator(training):
                    problem = estimator._problem(training.in_double(), [estimator])
                    result = solve(problem, estimator._options([estimator]))
                    estimator._accept(estimator._recalibrated(result))
        return
    problems = [batch[0]._problem(training, batch) for batch, training in zip(batches, data, strict=True)]
    solved = solve_together(problems, options)
    for batch, results, training in zip(batches, solved, data, strict=True):
        # The same for all models of a training set.
        follow_up = training_follow_up(training)
        for estimator, result in zip(batch, results, strict=True):
            estimator._accept(estimator._recalibrated(result), follow_up)


def _share_checks(estimator: SolvedModel, other: SolvedModel) -> None:
    """Prepare to train on data that another estimator of the same class has checked."""
    estimator._forget_last_fit()
    estimator._check_parameters()
    for name in ("n_features_in_", "feature_names_in_", "encoder_"):
        estimator.__dict__.pop(name, None)
        if name in other.__dict__:
            setattr(estimator, name, getattr(other, name))


def _error(work: Callable[..., None], *arguments: Any) -> ValueError | None:
    try:
        work(*arguments)
    except ValueError as error:
        return error
    return None


def _fixed(estimator: SolvedModel, names: Sequence[str]) -> list[Any]:
    """Return the class and the parameters that all members of a batch share."""
    batched = getattr(estimator, "batched", BATCHED.get(type(estimator), ()))
    shared = [getattr(estimator, name) for name in names if name not in batched]
    if "lr" in batched:
        shared = [replace(value, lr=0.0) if isinstance(value, MLP) else value for value in shared]
    return [type(estimator), *shared]


def _same(one: Any, other: Any) -> bool:
    """Return whether two parameters are equal; values that cannot be compared count as different."""
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except (TypeError, ValueError):
        return False
