"""Training many settings on the same patients: those that may share a batch are trained as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from drosurv.estimators.base import SurvivalEstimator
from drosurv.estimators.fitting import train
from drosurv.estimators.training import Training


def batches(estimators: Sequence[SurvivalEstimator]) -> list[list[int]]:
    """Positions of the estimators that can be trained together, in order of first appearance.

    Those of one class belong together that differ only in what a batch may differ in (the learning rate, and
    alpha or the penalty's weight).

    Examples
    --------
    >>> from drosurv import CoxPH, DROCox
    >>> batches([DROCox(alpha=0.1), CoxPH(), DROCox(alpha=0.2), DROCox(alpha=0.1, ball="cvar")])
    [[0, 2], [1], [3]]
    """
    found: list[list[int]] = []
    # Names of parameters are read off signatures, which takes long: once for each class.
    names = {kind: kind._get_param_names() for kind in {type(estimator) for estimator in estimators}}
    fixed = [_fixed(estimator, names[type(estimator)]) for estimator in estimators]
    for k, own in enumerate(fixed):
        home = next((batch for batch in found if all(map(_same, fixed[batch[0]], own))), None)
        if home is None:
            found.append([k])
        else:
            home.append(k)
    return found


@dataclass(frozen=True, eq=False)
class Sample:
    """The arguments of a fit: training patients as the caller has them.

    Group labels are handed to those estimators whose training reads them.
    """

    X: Any
    y: Any
    sample_weight: ArrayLike | None = None
    sensitive_features: Any = None


def fit_grid(
    estimators: Sequence[SurvivalEstimator],
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    sensitive_features: Any = None,
) -> None:
    """Fit every estimator, in place, on the same patients, as many of them at once as can be.

    Each comes out as if its own ``fit`` had been called, up to rounding, in a fraction of the time.

    Examples
    --------
    >>> from drosurv import DROCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> grid = [DROCox(alpha=alpha, solver="adam", max_iter=50, random_state=0) for alpha in (0.1, 0.5, 1.0)]
    >>> fit_grid(grid, data.X, data.y)
    >>> [model.n_iter_ for model in grid]
    [50, 50, 50]
    """
    (errors,) = fit_grids([estimators], [Sample(X, y, sample_weight, sensitive_features)])
    for error in errors:
        if error is not None:
            raise error


def fit_grids(
    grids: Sequence[Sequence[SurvivalEstimator]], samples: Sequence[Sample]
) -> list[list[ValueError | None]]:
    """Fit the same settings, in place, on several training sets; on an accelerator all of them at once.

    A training that diverges does not stop the others: what comes back holds for every estimator of every list what
    went wrong in its training, None where nothing did. Samples trained together on an accelerator must have one shape.
    """
    errors: list[list[ValueError | None]] = [[None] * len(grid) for grid in grids]
    for positions in batches(grids[0]):
        together = [[grid[k] for k in positions] for grid in grids]
        trainings = []
        for (lead, *others), sample in zip(together, samples, strict=True):
            # Only estimators that compare groups get them: the others refuse labels that have no part in them.
            groups = sample.sensitive_features if lead._compares_groups is not None else None
            trainings.append(lead._training(sample.X, sample.y, sample.sample_weight, groups))
            for estimator in others:
                estimator._share_checks(lead)
        if _error(fit_together, together, trainings) is not None:
            for found, batch, training in zip(errors, together, trainings, strict=True):
                for k, estimator in zip(positions, batch, strict=True):
                    found[k] = _error(fit_together, [[estimator]], [training])
    return errors


def fit_together(batches: Sequence[Sequence[SurvivalEstimator]], trainings: Sequence[Training]) -> None:
    """Fit one batch of estimators on each training set; those of a batch differ only in ``_batched``."""
    lead = batches[0][0]
    if lead._schedule(batches[0]).solver != "adam":
        # Each has an optimum of its own, so each is trained by itself.
        for batch, training in zip(batches, trainings, strict=True):
            for estimator in batch:
                estimator._train(training)
        return
    pairs = zip(batches, trainings, strict=True)
    recipes = [batch[0]._recipe(training, batch) for batch, training in pairs]
    trained = train(recipes, trainings, lead._schedule(batches[0]))
    for batch, models in zip(batches, trained, strict=True):
        for estimator, model in zip(batch, models, strict=True):
            estimator._accept(model)


def _error(work: Callable[..., None], *arguments: Any) -> ValueError | None:
    try:
        work(*arguments)
    except ValueError as error:
        return error
    return None


def _fixed(estimator: SurvivalEstimator, names: Sequence[str]) -> list[Any]:
    """What all of a batch must share: the class and its parameters."""
    return [type(estimator), *(getattr(estimator, name) for name in names if name not in estimator._batched)]


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters are surely equal; what cannot be compared counts as different."""
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except (TypeError, ValueError):
        return False
