"""A unit's key changes with everything its result depends on, and with nothing else."""

import subprocess
import sys
from dataclasses import replace

import pytest

from experiments.paper import Protocol
from experiments.paper.methods import METHODS


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "seer"},
        {"attributes": ("age",)},
        {"method": METHODS["deepsurv"]},
        {"method": METHODS["cox-scaled"]},
        {"method": replace(METHODS["cox"], grid=(("lr", (0.01, 0.001)),))},
        {"method": replace(METHODS["cox"], parameters=(("l2", 0.1),))},
        {"repeat": 1},
        {"data_fingerprint": "e" * 64},
        {"protocol": Protocol(max_iter=499)},
        {"protocol": Protocol(test_seed=8)},
        {"protocol": Protocol(initial_seed=2)},
        {"protocol": Protocol(hidden=(24, 24))},
        {"protocol": Protocol(as_published=False)},
        {"protocol": Protocol(bootstrap=100)},
        {"protocol": Protocol(convention="paper")},
    ],
    ids=str,
)
def test_any_setting_that_changes_the_result_changes_the_key(unit, change):
    assert replace(unit(), **change).key != unit().key


@pytest.mark.parametrize("name", ["RESULT_SCHEMA", "__version__"])
def test_a_new_schema_or_version_changes_the_key(unit, monkeypatch, name):
    before = unit().key
    monkeypatch.setattr("experiments.paper.unit." + name, "another")
    assert unit().key != before


def test_labels_do_not_change_the_key(unit):
    renamed = replace(METHODS["cox"], name="plain", label="Plain", latex="Plain")
    assert replace(unit(), method=renamed).key == unit().key


def test_the_key_is_the_same_in_another_process(unit):
    script = (
        "from experiments.paper.methods import METHODS; from experiments.paper.unit import Unit;"
        "print(Unit('flc', ('age', 'gender'), METHODS['dro-cox'], 3, 'f' * 64).key)"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == unit("dro-cox", 3).key
