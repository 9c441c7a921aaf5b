from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from drosurv.repairs.rules import CodedTable
from drosurv.repairs.worst_off import DISCOUNT, HarmFinder


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "marker": rng.normal(size=n),
            "stage": rng.choice(["I", "II", "III"], n),
            "diabetes": rng.integers(0, 2, n).astype(float),
            "constant": 1.0,
        }
    )


def borne(harm):
    """Summed harm less its standard error, from the definition."""
    return harm.sum() - DISCOUNT * np.sqrt(len(harm)) * harm.std()


def search(table, harm, **options):
    coded = CodedTable.from_table(table)
    settings = {"max_rules": 1, "max_conditions": 1, "min_group": 20} | options
    return [coded.rule(atoms) for atoms in HarmFinder(coded, harm, **settings).find(np.ones(len(harm)))]


@pytest.mark.parametrize("seed", range(3))
def test_the_best_single_condition_is_found_among_all(seed):
    table = table_of(300, seed)
    harm = np.random.default_rng(seed).normal(size=300) + 0.6 * (table["marker"] > 0.4) - 0.3
    coded = CodedTable.from_table(table)
    candidates = [table["age"].isna().to_numpy()]
    for name, cuts in zip(coded.names[:2], coded.values[:2], strict=True):
        for cut in cuts:
            candidates += [(table[name] <= cut).to_numpy(), (table[name] > cut).to_numpy()]
    candidates += [(table["diabetes"] == flag).to_numpy() for flag in (0, 1)]
    for level in ("I", "II", "III"):
        candidates += [(table["stage"] == level).to_numpy(), (table["stage"] != level).to_numpy()]
    best = max(borne(harm[inside]) for inside in candidates if inside.sum() >= 20)
    (rule,) = search(table, harm.to_numpy())
    assert borne(harm[rule.holds(table)]) == pytest.approx(best)


def test_rules_and_codes_agree_about_who_is_meant():
    table = table_of(400)
    harm = np.random.default_rng(1).normal(size=400) + 0.2
    coded = CodedTable.from_table(table)
    for atoms in HarmFinder(coded, harm, max_rules=5, max_conditions=3, min_group=20).find(
        np.ones(len(harm))
    ):
        np.testing.assert_array_equal(coded.covers(atoms), coded.rule(atoms).holds(table))


def test_a_group_that_needs_two_conditions_is_found():
    table = table_of(2000)
    harmed = (table["marker"] > 0.2) & (table["stage"] == "III")
    harm = np.random.default_rng(0).normal(size=2000) * 0.5 + np.where(harmed, 0.6, -0.3)
    (rule,) = search(table, harm, max_conditions=3)
    inside = rule.holds(table)
    assert (inside & harmed).sum() / (inside | harmed).sum() > 0.8
    assert {condition.column for condition in rule.conditions} == {"marker", "stage"}


def test_a_group_that_no_single_condition_shows_to_be_harmed_is_found():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(3000, 8)), columns=list("abcdefgh"))
    harmed = (table["c"] > 0.3) & (table["f"] > 0.3)
    harm = np.where(harmed, 0.17 + 0.7 * rng.normal(size=3000), -0.18 + 0.4 * rng.normal(size=3000))
    assert harm[table["c"] > 0.3].mean() < 0
    assert search(table, harm, max_conditions=1) == []
    (rule,) = search(table, harm, max_conditions=3)
    inside = rule.holds(table)
    assert {condition.column for condition in rule.conditions} >= {"c", "f"}
    assert (inside & harmed).sum() / (inside | harmed).sum() > 0.7


def test_two_groups_need_two_rules_and_the_second_is_sought_among_the_others():
    table = table_of(3000)
    harm = np.random.default_rng(0).normal(size=3000) * 0.5 + np.where(abs(table["marker"]) > 1.2, 0.5, -0.3)
    rules = search(table, harm, max_rules=2)
    assert {condition.comparison for rule in rules for condition in rule.conditions} == {"<=", ">"}
    assert all(rule.conditions[0].column == "marker" for rule in rules)


def test_weights_count_patients_as_often():
    table = table_of(200)
    rng = np.random.default_rng(3)
    harm, draws = rng.normal(size=200) + 0.1, rng.integers(0, 3, 200)
    coded = CodedTable.from_table(table)
    repeated = replace(coded, codes=coded.codes[:, np.repeat(np.arange(200), draws)])
    limits = {"max_rules": 3, "max_conditions": 2, "min_group": 20}
    weighted = HarmFinder(coded, harm, **limits).find(draws.astype(float))
    assert weighted == HarmFinder(repeated, np.repeat(harm, draws), **limits).find(np.ones(draws.sum()))


def test_no_rule_where_nobody_is_harmed_and_none_smaller_than_a_group():
    table = table_of(300)
    assert search(table, np.full(300, -1.0)) == []
    few = np.where(np.arange(300) < 15, 0.2, -1.0)
    table = table.assign(marker=np.arange(300.0))
    assert search(table, few, max_conditions=3) == []
    assert search(table, few, max_conditions=3, min_group=15) != []


def test_rare_categories_are_never_named_but_take_part_in_is_not():
    table = pd.DataFrame({"ward": ["a"] * 100 + [f"ward {i}" for i in range(300)]})
    harm = np.r_[np.full(100, -1.0), np.full(300, 0.5)] + np.random.default_rng(0).normal(size=400)
    (rule,) = search(table, harm)
    assert str(rule) == "ward is not a"
    assert rule.holds(table).sum() == 300


def test_thresholds_are_whole_where_values_are_and_short_elsewhere():
    coded = CodedTable.from_table(table_of(1000))
    assert all(cut == round(cut) for cut in coded.values[0])
    assert all(cut == round(cut, 2) for cut in coded.values[1])


def test_a_flag_reads_as_a_flag_and_a_constant_as_nothing():
    table = table_of(400)
    (rule,) = search(table, np.where(table["diabetes"] == 1, 0.4, -0.5))
    assert str(rule) == "diabetes is 1"
    assert search(table[["constant"]], np.full(400, 0.5)) == []


def test_infinite_values_are_beyond_every_threshold():
    table = table_of(400)
    table.loc[:9, "marker"], table.loc[10:19, "marker"] = np.inf, -np.inf
    (rule,) = search(table[["marker"]], np.where(table["marker"] > 0.5, 0.4, -0.5))
    assert rule.conditions[0].comparison == ">"
    assert rule.holds(table)[:10].all()
    assert not rule.holds(table)[10:20].any()
