"""Losses that are sums over parts: strata of the patients, or causes of an event."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np

from drosurv.losses.loss import NOTHING, ConvexLoss
from drosurv.target import FloatArray, IntArray


class LossPart(NamedTuple):
    """A loss of some patients (m,), which of the scores it takes, and where its extra parameters stand among all."""

    loss: ConvexLoss
    rows: IntArray
    output: int
    psi: slice

    def inside(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """Which of the patients are in this part, and their places there."""
        place = np.full(max(self.rows.max(initial=-1), which.max(initial=-1)) + 1, -1)
        place[self.rows] = np.arange(len(self.rows))
        chosen = np.flatnonzero(place[which] >= 0)
        return chosen, place[which[chosen]]


class SummedParts(ConvexLoss):
    """One loss per patient, the sum over the parts that hold the patient; each part has extra parameters of its own."""

    parts: Sequence[LossPart]

    def _build(self, n: int, losses: Sequence[ConvexLoss], rows: Sequence[IntArray]) -> None:
        """Of n patients; each loss has some of them, and one of the scores, or all have the only one."""
        self.n, self.rows = n, np.arange(n)
        ends = np.cumsum([loss.n_extra for loss in losses], dtype=np.intp)
        self.parts = [
            LossPart(loss, own, k % self.n_outputs, slice(end - loss.n_extra, end))
            for k, (loss, own, end) in enumerate(zip(losses, rows, ends, strict=True))
        ]
        self.start = np.concatenate([NOTHING, *(loss.start for loss in losses)])

    @property
    def event_share(self) -> float:
        """Share of the patients who had an event of any part."""
        return sum(part.loss.event_share * len(part.rows) for part in self.parts) / self.n

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (B, n) of the scores and of the parts' extra parameters (B, K), one after the other."""
        given, losses = self._by_output(scores), np.zeros(scores.shape[:2])
        for part in self.parts:
            losses[:, part.rows] += part.loss(given[:, part.rows, part.output], extra[:, part.psi])
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of the losses weighted by (B, n): by score and by extra (B, K)."""
        by_score = np.zeros((*weights.shape, self.n_outputs))
        by_extra = np.empty((len(weights), self.n_extra))
        for part in self.parts:
            own = part.loss.pullback(weights[:, part.rows])
            by_score[:, part.rows, part.output], by_extra[:, part.psi] = own
        return by_score[..., 0] if self.n_outputs == 1 else by_score, by_extra

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients of the chosen losses: by the coefficients of one score after the other, then by extra."""
        slopes = np.zeros((len(which), self.n_outputs * X.shape[1] + self.n_extra))
        for part in self.parts:
            chosen, places = part.inside(which)
            own = part.loss.jacobian(X[part.rows], places)
            slopes[np.ix_(chosen, self._parameters(part, X.shape[1]))] = own
        return slopes

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives in the same parameters: extra parameters of different parts do not meet."""
        size = self.n_outputs * X.shape[1] + self.n_extra
        hessian = np.zeros((size, size))
        for part in self.parts:
            place = self._parameters(part, X.shape[1])
            hessian[np.ix_(place, place)] += part.loss.hessian(weights[:, part.rows], X[part.rows])
        return hessian

    def take(self, rows: IntArray) -> Self:
        """The same loss, with the same extra parameters and null model, among fewer patients."""
        other, inside = copy(self), [part.inside(rows) for part in self.parts]
        losses = [part.loss.take(places) for part, (_, places) in zip(self.parts, inside, strict=True)]
        other._build(len(rows), losses, [chosen for chosen, _ in inside])
        return other

    def _by_output(self, scores: FloatArray) -> FloatArray:
        return scores[..., None] if self.n_outputs == 1 else scores

    def _parameters(self, part: LossPart, d: int) -> IntArray:
        """Places of a part's d coefficients and extra parameters among all."""
        first = self.n_outputs * d
        theta, psi = np.arange(part.output * d, (part.output + 1) * d), np.arange(self.n_extra)[part.psi]
        return np.concatenate([theta, first + psi])
