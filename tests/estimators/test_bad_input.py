"""Bad input is refused with an error that names the argument, what was given and what to do."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, GroupDROCox, SubgroupRobustCox, Surv, all_estimators

# A null model and a repaired one state otherwise what they cannot take.
ESTIMATORS = [cls for name, cls in all_estimators() if name not in ("NullModel", "RepairedCox")]


def sample(n=60):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), Surv.from_arrays(rng.random(n) < 0.6, rng.integers(1, 20, n))


def raw_target(event, time):
    """A structured target that no builder has checked."""
    y = np.empty(len(time), dtype=[("event", "?"), ("time", "<f8")])
    y["event"], y["time"] = event, time
    return y


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


def fit(estimator, X, y, **more):
    if isinstance(estimator, GroupDROCox):
        more["sensitive_features"] = np.arange(len(X)) % 2
    return estimator.fit(X, y, **more)


def test_features_that_are_no_numbers_are_refused(cls):
    X, y = sample()
    for value, message in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        X[3, 1] = value
        with pytest.raises(ValueError, match=f"X contains {message}"):
            fit(cls(), X, y)
    table = pd.DataFrame(X, columns=list("abc")).assign(b="high")
    with pytest.raises(ValueError, match="could not convert string to float"):
        fit(cls(), table.to_numpy(), y)


def test_masked_arrays_and_dates_are_refused_by_name(cls):
    X, y = sample()
    with pytest.raises(ValueError, match="X is a masked array, whose mask would be lost"):
        fit(cls(), np.ma.masked_less(X, 0), y)
    with pytest.raises(ValueError, match="X holds dates: turn them into numbers"):
        fit(cls(), np.full((60, 2), "2020-01-01", dtype="datetime64[D]"), y)
    with pytest.raises(ValueError, match=r"dates are no features: .* pass drop=\['b'\]"):
        fit(cls(), pd.DataFrame(X, columns=list("abc")).assign(b=pd.Timestamp("2020-01-01")), y)


# The others are in tests/test_messages.py.
TARGETS = [
    (lambda y: raw_target(y["event"], np.where(np.arange(60) == 4, np.nan, y["time"])), "row 5: nan"),
    (lambda y: raw_target(np.zeros(60, bool), y["time"]), "no event"),
    (lambda y: raw_target(y["event"], np.full(60, 7.0)), r"same time, 7\.0, for every patient"),
    (lambda y: None, "structured array whose first two fields"),
    (lambda y: y[:50], "same number of rows, got 60 and 50"),
]


def test_targets_that_are_none_are_refused(cls):
    X, y = sample()
    for change, message in TARGETS:
        with pytest.raises(ValueError, match=message):
            fit(cls(), X, change(y))


WEIGHTS = [
    (np.full(60, -1.0), "Negative values"),
    (np.full(60, np.nan), "NaN"),
    (np.ones(59), "sample_weight.shape == .*59"),
    # Newer versions of scikit-learn refuse them first.
    (np.zeros(60), "at least one non-zero number|every event has weight 0"),
    (~sample()[1]["event"], "leaves no patient with an event"),
]


def test_weights_that_are_none_are_refused(cls):
    X, y = sample()
    for weight, message in WEIGHTS:
        with pytest.raises(ValueError, match=message):
            fit(cls(), X, y, sample_weight=weight)


def test_a_single_patient_is_refused(cls):
    X, y = sample()
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        fit(cls(), X[:1], y[:1])


PARAMETERS = [
    ({"solver": "sgd"}, "solver must be one of .* got 'sgd'"),
    ({"network": "cnn"}, "network must be one of .* or a callable .* got 'cnn'"),
    ({"network": 3}, "network must be .* got 3"),
    ({"max_iter": 0}, "max_iter must be .* got 0"),
    ({"lr": 0.0}, "lr must be .* got 0.0"),
    ({"l2": -1.0}, "l2 must .* got -1.0"),
    ({"l2": np.inf}, "l2 must .* got inf"),
    ({"tol": -1e-3}, "tol must .* got -0.001"),
    ({"network": MLP(dropout="some")}, r"dropout must lie in \[0, 1\), got 'some'"),
    ({"network": MLP(dropout=1)}, r"dropout must lie in \[0, 1\), got 1"),
    ({"network": MLP(validation_fraction=None)}, r"validation_fraction must lie in \(0, 1\), got None"),
    ({"network": MLP((8, 0))}, r"hidden must list widths .* got \(8, 0\)"),
    ({"network": MLP(24)}, "hidden must list widths .* got 24"),
    ({"network": "mlp", "solver": "convex"}, "solver='convex' needs network='linear'"),
    ({"device": "abacus"}, "device='abacus' .* use 'auto', 'cpu' or 'cuda'"),
    *(
        ({"random_state": seed}, "random_state must be None, a RandomState or a whole number")
        for seed in (-1, 2**32, 1.5, "seven", np.random.default_rng(0))
    ),
]


def test_shared_parameters_outside_their_range_are_refused():
    for parameters, message in PARAMETERS:
        with pytest.raises(ValueError, match=message):
            CoxPH(**parameters).fit(*sample())


def test_a_fit_that_fails_leaves_no_model(cls):
    X, y = sample()
    model = cls(**({"alpha": 0.5, "min_group": 5} if cls is SubgroupRobustCox else {}), random_state=0)
    with pytest.raises(ValueError, match="same number of rows"):
        fit(model, X, y[:50])
    with pytest.raises(NotFittedError):
        model.predict(X)
    fit(model, X, y).predict(X)
    with pytest.raises(ValueError, match="same number of rows"):
        fit(model, X[:, :2], y[:50])
    for use in (model.predict, model.predict_survival_function):
        with pytest.raises(NotFittedError):
            use(X[:, :2])


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_a_training_that_diverges_leaves_no_model():
    X, y = sample()
    model = CoxPH(network=MLP(max_iter=5), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="training diverged to infinite scores; lower lr"):
        model.set_params(network__lr=1e30).fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_unknown_rules_for_ties_are_refused(cls):
    with pytest.raises(ValueError, match=r"ties must be .*'breslow'.*, got 'exact'"):
        fit(cls(ties="exact"), *sample())


@pytest.mark.parametrize("cls", [DROCox, DROCoxSplit])
def test_unknown_balls_are_refused(cls):
    with pytest.raises(ValueError, match=r"ball must be one of .* got 'kl'"):
        cls(ball="kl").fit(*sample())


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "alpha" in cls().get_params()])
def test_alpha_outside_its_range_is_refused(cls):
    X, y = sample()
    for alpha in (0.0, 1.1, [0.1, 0.2]):
        with pytest.raises(ValueError, match=r"alpha .*\(0, 1\].* got"):
            fit(cls(alpha=alpha), X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n1": 0.0}, r"n1 must lie in \(0, 1\), as D1's share .* got 0.0"),
        ({"n1": 0.001}, "n1=0.001 leaves D1 empty among 60 patients"),
        ({"n1": 0.999, "shuffle": False}, "n1=0.999 leaves D2 empty among 60 patients"),
        ({"n1": 0.001, "shuffle": False}, "n1=0.001 leaves D1 empty among 60 patients"),
        ({"sides": "three"}, "sides must be one of \\('both', 'one'\\), got 'three'"),
    ],
    ids=str,
)
def test_splits_that_leave_a_half_empty_are_refused(parameters, message):
    X, y = sample()
    with pytest.raises(ValueError, match=message):
        DROCoxSplit(random_state=0, **parameters).fit(X, y)


def test_a_half_without_events_is_refused():
    X, y = sample()
    event = np.zeros(60, bool)
    event[:5] = True
    y = Surv.from_arrays(event, y["time"])
    with pytest.raises(ValueError, match=r"leaves a half without events \(5 in all\)"):
        DROCoxSplit(shuffle=False).fit(X, y)
    # One side needs no events in the half it only compares with.
    assert DROCoxSplit(0.5, shuffle=False, sides="one", l2=0.1).fit(X, y).converged_


def test_networks_that_break_their_contract_are_refused():
    X, y = sample()
    with pytest.raises(
        ValueError, match=r"one score per patient, shape \(60,\) or \(60, 1\); it returned \(60, 2\)"
    ):
        CoxPH(network=lambda d: torch.nn.Linear(d, 2), solver="adam").fit(X, y)
    with pytest.raises(TypeError, match="network is a Linear; pass a function"):
        CoxPH(network=torch.nn.Linear(3, 1)).fit(X, y)
