"""Full likelihoods summed over strata, over competing causes, or over several rows of a patient."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np

from drosurv.errors import ArgumentError, arg
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.loss import NOTHING, ConvexLoss, block_sums
from drosurv.patients.target import CompetingTarget, FloatArray, IntArray, Target


class LossPart(NamedTuple):
    """A loss of the patients `rows` (m,), the number of its score, and the slice of its extra parameters `psi`."""

    loss: ConvexLoss
    rows: IntArray
    output: int
    psi: slice

    def inside(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """Return the positions in `which` of the patients in this part, and their row numbers in this part."""
        row = np.full(max(self.rows.max(initial=-1), which.max(initial=-1)) + 1, -1)
        row[self.rows] = np.arange(len(self.rows))
        chosen = np.flatnonzero(row[which] >= 0)
        return chosen, row[which[chosen]]


class SummedParts(ConvexLoss):
    """One loss per patient: the sum over the parts that contain the patient. Each part has its own extra parameters."""

    parts: Sequence[LossPart]

    def _build(self, n: int, losses: Sequence[ConvexLoss], rows: Sequence[IntArray]) -> None:
        """Set up the parts: loss number k with its patients, and score number k or the only score."""
        self.n, self.rows = n, np.arange(n)
        ends = np.cumsum([loss.n_extra for loss in losses], dtype=np.intp)
        self.parts = [
            LossPart(loss, members, k % self.n_outputs, slice(end - loss.n_extra, end))
            for k, (loss, members, end) in enumerate(zip(losses, rows, ends, strict=True))
        ]
        self.start = np.concatenate([NOTHING, *(loss.start for loss in losses)])

    @property
    def event_share(self) -> float:
        """Share of the patients who had an event of any part."""
        return sum(part.loss.event_share * len(part.rows) for part in self.parts) / self.n

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, n) at the scores and the extra parameters (B, K), ordered by part."""
        given, losses = scores[..., None] if self.n_outputs == 1 else scores, np.zeros(scores.shape[:2])
        for part in self.parts:
            losses[:, part.rows] += part.loss(given[:, part.rows, part.output], extra[:, part.psi])
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the losses weighted by (B, n): in the scores, and in extra (B, K)."""
        by_score = np.zeros((*weights.shape, self.n_outputs))
        by_extra = np.empty((len(weights), self.n_extra))
        for part in self.parts:
            gradients = part.loss.pullback(weights[:, part.rows])
            by_score[:, part.rows, part.output], by_extra[:, part.psi] = gradients
        return by_score[..., 0] if self.n_outputs == 1 else by_score, by_extra

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients of the chosen losses in the coefficients, ordered by score, and in the extra parameters."""
        slopes = np.zeros((len(which), self.n_outputs * X.shape[1] + self.n_extra))
        for part in self.parts:
            chosen, rows = part.inside(which)
            gradients = part.loss.jacobian(X[part.rows], rows)
            slopes[np.ix_(chosen, self._parameters(part, X.shape[1]))] = gradients
        return slopes

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian in the parameters of `jacobian`; zero between extra parameters of different parts."""
        size = self.n_outputs * X.shape[1] + self.n_extra
        hessian = np.zeros((size, size))
        for part in self.parts:
            index = self._parameters(part, X.shape[1])
            hessian[np.ix_(index, index)] += part.loss.hessian(weights[:, part.rows], X[part.rows])
        return hessian

    def take(self, rows: IntArray) -> Self:
        """Return the same loss of some of the patients, with the same extra parameters and null model."""
        other, inside = copy(self), [part.inside(rows) for part in self.parts]
        losses = [part.loss.take(chosen) for part, (_, chosen) in zip(self.parts, inside, strict=True)]
        other._build(len(rows), losses, [chosen for chosen, _ in inside])
        return other

    def _parameters(self, part: LossPart, d: int) -> IntArray:
        """Return the indices of a part's d coefficients and extra parameters among all."""
        first = self.n_outputs * d
        theta, psi = np.arange(part.output * d, (part.output + 1) * d), np.arange(self.n_extra)[part.psi]
        return np.concatenate([theta, first + psi])


class StratifiedLikelihood(SummedParts):
    """Full-likelihood loss of each patient with separate log baseline hazards psi_s in every stratum s.

        l_i = -d_i (f_i + psi_{s(i),k(i)}) + exp(f_i) sum_m E_im exp(psi_{s(i),m})

    It is ``PiecewiseExponential`` in each stratum; strata have only the scores in common.
    Intervals are cut at quantiles of the stratum's event times, so that each contains an event. With the same intervals
    in all strata, the log hazard of an interval without an event in some stratum would not be finite. A stratum without
    any event has no hazard, and its patients have loss zero under any model: ``parts`` are the strata with an event,
    ``strata`` their numbers. Parameters are as in ``PiecewiseExponential``.
    """

    def __init__(
        self,
        target: Target,
        n_intervals: int = 20,
        sample_weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        assert target.stratum is not None, "without strata, use PiecewiseExponential"
        losses, members = [], []
        with_weight = target.event if sample_weight is None else target.event & (sample_weight > 0)
        self.strata = np.unique(target.stratum[with_weight]).tolist()
        for stratum in self.strata:
            rows = np.flatnonzero(target.stratum == stratum)
            if not target.time[rows].any():
                raise ArgumentError(
                    "strata",
                    f"{arg('strata')} contains a stratum in which every observed time is 0, so that no hazard can be "
                    "estimated there. Leave its patients out, or merge it with another stratum.",
                )
            weight, known = (None if part is None else part[rows] for part in (sample_weight, offset))
            losses.append(PiecewiseExponential(target.take(rows), n_intervals, weight, known))
            members.append(rows)
        self._build(len(target), losses, members)
        self.shift = np.ones(self.n_extra)

    @property
    def compared(self) -> IntArray:
        """Stratum (n,) of each patient; -1 in a stratum without events."""
        sets = np.full(self.n, -1)
        for stratum, part in zip(self.strata, self.parts, strict=True):
            sets[part.rows] = stratum
        return sets

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) of the losses weighted by (B, n), each in one patient's score."""
        second = np.zeros_like(weights)
        for part in self.parts:
            second[:, part.rows] = part.loss.curvature(weights[:, part.rows])
        return second


class CompetingRisks(SummedParts):
    """Sum over the causes k of full-likelihood losses in which events of other causes count as censored.

        l_i = sum_k [ -1{D_i = k} (f_ki + psi_k,m(i)) + exp(f_ki) sum_m E_im exp(psi_km) ]

    Each cause has one score per patient and one baseline hazard (per stratum) on quantile intervals of its event times.
    Scores are (B, n, causes). The extra parameters are the log baseline hazards, ordered by cause, as are the
    coefficients of linear scores. Parameters are as in ``PiecewiseExponential``; an offset is
    added to the scores of every cause.
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
        """Stratum (n,) of each patient, -1 in a stratum without events of any cause; None without strata."""
        sets = [found for part in self.parts if (found := part.loss.compared) is not None]
        return np.maximum.reduce(sets) if sets else None


class RowsOfPatients(ConvexLoss):
    """Sum the losses of the rows of each patient, for P patients with one or more rows each.

    `patient` (n,) is the patient number of each row. `rows` (P,) is the row at which each patient's loss is reported,
    ordered by patient number.
    """

    def __init__(self, loss: ConvexLoss, patient: IntArray, rows: IntArray) -> None:
        self.loss, self.rows, self.n = loss, rows, loss.n
        self._patient: IntArray = np.unique(patient, return_inverse=True)[1]
        self.start, self.shift, self.extra_ridge = loss.start, loss.shift, loss.extra_ridge
        self.n_outputs, self.signed = loss.n_outputs, loss.signed

    @property
    def compared(self) -> IntArray | None:
        """The number (n,) of the set, such as a stratum, to which each row belongs: see :attr:`Loss.compared`."""
        return self.loss.compared

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return self.loss.event_share * self.n / len(self.rows)

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, P) of the patients at the scores (B, n) of the rows."""
        return block_sums(self.loss(scores, extra), self._patient, len(self.rows))

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the losses weighted by (B, P): in the scores, and in extra."""
        return self.loss.pullback(weights[:, self._patient])

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), ...) of the chosen patients' losses."""
        of_rows = self.loss.jacobian(X, np.arange(self.n))
        return block_sums(of_rows.T, self._patient, len(self.rows)).T[which]

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian of the losses weighted by (1, P)."""
        return self.loss.hessian(weights[:, self._patient], X)

    def take(self, rows: IntArray) -> Self:
        """Return the same loss of all rows of some of the patients."""
        number = np.full(self.n, -1, dtype=np.intp)
        number[rows] = np.arange(len(rows))
        return type(self)(
            self.loss.take(rows), self._patient[rows], number[self.rows[np.isin(self.rows, rows)]]
        )
