import numpy as np
import pandas as pd
import pytest

from drosurv.judging.rules import CodedTable
from drosurv.judging.subgroup_sums import Subgroups


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 10, n)
    age[:20] = np.nan
    site = rng.choice(["north", "south", "east"], n)
    return pd.DataFrame(
        {"age": age, "flag": rng.integers(0, 2, n), "site": site, "dose": rng.exponential(size=n)}
    )


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def subgroups(frame):
    return Subgroups(CodedTable.from_table(frame, 5, 20))


def test_sums_equal_those_over_the_patients_of_each_rule(frame, subgroups):
    values = np.random.default_rng(1).normal(size=(len(frame), 2))
    sums = subgroups.sums(values)
    for g in range(len(subgroups)):
        members = subgroups.rule(g).holds(frame)
        np.testing.assert_allclose(sums[g], values[members].sum(axis=0), atol=1e-9)
        np.testing.assert_array_equal(members, subgroups.members(g))


def test_all_pairs_of_conditions_are_there_once(subgroups):
    # age: 4 cuts with 2 sides and missing, 9; flag 2; site 3 levels and their complements, 6; dose 8.
    sizes = [9, 2, 6, 8]
    pairs = sum(a * b for i, a in enumerate(sizes) for b in sizes[i + 1 :])
    intervals = 2 * (4 * 3 // 2)
    assert len(subgroups) == sum(sizes) + intervals + pairs
    assert len({str(subgroups.rule(g)) for g in range(len(subgroups))}) == len(subgroups)


def test_only_the_subgroups_kept_are_summed(frame):
    subgroups = Subgroups(CodedTable.from_table(frame, 5, 20))
    size = subgroups.sums(np.ones((len(frame), 1)))[:, 0]
    rules = [str(subgroups.rule(g)) for g in np.flatnonzero(size >= 100)]
    subgroups.keep(size >= 100)
    assert [str(subgroups.rule(g)) for g in range(len(subgroups))] == rules
    np.testing.assert_allclose(subgroups.sums(np.ones((len(frame), 1)))[:, 0], size[size >= 100])


def test_a_single_column_has_subgroups():
    frame = pd.DataFrame({"x": np.arange(100.0)})
    subgroups = Subgroups(CodedTable.from_table(frame, 10, 20))
    assert len(subgroups) == 18 + 36
    values = np.ones((100, 1))
    for g, total in enumerate(subgroups.sums(values)[:, 0]):
        assert total == subgroups.rule(g).holds(frame).sum()


@pytest.mark.parametrize("d", [60, 61])
def test_of_more_than_sixty_columns_subgroups_have_one(d):
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, size=(80, d)))
    subgroups = Subgroups(CodedTable.from_table(frame.rename(columns="x{}".format), 5, 20))
    assert len(subgroups) == (2 * 60 + 4 * 60 * 59 // 2 if d == 60 else 2 * 61)
    values = np.random.default_rng(1).normal(size=(80, 1))
    last = len(subgroups) - 1
    assert subgroups.sums(values)[last, 0] == pytest.approx(values[subgroups.members(last)].sum())
