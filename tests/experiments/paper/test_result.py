"""Results are gathered into one table."""

import numpy as np

from experiments.paper.unit import gather


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
