"""What the table of a robust model of causes needs: plain Cox beside it, and refits of all causes together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from drosurv.coefficients.bootstrap import bootstrap_coefficients
from drosurv.coefficients.findings import Findings
from drosurv.estimators.training import Training
from drosurv.target import CompetingTarget, FloatArray


def beside_plain(
    training: Training, target: CompetingTarget, plain_coef: FloatArray, worst_case: FloatArray
) -> list[Findings]:
    """Findings of each cause, without standard errors.

    Parameters
    ----------
    training, target
        The n training rows.
    plain_coef : (causes, d) float64
        Of plain Cox, cause by cause.
    worst_case : (n,) float64
        Weights of the rows in the worst case, summing to one.
    """
    X, share = training.X, training.mass
    mean = share @ X
    deviation, worst = np.sqrt(share @ (X - mean) ** 2), worst_case @ X
    return [
        Findings(
            float(training.n_patients),
            float(replace(training, target=target.of_cause(k)).n_events),
            {},
            plain_coef=coef,
            mean=mean,
            deviation=deviation,
            worst_mean=worst,
        )
        for k, coef in enumerate(plain_coef, start=1)
    ]


def bootstrap_of_causes(
    fit: Callable[[Training, CompetingTarget], FloatArray],
    training: Training,
    target: CompetingTarget,
    **how: Any,
) -> tuple[list[FloatArray], int]:
    """Covariance (d, d) of each cause's coefficients over refits to patients drawn anew, and how many had a solution.

    `fit` takes training rows and their target to coefficients (causes, d). Members of a cluster are drawn together. How
    is told as to :func:`~drosurv.coefficients.bootstrap.bootstrap_coefficients`.
    """

    def refit(counts: FloatArray) -> FloatArray | None:
        drawn = target.take(np.flatnonzero(counts))
        # A cause that did not happen has no coefficients.
        if len(np.unique(drawn.cause[drawn.cause > 0])) < target.n_causes:
            return None
        return fit(training.drawn(counts), drawn).ravel()

    draws = bootstrap_coefficients(refit, training.together, **how)
    of_each = np.split(draws, target.n_causes, axis=1)
    return [np.atleast_2d(np.cov(own, rowvar=False)) for own in of_each], len(draws)
