"""The search for repairs: e-values and acceptance tests against their definition, written out in loops."""

import numpy as np
import pandas as pd
import pytest

from drosurv.judging.rules import CodedTable
from drosurv.patients.draws import draw_folds
from drosurv.repairs.bayes_factors import Limits, Residuals, likelihood_gains_of
from drosurv.repairs.checked_search import CheckedSearch, find_repairs, z_of
from drosurv.repairs.repair import HeldOutNumber
from drosurv.repairs.repair_search import STRENGTHS, VERSIONS, RepairSearch, fit_version

LIMITS = Limits(20, 10)


def patients(n=600, level=0.0, slope=0.0, off=0.0, seed=0):
    """A right model, but for those with c > 0.7: their level and the effect of b; `off` for everyone."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    hazard = np.exp(0.5 * x[:, 0])
    true = hazard * np.exp(off + (x[:, 2] > 0.7) * (level + slope * x[:, 1]))
    time, end = rng.exponential(size=n) / true, 2 * rng.exponential(size=n)
    columns = np.column_stack([np.ones(n), 0.5 * x[:, 0], x])
    residuals = Residuals((time <= end).astype(float), hazard * np.minimum(time, end), columns)
    return CodedTable.from_table(pd.DataFrame(x, columns=list("abc"))), residuals


def checked_search(table, residuals, evidence=20.0, seed=0, **options):
    folds = draw_folds(len(residuals.events), 5, np.random.default_rng(seed))
    return CheckedSearch(table, residuals, folds, 2, evidence, lambda *progress: None, **options)


def scored(table, at, counted, fold, kind):
    """Likelihood ratios of a fold, one for each version, by a search on the counted patients."""
    found = RepairSearch(table, at, counted, 2).find(kind, LIMITS)
    ratios = []
    for version in VERSIONS[kind]:
        for strength in STRENGTHS:
            if found is None:
                ratios.append(0.0)
                continue
            r = strength * found.corrections[version].of(at.columns, found.inside)
            ratios.append(sum(likelihood_gains_of(r, at.events, at.expected)[fold]))
    return np.array(ratios)


@pytest.mark.parametrize(("kind", "planted"), [("effects", {"slope": 1.0}), ("everyone", {"off": 0.25})])
def test_the_e_value_is_that_of_the_definition(kind, planted):
    table, at = patients(**planted)
    search = checked_search(table, at, evidence=1e300)
    trial = search.try_kind(kind, LIMITS)
    folds = search.folds
    averaged = np.mean([np.exp(scored(table, at, folds != k, folds == k, kind)) for k in range(5)])
    products = []
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]):
        total = sum(scored(table, at, np.isin(folds, order[:m]), folds == order[m], kind) for m in (2, 3, 4))
        products.append(np.exp(total))
    assert trial.e == pytest.approx((averaged + np.mean(products)) / 2)
    assert not trial.accepted
    assert not search.on_all.r.any()


def test_a_planted_group_is_accepted_and_every_search_keeps_its_repair():
    table, at = patients(slope=1.2)
    search = checked_search(table, at)
    trial = search.try_kind("effects", LIMITS)
    assert trial.accepted
    assert trial.e >= 20
    assert str(trial.rule).startswith("c > 0.")
    whole = trial.correction.of(at.columns, trial.group)
    np.testing.assert_allclose(search.on_all.r, trial.strength * whole)
    held_out = np.choose(search.folds, [one.r for one in search.without_fold])
    np.testing.assert_allclose(trial.r_after, held_out)
    np.testing.assert_allclose(trial.gains, likelihood_gains_of(trial.r_after, at.events, at.expected))
    inside = np.flatnonzero(trial.group)[:5]
    assert len({tuple(np.round(one.r[inside], 6)) for one in search.without_fold}) == len(search.without_fold)
    assert z_of(trial.gains[trial.inside]) >= 1.282
    assert z_of(trial.gains[~trial.inside]) > -1.645
    # After the repair nothing is left to be found in this group.
    again = search.on_all.find("effects", LIMITS)
    assert again is None or (again.inside != trial.group).any()


def test_a_right_model_is_left_alone_and_its_e_values_are_small():
    found = []
    for seed in range(8):
        table, at = patients(n=400, seed=seed)
        # Of a frozen model every trial has an e-value.
        search = checked_search(table, at, seed=seed, frozen=True)
        found += [search.try_kind(kind, LIMITS) for kind in ("everyone", "effects", "level")]
    trials = [trial for trial in found if trial is not None]
    assert len(trials) >= 8
    assert not any(trial.accepted for trial in trials)
    assert np.mean([trial.e for trial in trials]) < 5


def test_against_the_best_level_of_each_fold_a_recalibration_gains_nothing():
    table, at = patients(off=0.8, seed=1)
    search = checked_search(table, at, evidence=1e300)
    plain = search.try_kind("everyone", LIMITS)
    search.against_best_level = True
    best_level = search.try_kind("everyone", LIMITS)
    assert plain.e > 1e6
    # Nothing that is fitted elsewhere beats the best level and slope of a fold on that fold.
    assert best_level.e < 1


def far_out(**planted):
    """Five survivors far from all others, of whom models that have not seen them expected six events each."""
    table, at = patients(seed=1, **planted)
    rows = np.flatnonzero(at.events == 0)[:5]
    columns, expected = at.columns.copy(), at.expected.copy()
    columns[rows, 1], expected[rows] = 3.0, 6.0
    return table, Residuals(at.events, expected, columns)


def test_a_gain_from_few_patients_recalibrates_a_frozen_model_but_not_a_fitted_one():
    frozen, fitted = (
        find_repairs(checked_search(*far_out(), seed=1, frozen=frozen), LIMITS, 5) for frozen in (True, False)
    )
    assert [(trial.kind, trial.accepted) for trial in frozen] == [("everyone", True)]
    assert [(trial.kind, trial.accepted) for trial in fitted] == [("everyone", False)]
    # By e alone both would be kept, though the gain may be chance.
    assert fitted[0].e == frozen[0].e > 1000
    assert HeldOutNumber.mean(fitted[0].gains, 0.95).low < 0


def test_recalibration_before_a_group_needs_the_e_value_alone():
    trials = find_repairs(checked_search(*far_out(slope=1.5), seed=1), LIMITS, 2)
    assert [(trial.kind, trial.accepted) for trial in trials] == [("everyone", True), ("effects", True)]
    assert str(trials[1].rule).startswith("c > 0.")
    assert HeldOutNumber.mean(trials[0].gains, 0.95).low < 0


@pytest.mark.parametrize("off", [0.3, 0.5])
def test_recalibration_alone_needs_a_gain_beyond_the_error_of_a_cross_validated_mean(off):
    search = checked_search(*patients(off=off))
    (trial,) = [trial for trial in find_repairs(search, LIMITS, 5) if trial.kind == "everyone"]
    assert trial.e > 1000
    # Five folds of 120 patients, each judged by a model of the other 480: 1/5 + 120/480 in place of 1/5.
    per_fold = sum(gain**2 for gain in trial.gains) / 600 / 120
    error = (per_fold * (1 / 5 + 120 / 480)) ** 0.5
    assert trial.accepted == (sum(trial.gains) / 600 > 1.96 * error) == (off == 0.5)


def test_each_version_solves_the_score_equations_of_its_columns_and_patients():
    table, at = patients(level=0.5)
    inside = table.covers((table.listed[-10],))
    counted = np.arange(600) % 3 > 0
    inclusion = np.array([1.0, 0.01, 0.5, 0.0, 1.0])
    level = fit_version("level", at, inside, counted, inclusion, LIMITS)
    g = inside & counted
    # One number: its score equation.
    gap = (at.events[g] - at.expected[g] * np.exp(level.own[0])).sum() - 4 * level.own[0]
    assert gap == pytest.approx(0, abs=1e-4)
    assert not level.own[1:].any()
    assert not level.everywhere.any()
    full = fit_version("full", at, inside, counted, inclusion, LIMITS)
    assert np.flatnonzero(full.everywhere).tolist() == np.flatnonzero(full.own).tolist() == [0, 2, 4]
    r = full.of(at.columns, inside)
    score = at.columns.T @ ((at.events - at.expected * np.exp(r)) * counted)
    np.testing.assert_allclose(score[[0, 2, 4]], full.everywhere[[0, 2, 4]] * [4, 8, 4], atol=1e-3)


def test_folds_have_equal_sizes_and_spread_events_only_if_asked():
    event = np.arange(103) < 20
    folds = draw_folds(103, 5, np.random.default_rng(0), event)
    assert set(np.bincount(folds)) == {20, 21}
    assert set(np.bincount(folds[event])) == {4}
    blind = draw_folds(103, 5, np.random.default_rng(0))
    assert set(np.bincount(blind)) == {20, 21}
    assert len(set(np.bincount(blind[event], minlength=5))) > 1
