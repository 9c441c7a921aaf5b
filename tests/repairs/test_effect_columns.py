"""Columns that effects are of: held, centred and scaled as the method says, and known patients' own at prediction."""

import numpy as np
import pandas as pd
import pytest

from drosurv.repairs.effect_columns import RISK, EffectColumns
from drosurv.tables import TableEncoder

RNG = np.random.default_rng(0)
N = 400
TABLE = pd.DataFrame(
    {
        "skewed": RNG.exponential(size=N) ** 3,
        "flag": RNG.random(N) < 0.1,
        "constant": 1.0,
        "stage": RNG.choice(["I", "II", "III", "rare"], N, p=[0.5, 0.3, 0.19, 0.01]),
    }
).astype({"flag": float})
RISKS = RNG.normal(size=N)


def scaled(values):
    """Held at the 1 and 99 % quantiles, centred, over max(sd, range / 5), two values over range / 2."""
    low, high = np.quantile(values, [0.01, 0.99])
    held = np.array([min(max(value, low), high) for value in values])
    centred = held - held.mean()
    spread = held.max() - held.min()
    scale = spread / 2 if len(set(values)) == 2 else max(np.sqrt((centred**2).mean()), spread / 5)
    return np.clip(centred / scale, -4, 4)


def test_columns_are_those_of_the_definition():
    columns = EffectColumns.learn(TABLE, RISKS)
    labels = [column.label for column in columns.columns]
    # The most frequent category is what others are compared with; a rare one and a constant have no effect.
    assert labels == [RISK, "skewed", "flag", "stage = II", "stage = III"]
    flags = [(TABLE["stage"] == level).to_numpy(dtype=float) for level in ("II", "III")]
    wanted = [np.ones(N), *map(scaled, [RISKS, TABLE["skewed"], TABLE["flag"], *flags])]
    np.testing.assert_allclose(columns.of(TABLE, RISKS), np.column_stack(wanted), atol=1e-12)


def test_new_patients_are_scaled_as_the_old_ones_and_what_is_not_known_of_them_is_average():
    columns = EffectColumns.learn(TABLE, RISKS)
    known = columns.of(TABLE, RISKS)
    new = TABLE.iloc[[0, 1]].copy()
    new["stage"] = ["never seen", None]
    new["skewed"] = [1e9, np.nan]
    found = columns.of(new, RISKS[:2])
    # A number beyond all others counts as the largest, a new category as none of the others.
    assert found[0, 2] == known[:, 2].max()
    others = known[(TABLE["stage"] == "I").to_numpy()][0, 4:]
    np.testing.assert_allclose(found[0, 4:], others)
    assert found[1, [2, 4, 5]] == pytest.approx(0.0)


def test_of_equally_frequent_categories_the_first_by_name_is_compared_with_as_in_the_table_encoder():
    table = pd.DataFrame({"sex": ["m", "f"] * 30})
    labels = [column.label for column in EffectColumns.learn(table, np.arange(60.0)).columns]
    assert labels == [RISK, "sex = m"]
    assert TableEncoder().fit(table).get_feature_names_out().tolist() == ["sex=m"]
