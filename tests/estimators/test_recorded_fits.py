"""Fits that were recorded with version 0.4, of settings whose meaning did not change since."""

import json
from pathlib import Path
from runpy import run_path

import pytest

RECORDED = Path(__file__).parents[1] / "fixtures" / "fits_of_0_4.json"
SCRIPT = run_path(str(RECORDED.with_suffix(".py")))
draw_as_0_4_did = run_path(str(RECORDED.with_name("draws_of_0_4.py")))["draw_as_0_4_did"]


@pytest.mark.parametrize("name", SCRIPT["MODELS"])
def test_a_fit_is_the_recorded_one(name, monkeypatch):
    draw_as_0_4_did(monkeypatch)
    recorded = {
        fit: numbers
        for fit, numbers in json.loads(RECORDED.read_text()).items()
        if fit.startswith(f"{name};")
    }
    found = dict(SCRIPT["fits"]({name: SCRIPT["MODELS"][name]}))
    assert len(recorded) >= 4
    assert found == {fit: pytest.approx(numbers, rel=1e-9, abs=1e-9) for fit, numbers in recorded.items()}
