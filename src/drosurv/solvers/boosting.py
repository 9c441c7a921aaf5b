"""Gradient boosting: trees fitted one after the other to the first and second derivatives of a criterion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.losses import ConvexLoss
from drosurv.patients.target import FloatArray, IntArray
from drosurv.solvers.criterion import Criterion, NeighborhoodValidation
from drosurv.solvers.networks import BoostedTrees, bin_edges, binned, lightgbm

# Usual settings for survival data: shallow trees, and leaves whose summed second derivatives are those of one event.
DEFAULTS: dict[str, Any] = {
    "max_depth": 3,
    "num_leaves": 8,
    "lambda_l2": 1.0,
    "min_sum_hessian_in_leaf": 1.0,
    # No limit on the number of rows in a leaf: weight 2 would differ from two patients.
    "min_data_in_leaf": 0,
    "min_data_in_bin": 1,
    "max_bin": 256,
    # The features are already binned; a sample of this size contains all bins.
    "bin_construct_sample_cnt": 20_000,
    "feature_pre_filter": False,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}

# Patients with integer weights are copied, unless the data would become more than this many times larger.
_MOST_COPIES = 20
# A predicted gain of the extra parameters below this is a rounding error. Before the first round all regrets are zero,
# and rounding errors must not determine the worst-case weights.
_SMALLEST_GAIN = 1e-16
# Gradient steps of the extra parameters per round; with one, they would be far from their optimum after few rounds.
_GRADIENT_STEPS = 10


class Growth:
    """Boosted trees that minimise a criterion, grown round by round.

    The Hessian of the partial likelihood in the scores is dense; LightGBM uses its diagonal. Extra parameters, such as
    a baseline hazard, take one Newton step before each round, or several gradient steps if the loss has no second
    derivatives; `extra` (K,) are the current ones, and `history` has the criterion before each round.

    `lr` is the shrinkage of each tree; the `weight` (n,) of patients is for the bins, since the criterion contains it
    already; `parameters` are LightGBM's, in addition to the defaults above.
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
        # The patient of each row of LightGBM's data, and the first row of each patient.
        self._patient: IntArray | slice = slice(None)
        self._row: IntArray | slice = slice(None)
        if self._copies is not None:
            self._patient = np.repeat(np.arange(len(X)), self._copies)
            self._row = np.cumsum(self._copies) - self._copies
        # Gradients of sums over patients, not of means, so that leaves are regularised as in other boosting libraries.
        self._total = float(len(X)) if weight is None else float(weight.sum())
        # Without the settings, LightGBM would ignore features that separate fewer than 20 patients.
        self._data = self._library.Dataset(codes[self._patient], params=settings)
        self._booster = self._library.Booster(settings, self._data)
        self.extra: FloatArray = criterion.loss.start.copy()
        self.history: list[float] = []

    def grow(self) -> bool:
        """Add a tree; return False if no split improves the criterion."""
        # LightGBM fails if all features are constant.
        return any(map(len, self._edges)) and not self._booster.update(fobj=self._derivatives)

    def _derivatives(self, scores: FloatArray, _: Any) -> tuple[Any, Any]:
        criterion, scores = self._criterion, scores[self._row][None]
        value, slope, by_extra = criterion(scores, self.extra[None])
        steps = 1 if isinstance(criterion.loss, ConvexLoss) else _GRADIENT_STEPS
        for _ in range(steps if criterion.loss.n_extra else 0):
            before, self.extra = self.extra, _update_extra(criterion, scores, self.extra, value, by_extra)
            value, slope, by_extra = criterion(scores, self.extra[None])
            if self.extra is before:
                break
        self.history.append(float(value[0]))
        first, second = slope[0], criterion.loss.curvature(criterion.weights)[0]
        if self._copies is not None:
            first, second = (first / self._copies)[self._patient], (second / self._copies)[self._patient]
        return _times(self._total, first), _times(self._total, second)

    def scores(self) -> FloatArray:
        """Return the scores (n,) that LightGBM stores, which is much faster than predicting them."""
        return _scores_of(self._booster.eval_train)[self._row]

    def follow(self, X: FloatArray) -> Callable[[], FloatArray]:
        """Return a function that returns the current scores (m,) of other patients. Call before the first round."""
        codes = binned(X, self._edges)
        self._booster.add_valid(self._data.create_valid(codes, params=self._data.params), "validation")
        return lambda: _scores_of(self._booster.eval_valid)

    def trees(self) -> BoostedTrees:
        """Return the trees grown so far."""
        text = np.frombuffer(self._booster.model_to_string().encode(), dtype=np.uint8)
        ends = np.cumsum([len(edges) for edges in self._edges])
        return BoostedTrees(text.copy(), np.concatenate([*self._edges, np.zeros(0)]), ends)


def boost(growth: Growth, rounds: int, on_round: Callable[[int], bool | None] | None = None) -> Growth:
    """Grow `rounds` trees; stop earlier if no split improves the criterion or ``on_round`` returns True."""
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
    """Multiply in float32, the precision of LightGBM, which avoids a copy."""
    return np.multiply(values, factor, dtype=np.float32, casting="same_kind")


def _scores_of(evaluate: Callable[[Any], Any]) -> FloatArray:
    """Return the scores that LightGBM stores for its training or validation patients."""
    found: list[FloatArray] = []

    def read(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        found.append(scores.copy())
        return "criterion", 0.0, False

    evaluate(read)
    return found[0]


def _copies(weight: FloatArray | None, n: int) -> IntArray | None:
    """Return the number of copies of each patient in LightGBM's data; None if weights are not integers or too large.

    In LightGBM, a row with doubled derivatives is not exactly the same as two rows: it estimates the number of rows in
    a leaf from the second derivatives.
    """
    if weight is None or weight.sum() > _MOST_COPIES * n or (weight != np.round(weight)).any():
        return None
    return weight.astype(np.intp)


def _update_extra(
    criterion: Criterion, scores: FloatArray, extra: FloatArray, value: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Take one damped Newton step in the extra parameters, or a gradient step without second derivatives."""
    loss, step = criterion.loss, gradient[0]
    if isinstance(loss, ConvexLoss):
        hessian = loss.hessian(criterion.weights, np.zeros((loss.n, 0)))
        step = np.linalg.solve(hessian + 1e-9 * np.eye(len(extra)), step)
    if gradient[0] @ step < _SMALLEST_GAIN:
        return extra
    step_size = 1.0
    while step_size > 1e-6:
        updated: FloatArray = extra - step_size * step
        if criterion(scores, updated[None])[0][0] <= value[0]:
            return updated
        step_size /= 2
    return extra
