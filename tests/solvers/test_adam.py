"""Adam against torch and its compiled loop, and mini-batches."""

import copy

import numpy as np
import pytest
import torch

from drosurv import MLP, DROCox
from drosurv.losses import cox_partial, cox_split
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.objectives import chi_square, cvar
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean, uniform_mass
from drosurv.patients.target import Target
from drosurv.solvers import Criterion, TorchCriterion
from drosurv.solvers.adam import MiniBatches, adam
from drosurv.solvers.compiled_adam import compiled_adam
from drosurv.solvers.networks import Linear, ModuleBatch, build, linear, mlp

N, D, STEPS = 60, 3, 15


def sample(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    time = np.ceil(10 * rng.exponential(size=n) * np.exp(-X[:, 0]))
    return X, Target(rng.random(n) < 0.7, time)


def tensors(target):
    return torch.as_tensor(target.event), torch.as_tensor(target.time)


OBJECTIVES = {
    "mean": (Mean, lambda losses: losses.mean()),
    "chi2": (lambda: ChiSquare(0.3), lambda losses: chi_square(losses, 0.3)),
    "paper": (lambda: ChiSquare(0.5, "paper"), lambda losses: chi_square(losses, 0.5, constant="paper")),
    "cvar": (lambda: CVaR(0.4), lambda losses: cvar(losses, 0.4)),
}


def by_torch(torch_adam, module, X, objective, target, lr, l2=0.0, steps=STEPS):
    """The textbook loop: autograd and torch's Adam; returns the objective before each step."""
    step = torch_adam(module.parameters(), lr, weight_decay=l2)
    features, (event, time), history = torch.as_tensor(X), tensors(target), []
    for _ in range(steps):
        value = objective(cox_partial(module(features)[:, 0], event, time))
        penalty = l2 / 2 * sum((p.detach() ** 2).sum() for p in module.parameters())
        value.backward()
        step()
        history.append(float(value.detach() + penalty))
    return np.array(history)


def coefficients(module):
    return module.weight.detach().numpy().copy()


@pytest.mark.parametrize(("name", "l2"), [*((name, 0.0) for name in OBJECTIVES), ("chi2", 0.3)])
def test_linear_training_equals_torchs_adam(name, l2, torch_adam):
    X, target = sample()
    make, in_torch = OBJECTIVES[name]
    module = build(linear, D, seed=1).double()
    criterion = Criterion(CoxPartial(target), make(), uniform_mass(N))
    network = Linear(X, coefficients(module))
    history = adam(network, criterion, np.array([0.05]), STEPS, l2)
    wanted = by_torch(torch_adam, module, X, in_torch, target, 0.05, l2)
    np.testing.assert_allclose(history[0], wanted, rtol=1e-8)
    np.testing.assert_allclose(network.parameters[0], coefficients(module), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["mean", "chi2"])
def test_perceptron_training_equals_torchs_adam(name, torch_adam):
    X, target = sample()
    make, in_torch = OBJECTIVES[name]
    module = build(lambda d: mlp(d, (6,)), D, seed=1).double()
    network = ModuleBatch([copy.deepcopy(module)], X)
    history = adam(network, Criterion(CoxPartial(target), make(), uniform_mass(N)), np.array([0.02]), STEPS)
    wanted = by_torch(torch_adam, module, X, in_torch, target, 0.02)
    np.testing.assert_allclose(history[0], wanted, rtol=1e-8)
    for own, theirs in zip(network.trained()[0].parameters(), module.parameters(), strict=True):
        np.testing.assert_allclose(own.detach(), theirs.detach(), rtol=1e-6, atol=1e-8)


def test_a_batch_of_settings_is_its_models_one_by_one():
    X, target = sample()
    alphas, lr = np.array([0.2, 0.5, 1.0]), np.array([0.01, 0.05, 0.1])
    starts = np.random.default_rng(0).normal(size=(3, D)) / 10
    loss = CoxPartial(target)
    together = Linear(X, starts.copy())
    history = adam(together, Criterion(loss, ChiSquare(alphas), uniform_mass(N)), lr, STEPS)
    assert history.shape == (3, STEPS)
    for b in range(3):
        alone = Linear(X, starts[b : b + 1].copy())
        criterion = Criterion(loss, ChiSquare(alphas[b]), uniform_mass(N))
        np.testing.assert_allclose(adam(alone, criterion, lr[b : b + 1], STEPS)[0], history[b], rtol=1e-9)
        np.testing.assert_allclose(alone.parameters[0][0], together.parameters[0][b], rtol=1e-7, atol=1e-10)


HALF = np.arange(N) % 3 == 0
HALVES = [np.flatnonzero(HALF), np.flatnonzero(~HALF)]
COMPILED = {
    "whole": (lambda target, weight: CoxPartial(target, "breslow", weight), None),
    "split": (lambda target, weight: CoxSplit(target, HALF, weight), HALVES),
    "one side": (lambda target, weight: CoxSplit(target, HALF, weight, both=False), HALVES[:1]),
}


@pytest.mark.parametrize(("weighted", "l2"), [(False, 0.3), (True, 0.0)])
@pytest.mark.parametrize("name", COMPILED)
def test_the_compiled_loop_is_the_plain_one(name, weighted, l2):
    X, target = sample()
    weight = np.random.default_rng(5).uniform(0.5, 2, N) if weighted else None
    mass = uniform_mass(N) if weight is None else weight / weight.sum()
    alphas, lr = np.array([0.2, 0.5, 1.0]), np.array([0.01, 0.05, 0.1])
    starts = np.random.default_rng(0).normal(size=(3, D)) / 10
    prepare, blocks = COMPILED[name]
    criterion = Criterion(prepare(target, weight), ChiSquare(alphas), mass, blocks)
    plain, compiled = Linear(X, starts.copy()), Linear(X, starts.copy())
    wanted = adam(plain, criterion, lr, STEPS, l2)
    np.testing.assert_allclose(compiled_adam(compiled, criterion, lr, STEPS, l2), wanted, rtol=1e-10)
    np.testing.assert_allclose(compiled.parameters[0], plain.parameters[0], rtol=1e-8, atol=1e-11)


def test_the_compiled_loop_takes_a_half_without_any_event():
    X, target = sample()
    target = Target(target.event & HALF, target.time)
    criterion = Criterion(CoxSplit(target, HALF), ChiSquare(0.3), uniform_mass(N), HALVES)
    plain, compiled = Linear(X, np.full((1, D), 0.1)), Linear(X, np.full((1, D), 0.1))
    wanted = adam(plain, criterion, np.array([0.05]), STEPS)
    np.testing.assert_allclose(
        compiled_adam(compiled, criterion, np.array([0.05]), STEPS), wanted, rtol=1e-10
    )
    np.testing.assert_allclose(compiled.parameters[0], plain.parameters[0], rtol=1e-8, atol=1e-11)


def test_the_compiled_loop_knows_what_it_cannot_do():
    X, target = sample()
    chi, mass, split = ChiSquare(0.3), uniform_mass(N), CoxSplit(target, HALF)
    penalty = type("Penalty", (), {"__call__": lambda self, scores: (np.zeros(1), 0 * scores)})()
    for criterion in (
        Criterion(CoxPartial(target), Mean(), mass),
        Criterion(CoxPartial(target, "efron"), chi, mass),
        Criterion(split, chi, mass),
        Criterion(split, chi, mass, HALVES[:1]),
        Criterion(split, chi, mass, HALVES[::-1]),
        Criterion(split, Mean(), mass, HALVES),
        Criterion(CoxPartial(target), chi, mass, penalty=penalty),
        Criterion(CoxPartial(target), chi, mass, [np.arange(N // 2)]),
    ):
        network = Linear(X, np.zeros((1, D)))
        assert compiled_adam(network, criterion, np.array([0.05]), STEPS) is None
        assert not network.parameters[0].any()


@pytest.mark.parametrize(
    ("given", "compiled"),
    [
        ({"max_iter": 1}, True),
        ({"network": MLP(max_iter=1)}, False),
        ({"network": MLP(module=lambda d: torch.nn.Linear(d, 1), max_iter=1)}, False),
        ({"network": MLP((), batch_size=10, max_iter=1)}, False),
        ({"network": MLP((), early_stopping=True, validation_fraction=0.5, max_iter=1)}, False),
    ],
)
def test_only_linear_models_of_all_patients_go_through_the_compiled_loop(given, compiled, monkeypatch):
    def caught(*arguments):
        raise RuntimeError("compiled")

    monkeypatch.setattr("drosurv.solvers.solver.compiled_adam", caught)
    X, target = sample()
    model = DROCox(alpha=0.3, solver="adam", random_state=0, **given)
    if not compiled:
        model.fit(X, target.to_structured())
        return
    with pytest.raises(RuntimeError, match="compiled"):
        model.fit(X, target.to_structured())


def test_split_training_equals_torchs_adam(torch_adam):
    X, target = sample()
    in_first = np.arange(N) % 3 == 0
    rows = [np.flatnonzero(in_first), np.flatnonzero(~in_first)]
    module = build(linear, D, seed=1).double()
    network = Linear(X, coefficients(module))
    criterion = Criterion(CoxSplit(target, in_first), ChiSquare(0.3), uniform_mass(N), rows)
    history = adam(network, criterion, np.array([0.05]), STEPS)
    take_step = torch_adam(module.parameters(), 0.05)
    features, (event, time) = torch.as_tensor(X), tensors(target)
    for step in range(STEPS):
        scores = module(features)[:, 0]
        value = sum(
            chi_square(cox_split(scores[a], event[a], time[a], scores[b], time[b]), 0.3)
            for a, b in (rows, rows[::-1])
        )
        value.backward()
        take_step()
        assert history[0, step] == pytest.approx(value.item(), rel=1e-8)
    np.testing.assert_allclose(network.parameters[0], coefficients(module), rtol=1e-7, atol=1e-9)


def test_training_through_autograd_is_the_same_training():
    X, target = sample()
    modules = [build(lambda d: mlp(d, (4,)), D, seed=s).double() for s in range(2)]
    lr = np.array([0.02, 0.05])
    alphas = np.array([0.2, 0.5])
    criterion = Criterion(CoxPartial(target), ChiSquare(alphas), uniform_mass(N))
    on_device = TorchCriterion([criterion], 2, "cpu")
    found = adam(ModuleBatch([copy.deepcopy(m) for m in modules], X, "cpu"), on_device, lr, STEPS)
    wanted = adam(ModuleBatch(modules, X), criterion, lr, STEPS)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_penalties_are_added_times_their_weight_on_either_path():
    target = sample()[1]

    class Spread:
        """Sum of squared scores, as an array and as a tensor."""

        def __call__(self, scores):
            return (scores**2).sum(-1), 2 * scores

        def torch(self, scores):
            return (scores**2).sum(-1)

    weights, penalty, scores = np.array([0.5, 2.0]), Spread(), np.random.default_rng(0).normal(size=(2, N))
    criterion = Criterion(
        CoxPartial(target), Mean(), uniform_mass(N), penalty=penalty, penalty_weight=weights
    )
    value, gradient, _ = criterion(scores)
    bare = Criterion(CoxPartial(target), Mean(), uniform_mass(N))
    plain, slope, _ = bare(scores)
    np.testing.assert_allclose(value, plain + weights * (scores**2).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(gradient, slope + 2 * weights[:, None] * scores, rtol=1e-12)
    on_device = TorchCriterion([criterion], 2, "cpu")(torch.as_tensor(scores))
    np.testing.assert_allclose(on_device[0], value, rtol=1e-12)
    np.testing.assert_allclose(on_device[1], gradient, rtol=1e-9, atol=1e-12)


def test_every_finished_step_is_told_and_none_may_be_asked_for():
    X, target = sample()
    criterion, told = Criterion(CoxPartial(target), Mean(), uniform_mass(N)), []
    adam(Linear(X, np.zeros((1, D))), criterion, np.array([0.1]), 5, on_step=told.append)
    assert told == [1, 2, 3, 4, 5]
    assert adam(Linear(X, np.zeros((2, D))), criterion, np.array([0.1, 0.1]), 0).shape == (2, 0)


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
    batches = MiniBatches(network, lambda rows: None, np.arange(n), size, seed=0)
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
        batches = MiniBatches(network, lambda rows: None, np.arange(20), 5, seed)
        for _ in range(4):
            batches.scores()
    assert np.array_equal(np.concatenate(first.seen), np.concatenate(second.seen))
    assert not np.array_equal(np.concatenate(first.seen), np.concatenate(other.seen))


def test_a_step_trains_on_the_loss_among_its_patients():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(12, 2)), Target(np.ones(12, bool), rng.random(12))
    criterion = Criterion(CoxPartial(target), Mean(), uniform_mass(12))
    network = Linear(X, rng.normal(size=(1, 2)))
    batches = MiniBatches(network, criterion.take, np.arange(12), 4, seed=0)
    scores = batches.scores()
    value, gradient, _ = batches(scores)
    rows = np.array_split(np.random.default_rng(0).permutation(12), 3)[0]
    own = Criterion(CoxPartial(target.take(rows)), Mean(), uniform_mass(4))
    wanted, slope, _ = own((X[rows] @ network.parameters[0][0])[None, :])
    assert value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(batches.pullback(gradient)[0], slope @ X[rows], rtol=1e-10)
