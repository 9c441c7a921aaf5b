"""Learners of the benchmark that are no estimators of the library: common practice, in a few lines each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from drosurv.benchmark.encoded_part import EncodedPart
from drosurv.benchmark.measures import event_times
from drosurv.estimators import CoxPH
from drosurv.metrics import log_partial_likelihood
from drosurv.target import FloatArray, Surv
from drosurv.tuning.folds import parse_folds

FOLDS = 3
# Ridge that every linear model has, in the mean loss: it keeps coefficients finite where groups have no events.
RIDGE = 1e-4


class InteractionsCox:
    """Cox with all products of two features, and a ridge chosen by three-fold cross-validation."""

    ridges = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    # Products of more features than this would outnumber the events of most datasets.
    most = 15

    def __init__(self, train: EncodedPart, seed: int) -> None:
        plain = CoxPH(l2=0.01).fit(train.X, train.y)
        self.columns = np.argsort(-np.abs(plain.coef_), kind="stable")[: self.most]
        X = self._wide(train.X)
        # A product that is the same for everybody becomes a column of zeros.
        self.scaler = StandardScaler().fit(X)
        X = self.scaler.transform(X)
        scores = np.zeros(len(self.ridges))
        for fit, held in parse_folds(FOLDS, train.target.event, seed):
            for k, ridge in enumerate(self.ridges):
                model = CoxPH(l2=ridge).fit(X[fit], train.y[fit])
                scores[k] += log_partial_likelihood(train.y[held], model.predict(X[held]))
        self.model = CoxPH(l2=self.ridges[int(np.argmax(scores))]).fit(X, train.y)

    def predict(self, X: pd.DataFrame) -> FloatArray:
        """Log risks (n,)."""
        return self.model.predict(self.scaler.transform(self._wide(X)))

    def predict_survival_function(self, X: pd.DataFrame, times: Any) -> FloatArray:
        """Survival (n, k) at k times."""
        features = self.scaler.transform(self._wide(X))
        return np.asarray(self.model.predict_survival_function(features, times=times))

    def _wide(self, X: pd.DataFrame) -> FloatArray:
        """The features and their products."""
        values = X.to_numpy(dtype=np.float64)
        first, second = np.triu_indices(len(self.columns), k=1)
        chosen = values[:, self.columns]
        return np.hstack([values, chosen[:, first] * chosen[:, second]])


class SurvivalForest:
    """scikit-survival's random survival forest of 100 trees, on times coarsened to 100 event times."""

    def __init__(self, train: EncodedPart, seed: int) -> None:
        from sksurv.ensemble import RandomSurvivalForest

        grid = event_times(train, 100)
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
        return curves[:, np.searchsorted(self.forest.unique_times_, times, side="right")]
