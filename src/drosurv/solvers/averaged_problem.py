"""Losses averaged over neighbourhoods before an objective is taken: the criterion and its parts.

    L(theta, psi) = objective( W (l(theta, psi) - l0) )

with l any loss, l0 the null model's (or zero), W averages over neighbourhoods and any objective. With linear scores
and a convex loss, such as the full likelihood or a partial one, it is jointly convex in theta and in the log baseline
hazards psi, of which there may be none.
"""

from __future__ import annotations

import copy
from typing import Any, Generic, TypeVar

import numpy as np

from drosurv.neighborhoods import Neighborhoods, Partitions
from drosurv.objectives import Evaluation, Objective
from drosurv.solvers.baseline_loss import BaselineLoss, ConvexBaselineLoss
from drosurv.target import FloatArray

# psi moves from the null model's by delta at a price of _PSI_RIDGE/2 delta^2: an interval whose events lose all
# weight would otherwise send it to minus infinity.
_PSI_RIDGE = 1e-6
_EXACT_WORK = 2e6
_SAMPLE_SEED = 0
_SEPARATED = 500.0

AnyLoss = TypeVar("AnyLoss", bound=BaselineLoss, covariant=True)


class AveragedCriterion(Generic[AnyLoss]):
    """Objective of neighbourhood-averaged regrets as a function of scores and log baseline hazards.

    Parameters
    ----------
    loss : BaselineLoss
        Prepared for the n training patients; :class:`WithoutBaseline` makes one of a partial likelihood.
    neighborhoods : Neighborhoods or None
        Averages W; None averages nobody with anybody.
    objective : Objective
        Of the averaged regrets.
    mass : (n,) float64
        Shares of the patients, summing to one.
    offset : (n,) float64
        Losses l0 to measure the regret against.
    """

    def __init__(
        self,
        loss: AnyLoss,
        neighborhoods: Neighborhoods | None,
        objective: Objective,
        mass: FloatArray,
        offset: FloatArray,
    ) -> None:
        self.loss, self.neighborhoods, self.objective = loss, neighborhoods, objective
        self.mass, self.offset = mass, offset

    def average(self, values: FloatArray) -> FloatArray:
        """W values, (..., n)."""
        return values if self.neighborhoods is None else self.neighborhoods.average(values)

    def regrets(self, scores: FloatArray, delta: FloatArray) -> FloatArray:
        """Averaged regrets (1, n) at scores (1, n) and shifts (1, K) of the null model's log hazards."""
        losses = self.loss(scores, self.loss.null_psi + delta)
        return self.average(losses - self.offset)

    def evaluate(self, regrets: FloatArray) -> Evaluation:
        """The objective at averaged regrets."""
        return self.objective(regrets, self.mass)

    def patient_weights(self, at: Evaluation) -> FloatArray:
        """Weights (1, n) of the patients' own losses: W' q."""
        return at.weights if self.neighborhoods is None else self.neighborhoods.adjoint(at.weights)


class AveragedProblem:
    """The convex problem of linear scores: minimise over theta and the shifts of the log baseline hazards.

    Parameters
    ----------
    X : (n, d) float64
        Features; centred here, the baseline takes up the difference.
    criterion : AveragedCriterion
    l2 : float
        Ridge weight on theta.
    """

    def __init__(
        self, X: FloatArray, criterion: AveragedCriterion[ConvexBaselineLoss], l2: float = 0.0
    ) -> None:
        self.centre: FloatArray = criterion.mass @ X
        self.X = X - self.centre
        # What centring leaves of a constant feature is the rounding of its mean, which must not pass for a signal.
        self.X[:, np.ptp(X, axis=0) == 0] = 0.0
        self.criterion = criterion
        self.objective: Any = criterion.objective
        self.d = X.shape[1]
        self.size = self.d + criterion.loss.n_intervals
        self.ridge: FloatArray = np.concatenate(
            [np.full(self.d, l2), np.full(criterion.loss.n_intervals, _PSI_RIDGE)]
        )
        self.sample = self._sampled()
        self._z: FloatArray = np.zeros(self.size)
        self._scores = self._regrets = np.empty((1, 0))
        self._at: Evaluation | None = None

    def _sampled(self) -> AveragedProblem | None:
        """The same problem on a sample of the patients, for the curvature, where everybody's would cost too much."""
        n, around = len(self.X), self.criterion.neighborhoods
        if n * self.size <= _EXACT_WORK or not isinstance(around, Partitions):
            return None
        rows = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(n)[: int(_EXACT_WORK / self.size)])
        other = copy.copy(self)
        other.X, other.sample = self.X[rows], None
        mass = self.criterion.mass[rows]
        other.criterion = AveragedCriterion(
            self.criterion.loss.take(rows),
            around.take(rows),
            self.criterion.objective,
            mass / mass.sum(),
            self.criterion.offset[rows],
        )
        return other

    @property
    def smooth(self) -> bool:
        """Whether the objective is differentiable."""
        return bool(getattr(self.objective, "smooth", False))

    def smoothed(self, smoothing: float) -> AveragedProblem:
        """The same problem with the smoothed objective."""
        other = copy.copy(self)
        other.objective = self.objective.smoothed(smoothing)
        if self.sample is not None:
            other.sample = self.sample.smoothed(smoothing)
        return other

    def scale(self, value: float) -> float:
        """Regrets are near zero, so gaps are relative to events per patient, the size of what can be gained."""
        return max(abs(value), self.criterion.loss.event_share)

    def value(self, z: FloatArray) -> float:
        """The objective at z = (theta, delta); the point stays current for the methods below."""
        self._z = z
        self._scores = (self.X @ z[: self.d])[None, :]
        self._regrets = self.criterion.regrets(self._scores, z[None, self.d :])
        if not np.isfinite(self._regrets).all():
            return np.inf
        self._at = self.objective(self._regrets, self.criterion.mass)
        return float(self._at.value[0]) + self._ridge_value()

    def lower_value(self, z: FloatArray) -> float:
        """The objective at z with the adversary's current weights held fixed."""
        return float(self._regrets[0] @ self._current.weights[0]) + self._ridge_value()

    def gradient(self) -> FloatArray:
        """Gradient at the current point."""
        by_score, by_psi = self.criterion.loss.pullback(self.criterion.patient_weights(self._current))
        return np.concatenate([by_score[0] @ self.X, by_psi[0]]) + self.ridge * self._z

    def curvature(self) -> tuple[FloatArray, FloatArray]:
        """Second derivatives at the current point: with the weights held fixed, and with them following."""
        if self.sample is not None:
            self.sample.value(self._z)
            return self.sample.curvature()
        weights = self.criterion.patient_weights(self._current)
        fixed = self.criterion.loss.hessian(weights, self.X)[0] + np.diag(self.ridge)
        bend = self.objective.curvature(self._regrets[0], self.criterion.mass, self._current)
        if bend is None:
            return fixed, fixed
        jacobian = self.criterion.average(self.criterion.loss.jacobian(self.X).T).T
        active = np.flatnonzero(bend.diagonal)
        rows = jacobian[active]
        following = fixed + rows.T @ (bend.diagonal[active, None] * rows)
        sides = bend.vectors[:, active] @ rows
        return fixed, following + sides.T @ (bend.scales[:, None] * sides)

    @property
    def separated(self) -> bool:
        """Whether the scores have run so far apart that the optimum must lie at infinity."""
        return bool(np.ptp(self._scores) > _SEPARATED)

    def _ridge_value(self) -> float:
        return 0.5 * float(self.ridge @ self._z**2)

    @property
    def _current(self) -> Evaluation:
        assert self._at is not None, "value comes first"
        return self._at


class AveragedTrainee:
    """Network and criterion for Adam, with the shifts of the log baseline hazards as one more parameter.

    Parameters
    ----------
    network : ModuleBatch
        One module on the n patients.
    criterion : AveragedCriterion
    l2 : float
        Ridge weight on the network's parameters; the shifts are the baseline's and stay free of it.
    """

    def __init__(self, network: Any, criterion: AveragedCriterion[Any], l2: float = 0.0) -> None:
        self.network, self.criterion, self.l2 = network, criterion, l2
        self.delta: FloatArray = np.zeros((1, criterion.loss.n_intervals))
        self.parameters: list[Any] = [*network.parameters, self.delta]
        self._by_psi: FloatArray = np.zeros_like(self.delta)

    def scores(self) -> Any:
        """Scores (1, n) of the network."""
        return self.network.scores()

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value (1,) and gradient in the scores (1, n)."""
        at = self.criterion.evaluate(self.criterion.regrets(scores, self.delta))
        by_score, by_psi = self.criterion.loss.pullback(self.criterion.patient_weights(at))
        self._by_psi = by_psi + _PSI_RIDGE * self.delta
        ridge = _PSI_RIDGE * float((self.delta**2).sum())
        if self.l2 > 0:
            ridge += self.l2 * sum(float((p * p).sum()) for p in self.network.parameters)
        return at.value + 0.5 * ridge, by_score

    def pullback(self, gradient: Any) -> list[Any]:
        """Gradients in the network's parameters and in the shifts."""
        slopes = self.network.pullback(gradient)
        if self.l2 > 0:
            slopes = [g + self.l2 * p for g, p in zip(slopes, self.network.parameters, strict=True)]
        return [*slopes, self._by_psi]
