import numpy as np
import pandas as pd
import pytest

from drosurv.estimators import CoxPH
from drosurv.metrics import concordance_index
from drosurv.paper import concordance_fractions
from drosurv.patients.draws import replicate_rng, seed_sequence
from drosurv.patients.target import Surv
from experiments.paper.scoring import HeldOut, interval_columns


@pytest.fixture
def patients():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=120)
    y = Surv.from_arrays(rng.random(120) < 0.7, np.round(rng.exponential(np.exp(-risk)), 1))
    labels = pd.DataFrame({"sex": rng.choice(["f", "m"], 120), "site": rng.choice(["a", "b", "c"], 120)})
    return risk, y, labels


def test_the_interval_of_imparity_is_that_of_replicates_of_all_patients(patients):
    risk, y, labels = patients
    found = HeldOut(y, risk[:, None], y, labels).imparity(risk, 30)
    for name in labels:

        def fractions(weight=None, name=name):
            return np.array([*concordance_fractions(y, risk, labels[name], sample_weight=weight).values()])

        own, streams = fractions(), seed_sequence(0)
        drawn = [
            np.bincount(replicate_rng(streams, k).integers(120, size=120), minlength=120) for k in range(30)
        ]
        draws = np.array([fractions(weight.astype(float)) for weight in drawn])
        columns = interval_columns("ci", found[name])
        assert columns["ci_se"] == pytest.approx(np.ptp(draws, axis=1).std(ddof=1))
        reach = np.quantile(np.ptp(draws - own, axis=1), 0.95)
        assert columns["ci_low"] == pytest.approx(max(np.ptp(own) - reach, 0))
        assert columns["ci_high"] == pytest.approx(np.ptp(own) + reach)


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
    assert found["overall", "concordance_index"] == pytest.approx(concordance_index(y, risk))


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
    np.testing.assert_allclose(curves.survival(y["time"][:, None])[:5, 0], np.diag(own[:5]))
