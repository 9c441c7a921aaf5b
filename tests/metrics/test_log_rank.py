"""The log-rank test, against R's survdiff: recorded numbers, and R itself where it is installed."""

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv
from drosurv.metrics import log_rank_test

DATA = pd.DataFrame(
    {
        "time": [2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 9, 10, 11],
        "event": [1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0],
        "two": ["a", "a", "a", "b", "a", "b", "a", "b", "b", "b", "a", "a", "b", "b", "a", "b"],
        "three": [1, 3, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3, 1, 1, 2, 2],
    }
)
SCRIPT = """
d <- read.csv("d.csv")
for (name in c("two", "three")) {
  found <- survdiff(as.formula(paste("Surv(time, event) ~", name)), d)
  give(name, c(found$chisq, found$pvalue, found$exp))
}
"""
RECORDED = {
    "two": [0.9932914193, 0.3189392513, 4.4268231768, 6.5731768232],
    "three": [1.3855960976, 0.5001745963, 3.369542957, 5.1407120657, 2.4897449772],
}


def numbers_of(groups, **given):
    found = log_rank_test(Surv.from_arrays(DATA["event"] == 1, DATA["time"]), groups, **given)
    return [found.chi_square, found.p, *found.groups["expected"]]


@pytest.mark.parametrize("name", RECORDED)
def test_numbers_are_those_of_survdiff(name):
    np.testing.assert_allclose(numbers_of(DATA[name]), RECORDED[name], atol=1e-9)


def test_rounding_of_the_covariance_does_not_change_the_statistic():
    # The covariance of all groups has an eigenvalue of zero but for rounding; taken for another one, it changes the
    # statistic by several percent in some of these tables.
    for seed in range(20):
        rng, n = np.random.default_rng(seed), 1500
        group, event = (rng.random(n) < 0.7).astype(int), rng.random(n) < 0.6
        time = rng.exponential(size=n) * (1 + 0.5 * group)
        order = np.argsort(time)
        share = np.cumsum(group[order][::-1])[::-1] / np.arange(n, 0, -1)
        difference, variance = group[order] - share, share * (1 - share)
        expected = difference[event[order]].sum() ** 2 / variance[event[order]].sum()
        found = log_rank_test(Surv.from_arrays(event, time), group).chi_square
        assert found == pytest.approx(expected, rel=1e-9)


def test_recorded_numbers_are_those_of_r(run_r):
    answers = run_r(SCRIPT, d=DATA)
    for name, recorded in RECORDED.items():
        np.testing.assert_allclose(answers[name][:, 0], recorded, atol=1e-9)


def test_missing_labels_are_a_group_or_left_out():
    y = Surv.from_arrays(DATA["event"] == 1, DATA["time"])
    some = DATA["two"].where(DATA.index > 2)
    assert log_rank_test(y, some).groups.index.tolist() == ["a", "b", "missing"]
    left = log_rank_test(y, some, missing="drop")
    assert left.chi_square == pytest.approx(log_rank_test(y[3:], DATA["two"][3:]).chi_square)


def test_without_events_there_is_no_test():
    y = Surv.from_arrays([False] * 4, [1.0, 2.0, 3.0, 4.0])
    found = log_rank_test(y, ["a", "a", "b", "b"])
    assert (found.chi_square, found.degrees) == (0.0, 0)
    assert np.isnan(found.p)


def test_p_values_of_equal_groups_are_uniform():
    rng = np.random.default_rng(1)
    p = []
    for _ in range(200):
        time, censored = rng.exponential(size=(2, 60))
        y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
        p.append(log_rank_test(y, rng.integers(0, 3, 60)).p)
    # 10 are expected; fewer than 3 or more than 19 are one of a hundred cases.
    assert 3 <= np.sum(np.array(p) < 0.05) <= 19
