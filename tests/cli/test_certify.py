import re
from itertools import pairwise

import pandas as pd
import pytest


@pytest.fixture
def held_out(fit_once, tmp_path):
    """A model and the patients kept away from it."""
    split = ("--hold-out", "{made}/test.csv", "--hold-out-share", "0.5")
    return fit_once(tmp_path, "m", "--model", "dro-cox", "--alpha", "0.5", *split), tmp_path / "test.csv"


def test_the_guarantee_falls_with_the_size_of_the_group_and_answers_the_tolerance(
    drosurv, held_out, tmp_path
):
    horizon = float(pd.read_csv(held_out[1])["days"].median())
    found = drosurv.json("certify", *held_out, "--horizon", horizon, "--tolerance", "0.9")
    guarantee = found["curves"]["guarantee"]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(guarantee))
    within = [alpha for alpha, bound in zip(found["curves"]["alpha"], guarantee, strict=True) if bound <= 0.9]
    assert found["smallest_alpha"] <= min(within)


def test_curves_and_picture_are_written(drosurv, held_out, tmp_path):
    curves, picture = tmp_path / "curves.csv", tmp_path / "curves.png"
    horizon = float(pd.read_csv(held_out[1])["days"].median())
    shown = drosurv.ok(
        "certify", *held_out, "--horizon", horizon, "--tolerance", 0.9, "-o", curves, "--plot", picture
    )
    assert "guarantee" in shown.output
    # Shares are written in one way.
    assert not re.search(r"\d%|confidence 0\.", shown.output)
    assert {"alpha", "estimate", "guarantee"} <= set(pd.read_csv(curves).columns)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("which", [0, 1])
def test_no_input_is_overwritten(drosurv, held_out, which):
    before = held_out[which].read_bytes()
    line = drosurv.fails("certify", *held_out, "--horizon", "100", "-o", held_out[which])
    assert "is an input, which would be overwritten" in line
    assert held_out[which].read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--horizon", "-1"], "horizon must be a time above 0"),
        (["--horizon", "1e9"], "horizon"),
        (["--horizon", "100", "--confidence", "2"], "confidence must lie in"),
        (["--horizon", "100", "--plot", "curves"], "must end in .png"),
        (["--horizon", "100", "--time", "dyas"], "Did you mean 'days'?"),
    ],
)
def test_bad_input_is_one_line(drosurv, held_out, options, words):
    assert words in drosurv.fails("certify", *held_out, *options)
