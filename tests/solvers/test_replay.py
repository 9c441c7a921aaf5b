"""A recorded step never waits for the device: shown on torch's "meta" device, which has no numbers to wait for."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from drosurv.losses import TorchLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean, uniform_mass
from drosurv.paper.penalties import PENALTIES
from drosurv.patients.target import Target
from drosurv.solvers import Criterion, TorchCriterion
from drosurv.solvers.adam import EarlyStopping, adam, make_step
from drosurv.solvers.device import Replay
from drosurv.solvers.networks import DeviceLinear, ModuleBatch, build, mlp

N, D, SETTINGS = 40, 3, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
TARGET = Target(RNG.random(N) < 0.7, np.ceil(10 * RNG.exponential(size=N) * np.exp(-X[:, 0])))
HALF = np.arange(N) % 3 == 0
HALVES = [np.flatnonzero(HALF), np.flatnonzero(~HALF)]
WEIGHT, MASS, ALPHAS = np.arange(N) % 4 + 1.0, uniform_mass(N), np.array([0.2, 0.6])
CRITERIA = {
    "mean": lambda: Criterion(CoxPartial(TARGET), Mean(), MASS),
    "chi2": lambda: Criterion(CoxPartial(TARGET, "breslow", WEIGHT), ChiSquare(ALPHAS), MASS),
    "efron, cvar": lambda: Criterion(CoxPartial(TARGET, "efron"), CVaR(ALPHAS), MASS),
    "split": lambda: Criterion(CoxSplit(TARGET, HALF), ChiSquare(ALPHAS), MASS, HALVES),
    "regrets": lambda: Criterion(CoxPartial(TARGET), CVaR(ALPHAS), MASS, null_losses=np.linspace(0, 1, N)),
    "full": lambda: Criterion(PiecewiseExponential(TARGET, 4), Mean(), MASS),
    "full, chi2": lambda: Criterion(PiecewiseExponential(TARGET, 4), ChiSquare(ALPHAS), MASS),
}


@pytest.fixture(scope="module", autouse=True)
def no_compiler():
    """Without numbers torch asks its compiler to leave functions alone: importing it takes longer than these tests."""
    with pytest.MonkeyPatch.context() as patch:
        if "torch._dynamo" not in sys.modules:
            compiler = SimpleNamespace(disable=lambda function, *_, **__: function)
            patch.setitem(sys.modules, "torch._dynamo", compiler)
            patch.setattr(torch, "_dynamo", compiler, raising=False)
        yield


def perceptrons(device):
    return ModuleBatch([build(lambda d: mlp(d, (4,)), D, seed=s) for s in range(SETTINGS)], X, device)


NETWORKS = {
    "linear": lambda: DeviceLinear([X], np.zeros((SETTINGS, D)), "meta"),
    "mlp": lambda: perceptrons("meta"),
}


def step_without_numbers(network, criterion):
    """Two steps where every tensor has a shape and no numbers: what reads one raises."""
    extra = criterion.first_extra(torch.float32)
    step = make_step(network, criterion, np.array([0.01, 0.05]), l2=0.1, extra=extra)
    return [step().shape for _ in range(2)]


# The network only gives the scores: two criteria take those of perceptrons.
@pytest.mark.parametrize(
    ("name", "network"), [*((name, "linear") for name in CRITERIA), ("split", "mlp"), ("full, chi2", "mlp")]
)
def test_no_step_reads_a_number(name, network):
    criterion = TorchCriterion([CRITERIA[name]()], SETTINGS, "meta")
    assert step_without_numbers(NETWORKS[network](), criterion) == [(SETTINGS,)] * 2


@pytest.mark.parametrize("name", sorted(PENALTIES))
def test_no_step_of_a_penalty_reads_a_number(name):
    penalty = PENALTIES[name](X, TARGET, np.arange(N) % 3, 3, 0.1)
    penalised = Criterion(CoxPartial(TARGET), Mean(), MASS, penalty=penalty, penalty_weight=np.ones(SETTINGS))
    criterion = TorchCriterion([penalised], SETTINGS, "meta")
    assert step_without_numbers(NETWORKS["linear"](), criterion) == [(SETTINGS,)] * 2


def test_a_function_that_reads_a_number_is_noticed_and_never_recorded():
    def reading(scores, event, time):
        return scores * float(scores.max()) * time

    loss = TorchLoss(reading, TARGET)
    assert not loss.recordable
    criterion = TorchCriterion([Criterion(loss, Mean(), MASS)], SETTINGS, "meta")
    with pytest.raises((RuntimeError, NotImplementedError)):
        step_without_numbers(NETWORKS["linear"](), criterion)


def test_torchs_own_layers_alone_are_recorded():
    class Mine(torch.nn.Linear):
        pass

    def recordable(module):
        batch = ModuleBatch([module], X, "cpu")
        batch.X = type("OnCuda", (), {"is_cuda": True})()
        return batch.recordable

    assert recordable(mlp(D, (4,), dropout=0.3))
    assert not recordable(torch.nn.Sequential(Mine(D, 1)))
    assert not recordable(torch.nn.Sequential(torch.nn.BatchNorm1d(D), torch.nn.Linear(D, 1)))
    assert not ModuleBatch([mlp(D)], X, "cpu").recordable


def test_first_calls_count_and_the_recording_is_repeated(monkeypatch):
    total, recordings = torch.zeros(1), []

    def work():
        total.add_(1.0)
        return total * 10

    class Graph:
        def replay(self):
            # As a graph does, into the tensor that the recording gave.
            replayed._out.copy_(work())

    def record(graph, **_):
        recordings.append(graph)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: None)
    replayed = Replay(work)
    assert [float(replayed()) for _ in range(3)] == [10.0, 20.0, 30.0]
    assert not recordings
    # This recording runs its work once, where a graph's runs nothing.
    later = [float(replayed()) for _ in range(2)]
    assert len(recordings) == 1
    assert later == [50.0, 60.0]


def test_early_stopping_on_tensors_equals_that_on_arrays():
    found = []
    for device in (None, "cpu"):
        network, rows, held = perceptrons(device), np.arange(0, N, 2), np.arange(1, N, 2)
        plain = [Criterion(CoxPartial(TARGET), Mean(), MASS).take(part) for part in (rows, held)]
        training, judge = plain if device is None else [TorchCriterion([c], SETTINGS, device) for c in plain]
        stopping = EarlyStopping(network.take(held), judge, n_iter_no_change=5)
        history = adam(network.take(rows), training, np.array([0.05, 0.1]), 60, on_step=stopping.stops)
        stopping.restore()
        # The last bias moves no loss: rounding moves it.
        weights = network.parameters[0][:, :-1].numpy()
        found.append((stopping.best, stopping.best_epoch, weights, history))
    for there, here in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-3, atol=1e-4)
    assert found[0][3].shape[1] < 60
