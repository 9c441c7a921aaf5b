"""Scores, Bayes factors and Poisson fits against the definition: quadrature, a general optimiser, every rule tried."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize, stats

from drosurv.judging.rules import CodedTable
from drosurv.repairs.bayes_factors import (
    Limits,
    Residuals,
    ScoreEvidence,
    SummedGain,
    group_effects,
    in_blocks,
    likelihood_gains_of,
    log_bayes_factor,
    minus_log_prior,
    poisson_ridge,
    propose,
)


def residuals_of(n=400, p=4, seed=0, level=0.0, slope=0.0, inside=None):
    """Patients whose hazards are the model's times exp(level + slope z2) where they are inside."""
    rng = np.random.default_rng(seed)
    z = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
    hazard = np.exp(0.5 * z[:, 1])
    inside = np.ones(n, bool) if inside is None else inside(z)
    time = rng.exponential(size=n) / (hazard * np.exp(inside * (level + slope * z[:, 2])))
    end = rng.exponential(size=n) * 1.5
    return Residuals((time <= end).astype(float), hazard * np.minimum(time, end), z)


@pytest.mark.parametrize(("score", "information"), [(0.0, 3.0), (4.0, 10.0), (-25.0, 60.0), (2.0, 0.0)])
def test_bayes_factor_is_the_integral_over_the_prior(score, information):
    tau = 0.5

    def integrand(theta):
        return np.exp(score * theta - information * theta**2 / 2) * stats.norm.pdf(theta, scale=tau)

    expected = integrate.quad(integrand, -6, 6, points=[0.0, score / (information + 4)])[0]
    found = log_bayes_factor(np.array(score), np.array(information), tau)
    assert found == pytest.approx(np.log(expected), abs=1e-7)


def sums_of(criterion, group):
    """Return the sums (1, k) over the patients of a group (n,)."""
    codes = np.where(group, 0, 1).astype(np.int16)[None]
    return criterion.sums_by_code(codes, np.arange(len(group)), 2)[:, 0]


@pytest.mark.parametrize("level_only", [False, True])
def test_score_of_every_rule_is_that_of_the_definition(level_only):
    at = residuals_of(slope=0.8, inside=lambda z: z[:, 3] > 0.5)
    table = CodedTable.from_table(pd.DataFrame(at.columns[:, 1:], columns=list("abc")))
    limits = Limits(30, 10, tau=0.4, level_only=level_only)
    criterion = ScoreEvidence(at, limits)
    pi = min(0.25, 2 / 3)
    for place in range(0, len(table.atoms), 7):
        g = table.covers((table.listed[place],))
        d, e, z = at.events[g], at.expected[g], at.columns[g]
        found = criterion.scores(sums_of(criterion, g))[0]
        if len(d) < 30 or d.sum() < 10 or e.sum() < 10:
            assert found == -np.inf
            continue
        wanted = np.log(0.5 + 0.5 * np.exp(log_bayes_factor((d - e).sum(), e.sum(), 0.4)))
        for j in () if level_only else range(1, 4):
            # The score of an effect after the level is fitted: its part that the level does not explain.
            part = z[:, j] - e @ z[:, j] / e.sum()
            factor = np.exp(log_bayes_factor(part @ (d - e), e @ part**2, 0.4))
            wanted += np.log(1 - pi + pi * factor)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_huge_evidence_is_as_exact_as_small():
    n = 4000
    at = Residuals(np.ones(n), np.full(n, 0.1), np.column_stack([np.ones(n), np.linspace(-1, 1, n)]))
    criterion = ScoreEvidence(at, Limits(10, 10))
    found = criterion.scores(sums_of(criterion, np.ones(n, dtype=bool)))
    pi, u = 0.25, n - 0.1 * n
    z = at.columns[:, 1]
    level = np.log(0.5) + log_bayes_factor(np.array(u), np.array(0.1 * n), 0.5)
    effect = np.log(1 - pi + pi * np.exp(log_bayes_factor(z @ np.full(n, 0.9), 0.1 * z @ z, 0.5)))
    assert found[0] == pytest.approx(level + effect, rel=1e-9)


def test_poisson_ridge_is_the_optimum_of_a_general_optimiser():
    at = residuals_of(level=0.7, slope=-0.6)
    penalty = np.array([0.0, 1.0, 4.0, 20.0])

    def loss(theta):
        r = at.columns @ theta
        return -likelihood_gains_of(r, at.events, at.expected).sum() + 0.5 * penalty @ theta**2

    wanted = optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    found = poisson_ridge(in_blocks(at.columns, at.events, at.expected), penalty)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(
        poisson_ridge(in_blocks(at.columns, at.events, at.expected), penalty, wanted), wanted, atol=1e-5
    )


def test_poisson_ridge_is_finite_without_events_and_with_equal_columns():
    at = residuals_of()
    none = poisson_ridge(in_blocks(at.columns[:, :1], np.zeros(400), at.expected), np.array([4.0]))
    assert -10 < none[0] < -1
    twice = np.column_stack([at.columns, at.columns[:, 1]])
    assert np.isfinite(poisson_ridge(in_blocks(twice, at.events, at.expected), np.zeros(5))).all()


def test_gain_is_the_change_of_the_survival_likelihood():
    hazard, time, r = np.array([0.5, 2.0]), np.array([1.5, 0.3]), np.array([0.4, -1.0])
    for event in (np.array([1.0, 0.0]), np.array([0.0, 1.0])):
        before = event * np.log(hazard) - hazard * time
        after = event * (np.log(hazard) + r) - hazard * np.exp(r) * time
        np.testing.assert_allclose(likelihood_gains_of(r, event, hazard * time), after - before)


def test_evidence_of_a_level_is_near_the_integral_over_its_prior():
    at = residuals_of(level=0.6)
    found = group_effects(at, np.ones(400, bool), Limits(10, 10, level_only=True))

    def integrand(theta):
        gain = likelihood_gains_of(np.full(400, theta), at.events, at.expected).sum()
        return np.exp(gain) * stats.norm.pdf(theta, scale=0.5)

    exact = np.log(integrate.quad(integrand, -2, 2, points=[found.effects[0]])[0]) - np.log(2)
    assert found.log_evidence == pytest.approx(exact, abs=0.02)
    assert found.chosen.tolist() == [0]
    assert found.inclusion.tolist() == [1, 0, 0, 0]


def test_effects_that_differ_are_chosen_and_others_are_not():
    at = residuals_of(n=3000, p=12, level=0.2, slope=0.7)
    found = group_effects(at, np.ones(3000, bool), Limits(10, 10))
    assert found.chosen.tolist() == [0, 2]
    assert found.effects == pytest.approx([0.2, 0.7], abs=0.1)
    assert (np.delete(found.inclusion, [0, 2]) < 0.5).all()


@pytest.mark.parametrize("seed", range(2))
def test_the_proposal_is_the_best_of_all_single_conditions(seed):
    at = residuals_of(n=600, seed=seed, slope=0.9, inside=lambda z: z[:, 3] > 0.5)
    table = CodedTable.from_table(pd.DataFrame(at.columns[:, 1:], columns=list("abc")))
    limits = Limits(50, 10)
    everyone = np.ones(600, bool)
    found = propose(table, at, everyone, limits, 1)
    best = -np.inf
    for place in range(len(table.atoms)):
        g = table.covers((table.listed[place],))
        if g.sum() >= 50 and min(at.events[g].sum(), at.expected[g].sum()) >= 10:
            best = max(best, group_effects(at, g, limits).log_evidence - np.log(4 * 3))
    # The screen sees single effects only, so it may miss the very best threshold, but not by much.
    assert best - 1.5 <= found.log_odds <= best + 1e-9
    assert table.rule(found.atoms).conditions[0].column == "c"


def test_a_second_condition_costs_the_number_of_conditions_to_choose_from():
    table = CodedTable.from_table(pd.DataFrame(residuals_of().columns[:, 1:], columns=list("abc")))
    assert minus_log_prior(table, 1) == pytest.approx(np.log(12))
    assert minus_log_prior(table, 2) == pytest.approx(np.log(12) + np.log(len(table.atoms)))


def test_summed_gain_is_that_of_the_patients_and_small_groups_are_not_allowed():
    at = residuals_of()
    r = 0.3 * at.columns[:, 2]
    criterion = SummedGain(at, r, Limits(50, 10))
    for g in (at.columns[:, 1] > 0.3, at.columns[:, 1] > 2.5):
        found = criterion.scores(sums_of(criterion, g))[0]
        wanted = (at.events * r - (np.exp(r) - 1) * at.expected)[g].sum() if g.sum() >= 50 else -np.inf
        assert found == pytest.approx(wanted)


def test_nothing_is_proposed_without_columns_or_with_too_few_events():
    at = residuals_of(n=100)
    everyone = np.ones(100, bool)
    constant = CodedTable.from_table(pd.DataFrame({"a": np.ones(100)}))
    assert propose(constant, at, everyone, Limits(20, 5), 2) is None
    table = CodedTable.from_table(pd.DataFrame(at.columns[:, 1:], columns=list("abc")))
    assert propose(table, at, everyone, Limits(20, 90), 2) is None
