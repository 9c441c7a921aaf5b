"""The discrete-time hazard model: the probability of the event in each interval, given survival so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from drosurv.curves import FittedCurves, interpolate
from drosurv.errors import check_choice, check_count
from drosurv.estimators.capabilities import Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.losses.discrete_time import LINKS, DiscreteHazard, log_survived
from drosurv.objectives.balls import lists_balls
from drosurv.patients.target import FloatArray
from drosurv.solvers import Problem, TrainingData


@lists_balls
@dataclass(eq=False, repr=False)
class DiscreteTimeHazard(NetworkEstimator):
    """Discrete-time hazard model: the hazard on the link scale is a level per interval plus the patient's score.

    It equals a binary regression with one row per patient and interval at risk, without creating these rows. A patient
    who enters (``entry`` in :meth:`fit`) or is censored within an interval counts for the share of it that is observed.

    Parameters
    ----------
    n_intervals : int
        Number of intervals, cut at quantiles of the event times; with ties or few events there are fewer.
    link : {"logit", "cloglog"}
        Link function of the hazard. With "cloglog" scores are log hazard ratios in continuous time.
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is the plain model.
    ball : {balls}
        As in :class:`drosurv.DROCox`.

    Attributes
    ----------
    coef_ : (d,) float64
        Effects on the link scale (linear).
    interval_ends_ : (K,) float64
        Ends of the intervals; the last is the longest observed time.
    levels_ : (K,) float64
        Hazards on the link scale of a patient of score zero.

    Examples
    --------
    >>> from drosurv import DiscreteTimeHazard, datasets
    >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> model = DiscreteTimeHazard(n_intervals=10).fit(data.X, data.y)
    >>> len(model.levels_)
    10
    """

    n_intervals: int = 20
    link: str = "logit"
    alpha: float = 1.0
    ball: str = "chi2"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        check_choice("link", self.link, LINKS)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        loss = DiscreteHazard(data.target, self.n_intervals, self.link, data.weight)

        def curves(data: TrainingData, scores: FloatArray, extra: FloatArray) -> IntervalCurves:
            ends = interval_ends(loss.intervals.cut_points, data.target.time)
            return IntervalCurves(ends, np.asarray(extra, dtype=np.float64), loss.link)

        return Problem(data, loss, self._objective(batch, [data.mass]), curves=curves)

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """Scores are log odds with the logit link, log hazards with the complementary log-log link."""
        log_odds = self.link == "logit"
        return Capabilities(
            score="other" if log_odds else "log hazard",
            exp_coef="odds ratio" if log_odds else "hazard ratio",
            own_curves=True,
            no_recalibration="has separate hazards on intervals",
            row_arguments=("entry", "clusters"),
            no_row_arguments="its loss does not support it",
            objective="worst case",
            no_ties="a likelihood on intervals",
            convex=True,
            devices="accelerator",
        )

    @property
    def interval_ends_(self) -> FloatArray:
        """Ends of the intervals, (K,)."""
        return self._baseline.times[1:]

    @property
    def levels_(self) -> FloatArray:
        """Hazards on the link scale of a patient of score zero, (K,)."""
        curves = self._baseline
        assert isinstance(curves, IntervalCurves)
        return curves.levels


@dataclass(frozen=True, eq=False)
class IntervalCurves(FittedCurves):
    """Survival curves from hazards on intervals; the cumulative hazard is linear within intervals.

    `times` (K + 1,) are zero and the ends of the intervals, `levels` (K,) the hazards on the link scale at score zero.
    """

    times: FloatArray
    levels: FloatArray
    link: str

    def cumulative_hazard(self, scores: FloatArray, times: FloatArray | None = None) -> FloatArray:
        """Return cumulative hazards (n, k) of patients with the given scores, at times (k,) or (n, k)."""
        steps = -log_survived(self.link, np.asarray(scores)[:, None] + self.levels)
        reached = np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
        return reached if times is None else interpolate(self.times, reached, times)


def interval_ends(cut_points: FloatArray, time: FloatArray) -> FloatArray:
    """Return zero, the cut points, and the longest observed time."""
    return np.concatenate([[0.0], cut_points, [time.max()]])
