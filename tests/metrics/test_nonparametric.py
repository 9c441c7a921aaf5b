import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sksurv.nonparametric import cumulative_incidence_competing_risks, kaplan_meier_estimator

from drosurv.metrics import FollowUp
from drosurv.metrics.nonparametric import KaplanMeier, aalen_johansen, step_function, weighted_quantiles
from drosurv.patients.target import Surv, Target


def cohort(seed, n=60):
    """Tied times, three outcomes, late entries and weights that count copies."""
    rng = np.random.default_rng(seed)
    time = rng.integers(2, 15, n).astype(float)
    entry = np.floor(rng.random(n) * time)
    return rng.integers(0, 3, n), time, entry, rng.integers(0, 4, n).astype(float)


def product_limit(time, event, entry, t):
    """S(t) from the definition: patients at risk at s came before s and left at s or later."""
    survival = 1.0
    for s in np.unique(time[event & (time <= t)]):
        at_risk = ((entry < s) & (s <= time)).sum()
        survival *= 1 - (event & (time == s)).sum() / at_risk
    return survival


@pytest.mark.parametrize("seed", range(5))
def test_late_entries_are_at_risk_only_afterwards_and_weights_count_copies(seed):
    cause, time, entry, weight = cohort(seed)
    rows = np.repeat(np.arange(len(time)), weight.astype(int))
    at = np.linspace(0, time[rows].max(), 31)
    found = KaplanMeier.of(Target(cause > 0, time), weight, entry=entry).at(at)
    expected = [product_limit(time[rows], cause[rows] > 0, entry[rows], t) for t in at]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_intervals_are_scikit_survivals_log_log_ones(seed):
    cause, time, _, _ = cohort(seed)
    time = np.append(time, 20.0)
    event = np.append(cause > 0, False)
    times, survival, bounds = kaplan_meier_estimator(event, time, conf_type="log-log", conf_level=0.9)
    curve = KaplanMeier.of(Target(event, time))
    inside = (survival > 0) & (survival < 1)
    for found, expected in zip(curve.interval(times, 0.9), bounds, strict=True):
        np.testing.assert_allclose(found[inside], expected[inside], rtol=1e-10)
        np.testing.assert_array_equal(found[~inside], survival[~inside])


def incidence_by_definition(cause, time, entry, of, t):
    total = 0.0
    for s in np.unique(time[(cause == of) & (time <= t)]):
        at_risk = ((entry < s) & (s <= time)).sum()
        before = product_limit(time, cause > 0, entry, np.nextafter(s, 0))
        total += before * ((cause == of) & (time == s)).sum() / at_risk
    return total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("of", [1, 2])
def test_cumulative_incidence_equals_its_definition(seed, of):
    cause, time, entry, weight = cohort(seed)
    rows = np.repeat(np.arange(len(time)), weight.astype(int))
    at = np.linspace(0, time[rows].max(), 31)
    found = aalen_johansen(cause, time, of=of, weight=weight, entry=entry).at(at)
    expected = [incidence_by_definition(cause[rows], time[rows], entry[rows], of, t) for t in at]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_causes_and_survival_add_up_to_one_and_agree_with_scikit_survival(seed):
    cause, time, _, _ = cohort(seed)
    times, expected = cumulative_incidence_competing_risks(cause, time)
    curves = [aalen_johansen(cause, time, of=k) for k in (1, 2)]
    for k, curve in enumerate(curves):
        np.testing.assert_allclose(curve.at(times), expected[k + 1], atol=1e-12)
    total = sum(curve.incidence for curve in curves) + KaplanMeier.of(Target(cause > 0, time)).survival
    np.testing.assert_allclose(total, 1.0, atol=1e-12)


def test_the_variance_of_the_incidence_is_that_of_many_samples():
    rng = np.random.default_rng(0)
    at = np.array([0.3, 0.8])
    values, variances = [], []
    for _ in range(600):
        time, end = rng.exponential(size=150), rng.uniform(0.2, 2, 150)
        cause = np.where(time <= end, rng.integers(1, 3, 150), 0)
        curve = aalen_johansen(cause, np.minimum(time, end))
        values.append(curve.at(at))
        variances.append(curve._read(curve.variance, at))
    np.testing.assert_allclose(np.mean(variances, axis=0), np.var(values, axis=0), rtol=0.15)
    # Half of the events are of this cause.
    np.testing.assert_allclose(np.mean(values, axis=0), 0.5 * (1 - np.exp(-at)), atol=0.01)


def test_with_one_cause_the_variance_is_greenwoods():
    cause, time, _, _ = cohort(0)
    cause[:] = cause > 0
    # Greenwood needs somebody left at the end.
    cause[time == time.max()] = 0
    curve, survival = aalen_johansen(cause, time), KaplanMeier.of(Target(cause > 0, time))
    np.testing.assert_allclose(curve.incidence, 1 - survival.survival, atol=1e-12)
    np.testing.assert_allclose(curve.variance, survival.survival**2 * survival.log_variance, rtol=0.2)


def test_follow_up_of_weights_is_that_of_copies():
    cause, time, _, weight = cohort(3)
    rows = np.repeat(np.arange(len(time)), weight.astype(int))
    y = Surv.from_arrays(cause > 0, time)
    weighted, copied = FollowUp.parse(y, weight), FollowUp.parse(y[rows])
    for name in ("times", "censoring", "survival", "event_percentiles"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(copied, name), atol=1e-12)
    shares = FollowUp.parse(y, np.full(len(y), 0.3))
    np.testing.assert_allclose(shares.event_percentiles, FollowUp.parse(y).event_percentiles)


def test_curves_with_entry_and_weights_equal_those_of_r(run_r):
    cause, time, entry, weight = cohort(1)
    weight = weight + 0.5
    at = np.arange(3.0, 14.0)
    table = pd.DataFrame(
        {"cause": cause, "time": time, "entry": entry, "weight": weight, "id": range(len(time))}
    )
    answers = run_r(
        """
        d <- read.csv("d.csv")
        d$state <- factor(d$cause)
        one <- survfit(Surv(entry, time, cause > 0) ~ 1, d, weights = weight)
        many <- survfit(Surv(entry, time, state) ~ 1, d, weights = weight, id = id)
        give("survival", summary(one, times = 3:13)$surv)
        give("incidence", summary(many, times = 3:13)$pstate[, 2:3])
        """,
        d=table,
    )
    found = KaplanMeier.of(Target(cause > 0, time), weight, entry=entry).at(at)
    np.testing.assert_allclose(found, answers["survival"].ravel(), atol=1e-10)
    for k in (1, 2):
        curve = aalen_johansen(cause, time, of=k, weight=weight, entry=entry)
        np.testing.assert_allclose(curve.at(at), answers["incidence"][:, k - 1], atol=1e-10)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_the_variance_of_the_incidence_is_that_of_lifelines():
    from lifelines import AalenJohansenFitter

    rng = np.random.default_rng(2)
    time, cause = rng.exponential(size=80), rng.integers(0, 3, 80)
    fitted = AalenJohansenFitter(calculate_variance=True).fit(time, cause, event_of_interest=1)
    at = np.sort(time)[5:60]
    curve = aalen_johansen(cause, time)
    expected = fitted.variance_.squeeze()
    np.testing.assert_allclose(fitted.predict(at), curve.at(at), atol=1e-9)
    np.testing.assert_allclose(curve._read(curve.variance, at), expected.reindex(at).to_numpy(), rtol=1e-6)


def test_whole_number_weights_are_copies_in_quantiles():
    rng = np.random.default_rng(0)
    x, counts = rng.normal(size=60).round(1), rng.integers(0, 5, 60)
    q = np.linspace(0, 1, 21)
    x, counts = x[counts > 0], counts[counts > 0]
    np.testing.assert_allclose(weighted_quantiles(x, None, q), np.quantile(x, q), rtol=1e-15)
    found = weighted_quantiles(x, counts.astype(float), q)
    np.testing.assert_allclose(found, np.quantile(np.repeat(x, counts), q), rtol=1e-12, atol=1e-12)


def test_the_unit_of_other_weights_does_not_change_quantiles():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=80), rng.random(80) + 0.1
    q = (0.05, 0.5, 0.95)
    np.testing.assert_allclose(
        weighted_quantiles(x, weight, q), weighted_quantiles(x, weight * 1e-6, q), rtol=1e-12
    )
    assert weighted_quantiles(x, weight, (0.5,))[0] == pytest.approx(np.quantile(x, 0.5), abs=0.5)


def test_copies_in_clusters_are_as_sure_as_one_row_each():
    rng = np.random.default_rng(0)
    target = Target(rng.random(300) < 0.6, rng.exponential(size=300).round(2))
    rows, times = np.repeat(np.arange(300), 4), np.array([0.2, 0.5, 1.0])
    once = KaplanMeier.of(target).interval(times)
    alone = KaplanMeier.of(target.take(rows)).interval(times)
    four = KaplanMeier.of(target.take(rows), clusters=rows).interval(times)
    # Student's t of 299 degrees of freedom, and 300 / 299.
    for found, wanted, narrow in zip(four, once, alone, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-3)
        assert (abs(narrow - wanted) > 0.01).all()
    # Clusters of one row each have Greenwood's variance, but for the factors.
    single = KaplanMeier.of(target, clusters=np.arange(300))
    factor = np.sqrt(300 / 299) * student.ppf(0.975, 299) / norm.ppf(0.975)
    error = single._error_by_cluster(target, np.arange(300), times, 0.95)
    wanted = np.sqrt(step_function(single.times, single.log_variance, times, before=0.0))
    np.testing.assert_allclose(error, factor * wanted)


@pytest.mark.parametrize("ties", [False, True])
def test_influences_on_an_incidence_are_derivatives_by_the_weight(ties):
    rng = np.random.default_rng(4)
    cause, time, at = rng.integers(0, 3, 40), rng.exponential(size=40), np.array([0.0, 0.3, 0.9, 1.6])
    time = np.ceil(3 * time) / 3 if ties else time
    curve = aalen_johansen(cause, time, clusters=np.arange(40))
    step = 1e-6 * np.eye(40)
    above, below = (
        np.array([aalen_johansen(cause, time, weight=1 + sign * row).at(at) for row in step])
        for sign in (1, -1)
    )
    influences = curve.in_clusters[0].derivative(at, np.eye(len(at)))
    np.testing.assert_allclose(influences, (above - below) / 2e-6, atol=1e-7)
    # Summed over independent patients, their squares are the variance.
    variance = step_function(curve.times, curve.variance, at, before=0.0)
    np.testing.assert_allclose((influences**2).sum(axis=0), variance)
