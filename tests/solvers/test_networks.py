"""Networks: scores of a batch of models and their gradients, torch modules, and trees as an extra."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from drosurv import CoxPH, Surv
from drosurv.solvers.networks import Linear, ModuleBatch, build, linear, mlp, module_scores

N, D, B = 12, 3, 4


def features():
    return np.random.default_rng(0).normal(size=(N, D))


def linear_batch(batch):
    return Linear(features(), np.random.default_rng(1).normal(size=(batch, D)))


def module_batch(make):
    def prepare(batch):
        return ModuleBatch([build(make, D, seed).double() for seed in range(batch)], features())

    return prepare


def no_bias_vector_output(n_features):
    class Squeezed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(n_features, 1)

        def forward(self, x):
            return torch.tanh(self.layer(x)).squeeze(-1)

    return Squeezed()


NETWORKS = {
    "linear": linear_batch,
    "linear module": module_batch(linear),
    "mlp": module_batch(lambda d: mlp(d, (5, 4))),
    "user's": module_batch(no_bias_vector_output),
}


@pytest.fixture(params=NETWORKS)
def prepare(request):
    return NETWORKS[request.param]


def numpy(values):
    return np.asarray(values.detach()) if isinstance(values, torch.Tensor) else values


@pytest.mark.parametrize("batch", [1, B])
def test_pullback_is_the_gradient_of_the_scores(prepare, batch):
    network = prepare(batch)
    cotangent = np.random.default_rng(2).normal(size=(batch, N))
    scores = network.scores()
    assert scores.shape == (batch, N)
    assert isinstance(scores, np.ndarray)
    gradients = network.pullback(cotangent)
    step = 1e-6
    for parameter, gradient in zip(network.parameters, gradients, strict=True):
        assert gradient.shape == parameter.shape
        # Moving one number of every model at once: models of a batch do not meet.
        flat = parameter.reshape(batch, -1)
        for j in range(flat.shape[1]):
            flat[:, j] += step
            ahead = network.scores()
            flat[:, j] -= 2 * step
            behind = network.scores()
            flat[:, j] += step
            slope = ((ahead - behind) * cotangent).sum(axis=1) / (2 * step)
            np.testing.assert_allclose(numpy(gradient).reshape(batch, -1)[:, j], slope, atol=1e-7)


def test_a_batch_is_its_models_one_by_one(prepare):
    together = prepare(B)
    scores = together.scores()
    cotangent = np.random.default_rng(2).normal(size=(B, N))
    gradients = together.pullback(cotangent)
    for b in range(B):
        alone = prepare(1)
        for own, shared in zip(alone.parameters, together.parameters, strict=True):
            own[...] = shared[b : b + 1]
        np.testing.assert_allclose(alone.scores(), scores[b : b + 1], rtol=1e-12, atol=1e-14)
        for own, shared in zip(alone.pullback(cotangent[b : b + 1]), gradients, strict=True):
            np.testing.assert_allclose(numpy(own), numpy(shared[b : b + 1]), rtol=1e-10, atol=1e-13)


def test_fewer_patients_share_the_parameters(prepare):
    network, rows = prepare(2), np.array([7, 0, 3])
    part = network.take(rows)
    np.testing.assert_allclose(part.scores(), network.scores()[:, rows], rtol=1e-12, atol=1e-14)
    network.parameters[0][...] *= 2
    np.testing.assert_allclose(part.scores(), network.scores()[:, rows], rtol=1e-12, atol=1e-14)


def test_predictions_of_a_trained_module_are_its_training_scores():
    modules = [build(lambda d: mlp(d, (5,)), D, seed) for seed in range(B)]
    network = ModuleBatch(modules, features())
    for parameter in network.parameters:
        parameter += 0.1
    scores = network.scores()
    for b, module in enumerate(network.trained()):
        assert not module.training
        np.testing.assert_allclose(module_scores(module, features()), scores[b], rtol=1e-5, atol=1e-6)


def test_each_module_of_a_batch_may_have_its_own_features():
    X = np.random.default_rng(3).normal(size=(B, N, D))
    modules = [build(lambda d: mlp(d, (5,)), D, seed) for seed in range(B)]
    together = ModuleBatch(modules, X).scores()
    for b, module in enumerate(modules):
        np.testing.assert_allclose(module_scores(module, X[b]), together[b], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 129, 40_000])
def test_linear_scores_and_gradients_are_matrix_products_at_every_size(n, d):
    rng = np.random.default_rng(n + d)
    X, theta, cotangent = rng.normal(size=(n, d)), rng.normal(size=(1, d)), rng.normal(size=(1, n))
    network = Linear(X, theta)
    np.testing.assert_allclose(network.scores(), theta @ X.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(network.pullback(cotangent)[0], cotangent @ X, rtol=1e-11, atol=1e-11)


def test_modules_start_from_torchs_default_initialisation():
    torch.manual_seed(3)
    wanted = torch.nn.Sequential(torch.nn.Linear(4, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))
    found = build(mlp, 4, seed=3)
    for own, theirs in zip(found.parameters(), wanted.parameters(), strict=True):
        assert torch.equal(own, theirs)
    torch.manual_seed(3)
    assert torch.equal(build(linear, 4, seed=3).weight, torch.nn.Linear(4, 1, bias=False).weight)


def test_hidden_widths_shape_the_perceptron():
    shapes = [tuple(p.shape) for p in mlp(5, (7, 2)).parameters()]
    assert shapes == [(7, 5), (7,), (2, 7), (2,), (1, 2), (1,)]
    assert [tuple(p.shape) for p in mlp(5, ()).parameters()] == [(1, 5), (1,)]
    assert [tuple(p.shape) for p in linear(5).parameters()] == [(1, 5)]


def test_building_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    build(mlp, 4, seed=9)
    assert torch.equal(torch.rand(3), wanted)


def test_threads_that_build_at_once_get_what_each_would_alone():
    def slowly(n_features):
        # Others get their chance between two layers.
        first = torch.nn.Linear(n_features, 3)
        time.sleep(0.001)
        return torch.nn.Sequential(first, torch.nn.Linear(3, 1))

    alone = [build(slowly, 4, seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: build(slowly, 4, seed), range(8)))
    for one, other in zip(alone, together, strict=True):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)


def test_parameters_that_do_not_reach_the_scores_get_no_gradient():
    class Partly(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
            self.empty = torch.nn.Parameter(torch.zeros(0))

        def forward(self, x):
            return self.used(x)

    network = ModuleBatch([Partly()], np.ones((5, 3)))
    network.scores()
    gradients = network.by_name(network.pullback(np.ones((1, 5)))[0])
    assert (gradients["unused.weight"] == 0).all()
    assert (gradients["used.weight"] != 0).all()


@pytest.mark.parametrize("models", [1, 3])
def test_the_one_tensor_that_is_trained_holds_the_modules_own_parameters(models):
    X = np.random.default_rng(0).standard_normal((20, 4))
    modules = [build(lambda d: mlp(d, (3, 2)), 4, seed) for seed in range(models)]
    network = ModuleBatch(modules, X, "cpu")
    (parameters,), scores = network.parameters, network.scores()
    gradients = network.by_name(network.pullback(torch.ones(models, 20))[0])
    apart = []
    for b, module in enumerate(modules):
        own = module(torch.tensor(X, dtype=torch.float32))[:, 0]
        np.testing.assert_allclose(scores[b], own.detach(), rtol=1e-6, atol=1e-6)
        names, given = zip(*module.named_parameters(), strict=True)
        for name, gradient in zip(names, torch.autograd.grad(own.sum(), given), strict=True):
            np.testing.assert_allclose(gradients[name][b], gradient, rtol=1e-6, atol=1e-5)
        apart.append(torch.nn.utils.parameters_to_vector(given).detach())
    assert torch.equal(parameters, torch.stack(apart))
    parameters -= 0.1
    assert not torch.equal(network.scores(), scores)


def test_parameters_that_ask_for_no_gradient_stay_as_they_are():
    def make(d):
        module = mlp(d, (4,))
        module[0].requires_grad_(False)
        return module

    modules = [build(make, 3, seed) for seed in range(2)]
    before = [module[0].weight.clone() for module in modules]
    X = np.random.default_rng(0).normal(size=(5, 3))
    network = ModuleBatch(modules, X)
    # Each module keeps its own.
    np.testing.assert_allclose(network.scores(), [module_scores(m, X) for m in modules], rtol=1e-5, atol=1e-6)
    assert list(network.by_name(network.parameters[0])) == ["2.weight", "2.bias"]
    for parameter in network.parameters:
        parameter += 1.0
    for module, kept in zip(network.trained(), before, strict=True):
        assert torch.equal(module[0].weight, kept)
        np.testing.assert_allclose(
            network.scores()[modules.index(module)], module_scores(module, X), rtol=1e-5
        )


def test_a_module_without_parameters_still_scores():
    class Sum(torch.nn.Module):
        def forward(self, x):
            return x.sum(-1)

    assert ModuleBatch([Sum()], np.ones((2, 3))).scores().tolist() == [[3.0, 3.0]]
    assert module_scores(Sum(), np.ones((2, 3))).tolist() == [3.0, 3.0]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = Surv.from_arrays(RNG.random(40) < 0.7, RNG.exponential(size=40))


def test_other_networks_do_without_lightgbm(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert CoxPH().fit(X, Y).converged_
