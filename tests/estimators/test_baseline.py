import numpy as np
import pytest

from drosurv.datasets import make_hidden_minority
from drosurv.estimators import AcceleratedFailureTime, CoxPH
from drosurv.estimators.base import cox_baseline
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import Target
from drosurv.predictions import as_predictions


def sample(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return Target(rng.random(n) < 0.6, rng.integers(1, 15, n).astype(float)), rng.normal(size=n)


def breslow(target, scores, weight=None):
    """The baseline of a Cox model without strata, which needs no other data."""
    return cox_baseline(CoxPartial(target, weight=weight), None, scores, None)


@pytest.mark.parametrize("weighted", [False, True])
def test_breslows_estimate_follows_its_definition(weighted):
    target, scores = sample()
    weight = np.random.default_rng(1).uniform(0.5, 2, 80) if weighted else np.ones(80)
    found = breslow(target, scores, weight if weighted else None)
    total, wanted = 0.0, [0.0]
    for t in np.unique(target.time[target.event]):
        events = weight[target.event & (target.time == t)].sum()
        total += events / (weight * np.exp(scores))[target.time >= t].sum()
        wanted.append(total)
    np.testing.assert_allclose(np.exp(found.log_cumulative), wanted, rtol=1e-12)
    np.testing.assert_array_equal(found.times[1:], np.unique(target.time[target.event]))


@pytest.mark.parametrize("shift", [-900.0, 900.0])
def test_scores_of_any_size_give_a_baseline(shift):
    target, scores = sample()
    plain, moved = breslow(target, scores), breslow(target, scores + shift)
    np.testing.assert_allclose(
        moved.cumulative_hazard(scores + shift), plain.cumulative_hazard(scores), rtol=1e-9
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_efrons_curves_let_tied_events_leave_one_after_the_other(weighted):
    # By the definition, as R's survfit(coxph(..., ties = "efron")): each of m tied events meets the risk of all at
    # risk less the mean share of those who went before it.
    target, scores = sample()
    X = scores[:, None]
    weight = np.random.default_rng(1).integers(1, 4, len(scores)).astype(float) if weighted else None
    model = CoxPH(ties="efron").fit(X, target.to_structured(), weight)
    w = np.ones(len(scores)) if weight is None else weight
    risk, hazard, expected = w * np.exp(model.predict(X)), 0.0, {}
    for t in np.unique(target.time[target.event]):
        tied = target.event & (target.time == t)
        m = tied.sum()
        left = [risk[target.time >= t].sum() - k / m * risk[tied].sum() for k in range(m)]
        hazard += w[tied].mean() * sum(1 / part for part in left)
        expected[t] = hazard
    for t, wanted in expected.items():
        assert model.cum_baseline_hazard_(t) == pytest.approx(wanted, rel=1e-9)
    breslow = CoxPH(ties="breslow").fit(X, target.to_structured(), weight).cum_baseline_hazard_
    assert abs(breslow(14.0) - hazard) > 0.05


@pytest.mark.parametrize("model", [CoxPH(), AcceleratedFailureTime()], ids=["cox", "aft"])
def test_survival_at_own_times_is_that_of_the_curve(model):
    data = make_hidden_minority(n_samples=400, random_state=0)
    model.fit(data.X, data.y)
    times = np.random.default_rng(0).uniform(0, 1.2 * data.y["time"].max(), 400)
    own = as_predictions(model, data.X, 400).curves.survival(times[:, None])[:, 0]
    every = model.predict_survival_function(data.X, times=times)
    np.testing.assert_allclose(own, np.diag(every), rtol=1e-12, atol=1e-15)


def test_conditional_curves_start_at_the_survival_of_the_own_stratum():
    data = make_hidden_minority(n_samples=400, random_state=0)
    strata = np.where(data.X["x1"] > 0, "a", "b")
    model = CoxPH().fit(data.X, data.y, strata=strata)
    known = np.random.default_rng(0).uniform(0, np.median(data.y["time"]), 400)
    at = np.array([data.y["time"].max()])
    found = model.predict_survival_function(data.X, times=at, strata=strata, conditional_after=known)[:, 0]
    every = model.predict_survival_function(data.X, times=np.append(at, known), strata=strata)
    np.testing.assert_allclose(found, every[:, 0] / np.diag(every[:, 1:]), rtol=1e-9)
