import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from drosurv.metrics.inference import holm, widening


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_what_its_steps_reject(p_values, significant):
    # The definition: from the smallest on, reject while p <= significant / (number of those left).
    rejected = set()
    left = sorted(range(len(p_values)), key=lambda place: p_values[place])
    while left and p_values[left[0]] * len(left) <= significant:
        rejected.add(left.pop(0))
    found = holm(p_values)
    assert {place for place, p in enumerate(found) if p <= significant} == rejected
    assert all(p <= adjusted <= 1 for p, adjusted in zip(p_values, found, strict=True))


def test_what_was_not_tested_stays_so_and_counts_for_nothing():
    first, second = holm([math.nan, 0.02])
    assert math.isnan(first)
    assert second == 0.02
    assert holm([]) == []


@pytest.mark.parametrize(("level", "looks"), [(0.95, 1), (0.95, 30), (0.8, 4)])
def test_widened_intervals_hold_together(level, looks):
    errors = np.random.default_rng(0).normal(size=(20_000, looks))
    reach = stats.norm.ppf((1 + level) / 2) * widening(level, looks)
    together = (abs(errors) <= reach).all(axis=1).mean()
    assert level - 0.01 <= together <= level + 0.02
