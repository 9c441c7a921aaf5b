import numpy as np
import pytest

from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluate import prepare
from drosurv.groups import Groups
from drosurv.metrics import bootstrap, concordance_index
from drosurv.metrics.imparity import studentized_concordance
from drosurv.metrics.inference import studentized_ratio
from drosurv.observation import Inference
from drosurv.predictions import as_predictions


@pytest.fixture(scope="module")
def evaluator(model, train, held_out):
    return prepare(
        as_predictions(model, held_out.X, len(held_out.y)),
        held_out.y,
        y_train=train.y,
        sensitive_features=held_out.sensitive_features,
    )


def test_concordance_is_compared_in_standard_errors_that_resampling_confirms(evaluator):
    groups = evaluator.attributes[0].groups
    patients = evaluator.everyone
    values, errors = [], []
    for k in range(2):
        rows = np.flatnonzero(groups.codes == k)
        target, risk = patients.target.take(rows), patients.risk[rows]
        draws = bootstrap(
            lambda w, y=target, f=risk: concordance_index(y, f, w), len(rows), replicates=250, random_state=0
        )
        values.append(draws.estimate[0])
        errors.append(draws.interval().standard_error)
    found = studentized_concordance(patients.harrell)(groups)
    assert found == pytest.approx(abs(values[0] - values[1]) / np.hypot(*errors), rel=0.1)


def test_a_real_gap_is_found_and_random_labels_are_not(evaluator):
    found = evaluator.p_values(Inference(n_bootstrap=99))
    assert found["site", "concordance_index"] == pytest.approx(1 / 100)
    assert found["site", "likelihood_gain"] < 0.05
    assert found["sex", "concordance_index"] > 0.05
    with_test = {name for name, metric in CATALOGUE.items() if metric.test and metric.of != "everybody"}
    assert {metric for attribute, metric in found if attribute == "site"} == with_test
    assert 0 < found["overall", "intersectional_disparity"] <= 1


def test_p_values_do_not_depend_on_threads(evaluator):
    one, two = (evaluator.p_values(Inference(n_bootstrap=8, random_state=3, n_jobs=k)) for k in (1, 2))
    assert one == two


def test_no_permutations_no_tests(evaluator):
    assert evaluator.p_values(Inference(n_bootstrap=0)) == {}


def test_groups_that_cannot_be_compared_have_no_statistic(evaluator):
    alone = Groups(np.zeros(len(evaluator.everyone), dtype=np.intp), ("a", "b"))
    assert np.isnan(studentized_concordance(evaluator.everyone.harrell)(alone))
    assert np.isnan(studentized_ratio(evaluator.everyone.risk, 1.0)(alone))
