"""Boosted trees are a network like the others: everything an estimator does, it does with them."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import drosurv
from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CoxPH,
    DeepHit,
    DROCox,
    GroupDROCox,
    SubgroupRobustCox,
    Surv,
    Trees,
)
from experiments import rivals

RNG = np.random.default_rng(0)
# Rounded, so that no table of distinct values has a row for each patient.
X = pd.DataFrame(RNG.integers(-9, 10, (257, 3)) / 4, columns=["age", "dose", "stage"])
RISK = np.where(X["age"] > 0, X["dose"], -X["dose"])
TIME = np.ceil(20 * RNG.exponential(size=257) * np.exp(-RISK)) / 10
Y = Surv.from_arrays(RNG.random(257) < 0.8, TIME)
GROUPS = pd.Series(np.where(X["stage"] > 0, "late", "early"), name="stage")
QUICK = {
    "network": Trees(max_iter=8),
    "random_state": 0,
    "min_group": 10,
    "n_trees": 5,
    "alpha": 0.5,
    "recalibrate": False,
}
CLASSES = [
    cls
    for _, cls in drosurv.all_estimators()
    if "network" in inspect.signature(cls).parameters and cls is not DeepHit
]


def fit(cls, X=X, y=Y, groups=GROUPS, sample_weight=None, **parameters):
    wanted = {**QUICK, **parameters}
    model = cls(**{name: wanted[name] for name in inspect.signature(cls).parameters if name in wanted})
    needs = {} if model._compares_groups is None else {"sensitive_features": groups}
    return model.fit(X, y, sample_weight, **needs)


_fitted = {}


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def model(request):
    if request.param not in _fitted:
        _fitted[request.param] = fit(request.param)
    return _fitted[request.param]


def test_risks_and_curves_agree(model):
    risk, survival = model.predict(X), model.predict_survival_function(X, times=[0.0, 0.5, 1.0, 4.0])
    assert len(np.unique(risk)) > 5
    assert (survival[:, 0] == 1).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    assert (np.diff(survival[np.argsort(risk, kind="stable")], axis=0) <= 1e-12).all()
    assert model.score(X, Y) > 0.6


def test_the_median_is_where_the_curve_passes_one_half(model):
    median = model.predict_median(X)
    known = np.isfinite(median)
    assert known.any()
    for row in np.flatnonzero(known)[:6]:
        before, after = model.predict_survival_function(
            X.iloc[[row]], times=[median[row] * (1 - 1e-6), median[row] * (1 + 1e-6)]
        )[0]
        assert after <= 0.5 + 1e-4
        assert before >= 0.5 - 1e-4


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (CoxPH, {}),
        (DROCox, {"ball": "cvar"}),
        (GroupDROCox, {"alpha": None}),
        (AcceleratedFailureTime, {"alpha": 1.0}),
        (drosurv.DiscreteTimeHazard, {"alpha": 0.5}),
        *((getattr(rivals, name), {}) for name in rivals.__all__),
    ],
    ids=lambda given: given.__name__ if isinstance(given, type) else "",
)
def test_a_patient_of_weight_two_is_two_patients(cls, parameters):
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    copies, grown = np.repeat(np.arange(len(X)), weight), Trees(max_iter=8, early_stopping=False)
    one = fit(cls, sample_weight=weight.astype(float), network=grown, **parameters)
    many = fit(cls, X.iloc[copies], Y[copies], GROUPS.iloc[copies], network=grown, **parameters)
    np.testing.assert_allclose(one.predict(X), many.predict(X), atol=1e-5)


@pytest.mark.parametrize(
    ("cls", "parameters", "network"),
    [
        (DROCox, {}, Trees(max_iter=8)),
        (SubgroupRobustCox, {}, Trees(max_iter=8)),
        (AcceleratedFailureTime, {}, Trees(max_iter=8)),
        (drosurv.DiscreteTimeHazard, {}, Trees(max_iter=8)),
        (DROCox, {}, MLP(max_iter=8)),
        (AcceleratedFailureTime, {}, MLP(max_iter=8)),
    ],
    ids=lambda given: given.__name__ if isinstance(given, type) else str(given or ""),
)
def test_days_and_years_give_the_same_robust_fit(cls, parameters, network):
    years = fit(cls, network=network, **parameters)
    days = fit(cls, y=Surv.from_arrays(Y["event"], 365.25 * Y["time"]), network=network, **parameters)
    risks = [years.predict(X), days.predict(X)]
    if cls is AcceleratedFailureTime:
        # Its risk is minus the location of log time, which has a unit.
        risks[1] = risks[1] + np.log(365.25)
    np.testing.assert_allclose(*risks, atol=1e-5)


@pytest.mark.parametrize(("n", "rare"), [(26, 9), (200, 12)])
def test_groups_of_fewer_than_twenty_patients_are_told_apart(n, rare):
    flag = (np.arange(n) < rare).astype(float)
    y = Surv.from_arrays(np.ones(n, bool), np.random.default_rng(0).exponential(np.exp(3 * flag)))
    risk = CoxPH(network=Trees(max_iter=20)).fit(flag[:, None], y).predict(np.array([[1.0], [0.0]]))
    assert risk[1] > risk[0]


def test_a_search_tunes_them():
    grid = {"network__params": [{"max_depth": 1}, {"max_depth": 3}]}
    search = GridSearchCV(CoxPH(network=Trees(max_iter=8), random_state=0), grid, cv=2).fit(X, Y)
    # The effect of the dose turns with age: one cut at a time cannot see it.
    assert search.best_params_["network__params"] == {"max_depth": 3}


def test_the_report_takes_them(tmp_path):
    model = _fitted.get(CoxPH) or fit(CoxPH)
    report = drosurv.report.audit(model, X, Y, sensitive_features=GROUPS, y_train=Y, search_rules=False)
    report.to_html(tmp_path / "report.html")
    assert "Trees" in (tmp_path / "report.html").read_text(encoding="utf-8")
