import numpy as np
import pytest

from drosurv.solvers.neighborhoods import chosen_columns, subgroup_columns

X = np.array([[1.0, 2.0, 3.0], [4.0, 2.0, 5.0]])
NAMES = ["age", "site", "dose"]


def test_columns_are_chosen_by_name_or_position_and_constants_dropped():
    np.testing.assert_array_equal(subgroup_columns(X), X[:, [0, 2]])
    np.testing.assert_array_equal(subgroup_columns(X, ["dose", "site"], NAMES), X[:, [2]])
    np.testing.assert_array_equal(subgroup_columns(X, [0, -1]), X[:, [0, 2]])


def test_chosen_columns_keep_their_places():
    np.testing.assert_array_equal(chosen_columns(X), X)
    np.testing.assert_array_equal(chosen_columns(X, ["dose", "site"], NAMES), X[:, [2, 1]])


@pytest.mark.parametrize(
    ("features", "names", "message"),
    [
        (["weight"], NAMES, "'weight', which is not in X; it has \\['age', 'site', 'dose'\\]"),
        (["age"], None, "no column names"),
        ([3], None, "position 3, but X has 3 columns"),
        (["site"], NAMES, "no column that varies"),
        ([], NAMES, "no column that varies"),
        ("age", NAMES, "write \\['age'\\]"),
        (1, NAMES, "write \\[1\\]"),
        ([1.0], NAMES, "names or positions of columns, got 1.0"),
        ([None], NAMES, "names or positions of columns, got None"),
        ([True, False, True], NAMES, "names or positions of columns, got True"),
    ],
)
def test_columns_that_define_no_group_are_refused(features, names, message):
    with pytest.raises(ValueError, match=message):
        subgroup_columns(X, features, names)
