"""Hazards in discrete time: the chance to have the event in an interval, given that it has not come before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.estimators.baseline import Curves, checked_times
from drosurv.estimators.parameters import check_choice, check_count
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.robust import RobustEstimator
from drosurv.estimators.training import Training
from drosurv.losses import DiscreteHazard
from drosurv.losses.discrete_time import LINKS, log_survived
from drosurv.target import FloatArray


@dataclass(eq=False, repr=False)
class DiscreteTimeHazard(RobustEstimator):
    """The hazard of each of K intervals of time on a link scale: a level of the interval plus the patient's score.

    It is a binary regression on one row per patient and interval that the patient was at risk in, without making these
    rows. Late entry (``entry`` in :meth:`fit`) leaves out the intervals before; in its own interval a patient counts as
    at risk throughout.

    Parameters
    ----------
    n_intervals : int
        Intervals, cut at quantiles of the event times; ties or few events give fewer.
    link : {"logit", "cloglog"}
        Of the hazard. With "cloglog" scores are log hazard ratios of the continuous time behind the intervals.
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is the plain model.
    ball : {"chi2", "paper", "cvar"}
        As in :class:`drosurv.DROCox`.

    Attributes
    ----------
    coef_ : (d,) float64
        Effects on the link scale (linear).
    interval_ends_ : (K,) float64
        Where intervals end; the last at the longest observed time.
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

    _observes = ("entry", "clusters")
    _no_ties = "a likelihood on intervals"
    _own_curves = "has hazards of its own on intervals"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        check_choice("link", self.link, LINKS)

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        loss = DiscreteHazard(training.target, self.n_intervals, self.link, training.weight)
        objective = self._objective(batch, [training.mass])
        return Recipe(loss, objective, baseline=partial(_curves, loss))

    @property
    def score_type(self) -> str:  # type: ignore[override]
        """What scores are: log hazards under the complementary log-log link, log odds under the logit."""
        return "log hazard" if self.link == "cloglog" else "other"

    @property
    def _ratio(self) -> str:
        """Of the odds of an event in an interval to those of none; the other link speaks of hazards."""
        return "odds ratio" if self.link == "logit" else "hazard ratio"

    @property
    def interval_ends_(self) -> FloatArray:
        """Where intervals end, (K,)."""
        return self._baseline.times[1:]

    @property
    def levels_(self) -> FloatArray:
        """Hazards on the link scale of a patient of score zero, (K,)."""
        curves = self._baseline
        assert isinstance(curves, IntervalCurves)
        return curves.levels


@dataclass(frozen=True, eq=False)
class IntervalCurves(Curves):
    """Survival curves of hazards on intervals; inside an interval the cumulative hazard grows evenly.

    `times` (K + 1,) are zero and the ends of the intervals, `levels` (K,) hazards on the link scale at score zero.
    """

    times: FloatArray
    levels: FloatArray
    link: str

    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Cumulative hazards (n, T) of patients with the given scores."""
        steps = -log_survived(self.link, np.asarray(scores)[:, None] + self.levels)
        reached = np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
        return reached if times is None else along(self.times, reached, checked_times(times))


def along(ends: FloatArray, reached: FloatArray, at: FloatArray) -> FloatArray:
    """Values (n, T) at times, between those (n, K + 1) at the ends on straight lines, and held after the last."""
    place = np.clip(np.searchsorted(ends, at, side="right") - 1, 0, len(ends) - 2)
    share = np.clip((at - ends[place]) / (ends[place + 1] - ends[place]), 0.0, 1.0)
    return reached[:, place] + share * (reached[:, place + 1] - reached[:, place])


def interval_ends(cut_points: FloatArray, time: FloatArray) -> FloatArray:
    """Zero, the cut points, and the longest observed time."""
    return np.concatenate([[0.0], cut_points, [time.max()]])


def _curves(
    loss: DiscreteHazard, training: Training, scores: FloatArray, extra: FloatArray
) -> IntervalCurves:
    ends = interval_ends(loss.intervals.cut_points, training.target.time)
    return IntervalCurves(ends, np.asarray(extra, dtype=np.float64), loss.link)
