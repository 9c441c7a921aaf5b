"""The loss of the worst subgroup that covariates define, estimated for every size of subgroup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from drosurv.errors import ArgumentError, as_number, require
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.inference import generator
from drosurv.target import FloatArray, Target

N_FOLDS = 5
N_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class SubgroupCurve:
    """Estimated loss of the worst subgroup by covariates, with a band that covers all sizes at once.

    Parameters
    ----------
    alphas : (A,)
        Shares of patients in the subgroup, increasing.
    estimate, low, high : (A,)
        Mean loss of the worst subgroup found of that share or more, and its simultaneous confidence band; they
        fall in alpha and are at most 1.
    """

    alphas: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def subgroup_curve(
    X: FloatArray,
    survival: FloatArray,
    outcomes: HorizonOutcomes,
    *,
    alphas: FloatArray,
    confidence: float,
    random_state: int | np.random.Generator | None,
) -> SubgroupCurve:
    r"""Cross-fitted regression of the loss on covariates X (n, d), NaN where missing, then CVaR.

    .. math:: \theta(\alpha) = \frac{1}{\alpha n} \sum_i A_i(\alpha) b_i

    A_i says whether patient i is among the share alpha with the largest expected loss in its fold. Since E[b | x] = S
    (1 - S) + c(x) (1 - 2 S), with S the predicted survival and c(x) how far the true survival lies above it, only c
    is learned, by boosted trees grown on the other folds. The mean is of the losses b themselves, so poor trees make
    the subgroup found less bad but never its loss wrong.

    A subgroup of a larger share is one of at least alpha too, so the curve at alpha is the largest theta from alpha
    on: where the trees miss the worst few, those found in a larger group still count. The shares increase.
    """
    rng = generator(random_state)
    losses, n = outcomes.losses(survival), len(survival)
    chosen, edges = _worst_shares(X, survival, outcomes, alphas, rng)
    estimate = chosen @ losses / (alphas * n)
    # CVaR = eta + E[A (b - eta)] / alpha. With eta the loss expected at the subgroup's edge, moving the edge
    # changes nothing to first order, so that the variance of the bracket is that of the estimate.
    influence = chosen * (losses - edges) / alphas[:, None]
    influence -= influence.mean(axis=1, keepdims=True)
    covariance = influence @ influence.T / n**2
    error = np.sqrt(np.diag(covariance))
    scale = np.where(error > 0, error, 1.0)
    draws = rng.multivariate_normal(np.zeros(len(alphas)), covariance / np.outer(scale, scale), N_DRAWS)
    reach = np.quantile(abs(draws).max(axis=1), confidence) * error
    # The band covers all theta at once, so the largest of its ends cover the largest theta.
    low, middle, high = (
        np.clip(np.maximum.accumulate(curve[::-1])[::-1], 0.0, 1.0)
        for curve in (estimate - reach, estimate, estimate + reach)
    )
    return SubgroupCurve(alphas, middle, low, high)


def _worst_shares(
    X: FloatArray,
    survival: FloatArray,
    outcomes: HorizonOutcomes,
    alphas: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """How much (0 to 1) of each patient belongs to the worst share alpha, and the loss expected at its edge.

    Both (A, n).
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    n = len(survival)
    # The prediction is a function of covariates too, and where a model errs often shows in it.
    x = np.column_stack([X, survival])
    excess = outcomes.weight * (outcomes.alive - survival)
    folds = rng.permutation(n) % N_FOLDS
    chosen, edges = np.empty((len(alphas), n)), np.empty((len(alphas), n))
    for fold in range(N_FOLDS):
        out = folds == fold
        trees = HistGradientBoostingRegressor(
            max_iter=60,
            learning_rate=0.06,
            max_leaf_nodes=8,
            min_samples_leaf=30,
            early_stopping=False,
            random_state=int(rng.integers(2**31)),
        )
        trees.fit(x[~out], excess[~out])
        s = survival[out]
        expected = s * (1 - s) + trees.predict(x[out]) * (1 - 2 * s)
        # Ties are broken at random: where the trees see no difference, nobody is worse off.
        order = np.lexsort((rng.random(len(expected)), -expected))
        share = alphas[:, None] * len(expected)
        chosen[:, out] = np.clip(share - np.argsort(order), 0, 1)
        last = np.minimum(np.ceil(share).astype(np.intp), len(expected)) - 1
        edges[:, out] = expected[order][last]
    return chosen, edges


Censoring = Literal["ipcw", "worst_case"]


@dataclass(frozen=True, eq=False)
class HorizonOutcomes:
    """Status of n patients at the horizon t, weighted so that censoring does not distort it.

    The Brier loss of predicted survival S_i at t is then w_i (z_i - S_i)^2: `alive` (n,) holds z_i, 1 if free of the
    event at t, and `weight` (n,) w_i >= 0, at most `bound`, so that losses lie in [0, bound].
    """

    alive: FloatArray
    weight: FloatArray
    bound: float

    def losses(self, survival: FloatArray) -> FloatArray:
        """Brier losses (n,) of predicted survival (n,)."""
        return self.weight * (self.alive - survival) ** 2


def outcomes_at(
    horizon: float, target: Target, follow_up: FollowUp, censoring: Censoring, survival: FloatArray
) -> HorizonOutcomes:
    r"""Who is alive at the horizon t, and with what weight.

    "ipcw": patients censored before t have weight 0, the others the inverse of their probability of being under
    observation,

    .. math:: w_i = \frac{1[Y_i \le t, d_i = 1]}{G(Y_i)} + \frac{1[Y_i > t]}{G(t)} \le \frac{1}{G(t)}

    with G from the training set, whose follow-up is given. "worst_case": everyone has weight 1, and patients censored
    before t take whichever status makes the loss of their predicted survival (n,) larger.
    """
    require(censoring in get_args(Censoring), "censoring", 'be "ipcw" or "worst_case"', censoring)
    if not 0 < as_number(horizon) < target.time.max():
        raise ArgumentError(
            "horizon",
            f"horizon={horizon!r} lies outside the follow-up of y: it must be positive and below "
            f"{target.time.max():g}, the longest time.",
        )
    alive = (target.time > horizon).astype(np.float64)
    if censoring == "worst_case":
        unknown = (target.time <= horizon) & ~target.event
        return HorizonOutcomes(np.where(unknown, survival < 0.5, alive), np.ones(len(target)), 1.0)
    observed = float(follow_up.censoring_at(np.array([horizon]))[0])
    if horizon > follow_up.times[-1] or observed <= 0:
        raise ArgumentError(
            "horizon",
            f"horizon={horizon!r} lies beyond the follow-up of the training set ({follow_up.end:g}), where "
            'nobody knows how many were censored; choose an earlier one, or censoring="worst_case".',
        )
    weight = np.where(alive == 1, 1 / observed, follow_up.inverse_probability(target))
    return HorizonOutcomes(alive, weight, 1 / observed)
