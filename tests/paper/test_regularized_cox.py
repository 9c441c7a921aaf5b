import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold

from drosurv import MLP, CoxPH, RegularizedCox, datasets, metrics, paper
from drosurv.errors import ArgumentError
from drosurv.paper.penalties import PENALTIES
from drosurv.patients.target import Surv
from experiments.grid import fit_grid

from .test_penalty import DENSE

NAMES = sorted(PENALTIES)
GROUPED = [name for name in NAMES if PENALTIES[name].needs_groups]
# Large enough that many pairs are inside the hinge.
SCALE = 0.3


def tolerance(network, here, there):
    """How near numbers must be: perceptrons train on an accelerator where there is one, all in float32."""
    return there if network == "mlp" and torch.cuda.is_available() else here


def patients(n=60, d=4, seed=0, n_groups=3):
    """Features in units of their own, tied times, and groups whose risk differs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.array([1.0, 3.0, 0.2, 1.0])[:d] + 2.0
    groups = rng.integers(n_groups, size=n)
    time = np.ceil(8 * rng.exponential(size=n) * np.exp(-0.5 * (X[:, 0] - 2.0) - 0.4 * groups))
    return X, Surv.from_arrays(rng.random(n) < 0.6, time), groups


def defined_objective(scores, X, y, groups, name, weight, scale=SCALE):
    """Loss averaged over events plus weight x penalty, from the definitions and with n x n arrays."""
    event, time = torch.tensor(y["event"].copy()), torch.tensor(y["time"].copy())
    h = scores.exp()
    at_risk = (time[None, :] >= time[:, None]).to(scores.dtype)
    losses = torch.log(at_risk @ h) - scores
    features = torch.tensor((X - X.mean(axis=0)) / X.std(axis=0), dtype=scores.dtype)
    codes = torch.tensor(np.unique(groups, return_inverse=True)[1])
    return losses[event].mean() + weight * DENSE[name](h, features, event, time, codes, scale)


def trained_plainly(torch_adam, module, X, y, groups, name, weight, lr, steps):
    """The objectives before each of torch's own Adam steps on the plain definition."""
    features = torch.tensor(X, dtype=next(module.parameters()).dtype)
    step = torch_adam(module.parameters(), lr)
    history = []
    for _ in range(steps):
        value = defined_objective(module(features).reshape(-1), X, y, groups, name, weight)
        value.backward()
        step()
        history.append(float(value.detach()))
    return np.array(history)


def groups_for(name, groups):
    return {"sensitive_features": groups} if name in GROUPED else {}


def standardised(*features):
    mean, deviation = features[0].mean(), features[0].std(ddof=0)
    return [(X - mean) / deviation for X in features]


@pytest.mark.parametrize("name", NAMES)
def test_training_follows_the_definition_step_by_step(name, torch_adam):
    X, y, groups = patients()
    X = X - 2.0
    torch.manual_seed(5)
    module = torch.nn.Linear(X.shape[1], 1, bias=False).double()
    history = trained_plainly(torch_adam, module, X, y, groups, name, weight=0.8, lr=0.02, steps=20)
    model = RegularizedCox(name, 0.8, SCALE, lr=0.02, max_iter=20, random_state=5)
    model.fit(X, y, **groups_for(name, groups))
    # Both start from the same float32 numbers; at the kink of a maximum a rounding may decide the side.
    np.testing.assert_allclose(model.history_, history, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, module.weight.detach().numpy()[0], rtol=1e-6, atol=1e-9)


# The network only gives the scores: a penalty of groups and one of pairs take those of perceptrons.
@pytest.mark.parametrize("name", ["keya_intersectional", "rp_group"])
def test_a_perceptron_follows_the_definition_step_by_step(name, torch_adam):
    X, y, groups = patients()
    X = X - 2.0
    torch.manual_seed(5)
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    history = trained_plainly(torch_adam, module, X, y, groups, name, weight=0.8, lr=0.01, steps=15)
    model = RegularizedCox(
        name, 0.8, SCALE, network=MLP(hidden=(6,), lr=0.01, max_iter=15), solver="adam", random_state=5
    ).fit(X, y, **groups_for(name, groups))
    np.testing.assert_allclose(model.history_, history, rtol=tolerance("mlp", 1e-4, 2e-3))


@pytest.mark.parametrize(("name", "network"), [*((name, "linear") for name in NAMES), ("rp_group", "mlp")])
def test_final_objective_is_the_definition_at_the_fitted_scores(name, network):
    X, y, groups = patients()
    steps = {"max_iter": 20} if network == "linear" else {"network": MLP(max_iter=20)}
    model = RegularizedCox(name, 1.7, SCALE, **steps, random_state=0)
    model.fit(X, y, **groups_for(name, groups))
    expected = defined_objective(torch.tensor(model.predict(X)), X, y, groups, name, 1.7)
    assert model.objective_ == pytest.approx(float(expected), rel=tolerance(network, 1e-9, 1e-4))


def test_ridge_counts_in_the_objective():
    X, y, _ = patients()
    model = RegularizedCox("keya_individual", 1.0, SCALE, l2=0.5, max_iter=20, random_state=0).fit(X, y)
    plain = defined_objective(torch.tensor(model.predict(X)), X, y, np.zeros(len(X)), "keya_individual", 1.0)
    assert model.objective_ == pytest.approx(float(plain) + 0.25 * model.coef_ @ model.coef_, rel=1e-9)


# The network only gives the scores: one penalty takes those of perceptrons.
@pytest.mark.parametrize(
    ("name", "network"), [*((name, "linear") for name in NAMES), ("rp_individual", "mlp")]
)
def test_settings_trained_together_equal_those_trained_alone(name, network):
    X, y, groups = patients(n=80)
    settings = [(0.0, 0.01), (0.4, 0.01), (1.0, 0.1), (30.0, 0.001)]

    def models():
        steps = [{"lr": lr, "max_iter": 15} for _, lr in settings]
        parameters = steps if network == "linear" else [{"network": MLP(**each)} for each in steps]
        return [
            RegularizedCox(name, weight, solver="adam", random_state=3, **each)
            for (weight, _), each in zip(settings, parameters, strict=True)
        ]

    together = models()
    fit_grid(together, X, y, sensitive_features=groups)
    near = 1e-9 if network == "linear" else tolerance(network, 2e-4, 2e-3)
    for one, model in zip(together, models(), strict=True):
        model.fit(X, y, **groups_for(name, groups))
        found, expected = one.predict(X), model.predict(X)
        if model.weight == 0:
            # The likelihood does not see a shift of all scores: float32's rounding alone decides where a bias goes.
            found, expected = found - found.mean(), expected - expected.mean()
        np.testing.assert_allclose(found, expected, rtol=near, atol=near)
        np.testing.assert_allclose(one.history_, model.history_, rtol=near)
        assert one.objective_ == pytest.approx(model.objective_, rel=near)


def test_without_weight_it_is_plain_cox():
    X, y, _ = patients(n=80)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    free = RegularizedCox("keya_individual", weight=0.0, lr=0.05, max_iter=1000, random_state=0).fit(X, y)
    np.testing.assert_allclose(free.coef_, CoxPH().fit(X, y).coef_, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_weight_buys_less_of_the_named_disparity(name):
    X, y, groups = patients(n=150)
    measure = {
        "keya_individual": lambda f: paper.individual_disparity(f, X, convention="table"),
        "keya_group": lambda f: paper.group_disparity(f, groups, convention="table"),
        "keya_intersectional": lambda f: paper.intersectional_disparity(
            f, groups[:, None], convention="table"
        ),
        "rp_individual": lambda f: paper.censored_individual_disparity(y, f, X),
        "rp_group": lambda f: paper.censored_group_disparity(y, f, X, groups),
    }[name]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = [
        measure(
            RegularizedCox(name, weight, lr=0.05, max_iter=100, random_state=0)
            .fit(X, y, **groups_for(name, groups))
            .predict(X)
        )
        for weight in (0.0, 1.0, 10.0)
    ]
    assert found[0] > found[1] > found[2]


def test_groups_may_come_in_any_form():
    X, y, groups = patients()
    labels = np.array(["zeta", "alpha", "mu"])[groups]
    wide = np.stack([groups > 0, groups > 1], axis=1)
    forms = [
        labels,
        labels.astype(object),
        list(labels),
        pd.Series(labels, index=np.arange(len(X))[::-1]),
        pd.Series(labels).astype("category"),
        pd.Series(labels, dtype="string"),
        pd.Series(groups + 0.5),
        pd.DataFrame({"origin": labels}, index=np.arange(len(X)) + 7),
        pd.DataFrame(wide, columns=["above", "above"]),
        wide,
    ]
    model = RegularizedCox("keya_group", max_iter=10, random_state=0)
    expected = model.fit(X, y, sensitive_features=groups).coef_
    for form in forms:
        # Which group comes first may decide between groups that are equally far: not here.
        np.testing.assert_allclose(model.fit(X, y, sensitive_features=form).coef_, expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_label_is_a_group_of_its_own(missing):
    X, y, groups = patients(n_groups=2)
    labels = np.array(["a", "b"], dtype=object)[groups]
    labels[::5] = "unknown"
    model = RegularizedCox("keya_group", 2.0, max_iter=10, random_state=0)
    expected = model.fit(X, y, sensitive_features=labels).coef_
    labels[::5] = missing
    for form in (labels, pd.Series(labels), pd.Series(labels).astype("category")):
        np.testing.assert_allclose(model.fit(X, y, sensitive_features=form).coef_, expected, rtol=1e-12)


@pytest.mark.parametrize("name", GROUPED)
def test_groups_absent_from_the_training_patients_do_not_count(name):
    X, y, groups = patients(n=90)
    kept = groups != 1
    labels = pd.Series(groups).astype(pd.CategoricalDtype([0, 1, 2, 3]))
    model = RegularizedCox(name, max_iter=10, random_state=0)
    expected = model.fit(X[kept], y[kept], sensitive_features=np.where(groups, 1, 0)[kept]).coef_
    np.testing.assert_array_equal(
        model.fit(X[kept], y[kept], sensitive_features=labels[kept]).coef_, expected
    )
    weighted = model.fit(X, y, sample_weight=kept.astype(float), sensitive_features=labels)
    np.testing.assert_allclose(weighted.coef_, expected, rtol=1e-9)


@pytest.mark.parametrize("name", GROUPED)
def test_cross_validation_works_when_a_fold_lacks_a_group(name):
    X, y, groups = patients(n=90)
    groups = np.sort(groups)
    assert len(np.unique(groups[30:])) < 3
    with config_context(enable_metadata_routing=True):
        model = RegularizedCox(name, max_iter=5, random_state=0).set_fit_request(sensitive_features=True)
        search = GridSearchCV(model, {"weight": [0.1, 1.0]}, cv=KFold(3), error_score="raise")
        search.fit(X, y, sensitive_features=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("name", GROUPED)
def test_missing_groups_are_asked_for(name):
    X, y, _ = patients()
    with pytest.raises(ValueError, match=f"penalty='{name}'.*sensitive_features"):
        RegularizedCox(name).fit(X, y)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(GROUPED)))
def test_groups_that_would_not_be_used_are_refused(name):
    X, y, groups = patients()
    with pytest.raises(ArgumentError, match="sensitive_features would have no effect: RegularizedCox"):
        RegularizedCox(name).fit(X, y, sensitive_features=groups)


def test_published_intersectional_row_on_flc_by_age():
    """Table 2 of the paper, Cox with the intersectional penalty; lambda .4 and learning rate .01.

    Means of three repeats, within two published standard deviations, under the tables' convention.
    """
    data = datasets.load_flc(as_published=True)
    rows = []
    for seed in range(3):
        train, _, test = datasets.split(data, seed)
        X, X_test = standardised(train.X, test.X)
        model = RegularizedCox("keya_intersectional", weight=0.4, lr=0.01, random_state=1)
        model.fit(X, train.y, sensitive_features=train.sensitive_features)
        risk, groups = model.predict(X_test), test.sensitive_features
        rows.append(
            [
                metrics.concordance_index(test.y, risk),
                metrics.log_partial_likelihood(test.y, risk, per="event"),
                paper.individual_disparity(risk, X_test, convention="table"),
                paper.group_disparity(risk, groups["age"], convention="table"),
                paper.intersectional_disparity(risk, groups, convention="table"),
            ]
        )
    published = np.array([0.787, -6.727, 0.292, 0.416, 0.683])
    deviation = np.array([0.0029, 0.0048, 0.0056, 0.0220, 0.0291])
    assert (np.abs(np.mean(rows, axis=0) - published) < 2 * deviation).all()
