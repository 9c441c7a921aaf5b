"""Every estimator says what its scores are."""

import numpy as np
import pytest

import drosurv
from drosurv import DiscreteTimeHazard

# Scores of all other models are log hazards.
KINDS = {"AcceleratedFailureTime()": "log time", "DeepHit()": "other", "DiscreteTimeHazard()": "other"}
MODELS = [*(cls() for _, cls in drosurv.all_estimators()), DiscreteTimeHazard(link="cloglog")]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_score_type_of_every_model(model):
    assert model.score_type == KINDS.get(repr(model), "log hazard")


def test_log_hazards_differ_by_the_log_ratio_of_cumulative_hazards():
    data = drosurv.datasets.make_hidden_minority(n_samples=200, random_state=0)
    model = DiscreteTimeHazard(5, link="cloglog").fit(data.X, data.y)
    first, second = model.predict(data.X[:2])
    hazard = model.predict_cumulative_hazard_function(data.X[:2], times=[0.5])[:, 0]
    assert np.log(hazard[1] / hazard[0]) == pytest.approx(second - first)
