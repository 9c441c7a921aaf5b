"""Training many settings at once gives what training each alone gives."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

from drosurv import MLP, CoxPH, DeepHit, DROCox, DROCoxSplit, GroupDROCox, RegularizedCox
from drosurv.datasets import make_hidden_minority
from experiments.grid import batches, fit_grid, fit_grids


@pytest.fixture(scope="module")
def data():
    return make_hidden_minority(n_samples=200, random_state=0)


def settings(estimator, **grid):
    ((name, values),) = grid.items()
    return [clone(estimator).set_params(**{name: value}) for value in values]


@pytest.mark.parametrize(
    "grid",
    [
        settings(CoxPH(solver="adam", max_iter=20, random_state=0), lr=[0.1, 0.01]),
        settings(CoxPH(), l2=[0.0, 1.0]),
        settings(
            DROCox(solver="adam", max_iter=20, random_state=0, recalibrate=False), alpha=[0.2, 0.5, 1.0]
        ),
        settings(
            DROCoxSplit(network=MLP(hidden=(4,), max_iter=10), random_state=0, recalibrate=False),
            alpha=[0.3, 0.6],
        ),
        settings(RegularizedCox("rp_group", max_iter=10, random_state=0), weight=[0.0, 1.0]),
        settings(GroupDROCox(tol=1e-3, recalibrate=False), alpha=[0.3, 0.6]),
        settings(DeepHit(4, random_state=0, network=MLP(max_iter=5)), alpha=[1.0, 0.5]),
        [
            DROCox(ball="cvar", recalibrate=False),
            CoxPH(),
            DROCox(recalibrate=False),
            DROCox(alpha=0.5, recalibrate=False),
        ],
    ],
    ids=["lr", "convex", "alpha", "mlp", "penalty", "alone", "halves", "mixed"],
)
def test_each_comes_out_as_if_fitted_alone(grid, data):
    labels = np.where(data.X.iloc[:, 0] > 0, "a", "b")
    together = [clone(model) for model in grid]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_grid(together, data.X, data.y, sensitive_features=labels)
    for one, model in zip(together, grid, strict=True):
        alone = clone(model)
        needs = isinstance(model, (RegularizedCox, GroupDROCox))
        alone.fit(data.X, data.y, **({"sensitive_features": labels} if needs else {}))
        found, expected = one.predict(data.X), alone.predict(data.X)
        if hasattr(alone, "network_"):
            # A Cox loss does not see a shift of all scores: float32's rounding alone decides where a bias goes.
            found, expected = found - found.mean(), expected - expected.mean()
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert one.objective_ == pytest.approx(alone.objective_, rel=1e-5)
        assert one.feature_names_in_.tolist() == data.X.columns.tolist()


@pytest.mark.parametrize("layer", [lambda: torch.nn.BatchNorm1d(5), lambda: torch.nn.Dropout(0.4)])
@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_networks_with_running_means_or_dropout_come_out_as_if_fitted_alone(layer, device, data):
    def make(d):
        # No last bias: the loss does not see it, so rounding alone would decide where it goes.
        last = torch.nn.Linear(5, 1, bias=False)
        return torch.nn.Sequential(torch.nn.Linear(d, 5), layer(), torch.nn.Tanh(), last)

    grid = settings(
        CoxPH(MLP(module=make, max_iter=5), random_state=0, device=device), network__lr=[0.1, 0.01]
    )
    fit_grid(grid, data.X, data.y)
    for model in grid:
        np.testing.assert_allclose(
            model.predict(data.X), clone(model).fit(data.X, data.y).predict(data.X), atol=1e-5
        )


def test_a_batch_holds_what_differs_only_in_what_a_batch_may(data):
    grid = [
        DROCox(alpha=0.1, recalibrate=False),
        DROCox(alpha=0.2, lr=0.1, recalibrate=False),
        DROCox(alpha=0.1, ball="cvar", recalibrate=False),
        DROCoxSplit(alpha=0.1, recalibrate=False),
        DROCox(alpha=0.3, network=MLP((3,)), recalibrate=False),
        DROCox(alpha=0.4, network=MLP((3,), lr=0.1), recalibrate=False),
        GroupDROCox(recalibrate=False),
        GroupDROCox(recalibrate=False),
    ]
    assert batches(grid) == [[0, 1], [2], [3], [4, 5], [6, 7]]


def test_networks_that_cannot_be_told_equal_stay_apart():
    first, second = (lambda d: None), (lambda d: None)
    assert batches([CoxPH(first), CoxPH(second), CoxPH(first)]) == [[0, 2], [1]]


def test_several_training_sets_each_keep_their_own_models(data):
    rows = [np.arange(150), np.arange(50, 200)]
    samples = [{"X": data.X.iloc[r], "y": data.y[r]} for r in rows]
    grids = [settings(CoxPH(solver="adam", max_iter=5, random_state=0), lr=[0.1, 0.01]) for _ in rows]
    assert fit_grids(grids, samples) == [[None, None], [None, None]]
    for grid, sample in zip(grids, samples, strict=True):
        for model in grid:
            alone = clone(model).fit(**sample)
            np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-9)


def test_one_that_diverges_is_named_and_the_others_are_fitted(data):
    grid = settings(DROCox(solver="adam", max_iter=5, random_state=0, recalibrate=False), lr=[0.1, 1e308])
    ((fine, diverged),) = fit_grids([grid], [{"X": data.X, "y": data.y}])
    assert fine is None
    assert "diverged" in str(diverged)
    assert np.isfinite(grid[0].predict(data.X)).all()
    with pytest.raises(ValueError, match="diverged"):
        fit_grid([clone(model) for model in grid], data.X, data.y)


def test_wrong_input_is_an_error_and_not_a_divergence(data):
    with pytest.raises(ValueError, match="same number of rows"):
        fit_grids([[CoxPH()]], [{"X": data.X, "y": data.y[:10]}])
    with pytest.raises(ValueError, match="pass sensitive_features"):
        fit_grids([[RegularizedCox("keya_group")]], [{"X": data.X, "y": data.y}])
