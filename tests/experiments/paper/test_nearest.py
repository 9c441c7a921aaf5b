"""The setting nearest to a published row, in grids of which it is known."""

import numpy as np
import pytest

from experiments.paper import load_published
from experiments.paper.nearest import false_matches, nearest_settings, nearest_table, published_gradient_table
from experiments.paper.unit import gather

PRINTED_IN_PERCENT = {"concordance_imparity": 0.01}


@pytest.fixture
def published():
    cells = load_published()
    return cells.loc[(cells["experiment"] == "flc-age") & cells["method"].isin(["cox", "dro-cox"])]


@pytest.fixture
def grid(unit, result, published):
    """Cox as published at learning rate .001, one sd off in each of two repeats; DRO-COX ten sds off everywhere."""

    def make(diverged=()):
        rows = {
            method: list(part[["metric", "mean", "sd"]].itertuples(index=False))
            for method, part in published.groupby("method")
        }

        def values(method, repeat):
            def of(part, attribute, setting):
                if (setting["lr"], repeat) in diverged:
                    return {"concordance_index": np.nan}
                here = method == "cox" and setting["lr"] == 0.001 and part == "test" and attribute == "age"
                sds = (-1) ** repeat if here else 10
                return {
                    name: PRINTED_IN_PERCENT.get(name, 1.0) * (mean + sds * sd)
                    for name, mean, sd in rows[method]
                    if name != "average_disparity"
                }

            return of

        units = [unit(method, repeat) for method in ("cox", "dro-cox") for repeat in (0, 1)]
        return gather((one, result(one, values(one.method.name, one.repeat))) for one in units)

    return make


def test_the_setting_that_gives_the_row_on_the_test_set_is_found(grid, published):
    found = nearest_settings(grid(), published)
    cox = found.loc[found["method"] == "cox"]
    assert set(cox["lr"]) == {0.001}
    assert "integrated_brier_score" not in set(cox["metric"])
    numbers = found.drop(columns=["experiment", "method", "trained", "metric"])
    assert set(numbers.dtypes.map(str)) == {"float64"}
    stored = cox["metric"] != "average_disparity"
    np.testing.assert_allclose(cox.loc[stored, "nearest_difference_in_sds"], 0, atol=1e-6)
    printed = published.set_index(["method", "metric"])["mean"]["cox", "concordance_imparity"]
    assert cox.set_index("metric").loc["concordance_imparity", "nearest_mean"] == pytest.approx(printed)


def test_a_setting_that_diverged_in_one_repeat_is_not_judged_by_the_others(grid, published):
    found = nearest_settings(grid(diverged={(0.001, 1)}), published)
    assert 0.001 not in set(found["lr"])
    everywhere = {(lr, 0) for lr in (0.01, 0.001, 0.0001)}
    assert nearest_settings(grid(diverged=everywhere), published).empty


def test_the_table_counts_the_cells_that_agree(grid, published):
    scores = grid()
    by_chance = false_matches(scores, published)
    table = nearest_table(nearest_settings(scores, published), *by_chance)
    shown = table.cells()
    assert shown[0][:4] == ["FLC (age)", "Cox", "lr 0.001", "8 of 8"]
    assert shown[1][1] == "DRO-COX"
    assert shown[1][3] == "0 of 8"
    # Cox's grid against DRO-COX's row, and the other way round: neither gives the other.
    assert by_chance == (0, 2)
    assert "in 0 of 2 pairs" in table.to_markdown()


def test_a_method_that_was_not_run_has_none(grid):
    assert set(nearest_settings(grid(), load_published())["method"]) == {"cox", "dro-cox"}


def test_a_split_row_is_also_held_against_the_published_gradient(unit, result):
    published = load_published()
    published = published.loc[
        (published["experiment"] == "flc-age") & (published["method"] == "dro-cox-split")
    ]
    printed = published.set_index("metric")["mean"]

    def as_printed(part, attribute, setting):
        here = setting == {"alpha": 0.4, "lr": 0.001}
        names = [name for name in printed.index if here and name != "average_disparity"]
        return {name: PRINTED_IN_PERCENT.get(name, 1.0) * printed[name] for name in names}

    units = [unit("dro-cox-split"), unit("dro-cox-split-published")]
    grid = gather([(units[0], result(units[0])), (units[1], result(units[1], as_printed))])
    found = nearest_settings(grid, published)
    assert list(dict.fromkeys(found["trained"])) == ["dro-cox-split", "dro-cox-split-published"]
    assert set(found["method"]) == {"dro-cox-split"}
    (row,) = published_gradient_table(found).cells()
    assert row[:3] == ["FLC (age)", "DRO-COX (SPLIT, as published)", "lr 0.001, alpha 0.4"]
    assert row[3] == f"{printed['concordance_index']:.4f} / {printed['concordance_index']:.4f} (+0.0)"
    assert "[0.10, 4.00]" in row[-2]
    assert row[-1] == f"0.6000 / {printed['integrated_brier_score']:.4f}"
