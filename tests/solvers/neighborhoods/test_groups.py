import numpy as np
import pandas as pd
import pytest

from drosurv.solvers.neighborhoods import known_groups


@pytest.mark.parametrize(
    "groups",
    [
        ["f", "m", "f", "m"],
        np.array([2, 5, 2, 5]),
        pd.Series(["f", "m", "f", "m"], dtype="category"),
        pd.Series([True, False, True, False]),
    ],
)
def test_any_labels_give_group_means(groups):
    np.testing.assert_array_equal(known_groups(groups).average(np.array([1.0, 2.0, 3.0, 6.0])), [2, 4, 2, 4])


def test_missing_labels_and_tables_of_labels_are_refused():
    with pytest.raises(ValueError, match="1 missing labels \\(first at row 1\\)"):
        known_groups(pd.Series(["a", None, "b"]))
    with pytest.raises(ValueError, match=r"groups must have one label per row, shape \(1,\), got \(1, 2\)"):
        known_groups([["a", "b"]])
