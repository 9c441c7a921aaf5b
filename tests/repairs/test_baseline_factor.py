"""The correction of the baseline: factors by counting, and curves by summing hazards over short steps."""

import numpy as np

from drosurv.patients.target import Surv, parse_target
from drosurv.repairs.periods import repaired_hazard
from drosurv.repairs.repaired_predictions import SHRINKAGE, BaselineFactor

RNG = np.random.default_rng(0)
N = 300
RATES = RNG.uniform(0.5, 2.0, N)
EDGES = np.array([0.0, 0.4, 1.0])


def time_in_intervals(entry, time):
    ends = np.append(EDGES, np.inf)
    return np.clip(np.minimum.outer(time, ends[1:]) - np.maximum.outer(entry, ends[:-1]), 0, None)


def test_factors_are_events_over_expected_ones_in_each_interval():
    time, event, r = RNG.exponential(size=N), RNG.random(N) < 0.7, RNG.normal(0, 0.3, N)
    target = parse_target(Surv.from_arrays(event, time))
    by_interval = (np.exp(r) * RATES)[:, None] * time_in_intervals(np.zeros(N), time)
    found = BaselineFactor.learn(EDGES, by_interval.sum(axis=0), target, np.ones(N))
    for k, (low, high) in enumerate([(0.0, 0.4), (0.4, 1.0), (1.0, np.inf)]):
        events = sum(d for d, t in zip(event, time, strict=True) if low < t <= high)
        expected = sum(
            np.exp(more) * rate * max(min(t, high) - low, 0.0)
            for more, rate, t in zip(r, RATES, time, strict=True)
        )
        np.testing.assert_allclose(found.factors[k], (events + SHRINKAGE) / (expected + SHRINKAGE))


def test_factors_count_hazards_from_entry_on_and_patients_by_weight():
    time, event = RNG.exponential(size=N), RNG.random(N) < 0.7
    entry, weight = time * RNG.random(N), RNG.integers(1, 4, N).astype(float)
    target = parse_target(Surv.from_arrays(event, time))
    by_interval = RATES[:, None] * time_in_intervals(entry, time)
    found = BaselineFactor.learn(EDGES, weight @ by_interval, target, weight)
    for k, (low, high) in enumerate([(0.0, 0.4), (0.4, 1.0), (1.0, np.inf)]):
        events = (weight * event)[(low < time) & (time <= high)].sum()
        at_risk = np.clip(np.minimum(time, high) - np.maximum(entry, low), 0, None)
        expected = (weight * RATES * at_risk).sum()
        np.testing.assert_allclose(found.factors[k], (events + SHRINKAGE) / (expected + SHRINKAGE))


def test_curves_multiply_the_hazard_of_each_interval():
    times = np.array([0.2, 0.4, 0.9, 2.5])
    factors = np.array([0.5, 2.0, 3.0])
    found = repaired_hazard(lambda at: np.outer(RATES[:5], at), times, EDGES, factors)
    step = 1e-3
    middles = np.arange(0, 2.5, step) + step / 2
    rate = np.array([0.5 if at < 0.4 else 2.0 if at < 1.0 else 3.0 for at in middles])
    wanted = np.array([rate[middles < time].sum() * step for time in times])
    np.testing.assert_allclose(found, np.outer(RATES[:5], wanted), rtol=1e-9)
