"""Patients of several rows: one loss per patient, the sum over the rows."""

from __future__ import annotations

from typing import Self

import numpy as np

from drosurv.losses.loss import NOTHING, ConvexLoss
from drosurv.losses.tie_blocks import block_sums
from drosurv.target import FloatArray, IntArray


class RowsOfPatients(ConvexLoss):
    """Sum of a loss, which each of n rows has, over the rows of each of P patients.

    `patient` (n,) is the number of each row's patient; `rows` (P,) is one row of each, by these numbers, where the
    patient's loss stands.
    """

    def __init__(self, loss: ConvexLoss, patient: IntArray, rows: IntArray) -> None:
        self.loss, self.rows, self.n = loss, rows, loss.n
        self._patient: IntArray = np.unique(patient, return_inverse=True)[1]
        self.start, self.shift, self.extra_ridge = loss.start, loss.shift, loss.extra_ridge
        self.n_outputs, self.signed = loss.n_outputs, loss.signed

    @property
    def compared(self) -> IntArray | None:
        """Set (n,) of rows within which each is compared."""
        return self.loss.compared

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return self.loss.event_share * self.n / len(self.rows)

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Scores of the rows to the losses (B, P) of the patients."""
        return block_sums(self.loss(scores, extra), self._patient, len(self.rows))

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of the losses weighted by (B, P), by score and by extra."""
        return self.loss.pullback(weights[:, self._patient])

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients (len(which), ...) of the chosen patients' losses."""
        of_rows = self.loss.jacobian(X, np.arange(self.n))
        return block_sums(of_rows.T, self._patient, len(self.rows)).T[which]

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives of the losses weighted by (1, P)."""
        return self.loss.hessian(weights[:, self._patient], X)

    def take(self, rows: IntArray) -> Self:
        """The same loss of all rows of fewer patients."""
        place = np.full(self.n, -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        return type(self)(
            self.loss.take(rows), self._patient[rows], place[self.rows[np.isin(self.rows, rows)]]
        )
