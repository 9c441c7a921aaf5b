import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from drosurv import MLP, CoxPH, DROCox, GroupDROCox, SubgroupRobustCox, load
from drosurv.datasets import make_hidden_minority
from drosurv.patients.draws import row_order
from drosurv.patients.target import Surv, parse_target
from drosurv.solvers.neighborhoods import Partitions, forest, nearest_neighbors
from experiments.grid import fit_grid

DATA = make_hidden_minority(n_samples=400, n_features=6, random_state=0)
X, Y = DATA.X, DATA.y
N = len(X)


def robust(**parameters):
    return SubgroupRobustCox(
        **{"alpha": 0.2, "min_group": 20, "n_trees": 6, "random_state": 0, **parameters}, recalibrate=False
    )


def by_sign_of_x5(features, regret):
    """Two groups, as a dense matrix."""
    sign = features[:, 4] > 0
    same = (sign[:, None] == sign).astype(float)
    return same / same.sum(axis=1, keepdims=True)


def only_oneself(features, regret):
    return sparse.eye(len(features))


def regrets_of(model):
    """Each patient's regret by the definition; for one interval, where the hazard is one number."""
    event, time, scores = Y["event"], Y["time"], model.predict(X)
    assert model.n_intervals == 1
    last = time[event].max()
    rate = model.cum_baseline_hazard_(last) / last
    null = event.sum() / time.sum()
    loss = rate * np.exp(scores) * time - event * (np.log(rate) + scores)
    return loss - (null * time - event * np.log(null))


def mean_of_worst(values, alpha):
    return np.sort(values)[::-1][: round(alpha * len(values))].mean()


@pytest.mark.parametrize(
    ("model", "given"),
    [(robust(), {}), (GroupDROCox(recalibrate=False), {"sensitive_features": X["x5"] > 0})],
    ids=["subgroups", "groups"],
)
def test_curves_do_not_depend_on_how_far_from_zero_a_feature_is(model, given):
    # Such as a date in days: scores past the logarithm of the largest float, but near each other.
    days = X.assign(x1=X["x1"] + 20_000)
    near, far = clone(model).fit(X, Y, **given), clone(model).fit(days, Y, **given)
    assert abs(far.predict(days)).min() > 710
    times = np.quantile(Y["time"], [0.2, 0.5, 0.8])
    wanted = near.predict_survival_function(X, times=times)
    np.testing.assert_allclose(far.predict_survival_function(days, times=times), wanted, atol=1e-6)
    np.testing.assert_allclose(far.worst_case_weights_, near.worst_case_weights_, atol=1e-6)


@pytest.mark.parametrize("ball", ["cvar", "chi2"])
def test_fitted_attributes_follow_from_the_fitted_model(ball):
    model = robust(kernel=by_sign_of_x5, n_intervals=1, ball=ball).fit(X, Y)
    W = by_sign_of_x5(X.to_numpy(), None)
    np.testing.assert_allclose(model.subgroup_regret_, W @ regrets_of(model), atol=1e-9)
    null = Y["event"].sum() / Y["time"].sum()
    np.testing.assert_allclose(model.null_loss_, null * Y["time"] - Y["event"] * np.log(null), atol=1e-9)
    np.testing.assert_allclose(model.worst_case_weights_.sum(), 1)
    assert (model.worst_case_weights_ >= 0).all()
    assert model.worst_case_weights_ @ regrets_of(model) == pytest.approx(model.objective_, abs=1e-9)
    assert model.converged_
    assert model.gap_ <= (1e-5 if ball == "cvar" else 1e-8)
    assert model.history_[-1] == pytest.approx(model.objective_, abs=1e-4)


def test_averaging_nobody_is_the_worst_share_of_patients_regrets():
    with pytest.warns(UserWarning, match="no better than the null model does.*Raise min_group or alpha"):
        model = robust(kernel=only_oneself, n_intervals=1).fit(X, Y)
    regrets = regrets_of(model)
    np.testing.assert_allclose(model.subgroup_regret_, regrets, atol=1e-9)
    assert model.objective_ == pytest.approx(mean_of_worst(regrets, 0.2), abs=1e-9)
    # A set of patients chosen by their own outcomes cannot be served: only the null model harms none.
    np.testing.assert_allclose(model.coef_, 0, atol=1e-3)


def test_two_groups_and_the_smaller_ones_share_are_group_dro():
    # One group larger than the other, so that the default share of group DRO is not a half.
    groups = (X["x5"] > 0.5).to_numpy()
    kernel = Partitions(groups[None].astype(int))
    subgroup = robust(alpha=groups.mean(), kernel=lambda features, regret: kernel).fit(X, Y)
    known = GroupDROCox(recalibrate=False).fit(X, Y, sensitive_features=groups)
    np.testing.assert_allclose(subgroup.coef_, known.coef_, atol=1e-9)
    np.testing.assert_allclose(subgroup.subgroup_regret_, known.subgroup_regret_, atol=1e-9)


def test_a_smaller_share_is_served_no_better_and_the_whole_is_the_plain_model():
    values = [robust(alpha=alpha, tol=1e-6).fit(X, Y).objective_ for alpha in (0.1, 0.4, 1.0)]
    assert values == sorted(values, reverse=True)
    whole = robust(alpha=1.0, kernel=only_oneself).fit(X, Y)
    np.testing.assert_allclose(whole.worst_case_weights_, 1 / N)
    np.testing.assert_allclose(whole.coef_, CoxPH().fit(X, Y).coef_, atol=0.02)


def test_the_minority_is_served_better_than_by_plain_and_joint_robust_models():
    data = make_hidden_minority(n_samples=4000, random_state=3)
    train, test = data.take(np.arange(2000)), data.take(np.arange(2000, 4000))
    minority = (test.sensitive_features["membership"] == "minority").to_numpy()

    def minority_score(model):
        return model.fit(train.X, train.y).score(test.X[minority], test.y[minority])

    found = minority_score(SubgroupRobustCox(random_state=0, recalibrate=False))
    assert found > 0.05 + max(minority_score(CoxPH()), minority_score(DROCox(alpha=0.1, recalibrate=False)))


def test_forest_and_neighbours_are_the_kernels_of_those_names():
    def grown(features, regret):
        rng, order = np.random.default_rng(0), row_order(parse_target(Y), X)
        return forest(
            features, regret, min_group=20, n_trees=6, random_state=rng, order=order, cross_fit=True
        )

    def near(features, regret):
        return nearest_neighbors(features, n_neighbors=20)

    for parameters, kernel in (
        ({"kernel": "forest", "cross_fit": True}, grown),
        ({"kernel": "neighbors"}, near),
    ):
        named, own = (robust(tol=1e-2, **p).fit(X, Y) for p in (parameters, {"kernel": kernel}))
        np.testing.assert_allclose(named.coef_, own.coef_, atol=1e-9)
        np.testing.assert_allclose(named.worst_case_weights_, own.worst_case_weights_, atol=1e-9)


def test_kernels_see_the_plain_models_regret():
    seen = {}

    def kernel(features, regret):
        seen["features"], seen["regret"] = features, regret
        return by_sign_of_x5(features, regret)

    robust(kernel=kernel, n_intervals=1).fit(X, Y)
    np.testing.assert_array_equal(seen["features"], X.to_numpy())
    plain = robust(alpha=1.0, kernel=only_oneself, n_intervals=1).fit(X, Y)
    np.testing.assert_allclose(seen["regret"], regrets_of(plain), atol=1e-4)


@pytest.mark.parametrize("kernel", ["forest", "neighbors"])
def test_only_the_chosen_columns_define_subgroups(kernel):
    settings = {"kernel": kernel, "tol": 1e-2}
    named = robust(subgroup_features=["x5", "x1"], **settings).fit(X, Y)
    placed = robust(subgroup_features=[4, -6], **settings).fit(X.to_numpy(), Y)
    np.testing.assert_array_equal(named.coef_, placed.coef_)
    everything = robust(**settings).fit(X, Y)
    assert abs(named.coef_ - everything.coef_).max() > 1e-3


def test_patients_alike_in_the_chosen_column_are_one_neighbourhood():
    halves = X.assign(x5=(X["x5"] > 0).astype(float))
    model = robust(alpha=0.5, kernel="forest", subgroup_features=["x5"], tol=1e-2).fit(halves, Y)
    assert len(np.unique(model.subgroup_regret_.round(9))) == 2


def test_own_kernels_see_the_chosen_columns_in_their_places():
    seen = []

    def kernel(features, regret):
        seen.append(features)
        return only_oneself(features, regret)

    constant = X.assign(x2=1.0)
    robust(alpha=0.9, kernel=kernel, subgroup_features=["x2", "x5"], tol=1e-2).fit(constant, Y)
    np.testing.assert_array_equal(seen[0], constant[["x2", "x5"]])


@pytest.mark.parametrize(("ball", "alpha"), [("cvar", 0.2), ("chi2", 0.8)])
def test_weights_count_as_copies(ball, alpha):
    n = 100
    few, y, rng = X.iloc[:n], Y[:n], np.random.default_rng(1)
    weight = rng.integers(0, 4, size=n)
    copies = np.repeat(np.arange(n), weight)
    labels = (few["x5"] > 0.3).to_numpy() + 2 * (few["x1"] > 0).to_numpy()
    kept = weight > 0
    settings = {"alpha": alpha, "ball": ball, "tol": 1e-9}
    weighted = robust(
        kernel=lambda *_: Partitions(labels[kept][None], weight[kept].astype(float)), **settings
    ).fit(few, y, sample_weight=weight)
    copied = robust(kernel=lambda *_: Partitions(labels[copies][None]), **settings).fit(
        few.iloc[copies], y[copies]
    )
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-5)
    np.testing.assert_allclose(weighted.objective_, copied.objective_, atol=1e-7)
    np.testing.assert_allclose(weighted.subgroup_regret_[copies], copied.subgroup_regret_, atol=1e-5)
    assert (weighted.subgroup_regret_[~kept] == 0).all()
    times = [0.2, 0.5, 1.0]
    np.testing.assert_allclose(
        weighted.predict_survival_function(few, times=times),
        copied.predict_survival_function(few, times=times),
        atol=1e-5,
    )


def test_a_linear_model_by_adam_comes_near_the_optimum():
    few, y = X[:150], Y[:150]
    optimum = robust(kernel=by_sign_of_x5, l2=0.1).fit(few, y)
    trained = robust(kernel=by_sign_of_x5, l2=0.1, solver="adam", lr=0.02, max_iter=300).fit(few, y)
    assert optimum.objective_ <= trained.objective_ <= optimum.objective_ + 2e-3
    np.testing.assert_allclose(trained.coef_, optimum.coef_, atol=0.05)
    # The last step's objective is one step old.
    assert trained.history_[-1] == pytest.approx(trained.objective_, abs=1e-3)
    without = robust(kernel=by_sign_of_x5).fit(few, y)
    assert abs(optimum.coef_).sum() < abs(without.coef_).sum()


def make_module(n_features):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))


@pytest.mark.parametrize(("network", "ball"), [({"hidden": (8,)}, "cvar"), ({"module": make_module}, "chi2")])
def test_networks_learn_by_adam(network, ball):
    settings = {"ball": ball, "kernel": by_sign_of_x5, "n_intervals": 1}
    model = robust(network=MLP(max_iter=20, lr=0.05, **network), **settings).fit(X, Y)
    assert model.objective_ < model.history_[0] - 0.02
    assert model.n_iter_ == len(model.history_) == 20
    W = by_sign_of_x5(X.to_numpy(), None)
    np.testing.assert_allclose(model.subgroup_regret_, W @ regrets_of(model), atol=1e-6)
    assert not hasattr(model, "coef_")


def test_an_event_at_time_zero_is_no_trouble():
    time = Y["time"].copy()
    time[np.flatnonzero(Y["event"])[:3]] = 0.0
    model = robust().fit(X, Surv.from_arrays(Y["event"], time))
    assert model.converged_
    assert np.isfinite(model.subgroup_regret_).all()
    np.testing.assert_array_equal(model.predict_survival_function(X, times=[0.0]), 1.0)


def test_tied_times_give_fewer_intervals():
    tied = Surv.from_arrays(Y["event"], np.ceil(Y["time"]))
    model = robust().fit(X, tied)
    assert model.converged_
    assert len(model.unique_times_) <= 1 + len(np.unique(tied["time"]))


def test_unordered_units_and_redundant_features_still_converge():
    rng = np.random.default_rng(0)
    wide = np.column_stack([X * 10.0 ** np.arange(-3, 3), X["x1"], np.full(N, 7.0), rng.integers(2, size=N)])
    model = robust().fit(wide, Y)
    assert model.converged_
    assert np.isfinite(model.coef_).all()
    assert model.coef_[7] == 0.0


@pytest.mark.filterwarnings("error")
def test_stopping_early_is_said():
    with pytest.warns(ConvergenceWarning, match="it reached max_iter; raise max_iter"):
        model = robust(max_iter=2).fit(X, Y)
    assert not model.converged_
    assert model.status_ == "max_iter"


def test_a_model_with_an_own_kernel_is_loaded_with_it(tmp_path):
    model = robust(kernel=by_sign_of_x5, tol=1e-2).fit(X, Y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"load\(path, kernel=\.\.\.\)"):
        load(tmp_path / "model")
    loaded = load(tmp_path / "model", kernel=by_sign_of_x5)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_grid_trains_it_as_alone():
    grid = [robust(alpha=0.1, tol=1e-2), CoxPH(), robust(alpha=0.3, tol=1e-2)]
    fit_grid(grid, X, Y)
    for one in grid:
        np.testing.assert_array_equal(one.coef_, clone(one).fit(X, Y).coef_)


@pytest.mark.parametrize(("n", "least"), [(300, 20), (2400, 30), (4800, 50)])
def test_groups_are_as_small_as_the_number_of_patients_allows(n, least):
    data = make_hidden_minority(n_samples=n, random_state=0)
    quick = {"n_trees": 2, "tol": 1e-2, "random_state": 0, "recalibrate": False}
    model = SubgroupRobustCox(**quick).fit(data.X, data.y)
    assert model.min_group_ == least
    if n == 300:
        again = SubgroupRobustCox(min_group=least, **quick).fit(data.X, data.y)
        np.testing.assert_array_equal(model.predict(data.X), again.predict(data.X))


def test_unit_and_origin_of_features_do_not_matter():
    features = X.to_numpy()
    expected, *others = (
        robust().fit(same, Y).predict_survival_function(same, times=[0.2, 0.5, 1.0])
        for same in (features, features + 1e6, features * 1e-8)
    )
    for found in others:
        np.testing.assert_allclose(found, expected, atol=1e-5)
