import numpy as np
import pandas as pd
import pytest

from drosurv.judging.rules import Condition, Rule

TABLE = pd.DataFrame(
    {
        "age": [50.0, 65.0, 80.0, np.nan],
        "stage": pd.Series(["II", "III", None, "II"], dtype="category"),
        "smoker": [True, False, True, False],
        "site": ["left", "right", "left", None],
    }
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("age", ">", 65.0), [False, False, True, False]),
        (Condition("age", "<=", 65.0), [True, True, False, False]),
        (Condition("age", "is missing"), [False, False, False, True]),
        (Condition("stage", "is", "II"), [True, False, False, True]),
        (Condition("stage", "is not", "II"), [False, True, False, False]),
        (Condition("stage", "is", "never seen"), [False] * 4),
        (Condition("smoker", "is", True), [True, False, True, False]),
        (Condition("site", "is not", "left"), [False, True, False, False]),
        (Condition("site", "is missing"), [False, False, False, True]),
    ],
)
def test_a_missing_value_meets_nothing_but_is_missing(condition, expected):
    assert condition.holds(TABLE).tolist() == expected


def test_a_rule_holds_where_all_its_conditions_do_and_reads_like_a_sentence():
    rule = Rule(
        (Condition("age", "<=", 65.0), Condition("stage", "is", "II"), Condition("site", "is missing"))
    )
    assert str(rule) == "age <= 65 and stage = II and site is missing"
    assert rule.holds(TABLE).tolist() == [False] * 4
    assert Rule(rule.conditions[:2]).holds(TABLE).tolist() == [True, False, False, False]


def test_thresholds_are_written_without_noise_digits():
    assert str(Condition("creatinine", ">", 1.02)) == "creatinine > 1.02"
    assert str(Condition("age", ">", 65.0)) == "age > 65"


@pytest.mark.parametrize("value", [1234567.0, 123456.7, 0.1 + 0.2 - 0.3 + 2.5, 1e-05, 20240131.0])
def test_the_threshold_written_is_the_one_compared_with(value):
    written = str(Condition("income", ">", value)).removeprefix("income > ")
    assert float(written) == pytest.approx(value, rel=1e-14)
    assert "e+" not in written
