"""Everything finished is written; what is not finished is left out."""

import pandas as pd
import pytest

from experiments.paper import tabulation
from experiments.paper.plan import find_experiments
from experiments.paper.tabulation import tabulate, write_outputs


@pytest.fixture(scope="module")
def grid(random_grid):
    return random_grid(["cox", "dro-cox", "dro-cox-split", "dro-cox-split-one-side"], repeats=2)


@pytest.fixture(scope="module")
def written(grid, tmp_path_factory):
    """Files of every experiment; what a figure looks like is tested with the figure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabulation, "write_figure", lambda figure, path: path.touch())
        return write_outputs(tabulate(grid, find_experiments()), tmp_path_factory.mktemp("outputs") / "out")


def test_tables_comparisons_and_the_figure_are_written_in_every_format(written):
    names = {path.name for path in written}
    tables = [
        *("flc-age-ci", "flc-age-fa", "flc-age-comparison", "flc-gender-ci", "flc-gender-fa"),
        *("split-size-fixed", "split-size-comparison", "sides-fixed", "sides-comparison", "agreement"),
        *("nearest", "authors-setting"),
    ]
    expected = {f"{name}.{suffix}" for name in tables for suffix in ("md", "tex", "csv")}
    assert names == expected | {"alpha.png", "alpha.svg", "alpha.csv"}
    assert {path.name for path in written[0].parent.iterdir()} == names


def test_the_csv_holds_the_unrounded_numbers(written):
    folder = written[0].parent
    table = pd.read_csv(folder / "flc-age-ci.csv").set_index(["method", "metric"])
    shown = (folder / "flc-age-ci.md").read_text(encoding="utf-8")
    mean = table.loc[("dro-cox", "dynamic_auc"), "mean"]
    assert f"{mean:.4f}" in shown
    assert mean != round(mean, 4)


def test_a_choice_on_the_test_set_is_kept_apart_by_name(grid, tmp_path):
    written = write_outputs(tabulate(grid, find_experiments(["flc-age"]), select_on="test"), tmp_path)
    assert len(written) == 3 * 4
    assert all(path.stem.endswith("-diagnostic") for path in written)
    assert all("DIAGNOSTIC" in path.read_text() for path in written if path.suffix == ".md")


def test_nothing_finished_writes_nothing(grid, tmp_path):
    assert write_outputs(tabulate(grid.iloc[:0], find_experiments()), tmp_path / "out") == ()
    assert not (tmp_path / "out").exists()
