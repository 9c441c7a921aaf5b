from itertools import islice

import numpy as np
import pytest
import torch

from drosurv import RegularizedCox
from drosurv.disparities import PENALTIES
from drosurv.losses import CoxPartial
from drosurv.networks import Linear, ModuleBatch
from drosurv.objectives import Mean
from drosurv.solvers import Composite, MiniBatches
from drosurv.target import Surv, parse_target

NAMES = sorted(PENALTIES)


def patients(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    time = np.ceil(20 * rng.exponential(size=n) * np.exp(-X @ [1.0, -0.5, 0.0, 0.3]))
    return X, Surv.from_arrays(rng.random(n) < 0.7, time), rng.integers(3, size=n)


def criterion_of(X, y, codes, name):
    target = parse_target(y)
    penalty = PENALTIES[name].prepare(X, target, codes, 3, 0.01)
    mass = target.event / target.event.sum()
    return Composite(CoxPartial(target, "breslow", None), Mean, mass, None, penalty, np.array([0.5, 2.0]))


class Recorder:
    """A network that only remembers which patients it was asked for."""

    parameters = ()

    def __init__(self):
        self.asked = []

    def take(self, rows):
        self.asked.append(rows)
        return self

    def scores(self):
        return None


def batches_of(n, size, seed, count):
    network = Recorder()
    mini = MiniBatches(network, lambda rows: None, n, size, seed)
    for _ in range(count):
        mini.scores()
    return network.asked


@pytest.mark.parametrize(
    ("n", "size", "per_epoch"), [(10, 5, 2), (11, 5, 2), (14, 5, 2), (9, 8, 1), (5, 2, 2)]
)
def test_every_epoch_visits_every_patient_once(n, size, per_epoch):
    asked = iter(batches_of(n, size, seed=0, count=3 * per_epoch))
    epochs = [np.concatenate(list(islice(asked, per_epoch))) for _ in range(3)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), np.arange(n))
    assert any((epochs[0] != epoch).any() for epoch in epochs[1:])


@pytest.mark.parametrize("size", [2, 3, 7])
def test_no_batch_is_smaller_than_asked(size):
    for n in range(size, 5 * size):
        assert size <= min(map(len, batches_of(n, size, seed=0, count=12))) < 2 * size


def test_the_seed_decides_the_order():
    first, again, other = (np.concatenate(batches_of(40, 8, seed, 10)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [np.arange(40, 90), np.array([3, 1, 77, 12])])
def test_the_criterion_of_a_batch_is_that_of_its_patients_alone(name, rows):
    X, y, codes = patients()
    scores = np.random.default_rng(1).standard_normal((2, len(X)))
    value, gradient = criterion_of(X, y, codes, name).take(rows)(scores[:, rows])
    alone, slope = criterion_of(X[rows], y[rows], codes[rows], name)(scores[:, rows])
    np.testing.assert_allclose(value, alone, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_without_events_is_left_to_the_penalty(name):
    X, y, codes = patients()
    rows = np.flatnonzero(~y["event"])[:12]
    scores = np.random.default_rng(1).standard_normal((2, 12))
    criterion = criterion_of(X, y, codes, name)
    value, gradient = criterion.take(rows)(scores)
    penalty, slope = criterion.penalty.subset(rows)(scores)
    np.testing.assert_array_equal(value, [0.5, 2.0] * penalty)
    np.testing.assert_array_equal(gradient, np.array([[0.5], [2.0]]) * slope)


def test_gradients_reach_the_shared_parameters():
    X, y, codes = patients()
    theta = np.array([[0.3, -0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.3]])
    composite = criterion_of(X, y, codes, "keya_individual")
    mini = MiniBatches(Linear(X, theta), composite.take, len(X), 30, seed=4)
    rows = batches_of(len(X), 30, seed=4, count=1)[0]

    _, slope = mini(mini.scores())
    found = mini.pullback(slope)[0]
    expected = composite.take(rows)(theta @ X[rows].T)[1] @ X[rows]
    np.testing.assert_allclose(found, expected, rtol=1e-12)

    # A solver updates in place: the next batch must see it.
    theta += 1.0
    rows = batches_of(len(X), 30, seed=4, count=2)[1]
    np.testing.assert_allclose(mini.scores(), theta @ X[rows].T, rtol=1e-12)


def test_modules_on_a_batch_give_the_scores_of_its_patients():
    X, _, _ = patients()
    modules = [torch.nn.Linear(4, 1) for _ in range(3)]
    network = ModuleBatch(modules, X)
    everyone = network.scores()
    rows = np.array([5, 2, 100])
    np.testing.assert_allclose(network.take(rows).scores(), everyone[:, rows], rtol=1e-6)


@pytest.mark.parametrize("network", ["linear", "mlp"])
@pytest.mark.parametrize("name", NAMES)
def test_training_on_batches_approaches_training_on_everyone(name, network):
    X, y, codes = patients(n=300)
    groups = {"sensitive_features": codes} if PENALTIES[name].needs_groups else {}

    def fitted(**parameters):
        model = RegularizedCox(name, 0.4, network=network, hidden=(8,), random_state=0, **parameters)
        return model.fit(X, y, **groups)

    start = fitted(max_iter=1, lr=1e-12)
    everyone = fitted(max_iter=200, lr=0.02)
    batches = fitted(max_iter=20, lr=0.02, batch_size=32)
    gained = (start.objective_ - batches.objective_) / (start.objective_ - everyone.objective_)
    # Less than all: a gap between groups of a few patients is larger than among all, and costs more.
    assert gained > 0.7
    assert batches.history_.shape == (20 * 9,)
    np.testing.assert_array_equal(batches.predict(X), fitted(max_iter=20, lr=0.02, batch_size=32).predict(X))


def test_the_random_state_decides_the_batches():
    X, y, _ = patients()
    model = RegularizedCox(network=lambda d: ZeroStart(d), batch_size=16, max_iter=2)
    risks = [model.set_params(random_state=seed).fit(X, y).predict(X) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(risks[0], risks[1])
    assert np.abs(risks[0] - risks[2]).max() > 1e-3


class ZeroStart(torch.nn.Linear):
    """A linear module that starts at zero, whatever the seed."""

    def __init__(self, d):
        super().__init__(d, 1, bias=False)
        torch.nn.init.zeros_(self.weight)


@pytest.mark.parametrize("size", [150, 1000])
def test_a_batch_of_everyone_is_no_batch(size):
    X, y, _ = patients()
    whole = RegularizedCox(max_iter=10, random_state=0).fit(X, y)
    batch = RegularizedCox(max_iter=10, random_state=0, batch_size=size).fit(X, y)
    np.testing.assert_array_equal(batch.coef_, whole.coef_)


def test_features_count_as_standardised_among_all_patients():
    """The penalty's distances are those of the training set, not of whoever is in the batch."""
    X, y, _ = patients()
    X[:, 0] *= 100.0
    found = {}
    for factor in (1.0, 1000.0):
        # A feature's unit cancels in the distances but not in its coefficient; here it has no effect at all.
        model = RegularizedCox(
            network=lambda d: WithoutFirst(d), scale=1.0, batch_size=16, max_iter=2, random_state=0
        )
        found[factor] = model.fit(X * [factor, 1.0, 1.0, 1.0], y).history_
    np.testing.assert_allclose(found[1.0], found[1000.0], rtol=1e-5)


class WithoutFirst(torch.nn.Linear):
    """A linear module that does not look at the first feature."""

    def __init__(self, d):
        super().__init__(d - 1, 1, bias=False)

    def forward(self, x):
        return super().forward(x[:, 1:])
