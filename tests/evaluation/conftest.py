"""Patients whose groups are served unequally, and a model fitted on others like them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from drosurv.estimators import CoxPH
from drosurv.evaluation import evaluate
from drosurv.patients.target import Surv, Target


@dataclass(frozen=True)
class Cohort:
    X: np.ndarray
    y: np.ndarray
    sensitive_features: pd.DataFrame

    @property
    def target(self):
        return Target(self.y["event"], self.y["time"])


def make_cohort(seed, n=240):
    """The first feature works the other way round in group "b"; times are rounded, so that ties occur."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    site = np.where(rng.random(n) < 0.35, "b", "a")
    sex = rng.choice(["f", "m"], n)
    log_risk = np.where(site == "a", 1.0, -0.5) * X[:, 0] + 0.4 * X[:, 1]
    time = np.ceil(20 * rng.exponential(size=n) / np.exp(log_risk))
    censoring = np.ceil(rng.uniform(5, 60, n))
    y = Surv.from_arrays(time <= censoring, np.minimum(time, censoring))
    return Cohort(X, y, pd.DataFrame({"site": site, "sex": sex}))


@pytest.fixture(scope="session")
def train():
    return make_cohort(0, n=300)


@pytest.fixture(scope="session")
def held_out():
    return make_cohort(1)


@pytest.fixture(scope="session")
def model(train):
    return CoxPH().fit(train.X, train.y)


@pytest.fixture(scope="session")
def evaluated(model, train, held_out):
    """Evaluate the model, or another one, on the held-out patients and their groups."""

    def evaluated(other=None, **options):
        options = {"y_train": train.y, "sensitive_features": held_out.sensitive_features, **options}
        return evaluate(model if other is None else other, held_out.X, held_out.y, **options)

    return evaluated


@pytest.fixture(scope="session")
def without_replicates(evaluated):
    return evaluated()
