import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from drosurv import certify, evaluate
from drosurv.datasets import make_hidden_minority
from drosurv.errors import InputError
from drosurv.estimators import CoxPH
from drosurv.estimators.persistence import load, save
from drosurv.tables import TableEncoder, UnseenLevelWarning


@parametrize_with_checks([TableEncoder()])
def test_keeps_scikit_learns_contract(estimator, check):
    assert check(estimator) is None


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "age": rng.integers(40, 90, n).astype(float),
            "sex": rng.choice(["f", "m"], n, p=[0.7, 0.3]),
            "grade": rng.choice(["low", "middle", "high"], n, p=[0.5, 0.3, 0.2]),
            "smoker": rng.random(n) < 0.4,
            "stage": rng.integers(1, 4, n),
        }
    )
    frame.loc[[3, 10], "age"] = np.nan
    frame.loc[5, "sex"] = None
    return frame


def test_features_equal_those_of_scikit_learns_steps(table):
    ours = TableEncoder().fit(table)
    features = ours.transform(table)
    ages = StandardScaler().fit_transform(
        SimpleImputer(strategy="median").fit_transform(table[["age", "stage"]])
    )
    np.testing.assert_allclose(features[["age", "stage"]], ages)
    filled = table[["sex", "grade", "smoker"]].fillna({"sex": "f"}).astype(str)
    reference = [filled[column].mode()[0] for column in filled]
    hot = OneHotEncoder(drop=reference, sparse_output=False).fit(filled)
    names = [
        f"{c}={level}"
        for c, levels, r in zip(filled, hot.categories_, reference, strict=True)
        for level in levels
        if level != r
    ]
    np.testing.assert_allclose(features[names], StandardScaler().fit_transform(hot.transform(filled)))
    assert set(features.columns) == {"age", "stage", *names}
    assert ours.get_feature_names_out().tolist() == list(features.columns)


def test_training_statistics_serve_other_tables(table):
    encoder = TableEncoder(standardize=False).fit(table)
    other = pd.DataFrame(
        {"stage": [2], "smoker": [True], "grade": [None], "sex": ["m"], "age": [np.nan], "id": [9]}
    )
    (row,) = encoder.transform(other).to_dict("records")
    assert row["age"] == table["age"].median()
    assert row["sex=m"] == 1
    assert row["grade=high"] == row["grade=middle"] == 0
    assert row["stage"] == 2


def test_columns_are_found_by_name_in_any_order(table):
    encoder = TableEncoder().fit(table)
    shuffled = table[table.columns[::-1]]
    pd.testing.assert_frame_equal(encoder.transform(shuffled), encoder.transform(table))


def test_one_row_is_encoded_as_it_is_among_many(table):
    encoder = TableEncoder().fit(table)
    together = encoder.transform(table)
    for row in range(0, len(table), 7):
        np.testing.assert_array_equal(encoder.transform(table.iloc[[row]]), together.iloc[[row]])


def test_equal_categories_are_equal_whatever_type_holds_them():
    encoder = TableEncoder(categorical=["stage"], standardize=False).fit(
        pd.DataFrame({"stage": [1, 1, 2, 3]})
    )
    for values in (
        [2, 3],
        [2.0, 3.0],
        ["2", "3"],
        pd.Categorical([2, 3]),
        pd.array([2, 3], "Int64"),
        [2.0, "3"],
    ):
        features = encoder.transform(pd.DataFrame({"stage": values}))
        assert features.to_numpy().tolist() == [[1, 0], [0, 1]]


def test_a_level_training_never_saw_becomes_the_most_frequent_with_a_warning(table):
    encoder = TableEncoder().fit(table)
    other = table.head(2).assign(grade=["enormous", "low"])
    with pytest.warns(UserWarning, match=r"column 'grade' holds 1 text in 1 row, not seen.*taken as 'low'"):
        found = encoder.transform(other)
    pd.testing.assert_frame_equal(found, encoder.transform(other.assign(grade="low")))


def test_the_order_of_a_categorical_column_is_kept():
    values = pd.Categorical(["b", "a", "c", "b"], categories=["c", "b", "a", "unused"])
    encoder = TableEncoder().fit(pd.DataFrame({"g": values}))
    assert encoder.get_feature_names_out().tolist() == ["g=c", "g=a"]


def test_columns_that_say_nothing_are_left_out_and_told(table):
    extended = table.assign(site="A", empty=np.nan, row=range(1, len(table) + 1), half=[1.0, np.nan] * 30)
    with pytest.warns(UserWarning, match="column 'row' numbers the rows and is no feature"):
        encoder = TableEncoder().fit(extended)
    told = encoder.describe().set_index("column")
    assert told.loc["site", "done"] == "not used: its only value is 'A'"
    assert told.loc["empty", "done"] == "not used: it is empty"
    assert told.loc["row", "done"] == "not used: it numbers the rows"
    assert told.loc["half", "done"] == "not used: its only value is '1'"
    pd.testing.assert_frame_equal(encoder.transform(table), TableEncoder().fit_transform(table))
    # Nor is it used where rows were kept away, or shuffled.
    with pytest.warns(UserWarning, match="numbers the rows"):
        some = TableEncoder().fit(extended.sample(30, random_state=0)).describe().set_index("column")
    assert some.loc["row", "done"] == "not used: it numbers the rows"


def test_a_sorted_column_numbers_the_rows_only_if_its_name_says_so():
    rows = np.flatnonzero(np.random.default_rng(0).random(400) < 0.7)
    frame = pd.DataFrame({"column 1": rows, "age": rows % 37})
    with pytest.warns(UserWarning, match="column 'column 1' numbers the rows"):
        assert TableEncoder().fit_transform(frame).columns.tolist() == ["age"]
    with pytest.warns(UserWarning, match="column 'income' is a different whole number in every row"):
        found = TableEncoder().fit_transform(frame.rename(columns={"column 1": "income"}))
    assert found.columns.tolist() == ["income", "age"]


def test_columns_that_give_the_outcome_away_are_warned_about():
    data = make_hidden_minority(n_samples=300, random_state=1)
    frame = data.X.iloc[:, :2].assign(cause=np.where(data.y["event"], ["cancer", "heart"] * 150, None))
    with pytest.warns(
        UserWarning, match=r"column 'cause' may give the outcome away: it tells the event of 100 %"
    ):
        TableEncoder().fit(pd.DataFrame(frame), data.y)


@pytest.mark.parametrize("value", [1e-300, 1e308])
def test_numbers_beyond_floating_point_are_left_out(value):
    encoder = TableEncoder().fit(pd.DataFrame({"n": [0.0, value, -value], "x": [1, 2, 4]}))
    assert encoder.get_feature_names_out().tolist() == ["x"]


def test_the_report_names_every_column_and_what_filled_it(table):
    numbered = TableEncoder(drop=[0]).fit(pd.DataFrame({0: [1, 2, 3], 1: [3, 4, 6]}))
    assert numbered.used_ == ["1"]
    told = TableEncoder(drop=["smoker"]).fit(table).describe().set_index("column")
    assert told.index.tolist() == ["age", "sex", "grade", "stage"]
    assert told.loc["age", "missing"] == 2
    assert told.loc["age", "filled_with"] == f"the median {table['age'].median():g}"
    assert told.loc["sex", "filled_with"] == "the most frequent level 'f'"
    assert told.loc["grade", "done"] == "indicators of 'high', 'middle' against 'low'"
    assert told.loc["grade", "filled_with"] == ""
    assert told.loc["grade", "features"] == ["grade=high", "grade=middle"]


def test_findings_name_what_was_made_up_or_left_aside(table):
    encoder = TableEncoder().fit(table)
    other = table.head(4).assign(grade=["enormous", "low", "low", "enormous"], note="x")
    found = encoder.findings(other).set_index(["column", "done"])["rows"]
    assert found.to_dict() == {
        ("age", f"missing, filled with the median {table['age'].median():g}"): 1,
        ("grade", "1 text, not seen in training, taken as 'low'"): 2,
        ("note", "not used by the model"): 4,
    }


def test_whole_numbers_that_all_differ_are_pointed_at():
    numbers = np.random.default_rng(0).permutation(500)
    with pytest.warns(UserWarning, match="column 'mrn' is a different whole number in every row"):
        TableEncoder().fit(pd.DataFrame({"mrn": numbers}))


@pytest.mark.parametrize(("n_columns", "n_named"), [(1, 1), (3, 3), (5, 5), (7, 5)])
def test_columns_that_cannot_be_used_are_named_together(n_columns, n_named):
    names = [f"text{i}" for i in range(n_columns)]
    frame = pd.DataFrame({name: [f"{name} {i}" for i in range(60)] for name in names})
    with pytest.raises(ValueError, match=r"^column 'text0' holds 60 different texts") as caught:
        TableEncoder().fit(frame.assign(x=np.arange(60) % 7))
    assert [name for name in names if f"olumn {name!r}" in str(caught.value)] == names[:n_named]
    assert ("2 more columns" in str(caught.value)) == (n_columns == 7)


def test_all_columns_of_dates_are_told_in_one_sentence():
    days = pd.date_range("2020-01-01", periods=60)
    frame = pd.DataFrame({"born": days, "note": [f"n{i}" for i in range(60)], "seen": days.astype(str)})
    with pytest.raises(
        ValueError, match=r"^dates are no features: .* pass drop=\['born', 'seen'\]\. Column 'note' holds"
    ) as e:
        TableEncoder().fit(frame.assign(x=np.arange(60) % 7))
    assert str(e.value).count("dates") == 1


def test_many_levels_are_categories_if_the_user_says_so():
    frame = pd.DataFrame({"site": [f"s{i}" for i in range(60)] * 2})
    assert TableEncoder(categorical=["site"]).fit_transform(frame).shape == (120, 59)


@pytest.mark.parametrize("parameter", ["drop", "categorical"])
def test_one_name_may_be_given_as_a_text(table, parameter):
    one, several = (TableEncoder(**{parameter: names}).fit(table) for names in ("age", ["age"]))
    assert one.describe().equals(several.describe())


def test_an_array_after_a_table_warns_that_names_are_missing(table):
    encoder = TableEncoder().fit(table)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = encoder.transform(table.to_numpy())
    np.testing.assert_allclose(found, encoder.transform(table))


class TestInAPipeline:
    @pytest.fixture
    def patients(self):
        data = make_hidden_minority(n_samples=300, random_state=1)
        frame = data.X.iloc[:, :3].assign(sex=np.where(data.X["x4"] > 0, "f", "m"))
        frame.loc[::9, "x1"] = np.nan
        frame.loc[::11, "sex"] = None
        return frame, data.y

    def test_the_model_knows_the_features_by_name(self, patients):
        model = make_pipeline(TableEncoder(), CoxPH()).fit(*patients)
        rarer = patients[0]["sex"].value_counts().index[-1]
        assert model[-1].feature_names_in_.tolist() == ["x1", "x2", "x3", f"sex={rarer}"]

    def test_raw_tables_go_through_a_saved_pipeline(self, patients, tmp_path):
        X, y = patients
        model = make_pipeline(TableEncoder(categorical=["sex"]), CoxPH()).fit(X, y)
        save(model, tmp_path / "model")
        loaded = load(tmp_path / "model")
        raw = X.assign(extra="note")[["extra", "sex", "x3", "x2", "x1"]]
        np.testing.assert_array_equal(loaded.predict(raw), model.predict(X))
        np.testing.assert_array_equal(
            loaded.predict_survival_function(raw, times=[0.5]),
            model[-1].predict_survival_function(model[:-1].transform(X), times=[0.5]),
        )
        pd.testing.assert_frame_equal(loaded[0].describe(), model[0].describe())

    def test_joblib_and_clone_work(self, patients, tmp_path):
        X, y = patients
        model = make_pipeline(TableEncoder(), CoxPH()).fit(X, y)
        joblib.dump(model, tmp_path / "model")
        for other in (joblib.load(tmp_path / "model"), clone(model).fit(X, y)):
            np.testing.assert_array_equal(other.predict(X), model.predict(X))


def _columns():
    text = st.sampled_from(["a", "b", "<script>", "ü", " ", "1", "=x", None])
    number = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 5))
    return st.lists(st.tuples(number, text, st.sampled_from([True, False, None])), min_size=2, max_size=25)


@given(_columns())
@example([(1e6, "a", True), (1e6 - 1e-10, "a", True)])
@example([(0.0, "a", True), (5e-324, "a", True)])
@example([(None, "a", True), (None, "a", True), (699051.3292409547, "a", True)])
@example([(0.0, "a", True), (3e-162, "a", True), (None, "a", True)])
@settings(deadline=None, max_examples=20)
def test_any_table_gives_finite_standardised_features_or_a_clear_error(rows):
    frame = pd.DataFrame(rows, columns=["n", "t", "b"])
    numbers = frame["n"].astype(float)
    known = numbers.dropna()
    spread = float(numbers.fillna(known.median()).to_numpy().std()) if len(set(known)) > 1 else 0.0
    # Numbers that differ by less than their squares can be told count as one.
    if (frame[["t", "b"]].nunique() < 2).all() and not spread > 0:
        with pytest.raises(ValueError, match="none of the 3 columns differs"):
            TableEncoder().fit(frame)
        return
    features = TableEncoder().fit_transform(frame)
    assert np.isfinite(features).all(axis=None)
    # A mean is rounded to a float, which large numbers that hardly differ show.
    rounding = np.finfo(float).eps * numbers.abs().max() / spread if "n" in features else 0.0
    np.testing.assert_allclose(features.mean(), 0, atol=1e-6 + rounding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_frame_equal(TableEncoder().fit(frame).transform(frame), features)


@pytest.mark.parametrize("periods", [["2000-04", "2005-09"], ["2005-09", "2010-14"]])
def test_a_few_periods_are_categories(periods):
    encoder = TableEncoder().fit(pd.DataFrame({"period": periods * 10}))
    assert encoder.describe()["kind"].tolist() == ["category"]


@pytest.mark.parametrize("n_levels", [17, 82])
def test_a_column_declared_as_category_has_a_feature_for_each_level_but_one(n_levels):
    rows = [f"text {'x' * k}" for k in range(n_levels)] * 3
    frame = pd.DataFrame(
        {"kind": pd.Series(rows[:-5], dtype="category"), "age": np.arange(len(rows) - 5) % 9 - 0.5}
    )
    encoder = TableEncoder().fit(frame)
    assert encoder.describe()["kind"].tolist() == ["category", "number"]
    X = encoder.transform(frame)
    assert X.shape == (len(frame), n_levels)
    # A row has the indicator of its level: columns are indicators, centred and scaled, in rows of one level only.
    indicators = X.drop(columns="age").to_numpy()
    levels = frame["kind"].to_numpy()
    for column in indicators.T:
        assert len(set(levels[column > 0])) == 1
    with pytest.raises(InputError):
        TableEncoder().fit(frame.astype({"kind": object}))


@pytest.mark.parametrize("judge", [partial(evaluate), partial(certify, n_bootstrap=59)])
def test_an_unseen_level_is_warned_of_once_at_the_users_line(judge):
    data = make_hidden_minority(n_samples=200, random_state=0)
    X = data.X.assign(site=np.where(np.arange(200) % 3 == 0, "a", "b"))
    model = make_pipeline(TableEncoder(), CoxPH()).fit(X, data.y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        judge(model, X.assign(site="c"), data.y)
    (unseen,) = [one for one in told if issubclass(one.category, UnseenLevelWarning)]
    assert unseen.filename == __file__


def test_missing_values_of_an_array_are_answered_with_the_encoder():
    data = make_hidden_minority(n_samples=100, random_state=0)
    X = data.X.to_numpy(copy=True)
    X[3, 1] = np.nan
    with pytest.raises(
        ValueError, match=r"X contains NaN: .* make_pipeline\(TableEncoder\(\), CoxPH\(\)\)"
    ) as error:
        CoxPH().fit(X, data.y)
    assert "HistGradient" not in str(error.value)
    # Both remedies work.
    advised = make_pipeline(TableEncoder(standardize=False), CoxPH()).fit(X, data.y)
    np.testing.assert_allclose(CoxPH().fit(pd.DataFrame(X), data.y).coef_, advised[-1].coef_)
    with pytest.raises(ValueError, match="X contains NaN: fill in missing values first"):
        CoxPH().fit(data.X.to_numpy(), data.y).predict(X)


def test_a_boolean_is_compared_with_false_and_filled_with_the_most_frequent():
    table = pd.DataFrame({"sex": list("fmfmfm"), "ill": [True, True, True, False, None, True]})
    for ill in (
        table["ill"],
        table["ill"].astype("boolean"),
        table["ill"].map({True: "True", False: "False"}),
    ):
        coded = TableEncoder(standardize=False).fit_transform(table.assign(ill=ill))
        assert coded["ill=True"].tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    # 1 and 0 in prediction are True and False; another number is the reference.
    encoder = TableEncoder(standardize=False).fit(table)
    new = table[:3].assign(ill=[1, 0, None])
    assert encoder.transform(new)["ill=True"].tolist() == [1.0, 0.0, 1.0]
    assert encoder.as_encoded(table[:2].assign(ill=[1, 2]))["ill"].tolist() == [1.0, 0.0]
    scaled = TableEncoder(reference={"ill": "False"}).fit_transform(table)["ill=True"]
    assert scaled.mean() == pytest.approx(0.0)
    assert scaled.std(ddof=0) == pytest.approx(1.0)


def test_the_cox_table_names_the_columns_that_are_not_used():
    data = make_hidden_minority(200, random_state=0)
    table = pd.DataFrame(data.X).assign(site="one", empty=np.nan)
    said = str(CoxPH().fit(table, data.y).summary())
    assert "Not used: site (its only value is 'one'), empty (it is empty)." in said


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        (["F", "M"], True),
        ([1, 2], True),
        (["female", "male"], True),
        (["f", "M"], False),
        (["x", "y"], False),
    ],
)
def test_levels_that_are_written_in_another_way_in_all_rows_are_asked_about(held, asked):
    """Rows of other levels are those of the reference, which says nothing of a table with another coding."""
    encoder = TableEncoder().fit(pd.DataFrame({"sex": ["f", "m"] * 20, "age": [50, 60] * 20}))
    new = pd.DataFrame({"sex": held * 6, "age": 50})
    if asked:
        with pytest.raises(
            ValueError, match=r"column 'sex' holds .* none of the levels of training, 'f', 'm'"
        ):
            encoder.transform(new)
    else:
        with pytest.warns(UnseenLevelWarning, match="taken as 'f'"):
            encoder.transform(new)


def test_values_below_a_limit_are_not_called_missing_only():
    crp = pd.Series(["<5"] * 20 + [str(k) for k in range(5, 85)], name="crp")
    with pytest.raises(ValueError, match=r"'<5' in 20 rows .*: write numbers, such as the limits, or"):
        TableEncoder().fit(crp.to_frame())
    with pytest.raises(ValueError, match=r"'low' in 20 rows .*: correct the table, or"):
        TableEncoder().fit(crp.replace("<5", "low").to_frame())
