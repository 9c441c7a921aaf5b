"""The share of Cox's gain, from numbers chosen so that it can be read off."""

import numpy as np

from experiments.paper.plan import EXPERIMENTS
from experiments.paper.selection import choose_settings, gain_share
from experiments.paper.unit import gather


def grid_of(unit, result):
    """Cox is best on validation at lr .001, where it gains 0.5 over the null; DRO-COX gains alpha/2."""

    def cox(part, attribute, setting):
        best = setting["lr"] == (0.001 if part == "validation" else 0.01)
        return {
            "concordance_index": 0.8 if best else 0.7,
            "log_partial_likelihood": -6.5 if setting["lr"] == 0.001 else -6.0,
        }

    def dro(part, attribute, setting):
        return {"log_partial_likelihood": -7.0 + setting["alpha"] / 2, "concordance_index": 0.8}

    units = [(unit("cox", 0), cox), (unit("dro-cox", 0), dro), (unit("dro-cox", 1), dro)]
    return gather((one, result(one, values)) for one, values in units)


def test_the_share_is_of_the_gain_of_cox_at_its_chosen_learning_rate(unit, result):
    grid = grid_of(unit, result)
    share = gain_share(grid)
    dro = (grid["method"] == "dro-cox") & (grid["repeat"] == 0)
    np.testing.assert_allclose(share[dro], grid.loc[dro, "alpha"])
    cox = grid["method"] == "cox"
    np.testing.assert_allclose(share[cox & (grid["lr"] == 0.001)], 1)
    np.testing.assert_allclose(share[cox & (grid["lr"] == 0.01)], 2)


def test_choosing_on_test_takes_the_cox_that_is_best_there(unit, result):
    grid = grid_of(unit, result)
    dro = (grid["method"] == "dro-cox") & (grid["repeat"] == 0)
    np.testing.assert_allclose(gain_share(grid, select_on="test")[dro], grid.loc[dro, "alpha"] / 2)


def test_without_cox_the_share_is_not_known(unit, result):
    grid = grid_of(unit, result)
    assert gain_share(grid)[grid["repeat"] == 1].isna().all()


def test_a_cox_that_gains_nothing_gives_no_share(unit, result):
    grid = grid_of(unit, result).assign(null_log_partial_likelihood=-5.0)
    assert gain_share(grid).isna().all()


def test_the_share_keeps_the_rows_labels(unit, result):
    grid = grid_of(unit, result)
    shuffled = grid.sample(frac=1, random_state=0)
    np.testing.assert_array_equal(gain_share(shuffled).sort_index(), gain_share(grid))


def test_chosen_settings_carry_the_share(unit, result):
    grid = grid_of(unit, result)
    chosen = choose_settings(grid[grid["repeat"] == 0], EXPERIMENTS["flc-age"]).set_index("method")
    # All settings tie in CI and c-index, so the first, alpha .1, is taken.
    np.testing.assert_allclose(chosen.loc["dro-cox", "gain_share"], 0.1)
    np.testing.assert_allclose(chosen.loc["cox", "gain_share"], 1)
