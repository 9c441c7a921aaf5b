import numpy as np
import pandas as pd
import pytest

from drosurv.tables import SurvivalTable, TargetColumns, read_survival_table


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(40)],
            "days": rng.integers(1, 999, 40),
            "status": rng.choice(["dead", "alive"], 40),
            "age": rng.integers(40, 90, 40),
            "sex": rng.choice(["f", "m"], 40),
        }
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def read(path, **options):
    return read_survival_table(path, time="days", event="status", event_value="dead", **options)


def test_a_table_is_taken_apart(path):
    table = read(path, groups=["sex", "age>65"], drop=["id"])
    frame = pd.read_csv(path)
    assert list(table.X.columns) == ["age", "sex"]
    assert table.y["days"].tolist() == frame["days"].tolist()
    assert table.y["status"].tolist() == (frame["status"] == "dead").tolist()
    assert list(table.sensitive_features.columns) == ["sex", "age>65"]
    assert len(table) == 40


def test_what_is_held_out_and_what_is_kept_are_all_patients_once(path):
    table = read(path)
    kept, away = table.hold_out(0.25, seed=1)
    assert len(away) == 10
    assert sorted([*kept.frame["id"], *away.frame["id"]]) == sorted(table.frame["id"])
    for part in (kept, away):
        again = SurvivalTable.parse(part.frame, TargetColumns("days", "status", "dead"))
        assert (part.y == again.y).all()
        assert abs(part.y["status"].mean() - table.y["status"].mean()) < 0.1
    assert kept.hold_out(0.25, seed=1)[1].frame["id"].tolist() != away.frame["id"].tolist()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_a_share_outside_zero_and_one_is_refused(path, share):
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        read(path).hold_out(share)


def test_too_few_patients_to_hold_out_are_named(path):
    table = read(path)
    two = table.take(np.array([table.y["status"].argmax(), table.y["status"].argmin()]))
    with pytest.raises(ValueError, match=r"2 patients are too few to hold out 0\.25"):
        two.hold_out(0.25)


def test_dropping_an_unknown_column_is_refused(path):
    with pytest.raises(ValueError, match=r"drop column 'idd' is not in the table. Did you mean 'id'"):
        read(path, drop=["idd"])


def test_a_table_without_features_or_events_is_refused(path):
    with pytest.raises(
        ValueError, match="no column to predict from besides 'days', 'status' and those dropped"
    ):
        read(path, drop=["id", "age", "sex"])
    pd.read_csv(path).assign(status=0).to_csv(path, index=False)
    with pytest.raises(ValueError, match="'status' holds no event: every one of the 40 patients is censored"):
        read_survival_table(path, time="days", event="status")
