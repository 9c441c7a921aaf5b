"""The data that the benchmark runs on."""

from functools import cache

import numpy as np

from drosurv import Surv
from drosurv.datasets import load_flc, split


@cache
def flc(seed=0):
    """FLC's published split: standardised features, targets and attributes of training and test part."""
    train, _, test = split(load_flc(as_published=True), seed)
    mean, deviation = train.X.mean(), train.X.std(ddof=0)
    train_X, test_X = (((part.X - mean) / deviation).to_numpy() for part in (train, test))
    return (train_X, train.y, train.sensitive_features), (test_X, test.y, test.sensitive_features)


def correlated(n, d, correlation=0.5, seed=0):
    """Normal features of one pairwise correlation, exponential times, about half of them censored."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X *= np.sqrt(1 - correlation)
    X += np.sqrt(correlation) * rng.standard_normal((n, 1))
    effects = np.linspace(-0.5, 0.5, d) / np.sqrt(d)
    time = rng.exponential(size=n) / np.exp(X @ effects)
    censoring = rng.exponential(size=n)
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring))


def scored(n, seed=0):
    """Targets of n patients with a noisy risk score and three groups."""
    X, y = correlated(n, 2, seed=seed)
    rng = np.random.default_rng(seed + 1)
    return y, X[:, 1] - X[:, 0] + rng.standard_normal(n), rng.integers(3, size=n)
