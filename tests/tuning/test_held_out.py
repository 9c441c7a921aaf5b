import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from drosurv.metrics import bootstrap, concordance_imparity_intervals, concordance_index
from drosurv.target import Surv
from drosurv.tuning.held_out import HeldOut, standardise


@pytest.fixture
def patients():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=120)
    y = Surv.from_arrays(rng.random(120) < 0.7, np.round(rng.exponential(np.exp(-risk)), 1))
    labels = pd.DataFrame({"sex": rng.choice(["f", "m"], 120), "site": rng.choice(["a", "b", "c"], 120)})
    return risk, y, labels


def test_every_attribute_gets_the_interval_it_would_get_alone(patients):
    risk, y, labels = patients
    held_out = HeldOut(y, risk[:, None], y, labels)
    found = held_out.imparity_intervals(risk, replicates=30, random_state=5)
    for name in labels:
        alone = concordance_imparity_intervals(y, risk, labels[name], replicates=30, random_state=5).gap
        assert found[name]["concordance_imparity_low"] == pytest.approx(alone.low)
        assert found[name]["concordance_imparity_high"] == pytest.approx(alone.high)
        assert found[name]["concordance_imparity_se"] == pytest.approx(alone.standard_error)


def test_the_interval_of_the_c_index_is_the_bootstraps(patients):
    risk, y, _ = patients
    found = HeldOut(y, risk[:, None], y).concordance_interval(risk, replicates=30, random_state=5)
    draws = bootstrap(lambda weight: concordance_index(y, risk, weight), 120, replicates=30, random_state=5)
    assert found["concordance_index_low"] == pytest.approx(draws.interval().low)
    assert found["concordance_index_se"] == pytest.approx(draws.interval().standard_error)


def test_only_what_is_asked_for_is_computed(patients):
    risk, y, labels = patients
    held_out = HeldOut(y, risk[:, None], y, labels)
    assert set(held_out.overall(risk, risk, ["dynamic_auc"])) == {"dynamic_auc"}
    assert held_out.by_attribute(risk, ["concordance_imparity"]).keys() == {"sex", "site"}
    assert set(held_out.by_attribute(risk, ["group_disparity"])["sex"]) == {"group_disparity"}


def test_hazards_that_overflow_have_no_disparity_and_keep_their_order(patients):
    risk, y, labels = patients
    held_out = HeldOut(y, risk[:, None], y, labels)
    far = 1000 * risk
    found = held_out.overall(far, far) | held_out.by_attribute(far)["sex"]
    assert np.isnan(found["individual_disparity"])
    assert np.isnan(found["group_disparity"])
    assert found["concordance_index"] == pytest.approx(concordance_index(y, risk))


def test_without_attributes_there_is_nothing_to_compare(patients):
    risk, y, _ = patients
    held_out = HeldOut(y, risk[:, None], y)
    assert held_out.by_attribute(risk) == {}
    assert np.isnan(held_out.overall(risk, risk)["intersectional_disparity"])


def test_features_are_scaled_by_the_training_patients():
    rng = np.random.default_rng(1)
    train, other = rng.normal(3, 2, size=(50, 3)), rng.normal(size=(20, 3))
    scaler = StandardScaler().fit(train)
    ours = standardise(train, other)
    np.testing.assert_allclose(ours[0], scaler.transform(train))
    np.testing.assert_allclose(ours[1], scaler.transform(other))


def test_a_constant_feature_becomes_zero():
    train, other = standardise(np.full((5, 1), 0.1) + 1e-17, np.ones((2, 1)))
    assert (train == 0).all()
    assert (other == 0).all()
