import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.patients.arrays import stable_order
from drosurv.patients.target import Surv, Target, parse_competing_target, parse_target


def structured(event, time):
    y = np.empty(len(time), dtype=[("status", "?"), ("days", "<f8")])
    y["status"], y["days"] = event, time
    return y


def test_any_field_names_are_accepted():
    target = parse_target(structured([True, False], [3.0, 1.0]))
    assert target.event.tolist() == [True, False]
    assert target.time.tolist() == [3.0, 1.0]
    assert target.order.tolist() == [1, 0]
    assert target.n_events == 1


def test_surv_builds_from_numbers_and_dataframes():
    y = Surv.from_dataframe("died", "years", pd.DataFrame({"died": [1, 0], "years": [2, 3]}))
    assert y.dtype.names == ("died", "years")
    assert y["died"].tolist() == [True, False]
    assert y["years"].tolist() == [2.0, 3.0]


def test_flags_may_be_python_objects():
    assert Surv.from_arrays(np.array([True, False], dtype=object), [1, 2])["event"].tolist() == [True, False]
    with pytest.raises(ValueError, match="found values"):
        Surv.from_arrays(np.array([True, None], dtype=object), [1, 2])


def test_competing_causes_are_kept_with_their_times():
    y = Surv.competing(np.array([0, 2.0, 1]), [3, 4, 5])
    target = parse_competing_target(y)
    assert target.n_causes == 2
    assert target.of_cause(2).event.tolist() == [False, True, False]
    assert target.of_any_cause().event.tolist() == [False, True, True]
    assert target.of_cause(1).time.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("events", "example"),
    [
        (["1", "0"], "event == '1'"),
        (["0", "1"], "event == '1'"),
        (["dead", "alive"], "event == 'dead'"),
        (["alive", "dead"], "event == 'dead'"),
        ([2, 1], "event == 2"),
        ([0, 3], "event == VALUE"),
        (["B", "A"], "event == VALUE"),
    ],
)
def test_the_example_never_takes_the_censored_for_the_event(events, example):
    with pytest.raises(ValueError, match=r"found values") as caught:
        Surv.from_arrays(np.array(events), [1.0, 2.0])
    assert str(caught.value).endswith(f"for example {example}.")


@pytest.mark.parametrize("distinct", [1, 5, 300, 10**6])
def test_order_keeps_the_row_order_of_equal_times(distinct):
    time = np.random.default_rng(0).integers(0, distinct, 1000) / 7
    order = Target(np.ones(1000, dtype=bool), time).order
    np.testing.assert_array_equal(order, np.lexsort((np.arange(1000), time)))


finite = st.floats(allow_nan=False, allow_infinity=False)
with_ties = st.lists(
    finite | st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324]), min_size=1, max_size=60
)


@settings(max_examples=100, deadline=None)
@given(with_ties)
def test_order_is_that_of_a_stable_comparison_sort(values):
    values = np.array(values)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_order_of_many_numbers_of_all_sizes():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000) * 10.0 ** rng.integers(-300, 300, 20_000)
    values[rng.integers(0, 20_000, 8_000)] = values[0]
    values[rng.integers(0, 20_000, 200)], values[rng.integers(0, 20_000, 200)] = 0.0, -0.0
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))
    # Numbers that differ in their last bits only, and numbers in order.
    close = rng.choice(1.0 + np.arange(50) * np.finfo(float).eps, 5_000)
    for values in (close, -close, np.sort(close)):
        np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("n", [1_000, 250_000])
def test_times_that_differ_by_rounding_errors_become_equal(n):
    """Of many, in rows sorted by time too, where rows far apart share no time."""
    tenths = np.sort(np.random.default_rng(0).integers(1, n // 10, n))
    time = np.where(np.arange(n) % 2, tenths / 10, tenths * 0.1)
    found = parse_target(structured(np.ones(n, dtype=bool), time)).time
    assert len(np.unique(time)) > len(np.unique(tenths))
    assert np.array_equal(np.unique(found, return_inverse=True)[1], np.unique(tenths, return_inverse=True)[1])
    np.testing.assert_allclose(found, time, rtol=1e-15)
