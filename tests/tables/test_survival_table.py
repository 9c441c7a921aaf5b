import warnings

import numpy as np
import pandas as pd
import pytest

from drosurv.errors import ArgumentWarning
from drosurv.patients.observation import Rows
from drosurv.report.cross_fit import fold_parts
from drosurv.tables import SurvivalTable, read_survival_table
from drosurv.tables.reading import TableNote
from drosurv.tables.target_columns import TargetColumns
from drosurv.tables.values import label
from drosurv.workflows.row_hashes import patients_not_in

pytestmark = pytest.mark.filterwarnings("ignore:column 'id' names patients")


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


def one_of_each(table):
    """A patient with the event and one without."""
    return table.take(np.unique(table.y["event"], return_index=True)[1])


def test_a_table_is_taken_apart(path):
    table = read(path, groups=["sex", "age>65"], drop=["id"])
    frame = pd.read_csv(path)
    assert list(table.X.columns) == ["age", "sex"]
    assert table.y["time"].tolist() == frame["days"].tolist()
    assert table.y["event"].tolist() == (frame["status"] == "dead").tolist()
    assert list(table.sensitive_features.columns) == ["sex", "age>65"]
    assert len(table) == 40


@pytest.mark.parametrize(
    ("early", "late", "starts"),
    [
        ("2021-03-01", "2094-05-01", "2020-01-02"),
        ("01.03.2021", "01.05.2094", "02.01.2020"),
        (20210301, 20940501, 20200102),
        (202103, 209405, 202001),
        (pd.Timestamp("2021-03-01"), pd.Timestamp("2094-05-01"), pd.Timestamp("2020-01-02")),
    ],
)
def test_dates_after_today_are_a_problem_of_the_table(early, late, starts):
    frame = pd.DataFrame(
        {
            "from": [starts] * 4,
            "to": [early, late, early, late],
            "died": [1, 0, 1, 0],
            "age": [50, 61, 72, 83],
        },
        index=[0, 5, 6, 7],
    )
    columns = TargetColumns(None, "died", start="from", end="to")
    (told,) = (str(one) for one in SurvivalTable.parse(frame, columns).problems() if "today" in str(one))
    held = repr(late) if isinstance(late, str) else label(late)
    assert told == f"end column 'to' holds {held} (row 6), which is after today (2 such rows): correct it."
    table = SurvivalTable.parse(frame.iloc[[0, 2]], columns)
    assert not any("today" in str(one) for one in table.problems())


def test_a_column_that_names_patients_is_no_feature(path):
    with pytest.warns(TableNote, match=r"column 'id' names patients and is no feature\."):
        table = read(path)
    assert list(table.X.columns) == ["age", "sex"]
    # What is asked for is done.
    assert "id" in read(path, features=["id", "age"]).X
    twice = pd.read_csv(path)
    twice["id"] = np.repeat(twice["id"][:20], 2).to_numpy()
    twice.to_csv(path, index=False)
    with (
        pytest.warns(TableNote, match="column 'id' names 20 patients in 40 rows, and was taken as id"),
        pytest.warns(ArgumentWarning, match="that all count from time 0"),
    ):
        table = read(path)
    assert (table.n_patients, table.size) == (20, "40 rows of 20 patients")
    assert list(table.X.columns) == ["age", "sex"]
    assert read(path, drop=["id"]).n_patients == 40


def test_what_is_held_out_and_what_is_kept_are_all_patients_once(path):
    table = read(path)
    kept, away = table.hold_out(0.25, seed=1)
    assert len(away) == 10
    assert sorted([*kept.frame["id"], *away.frame["id"]]) == sorted(table.frame["id"])
    for part in (kept, away):
        again = SurvivalTable.parse(part.frame, TargetColumns("days", "status", "dead"))
        assert (part.y == again.y).all()
        assert abs(part.y["event"].mean() - table.y["event"].mean()) < 0.1
    assert kept.hold_out(0.25, seed=1)[1].frame["id"].tolist() != away.frame["id"].tolist()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        *(
            (lambda path, share=share: read(path).hold_out(share), "share must lie between 0 and 1")
            for share in (0, 1, -0.1)
        ),
        (lambda path: one_of_each(read(path)).hold_out(0.25), r"2 patients are too few to hold out 0\.25"),
        (
            lambda path: read(path, numeric=["sex"]),
            r"numeric column 'sex' holds 'm' in 22 rows, 'f' in 18 rows \(first: row 1\), which are no numbers",
        ),
        (lambda path: read(path, drop=["idd"]), r"drop column 'idd' is not in the table. Did you mean 'id'"),
        (
            lambda path: read(path, drop=["id", "age", "sex"]),
            "no features: besides time and event, column 'id' is dropped, column 'age' is dropped",
        ),
    ],
)
def test_what_cannot_be_read_or_held_out_is_refused(path, use, message):
    with pytest.raises(ValueError, match=message):
        use(path)


def test_a_table_without_events_is_refused(path):
    pd.read_csv(path).assign(status=0).to_csv(path, index=False)
    with pytest.raises(ValueError, match="'status' holds no event: every one of the 40 patients is censored"):
        read_survival_table(path, time="days", event="status")


def repeated(n=120, copies=30):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "who": [f"p{k}" for k in range(n)],
            "days": rng.exponential(50, n).round(2) + 1,
            "status": rng.integers(0, 2, n),
            "age": rng.normal(60, 5, n),
        }
    )
    return pd.concat([rows, rows.iloc[:copies]]).sample(frac=1, random_state=1).reset_index(drop=True)


def test_copies_of_a_row_never_straddle_a_hold_out():
    table = SurvivalTable.parse(repeated(), TargetColumns("days", "status"))
    for seed in range(5):
        kept, away = table.hold_out(0.3, seed)
        assert set(kept.frame["who"]).isdisjoint(away.frame["who"])
        assert len(kept) + len(away) == len(table)
    assert len(np.unique(table.together)) == 120
    assert table.ids is None


def test_rows_with_the_same_id_stay_together_in_hold_outs_and_folds():
    frame = repeated()
    frame["age"] = np.random.default_rng(2).normal(60, 5, len(frame))
    frame["days"] += np.arange(len(frame)) / 1000
    table = SurvivalTable.parse(frame, TargetColumns("days", "status"), id="who")
    assert list(table.X.columns) == ["age"]
    assert len(np.unique(table.patients)) == 120
    folds = fold_parts(table.event, 4, 0, table.patients)
    parts = [table.hold_out(0.25, 1), *((table.take(a), table.take(b)) for a, b in folds)]
    for kept, away in parts:
        assert set(kept.frame["who"]).isdisjoint(away.frame["who"])
    assert sorted(row for _, away in folds for row in away) == list(range(len(table)))


def test_clusters_stay_together_and_their_patients_are_counted():
    frame = repeated(copies=0).assign(litter=lambda rows: rows.index // 3)
    table = SurvivalTable.parse(frame, TargetColumns("days", "status"), id="who", clusters="litter")
    assert list(table.X.columns) == ["age"]
    assert table.size == "120 patients in 40 clusters (litter)"
    folds = fold_parts(table.event, 4, 0, table.together)
    for kept, away in [table.hold_out(0.25, 1), *((table.take(a), table.take(b)) for a, b in folds)]:
        assert set(kept.frame["litter"]).isdisjoint(away.frame["litter"])
    assert table.columns_of_rows == {"clusters": "litter"}
    assert table.judged_y.dtype.names == ("event", "time", "clusters")
    assert Rows.parse(table.judged_y).clusters_name == "litter"


def test_a_hold_out_takes_whole_hospitals_of_which_one_has_no_event():
    frame = repeated(copies=0).assign(hospital=lambda rows: rows.index % 8)
    frame.loc[frame["hospital"] == 3, "status"] = 0
    table = SurvivalTable.parse(frame, TargetColumns("days", "status"), id="who", clusters="hospital")
    kept, away = table.hold_out(0.25, 0)
    assert (kept.frame["hospital"].nunique(), away.frame["hospital"].nunique()) == (6, 2)


def test_patients_with_ids_of_their_own_are_not_one_patient_because_all_else_is_the_same():
    frame = repeated()[["days", "status", "age"]]
    for who in (np.arange(len(frame)), [f"p{k}" for k in range(len(frame))]):
        table = SurvivalTable.parse(frame.assign(who=who), TargetColumns("days", "status"), id="who")
        assert len(np.unique(table.together)) == len(table)
        assert table.ids is None


def test_a_row_without_id_is_a_patient_of_its_own():
    frame = repeated(copies=0)
    frame.loc[:3, "who"] = None
    assert (
        len(np.unique(SurvivalTable.parse(frame, TargetColumns("days", "status"), id="who").patients)) == 120
    )


def test_rows_without_a_target_are_left_out_on_request():
    frame = repeated(copies=0)
    frame.loc[2, "days"] = np.nan
    frame.loc[5, "status"] = np.nan
    with pytest.raises(
        ValueError, match=r"time column 'days' is empty in 1 row .* or pass drop_missing_target"
    ):
        SurvivalTable.parse(frame, TargetColumns("days", "status"))
    with pytest.warns(
        TableNote, match="2 of 120 rows have no time, a negative time or no event and were left out"
    ):
        table = SurvivalTable.parse(frame, TargetColumns("days", "status"), drop_missing_target=True)
    assert table.frame.index.tolist() == [row for row in range(120) if row not in (2, 5)]


def test_features_are_chosen_and_rows_without_one_are_left_out_on_request():
    frame = repeated(copies=0).assign(size=1.0, note="text")
    frame.loc[3, "size"], frame.loc[4, "note"] = np.nan, None
    columns = TargetColumns("days", "status")
    with pytest.warns(TableNote, match="1 of 120 rows have no value in some feature and were left out"):
        table = SurvivalTable.parse(frame, columns, features=["size", "age"], complete_cases=True)
    assert table.X.columns.tolist() == ["size", "age"]
    assert table.frame.index.tolist() == [row for row in range(120) if row != 3]
    for features, message in (
        (["days"], "features names 'days', which another argument names too"),
        (["weight"], "'weight'"),
    ):
        with pytest.raises(ValueError, match=message):
            SurvivalTable.parse(frame, columns, features=features)
    with pytest.raises(ValueError, match="all 120 rows have no value in some feature: no patient is left"):
        SurvivalTable.parse(frame.assign(size=np.nan), columns, complete_cases=True)


def test_whole_numbers_that_name_groups_are_codes():
    frame = repeated(copies=0).assign(race=np.resize([1, 2, 3], 120), sex=np.resize([0, 1], 120))
    table = SurvivalTable.parse(frame, TargetColumns("days", "status"), groups=["race", "sex", "age>60"])
    assert table.codes == ("race",)


def test_patients_of_another_table_are_found_by_value_or_by_id():
    frame = repeated(copies=0)
    others = frame.iloc[:40].assign(age=lambda f: f["age"].astype(object), extra=1)
    assert patients_not_in(frame, others).tolist() == [False] * 40 + [True] * 80
    aged = others.assign(age=0)
    assert patients_not_in(frame, aged).all()
    assert patients_not_in(frame, aged, id="who").sum() == 80
    assert not patients_not_in(others, frame).any()


def test_patients_of_a_file_that_another_program_wrote_with_fewer_digits_are_found():
    values = np.r_[
        np.random.default_rng(0).normal(size=300) * 10.0 ** np.arange(-150, 150), 0.0, 1e-320, 5e10
    ]
    frame = pd.DataFrame({"value": np.r_[values, -np.inf, 1.0]})
    others = frame[:-1].map(lambda value: float(f"{value:.15g}"))
    assert (others != frame[:-1]).to_numpy().sum() > 100
    assert patients_not_in(frame, others).tolist() == [False] * (len(frame) - 1) + [True]
    near = pd.DataFrame({"value": [1.0000001]})
    assert patients_not_in(frame, near).all()


@pytest.mark.parametrize("kind", [float, int, str, "Int64", object])
def test_patients_are_known_whatever_type_their_id_has(kind):
    others = pd.DataFrame({"id": pd.Series([2, 3]).astype(kind)})
    assert patients_not_in(pd.DataFrame({"id": [1.0, 2.0, 3.0]}), others, "id").tolist() == [
        True,
        False,
        False,
    ]


def test_patients_without_an_id_are_nobody_of_another_table():
    frame, others = (pd.DataFrame({"id": ids}) for ids in (["a", "b", None], ["b", None]))
    assert patients_not_in(frame, others, "id").tolist() == [True, False, True]


def test_a_text_that_is_missing_is_the_same_in_every_spelling_of_missing():
    frame = pd.DataFrame({"age": [50, 60, 70], "sex": pd.Series(["f", np.nan, "m"], dtype=object)})
    others = pd.DataFrame({"age": [50.0, 60.0], "sex": pd.Series(["f ", None], dtype=object)})
    assert patients_not_in(frame, others).tolist() == [False, False, True]


@pytest.mark.parametrize("codes", [[1, 0, 2, 0], [1, 2, 3, 2]])
def test_codes_of_causes_without_a_censored_one_are_asked_about(codes):
    """MASS::Melanoma codes 1 for the death, 2 for alive and 3 for another death."""
    columns = {"time": np.arange(1.0, 41.0), "status": np.resize(codes, 40), "age": np.arange(40) % 7}
    frame = pd.DataFrame(columns)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read_survival_table(frame, time="time", event="status", causes=True, numeric=["age"])
    asked = [one for one in told if "no 0: every patient has an event" in str(one.message)]
    assert len(asked) == (0 not in codes)
