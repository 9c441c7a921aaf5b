import pytest

from drosurv import MLP, Trees
from drosurv.estimators import CoxPH, DROCox, RegularizedCox
from drosurv.tuning.grids import default_grid, grid_points, plain_models


def test_the_default_grid_leaves_out_what_the_solver_does_not_read():
    assert set(default_grid(DROCox(recalibrate=False))) == {"alpha"}
    assert set(default_grid(DROCox(solver="adam", recalibrate=False))) == {"alpha", "lr"}
    assert set(default_grid(RegularizedCox())) == {"weight", "lr"}
    # The paper's rates are Adam's.
    assert default_grid(CoxPH(MLP(), recalibrate=False))["network__lr"] == [0.01, 0.001, 0.0001]
    assert default_grid(CoxPH(Trees(), recalibrate=False))["network__lr"] == [0.02, 0.05, 0.1]
    with pytest.raises(ValueError, match="grid must be given for CoxPH with the convex solver"):
        default_grid(CoxPH())


def test_points_come_in_the_order_of_the_grid_the_last_parameter_fastest():
    points = grid_points([{"lr": [1, 2], "alpha": [3, 4]}, {"l2": [5]}])
    assert points == [
        *({"lr": 1, "alpha": 3}, {"lr": 1, "alpha": 4}, {"lr": 2, "alpha": 3}, {"lr": 2, "alpha": 4}),
        {"l2": 5},
    ]


@pytest.mark.parametrize("grid", [{"lr": []}, {"lr": 0.1}, {"ball": "chi2"}, []])
def test_a_grid_without_values_is_refused(grid):
    with pytest.raises(ValueError, match="grid"):
        grid_points(grid)


@pytest.mark.parametrize(
    ("candidate", "plain"),
    [
        (DROCox(0.2, l2=0.1), CoxPH(l2=0.1, solver="convex", recalibrate=False)),
        (
            DROCox(0.2, solver="adam", lr=0.1, recalibrate=False),
            CoxPH(solver="adam", lr=0.1, recalibrate=False),
        ),
        (RegularizedCox(lr=0.1), CoxPH(solver="adam", lr=0.1, recalibrate=False)),
        (DROCox(0.2, network="mlp", recalibrate=False), CoxPH("mlp", recalibrate=False)),
        (
            DROCox(0.2, network="mlp", solver="adam", recalibrate=False),
            CoxPH("mlp", solver="adam", recalibrate=False),
        ),
        (RegularizedCox(network="mlp"), CoxPH("mlp", recalibrate=False)),
        (DROCox(0.2, network="trees", recalibrate=False), CoxPH("trees", recalibrate=False)),
    ],
    ids=str,
)
def test_it_is_trained_as_the_candidate_is(candidate, plain):
    (found,) = plain_models([candidate])
    assert found.get_params() == plain.get_params()
    assert found._uses_convex == candidate._uses_convex
    for option in ("early_stopping", "max_iter", "l2"):
        assert getattr(found._options([found]), option) == getattr(candidate._options([candidate]), option)


def test_candidates_that_differ_in_what_is_robust_share_one():
    candidates = [
        DROCox(alpha, network=MLP(lr=lr), recalibrate=False) for alpha in (0.1, 0.5) for lr in (0.01, 0.1)
    ]
    assert [model.network.lr for model in plain_models(candidates)] == [0.01, 0.1]
