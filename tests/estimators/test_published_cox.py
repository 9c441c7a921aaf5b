"""A published score: Framingham's general cardiovascular risk for women, and what is wrong in a score or a table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import drosurv
from drosurv import PublishedCox, Surv
from drosurv.curves import PointCurves
from drosurv.errors import ArgumentError
from drosurv.estimators.published_cox import Term
from drosurv.predictions import as_predictions

# D'Agostino et al. (2008), General cardiovascular risk profile for use in primary care, Circulation 117.
FRAMINGHAM = {
    "log(age)": 2.32888,
    "log(cholesterol)": 1.20904,
    "log(hdl)": -0.70833,
    "log(sbp)*treated=0": 2.76157,
    "log(sbp)*treated=1": 2.82263,
    "smoker": 0.52873,
    "diabetes": 0.69154,
}


def women(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(35, 74, n).round(),
            "cholesterol": rng.normal(215, 40, n).clip(110).round(),
            "hdl": rng.normal(57, 15, n).clip(20).round(),
            "sbp": rng.normal(126, 18, n).clip(85).round(),
            "treated": rng.integers(0, 2, n),
            "smoker": (rng.random(n) < 0.3).astype(int),
            "diabetes": (rng.random(n) < 0.04).astype(int),
            "site": rng.choice(["north", "south"], n),
        }
    )


@pytest.fixture(scope="module")
def score():
    return PublishedCox(FRAMINGHAM, {10: 0.95012}, center=26.1931)


def simulated(score, X, ratio, seed=0):
    """Events with `ratio` times the hazards of the score."""
    rng = np.random.default_rng(seed)
    hazard = -np.log(0.95012) / 10 * np.exp(score.predict(X)) * ratio
    time, end = rng.exponential(size=len(X)) / hazard, rng.uniform(8, 16, len(X))
    return Surv.from_arrays(time <= end, np.minimum(time, end))


def test_the_published_example_has_its_published_risk(score):
    # Case 1 of the article: a woman of 61, risk 10.48 %.
    case = pd.DataFrame(
        {
            "age": [61],
            "cholesterol": [180],
            "hdl": [47],
            "sbp": [124],
            "treated": [0],
            "smoker": [1],
            "diabetes": [0],
        }
    )
    assert 1 - score.predict_survival_function(case, times=[10])[0, 0] == pytest.approx(0.1048, abs=5e-5)


def test_the_log_risk_is_the_formula_written_out(score):
    X = women(50)
    slope = np.where(X["treated"] == 1, 2.82263, 2.76157)
    expected = (
        2.32888 * np.log(X["age"])
        + 1.20904 * np.log(X["cholesterol"])
        - 0.70833 * np.log(X["hdl"])
        + slope * np.log(X["sbp"])
        + 0.52873 * X["smoker"]
        + 0.69154 * X["diabetes"]
        - 26.1931
    )
    np.testing.assert_allclose(score.predict(X), expected, rtol=1e-12)


def test_it_is_right_where_the_data_follow_it_and_wrong_where_they_do_not(score):
    X = women(2000)
    ratio = np.where(X["site"] == "south", 2.0, 1.0)
    options = {"sensitive_features": X["site"].to_frame()}
    right = drosurv.evaluate(score, X, simulated(score, X, 1.0), **options).groups.set_index("group")
    wrong = drosurv.evaluate(score, X, simulated(score, X, ratio), **options).groups.set_index("group")
    assert ((right["ratio_low"] < 1) & (right["ratio_high"] > 1)).all()
    assert wrong.loc["south", "ratio_low"] > 1.3
    assert wrong.loc["north", "ratio_low"] < 1 < wrong.loc["north", "ratio_high"]


def test_audit_and_certify_take_it_and_the_page_says_what_is_not_known(score):
    X = women(600)
    y = simulated(score, X, 1.0)
    report = drosurv.audit(score, X, y, sensitive_features=X[["site"]], search_rules=False)
    assert "nothing is known at other times" in report.to_html()
    assert report.model == "PublishedCox"
    with pytest.raises(ArgumentError, match="folds is not for PublishedCox"):
        drosurv.audit(score, X, y, sensitive_features=X[["site"]], folds=3)
    bounds = drosurv.certify(score, X, y, alpha=0.3, n_bootstrap=59)
    assert bounds.horizon == 10


def test_a_repair_finds_the_wrong_group_and_is_saved(score, tmp_path):
    X = women(1500)
    y = simulated(score, X, np.where(X["site"] == "south", 2.5, 1.0))
    # It is never fitted, so that frozen=True need not be said.
    repaired = drosurv.repair(score, X, y, max_conditions=1, max_repairs=2, random_state=0)
    before, after = (model.predict_survival_function(X, times=[10])[:, 0] for model in (score, repaired))
    north = X["site"] == "north"
    assert np.log(after[~north]).mean() < 1.4 * np.log(before[~north]).mean()
    assert np.log(after[north]).mean() == pytest.approx(np.log(before[north]).mean(), rel=0.25)
    drosurv.save(repaired, tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_survival_function(X, times=[10])[:, 0], after)


@pytest.mark.parametrize("judge", [drosurv.audit, drosurv.certify, drosurv.evaluate, drosurv.repair])
def test_times_in_another_unit_than_those_of_the_patients_are_refused(judge):
    X = pd.DataFrame({"age": np.linspace(40, 80, 200)})
    y = drosurv.Surv.from_arrays(np.arange(200) % 2 == 0, np.roll(np.linspace(30, 3000, 200), 90))
    score = PublishedCox({"age": 0.05}, {5: 0.9, 10: 0.8}, center={"age": 60})
    with pytest.raises(
        ArgumentError, match="end at time 10, before the first event: predict later times, in the unit"
    ):
        judge(score, X, y)


def test_curves_are_known_at_the_published_times_only():
    score = PublishedCox({"age": 0.05}, {10: 0.8, 5: 0.9}, center={"age": 60})
    X = pd.DataFrame({"age": [60.0, 70.0]})
    curves = as_predictions(score, X, 2).curves
    assert isinstance(curves, PointCurves)
    assert curves.times.tolist() == [5, 10]
    survival = score.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(survival, np.array([[0.9, 0.8]]) ** np.exp([[0.0], [0.5]]))
    one = score.predict_survival_function(X)[1]
    assert one(10) == survival[1, 1]
    assert one([0, 5]).tolist() == [1.0, survival[1, 0]]
    with pytest.raises(ArgumentError, match="survival at 7 is not known"):
        one(7)
    with pytest.raises(ArgumentError, match="times holds 7, but the score gives survival at 5, 10 only"):
        score.predict_survival_function(X, times=[5, 7])


def test_it_is_cloned_saved_and_loaded(score, tmp_path):
    X = women(30)
    assert clone(score).get_params() == score.get_params()
    assert score.fit(X) is score
    score.save(tmp_path / "score")
    loaded = drosurv.load(tmp_path / "score")
    assert loaded.get_params() == score.get_params()
    np.testing.assert_array_equal(loaded.predict(X), score.predict(X))
    assert list(score.feature_names_in_) == list(X.columns[:-1])


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("age", ["age"]),
        (" sex = fe male ", ["sex"]),
        ("log( sbp )*treated=1", ["sbp", "treated"]),
        ("age^2 * diabetes", ["age", "diabetes"]),
        ("log(age)^2", ["age"]),
        ("`BMI (kg/m^2)`*`a*b`", ["BMI (kg/m^2)", "a*b"]),
    ],
)
def test_terms_name_their_columns(text, columns):
    assert list(Term.parse(text).columns) == columns


@pytest.mark.parametrize(
    "text",
    ["", "age**2", "exp(age)", "log(age", "age^x", "a*", "*a", "a==1", "__import__('os').getcwd()", "a b(c)"],
)
def test_other_terms_are_an_error_that_names_them(text):
    with pytest.raises(ArgumentError) as error:
        Term.parse(text)
    assert f"term {text!r} cannot be read" in str(error.value)


def test_powers_products_and_levels_have_their_values():
    X = pd.DataFrame({"age": [50.0, 60.0], "sex": ["m", "f"], "flag": [True, False], "grade": [2, 3]})
    values = {
        text: Term.parse(text).values(X).tolist() for text in ("age^2", "age*sex=f", "flag=1", "grade=3")
    }
    assert values == {"age^2": [2500, 3600], "age*sex=f": [0, 60], "flag=1": [1, 0], "grade=3": [0, 1]}
    assert Term.parse("log(age)^2").values(X) == pytest.approx(np.log(X["age"]) ** 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.drop(columns="sbp"), "term 'log(sbp)*treated=0' needs column 'sbp'"),
        (lambda X: X.rename(columns={"hdl": "HDL"}), "Did you mean 'HDL'?"),
        (lambda X: X.assign(smoker=X["smoker"].map({0: "no", 1: "yes"})), "term 'smoker' needs numbers"),
        (lambda X: X.assign(treated=X["treated"].map({0: "no", 1: "yes"})), "no patient has the level '0'"),
        (lambda X: X.assign(hdl=X["hdl"] - 100), "'log(hdl)' is a logarithm"),
        (lambda X: X.assign(age=X["age"].where(X["age"] > 40)), "column 'age', which is empty for"),
        (lambda X: X.assign(cholesterol=X["cholesterol"] / 38.67), "cholesterol 5."),
        (lambda X: X.assign(age=X["age"] * 12), "a column is in another unit"),
        (lambda X: X.to_numpy(), "X must be a DataFrame"),
    ],
)
def test_a_table_that_does_not_fit_is_an_error_that_names_what(score, change, words):
    with pytest.raises(ArgumentError) as error:
        score.predict(change(women(400)))
    assert words in str(error.value)


def test_a_center_names_the_column_in_another_unit():
    X = women(300)
    score = PublishedCox({"log(hdl)": -0.7, "age": 0.05}, {5: 0.9}, center={"log(hdl)": 4.0, "age": 54})
    assert abs(score.predict(X).mean()) < 0.2
    with pytest.raises(ArgumentError, match=r"column 'hdl' is in another unit"):
        score.predict(X.assign(hdl=X["hdl"] / 38.67))
    # Patients may be much older than the published ones.
    score.predict(X.assign(age=80.0))


def test_messages_name_no_level_of_few_patients():
    X = pd.DataFrame({"note": ["John Doe", *["x"] * 30]})
    with pytest.raises(ArgumentError) as error:
        PublishedCox({"note=seen": 1.0}, {5: 0.9}).predict(X)
    assert "John" not in str(error.value)


SCORE = "term,coefficient,center\nage,0.05,55\nsex=male,0.4,\nbaseline,5,0.95\nbaseline,10,0.89\n"


def test_a_file_gives_the_parameters(tmp_path):
    path = tmp_path / "score.csv"
    path.write_text(SCORE)
    found = PublishedCox.read(path).get_params()
    assert found == {
        "coefficients": {"age": 0.05, "sex=male": 0.4},
        "baseline_survival": {5.0: 0.95, 10.0: 0.89},
        "center": {"age": 55.0},
    }
    path.write_text("\ufeffTerm;Coefficient\nlog(age);2,3\nmean;;26,19\nbaseline;10;0,9\n", encoding="utf-8")
    found = PublishedCox.read(path).get_params()
    assert found == {"coefficients": {"log(age)": 2.3}, "baseline_survival": {10.0: 0.9}, "center": 26.19}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,0.05\n", "must begin with the columns term, coefficient"),
        ("term,coefficient\nage,0.05\n", "has no baseline survival"),
        ("term,coefficient\nage,\nbaseline,5,0.9\n", "line 2: term 'age' has no coefficient"),
        ("term,coefficient\nage,high\nbaseline,5,0.9\n", "line 2: 'high' is not a number"),
        ("term,coefficient\nage,1\nage,2\nbaseline,5,0.9\n", "line 3: term 'age' is given twice"),
        (SCORE + "mean,,3\n", "has both a mean and centers"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_line(tmp_path, text, words):
    path = tmp_path / "score.csv"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=words):
        PublishedCox.read(path)
