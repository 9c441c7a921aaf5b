"""The full likelihood with a baseline hazard for each stratum."""

from __future__ import annotations

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_parts import SummedParts
from drosurv.target import FloatArray, IntArray, Target


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
                    f"{Argument('strata')} holds one in which every observed time is 0: nobody was followed there, so "
                    "it has no hazard. Leave its patients out, or join it with another."
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
