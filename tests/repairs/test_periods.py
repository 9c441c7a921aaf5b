"""Repair of the timing of events: against its definition in loops, on right models, and on effects that fade."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CoxPH, RepairedCox, Surv, repair
from drosurv.judging.rules import CodedTable
from drosurv.metrics import integrated_brier_score, likelihood_gain
from drosurv.patients.draws import draw_folds
from drosurv.repairs.bayes_factors import Clusters, Limits, OverTime, Residuals
from drosurv.repairs.checked_search import CheckedSearch, find_repairs
from drosurv.repairs.periods import Periods, find_periods
from drosurv.repairs.repair_views import in_words

CUT = 0.5


def patients(n, seed, early=0.6, late=0.6, level=0.0):
    """The effect of the score is `early` until 0.5 and `late` after; the hazard of an average patient is 1.

    Those with c > 0.7 and b > 0 have exp(level) times this hazard.
    """
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    score, more = X["a"] + 0.5 * X["b"], level * ((X["c"] > 0.7) & (X["b"] > 0))
    first, second, u = np.exp(early * score + more), np.exp(late * score + more), rng.exponential(size=n)
    time = np.where(u < first * CUT, u / first, CUT + (u - first * CUT) / second)
    end = rng.uniform(0.2, 3, n)
    return X, Surv.from_arrays(time <= end, np.minimum(time, end))


def predictions(X, effect=0.6):
    times = np.linspace(0.1, 3, 30)
    return times, np.exp(-np.outer(np.exp(effect * (X["a"] + 0.5 * X["b"])), times))


def gain(model, X, y):
    times = np.quantile(y["time"], np.linspace(0.01, 1, 100))
    return likelihood_gain(model.follow_up_, y, model.predict_survival_function(X, times=times), times)


@pytest.fixture(scope="module")
def faded():
    return RepairedCox(CoxPH(), max_conditions=1, folds=3, random_state=0).fit(
        *patients(1200, 0, early=1.0, late=0.2)
    )


def test_an_effect_that_fades_is_found_and_corrected_on_other_patients(faded):
    (found,) = faded.repairs_
    assert (found.kind, found.rule, found.patients) == ("timing", None, 1200)
    assert faded.status_ == "CoxPH was corrected for everyone, by period of the follow-up."
    assert "The effect of the score (log hazard ratio) fades: 1." in faded.in_words()[0]
    slopes = 1 + found.periods.slopes
    assert slopes[:2].min() > 1.1 > 0.7 > slopes[2:].max()
    X, y = patients(2000, 1, early=1.0, late=0.2)
    assert gain(faded, X, y) > gain(faded.base_, X, y) + 0.02
    times = np.linspace(0.1, 2.0, 20)
    brier = [
        integrated_brier_score(faded.follow_up_, y, model.predict_survival_function(X, times=times), times)
        for model in (faded, faded.base_)
    ]
    assert brier[0] < brier[1] - 0.002
    # At any time the order of the patients is that of the base.
    np.testing.assert_array_equal(faded.predict(X), faded.base_.predict(X))
    assert faded.capabilities.score != "log hazard"


@pytest.fixture(scope="module")
def with_group():
    X, y = patients(1000, 0, early=1.0, late=0.2, level=2.0)
    return RepairedCox(CoxPH(), folds=3, random_state=0).fit(X, y)


def test_a_group_is_found_beside_an_effect_that_fades(with_group):
    kinds = [found.kind for found in with_group.repairs_]
    assert kinds.count("timing") == 1
    rules = [
        {condition.column for condition in found.rule.conditions}
        for found in with_group.repairs_
        if found.rule
    ]
    assert {"b", "c"} in rules
    for found in with_group.repairs_:
        assert found.predicted_after == pytest.approx(found.events, rel=0.15)


def test_curves_are_sums_of_hazards_that_are_multiplied_by_period(with_group, tmp_path):
    model, (X, _) = with_group, patients(20, 2)
    (which,) = [k for k, found in enumerate(model.repairs_) if found.kind == "timing"]
    periods, factor = model.repairs_[which].periods, model._factor
    jumps = model.base_.unique_times_
    hazards = model.base_.predict_cumulative_hazard_function(X, times=jumps)
    column, risk = model._columns.columns[0], model.base_.predict(X)
    quartiles = model.base_.predict_cumulative_hazard_function(X, times=model._times)
    risk = np.log(quartiles.mean(axis=1))
    z = model._columns.of(X, risk)
    ratios = np.array([found.log_hazard_ratios(X, z) for found in model.repairs_])
    at = [0.1, float(periods.cuts[0]), 0.7, 2.5]
    wanted = np.zeros((20, len(at)))
    for i in range(20):
        score = min(max(risk[i], column.low), column.high) - column.centre + sum(ratios[:which, i])
        total, before = 0.0, 0.0
        for jump, value in zip(jumps, hazards[i], strict=True):
            period = sum(jump > cut for cut in periods.cuts)
            interval = max(sum(jump > edge for edge in factor.edges) - 1, 0)
            change = sum(ratios[:, i]) + periods.levels[period] + periods.slopes[period] * score
            total += (value - before) * factor.factors[interval] * np.exp(change)
            before = value
            wanted[i, [k for k, time in enumerate(at) if jump <= time]] = total
    found = model.predict_cumulative_hazard_function(X, times=at)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_allclose(model.predict_survival_function(X, times=at), np.exp(-wanted), rtol=1e-9)
    model.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_cumulative_hazard_function(X, times=at), found)
    assert loaded.in_words() == model.in_words()


def test_predictions_whose_shape_is_wrong_are_corrected(tmp_path):
    X, y = patients(1200, 5, early=1.0, late=0.2)
    times, survival = predictions(X)
    model = repair((times, survival), X, y, max_conditions=1, random_state=0)
    last = model.repairs_[-1]
    assert last.kind == "timing"
    assert set(last.periods.cuts) <= set(times)
    assert "The effect of the score (log hazard ratio) fades" in model.in_words()[-1]
    assert "the predicted hazard" in model.in_words()[-1]
    others, theirs = patients(800, 4, early=1.0, late=0.2)
    said = predictions(others)[1]
    corrected = model.correct((times, said), others)
    before, after = (likelihood_gain(model.follow_up_, theirs, S, times) for S in (said, corrected))
    assert after > before + 0.03
    # Written out for single patients: hazards between the predicted times.
    column, recalibration = model._columns.columns[0], model.repairs_[0]
    assert [found.kind for found in model.repairs_] == ["everyone", "timing"]
    level, slope = recalibration.strength * recalibration.correction.own[:2]
    quartiles = np.quantile(np.append(0.0, times), [0.25, 0.5, 0.75])
    for i in range(5):
        rate = -np.log(said[i, 0]) / times[0]
        z = (np.clip(np.log(rate * quartiles.mean()), column.low, column.high) - column.centre) / column.scale
        r = level + slope * z
        score, total = column.scale * z + r, 0.0
        for k, time in enumerate(times):
            period = sum(time > cut + 1e-9 for cut in last.periods.cuts)
            change = last.periods.levels[period] + last.periods.slopes[period] * score
            total += rate * (time - (times[k - 1] if k else 0.0)) * np.exp(r + change)
            assert corrected[i, k] == pytest.approx(np.exp(-total), rel=1e-6)
    model.save(tmp_path / "repair")
    again = drosurv.load(tmp_path / "repair").correct((times, said), others)
    np.testing.assert_array_equal(again, corrected)


def test_right_models_are_not_changed():
    for seed in range(2):
        X, y = patients(300, 10 + seed)
        fitted = RepairedCox(CoxPH(), max_conditions=1, folds=3, random_state=seed).fit(X, y)
        times, survival = predictions(X)
        frozen = repair((times, survival), X, y, max_conditions=1, folds=3, random_state=seed)
        assert fitted.repairs_ == frozen.repairs_ == []
        np.testing.assert_allclose(frozen.correct((times, survival), X), survival, atol=1e-9)
        np.testing.assert_allclose(
            fitted.predict_survival_function(X, times=times),
            CoxPH().fit(X, y).predict_survival_function(X, times=times),
            rtol=1e-12,
        )


def residuals(n=900, early=0.9, late=0.2, seed=0):
    """A frozen model with effect 0.6 of the score, in intervals of 0.1."""
    X, y = patients(n, seed, early, late)
    edges = np.arange(0, 1.95, 0.1)
    score = (X["a"] + 0.5 * X["b"]).to_numpy()
    time = y["time"]
    at_risk = np.clip(np.minimum.outer(time, np.append(edges[1:], np.inf)) - edges, 0, None)
    expected = np.exp(0.6 * score)[:, None] * at_risk
    columns = np.column_stack([np.ones(n), 0.6 * score / 0.5, X])
    interval = np.array([max(sum(t > edges) - 1, 0) for t in time])
    over_time = OverTime(expected, interval, edges, 0.5)
    event = y["event"].astype(float)
    return (
        CodedTable.from_table(X),
        Residuals(event, expected.sum(axis=1), columns, None, over_time),
        edges,
        y,
    )


def written_out(periods, first, at, score, rows):
    """Gain in log likelihood of the correction, patient by patient and interval by interval."""
    total = 0.0
    for i in np.flatnonzero(rows):
        for m, expected in enumerate(at.over_time.unscaled[i]):
            k = sum(m >= first) - 1
            r = periods.levels[k] + periods.slopes[k] * score[i]
            happened = at.events[i] * (at.over_time.interval[i] == m)
            total += happened * r - (np.exp(r) - 1) * expected
    return total


def test_levels_and_slopes_solve_their_penalised_score_equations():
    _, at, _, _ = residuals()
    score, everyone = 0.5 * at.columns[:, 1], np.ones(900, dtype=bool)
    found = find_periods(at, score, everyone, frozen=True)
    assert list(found.versions) == ["own", "level"]
    fitted, first = found.versions["own"], found.first
    events = [
        at.events[(at.over_time.interval >= low) & (at.over_time.interval < high)].sum()
        for low, high in zip(first, [*first[1:], 99], strict=True)
    ]
    assert min(events) > 0.15 * sum(events)
    for k, (low, high) in enumerate(zip(first, [*first[1:], 99], strict=True)):
        mean = at.over_time.unscaled[:, low:high].sum(axis=1)
        mean = mean * np.exp(fitted.levels[k] + fitted.slopes[k] * score)
        happened = at.events * (at.over_time.interval >= low) * (at.over_time.interval < high)
        # The prior with the largest evidence has a standard deviation of 0.15.
        penalty = 1 / 0.15**2
        assert (happened - mean).sum() == pytest.approx(penalty * fitted.levels[k], abs=0.01)
        assert (happened - mean) @ score == pytest.approx(penalty * 0.5**2 * fitted.slopes[k], abs=0.01)
    assert (np.diff(fitted.slopes) < 0.1).all()
    gains = found.gains(at, score, everyone)
    assert gains[0].sum() == pytest.approx(written_out(fitted, first, at, score, everyone))
    assert gains[0].sum() > gains[2].sum() > 0
    # Where the slope does not change there is nothing to find.
    _, right, _, _ = residuals(early=0.6, late=0.6)
    assert find_periods(right, 0.5 * right.columns[:, 1], everyone, frozen=True) is None


def test_the_e_value_is_that_of_the_definition():
    table, at, _, _ = residuals(n=400, seed=1)
    folds = draw_folds(400, 5, np.random.default_rng(0))
    search = CheckedSearch(table, at, folds, 1, 20.0, lambda *progress: None, frozen=True)
    trial, score = search.try_kind("timing", Limits(20, 10)), 0.5 * at.columns[:, 1]

    def ratios(counted, fold):
        found = find_periods(at, score, counted, frozen=True)
        if found is None:
            return np.zeros(2)
        own, level, common = (
            written_out(one, found.first, at, score, fold) for one in (*found.versions.values(), found.common)
        )
        return np.array([own, level]) - max(common, 0.0)

    averaged = np.mean([np.exp(ratios(folds != k, folds == k)) for k in range(5)])
    products = [
        np.exp(sum(ratios(np.isin(folds, order[:m]), folds == order[m]) for m in (2, 3, 4)))
        for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])
    ]
    assert trial.e == pytest.approx((averaged + np.mean(products)) / 2)
    assert trial.accepted
    # The correction of each patient was found without the patient's fold.
    again = find_periods(at, score, folds != 2, frozen=True).versions["own"]
    i = int(np.flatnonzero(folds == 2)[0])
    change = again.levels[0] + again.slopes[0] * score[i]
    assert trial.held_out[i, 0] == pytest.approx(change)


def test_no_more_than_max_repairs_and_none_without_intervals():
    table, at, _, _ = residuals(n=800, seed=1)
    folds = draw_folds(800, 5, np.random.default_rng(0))

    def kinds(max_repairs, at):
        search = CheckedSearch(table, at, folds, 1, 20.0, lambda *progress: None, frozen=True)
        trials = find_repairs(search, Limits(20, 10), max_repairs)
        return [trial.kind for trial in trials if trial.accepted]

    assert kinds(5, at)[-1] == "timing"
    assert "timing" not in kinds(5, replace(at, over_time=None))
    assert kinds(0, at) == []


def test_patients_of_a_cluster_count_as_their_mean():
    _, at, _, _ = residuals(n=300)
    double = Residuals(
        *(np.repeat(part, 2, axis=0) for part in (at.events, at.expected, at.columns)),
        None,
        replace(
            at.over_time,
            unscaled=np.repeat(at.over_time.unscaled, 2, axis=0),
            interval=np.repeat(at.over_time.interval, 2),
        ),
    ).averaged(Clusters(np.arange(600) // 2))
    once, twice = (
        find_periods(one, 0.5 * one.columns[:, 1], np.ones(len(one.events), dtype=bool), frozen=True)
        for one in (at, double)
    )
    np.testing.assert_allclose(twice.versions["own"].slopes, once.versions["own"].slopes, atol=1e-4)


@pytest.mark.parametrize(
    ("slopes", "said"),
    [
        (
            [0.4, 0.1, 0.0, -0.2],
            "The effect of the score (log hazard ratio) fades: 1.40 times until time 1, 1.10 times until 2, "
            "1.00 times until 3, 0.80 times after 3.",
        ),
        (
            [-0.3, 0.0, 0.0, 0.5],
            "The effect of the score (log hazard ratio) grows: 0.70 times until time 1, ",
        ),
        ([0.3, -0.3, 0.4, 0.0], "The effect of the score (log hazard ratio) changes: "),
        (
            [-0.2, -0.2, -0.2, -0.2],
            "The effect of the score (log hazard ratio) is different from the predicted one: 0.80 times until",
        ),
    ],
)
def test_the_sentence_says_how_the_effect_changes(faded, slopes, said):
    periods = Periods(np.array([1.0, 2.0, 3.0]), np.array([0.3, 0.0, 0.0, 0.0]), np.array(slopes))
    one = replace(faded.repairs_[0], periods=periods)
    assert in_words(one, frozen=False).startswith(said)
    assert "hazard of a patient" not in in_words(one, frozen=False)
    assert "average risk is 1.35 times until time 1, 1.00 times until 2" in in_words(one, frozen=True)


def test_times_of_periods_are_written_as_elsewhere(faded):
    periods = Periods(np.array([365.0, 1095.0]), np.zeros(3), np.array([0.4, 0.1, -0.2]))
    said = in_words(replace(faded.repairs_[0], periods=periods), frozen=False)
    assert "1.40 times until time 365, 1.10 times until 1,095, 0.80 times after 1,095." in said
