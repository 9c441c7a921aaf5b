import threading
from dataclasses import asdict

import joblib
import numpy as np
import pytest
from scipy.stats import poisson

from drosurv.metrics import bootstrap, concordance_index, log_partial_likelihood, observed_over_expected
from drosurv.metrics.inference import Replicates
from drosurv.metrics.inference.intervals import (
    Draws,
    in_parallel,
    normal_interval,
    seed_sequence,
)
from drosurv.observation import generator
from drosurv.target import Surv


def test_few_patients_are_not_shared_among_threads_unless_it_is_asked_for():
    def threads_of(patients, n_jobs=None):
        return {*in_parallel(lambda _: threading.get_ident(), 64, n_jobs, patients)}

    here = {threading.get_ident()}
    assert threads_of(10) == here
    # Workers, which threads are, and not this one.
    assert not threads_of(10, n_jobs=2) & here
    with joblib.parallel_config("threading", n_jobs=2):
        assert not threads_of(10) & here


@pytest.mark.parametrize("seed", ["seven", 1.5, -1])
@pytest.mark.parametrize("seeded", [generator, seed_sequence])
def test_what_is_no_seed_is_named(seeded, seed):
    with pytest.raises(ValueError, match=f"random_state must be a whole number .* got {seed!r}"):
        seeded(seed)


def test_a_generator_is_used_as_it_is():
    given = np.random.default_rng(0)
    assert generator(given) is given
    assert generator(7).random() == np.random.default_rng(7).random()


def cohort(seed=0, n=120):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    y = Surv.from_arrays(rng.random(n) < 0.6, np.ceil(20 * rng.exponential(size=n) / np.exp(risk)))
    return y, risk, rng.choice(["a", "b"], n, p=[0.3, 0.7])


def test_weights_and_rows_give_the_same_replicates():
    y, risk, _ = cohort()
    by_weight = bootstrap(
        lambda weight: [
            concordance_index(y, risk, weight),
            log_partial_likelihood(y, risk, sample_weight=weight),
        ],
        len(y),
        replicates=30,
        random_state=0,
    )
    by_row = bootstrap(
        lambda rows: [concordance_index(y[rows], risk[rows]), log_partial_likelihood(y[rows], risk[rows])],
        len(y),
        resample="rows",
        replicates=30,
        random_state=0,
    )
    np.testing.assert_allclose(by_weight.draws, by_row.draws, rtol=1e-12)
    np.testing.assert_allclose(
        by_weight.estimate, [concordance_index(y, risk), log_partial_likelihood(y, risk)]
    )


def test_interval_of_a_mean_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=400)
    draws = bootstrap(lambda weight: weight @ values / weight.sum(), 400, replicates=4000, random_state=0)
    error = values.std() / 20
    interval = draws.interval(level=0.9)
    assert interval.estimate == pytest.approx(values.mean())
    assert interval.standard_error == pytest.approx(error, rel=0.05)
    assert interval.low == pytest.approx(values.mean() - 1.645 * error, abs=0.1 * error)
    assert interval.high == pytest.approx(values.mean() + 1.645 * error, abs=0.1 * error)
    assert interval.level == 0.9


def test_intervals_are_quantiles_of_the_draws():
    percentile = Replicates(np.array([2.0]), np.arange(101.0)[:, None]).interval(level=0.9)
    assert (percentile.low, percentile.high) == pytest.approx((5.0, 95.0))


@pytest.mark.parametrize("true", [0.0, 0.5, 2.0, 30.0])
def test_the_interval_of_a_distance_allows_for_what_chance_adds(true):
    rng = np.random.default_rng(0)
    place = np.array([true, 0.0, 0.0])
    found = []
    for _ in range(300):
        seen = place + rng.normal(size=3)
        draws = np.linalg.norm(seen + rng.normal(size=(300, 3)), axis=1)
        interval = Draws(np.linalg.norm(seen), draws, lowest=0.0, method="distance").interval(0.9)
        assert interval.low <= interval.estimate <= interval.high
        found.append((interval.low, interval.high))
    low, high = np.array(found).T
    if true == 0:
        # No distance is below 0, so only the lower end can be wrong.
        assert 0.91 < (low == 0).mean() < 0.99
    else:
        assert 0.85 < ((low <= true) & (true <= high)).mean() < 0.97
        assert (low > true).mean() < 0.09


def test_undefined_replicates_are_left_out_and_those_that_are_all_the_same_give_no_interval():
    values = np.ones((10, 2))
    values[:, 1] = np.arange(10)
    values[:3, 1] = np.nan
    interval = Replicates(np.array([1.0, 5.0]), values).interval(1)
    assert 3 <= interval.low <= interval.high <= 9
    same = Replicates(np.array([1.0, 5.0]), values).interval(0)
    assert same.estimate == 1
    assert np.isnan([same.low, same.high]).all()
    assert same.standard_error == 0
    nothing = Replicates(np.array([1.0]), np.full((10, 1), np.nan)).interval()
    assert np.isnan([nothing.low, nothing.high, nothing.standard_error]).all()


def test_the_upper_end_of_the_distance_of_a_curve_is_not_below_that_of_a_normal_interval():
    x = np.linspace(-2, 2, 41)
    curves = np.stack([np.ones(41), x, x**2 - 1.4])
    coef = np.array([0.0, 4.0, 0.0])
    draws = np.abs((coef + np.random.default_rng(0).normal(size=(2_000, 3))) @ curves).mean(axis=1)
    estimate = np.abs(coef @ curves).mean()
    found = Draws(estimate, draws, lowest=0.0, method="distance").interval(0.95)
    assert found.high >= estimate + 1.959 * draws.std()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(np.mean, 5, replicates=1), "at least 2, got 1"),
        (lambda: bootstrap(np.mean, 5, resample="bags"), "'weights' or 'rows', got 'bags'"),
        (lambda: bootstrap(np.mean, 5).interval(level=95), "between 0 and 1, got 95"),
        (lambda: bootstrap(np.mean, 5).interval(method="bca"), "'distance', 't'\\], got 'bca'"),
    ],
)
def test_bad_requests_are_refused_with_the_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_error_that_replicates_lack_widens_the_interval():
    draws = np.random.default_rng(0).normal(size=5000)
    narrow, wide = (
        Draws(0.0, draws).interval(0.95),
        Draws(0.0, draws, further_error=np.sqrt(3.0)).interval(0.95),
    )
    assert wide.high - wide.low == pytest.approx(2 * (narrow.high - narrow.low), rel=0.01)
    unknown = Draws(0.0, draws, further_error=np.nan).interval(0.95)
    np.testing.assert_equal(asdict(unknown), asdict(narrow))


@pytest.mark.parametrize("observed", [0, 3, 27])
def test_ends_are_rates_at_which_so_many_events_have_probability_a_half_alpha(observed):
    found = observed_over_expected(observed, 10.0, level=0.9)
    assert poisson.cdf(observed, 10 * found.high) == pytest.approx(0.05)
    assert (
        found.low == 0 if observed == 0 else poisson.sf(observed - 1, 10 * found.low) == pytest.approx(0.05)
    )


def test_p_value_agrees_with_the_interval():
    for observed in range(1, 30):
        for training in (None, 40):
            found = observed_over_expected(observed, 10.0, training_events=training)
            assert (found.p < 0.05) == (not found.low <= 1 <= found.high)


def test_many_training_events_are_a_given_model():
    alone, trained = observed_over_expected(7, 5.0), observed_over_expected(7, 5.0, training_events=1e9)
    assert (trained.low, trained.high) == pytest.approx((alone.low, alone.high), rel=1e-6)


def test_with_training_events_a_right_rate_is_rarely_rejected():
    # Quantiles at evenly spread points of the unit square, which leave less to chance than draws.
    place = (np.arange(400) + 0.5) / 400
    training = poisson.ppf(place, 100)
    observed = poisson.ppf(np.arange(400) * (np.sqrt(5) - 1) / 2 % 1, 80)
    pairs = list(zip(observed, 80 * training / 100, training, strict=True))
    wrong = [observed_over_expected(o, e, training_events=d).p < 0.05 for o, e, d in pairs]
    assert 0.025 < np.mean(wrong) < 0.055
    # Taken as given, the same models are called wrong too often.
    assert np.mean([observed_over_expected(o, e).p < 0.05 for o, e, _ in pairs[::3]]) > 0.10


def test_no_expected_event_has_no_ratio():
    assert np.isnan(observed_over_expected(0, 0.0).estimate)


def test_normal_interval_is_the_textbook_one():
    found = normal_interval(2.0, 0.5, level=0.95)
    assert (found.low, found.high) == pytest.approx((2 - 1.959964 * 0.5, 2 + 1.959964 * 0.5))
    assert found.p == pytest.approx(6.334e-5, rel=1e-3)


def test_an_interval_of_a_share_of_few_patients_is_symmetric_on_the_logit_scale():
    draws = np.random.default_rng(0).beta(18, 6, 500)
    found = Draws(0.75, draws, 0.0, 1.0, "t", freedom=9).interval(0.95)
    odds = np.log([found.low / (1 - found.low), 3.0, found.high / (1 - found.high)])
    assert odds[1] - odds[0] == pytest.approx(odds[2] - odds[1])
    # Student's quantile with 9 degrees of freedom.
    assert odds[2] - odds[1] == pytest.approx(2.2622 * np.log(draws / (1 - draws)).std(ddof=1), rel=1e-4)
    plain = Draws(0.2, draws - 0.5, method="t", freedom=9).interval(0.95)
    assert plain.high - plain.low == pytest.approx(2 * 2.2622 * draws.std(ddof=1), rel=1e-4)
