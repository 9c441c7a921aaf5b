import numpy as np
import pytest

from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.objective import Blocks, Mean


def test_the_sum_over_blocks_adds_their_worst_cases():
    rng = np.random.default_rng(0)
    losses, mass = rng.exponential(size=(2, 30)), rng.dirichlet(np.ones(30))
    rows = [np.arange(0, 30, 3), np.setdiff1d(np.arange(30), np.arange(0, 30, 3))]
    found = Blocks(ChiSquare(0.3), rows)(losses, mass)
    parts = [ChiSquare(0.3)(losses[:, r].copy(), mass[r] / mass[r].sum()) for r in rows]
    np.testing.assert_allclose(found.value, parts[0].value + parts[1].value, rtol=1e-12)
    np.testing.assert_allclose(found.eta, np.stack([parts[0].eta, parts[1].eta], axis=-1), rtol=1e-12)
    for part, r in zip(parts, rows, strict=True):
        np.testing.assert_allclose(found.weights[:, r], part.weights, atol=1e-14)
        np.testing.assert_allclose(found.weights[:, r].sum(axis=1), 1, rtol=1e-12)


def test_patients_in_no_block_have_no_weight():
    losses, mass = np.arange(6.0)[None, :], np.full(6, 1 / 6)
    found = Blocks(Mean(), [np.array([1, 2])])(losses, mass)
    assert found.value[0] == pytest.approx(1.5)
    assert found.weights[0].tolist() == [0, 0.5, 0.5, 0, 0, 0]


def test_changed_masses_change_the_value():
    losses = np.array([[1.0, 3.0]])
    blocks = Blocks(Mean(), [np.array([0, 1])])
    assert blocks(losses, np.array([0.5, 0.5])).value[0] == 2.0
    assert blocks(losses, np.array([0.25, 0.75])).value[0] == 2.5
