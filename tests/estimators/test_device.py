import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, RegularizedCox
from drosurv.paper.penalties import PENALTIES
from drosurv.patients.target import Surv, with_fields
from drosurv.solvers.device import Replay, resolve_device, worth_moving, worth_solving_on_accelerator
from drosurv.solvers.solver import _choose_device
from experiments.grid import fit_grid, fit_grids, fit_together

# The same processor, by the name that leads through the accelerator's code.
AS_DEVICE = "cpu:0"
STEPS = 8


class Sample(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    sensitive_features: np.ndarray


def sample(seed, n=120, d=5, n_groups=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    groups = rng.integers(n_groups, size=n)
    time = np.ceil(15 * rng.exponential(size=n) * np.exp(-X[:, 0] + 0.5 * X[:, 1] - 0.3 * groups))
    return Sample(X, Surv.from_arrays(rng.random(n) < 0.6, time), groups)


def estimators(device, network, kind, **parameters):
    """Three settings of one kind: what may differ within a batch does."""

    def steps(lr=0.01):
        given = {"lr": lr, "max_iter": STEPS, **parameters}
        return given if network == "linear" else {"network": MLP(hidden=(7,), **given)}

    fixed = {"random_state": 2, "device": device, "solver": "adam"}
    if kind == "plain":
        return [CoxPH(**steps(lr), **fixed) for lr in (0.01, 0.03, 0.1)]
    if kind in PENALTIES:
        settings = [(0.1, 0.01), (0.7, 0.03), (5.0, 0.01)]
        return [RegularizedCox(kind, weight, **steps(lr), **fixed) for weight, lr in settings]
    shared = {**fixed, **steps()}
    family, ball = kind.split(" ", 1)
    if family == "split":
        ball, sides = ball.split(" ")
        return [
            DROCoxSplit(alpha, ball, sides=sides, **shared, recalibrate=False) for alpha in (0.2, 0.5, 1.0)
        ]
    return [DROCox(alpha, ball, **shared, recalibrate=False) for alpha in (0.2, 0.5, 1.0)]


KINDS = [
    "plain",
    "dro chi2",
    "dro paper",
    "dro cvar",
    "split chi2 both",
    "split paper one",
    *sorted(PENALTIES),
]


def assert_same_models(one, other, X, tolerance=5e-4):
    found, expected = one.predict(X), other.predict(X)
    if not isinstance(one, RegularizedCox):
        # The likelihood does not see a shift of all scores, so rounding alone decides where a bias goes.
        found, expected = found - found.mean(), expected - expected.mean()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.history_, other.history_, rtol=tolerance)
    assert one.objective_ == pytest.approx(other.objective_, rel=tolerance)


# The network only gives the scores: some kinds take those of perceptrons.
@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((kind, "linear") for kind in KINDS),
        ("plain", "mlp"),
        ("split chi2 both", "mlp"),
        ("rp_group", "mlp"),
    ],
)
def test_several_training_sets_on_a_device_equal_each_on_the_processor(kind, network):
    # The second set lacks a group.
    samples = [sample(0), sample(2, n_groups=2)]
    on_device = [estimators(AS_DEVICE, network, kind) for _ in samples]
    fit_grids(on_device, [one._asdict() for one in samples])
    for grid, one in zip(on_device, samples, strict=True):
        alone = estimators("cpu", network, kind)
        fit_grid(alone, one.X, one.y, sensitive_features=one.sensitive_features)
        for device_model, model in zip(grid, alone, strict=True):
            assert_same_models(device_model, model, one.X)


@pytest.mark.parametrize("kind", ["plain", "dro chi2", "split chi2 both", "rp_group"])
def test_worst_cases_and_baselines_follow_from_the_device_model(kind):
    one = sample(3)
    models = {}
    for device in (AS_DEVICE, "cpu"):
        models[device] = estimators(device, "linear", kind)[:1]
        fit_grid(models[device], one.X, one.y, sensitive_features=one.sensitive_features)
    (found,), (expected,) = models[AS_DEVICE], models["cpu"]
    np.testing.assert_allclose(
        found.predict_survival_function(one.X, times=[1.0, 5.0, 20.0]),
        expected.predict_survival_function(one.X, times=[1.0, 5.0, 20.0]),
        atol=1e-4,
    )
    assert (found.n_iter_, found.status_) == (expected.n_iter_, expected.status_)
    if kind.startswith(("dro", "split")):
        np.testing.assert_allclose(found.worst_case_weights_, expected.worst_case_weights_, atol=1e-4)
        np.testing.assert_allclose(found.eta_, expected.eta_, rtol=1e-3)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("model", [CoxPH, RegularizedCox])
def test_sample_weights_count_on_a_device(model, ties):
    shared = {"max_iter": STEPS, "random_state": 2, "ties": ties, "solver": "adam", "l2": 0.5}
    assert_weights_count(lambda device: model(device=device, **shared))


@pytest.mark.parametrize(
    ("model", "ball"), [(DROCox, "chi2"), (DROCox, "paper"), (DROCox, "cvar"), (DROCoxSplit, "chi2")]
)
def test_sample_weights_count_in_robust_objectives_on_a_device(model, ball):
    shared = {"max_iter": STEPS, "random_state": 2, "solver": "adam"}
    assert_weights_count(lambda device: model(0.4, ball, device=device, recalibrate=False, **shared))


def assert_weights_count(make):
    one, weight = sample(4), np.random.default_rng(0).integers(1, 4, size=120).astype(float)
    fitted = [make(device).fit(one.X, one.y, weight) for device in (AS_DEVICE, "cpu")]
    assert_same_models(*fitted, one.X)
    unweighted = make(AS_DEVICE).fit(one.X, one.y)
    assert np.abs(unweighted.coef_ - fitted[0].coef_).max() > 1e-3


def test_training_sets_of_two_sizes_are_named():
    models = [estimators(AS_DEVICE, "linear", "plain") for _ in range(2)]
    trainings = [
        grid[0]._training_data(one.X, one.y, None)
        for grid, one in zip(models, [sample(0), sample(1, n=100)], strict=True)
    ]
    with pytest.raises(ValueError, match=r"one shape, got \[\(100, 5\), \(120, 5\)\]"):
        fit_together(models, trainings)


def test_a_models_module_rests_on_the_processor_after_training():
    one = sample(0)
    model = CoxPH(MLP(max_iter=2), device=AS_DEVICE, random_state=0).fit(one.X, one.y)
    assert {str(p.device) for p in model.network_.parameters()} == {"cpu"}
    assert not model.network_.training


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
@pytest.mark.parametrize("make", [lambda d: CoxPH("mlp", device=d), lambda d: RegularizedCox(device=d)])
def test_a_missing_accelerator_is_reported(monkeypatch, make, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    one = sample(0)
    with pytest.raises(
        ValueError, match=f"device='{device}' needs a CUDA device, and torch finds none; use device='cpu'"
    ):
        make(device).fit(one.X, one.y)


@pytest.mark.parametrize(
    ("device", "worthwhile", "available", "expected"),
    [
        ("auto", True, True, "cuda"),
        ("auto", True, False, "cpu"),
        ("auto", False, True, "cpu"),
        ("cpu", True, True, "cpu"),
        ("cuda", False, True, "cuda"),
        ("cuda:1", True, True, "cuda:1"),
    ],
)
def test_auto_moves_only_what_is_worth_moving(monkeypatch, device, worthwhile, available, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert resolve_device(device, worthwhile) == expected


PERCEPTRON = 24 * 9 + 49


@pytest.mark.parametrize(
    ("rows", "models", "network", "moves"),
    [
        # Steps on an H200 and on two cores beside it: 253 us and 1.01 ms, 200 us and .7 ms, 723 us and 10.3 ms, 427 us
        # and 1.35 ms, 297 us and 51 us, 256 us and 5 us, 373 us and 1.42 ms.
        (5_039, 1, True, True),
        (500, 1, True, True),
        (5_039, 180, False, True),
        (5_039, 18, False, True),
        (5_039, 1, False, False),
        (500, 1, False, False),
        (50_000, 1, False, True),
    ],
)
def test_auto_is_the_faster_device_where_both_were_measured(rows, models, network, moves):
    assert worth_moving(rows, models, PERCEPTRON if network else 9, network=network) is moves


def test_auto_leaves_a_small_module_of_the_user_on_the_processor():
    # Its launches take 2.7 ms a step on an H200, the processor 1.4 ms; with 50,000 patients 2.3 and 6.5 ms.
    assert not worth_moving(5_039, 1, PERCEPTRON, network=True, recorded=False)
    assert worth_moving(50_000, 1, PERCEPTRON, network=True, recorded=False)


def test_auto_starts_no_accelerator_for_what_takes_less_than_that():
    # 500 steps took .5 s on the processor, and .15 s on an H200 that was in use already.
    assert not worth_moving(5_039, 1, PERCEPTRON, started=False, network=True)
    assert worth_moving(5_039, 180, 9, started=False)
    assert worth_solving_on_accelerator(100_000, 10)
    assert not worth_solving_on_accelerator(100_000, 10, started=False)
    assert worth_solving_on_accelerator(1_000_000, 10, started=False)


class OwnNetwork(torch.nn.Sequential):
    """A module of the user's, which may read numbers off the device."""

    def __init__(self, features):
        super().__init__(torch.nn.Linear(features, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))


@pytest.mark.parametrize(
    ("network", "sets", "started", "expected"),
    [
        ("mlp", 1, False, "cpu"),
        ("mlp", 12, False, "cuda"),
        ("linear", 1, False, "cpu"),
        ("linear", 180, False, "cuda"),
        ("mlp", 1, True, "cuda"),
        ("mini-batches", 12, True, "cpu"),
        (OwnNetwork, 1, True, "cpu"),
        ("linear", 1, True, "cpu"),
    ],
)
def test_the_rule_counts_rows_models_weights_and_what_is_recorded(
    monkeypatch, network, sets, started, expected
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("drosurv.solvers.solver.cuda_started", lambda: started)
    given = {OwnNetwork: {"module": network}, "mini-batches": {"batch_size": 32}}.get(network, {})
    rates = [0.01 * (k + 1) for k in range(sets)]
    steps = [{"lr": lr} if network == "linear" else {"network": MLP(lr=lr, **given)} for lr in rates]
    grid = [CoxPH(solver="adam", **each) for each in steps]
    one = sample(0)
    data = replace(grid[0]._training_data(one.X, one.y, None), X=np.zeros((5_039, 9)))
    problem = grid[0]._problem(data, grid)
    assert _choose_device([problem], grid[0]._options(grid)) == expected


def test_auto_stays_where_a_loss_is_written_for_the_processor_only(monkeypatch):
    # Entry times have no form in torch; by name the device is an error, by the rule it is left.
    one = sample(0)
    entry = 0.5 * one.y["time"]
    monkeypatch.setattr("drosurv.solvers.solver.resolve_device", lambda device, worthwhile: AS_DEVICE)
    stayed = CoxPH(MLP(max_iter=2), solver="adam", random_state=0).fit(one.X, with_fields(one.y, entry=entry))
    with pytest.raises(ValueError, match="device must be 'auto' or 'cpu'"):
        CoxPH(MLP(max_iter=2), solver="adam", random_state=0, device=AS_DEVICE).fit(
            one.X, with_fields(one.y, entry=entry)
        )
    there = CoxPH(MLP(max_iter=2), solver="adam", random_state=0, device="cpu")
    monkeypatch.undo()
    np.testing.assert_allclose(
        stayed.predict(one.X), there.fit(one.X, with_fields(one.y, entry=entry)).predict(one.X)
    )


def test_watched_patients_stop_training_on_a_device_as_on_the_processor():
    assert_stops_alike("dro chi2", AS_DEVICE, 1e-3)


def assert_stops_alike(kind, device, tolerance):
    samples = [sample(0), sample(1)]
    grids = {}
    for where in (device, "cpu"):
        shared = {"early_stopping": True, "n_iter_no_change": 1, "max_iter": 60}
        grids[where] = [estimators(where, "mlp", kind, **shared)[::2] for _ in samples]
        fit_grids(grids[where], [one._asdict() for one in samples])
    for there, here, one in zip(grids[device], grids["cpu"], samples, strict=True):
        for found, expected in zip(there, here, strict=True):
            assert found.status_ == "stopped_early"
            assert found.n_iter_ == expected.n_iter_
            assert found.history_.shape == expected.history_.shape
            assert_same_models(found, expected, one.X, tolerance)


def test_a_named_device_stops_early_by_default_as_the_processor_does():
    one = sample(0)
    models = [CoxPH("mlp", device=device, random_state=0).fit(one.X, one.y) for device in (AS_DEVICE, "cpu")]
    assert [model.status_ for model in models] == ["stopped_early"] * 2


@pytest.mark.parametrize(("rows", "moves"), [(1_000_000, True), (1_000, False)])
def test_auto_solves_large_models_on_an_accelerator_that_has_room(monkeypatch, rows, moves):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**12, 10**12))
    # No memory is touched.
    X = np.broadcast_to(0.0, (rows, 50))
    assert CoxPH()._on_accelerator(X) is moves
    assert not CoxPH(device="cpu")._on_accelerator(X)
    assert not CoxPH("mlp")._on_accelerator(X)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**6, 10**12))
    assert not CoxPH()._on_accelerator(X)


def test_torch_is_not_imported_where_there_is_no_driver(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr("drosurv.solvers.device._has_driver", lambda: False)
    assert resolve_device("auto", worthwhile=True) == "cpu"
    assert "torch" not in sys.modules


needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="compares with a CUDA device, which is not there"
)


@needs_cuda
@pytest.mark.parametrize("network", ["linear", "mlp"])
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_equals_the_processor(kind, network):
    samples = [sample(0), sample(1)]
    grids = {device: [estimators(device, network, kind) for _ in samples] for device in ("cuda", "cpu")}
    for models in grids.values():
        fit_grids(models, [one._asdict() for one in samples])
    for r, one in enumerate(samples):
        for found, expected in zip(grids["cuda"][r], grids["cpu"][r], strict=True):
            assert_same_models(found, expected, one.X, tolerance=2e-3)


@needs_cuda
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(
    "kind", ["plain", "dro chi2", "dro cvar", "split chi2 both", "rp_group", "keya_group"]
)
def test_cuda_recorded_steps_are_the_plain_ones(monkeypatch, kind, dropout):
    one, recorded = sample(0), []
    record = Replay._record
    monkeypatch.setattr(Replay, "_record", lambda self: (recorded.append(1), record(self))[1])
    grids = []
    for plain in (False, True):
        if plain:
            monkeypatch.setattr("drosurv.solvers.device._WARM_UP", STEPS)
        grids.append(estimators("cuda", "mlp", kind, dropout=dropout))
        fit_grid(grids[-1], one.X, one.y, sensitive_features=one.sensitive_features)
    assert len(recorded) == 1
    for found, expected in zip(*grids, strict=True):
        assert_same_models(found, expected, one.X, tolerance=1e-4)


@needs_cuda
@pytest.mark.parametrize("kind", ["plain", "dro chi2", "rp_group"])
def test_cuda_watched_patients_stop_training_as_on_the_processor(kind):
    assert_stops_alike(kind, "cuda", 5e-3)


@needs_cuda
def test_cuda_trains_a_users_network_step_by_step():
    class Reading(torch.nn.Linear):
        def forward(self, features):
            return super().forward(features) * float(torch.sign(features.sum()).abs())

    one = sample(0)
    network = MLP(module=lambda d: Reading(d, 1), max_iter=10)
    models = [
        CoxPH(network, solver="adam", device=device, random_state=0).fit(one.X, one.y)
        for device in ("cuda", "cpu")
    ]
    assert_same_models(*models, one.X, tolerance=2e-3)


@needs_cuda
def test_cuda_leaves_its_random_numbers_as_they_were():
    one = sample(0)
    torch.cuda.manual_seed(7)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(7)
    CoxPH(MLP(dropout=0.5, max_iter=10), solver="adam", device="cuda", random_state=0).fit(one.X, one.y)
    assert torch.equal(torch.rand(3, device="cuda"), expected)
