"""The gradient behind the published rows of DRO-COX (SPLIT): the log term of the loss counts as a constant in it.

A mistake, kept to rebuild numbers. :class:`drosurv.DROCoxSplit` has the right gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from drosurv.estimators import DROCoxSplit
from drosurv.losses import Loss
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.loss import NOTHING
from drosurv.patients.target import FloatArray, IntArray
from drosurv.solvers import Problem, TrainingData


class ConstantLogTerm(Loss):
    """Split Cox losses l_i = d_i (log(...) - f_i) whose gradient takes the logarithm for a constant."""

    signed = False

    def __init__(self, loss: CoxSplit) -> None:
        self.loss, self.n, self.rows = loss, loss.n, loss.rows

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (B, E) of the patients in ``rows``, as they are."""
        return self.loss(scores)

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minus the weight for the score of an event, nothing for all others: scores of events only ever rise."""
        gradient = np.zeros((len(weights), self.n))
        gradient[:, self.rows] = -weights
        return gradient, np.zeros((len(weights), 0))

    def take(self, rows: IntArray) -> Self:
        """The same loss among fewer patients."""
        return type(self)(self.loss.take(rows))


@dataclass(eq=False, repr=False)
class PublishedSplit(DROCoxSplit):
    """DRO-COX (SPLIT) trained with the published gradient; parameters as in :class:`drosurv.DROCoxSplit`."""

    capabilities = replace(DROCoxSplit.capabilities, convex=False)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        problem = super()._problem(data, batch)
        assert isinstance(problem.loss, CoxSplit)
        return replace(problem, loss=ConstantLogTerm(problem.loss))
