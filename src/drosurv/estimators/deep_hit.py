"""DeepHit for a single risk: a network that predicts the probability of the event in each interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.curves import FittedCurves, interpolate
from drosurv.errors import ArgumentError, check_count
from drosurv.estimators.capabilities import Capabilities
from drosurv.estimators.discrete_time_hazard import interval_ends
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.network_settings import Trees, as_network
from drosurv.losses.deep_hit_loss import DeepHitLoss
from drosurv.patients.draws import first_half
from drosurv.patients.observation import with_offset
from drosurv.patients.target import FloatArray
from drosurv.solvers import Options, Problem, Result, TrainingData
from drosurv.solvers.networks import build, mlp, network_scores


@dataclass(eq=False, repr=False)
class DeepHit(NetworkEstimator):
    """DeepHit: a network for the probabilities of the event in K intervals, with a likelihood and a ranking loss.

    The ranking loss compares patients with each other, and a worst case needs independent losses: with ``alpha`` below
    1 each half of the patients is compared with the other half.

    Parameters
    ----------
    n_intervals, alpha, ball
        As in :class:`drosurv.DiscreteTimeHazard`.
    network : {"mlp", "linear"}, MLP or callable
        A function must map the number of features to a module with ``n_intervals`` outputs.

    Examples
    --------
    >>> from drosurv import MLP, DeepHit, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = DeepHit(n_intervals=5, network=MLP(max_iter=10), random_state=0).fit(data.X, data.y)
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
    _: KW_ONLY
    network: Any = "mlp"

    capabilities = Capabilities(
        score="other",
        exp_coef=None,
        own_curves=True,
        no_recalibration="has probabilities on intervals",
        row_arguments=("clusters",),
        no_row_arguments="its loss does not support it",
        objective="worst case",
        no_ties="a likelihood on intervals",
        convex=False,
        devices="accelerator",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        if isinstance(as_network(self.network), Trees):
            raise ArgumentError.must("network", "be 'mlp', 'linear', MLP(...) or a callable", self.network)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        in_first = None
        if self.alpha < 1:
            in_first = np.empty(len(data.target), dtype=np.bool_)
            in_first[data.order] = first_half(data.target.event[data.order], 0.5, data.seed, both=True)
        loss = DeepHitLoss(data.target, self.n_intervals, in_first, data.weight)
        # One output per interval; with ties or few events there are fewer than n_intervals.
        self._n_outputs = loss.n_outputs
        return Problem(data, loss, self._objective(batch, [data.mass]), curves=partial(_curves, loss))

    def _options(self, batch: Sequence[Self]) -> Options:
        return replace(super()._options(batch), linear=False)

    def _module(self, n_features: int, seed: int) -> Any:
        if self._is_linear:
            # The probabilities need an intercept, so use a linear map with a bias.
            return build(lambda d: mlp(d, (), n_outputs=self._n_outputs), n_features, seed)
        return super()._module(n_features, seed)

    def _describe(self, result: Result) -> None:
        super()._describe(result)
        self._n_outputs = result.problem.loss.n_outputs

    def _outputs(self, X: Any, offset: ArrayLike | None) -> FloatArray:
        features = self._new_features(X)
        logits = network_scores(self.network_, features, self._n_outputs)
        return with_offset(logits, offset, fitted_with=self._has_offset)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Return the risk (n,): the probability of an event by the end of an interval, averaged over intervals."""
        risk: FloatArray = 1.0 - _survival(self._outputs(X, offset))[:, 1:].mean(axis=1)
        return risk


@dataclass(frozen=True, eq=False)
class MassCurves(FittedCurves):
    """Survival curves from the network's probabilities of intervals.

    `times` (K + 1,) are zero and the ends of the intervals; `hazard` (K + 1,), the cumulative hazard of the training
    patients' mean survival, is used as the baseline.
    """

    times: FloatArray
    hazard: FloatArray

    def cumulative_hazard(self, scores: FloatArray, times: FloatArray | None = None) -> FloatArray:
        """Return cumulative hazards (n, k) of patients with the given logits (n, K), at times (k,) or (n, k)."""
        hazard = -np.log(_survival(scores))
        return hazard if times is None else interpolate(self.times, hazard, times)

    def at_zero(self) -> FloatArray:
        """Return the cumulative hazard (1, K + 1) of the mean survival."""
        return self.hazard[None]


def _survival(logits: FloatArray) -> FloatArray:
    """Return survival (n, K + 1), given logits (n, K) or, for one interval, (n,); the time after it has logit zero."""
    logits = np.column_stack([logits, np.zeros(len(logits))])
    mass = np.exp(logits - logits.max(axis=1, keepdims=True))
    # Summed from the last interval, so that small probabilities keep their precision.
    remaining: FloatArray = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    return np.maximum(remaining / remaining[:, :1], np.finfo(np.float64).tiny)


def _curves(loss: DeepHitLoss, data: TrainingData, scores: FloatArray, extra: FloatArray) -> MassCurves:
    ends = interval_ends(loss.intervals.cut_points, data.target.time)
    survival = data.mass @ _survival(scores)
    return MassCurves(ends, -np.log(survival / survival[0]))
