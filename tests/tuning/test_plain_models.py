"""The plain model beside a candidate differs in nothing but what makes the candidate robust or fair."""

import pytest

from drosurv.estimators import CoxPH, DROCox, RegularizedCox
from drosurv.tuning.grids import plain_models


@pytest.mark.parametrize(
    ("candidate", "plain"),
    [
        (DROCox(0.2, l2=0.1), CoxPH(l2=0.1, solver="convex")),
        (DROCox(0.2, solver="adam", lr=0.1), CoxPH(solver="adam", lr=0.1)),
        (RegularizedCox(lr=0.1), CoxPH(solver="adam", lr=0.1)),
        (DROCox(0.2, network="mlp"), CoxPH("mlp")),
        (DROCox(0.2, network="mlp", solver="adam"), CoxPH("mlp", solver="adam")),
        (RegularizedCox(network="mlp"), CoxPH("mlp")),
        (DROCox(0.2, network="trees"), CoxPH("trees")),
    ],
    ids=str,
)
def test_it_is_trained_as_the_candidate_is(candidate, plain):
    (found,) = plain_models([candidate])
    assert found.get_params() == plain.get_params()
    assert found._stops == candidate._stops


def test_candidates_that_differ_in_what_is_robust_share_one():
    candidates = [DROCox(alpha, network="mlp", lr=lr) for alpha in (0.1, 0.5) for lr in (0.01, 0.1)]
    assert [model.lr for model in plain_models(candidates)] == [0.01, 0.1]
