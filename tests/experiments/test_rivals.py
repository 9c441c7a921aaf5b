"""ARL, JTT and DORO do what their papers say."""

import numpy as np
import pytest

from drosurv import MLP, CoxPH, DROCox, Trees, datasets
from drosurv.losses import TorchLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.patients.target import parse_target
from experiments.rivals import AdversarialReweighting, DroppedOutlierDRO, JustTrainTwice
from experiments.rivals.adversary import Adversary
from experiments.rivals.dropped_outliers import DroppedOutliers

DATA = datasets.make_hidden_minority(n_samples=400, random_state=0)
X, Y = DATA.X.to_numpy(), DATA.y


def test_dropping_nobody_is_the_objective_itself_and_the_largest_losses_get_no_weight():
    rng = np.random.default_rng(0)
    losses, mass = rng.exponential(size=(2, 50)), np.full(50, 0.02)
    whole, nothing = CVaR(0.3)(losses, mass), DroppedOutliers(CVaR(0.3), 0.0)(losses, mass)
    np.testing.assert_allclose(nothing.value, whole.value)
    dropped = DroppedOutliers(CVaR(0.5), 0.1)(losses, mass)
    for row, value, weights in zip(losses, dropped.value, dropped.weights, strict=True):
        left = np.sort(row)[:-5]
        # The worst half of the 45 that are left: 22.5 patients.
        expected = (left[-22:].sum() + 0.5 * left[-23]) / 22.5
        assert value == pytest.approx(expected)
        assert (weights[np.argsort(row)[-5:]] == 0).all()


@pytest.mark.parametrize("inner", [CVaR(0.4), ChiSquare(0.4), ChiSquare(0.01)])
@pytest.mark.parametrize("outlier", [20.0, 1e10])
def test_dropped_outliers_in_torch_are_those_in_numpy(inner, outlier):
    import torch

    rng = np.random.default_rng(1)
    losses, mass = rng.exponential(size=(3, 40)), rng.random(40)
    mass /= mass.sum()
    # The masses of four outliers add up to the dropped share but for rounding.
    losses[:, 5:9] = outlier * (1 + np.arange(4))
    objective = DroppedOutliers(inner, float(mass[5:9].sum()))
    tensor = torch.tensor(losses, requires_grad=True)
    values = objective.torch(tensor, torch.tensor(mass)[None])
    values.sum().backward()
    here = objective(losses, mass)
    np.testing.assert_allclose(values.detach(), here.value, rtol=1e-10)
    np.testing.assert_allclose(tensor.grad, here.weights, atol=1e-10)
    left = np.delete(losses, np.s_[5:9], axis=1)
    others = inner(left, np.delete(mass, np.s_[5:9]) / np.delete(mass, np.s_[5:9]).sum())
    np.testing.assert_allclose(here.value, others.value, rtol=1e-9)


def test_without_outliers_doro_comes_near_dro():
    doro = DroppedOutlierDRO(alpha=0.5, epsilon=0.0, lr=0.05, max_iter=400, random_state=0).fit(X, Y)
    dro = DROCox(alpha=0.5, ball="cvar").fit(X, Y)
    assert doro.objective_ == pytest.approx(dro.objective_, rel=2e-3)


def test_the_adversary_finds_the_region_of_high_loss():
    rng = np.random.default_rng(2)
    features, mass = rng.normal(size=(300, 2)), np.full(300, 1 / 300)
    losses = np.where(features[:, 0] > 1.0, 2.0, 0.5)[None]
    game = Adversary(features, lr=0.1)
    first = game(losses, mass)
    np.testing.assert_allclose(first.weights[0], mass)
    for _ in range(100):
        last = game(losses, mass)
    assert last.weights.sum() == pytest.approx(1.0)
    # A patient far from all others overflows nothing.
    far = Adversary(np.append(features[:-1], [[-1e5, 1e5]], axis=0), lr=0.1)
    assert all(np.isfinite(far(losses, mass).weights).all() for _ in range(5))
    assert last.value[0] > first.value[0] + 0.1
    high = features[:, 0] > 1.0
    assert last.weights[0, high].mean() > 1.5 * last.weights[0, ~high].mean()


def test_just_train_twice_weighs_up_who_lost_most_against_the_null_model():
    model = JustTrainTwice(share=0.25, upweight=4.0).fit(X, Y)
    plain, loss = CoxPH().fit(X, Y), CoxPartial(parse_target(Y))
    regret = loss.everyone(loss(plain.predict(X)[None]))[0] - loss.null_losses()
    larger, equal = regret > 1e-9, np.abs(regret) <= 1e-9
    # The border of the worst 100 lies among the censored, whose regrets are all zero: they share what is left.
    assert larger.sum() < 100 < (larger | equal).sum()
    expected = 1.0 + 3.0 * larger + 3.0 * equal * (100 - larger.sum()) / equal.sum()
    np.testing.assert_allclose(model.worst_case_weights_, expected / expected.sum(), rtol=1e-9)
    again = CoxPH().fit(X, Y, sample_weight=expected)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-6)


@pytest.mark.parametrize("loss", ["partial", "full"])
@pytest.mark.parametrize("weighted", [False, True])
def test_just_train_twice_does_not_depend_on_the_order_of_rows(loss, weighted):
    # Few events: the share reaches the censored patients, whose partial likelihood losses are all zero.
    y = Y.copy()
    y["event"] &= np.arange(len(y)) % 4 == 0
    weight = np.arange(len(y)) % 3 + 1.0 if weighted else np.ones(len(y))
    model = JustTrainTwice(share=0.5, loss=loss).fit(X, y, weight)
    rows = np.random.default_rng(3).permutation(len(y))
    permuted = JustTrainTwice(share=0.5, loss=loss).fit(X[rows], y[rows], weight[rows])
    np.testing.assert_allclose(permuted.coef_, model.coef_, atol=1e-7)
    np.testing.assert_allclose(permuted.worst_case_weights_, model.worst_case_weights_[rows], rtol=1e-9)


# Networks only give the scores: they take one loss.
@pytest.mark.parametrize(
    "network", ["linear", MLP(max_iter=10), Trees(max_iter=10)], ids=["linear", "mlp", "trees"]
)
@pytest.mark.parametrize("cls", [AdversarialReweighting, JustTrainTwice, DroppedOutlierDRO])
def test_each_works_over_networks_and_losses(cls, network):
    def own(target, weight):
        return CoxPartial(target, weight=weight)

    for loss in ("partial", "full", own) if network == "linear" else ("full",):
        model = cls(loss=loss, network=network, random_state=0).fit(X, Y)
        survival = model.predict_survival_function(X, times=[0.5])
        assert ((survival >= 0) & (survival <= 1)).all()


def test_what_makes_no_sense_is_named():
    with pytest.raises(ValueError, match="epsilon must lie in"):
        DroppedOutlierDRO(epsilon=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="loss must be one of"):
        JustTrainTwice(loss="squared").fit(X, Y)
    with pytest.raises(ValueError, match="batch_size=64 would show the adversary other patients"):
        AdversarialReweighting(network=MLP(batch_size=64)).fit(X, Y)


def test_curves_of_just_train_twice_are_those_of_the_patients_as_they_are():
    data = datasets.make_hidden_minority(n_samples=400, random_state=0)
    model = JustTrainTwice(share=0.3, upweight=6.0).fit(data.X, data.y)
    times = np.quantile(data.y["time"], [0.2, 0.5, 0.8])
    # By Breslow's own formula: each death adds one over the sum of risks of those who are still there.
    time, risk = data.y["time"], np.exp(model.predict(data.X))
    jumps = np.array([1 / risk[time >= at].sum() for at in time[data.y["event"]]])
    hazard = np.array([jumps[time[data.y["event"]] <= at].sum() for at in times])
    np.testing.assert_allclose(
        model.predict_survival_function(data.X, times=times), np.exp(-np.outer(risk, hazard)), rtol=1e-9
    )


def test_a_loss_without_second_derivatives_is_trained_by_adam_and_has_no_certified_optimum():
    def exponential(target, weight):
        return TorchLoss(lambda scores, event, time: scores.exp() * time - event * scores, target)

    model = JustTrainTwice(loss=exponential, max_iter=40, random_state=0).fit(X, Y)
    by_adam = JustTrainTwice(loss=exponential, solver="adam", max_iter=40, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, by_adam.coef_)
    with pytest.raises(ValueError, match=r"solver='convex' cannot train JustTrainTwice.*Use solver='adam'"):
        JustTrainTwice(loss=exponential, solver="convex").fit(X, Y)
