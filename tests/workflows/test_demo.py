"""The demonstration compares models on held-out patients."""

import numpy as np
import pytest

from drosurv import CoxPH
from drosurv.datasets import load_nwtco, make_hidden_minority
from drosurv.metrics import concordance_index
from drosurv.workflows.demo import PLAIN, REPAIRED, SIMULATED, WILMS, demo, held_out_rows


@pytest.fixture(scope="module")
def simulated():
    data = make_hidden_minority(600, 6, random_state=0)
    return data, demo(loaders={SIMULATED: lambda: data})[SIMULATED]


def test_numbers_are_those_of_the_metrics_on_held_out_patients(simulated):
    data, found = simulated
    test = held_out_rows(data, 0)
    model = CoxPH().fit(data.X[~test], data.y[~test])
    inside = (data.sensitive_features["membership"] == "minority").to_numpy()[test]
    assert (found.n_train, found.n_test, found.n_group) == (400, 200, inside.sum())
    y = data.y[test]
    assert found.number(PLAIN, "c_index") == pytest.approx(
        concordance_index(y, model.predict(data.X[test])), abs=1e-9
    )
    low, high = found.number(PLAIN, "low"), found.number(PLAIN, "high")
    assert 0 < low < found.number(PLAIN, "observed") < high < 1
    assert low < found.number(REPAIRED, "predicted") < high


def test_repair_finds_the_simulated_subgroup_and_helps_it(simulated):
    _, found = simulated
    assert any(rule.startswith("x5 > ") for rule in found.rules)
    assert found.number(PLAIN, "group_gain") < 0 < found.number(REPAIRED, "group_gain")
    assert found.number(REPAIRED, "gain") > found.number(PLAIN, "gain")


def test_held_out_patients_are_a_third_with_the_same_share_of_events():
    data = load_nwtco()
    test = held_out_rows(data, 1)
    assert test.mean() == pytest.approx(1 / 3, abs=1e-3)
    assert data.y["event"][test].mean() == pytest.approx(data.y["event"].mean(), abs=1e-3)


def test_infants_are_found_among_children_with_wilms_tumour():
    found = demo(loaders={WILMS: load_nwtco})[WILMS]
    assert found.group == "age <= 8"
    observed, expected = found.number(PLAIN, "observed"), found.number(PLAIN, "predicted")
    assert observed > 1.5 * expected
    assert abs(np.log(observed / found.number(REPAIRED, "predicted"))) < np.log(observed / expected)
    assert found.number(REPAIRED, "group_gain") > found.number(PLAIN, "group_gain")
