import pytest

from drosurv.estimators import CoxPH, DROCox, RegularizedCox
from drosurv.tuning.grids import default_grid, grid_points


def test_the_default_grid_leaves_out_what_the_solver_does_not_read():
    assert set(default_grid(DROCox())) == {"alpha"}
    assert set(default_grid(DROCox(solver="adam"))) == {"alpha", "lr"}
    assert set(default_grid(RegularizedCox())) == {"weight", "lr"}
    # The paper's rates are Adam's.
    assert default_grid(CoxPH("mlp"))["lr"] == [0.01, 0.001, 0.0001]
    assert default_grid(CoxPH("trees"))["lr"] == [0.02, 0.05, 0.1]
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
