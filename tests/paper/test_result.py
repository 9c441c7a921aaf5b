"""A result is checked row by row before it is stored, and gathered into one table."""

import numpy as np
import pytest

from drosurv.paper import check_result, gather


def test_a_complete_result_passes(unit, result):
    check_result(unit("cox-keya-group"), result(unit("cox-keya-group")))


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: None, "a list under 'rows', got NoneType"),
        (lambda rows: rows[:-1], "12 in all; got 11, with 1 missing and 0 foreign"),
        (lambda rows: [*rows, rows[0]], "got 13, with 0 missing"),
        (lambda rows: [{**rows[0], "lr": 0.02}, *rows[1:]], "1 missing and 1 foreign"),
        (lambda rows: [{**rows[0], "attribute": "race"}, *rows[1:]], "1 missing and 1 foreign"),
        (lambda rows: [without(rows[0], "dynamic_auc"), *rows[1:]], "no 'dynamic_auc'"),
        (
            lambda rows: [without(rows[0], "concordance_imparity_se"), *rows[1:]],
            "no 'concordance_imparity_se'",
        ),
    ],
)
def test_an_incomplete_result_is_refused(unit, result, spoil, message):
    rows = result(unit())["rows"]
    with pytest.raises(ValueError, match=message):
        check_result(unit(), {"rows": spoil(rows)})


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({"method": "dro-cox"}, 18 * 2 * 2),
        ({"dataset": "support", "attributes": ("age", "gender", "race")}, 3 * 3 * 2),
    ],
)
def test_rows_count_grid_points_attributes_and_parts(unit, asked, rows):
    with pytest.raises(ValueError, match=f" {rows} in all; got 0"):
        check_result(unit(**asked), {"rows": []})


def test_gathered_rows_know_their_unit_and_grid_point(unit, result):
    units = [unit("cox", 0), unit("dro-cox", 1)]
    table = gather((one, result(one)) for one in units)
    assert len(table) == (3 + 18) * 2 * 2
    assert table.groupby("method")["candidate"].nunique().to_dict() == {"cox": 3, "dro-cox": 18}
    dro = table.loc[table["method"] == "dro-cox"]
    settings = list(units[1].method.settings())
    for row in dro.to_dict("records"):
        assert settings[row["candidate"]] == {"alpha": row["alpha"], "lr": row["lr"]}
    assert table.loc[table["method"] == "cox", "alpha"].isna().all()


def test_average_disparity_is_the_mean_of_three_and_unknown_if_one_is(unit, result):
    def values(part, attribute, setting):
        group = None if setting["lr"] == 0.01 else 0.6
        return {"individual_disparity": 0.3, "group_disparity": group, "intersectional_disparity": 1.2}

    table = gather([(unit(), result(unit(), values))])
    known = table["lr"] != 0.01
    np.testing.assert_allclose(table.loc[known, "average_disparity"], 0.7)
    assert table.loc[~known, "average_disparity"].isna().all()


def test_nothing_gathers_to_an_empty_table_with_the_same_columns(unit, result):
    assert gather([]).columns.tolist() == gather([(unit(), result(unit()))]).columns.tolist()
