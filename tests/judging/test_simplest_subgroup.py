"""The subgroup that is named: the simplest of those that explain the finding."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drosurv import Surv, audit, certify
from drosurv.evaluation import Predictions
from drosurv.judging.certification import certify_rows
from drosurv.judging.judged import Horizon
from drosurv.judging.rules import CodedTable
from drosurv.judging.simultaneous_tests import _simplest
from drosurv.judging.subgroup_sums import Subgroups
from drosurv.patients.observation import Rows

GRID = np.linspace(0.01, 3, 300)


def patients(seed, wrong, n=1200, ratio=1.8):
    """Right predictions, but for patients for whom `wrong` holds, who have `ratio` times the hazard."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    X["copy of b"] = X["b"] + 0.001 * rng.normal(size=n)
    rate = np.exp(0.5 * X["a"].to_numpy())
    time = rng.exponential(size=n) / rate / np.where(wrong(X), ratio, 1.0)
    end = np.minimum(rng.exponential(2.0, size=n), 3.0)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return X, y, Predictions(survival=np.exp(-np.outer(rate, GRID)), times=GRID)


@pytest.mark.parametrize("seed", range(3))
def test_one_condition_is_named_where_a_second_one_adds_nothing(seed):
    X, y, predictions = patients(seed, lambda X: X["b"] > 0.5)
    found = certify(predictions, X, y, n_bootstrap=59)
    assert len(found.rules[0].conditions) == 1
    assert found.rules[0].conditions[0].column in ("b", "copy of b")
    # The other rows are in the order of their p-values.
    assert found.significant["p"].iloc[1:].is_monotonic_increasing
    assert [str(rule) for rule in found.rules] == found.significant["group"].tolist()


def test_two_conditions_are_named_where_both_are_needed():
    X, y, predictions = patients(0, lambda X: (X["b"] > 0) & (X["c"] > 0), n=2000)
    found = certify(predictions, X, y, n_bootstrap=59)
    assert {condition.column for condition in found.rules[0].conditions} in ({"b", "c"}, {"copy of b", "c"})
    inside, true = found.rules[0].holds(X), (X["b"] > 0) & (X["c"] > 0)
    assert (inside & true).sum() / (inside | true).sum() > 0.7


def by_definition(first, others, members, observed, expected, n_conditions):
    """The first of the simpler rules that has the same patients up to 5 %, or whose other patients are as wrong."""
    for rule in others:
        inside, own = members(first), members(rule)
        if (inside ^ own).sum() <= 0.05 * (inside | own).sum():
            return rule
        if rule[0] in first:
            rest = own & ~inside
            share = expected[inside].sum() / expected[own].sum()
            seen = observed[inside].sum(), observed[rest].sum()
            # Of all events, the share inside is binomial; square roots of counts have variance 1/4.
            z = 2 * np.sqrt((1 - share) * (seen[0] + 0.375)) - 2 * np.sqrt(share * (seen[1] + 0.375))
            if abs(z) < stats.norm.isf(0.025 / n_conditions):
                return rule
    return first


@pytest.mark.parametrize("seed", range(20))
def test_the_simplest_subgroup_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    n = 400
    b = rng.integers(0, 2, n)
    near = np.where(rng.random(n) < 0.02, 1 - b, b)
    columns = {"b": b, "near b": near, "c": rng.random(n) < 0.9, "d": rng.random(n) < 0.3}
    X = pd.DataFrame({name: np.where(values, "yes", "no") for name, values in columns.items()})
    table = CodedTable.from_table(X, 10, 20)
    subgroups = Subgroups(table)
    expected = rng.uniform(0.2, 1.0, n)
    observed = rng.poisson(expected * np.where(b == 1, 2.0, 1.0) * rng.uniform(0.5, 1.5)).astype(float)
    rules = {str(subgroups.rule(g)): g for g in range(len(subgroups))}
    first = rng.choice([name for name in rules if " and " in name])
    found = [rules[first], *rng.permutation(list(rules.values()))]
    sums = subgroups.sums(np.column_stack([observed, expected]))

    def members(rule):
        return np.logical_and.reduce([X[part.split(" = ")[0]] == part.split(" = ")[1] for part in rule])

    named = {g: tuple(name.split(" and ")) for name, g in rules.items()}
    others = [named[g] for g in found[1:] if len(named[g]) == 1]
    wanted = by_definition(named[found[0]], others, members, observed, expected, len(table.atoms))
    place = _simplest(
        subgroups, [(g, 0) for g in found], sums[:, :1], sums[:, 1:], np.ones((len(subgroups), 1))
    )
    assert named[found[place]] == wanted


def test_another_question_about_the_same_patients_explains_nothing():
    X = pd.DataFrame({"b": np.tile(["yes", "no"], 100), "c": np.repeat(["yes", "no"], 100)})
    subgroups = Subgroups(CodedTable.from_table(X, 10, 20))
    pair = next(g for g in range(len(subgroups)) if len(subgroups.atoms(g)) == 2)
    alone = next(g for g in range(len(subgroups)) if set(subgroups.atoms(g)) < set(subgroups.atoms(pair)))
    sums = np.repeat(subgroups.sums(np.ones((200, 1))), 2, axis=1)
    how = sums, sums, np.ones(sums.shape)
    assert _simplest(subgroups, [(pair, 0), (alone, 1)], *how) == 0
    assert _simplest(subgroups, [(pair, 1), (alone, 1)], *how) == 1


@pytest.mark.sections("verdict", "missed")
def test_a_subgroup_that_differs_by_less_than_the_relevance_is_no_problem():
    X, y, predictions = patients(1, lambda X: X["b"] > 0.5, n=800, ratio=3.0)
    given = {"random_state": 0}
    for relevance, wrong in ((1.05, True), (4.0, False)):
        found = audit(predictions, None, y, features=X[["b"]], relevance=relevance, **given)
        assert ("subgroups that were searched" in found.to_markdown()) == wrong
    assert "differ significantly from what the model predicts" in found.to_markdown()


def test_subgroups_are_judged_again_only_if_all_patients_differ_by_more_than_the_relevance():
    X, y, predictions = patients(3, lambda X: X["b"] > -9, n=400, ratio=1.5)
    for relevance, again in ((1.05, True), (4.0, False)):
        given = predictions, X[["a", "b"]], y, Rows(), Horizon()
        found = certify_rows(*given, n_bootstrap=59, relevance=relevance)
        assert found.overall["p"] < 0.05
        assert (found.rescaled is not None) == again


def test_a_small_difference_of_all_patients_is_said_in_the_bounds_too():
    X, y, predictions = patients(3, lambda X: X["b"] > 9, n=600)
    found = certify(predictions, X[["a", "b"]], y, n_bootstrap=59)
    for ratio, said in (
        (1.03, "3 % more events than expected for all patients"),
        (1.3, "events is wrong for all"),
    ):
        overall = {**found.overall, "ratio": ratio, "low": ratio - 0.01, "high": ratio + 0.01, "p": 1e-4}
        assert said in replace(found, overall=overall).summary()
