import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drosurv.metrics.pair_order import HARRELL_TOLERANCE, PairOrder, radix_sort
from drosurv.target import Target

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


finite = st.floats(allow_nan=False, allow_infinity=False)
with_ties = st.lists(
    finite | st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324]), min_size=1, max_size=60
)


def radix_order(values):
    order, spare = np.arange(len(values)), np.empty(len(values), np.intp)
    radix_sort(values, order, spare, np.empty(len(values), np.uint64), np.empty((8, 256), np.intp))
    return order


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


@settings(max_examples=60, deadline=None)
@given(patients)
@example([(1, True, 0.0, 1.0), (2, True, 1e-8, 1.0), (3, False, 2e-8, 1.0)])
def test_counts_are_those_of_all_pairs_one_by_one(rows):
    time, event, risk, weight = (np.array(values) for values in zip(*rows, strict=True))
    order = PairOrder.for_harrell(Target(event, time.astype(float)), risk)
    expected = harrell_pairs(time, event, risk, weight)
    np.testing.assert_allclose(order.counts(weight), expected, atol=1e-12)
    np.testing.assert_allclose(order.harrell_sums(weight), expected.sum(axis=1) / 2, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(with_ties)
def test_order_is_that_of_a_stable_comparison_sort(values):
    values = np.array(values)
    assert radix_order(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_order_of_numbers_that_differ_in_their_lowest_bytes_only():
    rng = np.random.default_rng(1)
    for spread in (1, 40, 5_000):
        values = 1.0 + rng.integers(0, spread, 3_000) * np.finfo(np.float64).eps
        values[::7] = rng.normal(size=len(values[::7]))
        np.testing.assert_array_equal(radix_order(values), np.argsort(values, kind="stable"))


def test_order_of_many_numbers_of_all_sizes():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000) * 10.0 ** rng.integers(-300, 300, 20_000)
    values[rng.integers(0, 20_000, 8_000)] = values[0]
    np.testing.assert_array_equal(radix_order(values), np.argsort(values, kind="stable"))
