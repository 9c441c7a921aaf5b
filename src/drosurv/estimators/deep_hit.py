"""DeepHit for a single risk: a network gives the event's mass to intervals of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import ArgumentError, require
from drosurv.estimators.baseline import Curves, checked_times
from drosurv.estimators.discrete_time_hazard import along, interval_ends
from drosurv.estimators.fitted import Fitted
from drosurv.estimators.halves import halves
from drosurv.estimators.parameters import check_count
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.robust import RobustEstimator
from drosurv.estimators.training import Training
from drosurv.losses import DeepHitLoss
from drosurv.observation import with_offset
from drosurv.solvers.networks import build, mlp, network_scores
from drosurv.target import FloatArray


@dataclass(eq=False, repr=False)
class DeepHit(RobustEstimator):
    """Event masses on K intervals, trained on their likelihood and on ranking earlier events above later ones.

    The ranking compares patients with each other, so a patient's loss is one number only if whom it is compared with is
    fixed: the robust form (``alpha`` below 1) scores each half of the patients against the other.

    Parameters
    ----------
    n_intervals, alpha, ball
        As in :class:`drosurv.DiscreteTimeHazard`.
    split : bool
        Whether halves are scored against each other where alpha is below 1; False is an error there.
    network : {"mlp", "linear"} or callable
        A function of the number of features must give a module with ``n_intervals`` outputs.

    Examples
    --------
    >>> from drosurv import DeepHit, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = DeepHit(n_intervals=5, max_iter=50, random_state=0).fit(data.X, data.y)
    >>> model.predict_survival_function(data.X, times=[0.5]).shape
    (300, 1)

    References
    ----------
    Lee, Zame, Yoon and van der Schaar, DeepHit: A Deep Learning Approach to Survival Analysis with Competing Risks,
    AAAI 2018.
    """

    n_intervals: int = 20
    alpha: float = 1.0
    ball: str = "chi2"
    split: bool = True
    _: KW_ONLY
    network: str | Callable[[int], Any] = "mlp"

    score_type = "other"
    _no_ties = "a likelihood on intervals"
    _own_curves = "has probabilities of its own on intervals"
    _convex = False
    # The plain model compares everybody with everybody, the robust ones halves.
    _batched = ("lr",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        require(self.network != "trees", "network", "be 'mlp', 'linear' or a callable for DeepHit", "trees")
        if self.alpha < 1 and not self.split:
            raise ArgumentError(
                "alpha",
                f"alpha={self.alpha!r} needs split=True: DeepHit's ranking compares "
                "patients with each other, and only between halves is a patient's loss one number.",
            )

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        in_first = None
        if self.alpha < 1:
            in_first = halves(training.target.event, 0.5, training.seed, both=True)
        loss = DeepHitLoss(training.target, self.n_intervals, in_first, training.weight)
        # The network needs one output per interval, of which ties or few events give fewer than were asked for.
        self._n_outputs = loss.n_outputs
        return Recipe(loss, self._objective(batch, [training.mass]), baseline=partial(_curves, loss))

    def _schedule(self, batch: Sequence[Self]) -> Schedule:
        return replace(super()._schedule(batch), linear=False)

    def _module(self, n_features: int, seed: int) -> Any:
        if self._is_linear:
            # Masses have levels: a linear map with a bias, also where there is one interval.
            return build(lambda d: mlp(d, (), n_outputs=self._n_outputs), n_features, seed)
        return super()._module(n_features, seed)

    def _describe(self, fitted: Fitted) -> None:
        super()._describe(fitted)
        self._n_outputs = fitted.recipe.loss.n_outputs

    def _outputs(self, X: Any, offset: ArrayLike | None) -> FloatArray:
        features = self._new_features(X)
        logits = network_scores(self.network_, features, self._n_outputs)
        return with_offset(logits, offset, fitted_with=self._has_offset)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Risk (n,): the chance of an event by the end of an interval, averaged over intervals; higher means sooner."""
        risk: FloatArray = 1.0 - _survival(self._outputs(X, offset))[:, 1:].mean(axis=1)
        return risk


@dataclass(frozen=True, eq=False)
class MassCurves(Curves):
    """Curves of the masses that the network gives.

    `times` (K + 1,) are zero and the ends of the intervals, `hazard` is the cumulative one of the average survival in
    training there, which stands for a baseline.
    """

    times: FloatArray
    hazard: FloatArray

    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Cumulative hazards (n, T) of patients with the given logits (n, K)."""
        hazard = -np.log(_survival(scores))
        return hazard if times is None else along(self.times, hazard, checked_times(times))

    def at_zero(self) -> FloatArray:
        """The average patient's cumulative hazard, (1, K + 1)."""
        return self.hazard[None]


def _survival(logits: FloatArray) -> FloatArray:
    """Survival (n, K + 1) of logits (n, K), or (n,) of a single interval; what lies beyond has logit zero."""
    logits = np.column_stack([logits, np.zeros(len(logits))])
    mass = np.exp(logits - logits.max(axis=1, keepdims=True))
    # From the far end, so that small survival is not lost.
    left: FloatArray = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    return np.maximum(left / left[:, :1], np.finfo(np.float64).tiny)


def _curves(loss: DeepHitLoss, training: Training, scores: FloatArray, extra: FloatArray) -> MassCurves:
    ends = interval_ends(loss.intervals.cut_points, training.target.time)
    survival = training.mass @ _survival(scores)
    return MassCurves(ends, -np.log(survival / survival[0]))
