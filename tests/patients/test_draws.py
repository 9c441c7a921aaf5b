"""Folds and halves: how they are drawn, and that they do not depend on the order of the rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from drosurv.errors import ArgumentError
from drosurv.patients.draws import draw_folds, first_half, order_by_content, row_order
from drosurv.patients.target import Target


def patients(n=200, seed=0, tied=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n).astype(float) if tied else rng.exponential(size=n)
    X = np.column_stack([rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, 3, n)])
    return Target(rng.random(n) < 0.5, time), X


def as_table(X):
    return pd.DataFrame(
        {
            "old": X[:, 0] == 1,
            "lab": X[:, 1],
            "stage": pd.Categorical(np.array(["a", "b", "c"])[X[:, 2].astype(int)]),
            "text": np.array(["x", None, "y"], dtype=object)[X[:, 2].astype(int)],
        }
    )


FORMS = {
    "array": lambda X: X,
    "columns": np.asfortranarray,
    "single precision": lambda X: X.astype(np.float32),
    "table": as_table,
    "lists": lambda X: X.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_permuted_rows_are_put_into_the_same_order(form):
    target, X = patients()
    first = row_order(target, FORMS[form](X))
    moved = np.random.default_rng(1).permutation(len(X))
    second = moved[row_order(target.take(moved), FORMS[form](X[moved]))]
    assert sorted(first) == list(range(len(X)))
    assert (np.diff(target.time[first]) <= 0).all()
    np.testing.assert_array_equal(X[first], X[second])
    np.testing.assert_array_equal(target.event[first], target.event[second])


def test_rounding_errors_of_standardised_columns_do_not_change_the_order():
    target, X = patients()
    shift, scale = X.mean(axis=0), X.std(axis=0)
    first = row_order(target, (X - shift) / scale)
    np.testing.assert_array_equal(first, row_order(target, (X - shift * (1 + 2e-16)) / (scale * (1 - 2e-16))))


def test_times_that_differ_decide_alone():
    target, X = patients(tied=False)
    np.testing.assert_array_equal(row_order(target, X), np.argsort(-target.time))


def test_neither_units_nor_constant_columns_change_the_order():
    target, X = patients()
    other = np.column_stack([np.full(len(X), 7.0), X * [0.1, 1e6, 3.0] + 5.0])
    np.testing.assert_array_equal(row_order(target, X), row_order(target, other))


def test_the_clock_of_a_stratum_does_not_change_the_order():
    target, X = patients()
    stratum = np.arange(len(X)) % 2
    whole = replace(target, stratum=stratum)
    other = replace(whole, time=np.where(stratum == 1, 365.25 * target.time, target.time))
    np.testing.assert_array_equal(row_order(whole, X), row_order(other, X))


@pytest.mark.parametrize("clustered", [False, True])
def test_folds_of_permuted_rows_are_the_same(clustered):
    target, X = patients()
    # Two halves of the rows as clusters of three; the labels are permuted with the rows.
    clusters = np.arange(len(X)) // 3 if clustered else None

    def folds(rows):
        labels = None if clusters is None else clusters[rows]
        part = target.take(rows)
        order = row_order(part, X[rows], labels)
        return draw_folds(len(rows), 5, np.random.default_rng(3), part.event, labels, order=order)

    moved = np.random.default_rng(4).permutation(len(X))
    np.testing.assert_array_equal(folds(np.arange(len(X)))[moved], folds(moved))


def coded(n=60):
    """Return tied numbers, and codes of three columns in clusters, of which some rows are copies of each other."""
    rng = np.random.default_rng(6)
    return rng.integers(0, 3, n) / 10, rng.integers(0, 2, (n, 3)), rng.integers(0, 8, n)


def test_the_order_by_content_is_that_of_values_and_puts_copies_side_by_side():
    value, codes, clusters = coded()
    order = order_by_content([value * (1 + 1e-15 * clusters)], codes)
    assert (np.diff(value[order]) >= 0).all()
    rows = np.column_stack([value, codes])
    changes = (np.diff(rows[order], axis=0) != 0).any(axis=1).sum()
    assert changes == len(np.unique(rows, axis=0)) - 1


@pytest.mark.parametrize("extreme", [np.inf, -np.inf, np.nan, 1e308])
def test_the_order_by_content_takes_any_number(extreme):
    order = order_by_content([np.array([extreme, 1.0, extreme, 2.0])], np.zeros((4, 0)))
    assert order.tolist() == ([0, 2, 1, 3] if extreme < 0 else [1, 3, 0, 2])


def test_the_order_by_content_does_not_depend_on_names_or_the_order_of_rows_and_columns():
    value, codes, clusters = coded()
    moved = np.random.default_rng(7).permutation(len(value))
    renamed = np.array([4, 1, 7, 0, 6, 2, 5, 3])[clusters]
    first = order_by_content([value], codes, clusters)
    second = moved[order_by_content([value[moved]], 5 - codes[moved][:, [2, 0, 1]], renamed[moved])]
    np.testing.assert_array_equal(
        np.column_stack([value, codes])[first], np.column_stack([value, codes])[second]
    )
    # Clusters are the same, numbered in this order.
    numbered = [
        np.unique(clusters[order], return_index=True)[1][clusters[order]] for order in (first, second)
    ]
    np.testing.assert_array_equal(*numbered)


def test_all_draws_are_equally_likely():
    """Of five rows in two folds three have an event: the second fold has one event and one other row, in 6 ways."""
    event = np.array([True, False, True, True, False])
    rng = np.random.default_rng(5)
    draws = [tuple(draw_folds(5, 2, rng, event)) for _ in range(6000)]
    found, counts = np.unique(draws, axis=0, return_counts=True)
    assert len(found) == 6
    assert (abs(counts - 1000) < 5 * np.sqrt(1000 * 5 / 6)).all()
    assert {tuple(np.bincount(row[event], minlength=2)) for row in found} == {(2, 1)}


@pytest.mark.parametrize("n", [4, 17, 1000])
@pytest.mark.parametrize("n1", [0.5, 0.3, 0.73])
def test_a_half_has_its_share_of_patients_and_events(n, n1):
    event = np.arange(n) % 3 == 0
    event[:3] = True
    first = first_half(event, n1, 0, both=False)
    assert first.sum() == np.floor(n * n1 + 1e-9)
    assert abs(first[event].sum() - n1 * event.sum()) <= 1
    drawn = [first_half(event, n1, seed, both=False) for seed in range(400)]
    assert abs(np.mean(drawn, axis=0) - first.mean()).max() < 0.5 * (n < 20) + 0.12


def test_without_a_seed_the_first_half_is_the_first_rows_that_were_given():
    event = np.array([True, True, False, True, True])
    position = np.array([4, 0, 2, 1, 3])
    np.testing.assert_array_equal(
        first_half(event, 0.4, None, both=True, position=position), [False, True, False, True, False]
    )


def test_a_half_without_an_event_is_refused_where_it_is_scored():
    event = np.zeros(10, dtype=bool)
    event[0] = True
    assert first_half(event, 0.5, None, both=False)[0]
    with pytest.raises(ArgumentError, match="without events"):
        first_half(event, 0.5, None, both=True)
