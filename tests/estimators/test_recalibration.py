"""Recalibration: the spread of the scores that patients not trained on ask for, and nothing else changed."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone

import drosurv
from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CoxPH,
    DROCox,
    DROCoxSplit,
    GroupDROCox,
    RegularizedCox,
    SubgroupRobustCox,
    Surv,
    Trees,
)
from drosurv.estimators import network_estimator
from drosurv.losses.cox_partial import CoxPartial
from drosurv.metrics import calibration_slope
from drosurv.patients.target import parse_target, with_fields
from drosurv.solvers import convex, solver
from experiments import rivals

N = 400


def simulated(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    died = rng.exponential(size=n) * np.exp(-X @ [1.0, -0.5, 0.0])
    end = rng.uniform(0.2, 3.0, size=n)
    # On a grid, so that times are tied.
    return X, Surv.from_arrays(died <= end, np.ceil(20 * np.minimum(died, end)) / 20)


X, Y = simulated(N, 0)
GROUPS = np.where(X[:, 2] > 0, "a", "b")


def log_partial_likelihood(scores, y, weight=None, ties="breslow"):
    """Written from the definition; a patient of weight w stands in risk sets w times."""
    w = np.ones(len(y)) if weight is None else weight
    total = 0.0
    for t in np.unique(y["time"][y["event"]]):
        died = y["event"] & (y["time"] == t)
        at_risk = (w * np.exp(scores))[y["time"] >= t].sum()
        dead = (w * np.exp(scores))[died].sum()
        m = died.sum()
        shares = np.arange(m) / m if ties == "efron" else np.zeros(m)
        total += (w * scores)[died].sum() - np.mean(w[died]) * np.log(at_risk - shares * dead).sum()
    return total


def best_factor(scores, y, fold, **options):
    def loss(b):
        return -sum(
            log_partial_likelihood(b * scores[fold == k], y[fold == k], **options)
            for k in range(fold.max() + 1)
        )

    return minimize_scalar(loss, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-8}).x


def kept_folds(model):
    data = model._kept_training
    return model._folds(data.target.event, data.rows.cluster, data.seed, data.n_events, data.order)


def held_out_scores(model, fold, X=X, y=Y, **fitting):
    scores = np.empty(len(y))
    for k in range(5):
        part = {name: value[fold != k] for name, value in fitting.items()}
        plain = clone(model).set_params(recalibrate=False).fit(X[fold != k], y[fold != k], **part)
        scores[fold == k] = plain.predict(X[fold == k])
    return scores


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_the_factor_is_the_best_one_on_the_folds(ties):
    model = DROCox(alpha=0.3, recalibrate=True, ties=ties, random_state=3).fit(X, Y)
    fold = kept_folds(model)
    expected = best_factor(held_out_scores(model, fold), Y, fold, ties=ties)
    assert model.recalibration_ == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("model", "columns", "precision", "least"),
    [
        (DROCox(alpha=0.2), 24, 1e-6, 1000),
        (DROCox(alpha=0.2), 24, 1e-6, 100_000),
        (DROCox(alpha=0.2, ties="efron"), 24, 1e-6, 1000),
        (DROCox(alpha=0.5, ball="paper", recalibrate=True), 24, 1e-6, 1000),
        (DROCoxSplit(alpha=0.5), 24, 1e-6, 1000),
        (CoxPH(recalibrate=True), 24, 1e-6, 100_000),
        (DROCox(alpha=0.5, ball="cvar"), 4, 1e-3, 1000),
        (DROCox(alpha=0.5, ball="cvar"), 4, 1e-3, 100_000),
    ],
    ids=str,
)
def test_folds_solved_together_equal_folds_trained_anew(model, columns, precision, least, monkeypatch):
    """So many patients and features that the solver takes the Hessian from a sample.

    At least `least` patients are sorted by time. CVaR is smoothed, by less with a smaller tol.
    """
    rng = np.random.default_rng(0)
    X_many = rng.normal(size=(6000, 24)) * rng.uniform(0.1, 10.0, 24)
    died = rng.exponential(size=6000) * np.exp(-X_many[:, :3] @ (0.4 / X_many[:, :3].std(axis=0)))
    end = rng.exponential(2.0, size=6000)
    y = Surv.from_arrays(died <= end, np.ceil(200 * np.minimum(died, end)) / 200)
    X_many, solved = X_many[:, :columns], []

    def together(*arguments):
        solved.extend(convex.minimise_together(*arguments))
        return solved

    monkeypatch.setattr(convex, "_SORTED", least)
    monkeypatch.setattr(solver, "minimise_together", together)
    found = clone(model).set_params(random_state=0).fit(X_many, y).recalibration_
    assert len(solved) == 5
    assert all(x is not None for x in solved)
    monkeypatch.setattr(
        network_estimator, "coefficients_without", lambda result, options, fold, folds: [None] * len(folds)
    )
    anew = clone(model).set_params(random_state=0, tol=max(1e-12, 1e-6 * precision)).fit(X_many, y)
    assert found == pytest.approx(anew.recalibration_, rel=precision)


def factor_of(scores, y):
    loss = CoxPartial(parse_target(y))
    mass = np.full((1, len(loss.rows)), 1.0 / len(y))
    return network_estimator.best_factor([network_estimator.HeldOut(loss, mass, scores - scores.mean())])


@pytest.mark.parametrize("outlier", [0.0, 30.0, -300.0])
def test_the_factor_is_the_best_one_for_scores_with_outliers(outlier):
    """An outlier makes the first step of Newton's method far too long or too short."""
    scores = X @ [0.5, -0.3, 0.4]
    scores[np.argmax(Y["time"] == np.median(Y["time"]))] += outlier
    found = factor_of(scores, Y)
    values = [log_partial_likelihood(b * found * scores, Y) for b in (0.999, 1.0, 1.001)]
    assert values[1] == max(values)


def test_the_factor_is_infinite_for_separated_scores_and_1_for_equal_ones():
    order = Surv.from_arrays(np.ones(30, dtype=bool), np.arange(1.0, 31.0))
    assert factor_of(-np.arange(30.0), order) == np.inf
    assert factor_of(np.arange(30.0), order) < 0
    assert network_estimator.best_factor([]) == 1.0


def test_weights_count_in_the_training_and_in_the_factor():
    weight = np.random.default_rng(1).integers(1, 4, N).astype(float)
    model = CoxPH(recalibrate=True, random_state=0).fit(X, Y, weight)
    fold = kept_folds(model)
    scores = held_out_scores(model, fold, sample_weight=weight)

    def loss(b):
        total = 0.0
        for k in range(5):
            rows = np.repeat(np.flatnonzero(fold == k), weight[fold == k].astype(int))
            total -= log_partial_likelihood(b * scores[rows], Y[rows])
        return total

    expected = minimize_scalar(loss, bounds=(0.0, 5.0), method="bounded", options={"xatol": 1e-8}).x
    assert model.recalibration_ == pytest.approx(expected, rel=1e-5)


def test_folds_hold_the_same_share_of_events_and_keep_clusters_together():
    fold = kept_folds(CoxPH(recalibrate=True, random_state=0).fit(X, Y))
    assert np.ptp(np.bincount(fold)) <= 1
    assert np.ptp(np.bincount(fold, Y["event"])) <= 1
    cluster = np.arange(N) // 4
    fold = kept_folds(CoxPH(recalibrate=True, random_state=0).fit(X, with_fields(Y, clusters=cluster)))
    assert all(len(np.unique(fold[cluster == c])) == 1 for c in np.unique(cluster))


MODELS = [
    DROCox(alpha=0.3, random_state=0),
    DROCox(alpha=0.3, network=MLP(max_iter=8), random_state=0),
    DROCox(alpha=0.3, network=Trees(max_iter=8), random_state=0),
    DROCoxSplit(alpha=0.5, random_state=0),
    SubgroupRobustCox(alpha=0.3, n_trees=3, tol=1e-3, random_state=0),
    GroupDROCox(tol=1e-3, random_state=0),
    RegularizedCox(max_iter=20, random_state=0),
]


@pytest.mark.parametrize("plain", MODELS, ids=str)
def test_scores_are_stretched_and_nothing_else_changes(plain, tmp_path):
    groups = {"sensitive_features": GROUPS} if plain._compares_groups is not None else {}
    plain = clone(plain).set_params(recalibrate=False).fit(X, Y, **groups)
    model = clone(plain).set_params(recalibrate=True).fit(X, Y, **groups)
    b = model.recalibration_
    assert b > 0
    assert b != 1
    np.testing.assert_allclose(model.predict(X), b * plain.predict(X), rtol=1e-12, atol=1e-12)
    assert model.objective_ == plain.objective_
    if hasattr(plain, "worst_case_weights_"):
        np.testing.assert_array_equal(model.worst_case_weights_, plain.worst_case_weights_)
    # Breslow's baseline from the definition: events over the summed risks of those at risk.
    risk = np.exp(model.predict(X))
    times = np.unique(Y["time"][Y["event"]])
    jumps = [(Y["event"] & (Y["time"] == t)).sum() / risk[Y["time"] >= t].sum() for t in times]
    np.testing.assert_allclose(model.cum_baseline_hazard_(times), np.cumsum(jumps), rtol=1e-9)
    model.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        loaded.predict_survival_function(X, times=[0.5]), model.predict_survival_function(X, times=[0.5])
    )
    assert loaded.recalibration_ == b


def test_shrunken_scores_are_right_for_new_patients():
    X_train, y_train = simulated(1500, 1)
    X_new, y_new = simulated(4000, 2)
    shrunken = DROCox(alpha=0.1, recalibrate=False).fit(X_train, y_train)
    model = DROCox(alpha=0.1, recalibrate=True, random_state=0).fit(X_train, y_train)
    assert calibration_slope(y_new, shrunken.predict(X_new)) > 1.5
    # Its standard error is about .03 among 4,000 patients, and that of the factor .05.
    assert calibration_slope(y_new, model.predict(X_new)) == pytest.approx(1.0, abs=0.15)


def test_another_fit_without_it_forgets_the_factor():
    model = DROCox(alpha=0.3, network=MLP(max_iter=5), recalibrate=True, random_state=0).fit(X, Y)
    stretched = model.predict(X) / model.recalibration_
    model.set_params(recalibrate=False).fit(X, Y)
    assert not hasattr(model, "recalibration_")
    np.testing.assert_allclose(model.predict(X), stretched, rtol=1e-12)


def test_offsets_are_known_and_not_stretched():
    offset = X[:, 2] * 0.5
    model = DROCox(alpha=0.3, recalibrate=True, random_state=0).fit(X, Y, offset=offset)
    both = model.predict(X, offset=offset)
    np.testing.assert_allclose(both, X @ model.coef_ + offset, rtol=1e-12)


def test_strata_are_compared_within():
    strata = np.where(X[:, 2] > 0, "a", "b")
    model = DROCox(alpha=0.3, recalibrate=True, random_state=0).fit(X[:, :2], Y, strata=strata)
    fold = kept_folds(model)
    scores = held_out_scores(model, fold, X[:, :2], strata=strata)
    joint = 2 * fold + (strata == "b")
    assert model.recalibration_ == pytest.approx(best_factor(scores, Y, joint), rel=1e-5)


def test_a_model_that_learned_nothing_is_left_as_it_is_and_says_so():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(60, 8))
    y = Surv.from_arrays(np.ones(60, dtype=bool), rng.exponential(size=60))
    with pytest.warns(UserWarning, match="scores are not recalibrated"):
        model = CoxPH(recalibrate=True, random_state=0).fit(noise, y)
    assert model.recalibration_ == 1.0


@pytest.mark.parametrize("name", rivals.__all__)
def test_rivals_are_recalibrated_alike(name):
    model = getattr(rivals, name)(max_iter=20, random_state=0).fit(X, Y)
    stretched = clone(model).set_params(recalibrate=True).fit(X, Y)
    np.testing.assert_allclose(stretched.coef_, stretched.recalibration_ * model.coef_, rtol=1e-10)


def test_the_bootstrap_draws_the_factor_too_and_the_information_is_not_offered():
    model = CoxPH(recalibrate=True, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="not for recalibrated CoxPH"):
        model.summary(method="information")
    table = model.summary(method="bootstrap", n_bootstrap=5)
    np.testing.assert_array_equal(table["coef"], model.coef_)
    plain = CoxPH().fit(X, Y).summary(method="bootstrap", n_bootstrap=5)
    assert not np.allclose(table["se(coef)"], plain["se(coef)"], rtol=1e-6)


def test_auto_recalibrates_worst_cases_of_log_hazards_with_enough_events():
    assert all(cls().recalibrate == "auto" for cls in (DROCox, DROCoxSplit, SubgroupRobustCox, GroupDROCox))
    automatic = DROCox(alpha=0.3, random_state=0).fit(X, Y)
    given = DROCox(alpha=0.3, recalibrate=True, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(automatic.coef_, given.coef_)
    assert automatic.recalibration_ == given.recalibration_


def test_a_fit_without_a_seed_gives_the_same_model_each_time():
    first, second = DROCox(alpha=0.3).fit(X, Y), DROCox(alpha=0.3).fit(X, Y)
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize(("events", "recalibrated"), [(49, False), (50, True)])
def test_auto_recalibrates_from_50_events_on(events, recalibrated):
    rows = np.r_[np.flatnonzero(Y["event"])[:events], np.flatnonzero(~Y["event"])]
    model = DROCox(alpha=0.5, random_state=0).fit(X[rows], Y[rows])
    assert hasattr(model, "recalibration_") == recalibrated


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (CoxPH(), slice(None)),
        (DROCox(alpha=1.0), slice(None)),
        (DROCox(alpha=0.3, ball="paper"), slice(None)),
        (AcceleratedFailureTime(alpha=0.5), slice(None)),
        (DROCox(alpha=0.5), slice(60)),
    ],
    ids=["plain", "alpha 1", "published ball", "log times", "few events"],
)
def test_auto_leaves_other_models_as_they_are(model, rows):
    automatic = clone(model).fit(X[rows], Y[rows])
    plain = clone(model).set_params(recalibrate=False).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(automatic.predict(X), plain.predict(X))
    assert not hasattr(automatic, "recalibration_")
