"""The halves of the patients: who is in which, and what cannot be halved."""

import numpy as np
import pytest

from drosurv.errors import ArgumentError
from drosurv.estimators.dro_cox_split import first_half


@pytest.mark.parametrize("n", [4, 17, 1000, 20_000])
@pytest.mark.parametrize("n1", [0.5, 0.3])
def test_halves_are_every_so_many_of_a_permutation_of_numpy(n, n1):
    event = np.arange(n) % 3 == 0
    event[:3] = True
    for seed in (0, 7):
        shuffled = np.random.default_rng(seed).permutation(n)
        ordered = np.concatenate([shuffled[~event[shuffled]], shuffled[event[shuffled]]])
        reached = np.floor(np.arange(n + 1) * n1 + 1e-9)
        expected = np.zeros(n, dtype=bool)
        expected[ordered[reached[1:] > reached[:-1]]] = True
        np.testing.assert_array_equal(first_half(event, n1, seed, both=True), expected)


def test_both_halves_see_the_same_share_of_events():
    event = np.random.default_rng(0).random(5_000) < 0.2
    first = first_half(event, 0.5, 3, both=True)
    assert first.sum() == 2_500
    assert abs(int(event[first].sum()) - int(event[~first].sum())) <= 1


def test_a_half_without_an_event_is_refused_where_it_is_scored():
    event = np.zeros(10, dtype=bool)
    event[0] = True
    assert first_half(event, 0.5, None, both=False)[0]
    with pytest.raises(ArgumentError, match="without any event"):
        first_half(event, 0.5, None, both=True)
