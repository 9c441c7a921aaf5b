"""Gradient boosting: trees grown one after the other on the gradient and curvature of a criterion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.losses import ConvexLoss
from drosurv.solvers.criterion import AroundTrained, Criterion
from drosurv.solvers.networks.trees import Trees, bin_edges, binned, lightgbm
from drosurv.target import FloatArray, IntArray

# What practitioners set for survival data: shallow trees, and leaves that hold the curvature of about one event.
DEFAULTS: dict[str, Any] = {
    "max_depth": 3,
    "num_leaves": 8,
    "lambda_l2": 1.0,
    "min_sum_hessian_in_leaf": 1.0,
    # By curvature alone: a count of rows would tell a patient of weight 2 from two patients.
    "min_data_in_leaf": 0,
    "min_data_in_bin": 1,
    "max_bin": 256,
    # Values are the numbers of our own bins, each of many patients: so many show all of them.
    "bin_construct_sample_cnt": 20_000,
    "feature_pre_filter": False,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}

# Patients of whole-numbered weight are copied unless that makes the data many times larger.
_MOST_COPIES = 20
# A step of the extra parameters that gains less is rounding. Before the first round all regrets are zero, and rounding,
# say from another unit of time, must not pick who is worst off.
_NOTHING_TO_GAIN = 1e-16
# Trees may stop after few rounds, and a step along the gradient leaves the extra parameters far from where they belong.
_GRADIENT_STEPS = 10


class Growth:
    """Trees that grow round by round on the criterion's gradient and curvature in the scores.

    The partial likelihood's second derivatives couple all patients; LightGBM takes one number for each, the diagonal.
    Extra parameters, such as a baseline hazard, take one step of Newton's method before each round, or several along
    their gradient where the loss has no second derivatives.

    The criterion is of one model, `lr` shrinks each tree. The patients' weights (n,) are for the bins; the criterion
    has them already. `parameters` are handed to LightGBM beside the defaults above, `seed` is of whatever it draws.
    `extra` (K,) are the loss's extra parameters so far, `history` is the criterion before each round.
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
        # Which patient each of LightGBM's rows is, and a row of each patient.
        self._patient: IntArray | slice = slice(None)
        self._row: IntArray | slice = slice(None)
        if self._copies is not None:
            self._patient = np.repeat(np.arange(len(X)), self._copies)
            self._row = np.cumsum(self._copies) - self._copies
        # Gradients of sums over patients, not of means, so that leaves are regularised as in other boosters.
        self._total = float(len(X)) if weight is None else float(weight.sum())
        # Also for the data, which make the bins: else LightGBM leaves out what divides off fewer than 20 patients.
        self._data = self._library.Dataset(codes[self._patient], params=settings)
        self._booster = self._library.Booster(settings, self._data)
        self.extra: FloatArray = criterion.loss.start.copy()
        self.history: list[float] = []

    def grow(self) -> bool:
        """Add a tree; False where no cut is worth making."""
        # LightGBM has no words for features of one value each.
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
        slopes, bends = slope[0], criterion.own_curvature()[0]
        if self._copies is not None:
            slopes, bends = (slopes / self._copies)[self._patient], (bends / self._copies)[self._patient]
        return _times(self._total, slopes), _times(self._total, bends)

    def scores(self) -> FloatArray:
        """Scores (n,) of the patients, as LightGBM keeps them: to predict them anew takes as long as many rounds."""
        return _scores_of(self._booster.eval_train)[self._row]

    def watch(self, X: FloatArray) -> Callable[[], FloatArray]:
        """A function that gives the scores (m,) of other patients so far; call it before the first round."""
        codes = binned(X, self._edges)
        self._booster.add_valid(self._data.create_valid(codes, params=self._data.params), "watched")
        return lambda: _scores_of(self._booster.eval_valid)

    def trees(self) -> Trees:
        """All that was grown so far."""
        text = np.frombuffer(self._booster.model_to_string().encode(), dtype=np.uint8)
        ends = np.cumsum([len(own) for own in self._edges])
        return Trees(text.copy(), np.concatenate([*self._edges, np.zeros(0)]), ends)


def boost(growth: Growth, rounds: int, on_round: Callable[[int], bool | None] | None = None) -> Growth:
    """So many rounds of trees, or fewer where no more cut is worth making, or ``on_round`` says True after one."""
    for done in range(1, rounds + 1):
        if not growth.grow() or (on_round is not None and on_round(done)):
            break
    return growth


def best_round(
    growth: Growth,
    X: FloatArray,
    criterion: Criterion | AroundTrained,
    patience: int,
    rounds: int,
    on_round: Callable[[int], None] | None = None,
) -> int:
    """How many rounds serve patients best who are not trained on, of at most so many.

    `X` (m, d) and `criterion` are of those who are watched; it stops after `patience` rounds without a better one.
    """
    best, lowest, watched = 0, np.inf, growth.watch(X)

    def look(done: int) -> bool:
        nonlocal best, lowest
        value = float(criterion(watched()[None], growth.extra[None])[0][0])
        if value < lowest:
            best, lowest = done, value
        if on_round is not None:
            on_round(done)
        return done - best >= patience

    boost(growth, rounds, look)
    return best


def _times(factor: float, values: FloatArray) -> NDArray[np.float32]:
    """The product in LightGBM's own precision, which spares it a copy."""
    return np.multiply(values, factor, dtype=np.float32, casting="same_kind")


def _scores_of(evaluate: Callable[[Any], Any]) -> FloatArray:
    """The scores that LightGBM keeps of its training or validation patients."""
    seen: list[FloatArray] = []

    def look(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(scores.copy())
        return "criterion", 0.0, False

    evaluate(look)
    return seen[0]


def _copies(weight: FloatArray | None, n: int) -> IntArray | None:
    """How often to give each patient to LightGBM, where weights are whole numbers.

    It guesses from the curvature how many patients are behind a split, so that one patient of weight 2 is not quite two
    patients to it. Copies are.
    """
    if weight is None or weight.sum() > _MOST_COPIES * n or (weight != np.round(weight)).any():
        return None
    return weight.astype(np.intp)


def _moved(
    criterion: Criterion, scores: FloatArray, extra: FloatArray, value: FloatArray, slope: FloatArray
) -> FloatArray:
    """Extra parameters one damped step of Newton's method farther, or of its gradient where there is no second."""
    loss = criterion.loss
    if isinstance(loss, ConvexLoss):
        nobody = np.zeros((loss.n, 0))
        bend = loss.hessian(criterion.weights, nobody)
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
