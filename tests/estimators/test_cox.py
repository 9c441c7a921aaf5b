"""Plain Cox and DeepSurv against other libraries and the textbook."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import MLP, CoxPH, Surv


def sample(n=400, seed=0, tied=True, censored=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 2, 0.5, 1] + [0, 3, 0, -2]
    time = rng.exponential(size=n) * np.exp(-X @ [0.8, -0.3, 0.5, 0.0])
    time = np.ceil(8 * time) / 2 if tied else time
    return X, Surv.from_arrays(rng.random(n) >= censored, time)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_coefficients_are_those_of_scikit_survival(tied, ties, l2):
    X, y = sample(n=150, tied=tied)
    model = CoxPH(ties=ties, l2=l2).fit(X, y)
    # scikit-survival adds alpha/2 ||coef||^2 to the sum over patients, not to the mean.
    peer = CoxPHSurvivalAnalysis(alpha=l2 * len(X), ties=ties, tol=1e-12, n_iter=200).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert model.converged_
    assert model.gap_ <= 1e-8


def test_survival_functions_are_those_of_scikit_survival():
    X, y = sample(n=150)
    model = CoxPH().fit(X, y)
    peer = CoxPHSurvivalAnalysis(tol=1e-12, n_iter=200).fit(X, y)
    # Between its first time and its last scikit-survival's curves are defined.
    times = np.linspace(peer.unique_times_[0], peer.unique_times_[-1], 60)
    wanted = np.stack([curve(times) for curve in peer.predict_survival_function(X[:20])])
    np.testing.assert_allclose(model.predict_survival_function(X[:20], times=times), wanted, atol=1e-6)
    hazards = np.stack([curve(times) for curve in peer.predict_cumulative_hazard_function(X[:20])])
    found = model.predict_cumulative_hazard_function(X[:20], times=times)
    np.testing.assert_allclose(found, hazards, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(
        model.baseline_survival_(times), [peer.baseline_survival_(t) for t in times], rtol=1e-5, atol=1e-8
    )
    assert model.score(X, y) == pytest.approx(peer.score(X, y), abs=1e-6)


def test_the_objective_is_the_mean_loss_over_all_patients():
    X, y = sample()
    model = CoxPH(l2=0.2).fit(X, y)
    risk, total = model.predict(X), 0.0
    for i in np.flatnonzero(y["event"]):
        total += np.log(np.exp(risk[y["time"] >= y["time"][i]]).sum()) - risk[i]
    assert model.objective_ == pytest.approx(total / len(X) + 0.1 * (model.coef_**2).sum(), rel=1e-10)


def test_an_event_at_time_zero_is_an_event():
    X, y = sample(tied=False)
    y["time"][np.flatnonzero(y["event"])[0]] = 0.0
    model = CoxPH().fit(X, y)
    survival = model.predict_survival_function(X, times=[0.0])
    assert (survival < 1).all()
    assert model.unique_times_[0] == 0.0


def test_large_scores_still_give_curves():
    X, y = sample()
    model = CoxPH().fit(1e-3 * X, y)
    far = 1e-3 * X[:2].copy()
    far[0] *= 1e6
    far[1] *= -1e6
    for values in (
        model.predict_survival_function(far, return_array=True),
        model.predict_survival_function(far, times=[0.5, 3.0]),
    ):
        assert np.isfinite(values).all()
        assert ((values >= 0) & (values <= 1)).all()
    # A constant added to all features moves into the baseline, however large the scores it makes.
    moved = CoxPH().fit(X + 1e4, y)
    plain = CoxPH().fit(X, y)
    np.testing.assert_allclose(
        moved.predict_survival_function(X + 1e4, times=[0.5, 2.0]),
        plain.predict_survival_function(X, times=[0.5, 2.0]),
        atol=1e-6,
    )


def test_adam_approaches_the_optimum():
    X, y = sample()
    best = CoxPH().fit(X, y)
    trained = CoxPH(solver="adam", lr=0.05, max_iter=1000, random_state=0).fit(X, y)
    assert best.objective_ - 1e-12 <= trained.objective_ <= best.objective_ + 1e-6
    np.testing.assert_allclose(trained.coef_, best.coef_, atol=1e-2)
    assert trained.status_ == "steps_done"
    assert len(trained.history_) == 1000


def test_a_perceptron_finds_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = Surv.from_arrays(np.ones(500, bool), rng.exponential(size=500) * np.exp(-2 * X[:, 0] ** 2))
    linear = CoxPH().fit(X, y)
    deep = CoxPH(network=MLP(lr=0.02, max_iter=300), random_state=0).fit(X, y)
    assert deep.score(X, y) > linear.score(X, y) + 0.1


def test_stopping_short_of_the_optimum_is_said():
    X, y = sample()
    with pytest.warns(
        ConvergenceWarning, match=r"CoxPH stopped before the optimum \(status 'max_iter'.*max_iter"
    ):
        model = CoxPH(max_iter=1).fit(X, y)
    assert not model.converged_
    assert model.status_ == "max_iter"
    assert model.gap_ > 1e-8


def test_separated_data_are_said_and_a_ridge_helps():
    x = np.linspace(0, 1, 30)[:, None]
    y = Surv.from_arrays(np.ones(30, bool), np.arange(30, 0, -1.0))
    with pytest.warns(ConvergenceWarning, match=r"separates early from late events; set l2 > 0"):
        model = CoxPH().fit(x, y)
    assert model.status_ == "separated"
    assert np.isfinite(model.predict_survival_function(x, return_array=True)).all()
    assert CoxPH(l2=1e-3).fit(x, y).converged_


def test_verbose_shows_a_bar_and_nothing_else_does(capsys):
    X, y = sample()
    CoxPH(solver="adam", max_iter=3, random_state=0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    CoxPH(solver="adam", max_iter=3, random_state=0, verbose=True).fit(X, y)
    assert "CoxPH" in capsys.readouterr().err


def test_flags_of_a_few_patients_among_many_leave_the_others_their_coefficients():
    # The curvature of so many patients is taken from a sample, in which nobody has some of the flags.
    rng = np.random.default_rng(1)
    n = 12_000
    flags = np.zeros((n, 10))
    flags[rng.permutation(n)[:30], np.repeat(np.arange(10), 3)] = 1
    X = np.column_stack([rng.normal(size=(n, 20)), flags])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    time, event = rng.exponential(np.exp(-X[:, 0])), flags.sum(axis=1) == 0
    model = CoxPH().fit(X, Surv.from_arrays(event, time))
    assert model.converged_
    # The score of the partial likelihood, risk set by risk set.
    later = np.argsort(-time)
    risk = np.exp(X @ model.coef_)[later, None]
    score = X[later] - np.cumsum(risk * X[later], axis=0) / np.cumsum(risk, axis=0)
    np.testing.assert_allclose(score[event[later]].sum(axis=0), 0, atol=1e-2)


def test_more_features_than_patients_have_the_optimum_of_scikit_survival():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 300)) * rng.uniform(0.5, 2, 300) + 3
    y = Surv.from_arrays(rng.random(40) < 0.7, np.round(rng.exponential(size=40), 1) + 0.1)
    peer = CoxPHSurvivalAnalysis(alpha=0.3 * 40, tol=1e-12, n_iter=200).fit(X, y)
    np.testing.assert_allclose(CoxPH(l2=0.3).fit(X, y).coef_, peer.coef_, atol=1e-6)
