"""Training many settings on the same patients: those that may share a batch are trained as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from drosurv.estimators.base import CoxEstimator, fit_batch


def batches(estimators: Sequence[CoxEstimator]) -> list[list[int]]:
    """Positions of the estimators that can be trained together, in order of first appearance.

    Those of one class belong together that differ only in what a batch may differ in (the learning rate, and
    alpha or the penalty's weight).

    Parameters
    ----------
    estimators : sequence of estimators

    Returns
    -------
    list of lists of int

    Examples
    --------
    >>> from drosurv import CoxPH, DROCox
    >>> batches([DROCox(alpha=0.1), CoxPH(), DROCox(alpha=0.2), DROCox(alpha=0.1, ball="cvar")])
    [[0, 2], [1], [3]]
    """
    found: list[list[int]] = []
    for k, estimator in enumerate(estimators):
        home = next((batch for batch in found if _together(estimators[batch[0]], estimator)), None)
        if home is None:
            found.append([k])
        else:
            home.append(k)
    return found


def fit_grid(
    estimators: Sequence[CoxEstimator],
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
) -> None:
    """Fit every estimator on the same patients, as many of them at once as can be.

    Each comes out as if its own ``fit`` had been called, up to rounding, in a fraction of the time.

    Parameters
    ----------
    estimators : sequence of estimators
        Fitted in place.
    X : (n, d) array or DataFrame
        Features.
    y : structured array (n,)
        Event flag and time.
    sample_weight : (n,) array, optional
        Weights.

    Examples
    --------
    >>> from drosurv import DROCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> grid = [DROCox(alpha=alpha, solver="adam", max_iter=50, random_state=0) for alpha in (0.1, 0.5, 1.0)]
    >>> fit_grid(grid, data.X, data.y)
    >>> [model.n_iter_ for model in grid]
    [50, 50, 50]
    """
    for positions in batches(estimators):
        batch = [estimators[k] for k in positions]
        training = [estimator._check_training(X, y, sample_weight) for estimator in batch]
        fit_batch(batch, training[0])


def _together(one: CoxEstimator, other: CoxEstimator) -> bool:
    if type(one) is not type(other):
        return False
    ours, theirs = one.get_params(deep=False), other.get_params(deep=False)
    return all(_same(ours[name], theirs[name]) for name in ours if name not in one._batched)


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters are equal beyond doubt; what cannot be compared counts as different."""
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except (TypeError, ValueError):
        return False
