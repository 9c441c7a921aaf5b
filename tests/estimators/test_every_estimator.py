"""The contract of every survival model there is, found by discovery: a new one passes it without code of its own."""

import inspect
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sksurv.metrics import concordance_index_censored

import drosurv
from drosurv import MLP, Surv
from drosurv.curves import Baseline
from drosurv.errors import ArgumentError
from drosurv.patients.target import with_fields

NAMES = ["age", "sex", "dose"]
N, RNG = 160, np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=NAMES)
TIME = np.ceil(20 * RNG.exponential(size=N) * np.exp(-X.to_numpy() @ [1.0, 0.5, 0.0])) / 10
Y = Surv.from_arrays(RNG.random(N) < 0.7, TIME)
GROUPS = np.where(X["sex"] > 0, "a", "b")
TIMES = [0.0, 0.3, 1.0, 5.0, 500.0]
# What makes a fit quick and repeatable, and groups that so few patients can hold; each takes what it knows.
QUICK = {
    "max_iter": 40,
    "lr": 0.05,
    "random_state": 0,
    "min_group": 10,
    "n_trees": 3,
    "cv": 3,
    "folds": 3,
    "max_conditions": 1,
    "alpha": 0.5,
    "recalibrate": False,
}
CLASSES = [cls for _, cls in drosurv.all_estimators()]

pytestmark = pytest.mark.filterwarnings("ignore:.*is the null model:UserWarning")


def quick(cls, **parameters):
    wanted = {**QUICK, **parameters}
    if wanted.get("network", getattr(cls, "network", "linear")) == "mlp":
        steps = {name: wanted.pop(name) for name in ("lr", "max_iter", "early_stopping") if name in wanted}
        wanted["network"] = MLP(**steps)
    return cls(**{name: wanted[name] for name in inspect.signature(cls).parameters if name in wanted})


def fit(model, X=X, y=Y, groups=GROUPS, **arguments):
    fields = {name: arguments.pop(name) for name in ("entry", "id", "clusters") if name in arguments}
    y = with_fields(y, **fields) if fields else y
    return model.fit(X, y, **arguments, **({"sensitive_features": groups} if takes_groups(model) else {}))


def takes_groups(model):
    return getattr(model, "_compares_groups", None) is not None


_fitted = {}


def fitted(cls):
    if cls not in _fitted:
        _fitted[cls] = fit(quick(cls))
    return _fitted[cls]


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


def test_a_parameter_that_should_be_a_number_is_named_with_its_value(cls):
    named = {
        field.name
        for field in inspect.signature(cls).parameters.values()
        if type(field.default) in (int, float)
    }
    for name, value in product(named, ["x", [], float("nan"), None, True]):
        message = rf"{name} must .*, got {re.escape(repr(value))}"
        with pytest.raises(ArgumentError, match=message):
            fit(cls(**{name: value}))


def test_groups_that_have_no_part_in_training_are_refused(cls):
    model = quick(cls)
    if not takes_groups(model):
        with pytest.raises((ArgumentError, TypeError), match="sensitive_features"):
            model.fit(X, Y, sensitive_features=GROUPS)


def test_construction_computes_nothing_and_parameters_round_trip(cls):
    given = {name: object() for name in inspect.signature(cls).parameters}
    model = cls(**given)
    assert vars(model) == given
    assert model.get_params(deep=False) == given
    assert clone(quick(cls)).get_params() == quick(cls).get_params()


def test_every_parameter_is_documented(cls):
    for name in inspect.signature(cls).parameters:
        assert name in cls.__doc__, name


def test_before_fit_it_says_so(cls):
    model = quick(cls)
    for name in ("survival_function", "cumulative_hazard_function", "median", "expectation"):
        with pytest.raises(NotFittedError):
            getattr(model, f"predict_{name}")(X)
    for ask in (lambda: model.predict(X), lambda: model.score(X, Y)):
        with pytest.raises(NotFittedError):
            ask()
    for name in ("unique_times_", "cum_baseline_hazard_", "baseline_survival_"):
        assert not hasattr(model, name)


def test_risks_and_curves_have_their_shapes(cls):
    model = fitted(cls)
    assert model.predict(X).shape == (160,)
    assert np.isfinite(model.predict(X)).all()
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == NAMES
    survival = model.predict_survival_function(X, times=TIMES)
    assert survival.shape == (160, 5)
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 1e-12).all()
    np.testing.assert_allclose(
        survival, np.exp(-model.predict_cumulative_hazard_function(X, times=TIMES)), rtol=1e-9
    )
    curve = model.predict_survival_function(X.iloc[:1])[0]
    own = model.predict_survival_function(X.iloc[:1], return_array=True)[0]
    np.testing.assert_allclose(curve(curve.x), own, rtol=1e-6)


def test_medians_and_means_are_those_of_the_curves(cls):
    model, some = fitted(cls), X.iloc[:20]
    median, rows = model.predict_median(some), np.arange(20)
    known = np.isfinite(median)
    for side, sign in ((1 - 1e-6, 1), (1 + 1e-6, -1)):
        times = np.where(known, median * side, 0.0)
        reached = model.predict_survival_function(some, times=times)[rows, rows]
        assert (sign * (reached - 0.5)[known] >= -1e-5).all()
    end, points = model.unique_times_[-1], 5_000
    curves = model.predict_survival_function(some, times=(np.arange(points) + 0.5) * end / points)
    np.testing.assert_allclose(model.predict_expectation(some), curves.mean(axis=1) * end, rtol=3e-3)


def test_curves_that_no_factor_can_recalibrate_are_told_of(cls):
    # A repaired model has the curves of its base, times a factor for each subgroup.
    one_baseline = cls is not drosurv.RepairedCox and not fitted(cls).capabilities.own_curves
    assert isinstance(getattr(fitted(cls), "_baseline", None), Baseline) == one_baseline


def test_what_the_model_was_not_fitted_with_is_refused_in_prediction(cls):
    model, ones = fitted(cls), np.ones(160)
    for predict in (model.predict_survival_function, model.predict_cumulative_hazard_function):
        for given in ("offset", "strata"):
            with pytest.raises((ArgumentError, TypeError), match=given):
                predict(X, times=TIMES, **{given: ones})
    with pytest.raises((ArgumentError, TypeError), match="offset"):
        model.predict(X, offset=ones)


def test_score_is_harrells_c_index(cls):
    model = fitted(cls)
    expected = concordance_index_censored(Y["event"], Y["time"], model.predict(X))[0]
    assert model.score(X, Y) == pytest.approx(expected)


def test_the_same_seed_gives_the_same_model(cls):
    again = fit(quick(cls))
    np.testing.assert_array_equal(again.predict(X), fitted(cls).predict(X))


def test_bad_input_is_an_error_that_names_it(cls):
    # In a table a hole is filled; in an array it is an error.
    holes = X.to_numpy().copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit(quick(cls), holes)
    with pytest.raises(ValueError, match=r"rows|inconsistent|samples"):
        fit(quick(cls), X, Y[:-1])
    with pytest.raises(ValueError, match="structured array"):
        fit(quick(cls), X, Y["time"])


# A model that says the same of everybody has no calibration slope.
@pytest.mark.filterwarnings("ignore:undefined:sklearn.exceptions.UndefinedMetricWarning")
def test_it_can_be_evaluated(cls):
    result = drosurv.evaluate(fitted(cls), X, Y, y_train=Y, sensitive_features=GROUPS)
    expected = concordance_index_censored(Y["event"], Y["time"], fitted(cls).predict(X))[0]
    assert result.value("concordance_index") == pytest.approx(expected)


def assert_same_curves(found, wanted, times=TIMES, factor=1.0):
    """Curves of two models, of which the first counts time in units that are `factor` of the second's."""
    curves = found.predict_survival_function(X, times=factor * np.array(times))
    np.testing.assert_allclose(curves, wanted.predict_survival_function(X, times=times), atol=1e-4)
    assert (found.n_patients_, found.n_events_) == (wanted.n_patients_, wanted.n_events_)
    np.testing.assert_allclose(found.follow_up_.times, factor * wanted.follow_up_.times)
    for name in ("survival", "censoring"):
        np.testing.assert_allclose(
            getattr(found.follow_up_, name), getattr(wanted.follow_up_, name), atol=1e-12
        )


# Copies are drawn into other folds, halves or trees, which the tests of these models hold fixed; and a penalty of pairs
# compares a patient with the copies.
NO_COPIES = {"CoxPHCV", "DROCoxSplit", "RegularizedCox", "RepairedCox", "SubgroupRobustCox"}


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls.__name__ not in NO_COPIES])
def test_a_patient_of_weight_three_is_three_patients(cls):
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    # Neither patients who are watched nor the halves of DeepHit's worst case, which are drawn by row, too.
    alpha = 1.0 if cls is drosurv.DeepHit else QUICK["alpha"]
    model = quick(cls, early_stopping=False, tol=1e-9, alpha=alpha)
    weighted = fit(clone(model), sample_weight=weight)
    copied = fit(model, X.iloc[rows], Y[rows], GROUPS[rows])
    assert_same_curves(weighted, copied)
    plain = fitted(cls).predict_survival_function(X, times=TIMES)
    assert abs(weighted.predict_survival_function(X, times=TIMES) - plain).max() > 1e-3


# A coefficient of an additive hazard (tests/test_new_model.py) has a unit, which the length of Adam's steps has not.
HAS_UNIT = {"AdditiveHazards"}


def test_the_unit_of_time_does_not_matter(cls):
    if cls.__name__ in HAS_UNIT:
        return
    days = fit(quick(cls), y=Surv.from_arrays(Y["event"], 365.25 * Y["time"]))
    assert_same_curves(days, fitted(cls), factor=365.25)
    for name in ("worst_case_weights_", "subgroup_regret_"):
        if hasattr(days, name):
            np.testing.assert_allclose(getattr(days, name), getattr(fitted(cls), name), atol=1e-4)
