"""Every estimator says what its scores are."""

import numpy as np
import pytest

import drosurv
from drosurv import AcceleratedFailureTime, CoxPH, DeepHit, DiscreteTimeHazard, NullModel

KINDS = {
    AcceleratedFailureTime(): "log time",
    CoxPH(): "log hazard",
    DeepHit(): "other",
    DiscreteTimeHazard(link="cloglog"): "log hazard",
    DiscreteTimeHazard(link="logit"): "other",
    NullModel(): "log hazard",
}


@pytest.mark.parametrize(("model", "kind"), KINDS.items(), ids=lambda value: str(value))
def test_score_type_of_known_models(model, kind):
    assert model.score_type == kind


def test_log_hazards_differ_by_the_log_ratio_of_cumulative_hazards():
    data = drosurv.datasets.make_hidden_minority(n_samples=200, random_state=0)
    model = DiscreteTimeHazard(5, link="cloglog").fit(data.X, data.y)
    first, second = model.predict(data.X[:2])
    hazard = model.predict_cumulative_hazard_function(data.X[:2], times=[0.5])[:, 0]
    assert np.log(hazard[1] / hazard[0]) == pytest.approx(second - first)
