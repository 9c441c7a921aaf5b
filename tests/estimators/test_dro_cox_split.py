"""DRO-COX with sample splitting, and the halves that it draws."""

import warnings

import numpy as np
import pytest

from drosurv import DROCoxSplit
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.objective import uniform_mass

from .test_dro_cox import sample


def split_losses(risk, y, in_first):
    """Losses of all patients against the half they are not in, from the definition."""
    out = np.zeros(len(y))
    for i in np.flatnonzero(y["event"]):
        others = (in_first != in_first[i]) & (y["time"] >= y["time"][i])
        out[i] = np.log(np.exp(risk[i]) + np.exp(risk[others]).sum()) - risk[i]
    return out


@pytest.mark.parametrize("solver", ["convex", "adam"])
@pytest.mark.parametrize("n1", [0.5, 0.3])
def test_each_half_has_its_own_worst_case(n1, solver):
    X, y = sample()
    model = DROCoxSplit(
        0.3, n1=n1, shuffle=False, solver=solver, max_iter=100, random_state=0, recalibrate=False
    ).fit(X, y)
    in_first = np.arange(200) < round(200 * n1)
    losses = split_losses(model.predict(X), y, in_first)
    halves = [ChiSquare(0.3)(losses[None, half], uniform_mass(half.sum())) for half in (in_first, ~in_first)]
    assert model.objective_ == pytest.approx(sum(half.value[0] for half in halves), rel=1e-9)
    assert isinstance(model.eta_, tuple)
    assert model.eta_ == pytest.approx(tuple(half.eta[0] for half in halves), rel=1e-9)
    weights = model.worst_case_weights_
    assert weights[in_first].sum() == pytest.approx(0.5, abs=1e-12)
    assert weights[~in_first].sum() == pytest.approx(0.5, abs=1e-12)
    np.testing.assert_allclose(2 * weights[in_first], halves[0].weights[0], atol=1e-9)
    np.testing.assert_allclose(2 * weights[~in_first], halves[1].weights[0], atol=1e-9)


@pytest.mark.parametrize("ball", ["chi2", "paper", "cvar"])
def test_one_side_looks_at_the_first_half_only(ball):
    X, y = sample()
    model = DROCoxSplit(0.4, ball, sides="one", shuffle=False, recalibrate=False).fit(X, y)
    in_first = np.arange(200) < 100
    losses = split_losses(model.predict(X), y, in_first)
    assert model.converged_
    assert len(model.eta_) == 1
    assert (model.worst_case_weights_[~in_first] == 0).all()
    assert model.worst_case_weights_.sum() == pytest.approx(1, abs=1e-12)
    assert model.worst_case_weights_ @ losses == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("n1", [0.5, 0.2, 0.73])
def test_halves_have_their_share_of_patients_and_of_events(n1):
    X, y = sample(n=157)
    model = DROCoxSplit(1.0, n1=n1, random_state=3, recalibrate=False).fit(X, y)
    # With alpha = 1 all patients of a half weigh the same, 1 / (2 n_half).
    sizes = np.round(1 / (2 * model.worst_case_weights_)).astype(int)
    first = sizes == sizes.min() if n1 < 0.5 else sizes == sizes.max()
    if n1 == 0.5:
        first = sizes == 78
    assert abs(first.sum() - n1 * 157) <= 1
    events = y["event"]
    assert abs(first[events].sum() - n1 * events.sum()) <= 1


def test_shuffling_follows_the_seed_and_can_be_switched_off():
    X, y = sample()
    first, same = (DROCoxSplit(random_state=1, recalibrate=False).fit(X, y).coef_ for _ in range(2))
    other = DROCoxSplit(random_state=2, recalibrate=False).fit(X, y).coef_
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    plain = [
        DROCoxSplit(shuffle=False, random_state=seed, recalibrate=False).fit(X, y).coef_ for seed in (1, 2)
    ]
    assert np.array_equal(*plain)


def test_training_and_reporting_see_the_same_halves():
    X, y = sample()
    # Without a seed every fit draws its own halves, but only once.
    model = DROCoxSplit(0.3, solver="adam", lr=1e-9, max_iter=1, recalibrate=False).fit(X, y)
    assert model.objective_ == pytest.approx(model.history_[0], rel=1e-6)


def test_weights_are_copies_inside_each_half():
    X, y = sample()
    counts = np.tile([1, 2, 1, 3], 50)
    rows = np.repeat(np.arange(200), counts)
    weighted = DROCoxSplit(0.3, shuffle=False, recalibrate=False).fit(X, y, sample_weight=counts)
    # Both halves hold the same copies, so the first half of the rows is the same patients.
    copied = DROCoxSplit(0.3, shuffle=False, recalibrate=False).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-8)
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-10)
    assert weighted.eta_ == pytest.approx(copied.eta_, rel=1e-8)


def test_a_half_smaller_than_the_ball_is_said():
    X, y = sample(n=45)
    # 1/C^2 = 0.1, and nine patients of D1 weigh 1/9 each; those of D2 1/36.
    with pytest.warns(UserWarning, match=r"alpha=0.1 protects groups .* use alpha > 0.1112"):
        model = DROCoxSplit(0.1, n1=0.2, shuffle=False, l2=0.01, recalibrate=False).fit(X, y)
    losses = split_losses(model.predict(X), y, np.arange(45) < 9)
    second = ChiSquare(0.1)(losses[None, 9:], uniform_mass(36)).value[0]
    ridge = 0.005 * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(losses[:9].max() + second + ridge, rel=1e-8)
    assert model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DROCoxSplit(0.112, n1=0.2, shuffle=False, l2=0.01, recalibrate=False).fit(X, y)
        DROCoxSplit(0.5, n1=np.float32(0.5), recalibrate=False).fit(X, y)
