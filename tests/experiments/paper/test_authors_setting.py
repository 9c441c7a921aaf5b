"""The settings of the authors' README: CI is compared on the same draws, and cells in published standard deviations."""

import numpy as np
import pandas as pd
import pytest

from experiments.paper import authors_setting
from experiments.paper.comparison import load_published
from experiments.paper.unit import DRAWS


def rows(difference):
    """Two repeats of plain and robust models whose CIs differ by the same number in every draw."""
    noise = np.random.default_rng(0).normal(scale=0.05, size=200)
    found = []
    for repeat in range(2):
        for method, level in (("cox", 0.02), ("dro-cox", 0.02 + difference)):
            metrics = dict.fromkeys(authors_setting.SHOWN, level)
            found.append(
                {
                    "dataset": "flc",
                    "method": method,
                    "repeat": repeat,
                    "attribute": "age",
                    **metrics,
                    DRAWS: (level + noise).tolist(),
                }
            )
    return pd.DataFrame(found)


@pytest.mark.parametrize(("difference", "said"), [(-0.01, "lower"), (0.01, "higher")])
def test_a_difference_smaller_than_the_spread_of_each_is_seen_when_draws_are_paired(difference, said):
    line = authors_setting.paired(rows(difference)).splitlines()[2]
    shown = f"{100 * difference:+.2f}"
    assert f"{shown} [{shown}, {shown}]" in line
    assert line.endswith(f"| {said} |")


def test_cells_are_shown_in_published_standard_deviations():
    published = load_published().set_index(["experiment", "method", "metric"])
    mean, sd = published.loc[("flc-age", "dro-cox", "concordance_index"), ["mean", "sd"]]
    found = rows(0.0)
    found["concordance_index"] = mean + 3 * sd
    line = authors_setting.beside_published(found).splitlines()[2]
    assert f"{mean + 3 * sd:.4f} / {mean:.4f} (+3.0)" in line
