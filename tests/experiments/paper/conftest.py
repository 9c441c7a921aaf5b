"""Small made-up results in the shape that evaluating a unit gives."""

from functools import cache

import numpy as np
import pytest

from experiments.paper.methods import METHODS
from experiments.paper.unit import STORED_METRICS, Unit, gather


def make_row(part, attribute, setting, **values):
    """A complete row; what is not given is a plausible constant."""
    row = {
        "part": part,
        "attribute": attribute,
        **setting,
        **dict.fromkeys(STORED_METRICS, 0.5),
        "log_partial_likelihood": -6.5,
        "concordance_imparity": 0.02,
        "concordance_imparity_se": 0.01,
        "concordance_imparity_low": 0.001,
        "concordance_imparity_high": 0.04,
        "null_log_partial_likelihood": -7.0,
        "calibration_slope": 1.0,
        "misaligned_brier_score": 0.6,
    }
    return {**row, **values}


@pytest.fixture(scope="session")
def unit():
    """Factory of units of FLC."""

    def make(method="cox", repeat=0, dataset="flc", attributes=("age", "gender"), **changes):
        return Unit(dataset, attributes, METHODS[method], repeat, "f" * 64, **changes)

    return make


@pytest.fixture(scope="session")
def result():
    """Factory of complete results: ``values(part, attribute, setting)`` gives the numbers that matter."""

    def make(unit, values=lambda part, attribute, setting: {}):
        return {
            "rows": [
                make_row(part, attribute, setting, **values(part, attribute, setting))
                for setting in unit.method.settings()
                for attribute in unit.attributes
                for part in ("validation", "test")
            ]
        }

    return make


@pytest.fixture(scope="session")
def random_grid(result):
    """A gathered table of random scores: every method of FLC's tables and ablations, both parts, some NaN."""

    @cache
    def drawn(methods, repeats, seed, attributes, dataset):
        rng = np.random.default_rng(seed)

        def values(part, attribute, setting):
            return {
                "concordance_index": np.round(rng.uniform(0.6, 0.8), 2),
                "dynamic_auc": rng.uniform(0.6, 0.8),
                "log_partial_likelihood": rng.uniform(-6.9, -6.3),
                "individual_disparity": rng.uniform(0, 2),
                "group_disparity": rng.uniform(0, 2),
                "intersectional_disparity": rng.uniform(0, 2),
                "concordance_imparity": np.nan if rng.random() < 0.1 else np.round(rng.uniform(0, 0.03), 3),
                "calibration_slope": rng.uniform(0.5, 2),
            }

        units = [
            Unit(dataset, attributes, METHODS[name], repeat, "f" * 64)
            for repeat in range(repeats)
            for name in methods
        ]
        return gather((unit, result(unit, values)) for unit in units)

    def make(methods, repeats=3, seed=0, attributes=("age", "gender"), dataset="flc"):
        return drawn(tuple(methods), repeats, seed, attributes, dataset).copy()

    return make
