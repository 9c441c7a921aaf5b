import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.patients.target import Surv, Target, parse_competing_target, parse_target, stable_order


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


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ((np.array([True]), np.array([1.0])), "structured array"),
        (np.array([1.0, 2.0]), "structured array"),
        (structured([True, False], [1.0, np.nan]), "NaN or infinite"),
        (structured([True, False], [1.0, np.inf]), "NaN or infinite"),
        (structured([True, False], [1.0, -2.0]), "negative time"),
        (structured([False, False], [1.0, 2.0]), "no event"),
        (structured([], []), "empty"),
        (np.array([(1, 2.0)], dtype=[("e", "<i8"), ("t", "<f8")]), "must be bool"),
        (np.array([(True, "a")], dtype=[("e", "?"), ("t", "U1")]), "must be numbers"),
        (np.array([(True, 3)], dtype=[("e", "?"), ("t", "m8[D]")]), "must be numbers.*timedelta64"),
    ],
)
def test_bad_targets_are_refused_with_the_reason(y, message):
    with pytest.raises(ValueError, match=message):
        parse_target(y)


def test_surv_builds_from_numbers_and_dataframes():
    y = Surv.from_dataframe("died", "years", pd.DataFrame({"died": [1, 0], "years": [2, 3]}))
    assert y.dtype.names == ("died", "years")
    assert y["died"].tolist() == [True, False]
    assert y["years"].tolist() == [2.0, 3.0]


def test_flags_may_be_python_objects():
    assert Surv.from_arrays(np.array([True, False], dtype=object), [1, 2])["event"].tolist() == [True, False]
    with pytest.raises(ValueError, match="found values"):
        Surv.from_arrays(np.array([True, None], dtype=object), [1, 2])


def test_surv_never_guesses_event_codes():
    with pytest.raises(ValueError, match="found values"):
        Surv.from_arrays([1, 2], [1.0, 1.0])
    with pytest.raises(ValueError, match="found values"):
        Surv.from_arrays(["yes", "no"], [1.0, 1.0])
    with pytest.raises(ValueError, match="not in data"):
        Surv.from_dataframe("dead", "t", pd.DataFrame({"t": [1.0]}))
    with pytest.raises(ValueError, match="equal length"):
        Surv.from_arrays([True], [1.0, 2.0])


def test_competing_causes_are_kept_with_their_times():
    y = Surv.competing(np.array([0, 2.0, 1]), [3, 4, 5])
    target = parse_competing_target(y)
    assert target.n_causes == 2
    assert target.of_cause(2).event.tolist() == [False, True, False]
    assert target.of_any_cause().event.tolist() == [False, True, True]
    assert target.of_cause(1).time.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (["cancer", "other"], "cause must be whole numbers.*cancer"),
        ([0.5, 1], "cause must be whole numbers"),
        ([np.nan, 1], "cause must be whole numbers"),
        ([-1, 1], "cause must not be negative, got -1"),
        ([1, 2, 3], "one-dimensional and of equal length"),
    ],
)
def test_bad_causes_are_named(cause, message):
    with pytest.raises(ValueError, match=message):
        Surv.competing(cause, [1.0, 2.0])


def test_masked_arrays_are_refused_with_events_and_with_causes():
    masked = np.ma.array([1, 0, 1], mask=[False, True, False])
    for build in (Surv.from_arrays, Surv.competing):
        for first, time in ((masked, [1.0, 2.0, 3.0]), ([1, 0, 1], masked)):
            with pytest.raises(ValueError, match="is a masked array, whose mask would be lost"):
                build(first, time)


def test_a_cause_that_never_happens_is_named():
    with pytest.raises(ValueError, match=r"cause 2 of y never happens, but cause 3 does"):
        parse_competing_target(Surv.competing([0, 1, 3], [1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="every patient is censored"):
        parse_competing_target(Surv.competing([0, 0], [1.0, 2.0]))
    with pytest.raises(ValueError, match=r"Surv.competing\(cause, time\)"):
        parse_competing_target(Surv.from_arrays([True, False], [1.0, 2.0]))


def test_swapped_columns_are_told_apart():
    data = pd.DataFrame({"died": [1, 0, 1], "days": [3.0, 8.0, 2.0]})
    with pytest.raises(ValueError, match=r"they are swapped.*Surv.from_dataframe\('died', 'days', data\)"):
        Surv.from_dataframe("days", "died", data)


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


def test_missing_events_are_left_out_by_hand():
    with pytest.raises(ValueError, match=r"event is missing for 1 of 3 patients: leave out their rows\."):
        Surv.from_arrays([1.0, np.nan, 0.0], [1.0, 2.0, 3.0])
