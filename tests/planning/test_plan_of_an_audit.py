"""A plan promises what an audit does: its adjustment, its intervals, and the power of its tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import brentq

from drosurv import Surv, audit, plan
from drosurv.judging.excluded_errors import SubgroupSearch, events_for_power, excluded_errors, power_of
from drosurv.judging.questions import KINDS
from drosurv.planning.audit_plan import EVERYBODY, _critical_values, _expected

GROUPS = {"women": 0.4, "men": 0.6}


def row(found, words):
    table = found.table
    return table[table["question"].str.contains(words, regex=False)].iloc[0]


@pytest.mark.usefixtures("all_draws")
@pytest.mark.parametrize("groups", [(), ("women", "men"), tuple("abcdefghij")])
def test_right_models_are_called_wrong_as_often_as_the_shares_of_the_error_rate_say(groups):
    z = _critical_values(groups, 0.95, None)
    rng = np.random.default_rng(1)
    rejected = {True: np.zeros(200_000, bool), False: np.zeros(200_000, bool)}
    for (question, who), critical in z.items():
        drawn = rng.standard_normal(200_000)
        # Losses are problems, gains are not.
        reaches = drawn < -critical if KINDS[question].side < 0 else np.abs(drawn) > critical
        rejected[who == EVERYBODY] |= reaches
    shares = (0.5, 0.25) if groups else (0.75, 0.0)
    # The critical values come from 19,999 draws, whose share beyond the smaller rate has a standard error of 6 %.
    for family, share in zip((True, False), shares, strict=True):
        assert rejected[family].mean() == pytest.approx(0.05 * share, rel=0.15, abs=1e-9)


def test_more_groups_need_more_patients_and_a_question_alone_the_fewest():
    hospitals = {f"h{k}": 0.1 for k in range(10)}
    needed = [
        [row(plan(event_rate=0.25, **how), words)["patients"] for words in ("found, women", "1.2, women")]
        for how in (
            {"groups": {"women": 0.4}, "n_tests": 1},
            {"groups": {"women": 0.4}},
            {"groups": GROUPS},
            {"groups": GROUPS | hospitals},
        )
    ]
    assert all(np.diff(np.array(needed), axis=0).ravel() > 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("verdict", "missed")
def test_the_intervals_of_an_audit_have_the_planned_widths():
    rng, n = np.random.default_rng(0), 2000
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    sex = np.where(rng.random(n) < 0.4, "women", "men")
    hazard = 0.3 * np.exp(0.8 * X["a"].to_numpy())
    reached = rng.exponential(size=n) / hazard
    y = Surv.from_arrays(reached <= 1, np.minimum(reached, 1.0))
    times = np.linspace(0.02, 1.0, 50)
    predictions = times, np.exp(-hazard[:, None] * times)
    given = {"features": X, "sensitive_features": pd.DataFrame({"sex": sex})}
    found = audit(predictions, None, y, **given).findings
    events, women = y["event"].mean(), y["event"][sex == "women"].mean()
    log_risk = np.log(hazard)
    spread = np.sqrt(np.cov(log_risk, aweights=hazard * y["time"]))
    planned = plan(
        event_rate=events,
        groups={"women": (np.mean(sex == "women"), women)} | {"men": 0.6},
        n=n,
        spread=spread,
    )
    for who, words in (("all", "1.2, everybody"), ("women", "1.2, women")):
        level = found[(found["question"] == "level") & (found["group"] == who)].iloc[0]
        factor = np.sqrt(level["high"] / level["low"])
        assert np.log(factor) == pytest.approx(np.log(row(planned, words)["attained"]), rel=0.05)
    slope = found[(found["question"] == "slope") & (found["group"] == "all")].iloc[0]
    assert slope["high"] - slope["low"] == pytest.approx(row(planned, "slope")["attained"], rel=0.08)


@pytest.mark.parametrize("ratio", [1.2, 1.5, 0.7])
@pytest.mark.parametrize("critical", [1.96, 2.99, 4.5])
def test_power_is_that_of_poisson_counts_that_reach_the_critical_value(ratio, critical):
    needed = events_for_power(ratio, 0.8, critical)
    counts = np.arange(int(4 * needed * max(ratio, 1) + 100))
    # Signed roots of the deviance, as an audit takes them.
    deviance = 2 * (counts * np.log(np.maximum(counts, 1e-300) / needed) - (counts - needed))
    root = np.sign(counts - needed) * np.sqrt(np.maximum(deviance, 0))
    rejected = root > critical if ratio > 1 else root < -critical
    exact = stats.poisson.pmf(counts, ratio * needed)[rejected].sum()
    assert power_of(ratio, needed, critical) == pytest.approx(0.8)
    assert exact == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize(("rate", "ratio"), [(0.1, 1.2), (0.5, 1.5), (0.9, 2.0)])
def test_a_model_expects_hazards_until_the_events_which_come_earlier_if_there_are_too_many(rate, ratio):
    rng = np.random.default_rng(2)
    end = -np.log1p(-rate)
    reached = rng.exponential(size=400_000) / ratio
    # The model predicts a hazard of 1 until the event or the end.
    assert _expected(rate, ratio) == pytest.approx(np.minimum(reached, end).mean(), rel=0.01)


@pytest.mark.parametrize("setting", [(5, 0.1, 0.95), (10, 0.05, 0.9875), (30, 0.2, 0.95)])
def test_bounds_of_a_subgroup_are_where_its_statistic_reaches_the_critical_value(setting):
    search = SubgroupSearch(*setting)
    for events in (12.0, 100.0):
        low, high = search.bounds_of_one(events)

        def statistic(ratio, events=events):
            """Of as many events as predicted, if the truth is `ratio` times as many."""
            return 2 * (np.sqrt(ratio * events) - np.sqrt(events))

        assert high == pytest.approx(brentq(lambda r: statistic(r) - search.critical_value, 1, 1e6))
        if low > 0:
            assert low == pytest.approx(brentq(lambda r: statistic(r) + search.critical_value, 1e-9, 1))
    needed = search.events_to_exclude_in_one(1.5)
    assert search.bound_of_one(needed) <= 1.5 + 1e-9
    assert needed == pytest.approx(max(brentq(lambda e: search.bound_of_one(e) - 1.5, 11, 1e6), 10))
    # Subgroups with fewer expected events are not judged.
    assert search.bounds_of_one(9.9) == (0.0, np.inf)
    # Clusters make bounds wider; a subgroup with 10 events is judged, and so has bounds.
    low, high = search.bounds_of_one(12.0, 2.0)
    assert low < search.bounds_of_one(12.0)[0] < search.bounds_of_one(12.0)[1] < high < np.inf
    text = excluded_errors(500, 261, design_effect=1.4, n_columns=3)
    assert "for a subgroup of 5 % with as many events as predicted. About" in text
    assert "No wrong number" not in text
    assert search.power(2.0, 9.9) == 0.0


def test_the_search_of_an_audit_has_a_quarter_of_the_error_rate_and_its_bounds_all_of_it():
    found = plan(event_rate=0.3, subgroup_share=0.1, subgroup_ratio=1.6, n_columns=7)
    search = SubgroupSearch(7, 0.1, 1 - 0.05 / 4)
    assert row(found, "(search)")["events"] == round(search.events_for_power(1.6, 0.8))
    bounds = SubgroupSearch(7, 0.1, 0.95)
    assert row(found, "excluded in a subgroup")["events"] == round(bounds.events_to_exclude_in_one(1.6))
    alone = plan(event_rate=0.3, subgroup_share=0.1, subgroup_ratio=1.6, n_columns=7, n_tests=1)
    assert row(alone, "(search)")["events"] == round(bounds.events_for_power(1.6, 0.8))


def test_the_c_index_is_not_tested_and_its_interval_not_adjusted():
    widths = [row(plan(event_rate=0.3, n=500, **how), "c-index")["attained"] for how in ({}, {"n_tests": 1})]
    assert widths[0] == widths[1]


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_intervals_are_wider_at_a_higher_level(level):
    z = _critical_values(("women",), level, None)
    assert z["level", EVERYBODY] < z["level", "women"]
    assert (z["level", EVERYBODY] > _critical_values(("women",), 0.95, None)["level", EVERYBODY]) == (
        level > 0.95
    )
    # Bonferroni's method bounds them from above.
    weight = 1 + 0.25 + 1 + 0.5
    assert z["level", EVERYBODY] <= stats.norm.isf((1 - level) / 2 / weight / 2) + 1e-9
