import numpy as np
import pytest
from drosurv.insight.subgroup_curve import outcomes_at
from sksurv.metrics import brier_score

from drosurv.metrics.follow_up import FollowUp
from drosurv.target import Surv, Target


def sample(n=200, seed=0):
    rng = np.random.default_rng(seed)
    death, censoring = rng.exponential(size=n), rng.exponential(1.5, size=n)
    return Target(death <= censoring, np.minimum(death, censoring)), death, rng


def test_mean_loss_is_the_brier_score_of_scikit_survival():
    (train, _, _), (target, _, rng) = sample(300, 1), sample(seed=2)
    target = Target(target.event, np.minimum(target.time, 0.95 * train.time.max()))
    survival = rng.random(200)
    outcomes = outcomes_at(0.5, target, FollowUp.parse(train), "ipcw", survival)
    y_train, y = (Surv.from_arrays(t.event, t.time) for t in (train, target))
    _, expected = brier_score(y_train, y, survival[:, None], [0.5])
    assert outcomes.losses(survival).mean() == pytest.approx(expected[0])


def test_losses_stay_within_the_bound_and_reach_it():
    (train, _, _), (target, _, _) = sample(300, 1), sample(seed=2)
    outcomes = outcomes_at(0.5, target, FollowUp.parse(train), "ipcw", np.zeros(200))
    assert outcomes.losses(np.zeros(200)).max() == pytest.approx(outcomes.bound)
    assert outcomes.losses(np.ones(200)).max() <= outcomes.bound


def test_worst_case_is_never_below_the_true_loss_and_equal_where_the_status_is_known():
    target, death, rng = sample()
    survival = rng.random(200)
    losses = outcomes_at(0.5, target, FollowUp.parse(target), "worst_case", survival).losses(survival)
    truth = ((death > 0.5) - survival) ** 2
    known = target.event | (target.time > 0.5)
    np.testing.assert_allclose(losses[known], truth[known])
    assert (losses >= truth - 1e-15).all()
    np.testing.assert_allclose(losses[~known], np.maximum(survival, 1 - survival)[~known] ** 2)


@pytest.mark.parametrize(
    ("horizon", "censoring", "message"),
    [
        (0.0, "ipcw", "horizon=0.0 lies outside the follow-up of y"),
        (50.0, "worst_case", "horizon=50.0 lies outside the follow-up of y"),
        (1.5, "ipcw", "beyond the follow-up of the training set"),
        (0.5, "drop", "censoring must be"),
    ],
)
def test_horizons_without_knowledge_are_refused(horizon, censoring, message):
    target, _, _ = sample()
    short = Target(target.event & (target.time < 1), np.minimum(target.time, 1.0))
    with pytest.raises(ValueError, match=message):
        outcomes_at(horizon, target, FollowUp.parse(short), censoring, np.zeros(200))
