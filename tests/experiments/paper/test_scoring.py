import numpy as np
import pandas as pd
import pytest

from drosurv.estimators import CoxPH
from drosurv.metrics import bootstrap, concordance_fractions, concordance_index
from drosurv.metrics.inference import largest_difference
from drosurv.target import Surv
from experiments.paper.scoring import HeldOut


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
    found = held_out.measure(risk, metrics=["concordance_imparity"], replicates=30)
    for name in labels:
        draws = bootstrap(
            lambda w, name=name: list(concordance_fractions(y, risk, labels[name], sample_weight=w).values()),
            len(y),
            replicates=30,
            random_state=0,
        )
        alone = largest_difference(draws.estimate, draws.draws, 1.0).interval(0.95)
        ours = found[name, "concordance_imparity"].interval(0.95)
        assert (ours.low, ours.high) == pytest.approx((alone.low, alone.high))
        assert ours.standard_error == pytest.approx(alone.standard_error)


def test_the_interval_of_the_c_index_is_the_bootstraps(patients):
    risk, y, _ = patients
    measured = HeldOut(y, risk[:, None], y).measure(risk, metrics=["concordance_index"], replicates=30)
    found = measured["overall", "concordance_index"].interval(0.95)
    draws = bootstrap(lambda weight: concordance_index(y, risk, weight), 120, replicates=30, random_state=0)
    assert found.standard_error == pytest.approx(draws.interval().standard_error)


def test_only_what_is_asked_for_is_computed(patients):
    risk, y, labels = patients
    held_out = HeldOut(y, risk[:, None], y, labels)
    assert set(held_out.measure(risk, metrics=["dynamic_auc"])) == {("overall", "dynamic_auc")}
    imparity = {("sex", "concordance_imparity"), ("site", "concordance_imparity")}
    assert set(held_out.measure(risk, metrics=["concordance_imparity"])) == imparity


def test_hazards_that_overflow_have_no_disparity_and_keep_their_order(patients):
    risk, y, labels = patients
    found = HeldOut(y, risk[:, None], y, labels).measure(1000 * risk)
    assert ("overall", "individual_disparity") not in found
    assert ("sex", "group_disparity") not in found
    assert found["overall", "concordance_index"].estimate == pytest.approx(concordance_index(y, risk))


def test_without_attributes_there_is_nothing_to_compare(patients):
    risk, y, _ = patients
    found = HeldOut(y, risk[:, None], y).measure(risk)
    assert {attribute for attribute, _ in found} == {"overall"}
    assert ("overall", "intersectional_disparity") not in found


def test_breslow_curves_are_those_of_the_model_with_these_scores(patients):
    risk, y, _ = patients
    model = CoxPH().fit(risk[:, None], y)
    scores = model.predict(risk[:, None])
    curves = HeldOut(y, risk[:, None], y).breslow(scores, scores)
    times = np.array([0.0, 0.3, 1.0, 50.0])
    np.testing.assert_allclose(
        curves.survival(times), model.predict_survival_function(risk[:, None], times=times)
    )
    own = model.predict_survival_function(risk[:, None], times=y["time"][:5])
    np.testing.assert_allclose(curves.at_patient_times(y["time"])[:5], np.diag(own[:5]))
