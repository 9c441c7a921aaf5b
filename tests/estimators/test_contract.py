"""What every estimator must do: the surface that users of scikit-learn and scikit-survival know."""

import copy
import inspect

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.metrics import (
    as_concordance_index_ipcw_scorer,
    as_cumulative_dynamic_auc_scorer,
    as_integrated_brier_score_scorer,
)
from threadpoolctl import threadpool_limits

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, GroupDROCox, RegularizedCox, SubgroupRobustCox, Surv
from experiments.rivals import JustTrainTwice

NAMES = ["age", "sex", "dose"]


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = np.ceil(20 * rng.exponential(size=n) * np.exp(-X @ [1.0, 0.5, 0.0])) / 10
    return pd.DataFrame(X, columns=NAMES), Surv.from_arrays(rng.random(n) < 0.7, time)


X, Y = sample()
ADAM = {"solver": "adam", "lr": 0.05, "max_iter": 12, "random_state": 0}
DEEP = {"network": MLP(lr=0.05, max_iter=12), "solver": "adam", "random_state": 0}
ESTIMATORS = {
    "cox": CoxPH(),
    "cox, adam": CoxPH(**ADAM),
    "cox, efron": CoxPH(ties="efron"),
    "deepsurv": CoxPH(**DEEP),
    "dro cox": DROCox(alpha=0.3, recalibrate=False),
    "dro cox, adam": DROCox(alpha=0.3, **ADAM, recalibrate=False),
    "dro cox, paper": DROCox(alpha=0.5, ball="paper", recalibrate=False),
    "dro cox, cvar": DROCox(alpha=0.3, ball="cvar", recalibrate=False),
    "deep dro cox": DROCox(
        alpha=0.3,
        network=MLP(hidden=(8, 4), lr=0.05, max_iter=12),
        solver="adam",
        random_state=0,
        recalibrate=False,
    ),
    "split": DROCoxSplit(alpha=0.3, random_state=0, recalibrate=False),
    "split, one side": DROCoxSplit(alpha=0.3, sides="one", n1=0.6, random_state=0, recalibrate=False),
    "deep split": DROCoxSplit(alpha=0.3, **DEEP, recalibrate=False),
    "regularized": RegularizedCox(**ADAM),
    "subgroup robust": SubgroupRobustCox(
        alpha=0.5, min_group=10, n_trees=5, random_state=0, recalibrate=False
    ),
    "group dro": GroupDROCox(recalibrate=False),
    "just train twice": JustTrainTwice(),
}
# CVaR is solved to a relative gap of 1e-5, which leaves its coefficients some room.
APPROXIMATE = ["dro cox, cvar", "subgroup robust", "group dro"]
ROBUST = [name for name, estimator in ESTIMATORS.items() if isinstance(estimator, (DROCox, DROCoxSplit))]


def fit(estimator, X=X, y=Y, sample_weight=None):
    takes_groups = isinstance(estimator, GroupDROCox)
    groups = {"sensitive_features": np.arange(len(X)) % 2} if takes_groups else {}
    return estimator.fit(X, y, sample_weight, **groups)


_fitted = {}


def fitted(name):
    """One fit per member for the tests that only look at it."""
    if name not in _fitted:
        _fitted[name] = fit(clone(ESTIMATORS[name]))
    return _fitted[name]


@pytest.fixture(params=ESTIMATORS)
def name(request):
    return request.param


# One of each way to train: weights are read alike whatever the ball, the ties and the sides.
each_way = pytest.mark.parametrize(
    "name",
    ["cox", "cox, adam", "deepsurv", "dro cox", "split", "deep split", "regularized", "subgroup robust",
     "group dro", "just train twice"],
)  # fmt: skip


# One of each kind of solver and of curve, for what the parts they share read or forget.
each_kind = pytest.mark.parametrize("name", ["cox", "deepsurv", "split", "subgroup robust", "group dro"])


def is_linear(estimator):
    return estimator.network == "linear"


@pytest.mark.parametrize("cls", dict.fromkeys(map(type, ESTIMATORS.values())), ids=lambda cls: cls.__name__)
def test_shared_parameters_have_their_documented_defaults(cls):
    found = {key: p.default for key, p in inspect.signature(cls).parameters.items()}
    shared = {
        "network": "linear",
        "solver": "auto",
        "lr": 0.01,
        "max_iter": 500,
        "tol": None,
        "l2": 0.0,
        "ties": "breslow",
        "random_state": None,
        "device": "auto",
        "verbose": False,
    }
    assert {key: found[key] for key in shared} == shared


def test_fitting_sets_what_the_documentation_lists(name):
    model = fitted(name)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == NAMES
    assert np.isfinite(model.objective_)
    assert isinstance(model.n_iter_, int)
    assert model.converged_ is True
    assert np.ndim(model.history_) == 1
    assert np.isfinite(model.history_).all()
    if is_linear(model):
        assert model.coef_.shape == (3,)
        assert model.coef_.dtype == np.float64
    else:
        assert isinstance(model.network_, torch.nn.Module)
        assert not model.network_.training
    times = model.unique_times_
    assert times[0] == 0.0
    assert (np.diff(times) > 0).all()
    assert model.baseline_survival_(0.0) == 1.0
    np.testing.assert_allclose(
        model.baseline_survival_(times), np.exp(-model.cum_baseline_hazard_(times)), rtol=1e-12
    )


def test_the_objective_is_the_last_one_of_training(name):
    model = fitted(name)
    if model.solver == "auto" and is_linear(model) and not isinstance(model, RegularizedCox):
        # Those with a piecewise baseline also train under a tiny ridge on it, which the objective leaves out.
        assert model.objective_ == pytest.approx(model.history_.min(), rel=1e-4 if "group" in name else 1e-9)
        assert model.gap_ <= (1e-5 if getattr(model, "ball", "") == "cvar" or "group" in name else 1e-8)
    else:
        assert len(model.history_) == model.n_iter_ == 12
        assert model.objective_ < model.history_[0]
        assert model.objective_ == pytest.approx(model.history_[-1], abs=0.05)


@pytest.mark.parametrize("name", ROBUST)
def test_worst_case_weights_are_a_subpopulation(name):
    model = fitted(name)
    weights = model.worst_case_weights_
    assert weights.shape == (150,)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert np.isfinite(model.eta_).all()


def test_predictions_are_log_risks_of_the_network(name):
    model = fitted(name)
    risk = model.predict(X)
    assert risk.shape == (150,)
    assert risk.dtype == np.float64
    if is_linear(model):
        np.testing.assert_allclose(risk, X.to_numpy() @ model.coef_, rtol=1e-12, atol=1e-12)
    else:
        with torch.no_grad():
            wanted = model.network_(torch.tensor(X.to_numpy(), dtype=torch.float32)).squeeze(-1)
        np.testing.assert_allclose(risk, wanted, rtol=1e-6)
    # Whoever predicts one patient gets what that patient gets among others.
    np.testing.assert_allclose(model.predict(X.iloc[[7]]), risk[[7]], rtol=1e-5)
    assert model.score(X, Y) > 0.6


def test_survival_functions_are_curves_or_arrays(name):
    model = fitted(name)
    some = X.iloc[:5]
    curves, array = (
        model.predict_survival_function(some),
        model.predict_survival_function(some, return_array=True),
    )
    hazards = model.predict_cumulative_hazard_function(some, return_array=True)
    assert curves.shape == (5,)
    assert array.shape == hazards.shape == (5, len(model.unique_times_))
    for i, curve in enumerate(curves):
        np.testing.assert_allclose(curve(model.unique_times_), array[i], rtol=1e-12)
        np.testing.assert_array_equal(curve.x, model.unique_times_)
    np.testing.assert_allclose(array, np.exp(-hazards), rtol=1e-12)
    np.testing.assert_allclose(hazards[:, 0], 0)
    assert (np.diff(array, axis=1) <= 0).all()
    # Proportional hazards: H(t | x) = H0(t) exp f(x).
    wanted = np.exp(model.predict(some))[:, None] * model.cum_baseline_hazard_(model.unique_times_)
    np.testing.assert_allclose(hazards, wanted, rtol=1e-9)
    for i, curve in enumerate(model.predict_cumulative_hazard_function(some)):
        np.testing.assert_allclose(curve(model.unique_times_), hazards[i], rtol=1e-12)


def test_survival_is_one_before_the_first_event_and_held_after_the_last(name):
    model = fitted(name)
    first, last = Y["time"][Y["event"]].min(), Y["time"][Y["event"]].max()
    times = [0.0, first / 2, first, last, 10 * last, 0.3, 0.3]
    found = model.predict_survival_function(X, times=times)
    assert found.shape == (150, 7)
    if not isinstance(model, (SubgroupRobustCox, GroupDROCox)):
        # Their baseline is constant between cuts, not a step at each event.
        assert (found[:, :2] == 1.0).all()
    assert (found[:, 0] == 1.0).all()
    assert (found[:, 2] < 1.0).all()
    np.testing.assert_array_equal(found[:, 3], found[:, 4])
    np.testing.assert_array_equal(found[:, 5], found[:, 6])
    curve = model.predict_survival_function(X.iloc[:1])[0]
    # A network scores in float32, and one patient alone may be rounded differently from the same among many.
    rounding = 1e-12 if hasattr(model, "coef_") else 1e-5
    np.testing.assert_allclose(curve(times), found[0], rtol=rounding)
    assert [curve(t) for t in times] == pytest.approx(list(found[0]), rel=rounding)
    hazard = model.predict_cumulative_hazard_function(X, times=times)
    np.testing.assert_allclose(found, np.exp(-hazard), rtol=1e-12)


@pytest.mark.parametrize("name", ["cox", "deepsurv", "group dro"])
def test_times_that_are_no_times_are_refused(name):
    model = fitted(name)
    for times in ([-1.0], [np.nan], [np.inf], 3.0, [[1.0]]):
        with pytest.raises(ValueError, match="times must be"):
            model.predict_survival_function(X, times=times)
    with pytest.raises(ValueError, match="times must be"):
        model.predict_survival_function(X.iloc[:1])[0](-1.0)


# Those of test_every_estimator.py are not trained by Adam, nor with a network.
@pytest.mark.parametrize("name", ["cox, adam", "deepsurv", "deep split", "just train twice"])
def test_the_same_seed_gives_the_same_model(name):
    first, second = fitted(name), fit(clone(ESTIMATORS[name]))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.objective_ == second.objective_


# One of each way to draw: first weights of a linear model and of a network, halves, trees.
each_draw = pytest.mark.parametrize("name", ["cox, adam", "deepsurv", "split", "subgroup robust"])


@pytest.mark.parametrize(
    ("name", "random"),
    [
        *((name, True) for name in ["cox, adam", "deepsurv", "split", "regularized", "subgroup robust"]),
        *((name, False) for name in ["cox", "dro cox", "group dro"]),
    ],
)
def test_the_seed_matters_where_something_is_random(name, random):
    other = fit(clone(ESTIMATORS[name]).set_params(random_state=1))
    assert np.array_equal(fitted(name).predict(X), other.predict(X)) is not random


@each_draw
def test_a_random_state_object_is_used_up_like_scikit_learns(name):
    def after(seed):
        return fit(clone(ESTIMATORS[name]).set_params(random_state=np.random.RandomState(seed)))

    np.testing.assert_array_equal(after(3).predict(X), after(3).predict(X))


@each_draw
def test_training_leaves_global_random_numbers_alone(name):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global state is what is being watched
    wanted = torch.rand(2), np.random.random(2)  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    fit(clone(ESTIMATORS[name]).set_params(random_state=5))
    assert torch.equal(torch.rand(2), wanted[0])
    assert np.array_equal(np.random.random(2), wanted[1])  # noqa: NPY002


@each_kind
def test_fitting_again_forgets_the_first_fit(name):
    model = copy.deepcopy(fitted(name))
    other_X, other_Y = sample(seed=9)
    fit(model, other_X.iloc[:, :2], other_Y)
    fresh = fit(clone(ESTIMATORS[name]), other_X.iloc[:, :2], other_Y)
    np.testing.assert_array_equal(model.predict(other_X.iloc[:, :2]), fresh.predict(other_X.iloc[:, :2]))
    assert set(vars(model)) == set(vars(fresh))


@pytest.mark.parametrize("name", ["cox", "dro cox"])
def test_another_network_replaces_the_first(name):
    model = fit(clone(ESTIMATORS[name]))
    model.set_params(network=MLP(max_iter=5), random_state=0)
    fit(model)
    assert not hasattr(model, "coef_")
    model.set_params(network="linear")
    fit(model)
    assert not hasattr(model, "network_")
    np.testing.assert_array_equal(model.predict(X), fitted(name).predict(X))


def test_parameters_set_for_the_next_fit_do_not_change_the_fitted_model():
    model = fit(clone(ESTIMATORS["cox"]))
    risk = model.predict(X)
    np.testing.assert_array_equal(model.set_params(network="mlp").predict(X), risk)


@each_kind
def test_inputs_are_left_as_they_were(name):
    table, y, weight = X.copy(), Y.copy(), np.linspace(0.5, 2, 150)
    kept = weight.copy()
    fit(clone(ESTIMATORS[name]), table, y, weight)
    pd.testing.assert_frame_equal(table, X)
    assert np.array_equal(y, Y)
    assert np.array_equal(weight, kept)


def centred_risk(model, name, X=X):
    """Log risks, those of a network less their mean: Cox's loss does not determine the bias of its last layer."""
    risk = model.predict(X)
    return risk - risk.mean() if "deep" in name else risk


@each_way
def test_weights_of_one_change_nothing_and_weights_of_zero_take_patients_out(name):
    ones = fit(clone(ESTIMATORS[name]), sample_weight=np.ones(150))
    rounded = name in APPROXIMATE or "deep" in name
    close = {"rtol": 1e-4, "atol": 1e-4} if rounded else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(centred_risk(ones, name), centred_risk(fitted(name), name), **close)
    weight = np.ones(150)
    weight[1::2][::4] = 0.0
    if isinstance(ESTIMATORS[name], GroupDROCox):
        # Labels alternate by position, which taking rows out would shift.
        return
    without = fit(clone(ESTIMATORS[name]), sample_weight=weight)
    kept = np.flatnonzero(weight)
    alone = fit(clone(ESTIMATORS[name]), X.iloc[kept], Y[kept])
    np.testing.assert_allclose(centred_risk(without, name), centred_risk(alone, name), **close)
    if name in ROBUST:
        found, wanted = without.worst_case_weights_[kept], alone.worst_case_weights_
        np.testing.assert_allclose(found, wanted, atol=1e-3 if rounded else 1e-9)
        assert (without.worst_case_weights_[weight == 0] == 0).all()


# The others are in test_every_estimator.py.
COPIED = ["dro cox, adam", "dro cox, paper", "dro cox, cvar", "cox, adam", "deepsurv"]


@pytest.mark.parametrize("name", COPIED)
def test_whole_number_weights_are_copies(name):
    counts = np.random.default_rng(0).integers(0, 4, 150)
    rows = np.repeat(np.arange(150), counts)
    weighted = fit(clone(ESTIMATORS[name]), sample_weight=counts)
    copied = fit(clone(ESTIMATORS[name]), X.iloc[rows], Y[rows])
    # Networks are trained in float32; CVaR is solved to 1e-5.
    loose = {"deepsurv": 1e-4, "dro cox, cvar": 2e-5}.get(name, 1e-7)
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=loose)
    if name != "dro cox, cvar":
        np.testing.assert_allclose(centred_risk(weighted, name), centred_risk(copied, name), atol=100 * loose)
        np.testing.assert_allclose(
            weighted.predict_survival_function(X, times=[0.5, 1.0, 3.0]),
            copied.predict_survival_function(X, times=[0.5, 1.0, 3.0]),
            atol=100 * loose,
        )
    if name in ROBUST and name != "dro cox, cvar":
        np.testing.assert_allclose(
            np.bincount(rows, copied.worst_case_weights_, 150), weighted.worst_case_weights_, atol=1e-6
        )


@pytest.mark.parametrize("name", ["cox", "deepsurv", "subgroup robust"])
def test_arrays_lists_and_tables_give_the_same_model(name):
    for same in (X.to_numpy(), X.to_numpy().tolist(), np.asfortranarray(X)):
        model = fit(clone(ESTIMATORS[name]), same)
        np.testing.assert_allclose(
            centred_risk(model, name, same), centred_risk(fitted(name), name), rtol=1e-4, atol=1e-4
        )
        assert not hasattr(model, "feature_names_in_")


@each_kind
def test_any_field_names_of_the_target_are_understood(name):
    other = Y.astype([("dead", "?"), ("days", "<f4")])
    model = fit(clone(ESTIMATORS[name]), X, other)
    np.testing.assert_allclose(model.predict(X), fitted(name).predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["cox", "deepsurv"])
def test_wrong_features_at_prediction_are_named(name):
    model = fitted(name)
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*weight"):
        model.predict(X.rename(columns={"dose": "weight"}))
    with pytest.raises(ValueError, match=r"(?s)feature names.*same order"):
        model.predict(X[["sex", "age", "dose"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X.to_numpy())
    plain = fit(clone(ESTIMATORS[name]), X.to_numpy())
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        plain.predict_survival_function(X.to_numpy()[:, :2])
    for value, message in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = X.to_numpy().copy()
        bad[0, 0] = value
        with pytest.raises(ValueError, match=message):
            plain.predict(bad)


SEARCHED = ["cox", "split"]


@pytest.mark.parametrize("name", SEARCHED)
def test_pipelines_searches_and_cross_validation_work(name):
    pipeline = make_pipeline(StandardScaler(), clone(ESTIMATORS[name]))
    parameter = f"{type(ESTIMATORS[name]).__name__.lower()}__l2"
    search = GridSearchCV(pipeline, {parameter: [0.0, 0.1]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.6
    assert search.best_estimator_.predict_survival_function(X).shape == (150,)
    scores = cross_validate(pipeline, X, Y, cv=2, error_score="raise")["test_score"]
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", SEARCHED)
def test_scikit_survivals_scorers_work(name):
    times = np.quantile(Y["time"][Y["event"]], [0.3, 0.5, 0.7])
    for wrap in (
        as_concordance_index_ipcw_scorer,
        as_cumulative_dynamic_auc_scorer,
        as_integrated_brier_score_scorer,
    ):
        extra = {"tau": times[-1]} if wrap is as_concordance_index_ipcw_scorer else {"times": times}
        model = wrap(clone(ESTIMATORS[name]), **extra).fit(X, Y)
        value = model.score(X, Y)
        assert np.isfinite(value)
        # A Brier score comes back negated, so that larger is better.
        assert value > (-0.25 if wrap is as_integrated_brier_score_scorer else 0.6)


# Of small perceptrons torch takes the steps on one thread: they train in float32, and Adam turns the rounding of a sum
# over threads into a step wherever the true gradient is zero.
@pytest.mark.parametrize("name", ["cox", "cox, adam", "deepsurv", "dro cox", "dro cox, cvar", "split"])
def test_the_number_of_threads_does_not_show(name):
    rng = np.random.default_rng(0)
    many = rng.normal(size=(3000, 20))
    y = Surv.from_arrays(rng.random(3000) < 0.7, rng.exponential(size=3000) * np.exp(-many[:, 0]))
    models, before = [], torch.get_num_threads()
    for n_jobs in (1, 2):
        torch.set_num_threads(n_jobs)
        with threadpool_limits(n_jobs):
            models.append(clone(ESTIMATORS[name]).fit(many, y))
        assert torch.get_num_threads() == n_jobs
    torch.set_num_threads(before)
    one, two = (model.predict(many) for model in models)
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-4 if name == "dro cox, cvar" else 1e-9)
