"""Columns in different units are told with their rows, and columns of one unit are not."""

import numpy as np
import pandas as pd
import pytest

from drosurv.tables.units import mixed_units, units_of_time

RNG = np.random.default_rng(0)
N = 300


def told(**columns):
    frame = pd.DataFrame({"time": RNG.exponential(900, N), **columns})
    found = [
        *units_of_time(frame, list(columns), "time"),
        *(w for name in columns for w in mixed_units(frame[name])),
    ]
    return [str(warning) for warning in found]


def with_few(values, few, at=(7, 20)):
    changed = np.array(values, dtype=float)
    changed[list(at)] = few
    return changed


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        (
            {"unit": np.where(np.arange(N) % 7 == 3, "months", "days")},
            ["'days' in 257 rows", "'months' in 43 rows", "row 4"],
        ),
        (
            {"Einheit": np.where(np.arange(N) % 7 == 3, "Monate", "Tage")},
            ["'Tage' in 257 rows", "'Monate' in 43 rows", "row 4"],
        ),
        ({"unit": np.where(np.arange(N) % 7 == 3, "m", "d")}, ["'d' in 257 rows", "'m' in 43 rows", "row 4"]),
        (
            {"time_unit": np.where(np.arange(N) % 7 == 3, 2, 1)},
            ["'1' in 257 rows", "'2' in 43 rows", "row 4"],
        ),
        (
            {"Alter (Jahre)": with_few(RNG.integers(18, 95, N), 1056)},
            ["2 numbers above 120, up to 1056 (first: row 8)"],
        ),
        (
            {"age": with_few(RNG.integers(18, 95, N), 1056)},
            ["2 numbers above 120, up to 1056 (first: row 8)"],
        ),
        ({"age": with_few(RNG.integers(0, 95, N), 133)}, ["2 numbers above 120, up to 133 (first: row 8)"]),
        (
            {"height": with_few(RNG.uniform(150, 198, N), [1.62, 1.81])},
            ["2 numbers from 1.62 to 1.81", "row 8"],
        ),
        ({"height": with_few(RNG.uniform(1.5, 1.98, N), [162, 181])}, ["and 2 from 162 to 181", "row 8"]),
    ],
)
def test_numbers_in_different_units_are_told_with_their_rows(columns, parts):
    (text,) = told(**columns)
    assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    "columns",
    [
        {"crp": np.exp(RNG.normal(1, 1.5, N))},
        {"age": RNG.integers(0, 95, N)},
        {"age": RNG.integers(200, 1200, N)},
        {"age_months": RNG.integers(0, 180, N)},
        {"ageMonths": RNG.integers(0, 180, N)},
        {"age_mo": RNG.integers(0, 180, N)},
        {"Alter (Monate)": RNG.integers(0, 180, N)},
        {"nodes": RNG.poisson(3, N)},
        {"weight": RNG.normal(75, 15, N)},
        {"dose": RNG.choice([5.0, 500.0], N)},
        {"change": RNG.normal(0, 1, N)},
        {"platelets": RNG.lognormal(5.4, 0.6, N)},
        {"stage": RNG.choice(["d", "e"], N)},
        {"unit": ["days"] * N},
        {"outlier": with_few(RNG.uniform(20, 40, N), 4000, at=[7])},
        {"zero": with_few(RNG.uniform(20, 40, N), 0.01, at=[7])},
        {"code": with_few(RNG.uniform(20, 40, N), 4000)},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_columns_of_one_unit_are_not_told(columns):
    assert told(**columns) == []
