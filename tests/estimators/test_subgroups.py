"""Models of subgroups with a baseline hazard for each stratum."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import drosurv
from drosurv import MLP, GroupDROCox, SubgroupRobustCox, Surv, Trees

FEATURES, K = ["a", "b"], 4


def simulated(seed=0, n=180):
    """Ties, weights, late entry, an offset; strata on different scales of time, groups with effects of their own."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(n, 2)), columns=FEATURES).assign(
        stratum=rng.choice(["x", "y", "z"], n), group=rng.integers(0, 2, n), weight=rng.integers(1, 4, n)
    )
    slow = data["stratum"].map({"x": 1.0, "y": 30.0, "z": 6.0})
    risk = 0.8 * data["a"] * np.where(data["group"] == 1, -0.3, 1.0) - 0.5 * data["b"]
    time = np.ceil(8 * rng.exponential(np.exp(-risk))) * slow
    entry = np.where(rng.random(n) < 0.5, 0.5 * time * rng.random(n), -1.0)
    return data.assign(
        time=time, event=rng.random(n) < 0.7, entry=entry, offset=rng.normal(size=n) / 3, slow=slow
    )


DATA = simulated()
X, Y = DATA[FEATURES], Surv.from_dataframe("event", "time", DATA)
STRATA, GROUPS = DATA["stratum"], DATA["group"]
KNOWN = {"strata": STRATA, "offset": DATA["offset"]}
ENTRY = {"entry": "entry"}


def group_dro(tol=1e-9, **parameters):
    return GroupDROCox(n_intervals=K, tol=tol, **parameters, recalibrate=False)


def subgroup_robust(alpha=0.3, **parameters):
    settings = {
        "min_group": 24,
        "n_trees": 5,
        "n_intervals": K,
        "tol": 1e-9,
        "random_state": 0,
        "recalibrate": False,
    }
    return SubgroupRobustCox(alpha, **(settings | parameters))


def fit(model, data=DATA, weight=None, fields=None, **known):
    """Fit a model; `fields` are further fields of y, with the names of their columns."""
    groups = {"sensitive_features": data["group"]} if isinstance(model, GroupDROCox) else {}
    y = Surv.from_dataframe("event", "time", data, **(fields or {}))
    return model.fit(data[FEATURES], y, weight, **groups, **known)


EACH = pytest.mark.parametrize("make", [group_dro, subgroup_robust])


def stacked_rows(data):
    """One row for each patient and interval of the stratum: events and time at risk, for a Poisson regression."""
    rows = []
    for stratum, own in data.groupby("stratum"):
        seen = own[own["event"]].sort_values("time")
        share = seen["weight"].cumsum() / seen["weight"].sum()
        cuts = {seen["time"][share >= m / K - 1e-9].iloc[0] for m in range(1, K)}
        edges = [0.0, *sorted(cuts - {seen["time"].iloc[-1]}), np.inf]
        for m, (low, high) in enumerate(pairwise(edges)):
            spent = np.minimum(own["time"], high) - np.maximum(own["entry"], low)
            part = own.assign(cell=f"{stratum}{m}", low=low, spent=spent)
            part["event"] = (own["event"] & (own["time"] > low) & (own["time"] <= high)).astype(int)
            rows.append(part[spent > 0])
    return pd.concat(rows, ignore_index=True)


def poisson_regression(data):
    """Coefficients, and log hazards by stratum and interval, of the largest weighted Poisson likelihood."""
    rows = stacked_rows(data)
    cells = pd.get_dummies(rows["cell"])
    design = np.column_stack([rows[FEATURES], cells.to_numpy(float)])
    event, weight = rows["event"].to_numpy(), rows["weight"].to_numpy()
    known = (np.log(rows["spent"]) + rows["offset"]).to_numpy()

    def minus_likelihood(z):
        expected = np.exp(design @ z + known)
        slope = design.T @ (weight * (expected - event))
        return weight @ (expected - event * (design @ z)), slope

    start = np.append(np.zeros(2), np.full(cells.shape[1], -np.log(rows["spent"].mean())))
    found = optimize.minimize(
        minus_likelihood, start, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000}
    )
    return found.x[:2], pd.Series(found.x[2:], cells.columns), rows


@pytest.fixture(scope="module")
def regression():
    return poisson_regression(DATA)


@EACH
def test_of_everybody_it_is_the_poisson_regression_with_a_hazard_for_each_stratum(make, regression):
    coef, log_hazards, rows = regression
    model = fit(make(alpha=1.0), weight=DATA["weight"], fields=ENTRY, **KNOWN)
    np.testing.assert_allclose(model.coef_, coef, atol=2e-5)
    # The cumulative hazard at the time of each event: the stratum's, up to there.
    edges = rows.groupby("cell")["low"].first()
    for i in np.flatnonzero(DATA["event"])[:12]:
        own, time = edges[edges.index.str[0] == STRATA[i]], DATA["time"][i]
        ends = np.append(own.to_numpy()[1:], np.inf)
        spent = np.maximum(np.minimum(ends, time) - own.to_numpy(), 0.0)
        hazard = np.exp(coef @ X.iloc[i]) * (spent @ np.exp(log_hazards[own.index]))
        found = model.predict_survival_function(
            X.iloc[[i]], times=[time], strata=[STRATA[i]], offset=[0.0]
        ).item()
        assert found == pytest.approx(np.exp(-hazard), rel=1e-4)


def test_of_everybody_it_is_glm_of_r(run_r):
    r = run_r(
        """
rows <- read.csv("data.csv")
fit <- glm(event ~ a + b + factor(cell) - 1 + offset(log(spent) + offset), poisson, rows, weights = weight,
           control = glm.control(epsilon = 1e-12))
give("coef", coef(fit)[1:2])
""",
        data=stacked_rows(DATA),
    )
    model = fit(group_dro(alpha=1.0), weight=DATA["weight"], fields=ENTRY, **KNOWN)
    np.testing.assert_allclose(model.coef_, r["coef"][:, 0], atol=2e-5)


def test_the_worst_groups_regret_is_as_small_as_can_be():
    model = fit(group_dro().set_params(n_intervals=1), strata=STRATA)
    event, time, stratum = DATA["event"].to_numpy(), DATA["time"].to_numpy(), STRATA.map(ord).to_numpy() - 120

    def losses(z):
        scores, log_rate = X.to_numpy() @ z[:2], z[2:5][stratum]
        return np.exp(scores + log_rate) * time - event * (scores + log_rate)

    rates = np.log(np.bincount(stratum, event) / np.bincount(stratum, time))
    null = losses(np.append(np.zeros(2), rates))
    np.testing.assert_allclose(model.null_loss_, null, rtol=1e-10)

    def worst(z):
        return np.bincount(GROUPS, losses(z) - null) / np.bincount(GROUPS)

    start = np.concatenate([np.zeros(2), rates, [0.0]])
    best = optimize.minimize(
        lambda z: z[5],
        start,
        constraints={"type": "ineq", "fun": lambda z: z[5] - worst(z)},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert model.objective_ == pytest.approx(best.fun, abs=1e-6)
    np.testing.assert_allclose(model.coef_, best.x[:2], atol=2e-3)
    assert len(set(model.subgroup_regret_.round(12))) == 2


def test_one_stratum_is_no_strata():
    # Sums in another order may end the search a step earlier: a small tolerance makes that little.
    plain, same = (fit(subgroup_robust(tol=1e-12), strata=own) for own in (None, ["all"] * len(X)))
    np.testing.assert_allclose(same.coef_, plain.coef_, rtol=1e-8)
    curves = same.predict_survival_function(X[:5], times=[3.0, 20.0], strata=["all"] * 5)
    np.testing.assert_allclose(curves, plain.predict_survival_function(X[:5], times=[3.0, 20.0]), rtol=1e-8)


def test_strata_that_are_copies_of_all_patients_change_nothing():
    plain = fit(group_dro())
    twice = pd.concat([DATA, DATA], ignore_index=True)
    copied = fit(group_dro(), twice, strata=np.repeat(["first", "second"], len(X)))
    np.testing.assert_allclose(copied.coef_, plain.coef_, atol=1e-6)
    for label in ("first", "second"):
        found = copied.predict_survival_function(X[:5], times=[3.0, 20.0], strata=[label] * 5)
        wanted = plain.predict_survival_function(X[:5], times=[3.0, 20.0])
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_strata_may_have_clocks_of_their_own():
    # The same patients on one clock: within a stratum a unit of time changes nothing.
    same_clock = DATA.assign(time=DATA["time"] / DATA["slow"])
    clocks, one = fit(subgroup_robust(), strata=STRATA), fit(subgroup_robust(), same_clock, strata=STRATA)
    np.testing.assert_allclose(clocks.coef_, one.coef_, atol=1e-6)
    np.testing.assert_allclose(clocks.subgroup_regret_, one.subgroup_regret_, atol=1e-6)


@EACH
def test_patients_of_a_stratum_without_events_have_no_regret_and_no_curve(make):
    quiet = DATA.assign(event=DATA["event"] & (STRATA != "y"))
    with pytest.warns(UserWarning, match="no event in stratum y"):
        model = fit(make(alpha=1.0), quiet, strata=STRATA)
    seen = STRATA != "y"
    np.testing.assert_array_equal(model.null_loss_[~seen], 0.0)
    rest = fit(make(alpha=1.0), DATA[seen], strata=STRATA[seen])
    np.testing.assert_allclose(model.coef_, rest.coef_, atol=1e-5)
    assert np.isfinite(model.predict_survival_function(X[:1], times=[3.0], strata=["x"])).all()
    with pytest.raises(ValueError, match="no curve can be predicted for stratum 'y'"):
        model.predict_survival_function(X[:1], times=[3.0], strata=["y"])


def test_a_curve_is_held_after_the_last_event_of_its_stratum():
    model = fit(group_dro(tol=1e-3), strata=STRATA)
    last = DATA["time"][DATA["event"] & (STRATA == "x")].max()
    fast, slow = (model.cum_baseline_hazard_[label] for label in ("x", "y"))
    assert fast(2 * last) == fast(last) > 0
    assert slow(2 * last) > slow(last)


@EACH
def test_saved_models_predict_with_strata(make, tmp_path):
    model = fit(make(tol=1e-3), fields=ENTRY, **KNOWN)
    model.save(tmp_path / "model")
    loaded, own = drosurv.load(tmp_path / "model"), {"strata": STRATA, "offset": DATA["offset"]}
    np.testing.assert_array_equal(
        loaded.predict_survival_function(X, times=[2, 50], **own),
        model.predict_survival_function(X, times=[2, 50], **own),
    )
    with pytest.raises(ValueError, match=r"fitted with strata \['x', 'y', 'z'\]"):
        loaded.predict_survival_function(X, offset=DATA["offset"])
    assert "plain coef" in loaded.summary().columns


@pytest.mark.parametrize(
    "parameters",
    [
        {"recalibrate": True},
        {"network": MLP((4,), max_iter=3, batch_size=100)},
        {"network": Trees(max_iter=5)},
    ],
)
def test_other_ways_of_training_take_strata_too(parameters):
    model = fit(subgroup_robust(tol=1e-3, **parameters), strata=STRATA)
    curves = model.predict_survival_function(X, times=[5.0, 50.0], strata=STRATA)
    assert ((curves >= 0) & (curves <= 1)).all()
    # Patients of the slow stratum live longer.
    assert curves[STRATA == "y", 0].mean() > curves[STRATA == "x", 0].mean() + 0.2


def test_a_bootstrap_refits_with_strata():
    model = fit(group_dro(tol=1e-3), strata=STRATA)
    table = model.summary(method="bootstrap", n_bootstrap=2, random_state=0)
    assert (table["se(coef)"] > 0).all()
