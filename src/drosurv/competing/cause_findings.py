"""What the table of a robust model of causes needs: plain Cox beside it, and refits of all causes together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drosurv.coefficients.bootstrap import bootstrap_coefficients
from drosurv.coefficients.findings import Findings
from drosurv.target import CompetingTarget, FloatArray


def beside_plain(
    X: FloatArray, target: CompetingTarget, weight: FloatArray, plain_coef: FloatArray, worst_case: FloatArray
) -> list[Findings]:
    """Findings of each cause, without standard errors.

    Parameters
    ----------
    X, target, weight
        The n training patients.
    plain_coef : (causes, d) float64
        Of plain Cox, cause by cause.
    worst_case : (n,) float64
        Weights of the patients in the worst case, summing to one.
    """
    share = weight / weight.sum()
    mean = share @ X
    deviation, worst = np.sqrt(share @ (X - mean) ** 2), worst_case @ X
    return [
        Findings(
            float(weight.sum()),
            float(weight @ (target.cause == k + 1)),
            {},
            plain_coef=coef,
            mean=mean,
            deviation=deviation,
            worst_mean=worst,
        )
        for k, coef in enumerate(plain_coef)
    ]


def bootstrap_of_causes(
    fit: Callable[[FloatArray, CompetingTarget, FloatArray], FloatArray],
    X: FloatArray,
    target: CompetingTarget,
    weight: FloatArray,
    n_boot: int,
    random_state: int,
    threads: int | None,
) -> tuple[list[FloatArray], int]:
    """Covariance (d, d) of each cause's coefficients over refits to patients drawn anew, and how many had a solution.

    `fit` takes features, target and weights to coefficients (causes, d).
    """

    def refit(counts: FloatArray) -> FloatArray | None:
        rows = np.flatnonzero(counts)
        entry = None if target.entry is None else target.entry[rows]
        drawn = CompetingTarget(target.cause[rows], target.time[rows], entry)
        # A cause that did not happen has no coefficients.
        if len(np.unique(drawn.cause[drawn.cause > 0])) < target.n_causes:
            return None
        return fit(X[rows], drawn, weight[rows] * counts[rows]).ravel()

    draws = bootstrap_coefficients(
        refit, np.arange(len(X)), n_boot=n_boot, random_state=random_state, threads=threads
    )
    of_each = np.split(draws, target.n_causes, axis=1)
    return [np.atleast_2d(np.cov(own, rowvar=False)) for own in of_each], len(draws)
