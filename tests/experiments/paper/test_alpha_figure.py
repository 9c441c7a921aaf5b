"""Figure 1's curves are those of linear DRO-COX at learning rate .01, with age."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.paper.tabulation import alpha_curves, alpha_figure, save_figure


@pytest.fixture(scope="module")
def grid(random_grid):
    return random_grid(["cox", "dro-cox", "deep-dro-cox"])


@pytest.fixture(scope="module")
def curves(grid):
    return alpha_curves(grid)


@pytest.fixture(scope="module")
def figure(curves):
    return alpha_figure(curves)


def test_there_is_a_point_for_each_alpha_and_metric(curves):
    assert set(curves["dataset"]) == {"flc"}
    assert set(curves["attribute"]) == {"age"}
    assert curves.groupby("metric")["alpha"].agg(list).map(tuple).unique().tolist() == [
        (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
    ]
    assert curves["metric"].unique().tolist() == [
        *("concordance_index", "individual_disparity", "group_disparity", "intersectional_disparity"),
        *("average_disparity", "concordance_imparity", "gain_share"),
    ]


def test_a_point_is_the_mean_over_repeats_on_the_test_set(grid, curves):
    rows = grid[
        (grid["method"] == "dro-cox")
        & (grid["lr"] == 0.01)
        & (grid["alpha"] == 0.3)
        & (grid["part"] == "test")
        & (grid["attribute"] == "age")
    ]
    assert len(rows) == 3
    points = curves[curves["alpha"] == 0.3].set_index("metric")
    assert points.loc["group_disparity", "mean"] == pytest.approx(rows["group_disparity"].mean())
    assert points.loc["concordance_imparity", "mean"] == pytest.approx(
        100 * rows["concordance_imparity"].mean()
    )
    assert points.loc["concordance_imparity", "high"] == pytest.approx(4.0)


def test_the_figure_draws_every_point(curves, figure):
    top, middle, _, bottom = figure.axes
    assert top.get_title() == "FLC (age)"
    assert [line.get_label() for line in middle.lines] == ["F_I", "F_G", "F_∩", "F_A"]
    drawn = top.lines[0].get_ydata()
    expected = curves[curves["metric"] == "concordance_index"].sort_values("alpha")["mean"]
    np.testing.assert_allclose(drawn, expected)
    assert bottom.get_xlabel() == "alpha"


def test_the_band_of_imparity_is_its_bootstrap_interval(figure):
    panel = figure.axes[2]
    assert panel.get_ylabel() == "CI(%) ↓"
    band = panel.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (pytest.approx(0.1), pytest.approx(4.0))


def test_a_figure_is_written_as_png_and_svg_and_the_svg_is_reproducible(tmp_path):
    written = []
    for folder in ("a", "b"):
        axes = Figure().subplots()
        axes.fill_between([0, 1], [0, 1], [1, 2], label="band")
        axes.legend()
        png, svg = save_figure(axes.figure, tmp_path / folder, "alpha")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in svg.read_bytes()[:1000]
        written.append(svg.read_bytes())
    assert written[0] == written[1]
