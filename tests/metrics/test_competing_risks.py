import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import FollowUp, calibration_at, concordance_index, dynamic_auc, uno_concordance
from drosurv.metrics.brier import brier_estimates, brier_scores
from drosurv.metrics.competing_risks import brier_score_by_cause, calibration_by_cause, concordance_by_cause
from drosurv.metrics.nonparametric import aalen_johansen
from drosurv.patients.target import CompetingTarget, Surv


def cohort(seed, n=300, causes=2, censored=True):
    """Two causes with constant hazards exp(x) and .5; the incidence of the first is known."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    hazards = np.column_stack([np.exp(x), np.full(n, 0.5)])[:, :causes]
    times = rng.exponential(size=(n, causes)) / hazards
    cause, time = times.argmin(axis=1) + 1, times.min(axis=1)
    end = rng.uniform(0.3, 4, n) if censored else np.full(n, np.inf)
    return x, np.where(time <= end, cause, 0), np.minimum(time, end)


def true_incidence(x, at, other=0.5):
    total = np.exp(x)[:, None] + other
    return np.exp(x)[:, None] / total * (1 - np.exp(-total * at))


AT = np.array([0.5, 1.0, 2.0])


def test_without_censoring_the_brier_score_is_the_mean_squared_error():
    x, cause, time = cohort(0, censored=False)
    predicted = true_incidence(x, AT)
    follow_up = FollowUp.parse(Surv.from_arrays(cause > 0, time))
    for k in (1, 2):
        happened = (time[:, None] <= AT) & (cause == k)[:, None]
        expected = ((happened - predicted) ** 2).mean(axis=0)
        np.testing.assert_allclose(
            brier_score_by_cause(follow_up, cause, time, predicted, AT, of=k), expected
        )


def test_censoring_weights_recover_the_score_of_everybody():
    x, cause, time = cohort(1, n=40_000)
    follow_up = FollowUp.parse(Surv.from_arrays(cause > 0, time))
    found = brier_score_by_cause(follow_up, cause, time, true_incidence(x, AT), AT)
    x, cause, time = cohort(2, n=40_000, censored=False)
    whole = FollowUp.parse(Surv.from_arrays(cause > 0, time))
    np.testing.assert_allclose(
        found, brier_score_by_cause(whole, cause, time, true_incidence(x, AT), AT), atol=0.01
    )


def test_with_one_cause_all_numbers_are_the_ordinary_ones():
    x, cause, time = cohort(3, causes=1)
    y = Surv.from_arrays(cause > 0, time)
    follow_up = FollowUp.parse(y)
    predicted = true_incidence(x, AT, other=0.0)
    assert concordance_by_cause(cause, time, x) == concordance_index(y, x)
    table = calibration_by_cause(cause, time, predicted, AT)
    ordinary = calibration_at(y, 1 - predicted, AT, times=AT)
    np.testing.assert_allclose(table["observed"], 1 - ordinary["observed"])
    np.testing.assert_allclose(table["others_censored"], table["observed"])
    # The integral over two times is the mean of the scores at them.
    two = brier_score_by_cause(follow_up, cause, time, predicted[:, :2], AT[:2])
    assert two.mean() == pytest.approx(next(brier_scores(follow_up, y, 1 - predicted[:, :2], AT[:2])).mean())


def test_the_right_incidence_is_calibrated_and_censoring_other_causes_overstates_it():
    x, cause, time = cohort(4, n=20_000)
    table = calibration_by_cause(cause, time, true_incidence(x, AT), AT)
    assert (table["low"] < table["predicted"]).all()
    assert (table["predicted"] < table["high"]).all()
    assert (table["others_censored"] > table["observed"] + 0.03).all()
    np.testing.assert_allclose(table["observed"], aalen_johansen(cause, time).at(AT))


def test_concordance_ranks_the_event_above_those_who_have_it_later_or_never():
    x, cause, time = cohort(5, n=80)
    right = pairs = 0.0
    for i in np.flatnonzero(cause == 1):
        for j in range(80):
            later = time[j] > time[i] or (time[j] == time[i] and cause[j] == 0)
            if j != i and (later or cause[j] == 2):
                pairs += 1
                right += (x[i] > x[j]) + 0.5 * (x[i] == x[j])
    assert concordance_by_cause(cause, time, x) == pytest.approx(right / pairs)


def test_patients_without_weight_have_no_score_and_a_warning_says_so():
    nobody = np.zeros(2)
    y = Surv.from_arrays([True, False], [1.0, 2.0])
    with pytest.warns(UndefinedMetricWarning, match="the Brier score of a cause is undefined"):
        score = brier_score_by_cause(
            FollowUp.parse(y), [1, 0], y["time"], [[0.5]] * 2, [1.5], sample_weight=nobody
        )
    assert np.isnan(score).all()
    with pytest.warns(UndefinedMetricWarning, match="mean predicted incidence is undefined"):
        table = calibration_by_cause([1, 0], y["time"], [[0.5]] * 2, [1.5], sample_weight=nobody)
    assert table[["predicted", "observed", "difference"]].isna().all(axis=None)
    with pytest.warns(UndefinedMetricWarning, match="mean predicted survival is undefined"):
        table = calibration_at(y, [[0.5]] * 2, [1.5], times=[1.0], sample_weight=nobody)
    assert table[["predicted", "observed", "difference"]].isna().all(axis=None)


def one_of_two_causes(seed, n=120):
    """Tied times of two causes, with shorter follow-up in the second half, and incidences that tell little."""
    rng = np.random.default_rng(seed)
    time, end = rng.exponential(1.0, n), rng.exponential(np.where(np.arange(n) < n / 2, 4.0, 0.8))
    cause = np.where(time > end, 0, rng.integers(1, 3, n))
    target = CompetingTarget(cause, np.ceil(4 * np.minimum(time, end)) / 4).among_others(2)
    return target, np.sort(rng.uniform(0, 1, (n, 3)), axis=1)


def test_weights_of_patients_count_them_as_often_where_another_cause_is_known():
    target, incidence = one_of_two_causes(0)
    weight = np.random.default_rng(1).integers(0, 3, len(target))
    rows, follow_up = np.repeat(np.arange(len(target)), weight), FollowUp.of(target)
    risk, copies = incidence[:, 1], target.take(rows)
    for metric in (
        lambda target, risk, w=None: concordance_index(target, risk, w),
        lambda target, risk, w=None: uno_concordance(follow_up, target, risk, sample_weight=w),
        lambda target, risk, w=None: dynamic_auc(follow_up, target, risk, [0.5, 1.25], sample_weight=w),
    ):
        assert metric(target, risk, weight) == pytest.approx(metric(copies, risk[rows]))


def test_groups_of_different_follow_up_have_their_own_weights_where_another_cause_is_known():
    target, incidence = one_of_two_causes(2)
    at, half = np.array([0.25, 0.5, 0.75]), np.arange(len(target)) < 60
    for inside in (half, ~half):
        own = target.take(inside)
        cause = np.where(own.event, 2, np.where(own.other, 1, 0))
        brier = brier_score_by_cause(FollowUp.of(own), cause, own.time, incidence[inside], at, of=2)
        found = brier_estimates(target, 1 - incidence, at, inside.astype(float)).score
        assert found.value == pytest.approx(brier @ [0.25, 0.5, 0.25])
