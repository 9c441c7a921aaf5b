"""One number writer: everybody writes the same number the same way."""

import re

import numpy as np
import pytest

from drosurv.presentation import (
    NOTHING,
    attribute_name,
    group_name,
    in_years,
    p_text,
    ratio_with_interval,
    with_interval,
    written,
)
from drosurv.presentation.wording import interval_text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.12345, "value", "0.123"),
        (-0.12345, "value", "−0.123"),
        (0.0, "value", "0.000"),
        (0.00123, "value", "0.00123"),
        (-1e-15, "value", "0.000"),
        (1234567.0, "value", "1,234,567"),
        (-1.2345e40, "value", "−1.23e+40"),
        (0.12345, "share", "12.3 %"),
        (-0.0001, "share", "0.0 %"),
        (12345, "count", "12,345"),
        (0.00004, "p", "below 0.001"),
        (0.0412, "p", "0.041"),
        (1234.56, "time", "1,235"),
        (0.5, "time", "0.5"),
        (float("nan"), "value", NOTHING),
        (np.float64("nan"), "value", NOTHING),
        (float("inf"), "share", NOTHING),
        (None, "count", NOTHING),
        ("<=65", "text", "<=65"),
    ],
)
def test_values_are_written_for_readers(value, kind, text):
    assert written(value, kind) == text


def test_a_number_and_its_interval_have_the_same_decimals():
    assert with_interval(0.5, 0.4, 0.6) == "0.500 (0.400 to 0.600)"
    assert with_interval(0.01, -0.000842, 0.021) == "0.010 (−0.001 to 0.021)"
    assert with_interval(0.00444, 0.0, 0.033) == "0.004 (0.000 to 0.033)"
    assert with_interval(0.0012, 0.0004, 0.0021) == "0.0012 (0.0004 to 0.0021)"
    assert with_interval(-1.47e-5, -0.000663, 0.000634) == "−0.000015 (−0.000663 to 0.000634)"
    assert with_interval(1e-9, -0.005, 0.005) == "0 (−0.005 to 0.005)"
    assert with_interval(1e-8, 2e-9, 3e-8) == "1e−08 (2e−09 to 3e−08)"
    assert with_interval(0.5, np.nan, np.nan) == "0.500"
    assert with_interval(np.nan, 0.1, 0.2) == NOTHING


@pytest.mark.parametrize("right", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("apart", [3e-4, -3e-4, 2e-5, -2e-5, 0.0])
def test_the_shown_end_of_an_interval_is_on_the_same_side_of_the_right_value_as_the_end_itself(right, apart):
    low, high = right + apart, right + 0.2
    shown = with_interval(right + 0.1, low, high, right=right), interval_text(low, high, right=right)
    if right == 1.0:
        shown += (ratio_with_interval(right + 0.1, low, high),)
    for text in shown:
        first = float(re.findall(r"[−\d.]+", text.rpartition("(")[2])[0].replace("−", "-"))
        assert np.sign(round(first - right, 9)) == np.sign(apart)
        assert abs(first - low) < 5e-5


def test_p_values_and_shares_in_sentences():
    assert (p_text(0.2), p_text(0.0002)) == ("p = 0.200", "p below 0.001")
    assert (p_text(0.0496), p_text(0.0504), p_text(0.05)) == ("p = 0.0496", "p = 0.0504", "p = 0.050")
    assert (written(0.456, "share"), written(np.nan, "share")) == ("45.6 %", NOTHING)


@pytest.mark.parametrize(
    ("time", "unit", "words"),
    [
        (1592.0, "days", " (4.4 years)"),
        (60.0, "months", " (5.0 years)"),
        (104.5, "weeks", " (2.0 years)"),
        (700.0, "days", ""),
        (5.0, "years", ""),
        (1592.0, "", ""),
    ],
)
def test_long_times_are_also_said_in_years(time, unit, words):
    assert in_years(time, unit) == words


@pytest.mark.parametrize(
    ("attribute", "group", "heading", "name"),
    [
        ("age>65", ">65", "age", "age over 65"),
        ("age>65", "missing", "age", "age missing"),
        ("age>=65", ">=65", "age", "age 65 or over"),
        ("age>=65", "<65 vs >=65", "age", "age under 65 vs 65 or over"),
        ("age>65", ">65 vs <=65", "age", "age over 65 vs 65 or below"),
        # A column of answers to the same question: "age True" would say nothing.
        ("age>65", "True", "age>65", "age>65 True"),
        ("CD4>200", "yes vs no", "CD4>200", "CD4>200 yes vs no"),
        ("CD4>200", "1", "CD4>200", "CD4>200 = 1"),
        ("sex", "f", "sex", "sex f"),
        ("sex & age>65", "f & >65", "sex & age", "sex f & age over 65"),
        ("sex & age>65", "f & True", "sex & age>65", "sex f & age>65 True"),
    ],
)
def test_a_cut_is_called_by_its_column_and_a_question_stays_whole(attribute, group, heading, name):
    assert attribute_name(attribute, group) == heading
    assert group_name(attribute, group) == name
