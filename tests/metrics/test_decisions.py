from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit

from drosurv.metrics import decisions
from drosurv.patients.target import Surv

# The data of dcurves' survival example (Apache License 2.0), with the columns that are used here.
EXAMPLE = Path(__file__).parent / "fixtures" / "dcurves_survival.csv"


def values_of(found, group="all"):
    rows = found.table[found.table["group"] == group]
    return dict(zip(rows["metric"], rows["value"], strict=True))


def example():
    data = pd.read_csv(EXAMPLE)
    return Surv.from_arrays(data["cancer"], data["ttcancer"]), data


@pytest.mark.parametrize(
    ("column", "horizon", "threshold", "true_positive", "false_positive"),
    [
        # R's dcurves.
        ("famhistory", 1.5, 0.10, 0.0531743954260046, 0.10015893790732873),
        ("famhistory", 1.5, 0.35, 0.0531743954260046, 0.10015893790732873),
        # Python's dcurves 1.1.7.
        ("cancerpredmarker", 1.0, 0.05, 0.13047076504092, 0.42419590162575),
        ("cancerpredmarker", 1.0, 0.20, 0.09665009923722, 0.13401656742945),
        ("cancerpredmarker", 1.0, 0.50, 0.04899737068144, 0.01766929598523),
    ],
)
def test_net_benefit_equals_dcurves_on_its_survival_example(
    column, horizon, threshold, true_positive, false_positive
):
    y, data = example()
    found = values_of(decisions(y, data[column], threshold=threshold, horizon=horizon))
    expected = true_positive - threshold / (1 - threshold) * false_positive
    assert found["net_benefit"] == pytest.approx(expected, abs=1e-12)
    assert found["ppv"] == pytest.approx(true_positive / (true_positive + false_positive), abs=1e-12)


def test_the_interval_of_a_share_counts_only_its_patients():
    """Influences of others are 0 up to rounding, and were counted as patients: intervals were too narrow."""
    rng = np.random.default_rng(3)
    time, risk = rng.exponential(size=40), rng.random(40)
    found = decisions(Surv.from_arrays(np.ones(40), time), risk, threshold=0.4, horizon=0.8).table
    event, positive = time <= 0.8, risk >= 0.4
    for metric, own, right in (("sensitivity", event, positive), ("specificity", ~event, ~positive)):
        share, patients = right[own].mean(), own.sum()
        reach = stats.t.ppf(0.975, event.sum() - 1) / np.sqrt(share * (1 - share) * (patients - 1))
        row = found.set_index("metric").loc[metric]
        wanted = expit(logit(share) + np.array([-reach, reach]))
        np.testing.assert_allclose([row["low"], row["high"]], wanted)


def test_without_censoring_the_numbers_are_shares_of_patients():
    rng = np.random.default_rng(0)
    time, risk = rng.exponential(size=300), rng.random(300)
    y = Surv.from_arrays(np.ones(300), time)
    found = values_of(decisions(y, risk, threshold=0.4, horizon=0.8))
    event, positive = time <= 0.8, risk >= 0.4
    assert found["sensitivity"] == pytest.approx(positive[event].mean())
    assert found["specificity"] == pytest.approx((~positive)[~event].mean())
    assert found["ppv"] == pytest.approx(event[positive].mean())
    assert found["npv"] == pytest.approx((~event)[~positive].mean())
    odds = 0.4 / 0.6
    assert found["net_benefit"] == pytest.approx(
        (positive & event).mean() - odds * (positive & ~event).mean()
    )


def test_censoring_leaves_the_numbers_near_those_without_it():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000)
    time, censored = rng.exponential(np.exp(-x)), rng.exponential(2.0, size=len(x))
    risk = 1 - np.exp(-0.5 * np.exp(x))
    whole = decisions(Surv.from_arrays(np.ones(len(x)), time), risk, threshold=0.3, horizon=0.5)
    seen = decisions(
        Surv.from_arrays(time <= censored, np.minimum(time, censored)), risk, threshold=0.3, horizon=0.5
    )
    np.testing.assert_allclose(seen.table["value"], whole.table["value"], atol=0.02)


def test_groups_are_those_patients_alone():
    y, data = example()
    found = decisions(y, data["cancerpredmarker"], threshold=0.2, horizon=1.0, groups=data["famhistory"])
    for group in (0, 1):
        rows = (data["famhistory"] == group).to_numpy()
        alone = decisions(y[rows], data["cancerpredmarker"][rows], threshold=0.2, horizon=1.0)
        assert values_of(found, group) == values_of(alone)
    gaps = found.gaps.set_index("metric")["value"]
    by_group = found.table.pivot_table(index="metric", columns="group", values="value")
    np.testing.assert_allclose(gaps[by_group.index], (by_group[1] - by_group[0]).abs())


def test_intervals_contain_the_truth_at_their_level():
    # Sensitivity by time 1 of hazard exp(x) at a threshold of 0.5, from a large sample.
    rng = np.random.default_rng(2)
    x = rng.normal(size=400_000)
    probability = 1 - np.exp(-np.exp(x))
    positive = probability >= 0.5
    truth = probability[positive].sum() / probability.sum()
    covered = 0
    for _ in range(30):
        x = rng.normal(size=250)
        time, censored = rng.exponential(np.exp(-x)), rng.exponential(3.0, size=250)
        y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
        found = decisions(y, 1 - np.exp(-np.exp(x)), threshold=0.5, horizon=1.0, level=0.9).table.set_index(
            "metric"
        )
        covered += found.loc["sensitivity", "low"] <= truth <= found.loc["sensitivity", "high"]
    # 27 of 30 are expected; at most 21 are fewer than one of a hundred cases.
    assert 22 <= covered <= 29


@pytest.mark.parametrize(
    ("time", "event", "risk", "undefined"),
    [
        ([3, 3, 1, 3], [0, 0, 1, 0], [0.1] * 4, {"ppv": "no patient is predicted positive"}),
        ([3, 3, 1, 3], [0, 0, 1, 0], [0.9] * 4, {"npv": "no patient is predicted negative"}),
        (
            [1, 0.5, 3, 3],
            [0, 1, 0, 0],
            [0.9, 0.9, 0.1, 0.1],
            dict.fromkeys(
                ("sensitivity", "specificity", "ppv", "net_benefit"),
                "follow-up of the predicted positives ends at 1, before the horizon 2",
            ),
        ),
        ([3, 3, 3, 3], [0, 1, 0, 0], [0.9, 0.9, 0.1, 0.1], {"sensitivity": "no event by 2 was observed"}),
        (
            [1, 1, 1, 1],
            [1, 1, 1, 1],
            [0.9, 0.9, 0.1, 0.1],
            {"specificity": "every patient had the event by 2"},
        ),
    ],
)
def test_what_cannot_be_estimated_is_nan_with_a_reason(time, event, risk, undefined):
    found = decisions(
        Surv.from_arrays(event, np.array(time, float)), risk, threshold=0.5, horizon=2.0
    ).table.set_index("metric")
    assert found.loc[found["value"].isna(), "reason"].to_dict() == undefined
    assert (found.loc[found["value"].notna(), "reason"] == "").all()


def test_a_gap_with_an_unknown_group_is_unknown():
    y = Surv.from_arrays([1, 0, 1, 0], [1.0, 3.0, 1.0, 3.0])
    found = decisions(
        y, [0.9, 0.1, 0.1, 0.1], threshold=0.5, horizon=2.0, groups=["a", "a", "b", "b"]
    ).gaps.set_index("metric")
    assert np.isnan(found.loc["ppv", "value"])
    assert found.loc["ppv", "reason"] == "not estimable in b"
    assert found.loc["sensitivity", "value"] == 1.0
