"""Models, audits and repairs of the same patients are the same, in whatever order their rows are given."""

import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import MLP, CoxPH, CoxPHCV, DROCox, DROCoxSplit, RepairedCox, SubgroupRobustCox, Surv, Trees
from drosurv.tables import SurvivalTable
from drosurv.tables.target_columns import TargetColumns

MODELS = {
    "cross-validated": CoxPHCV(),
    "recalibrated": DROCox(),
    "recalibrated, CVaR": DROCox(ball="cvar"),
    "recalibrated, Efron": CoxPH(recalibrate=True, ties="efron", random_state=1),
    "split": DROCoxSplit(random_state=1),
    "split, one side": DROCoxSplit(random_state=1, sides="one", n1=0.3, recalibrate=False),
    "forest": SubgroupRobustCox(random_state=1, recalibrate=False, n_trees=4),
    "repaired": RepairedCox(CoxPH(), folds=3, max_conditions=1, random_state=0),
    "mini-batches": CoxPH(MLP((3,), batch_size=150, max_iter=2), random_state=1),
    "mini-batches, early stopping": CoxPH(
        MLP((3,), batch_size=100, max_iter=2, early_stopping=True), random_state=1
    ),
    "boosted, early stopping": CoxPH(Trees(early_stopping=True, max_iter=20), random_state=1),
}


def patients(n=400, rounded=True, seed=0):
    """Patients with many tied times; a tenth has another hazard, so that a repair is found."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    hazard = np.exp(0.7 * X[:, 0]) * np.where(X[:, 2] > 1, 4.0, 1.0)
    event, censored = rng.exponential(1 / hazard), rng.exponential(1.5, n)
    time = np.minimum(event, censored) + 0.02
    return X.round(1), Surv.from_arrays(event <= censored, np.ceil(time * 6) / 6 if rounded else time)


@pytest.mark.parametrize("rounded", [False, True], ids=["distinct times", "tied times"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_does_not_depend_on_the_order_of_rows(name, rounded):
    X, y = patients(rounded=rounded)
    moved = np.random.default_rng(9).permutation(len(X))
    with warnings.catch_warnings(action="ignore"):
        first, second = (MODELS[name].fit(*rows) for rows in ((X, y), (X[moved], y[moved])))
    times = np.quantile(y["time"], [0.25, 0.5, 0.75])
    curves = [model.predict_survival_function(X[:20], times=times) for model in (first, second)]
    np.testing.assert_allclose(*curves, atol=1e-6)


def test_clusters_and_entry_times_move_with_their_rows():
    X, y = patients(400)
    rng = np.random.default_rng(2)
    y = Surv.from_arrays(
        y["event"],
        y["time"],
        entry=y["time"] * rng.integers(0, 2, 400) / 2,
        clusters=rng.integers(0, 120, 400),
        weight=rng.integers(1, 3, 400),
    )
    moved = rng.permutation(400)
    for model in (CoxPHCV(splines=False), DROCoxSplit(random_state=0)):
        first = np.array(model.fit(X, y).predict(X[:9]))
        np.testing.assert_allclose(model.fit(X[moved], y[moved]).predict(X[:9]), first, atol=1e-6)


class Drawn(Exception):
    """The folds that an audit has drawn."""


def test_folds_of_an_audit_do_not_depend_on_the_order_of_rows(monkeypatch):
    X, y = patients()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    moved = np.random.default_rng(3).permutation(len(X))

    def stop(model, X, y, rows, parts, intervals):
        raise Drawn([X.iloc[test].sort_values(["a", "b", "c"]).to_numpy() for _, test in parts])

    monkeypatch.setattr(import_module("drosurv.report.audit"), "_evidence_of_folds", stop)
    found = []
    for rows in ((table, y), (table.iloc[moved], y[moved])):
        with pytest.raises(Drawn) as drawn:
            drosurv.audit(CoxPH(), *rows, folds=3)
        found.append(drawn.value.args[0])
    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("named", [False, True], ids=["without ids", "with ids"])
def test_who_is_held_out_does_not_depend_on_the_order_of_rows(named):
    X, y = patients(120)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(days=y["time"], dead=y["event"].astype(int))
    if named:
        frame["id"] = np.arange(120) // 2
    frame["row"] = np.arange(120)
    columns, id = TargetColumns("days", "dead"), "id" if named else None
    moved = np.random.default_rng(4).permutation(120)
    held = [
        SurvivalTable.parse(one, columns, drop=["row"], id=id).hold_out(0.25, seed=3)[1].frame
        for one in (frame, frame.iloc[moved].reset_index(drop=True))
    ]
    assert sorted(held[0]["row"]) == sorted(held[1]["row"])
    assert len(held[0]) == 30
