import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.metrics.pair_order import stable_order

finite = st.floats(allow_nan=False, allow_infinity=False)
with_ties = st.lists(
    finite | st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324]), min_size=1, max_size=60
)


@settings(max_examples=60, deadline=None)
@given(with_ties)
def test_order_is_that_of_a_stable_comparison_sort(values):
    values = np.array(values)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_order_of_numbers_that_only_their_lowest_bytes_tell_apart():
    rng = np.random.default_rng(1)
    for spread in (1, 40, 5_000):
        values = 1.0 + rng.integers(0, spread, 3_000) * np.finfo(np.float64).eps
        values[::7] = rng.normal(size=len(values[::7]))
        np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


def test_order_of_many_numbers_of_all_sizes():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000) * 10.0 ** rng.integers(-300, 300, 20_000)
    values[rng.integers(0, 20_000, 8_000)] = values[0]
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))
