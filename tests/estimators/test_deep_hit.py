"""DeepHit's loss by its definition, and the model around it."""

import pickle

import numpy as np
import pytest

from drosurv import MLP, DeepHit, datasets
from drosurv.losses.deep_hit_loss import DeepHitLoss
from drosurv.patients.target import Target

DATA = datasets.make_hidden_minority(n_samples=200, random_state=0)


def by_definition(logits, target, index, reference):
    """l_i, patient by patient and pair by pair."""
    K, out = logits.shape[1], []
    mass = np.exp(np.column_stack([logits, np.zeros(len(logits))]))
    mass /= mass.sum(axis=1, keepdims=True)
    gone = np.cumsum(mass, axis=1)
    for i, k in enumerate(index):
        chance = mass[i, k] if target.event[i] else mass[i, k + 1 : K + 1].sum()
        rank = sum(
            np.exp(-(gone[i, k] - gone[j, k]) / 0.1)
            for j in reference(i)
            if target.event[i] and target.time[i] < target.time[j]
        )
        out.append(-0.2 * np.log(chance) + 0.8 * rank / len(reference(i)))
    return np.array(out)


@pytest.mark.parametrize("split", [False, True])
def test_the_loss_is_its_definition(split):
    rng = np.random.default_rng(0)
    target = Target(rng.random(30) < 0.7, np.ceil(10 * rng.exponential(size=30)))
    first = np.arange(30) % 2 == 0 if split else None
    loss = DeepHitLoss(target, 4, first)
    logits = rng.normal(size=(1, 30, loss.n_outputs))
    index = loss.intervals.exposure(target.time).index

    def reference(i):
        return np.flatnonzero(first != first[i]) if split else np.arange(30)

    np.testing.assert_allclose(
        loss(logits)[0], by_definition(logits[0], target, index, reference), rtol=1e-10
    )
    weights = rng.random((1, 30))
    loss(logits)
    slope = loss.pullback(weights)[0]
    step = np.zeros_like(logits)
    step[0, 3, 1] = 1e-6
    change = (loss(logits + step) - loss(logits - step)) @ weights[0] / 2e-6
    assert slope[0, 3, 1] == pytest.approx(change[0], abs=1e-7)


@pytest.mark.parametrize("network", ["mlp", "linear"])
def test_curves_fall_from_one_and_follow_the_risk(network):
    steps = {"lr": 0.05, "max_iter": 20}
    given = {"network": "linear", **steps} if network == "linear" else {"network": MLP(**steps)}
    model = DeepHit(8, **given, random_state=0).fit(DATA.X, DATA.y)
    survival = model.predict_survival_function(DATA.X, times=[0.0, 0.3, 0.6, 1.0])
    assert (survival[:, 0] == 1.0).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    assert model.score(DATA.X, DATA.y) > 0.6
    assert np.corrcoef(model.predict(DATA.X), survival[:, 2])[0, 1] < -0.8


def test_a_worst_case_has_halves():
    model = DeepHit(5, alpha=0.5, random_state=0, network=MLP(max_iter=5)).fit(DATA.X, DATA.y)
    assert model.worst_case_weights_.max() > 1.5 / len(DATA.y)


def test_one_interval_is_a_model_too():
    # Nothing but the chance of an event in it, and that of none.
    linear = {"network": "linear", "max_iter": 60, "lr": 0.1}
    for given in ({"network": MLP(max_iter=60, lr=0.1, early_stopping=False)}, linear):
        model = DeepHit(1, **given, random_state=0)
        model.fit(DATA.X, DATA.y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(DATA.X), model.predict(DATA.X))
        # With a level of its own: who has no features to speak of has a chance of an event, too.
        assert model.predict(DATA.X - DATA.X).max() > 0.6
        assert model.score(DATA.X, DATA.y) > 0.6
    # The chance of none is also known where it is small.
    weight, bias = (np.asarray(p.detach()) for p in model.network_.parameters())
    far = DATA.X * 50 / np.linalg.norm(weight)
    logits = far.to_numpy() @ weight[0] + bias
    assert logits.max() > 50
    hazard = model.predict_cumulative_hazard_function(far, times=[1e9])[:, 0]
    np.testing.assert_allclose(hazard, np.logaddexp(0.0, logits), rtol=1e-4, atol=1e-15)


def test_batches_without_one_of_the_halves_are_borne():
    model = DeepHit(5, alpha=0.5, random_state=0, network=MLP(batch_size=2, max_iter=1)).fit(
        DATA.X[:60], DATA.y[:60]
    )
    assert np.isfinite(model.predict(DATA.X)).all()
