"""Mean and sd over repeats, in printed units."""

import numpy as np
import pandas as pd
import pytest

from experiments.paper.plan import EXPERIMENTS
from experiments.paper.selection import choose_settings, over_repeats, summarise


def test_each_cell_is_the_mean_and_sample_sd_of_its_repeats(random_grid):
    chosen = choose_settings(random_grid(["cox", "dro-cox"], repeats=4), EXPERIMENTS["flc-age"])
    summary = summarise(chosen).set_index(["method", "metric"])
    for method in ("cox", "dro-cox"):
        rows = chosen[chosen["method"] == method]
        for metric, scale in (("dynamic_auc", 1), ("average_disparity", 1), ("gain_share", 1)):
            cell = summary.loc[(method, metric)]
            values = scale * rows[metric].to_numpy()
            assert cell["mean"] == pytest.approx(values.mean())
            assert cell["sd"] == pytest.approx(np.sqrt(((values - values.mean()) ** 2).sum() / 3))
            assert cell["repeats"] == 4
            assert np.isnan(cell["low"])


def test_imparity_is_in_percent_with_its_interval():
    rows = pd.DataFrame(
        {
            "concordance_imparity": [0.010, 0.020],
            "concordance_imparity_se": [0.004, 0.006],
            "concordance_imparity_low": [0.0, 0.002],
            "concordance_imparity_high": [0.03, 0.05],
            "concordance_imparity_draws": [[0.01, 0.02], [0.03, 0.06]],
        }
    )
    cell = over_repeats(rows, "concordance_imparity")
    np.testing.assert_allclose(cell.pop("draws"), [2.0, 4.0])
    expected = {"mean": 1.5, "sd": np.sqrt(0.5), "repeats": 2, "se": 0.5, "low": 0.1, "high": 4.0}
    assert cell == pytest.approx(expected)


def test_repeats_without_a_number_are_not_counted():
    cell = over_repeats(pd.DataFrame({"dynamic_auc": [0.7, np.nan, 0.9]}), "dynamic_auc")
    assert (cell["mean"], cell["repeats"]) == (pytest.approx(0.8), 2)


def test_one_repeat_has_no_sd_and_none_has_no_mean():
    assert np.isnan(over_repeats(pd.DataFrame({"dynamic_auc": [0.7]}), "dynamic_auc")["sd"])
    assert np.isnan(over_repeats(pd.DataFrame({"dynamic_auc": [np.nan]}), "dynamic_auc")["mean"])


def test_fallbacks_are_counted(random_grid):
    grid = random_grid(["cox", "dro-cox"], repeats=3)
    grid.loc[(grid["method"] == "dro-cox") & (grid["repeat"] < 2), "concordance_index"] = 0.1
    summary = summarise(choose_settings(grid, EXPERIMENTS["flc-age"]))
    assert summary.groupby("method")["fallbacks"].unique().map(list).to_dict() == {"cox": [0], "dro-cox": [2]}
