import numpy as np
import pytest

from drosurv.losses import CoxPartial
from drosurv.objectives import Mean, uniform_mass
from drosurv.solvers import Criterion
from drosurv.solvers.adam import MiniBatches, adam
from drosurv.solvers.networks import Linear
from drosurv.target import Target


class Recorder:
    """A network whose scores are nothing but the rows it was asked for."""

    def __init__(self):
        self.parameters, self.seen = [], []

    def take(self, rows):
        self.seen.append(rows)
        return self

    def scores(self):
        return None


@pytest.mark.parametrize(("n", "size"), [(10, 3), (10, 5), (11, 5), (7, 100), (9, 2)])
def test_every_epoch_visits_every_patient_once_in_batches_of_at_least_the_size(n, size):
    network = Recorder()
    batches = MiniBatches(network, lambda rows: None, n, size, seed=0)
    for _ in range(2 * batches.n_batches):
        batches.scores()
    epochs = network.seen[: batches.n_batches], network.seen[batches.n_batches :]
    for epoch in epochs:
        assert sorted(np.concatenate(epoch)) == list(range(n))
        assert min(map(len, epoch)) >= min(size, n)
        assert max(map(len, epoch)) < 2 * size or len(epoch) == 1
    if n > 5:
        assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))


def test_the_order_follows_the_seed():
    first, second, other = Recorder(), Recorder(), Recorder()
    for network, seed in ((first, 1), (second, 1), (other, 2)):
        batches = MiniBatches(network, lambda rows: None, 20, 5, seed)
        for _ in range(4):
            batches.scores()
    assert np.array_equal(np.concatenate(first.seen), np.concatenate(second.seen))
    assert not np.array_equal(np.concatenate(first.seen), np.concatenate(other.seen))


def test_a_step_trains_on_the_loss_among_its_patients():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(12, 2)), Target(np.ones(12, bool), rng.random(12))
    criterion = Criterion(CoxPartial(target), Mean(), uniform_mass(12))
    network = Linear(X, rng.normal(size=(1, 2)))
    batches = MiniBatches(network, criterion.take, 12, 4, seed=0)
    scores = batches.scores()
    value, gradient, _ = batches(scores)
    rows = np.array_split(np.random.default_rng(0).permutation(12), 3)[0]
    own = Criterion(CoxPartial(target.take(rows)), Mean(), uniform_mass(4))
    wanted, slope, _ = own((X[rows] @ network.parameters[0][0])[None, :])
    assert value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(batches.pullback(gradient)[0], slope @ X[rows], rtol=1e-10)


def test_many_small_steps_go_downhill():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    target = Target(np.ones(200, bool), rng.exponential(size=200) * np.exp(-X[:, 0]))
    criterion = Criterion(CoxPartial(target), Mean(), uniform_mass(200))
    network = Linear(X, np.zeros((1, 2)))
    before = criterion(network.scores())[0][0]
    batches = MiniBatches(network, criterion.take, 200, 50, seed=0)
    history = adam(batches, batches, np.array([0.05]), 40)
    assert history.shape == (1, 40)
    assert criterion(network.scores())[0][0] < before - 0.1
