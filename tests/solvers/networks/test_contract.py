"""What every network must do for a solver: scores of a batch of models, and gradients pulled back to parameters."""

import numpy as np
import pytest
import torch

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
