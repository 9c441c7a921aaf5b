"""A unit's key changes with everything its result depends on, and with nothing else."""

import hashlib
import json
from dataclasses import replace

import pytest

from drosurv import __version__
from experiments.paper import Protocol
from experiments.paper.methods import METHODS
from experiments.paper.unit import RESULT_SCHEMA


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


def test_the_key_is_the_digest_of_its_settings_written_down(unit):
    """What stands here was written by another process: nothing in it depends on the order of a set."""
    written = {
        "schema": RESULT_SCHEMA,
        "version": __version__,
        "dataset": "flc",
        "data_fingerprint": "f" * 64,
        "attributes": ["age", "gender"],
        "method": {
            "estimator": "DROCox",
            "network": "linear",
            "parameters": {"ball": "paper"},
            "grid": {"alpha": [0.1, 0.15, 0.2, 0.3, 0.4, 0.5], "lr": [0.01, 0.001, 0.0001]},
            "factors": [1.0],
            "scaler_share": 1.0,
        },
        "repeat": 3,
        "protocol": {
            "as_published": True,
            "test_seed": 7,
            "initial_seed": 1,
            "max_iter": 500,
            "hidden": [24],
            "convention": "table",
            "bootstrap": 200,
        },
    }
    text = json.dumps(written, sort_keys=True, separators=(",", ":"))
    assert unit("dro-cox", 3).key == hashlib.sha256(text.encode()).hexdigest()
