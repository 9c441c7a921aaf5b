import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drosurv.metrics.pair_order import HARRELL_TOLERANCE, PairOrder
from drosurv.patients.target import Target

patients = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.booleans(),
        st.sampled_from([-1.0, 0.0, 0.5e-8, 1e-8, 1.5e-8, 2e-8, 1.0, 1.0 + 1e-8]),
        st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=12,
)


def harrell_pairs(time, event, risk, weight):
    """Concordant and comparable pairs of each patient with those who were observed longer than an event."""
    counts = np.zeros((2, len(time)))
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[i] < time[j] or (time[i] == time[j] and not event[j]):
                tied = abs(risk[i] - risk[j]) <= HARRELL_TOLERANCE
                credit = 0.5 if tied else float(risk[i] > risk[j])
                counts[:, [i, j]] += weight[i] * weight[j] * np.array([[credit], [1.0]])
    return counts


@settings(max_examples=40, deadline=None)
@given(patients)
@example([(1, True, 0.0, 1.0), (2, True, 1e-8, 1.0), (3, False, 2e-8, 1.0)])
def test_counts_are_those_of_all_pairs_one_by_one(rows):
    time, event, risk, weight = (np.array(values) for values in zip(*rows, strict=True))
    order = PairOrder.for_harrell(Target(event, time.astype(float)), risk)
    expected = harrell_pairs(time, event, risk, weight)
    np.testing.assert_allclose(order.counts(weight), expected, atol=1e-12)
    np.testing.assert_allclose(order.harrell_sums(weight), expected.sum(axis=1) / 2, atol=1e-12)
    # With a group for each patient, a pair is counted in the row of one and the column of the other.
    between = np.array(order.harrell_between(np.arange(len(rows)), len(rows), weight))
    np.testing.assert_allclose(between.sum(axis=1) + between.sum(axis=2), expected, atol=1e-12)


@pytest.mark.parametrize("n", [300, 6_000])
def test_rows_are_by_time_then_events_first_then_score(n):
    rng = np.random.default_rng(0)
    event = rng.random(n) < 0.5
    of_all_sizes = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    of_all_sizes[rng.integers(0, n, n // 3)], of_all_sizes[rng.integers(0, n, n // 9)] = 0.0, -0.0
    in_the_last_bits = rng.choice(1.0 + np.arange(50) * np.finfo(float).eps, n)
    for time, risk in (
        (rng.exponential(size=n), -in_the_last_bits),
        (rng.integers(0, 9, n).astype(float), of_all_sizes),
        (in_the_last_bits, rng.normal(size=n)),
    ):
        harrell = PairOrder.for_harrell(Target(event, time), risk)
        np.testing.assert_array_equal(harrell.rows, np.lexsort((risk, ~event, time)))
        np.testing.assert_array_equal(harrell.rows[harrell.places], np.arange(n))
        imparity = PairOrder.for_imparity(Target(event, time), risk)
        np.testing.assert_array_equal(imparity.rows, np.lexsort((risk, time)))
