"""Learners of the benchmark that are no estimators of the library: common practice, in a few lines each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from drosurv.benchmark.encoded_part import EncodedPart
from drosurv.estimators import CoxPH
from drosurv.metrics import log_partial_likelihood
from drosurv.target import FloatArray, IntArray, Surv, Target

FOLDS, VALIDATION = 3, 0.2
# Ridge that every linear model has, in the mean loss: it keeps coefficients finite where groups have no events.
RIDGE = 1e-4


class Fitted(Protocol):
    """What a learner hands back."""

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        ...

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        ...


class InteractionsCox:
    """Cox with all products of two features, and a ridge chosen by three-fold cross-validation."""

    # Products of more features than this would outnumber the events of most datasets.
    most = 15
    ridges = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)

    def __init__(self, train: EncodedPart, seed: int) -> None:
        plain = CoxPH(l2=0.01).fit(train.X, train.y)
        self.columns = np.argsort(-np.abs(plain.coef_), kind="stable")[: self.most]
        X = self._products(train.X.to_numpy())
        self.mean, deviation = X.mean(axis=0), X.std(axis=0)
        self.kept = deviation > 1e-9
        self.deviation = deviation[self.kept]
        X = self._standard(X)
        scores = np.zeros(len(self.ridges))
        for fit, held in folds(train.target, FOLDS, seed):
            for k, ridge in enumerate(self.ridges):
                model = CoxPH(l2=ridge).fit(X[fit], train.y[fit])
                scores[k] += log_partial_likelihood(train.y[held], model.predict(X[held]))
        self.model = CoxPH(l2=self.ridges[int(np.argmax(scores))]).fit(X, train.y)

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        return self.model.predict(self._standard(self._products(X.to_numpy())))

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        products = self._standard(self._products(X.to_numpy()))
        return np.asarray(self.model.predict_survival_function(products, times=times))

    def _products(self, X: FloatArray) -> FloatArray:
        first, second = np.triu_indices(len(self.columns), k=1)
        chosen = X[:, self.columns]
        return np.hstack([X, chosen[:, first] * chosen[:, second]])

    def _standard(self, X: FloatArray) -> FloatArray:
        standard: FloatArray = (X - self.mean)[:, self.kept] / self.deviation
        return standard


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores from any function of the features, with Breslow's baseline.

    Attributes
    ----------
    score : callable
        From features (n, d) to log risks (n,).
    times, cumulative : (k,)
        Event times of training, and the cumulative baseline hazard there.
    """

    score: Callable[[FloatArray], FloatArray]
    times: FloatArray
    cumulative: FloatArray

    @staticmethod
    def of(score: Callable[[FloatArray], FloatArray], train: EncodedPart) -> Scored:
        """With the baseline of the training patients."""
        return Scored(score, *breslow(train.target, score(train.X.to_numpy())))

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        return self.score(X.to_numpy())

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        base = _at(self.times, self.cumulative, np.asarray(times))
        survival: FloatArray = np.exp(-np.exp(self.predict(X))[:, None] * base[None, :])
        return survival


def breslow(target: Target, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Event times and Breslow's cumulative baseline hazard there."""
    order = np.argsort(target.time, kind="stable")
    time, risk = target.time[order], np.exp(scores[order])
    at, events = np.unique(time[target.event[order]], return_counts=True)
    from_then_on = np.cumsum(risk[::-1])[::-1]
    cumulative: FloatArray = np.cumsum(events / from_then_on[np.searchsorted(time, at)])
    return at, cumulative


def _at(times: FloatArray, cumulative: FloatArray, wanted: FloatArray) -> FloatArray:
    found: FloatArray = np.concatenate([[0.0], cumulative])[np.searchsorted(times, wanted, side="right")]
    return found


def boosted_trees(train: EncodedPart, seed: int) -> Fitted:
    """LightGBM on the gradient and curvature of Cox's partial likelihood, rounds chosen on a validation part."""
    fit, held = next(folds(train.target, round(1 / VALIDATION), seed))
    rounds = _boost(train.take(fit), seed, 500, train.take(held))[1]
    return Scored.of(_boost(train, seed, rounds)[0], train)


def _boost(
    train: EncodedPart, seed: int, rounds: int, validation: EncodedPart | None = None
) -> tuple[Callable[[FloatArray], FloatArray], int]:
    import lightgbm

    target = train.target

    def objective(scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        # Events expected of each patient: the gradient is what they exceed the event by, and they bound the
        # diagonal of the Hessian from above.
        expected = np.exp(scores) * _at(*breslow(target, scores), target.time)
        return expected - target.event, np.maximum(expected, 1e-6)

    parameters = {
        "objective": objective,
        "learning_rate": 0.05,
        "max_depth": 3,
        "num_leaves": 8,
        "min_data_in_leaf": 20,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "feature_fraction": 0.7,
        "lambda_l2": 1.0,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "seed": seed,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(train.X.to_numpy(), np.zeros(len(train.X)))
    booster = lightgbm.train(parameters, data, rounds)
    best = rounds
    if validation is not None:
        X = validation.X.to_numpy()
        steps = np.arange(10, rounds + 1, 10)
        staged = [
            log_partial_likelihood(validation.y, np.asarray(booster.predict(X, num_iteration=int(k))))
            for k in steps
        ]
        best = int(steps[int(np.argmax(staged))])
    return lambda X: np.asarray(booster.predict(X, num_iteration=best), dtype=np.float64), best


def deepsurv(train: EncodedPart, seed: int) -> Fitted:
    """A perceptron of two layers of 32, whose number of steps is chosen on a validation part."""
    fit, held = next(folds(train.target, round(1 / VALIDATION), seed))
    shown, kept = train.take(fit), train.take(held)

    def network(steps: int) -> CoxPH:
        return CoxPH(
            "mlp", hidden=(32, 32), lr=0.003, max_iter=steps, l2=1e-3, random_state=seed, device="cpu"
        )

    steps = (10, 25, 50, 100, 200, 400)
    scores = [log_partial_likelihood(kept.y, network(k).fit(shown.X, shown.y).predict(kept.X)) for k in steps]
    fitted: Fitted = network(steps[int(np.argmax(scores))]).fit(train.X, train.y)
    return fitted


class SurvivalForest:
    """scikit-survival's random survival forest of 100 trees, on times coarsened to 100 event times."""

    def __init__(self, train: EncodedPart, seed: int) -> None:
        from sksurv.ensemble import RandomSurvivalForest

        event_times = np.unique(train.target.time[train.target.event])
        grid = np.unique(np.quantile(event_times, np.linspace(0, 1, 100), method="nearest"))
        time = grid[np.minimum(np.searchsorted(grid, train.target.time), len(grid) - 1)]
        y = Surv.from_arrays(train.target.event, time)
        self.forest = RandomSurvivalForest(100, min_samples_leaf=15, random_state=seed, n_jobs=1)
        self.forest.fit(train.X.to_numpy(), y)

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log of the expected number of events (n,)."""
        risk: FloatArray = np.log(np.maximum(self.forest.predict(X.to_numpy()), 1e-6))
        return risk

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        curves = self.forest.predict_survival_function(X.to_numpy(), return_array=True)
        curves = np.hstack([np.ones((len(X), 1)), curves])
        survival: FloatArray = curves[:, np.searchsorted(self.forest.unique_times_, times, side="right")]
        return survival


def folds(target: Target, n: int, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to fit on and rows held out, with equal event rates."""
    from sklearn.model_selection import StratifiedKFold

    yield from StratifiedKFold(n, shuffle=True, random_state=seed).split(np.zeros(len(target)), target.event)
