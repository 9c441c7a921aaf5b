"""Checks of what fit is given about its rows, and folds of rows that belong together."""

from datetime import date

import numpy as np
import pandas as pd
import polars
import pytest

from drosurv import Surv
from drosurv.patients.draws import draw_folds
from drosurv.patients.observation import Rows, in_pandas

EVENT, TIME = [True, False, True, False], [2.0, 3.0, 5.0, 6.0]


def rows_of(*, strata=None, offset=None, judged=False, **fields):
    return Rows.parse(Surv.from_arrays(EVENT, TIME, **fields), strata=strata, offset=offset, judged=judged)


def test_nothing_given_is_nothing_known():
    found = rows_of()
    assert found.entry is found.stratum is found.clusters is found.offset is found.patient is None


def test_labels_become_numbers_in_sorted_order():
    found = rows_of(strata=pd.Series(["b", "a", "a", "b"], index=[9, 8, 7, 6]), clusters=[7, 7, 3, 3])
    assert found.strata == ("a", "b")
    assert found.stratum.tolist() == [1, 0, 0, 1]
    assert found.clusters.tolist() == [1, 1, 0, 0]
    assert found.take(np.array([0, 2])).stratum.tolist() == [1, 0]


def test_rows_of_one_patient_are_a_cluster():
    found = rows_of(entry=[0, 2, 3, 5], id=["x", "x", "y", "y"])
    assert found.patient.tolist() == found.cluster.tolist() == [0, 0, 1, 1]
    assert found.entry.tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize("kind", [object, "Int64", "Float64"])
def test_numbers_may_be_objects_or_of_a_nullable_type(kind):
    entry = pd.Series([0, 2, 3, 5], dtype=kind)
    assert rows_of(entry=entry).entry.tolist() == [0, 2, 3, 5]


def test_a_stratum_without_events_is_mentioned():
    with pytest.warns(UserWarning, match="no event in stratum late: its patients do not contribute"):
        rows_of(strata=["early", "late", "early", "late"])
    # Pairs of patients as strata are many, and often without an event.
    many = Surv.from_arrays(np.arange(9) == 0, np.arange(9.0))
    with pytest.warns(UserWarning, match="no event in stratum 1, 2, 3, 4, 5 and 3 others: its patients"):
        Rows.parse(many, strata=range(9), judged=False)


def test_rows_of_one_cluster_share_a_fold_and_events_are_spread_evenly():
    rng = np.random.default_rng(0)
    clusters = np.array([f"p{k}" for k in rng.integers(0, 90, 200)])
    event = rng.random(200) < 0.3
    folds = draw_folds(200, 5, np.random.default_rng(1), event, clusters)
    had_event = {name: event[clusters == name].any() for name in np.unique(clusters)}
    counts = np.zeros(5)
    for name, had in had_event.items():
        (own,) = np.unique(folds[clusters == name])
        counts[own] += had
    assert np.ptp(counts) <= 1


def test_rows_that_are_all_alone_are_drawn_as_without_clusters():
    event = np.arange(40) % 3 == 0
    drawn = (
        draw_folds(40, 4, np.random.default_rng(2), event, clusters) for clusters in (None, np.arange(40))
    )
    np.testing.assert_array_equal(*drawn)


def test_columns_of_polars_keep_their_types_levels_and_gaps():
    table = polars.DataFrame(
        {
            "n": polars.Series([1, None, 3]),
            "x": polars.Series([0.5, None, 2.0]),
            "b": polars.Series([True, None, False]),
            "t": polars.Series(["a", None, "b"]),
            "stage": polars.Series(["II", None, "I"], dtype=polars.Enum(["II", "I"])),
            "seen": polars.Series([date(2020, 1, 31), None, date(2021, 2, 1)]),
        }
    )
    found = in_pandas(table)
    np.testing.assert_array_equal(found["n"], [1, np.nan, 3])
    np.testing.assert_array_equal(found["x"], [0.5, np.nan, 2])
    assert found["b"].tolist() == [True, None, False]
    assert found["t"].isna().tolist() == [False, True, False]
    assert found["stage"].cat.categories.tolist() == ["II", "I"]
    assert found["stage"].isna().tolist() == [False, True, False]
    assert found["seen"].dtype.kind == "M"
    assert (found["seen"].iloc[2] - found["seen"].iloc[0]).days == 367
    column = in_pandas(table["t"])
    assert column.name == "t"
    assert column.isna().tolist() == [False, True, False]
