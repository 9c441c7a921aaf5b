"""Gradient boosting: trees grown one after the other on the gradient and curvature of a criterion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.losses import ConvexLoss
from drosurv.networks.trees import Trees, bin_edges, binned, lightgbm
from drosurv.solvers.criterion import Criterion
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


@dataclass(frozen=True, eq=False)
class Boosted:
    """What was grown.

    Attributes
    ----------
    trees : Trees
    scores : (n,) float64
        Of the patients they were grown on.
    watched_scores : (m,) float64
        Of those who were watched.
    extra : (K,) float64
        The loss's extra parameters.
    history : (rounds,) float64
        The criterion before each round.
    rounds : int
        That are kept.
    """

    trees: Trees
    scores: FloatArray
    watched_scores: FloatArray
    extra: FloatArray
    history: FloatArray
    rounds: int


def boost(
    X: FloatArray,
    criterion: Criterion,
    *,
    rounds: int,
    lr: float,
    weight: FloatArray | None = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    watched: Watched | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Boosted:
    """Grow trees on the criterion's gradient and curvature in the scores.

    The partial likelihood's second derivatives couple all patients; LightGBM takes one number for each, the diagonal.
    Extra parameters, such as a baseline hazard, take one step of Newton's method before each round.

    Parameters
    ----------
    X : (n, d) float64
    criterion : Criterion
        Of one model.
    rounds : int
        Trees.
    lr : float
        Shrinkage of each tree.
    weight : (n,) float64, optional
        Weights of the patients, for the bins; the criterion has them already.
    parameters : mapping, optional
        Handed to LightGBM beside the defaults above.
    seed : int
        Of whatever LightGBM draws.
    watched : Watched, optional
        Patients whose criterion decides when to stop; the best round is kept.
    on_round : callable, optional
        Told the number of rounds after each.
    """
    library = lightgbm()
    settings = {**DEFAULTS, "seed": seed, **(parameters or {}), "learning_rate": lr, "objective": "none"}
    edges, codes = bin_edges(X, weight)
    copies = _copies(weight, len(X))
    if copies is not None:
        rows, first = np.repeat(np.arange(len(X)), copies), np.cumsum(copies) - copies
        codes = codes[rows]
    data = library.Dataset(codes)
    # Gradients of sums over patients, not of means, so that leaves are regularised as in other boosters.
    total = float(len(X)) if weight is None else float(weight.sum())
    extra, history = criterion.loss.start.copy(), []

    def derivatives(scores: FloatArray, _: Any) -> tuple[Any, Any]:
        nonlocal extra
        scores = (scores if copies is None else scores[first])[None]
        value, slope, by_extra = criterion(scores, extra[None])
        if criterion.loss.n_extra:
            extra = _moved(criterion, scores, extra, value, by_extra)
            value, slope, by_extra = criterion(scores, extra[None])
        history.append(float(value[0]))
        slopes, bends = slope[0], criterion.own_curvature()[0]
        if copies is not None:
            slopes, bends = (slopes / copies)[rows], (bends / copies)[rows]
        return _times(total, slopes), _times(total, bends)

    booster = library.Booster(settings, data)
    watch = None if watched is None else _Watch(library, booster, data, binned(watched.X, edges), watched)
    for _ in range(rounds):
        finished = booster.update(fobj=derivatives)
        if finished or (watch is not None and watch.has_seen_enough(extra)):
            break
        if on_round is not None:
            on_round(booster.current_iteration())
    kept = booster.current_iteration() if watch is None else watch.best + 1
    while booster.current_iteration() > kept:
        booster.rollback_one_iter()
    # LightGBM has the scores of its own patients: to predict them anew takes as long as many rounds.
    scores = _scores_of(booster.eval_train)
    text = np.frombuffer(booster.model_to_string().encode(), dtype=np.uint8)
    return Boosted(
        Trees(text.copy(), np.concatenate([*edges, np.zeros(0)]), np.cumsum([len(own) for own in edges])),
        scores if copies is None else scores[first],
        np.zeros(0) if watch is None else _scores_of(booster.eval_valid),
        extra if watch is None else watch.extra,
        np.array(history[:kept]),
        kept,
    )


def _times(factor: float, values: FloatArray) -> NDArray[np.float32]:
    """The product in LightGBM's own precision, which spares it a copy."""
    product: NDArray[np.float32] = np.multiply(values, factor, dtype=np.float32, casting="same_kind")
    return product


def _scores_of(evaluate: Callable[[Any], Any]) -> FloatArray:
    """The scores that LightGBM keeps of its training or validation patients."""
    seen: list[FloatArray] = []

    def look(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(scores.copy())
        return "criterion", 0.0, False

    evaluate(look)
    return seen[0]


@dataclass(frozen=True, eq=False)
class Watched:
    """Patients whose criterion decides when to stop.

    Attributes
    ----------
    X : (m, d) float64
    criterion : Criterion
        Among them.
    patience : int
        Rounds without a better value after which to stop.
    """

    X: FloatArray
    criterion: Criterion
    patience: int


class _Watch:
    """The watched patients' criterion, round by round, and where it was best."""

    def __init__(self, library: Any, booster: Any, data: Any, codes: Any, watched: Watched) -> None:
        self.booster, self.watched = booster, watched
        booster.add_valid(library.Dataset(codes, reference=data), "watched")
        self.best, self.value, self.extra, self.round = -1, np.inf, watched.criterion.loss.start, -1

    def has_seen_enough(self, extra: FloatArray) -> bool:
        """Whether the last rounds brought nothing."""
        self.round += 1
        scores = _scores_of(self.booster.eval_valid)
        value = float(self.watched.criterion(scores[None], extra[None])[0][0])
        if value < self.value:
            self.best, self.value, self.extra = self.round, value, extra
        return self.round - self.best >= self.watched.patience


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
    length = 1.0
    while length > 1e-6:
        moved = extra - length * step
        if criterion(scores, moved[None])[0][0] <= value[0]:
            return moved
        length /= 2
    return extra
