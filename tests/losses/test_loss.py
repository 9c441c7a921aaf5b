import numpy as np
import pytest

from drosurv.losses.loss import constant_features
from drosurv.patients.target import Target


@pytest.mark.parametrize("n", [30, 5000])
def test_constant_features_are_constant_within_every_set(n):
    rng = np.random.default_rng(0)
    sets = rng.integers(-1, 3, n)
    varies_once = np.zeros(n)
    varies_once[np.flatnonzero(sets == 2)[-1]] = 1.0
    X = np.column_stack([rng.normal(size=n), sets * 0.1, sets == -1, np.full(n, 7.3), varies_once])
    # Patients of no set do not count.
    X[sets == -1, 1] = rng.normal(size=(sets == -1).sum())
    assert constant_features(X, sets).tolist() == [False, True, True, True, False]
    assert constant_features(X).tolist() == [False, False, False, True, False]


def test_patients_at_risk_at_an_event_are_compared_within_their_stratum():
    rng = np.random.default_rng(0)
    n = 60
    time, entry, stratum = rng.integers(1, 9, n).astype(float), np.zeros(n), rng.integers(0, 4, n)
    event = (rng.random(n) < 0.3) & (stratum != 3) & (time > 2) & (time < 7)
    late = time >= 8
    # Some enter when the last event of their stratum happens, which is too late.
    last = np.array([time[event & (stratum == k)].max(initial=0.0) for k in range(4)])
    entry[late] = last[stratum[late]] + rng.choice([-0.5, 0.0, 0.5], late.sum())
    target = Target(event, time, entry, stratum)
    there = (stratum[:, None] == stratum) & event & (entry[:, None] < time) & (time <= time[:, None])
    np.testing.assert_array_equal(target.compared, np.where(there.any(axis=1), stratum, -1))
    assert (Target(event, time).compared == np.where(time >= time[event].min(), 0, -1)).all()
