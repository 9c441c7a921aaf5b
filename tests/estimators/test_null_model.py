import numpy as np
import pytest

import drosurv
from drosurv import NullModel, SubgroupRobustCox, Surv
from drosurv.datasets import make_hidden_minority

DATA = make_hidden_minority(n_samples=400, random_state=0)


def rates(event, time, edges, weight):
    """Events over time at risk in each interval (edge, next edge]."""
    spent = np.clip(np.minimum(time[:, None], edges[1:]) - edges[:-1], 0.0, None)
    ended = (time[:, None] > edges[:-1]) & (time[:, None] <= edges[1:])
    return (weight * event) @ ended / (weight @ spent)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_losses_hazard_is_events_over_time_at_risk_and_the_curve_nelson_and_aalens(weighted):
    event, time = np.array([1, 0, 1, 1, 0, 1], dtype=bool), np.array([1.0, 2.0, 2.0, 4.0, 5.0, 8.0])
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0]) if weighted else np.ones(6)
    model = NullModel(n_intervals=2).fit(np.eye(6), Surv.from_arrays(event, time), weight)
    # Half of the weighted events have happened by the cut.
    edges = np.array([0.0, 4.0 if weighted else 2.0, np.inf])
    hazard = rates(event, time, edges, weight)
    for t in (0.5, 1.0, 2.0, 4.0, 8.0, 9.0):
        jumps = [weight[i] / weight[time >= time[i]].sum() for i in np.flatnonzero(event & (time <= t))]
        assert model.cum_baseline_hazard_(t) == pytest.approx(sum(jumps))
    k = (time[:, None] > edges[1:-1]).sum(axis=1)
    spent = np.clip(np.minimum(time[:, None], edges[1:]) - edges[:-1], 0.0, None)
    losses = spent @ hazard - event * np.log(hazard[k])
    np.testing.assert_allclose(model.null_loss_, losses)
    assert model.objective_ == pytest.approx(weight @ losses / weight.sum())


def test_it_is_the_null_model_of_the_subgroup_robust_one():
    quick = {"n_trees": 2, "tol": 1e-2, "recalibrate": False}
    robust = SubgroupRobustCox(random_state=0, alpha=0.3, **quick).fit(DATA.X, DATA.y)
    np.testing.assert_array_equal(NullModel().fit(DATA.X, DATA.y).null_loss_, robust.null_loss_)


def test_everybody_has_the_same_curve_and_no_order():
    model = NullModel().fit(DATA.X, DATA.y)
    curves = model.predict_survival_function(DATA.X, return_array=True)
    assert (curves == curves[0]).all()
    assert (np.diff(curves[0]) <= 0).all()
    assert model.score(DATA.X, DATA.y) == 0.5
    assert (model.predict(DATA.X) == 0).all()


def test_evaluation_finds_no_gain_over_no_model():
    found = drosurv.evaluate(
        NullModel().fit(DATA.X, DATA.y),
        DATA.X,
        DATA.y,
        y_train=DATA.y,
        sensitive_features=DATA.sensitive_features["membership"],
    )
    assert any("predictions of all patients are equal" in note for note in found.notes)
    assert found.value("concordance_index") == 0.5
    assert len(found.groups) == 3
    assert (found.groups["gain"].abs() < 1e-9).all()
