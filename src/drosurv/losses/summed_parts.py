"""Full likelihoods that are sums over parts: strata of the patients, or causes of an event."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.loss import NOTHING, ConvexLoss
from drosurv.target import CompetingTarget, FloatArray, IntArray, Target


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


class StratifiedLikelihood(SummedParts):
    """Full-likelihood loss of each patient, where every stratum s has log baseline hazards psi_s of its own.

        l_i = -d_i (f_i + psi_{s(i),k(i)}) + exp(f_i) sum_m E_im exp(psi_{s(i),m})

    It is :class:`~drosurv.losses.PiecewiseExponential` stratum by stratum: strata share the scores alone. Intervals are
    cut at quantiles of the stratum's own event times. So each of them holds an event, also where strata live on
    different scales of time or have few events; under cuts common to all strata, a stratum without an event in some
    interval would have no finite log hazard there. A stratum without any event has no hazard: its patients lose nothing
    under any model, and say nothing about the scores: ``parts`` are the strata with an event, ``strata`` their numbers.
    Parameters are as in :class:`~drosurv.losses.on_intervals.OnIntervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.losses import StratifiedLikelihood
    >>> from drosurv.target import Target
    >>> event, time, stratum = np.array([True, True]), np.array([2.0, 4.0]), np.array([0, 1])
    >>> loss = StratifiedLikelihood(Target(event, time, stratum=stratum))
    >>> np.exp(loss.start).tolist()
    [0.5, 0.25]
    """

    def __init__(
        self,
        target: Target,
        n_intervals: int = 20,
        sample_weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        assert target.stratum is not None, "without strata, PiecewiseExponential is the loss"
        losses, members = [], []
        counted = target.event if sample_weight is None else target.event & (sample_weight > 0)
        self.strata = np.unique(target.stratum[counted]).tolist()
        for stratum in self.strata:
            rows = np.flatnonzero(target.stratum == stratum)
            if not target.time[rows].any():
                raise ArgumentError(
                    "strata",
                    "strata holds one in which every observed time is 0: nobody was followed there, so "
                    "it has no hazard. Leave its patients out, or join it with another.",
                )
            weight, known = (None if part is None else part[rows] for part in (sample_weight, offset))
            losses.append(PiecewiseExponential(target.take(rows), n_intervals, weight, known))
            members.append(rows)
        self._build(len(target), losses, members)
        self.shift = np.ones(self.n_extra)

    @property
    def compared(self) -> IntArray:
        """Stratum (n,) of each patient; -1 where it has no hazard."""
        sets = np.full(self.n, -1)
        for stratum, part in zip(self.strata, self.parts, strict=True):
            sets[part.rows] = stratum
        return sets

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Second derivatives (B, n) of the losses weighted by (B, n), each in its own score."""
        bends = np.zeros_like(weights)
        for part in self.parts:
            bends[:, part.rows] = part.loss.curvature(weights[:, part.rows])
        return bends


class CompetingRisks(SummedParts):
    """Sum over the causes k of the full-likelihood losses, with every other cause counted as censoring.

        l_i = sum_k [ -1{D_i = k} (f_ki + psi_k,m(i)) + exp(f_ki) sum_m E_im exp(psi_km) ]

    Each cause has its own score of a patient, and its own baseline hazard (one for each stratum) on its own quantile
    intervals. Scores are (B, n, causes); the extra parameters are the log baseline hazards of one cause after the
    other; coefficients of linear scores likewise. Parameters are as in :class:`~drosurv.losses.PiecewiseExponential`;
    an offset is added to the scores of every cause.
    """

    def __init__(
        self,
        target: CompetingTarget,
        n_intervals: int = 20,
        sample_weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        causes = range(1, target.n_causes + 1)
        likelihood = PiecewiseExponential if target.stratum is None else StratifiedLikelihood
        rest = n_intervals, sample_weight, offset
        self.n_outputs = target.n_causes
        losses = [likelihood(target.of_cause(k), *rest) for k in causes]
        self._build(len(target), losses, [np.arange(len(target))] * target.n_causes)
        self.shift = np.zeros((self.n_outputs, self.n_extra))
        for part in self.parts:
            self.shift[part.output, part.psi] = 1.0

    @property
    def compared(self) -> IntArray | None:
        """Stratum (n,) of each patient, -1 where no cause has a hazard; None without strata."""
        sets = [own for part in self.parts if (own := part.loss.compared) is not None]
        return np.maximum.reduce(sets) if sets else None
