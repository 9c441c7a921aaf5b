"""Accelerated failure time models against R's survreg, and in any unit of time."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.datasets import load_gbsg2

import drosurv
from drosurv import MLP, AcceleratedFailureTime, Surv, Trees, datasets
from drosurv.errors import ArgumentError
from drosurv.losses.log_time import LogTime
from drosurv.patients.target import Target, with_fields

COLUMNS = ["age", "tsize", "pnodes", "progrec", "estrec"]
# R 4.2, survival 3.5, on GBSG2: intercept, coefficients, scale of
#   survreg(Surv(time, cens) ~ age + tsize + pnodes + progrec + estrec, d, dist = ...,
#           control = survreg.control(rel.tolerance = 1e-12))
SURVREG = {
    "weibull": """
        7.7640990810 0.0023469022 -0.0058238162 -0.0402500824 0.0020333713 -0.0001249328 0.7317965324
    """,
    "lognormal": """
        7.3302979677 0.0068023465 -0.0066465585 -0.0529213722 0.0017656329 0.0000195254 1.0086815874
    """,
    "loglogistic": """
        7.3551204466 0.0060348219 -0.0068762330 -0.0542215201 0.0019204977 0.0000075972 0.5863618351
    """,
}


# Standard errors of the same fits: summary(f)$table[, "Std. Error"]; "weighted" with weights = 1 + (d$age > 50).
STANDARD_ERRORS = {
    ("weibull", "plain"): """
        0.2546430330 0.0045363987 0.0028100852 0.0055492914 0.0004363361 0.0003325646 0.0490203583
    """,
    ("weibull", "weighted"): """
        0.2133636486 0.0036501247 0.0022038492 0.0041537368 0.0003313307 0.0002347801 0.0384493661
    """,
    ("lognormal", "plain"): """
        0.2616860514 0.0046058909 0.0032282119 0.0082201117 0.0003717891 0.0003449180 0.0444162506
    """,
    ("loglogistic", "plain"): """
        0.2677310472 0.0046984580 0.0033243619 0.0086700583 0.0004075520 0.0003542553 0.0485151795
    """,
    ("loglogistic", "weighted"): """
        0.2267591772 0.0038459898 0.0026033274 0.0065898363 0.0003120577 0.0002519818 0.0380865436
    """,
}


@pytest.fixture(scope="module")
def gbsg2():
    X, y = load_gbsg2()
    return X[COLUMNS].astype(float), Surv.from_arrays(y["cens"], y["time"])


@pytest.mark.parametrize("name", SURVREG)
def test_plain_models_are_those_of_survreg(gbsg2, name):
    model = AcceleratedFailureTime(name, tol=1e-12).fit(*gbsg2)
    found = [model.intercept_, *model.coef_, model.scale_]
    np.testing.assert_allclose(found, [float(number) for number in SURVREG[name].split()], atol=1e-5)


@pytest.mark.parametrize(("name", "weights"), STANDARD_ERRORS)
def test_standard_errors_are_those_of_survreg(gbsg2, name, weights):
    X, y = gbsg2
    weight = 1.0 + (X["age"] > 50) if weights == "weighted" else None
    model = AcceleratedFailureTime(name, tol=1e-12).fit(X, y, weight)
    table = model.summary()
    assert table.index.tolist() == [*COLUMNS, "(Intercept)", "Log(scale)"]
    intercept, *coefficients, log_scale = (float(error) for error in STANDARD_ERRORS[name, weights].split())
    np.testing.assert_allclose(table["se(coef)"], [*coefficients, intercept, log_scale], rtol=1e-5)
    np.testing.assert_allclose(table["coef"], [*model.coef_, model.intercept_, np.log(model.scale_)])
    np.testing.assert_allclose(table["z"], table["coef"] / table["se(coef)"])
    assert "time ratio" in str(table)


# Of the same fits with cluster = (seq_along(d$age) - 1) %/% 7.
CLUSTERED = {
    "weibull": """
        0.2931587682 0.0052079311 0.0031087658 0.0079931651 0.0004943733 0.0003525764 0.0395642582
    """,
    "loglogistic": """
        0.3126880235 0.0053956353 0.0039611650 0.0103716238 0.0004704545 0.0004086457 0.0440885759
    """,
}


@pytest.mark.parametrize("name", CLUSTERED)
def test_clusters_have_the_robust_standard_errors_of_survreg(gbsg2, name):
    X, y = gbsg2
    model = AcceleratedFailureTime(name, tol=1e-12).fit(X, with_fields(y, clusters=np.arange(len(X)) // 7))
    intercept, *coefficients, log_scale = (float(error) for error in CLUSTERED[name].split())
    np.testing.assert_allclose(model.summary()["se(coef)"], [*coefficients, intercept, log_scale], rtol=1e-5)
    assert "Robust standard errors" in str(model.summary())
    alone = AcceleratedFailureTime(name, tol=1e-12).fit(X, with_fields(y, clusters=np.arange(len(X))))
    np.testing.assert_array_equal(alone.summary(), alone.summary(method="information"))
    with pytest.raises(TypeError, match="lvel"):
        alone.summary(lvel=0.9)


def test_copies_in_a_cluster_tell_nothing_twice(gbsg2):
    X, y = gbsg2
    rows = np.repeat(np.arange(len(X)), 2)
    once = AcceleratedFailureTime().fit(X, y).summary(method="sandwich")
    twice = AcceleratedFailureTime().fit(X.iloc[rows], with_fields(y[rows], clusters=rows)).summary()
    weighted = AcceleratedFailureTime().fit(X, y, np.full(len(X), 2.0)).summary(method="sandwich")
    np.testing.assert_allclose(twice["se(coef)"], once["se(coef)"], rtol=1e-3)
    np.testing.assert_allclose(weighted["se(coef)"], once["se(coef)"], rtol=1e-3)


def test_a_pipeline_has_the_table(gbsg2):
    X, y = gbsg2
    plain = AcceleratedFailureTime().fit(X, y)
    scaled = make_pipeline(StandardScaler(with_mean=False), AcceleratedFailureTime()).fit(X, y)
    np.testing.assert_allclose(drosurv.summary(scaled)["se(coef)"], plain.summary()["se(coef)"], rtol=1e-4)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_the_unit_of_time_changes_the_intercept_only(gbsg2, alpha):
    X, y = gbsg2
    days = AcceleratedFailureTime("lognormal", alpha=alpha, tol=1e-11).fit(X, y)
    years = AcceleratedFailureTime("lognormal", alpha=alpha, tol=1e-11)
    years.fit(X, Surv.from_arrays(y["event"], y["time"] / 365.25))
    np.testing.assert_allclose(years.coef_, days.coef_, atol=1e-7)
    assert years.scale_ == pytest.approx(days.scale_, rel=1e-7)
    assert years.intercept_ == pytest.approx(days.intercept_ - np.log(365.25), abs=1e-6)
    np.testing.assert_allclose(years.predict_median(X), days.predict_median(X) / 365.25, rtol=1e-5)


def test_curves_are_those_of_the_distribution(gbsg2):
    X, y = gbsg2
    model = AcceleratedFailureTime("lognormal").fit(X, y)
    at = np.array([100.0, 1000.0, 2000.0])
    location = model.intercept_ + X.to_numpy() @ model.coef_
    expected = norm.sf((np.log(at) - location[:, None]) / model.scale_)
    np.testing.assert_allclose(model.predict_survival_function(X, times=at), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), -location)
    # By the median half have had the event, by the upper quartile three quarters.
    np.testing.assert_allclose(model.predict_median(X), np.exp(location))
    upper = model.predict_quantile(X, 0.75)
    np.testing.assert_allclose(upper, np.exp(norm.ppf(0.75, location, model.scale_)))
    assert (model.predict_survival_function(X, times=[0.0]) == 1.0).all()
    np.testing.assert_array_equal(model.predict_median(X, strata=None), model.predict_median(X))
    # Who is far from all others lives for ever, or not at all.
    assert model.predict_median(X * 1e6).tolist() == np.where(X @ model.coef_ > 0, np.inf, 0.0).tolist()
    with pytest.raises(ArgumentError, match="fitted without strata"):
        model.predict_median(X, strata=np.zeros(len(X)))


@pytest.mark.parametrize(("score", "slopes"), [(-1000.0, [-1.0, 0.0]), (1000.0, [1.0, 1.0])])
def test_derivatives_of_scores_of_any_size_are_numbers(score, slopes):
    # Far below, an event comes too early and censoring tells nothing; far above, both come too late.
    loss = LogTime(Target(np.array([True, False]), np.array([1.0, 2.0])), "loglogistic")
    loss(np.full((1, 2), score), np.array([[0.0, 1.0]]))
    np.testing.assert_allclose(loss.pullback(np.ones((1, 2)))[0], [slopes], atol=1e-12)
    np.testing.assert_allclose(loss.curvature(np.ones((1, 2))), 0.0, atol=1e-12)


@pytest.mark.parametrize("network", [MLP(max_iter=40), Trees(max_iter=40)], ids=["mlp", "trees"])
def test_flexible_networks_give_risks_and_curves_that_agree(network):
    data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    model = AcceleratedFailureTime(network=network, random_state=0).fit(data.X, data.y)
    order = np.argsort(model.predict(data.X))
    survival = model.predict_survival_function(data.X, times=[0.5])[order, 0]
    assert (np.diff(survival) <= 1e-12).all()
    assert model.score(data.X, data.y) > 0.6
