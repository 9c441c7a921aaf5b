"""A user's own torch module as the network."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, Surv


def sample(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, Surv.from_arrays(rng.random(n) < 0.7, rng.exponential(size=n) * np.exp(-X[:, 0]))


class Dropped(torch.nn.Module):
    """Dropout and a buffer that training fills, so that training and evaluation differ."""

    def __init__(self, n_features):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(n_features, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(8, 1, bias=False),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


_fitted = {}


def fitted(estimator):
    """One fit of each for the tests that only look at it."""
    if estimator not in _fitted:
        _fitted[estimator] = clone(estimator).fit(*sample())
    return _fitted[estimator]


def linear_in_double(n_features):
    return torch.nn.Linear(n_features, 1, bias=False).double()


ESTIMATORS = [
    CoxPH(network=MLP(module=Dropped, max_iter=20), random_state=0),
    DROCox(alpha=0.3, network=MLP(module=Dropped, max_iter=20), recalibrate=False, random_state=0),
    DROCoxSplit(alpha=0.3, network=MLP(module=Dropped, max_iter=20), recalibrate=False, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_dropout_and_batch_norm_train_and_repeat(estimator):
    X, y = sample()
    first, second = fitted(estimator), clone(estimator).fit(X, y)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert isinstance(first.network_, Dropped)
    assert not first.network_.training
    # Evaluation is not random, and one patient is scored as among others.
    np.testing.assert_array_equal(first.predict(X), first.predict(X))
    np.testing.assert_allclose(first.predict(X[:1]), first.predict(X)[:1], rtol=1e-5)
    assert first.score(X, y) > 0.6


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_baseline_and_objective_belong_to_the_predictions(estimator):
    X, y = sample()
    model = fitted(estimator)
    risk, event = np.exp(model.predict(X)), y["event"]
    times = np.unique(y["time"][event])
    steps = [(event & (y["time"] == t)).sum() / risk[y["time"] >= t].sum() for t in times]
    np.testing.assert_allclose(model.cum_baseline_hazard_(times), np.cumsum(steps), rtol=1e-6)
    if isinstance(model, CoxPH):
        losses = [
            np.log(risk[y["time"] >= y["time"][i]].sum()) - np.log(risk[i]) for i in np.flatnonzero(event)
        ]
        assert model.objective_ == pytest.approx(sum(losses) / len(X), rel=1e-6)


def test_a_linear_module_trains_like_the_linear_network():
    X, y = sample()
    settings, steps = {"solver": "adam", "random_state": 0}, {"lr": 0.05, "max_iter": 60}
    own = CoxPH(network=MLP(module=linear_in_double, **steps), **settings).fit(X, y)
    built_in = CoxPH(**steps, **settings).fit(X, y)
    np.testing.assert_allclose(own.predict(X), built_in.predict(X), atol=1e-6)
    np.testing.assert_allclose(own.history_, built_in.history_, rtol=1e-7)


def test_a_ridge_counts_every_parameter():
    X, y = sample()
    model = CoxPH(network=MLP(max_iter=20), l2=0.5, random_state=0).fit(X, y)
    free = CoxPH(network=MLP(max_iter=20), random_state=0).fit(X, y)

    def size(module):
        return float(sum((p.detach() ** 2).sum() for p in module.parameters()))

    assert size(model.network_) < size(free.network_)
    risk, event = np.exp(model.predict(X)), y["event"]
    losses = [np.log(risk[y["time"] >= y["time"][i]].sum()) - np.log(risk[i]) for i in np.flatnonzero(event)]
    wanted = sum(losses) / len(X) + 0.25 * size(model.network_)
    assert model.objective_ == pytest.approx(wanted, rel=1e-5)


def test_a_ridge_leaves_out_what_is_not_trained():
    X, y = sample()

    def half_frozen(n_features):
        module = torch.nn.Sequential(torch.nn.Linear(n_features, 3), torch.nn.Linear(3, 1))
        module[0].weight.requires_grad_(False)
        return module

    model = CoxPH(
        network=MLP(module=half_frozen, lr=1e-12, max_iter=2), solver="adam", l2=0.5, random_state=0
    ).fit(X, y)
    # Steps this short change nothing, so the first value is the last.
    assert model.objective_ == pytest.approx(model.history_[0], rel=1e-5)


def test_models_with_a_users_network_can_be_copied_and_pickled():
    X, _ = sample()
    model = fitted(ESTIMATORS[0])
    risk = model.predict(X)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X), risk)
        np.testing.assert_array_equal(again.cum_baseline_hazard_.y, model.cum_baseline_hazard_.y)
