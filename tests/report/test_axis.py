import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drosurv.report.charts import Axis

finite = st.floats(-1e6, 1e6) | st.floats(-1e300, 1e300)


@settings(deadline=None, max_examples=100)
@example([5e-324], 2)
@example([-1e-310, 1e-320], 2)
@example([1e6, 1e6 + 1e-9], 2)
@given(st.lists(finite, min_size=1, max_size=6), st.integers(2, 6))
def test_an_axis_holds_its_values_and_its_ticks_in_order(values, count):
    axis = Axis.over("x", values, count=count)
    shares = [axis.share(value) for value in sorted(values)]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    ticks = [tick.value for tick in axis.ticks]
    assert ticks == sorted(set(ticks))
    assert all(axis.low - 1e-6 * abs(axis.low) <= tick <= axis.high + 1e-6 * abs(axis.high) for tick in ticks)
    assert len(ticks) <= count + 1


def test_ticks_are_round_numbers_with_the_digits_they_need():
    assert [tick.label for tick in Axis.over("", [0.61, 0.84], count=4).ticks] == ["0.6", "0.7", "0.8"]
    assert [tick.label for tick in Axis.over("", [0.0402, 0.0521], count=3).ticks] == [
        "0.040",
        "0.045",
        "0.050",
    ]
    assert [tick.label for tick in Axis.over("", [-0.2, 0.2], kind="share", count=2).ticks] == [
        "−20 %",
        "0 %",
        "20 %",
    ]
    assert [tick.label for tick in Axis.over("", [0, 5000], kind="time", count=2, margin=0).ticks] == [
        "0",
        "2,000",
        "4,000",
    ]


def test_marks_stay_short_however_large_the_values():
    axis = Axis.over("", [0.0, 3e200], count=3, margin=0)
    assert [tick.label for tick in axis.ticks] == ["0", "1e+200", "2e+200", "3e+200"]


def test_bounds_get_no_margin():
    axis = Axis.over("", [0.3, 0.9], include=(0.0, 1.0))
    assert (axis.low, axis.high) == (0.0, 1.0)


@pytest.mark.parametrize("values", [[], [None, math.nan], [0.5], [0.0, 0.0]])
def test_an_axis_of_nothing_or_of_one_value_still_has_a_range(values):
    axis = Axis.over("", values)
    assert axis.low < axis.high
    assert axis.ticks


def test_values_outside_are_put_at_the_end():
    axis = Axis.over("", [0.0, 1.0], margin=0)
    assert (axis.share(-5), axis.share(5)) == (0.0, 1.0)
