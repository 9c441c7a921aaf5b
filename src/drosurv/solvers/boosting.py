"""Gradient boosting: trees grown one after the other on the gradient and curvature of a criterion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.losses import ConvexLoss
from drosurv.solvers.criterion import Criterion, NeighborhoodValidation
from drosurv.solvers.networks import Trees, bin_edges, binned, lightgbm
from drosurv.target import FloatArray, IntArray

# Usual settings for survival data: shallow trees, and leaves that hold the curvature of about one event.
DEFAULTS: dict[str, Any] = {
    "max_depth": 3,
    "num_leaves": 8,
    "lambda_l2": 1.0,
    "min_sum_hessian_in_leaf": 1.0,
    # Leaves are limited by curvature alone: with a count of rows, weight 2 would differ from two patients.
    "min_data_in_leaf": 0,
    "min_data_in_bin": 1,
    "max_bin": 256,
    # The features are already binned; this many rows show all bins.
    "bin_construct_sample_cnt": 20_000,
    "feature_pre_filter": False,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}

# Patients with integer weights are copied unless that makes the data more than this many times larger.
_MOST_COPIES = 20
# A step of the extra parameters that gains less is rounding. Before the first round all regrets are zero, and rounding
# must not choose the worst-off patients.
_NOTHING_TO_GAIN = 1e-16
# Trees may stop after few rounds, and one gradient step leaves the extra parameters far from their optimum.
_GRADIENT_STEPS = 10


class Growth:
    """Trees grown round by round on the criterion's gradient and curvature in the scores.

    The Hessian of the partial likelihood in the scores is dense; LightGBM takes its diagonal. Extra parameters, such as
    a baseline hazard, take one Newton step before each round, or several gradient steps where the loss has no second
    derivatives.

    Parameters
    ----------
    X : (n, d)
    criterion : Criterion
        Of one model.
    lr : float
        Shrinkage of each tree.
    weight : (n,), optional
        Weights of the patients for the bins; the criterion contains them already.
    parameters : dict, optional
        Passed to LightGBM beside the defaults above.
    seed : int
        LightGBM's seed.

    Attributes
    ----------
    extra : (K,)
        Extra parameters of the loss.
    history : list of float
        The criterion before each round.
    """

    def __init__(
        self,
        X: FloatArray,
        criterion: Criterion,
        *,
        lr: float,
        weight: FloatArray | None = None,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self._library, self._criterion = lightgbm(), criterion
        settings = {**DEFAULTS, "seed": seed, **(parameters or {}), "learning_rate": lr, "objective": "none"}
        self._edges, codes = bin_edges(X, weight)
        self._copies = _copies(weight, len(X))
        # The patient of each of LightGBM's rows, and one row of each patient.
        self._patient: IntArray | slice = slice(None)
        self._row: IntArray | slice = slice(None)
        if self._copies is not None:
            self._patient = np.repeat(np.arange(len(X)), self._copies)
            self._row = np.cumsum(self._copies) - self._copies
        # Gradients of sums over patients, not of means, so that leaves are regularised as in other boosting libraries.
        self._total = float(len(X)) if weight is None else float(weight.sum())
        # The data take the settings too: else LightGBM ignores features that separate fewer than 20 patients.
        self._data = self._library.Dataset(codes[self._patient], params=settings)
        self._booster = self._library.Booster(settings, self._data)
        self.extra: FloatArray = criterion.loss.start.copy()
        self.history: list[float] = []

    def grow(self) -> bool:
        """Add a tree; return False where no split improves the criterion."""
        # LightGBM fails on features that are all constant.
        return any(map(len, self._edges)) and not self._booster.update(fobj=self._derivatives)

    def _derivatives(self, scores: FloatArray, _: Any) -> tuple[Any, Any]:
        criterion, scores = self._criterion, scores[self._row][None]
        value, slope, by_extra = criterion(scores, self.extra[None])
        steps = 1 if isinstance(criterion.loss, ConvexLoss) else _GRADIENT_STEPS
        for _ in range(steps if criterion.loss.n_extra else 0):
            before, self.extra = self.extra, _moved(criterion, scores, self.extra, value, by_extra)
            value, slope, by_extra = criterion(scores, self.extra[None])
            if self.extra is before:
                break
        self.history.append(float(value[0]))
        slopes, bends = slope[0], criterion.score_curvature()[0]
        if self._copies is not None:
            slopes, bends = (slopes / self._copies)[self._patient], (bends / self._copies)[self._patient]
        return _times(self._total, slopes), _times(self._total, bends)

    def scores(self) -> FloatArray:
        """Return the scores (n,) that LightGBM stores; predicting them again takes as long as many rounds."""
        return _scores_of(self._booster.eval_train)[self._row]

    def follow(self, X: FloatArray) -> Callable[[], FloatArray]:
        """Return a function that gives the current scores (m,) of other patients; call it before the first round."""
        codes = binned(X, self._edges)
        self._booster.add_valid(self._data.create_valid(codes, params=self._data.params), "validation")
        return lambda: _scores_of(self._booster.eval_valid)

    def trees(self) -> Trees:
        """Return the trees grown so far."""
        text = np.frombuffer(self._booster.model_to_string().encode(), dtype=np.uint8)
        ends = np.cumsum([len(edges) for edges in self._edges])
        return Trees(text.copy(), np.concatenate([*self._edges, np.zeros(0)]), ends)


def boost(growth: Growth, rounds: int, on_round: Callable[[int], bool | None] | None = None) -> Growth:
    """Grow `rounds` trees, or fewer where no split improves the criterion or ``on_round`` returns True."""
    for done in range(1, rounds + 1):
        if not growth.grow() or (on_round is not None and on_round(done)):
            break
    return growth


def best_round(
    growth: Growth,
    X: FloatArray,
    criterion: Criterion | NeighborhoodValidation,
    n_iter_no_change: int,
    rounds: int,
    on_round: Callable[[int], None] | None = None,
) -> int:
    """Return the number of rounds, at most `rounds`, with the lowest criterion on a validation set.

    `X` (m, d) and `criterion` are those of the validation set; growth stops after `n_iter_no_change` rounds without a
    lower value.
    """
    best, lowest, validation_scores = 0, np.inf, growth.follow(X)

    def stops(done: int) -> bool:
        nonlocal best, lowest
        value = float(criterion(validation_scores()[None], growth.extra[None])[0][0])
        if value < lowest:
            best, lowest = done, value
        if on_round is not None:
            on_round(done)
        return done - best >= n_iter_no_change

    boost(growth, rounds, stops)
    return best


def _times(factor: float, values: FloatArray) -> NDArray[np.float32]:
    """Multiply in LightGBM's precision, which avoids a copy."""
    return np.multiply(values, factor, dtype=np.float32, casting="same_kind")


def _scores_of(evaluate: Callable[[Any], Any]) -> FloatArray:
    """Return the scores that LightGBM stores of its training or validation patients."""
    seen: list[FloatArray] = []

    def read(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(scores.copy())
        return "criterion", 0.0, False

    evaluate(read)
    return seen[0]


def _copies(weight: FloatArray | None, n: int) -> IntArray | None:
    """Return how often each patient is given to LightGBM; None where weights are not integers.

    LightGBM estimates the number of patients in a leaf from the curvature, so that a patient of weight 2 is not exactly
    two patients. Copies are.
    """
    if weight is None or weight.sum() > _MOST_COPIES * n or (weight != np.round(weight)).any():
        return None
    return weight.astype(np.intp)


def _moved(
    criterion: Criterion, scores: FloatArray, extra: FloatArray, value: FloatArray, slope: FloatArray
) -> FloatArray:
    """Take one damped Newton step in the extra parameters, or a gradient step without second derivatives."""
    loss = criterion.loss
    if isinstance(loss, ConvexLoss):
        no_features = np.zeros((loss.n, 0))
        bend = loss.hessian(criterion.weights, no_features)
        step = np.linalg.solve(bend + 1e-9 * np.eye(len(extra)), slope[0])
    else:
        step = slope[0]
    if slope[0] @ step < _NOTHING_TO_GAIN:
        return extra
    length = 1.0
    while length > 1e-6:
        moved = extra - length * step
        if criterion(scores, moved[None])[0][0] <= value[0]:
            return moved
        length /= 2
    return extra
