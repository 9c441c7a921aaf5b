import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from drosurv import MLP, CoxPH, GroupDROCox
from drosurv.datasets import make_hidden_minority

DATA = make_hidden_minority(n_samples=300, n_features=5, minority=0.3, random_state=0)
X, Y, GROUPS = DATA.X, DATA.y, DATA.sensitive_features["membership"]


def losses(theta, log_rate):
    """Full-likelihood losses under one constant baseline hazard."""
    scores = X.to_numpy() @ theta
    return np.exp(scores + log_rate) * Y["time"] - Y["event"] * (scores + log_rate)


def group_means(values):
    labels, codes = np.unique(GROUPS, return_inverse=True)
    return pd.Series(np.bincount(codes, values) / np.bincount(codes), labels)


def worst_group(joint, regret):
    null = np.log(Y["event"].sum() / Y["time"].sum())
    offset = losses(np.zeros(5), null) if regret else 0.0
    return group_means(losses(joint[:5], joint[5]) - offset)


@pytest.mark.parametrize("regret", [True, False])
def test_the_worst_groups_mean_is_as_small_as_can_be(regret):
    model = GroupDROCox(regret=regret, n_intervals=1, tol=1e-7, recalibrate=False).fit(
        X, Y, sensitive_features=GROUPS
    )
    last = Y["time"][Y["event"]].max()
    own = worst_group(np.append(model.coef_, np.log(model.cum_baseline_hazard_(last) / last)), regret)
    assert model.objective_ == pytest.approx(own.max(), abs=1e-6)
    np.testing.assert_allclose(model.subgroup_regret_, GROUPS.map(own), atol=1e-9)

    def above(joint):
        return joint[6] - worst_group(joint, regret)

    start = np.append(np.zeros(6), worst_group(np.zeros(6), regret).max())
    best = optimize.minimize(
        lambda joint: joint[6], start, constraints={"type": "ineq", "fun": above}, options={"ftol": 1e-12}
    )
    assert model.objective_ == pytest.approx(best.fun, abs=1e-5)
    np.testing.assert_allclose(model.coef_, best.x[:5], atol=5e-3)


def test_the_minority_is_served_better_than_by_the_plain_model():
    test = make_hidden_minority(n_samples=2000, n_features=5, minority=0.3, random_state=1)
    minority = (test.sensitive_features["membership"] == "minority").to_numpy()
    plain, robust = CoxPH().fit(X, Y), GroupDROCox(recalibrate=False).fit(X, Y, sensitive_features=GROUPS)
    X_minority, y_minority = test.X[minority], test.y[minority]
    assert robust.score(X_minority, y_minority) > plain.score(X_minority, y_minority) + 0.02


def test_the_share_of_everybody_is_the_plain_model():
    model = GroupDROCox(alpha=1.0, recalibrate=False).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(model.coef_, CoxPH().fit(X, Y).coef_, atol=0.02)
    np.testing.assert_allclose(model.worst_case_weights_, 1 / len(X), rtol=1e-9)


def test_a_share_larger_than_the_worst_group_takes_in_the_next():
    alpha = 0.6
    model = GroupDROCox(alpha=alpha, recalibrate=False).fit(X, Y, sensitive_features=GROUPS)
    means, share = group_means(model.subgroup_regret_), (GROUPS == "minority").mean()
    worst, other = means.max(), means.min()
    worst_share = share if means.idxmax() == "minority" else 1 - share
    taken = min(worst_share, alpha)
    assert model.objective_ == pytest.approx((taken * worst + (alpha - taken) * other) / alpha, abs=1e-9)


def test_the_order_of_patients_does_not_matter():
    order = np.random.default_rng(0).permutation(len(X))
    straight = GroupDROCox(tol=1e-6, recalibrate=False).fit(X, Y, sensitive_features=GROUPS)
    shuffled = GroupDROCox(tol=1e-6, recalibrate=False).fit(
        X.iloc[order], Y[order], sensitive_features=GROUPS.iloc[order]
    )
    np.testing.assert_allclose(shuffled.coef_, straight.coef_, atol=1e-5)
    np.testing.assert_allclose(shuffled.subgroup_regret_, straight.subgroup_regret_[order], atol=1e-5)


def test_several_attributes_define_groups_together():
    attributes = pd.DataFrame({"membership": GROUPS, "half": np.where(X["x1"] > 0, "upper", "lower")})
    model = GroupDROCox(recalibrate=False).fit(X, Y, sensitive_features=attributes)
    assert len(np.unique(model.subgroup_regret_.round(9))) == 4


@pytest.mark.parametrize(("network", "steps"), [("linear", 200), ("mlp", 15)])
def test_networks_learn_by_adam(network, steps):
    given = {"max_iter": steps, "lr": 0.02}
    given = given if network == "linear" else {"network": MLP(**given)}
    model = GroupDROCox(solver="adam", random_state=0, recalibrate=False, **given)
    model.fit(X, Y, sensitive_features=GROUPS)
    assert model.objective_ < model.history_[0] - 0.01
    if network == "linear":
        optimum = GroupDROCox(recalibrate=False).fit(X, Y, sensitive_features=GROUPS)
        assert model.objective_ == pytest.approx(optimum.objective_, abs=2e-3)


@pytest.mark.parametrize("common", [5000.0, -5000.0])
def test_an_offset_common_to_all_patients_changes_no_curve(common):
    own, times = X["x1"].to_numpy() / 3, np.quantile(Y["time"], [0.2, 0.5, 0.8])
    curves = []
    for offset in (own, own + common):
        model = GroupDROCox(recalibrate=False).fit(
            X[["x2", "x3"]], Y, sensitive_features=GROUPS, offset=offset
        )
        curves.append(model.predict_survival_function(X[["x2", "x3"]], times=times, offset=offset))
    np.testing.assert_allclose(*curves, atol=1e-8)
