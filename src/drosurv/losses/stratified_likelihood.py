"""The full likelihood with a baseline hazard for each stratum."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.loss import NOTHING, ConvexLoss
from drosurv.target import FloatArray, IntArray, Target


class OfStratum(NamedTuple):
    """The loss of one stratum, its number, its patients (m,) and where its log hazards stand among all."""

    loss: PiecewiseExponential
    stratum: int
    rows: IntArray
    psi: slice


class StratifiedLikelihood(ConvexLoss):
    """Full-likelihood loss of each patient, where every stratum s has log baseline hazards psi_s of its own.

        l_i = -d_i (f_i + psi_{s(i),k(i)}) + exp(f_i) sum_m E_im exp(psi_{s(i),m})

    It is :class:`~drosurv.losses.PiecewiseExponential` stratum by stratum: strata share the scores alone. Intervals are
    cut at quantiles of the stratum's own event times. So each of them holds an event, also where strata live on
    different scales of time or have few events; under cuts common to all strata, a stratum without an event in some
    interval would have no finite log hazard there. A stratum without any event has no hazard: its patients lose nothing
    under any model, and say nothing about the scores.

    Parameters
    ----------
    target : Target
        Events, times, entry times and strata of n patients.
    n_intervals, sample_weight, offset
        As in :class:`~drosurv.losses.on_intervals.OnIntervals`; the quantile intervals are of each stratum.

    Attributes
    ----------
    parts : list of OfStratum
        Strata with an event.
    start : (K,) float64
        Log baseline hazards of the null model, one stratum after the other.

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
        losses = {}
        counted = target.event if sample_weight is None else target.event & (sample_weight > 0)
        for stratum in np.unique(target.stratum[counted]):
            rows = np.flatnonzero(target.stratum == stratum)
            if not target.time[rows].any():
                raise ArgumentError(
                    Argument("strata"),
                    " holds one in which every observed time is 0: nobody was followed there, so it has no hazard. "
                    "Leave its patients out, or join it with another.",
                )
            weight, known = (None if part is None else part[rows] for part in (sample_weight, offset))
            losses[int(stratum)] = PiecewiseExponential(target.take(rows), n_intervals, weight, known)
        self._build(target.stratum, losses)

    def _build(self, stratum: IntArray, losses: dict[int, PiecewiseExponential]) -> None:
        self.n, self.rows = len(stratum), np.arange(len(stratum))
        # Stratum of each patient, and the place among its members.
        self._stratum, self._place = stratum, np.zeros(len(stratum), np.intp)
        self.parts: list[OfStratum] = []
        end = 0
        for number, loss in losses.items():
            begin, end = end, end + loss.n_extra
            rows = np.flatnonzero(stratum == number)
            self._place[rows] = np.arange(len(rows))
            self.parts.append(OfStratum(loss, number, rows, slice(begin, end)))
        self.start = np.concatenate([NOTHING, *(part.loss.start for part in self.parts)])
        self.shift = np.ones(end)

    @property
    def compared(self) -> IntArray:
        """Stratum (n,) of each patient; -1 where it has no hazard."""
        return np.where(np.isin(self._stratum, [part.stratum for part in self.parts]), self._stratum, -1)

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return sum(part.loss.target.n_events for part in self.parts) / self.n

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (B, n) of the log risks ``scores`` (B, n) and log baseline hazards ``extra`` (B, K)."""
        losses = np.zeros_like(scores)
        for part in self.parts:
            losses[:, part.rows] = part.loss(scores[:, part.rows], extra[:, part.psi])
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of the losses weighted by (B, n): by score (B, n) and by log hazard (B, K)."""
        by_score, by_psi = np.zeros_like(weights), np.empty((len(weights), self.n_extra))
        for part in self.parts:
            by_score[:, part.rows], by_psi[:, part.psi] = part.loss.pullback(weights[:, part.rows])
        return by_score, by_psi

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Second derivatives (B, n) of the losses weighted by (B, n), each in its own score."""
        bends = np.zeros_like(weights)
        for part in self.parts:
            bends[:, part.rows] = part.loss.curvature(weights[:, part.rows])
        return bends

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients (len(which), d + K) of the chosen losses in (theta, psi) for scores X theta."""
        d = X.shape[1]
        slopes = np.zeros((len(which), d + self.n_extra))
        for part in self.parts:
            chosen = np.flatnonzero(self._stratum[which] == part.stratum)
            slopes[np.ix_(chosen, self._parameters(part, d))] = part.loss.jacobian(
                X[part.rows], self._place[which[chosen]]
            )
        return slopes

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives (d + K, d + K) in (theta, psi): log hazards of different strata do not meet."""
        d = X.shape[1]
        hessian = np.zeros((d + self.n_extra, d + self.n_extra))
        for part in self.parts:
            place = self._parameters(part, d)
            hessian[np.ix_(place, place)] += part.loss.hessian(weights[:, part.rows], X[part.rows])
        return hessian

    def _parameters(self, part: OfStratum, d: int) -> IntArray:
        """Places of the d coefficients and of a stratum's log hazards among all parameters."""
        return np.concatenate([np.arange(d), d + np.arange(part.psi.start, part.psi.stop)])

    def take(self, rows: IntArray) -> Self:
        """The same loss, intervals and null model among fewer patients."""
        other = type(self).__new__(type(self))
        stratum = self._stratum[rows]
        members = {part.stratum: self._place[rows[stratum == part.stratum]] for part in self.parts}
        other._build(stratum, {part.stratum: part.loss.take(members[part.stratum]) for part in self.parts})
        return other
