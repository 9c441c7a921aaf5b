import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import PublishedCox, Surv, metrics, paper
from drosurv.estimators import CoxPH, GroupDROCox
from drosurv.evaluation import evaluate, get_scorer, make_scorers
from drosurv.evaluation.scorers import known_scores

SCORES = known_scores()
GROUPED = [name for name, score in SCORES.items() if score.over != "all"]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def tenth(time):
    """The last time at which a tenth of the patients is at risk."""
    return np.sort(time)[::-1][int(np.ceil(len(time) / 10)) - 1]


def test_a_score_is_the_number_of_evaluate_that_its_name_says(model, held_out):
    groups = held_out.sensitive_features
    table = evaluate(model, held_out.X, held_out.y, sensitive_features=groups, paper=True).table
    kinds = {"all": ["overall"], "groups": ["group"], "attributes": ["overall", "gap"]}
    for name, score in SCORES.items():
        given = {"sensitive_features": groups} if name in GROUPED else {}
        rows = table[(table["metric"] == score.metric.name) & table["kind"].isin(kinds[score.over])]
        values = score.sign * rows["value"]
        expected = max(values, key=abs) if score.over == "attributes" else min(values)
        found = get_scorer(name)(model, held_out.X, held_out.y, **given)
        assert isinstance(found, float), name
        assert found == pytest.approx(expected), name


def test_all_scorers_work_together_in_cross_validation_with_groups_routed(routing, held_out):
    cv = KFold(2, shuffle=True, random_state=0)
    found = cross_validate(
        make_pipeline(StandardScaler(), CoxPH()),
        held_out.X,
        held_out.y,
        cv=cv,
        scoring=make_scorers(),
        params={"sensitive_features": held_out.sensitive_features},
        return_estimator=True,
    )
    assert {f"test_{name}" for name in SCORES} <= set(found)
    for k, (_, rows) in enumerate(cv.split(held_out.X)):
        groups = held_out.sensitive_features.iloc[rows]
        risk = found["estimator"][k].predict(held_out.X[rows])
        assert found["test_concordance_imparity"][k] == pytest.approx(
            max(paper.concordance_imparity(held_out.y[rows], risk, groups[name]) for name in groups)
        )
        assert found["test_neg_concordance_imparity"][k] == -found["test_concordance_imparity"][k]
        assert found["test_worst_group_c"][k] < found["test_c_index"][k]


def test_groups_reach_both_the_fit_and_the_score(routing, held_out):
    model = GroupDROCox(recalibrate=False).set_fit_request(sensitive_features=True)
    found = cross_validate(
        model,
        held_out.X,
        held_out.y,
        cv=2,
        scoring=make_scorers(["worst_group_c", "c_index"]),
        params={"sensitive_features": held_out.sensitive_features["site"]},
        error_score="raise",
    )
    assert np.isfinite(found["test_worst_group_c"]).all()


def test_a_search_chooses_by_the_worst_group(routing, held_out):
    search = GridSearchCV(
        CoxPH(),
        {"l2": [0.0, 10.0]},
        cv=2,
        scoring=make_scorers(["worst_group_c", "neg_ibs"]),
        refit="neg_ibs",
    )
    search.fit(held_out.X, held_out.y, sensitive_features=held_out.sensitive_features)
    assert np.isfinite(search.cv_results_["mean_test_worst_group_c"]).all()
    assert search.best_params_ == {"l2": 0.0}


def test_a_single_scorer_serves_as_scoring(held_out):
    found = cross_validate(CoxPH(), held_out.X, held_out.y, cv=2, scoring=get_scorer("neg_ibs"))
    for score, (train, test) in zip(found["test_score"], KFold(2).split(held_out.X, held_out.y), strict=True):
        fitted = CoxPH().fit(held_out.X[train], held_out.y[train])
        own = evaluate(fitted, held_out.X[test], held_out.y[test])
        assert score == pytest.approx(-own.value("integrated_brier_score"))


def test_scikit_survivals_models_need_training_targets_only_for_the_null_model(train, held_out):
    other = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    assert get_scorer("c_index")(other, held_out.X, held_out.y) == pytest.approx(
        other.score(held_out.X, held_out.y)
    )
    last = np.nextafter(tenth(held_out.y["time"]), np.inf)
    assert get_scorer("uno_c")(other, held_out.X, held_out.y) == pytest.approx(
        metrics.uno_concordance(held_out.y, held_out.y, other.predict(held_out.X), tau=last)
    )
    skills = [get_scorer("brier_skill", y_train=y)(other, held_out.X, held_out.y) for y in (train.y, None)]
    assert skills[0] > skills[1] + 1e-6


def test_intersections_are_the_groups_if_asked_for(model, held_out):
    found = get_scorer("worst_group_c", intersections=True)(
        model, held_out.X, held_out.y, sensitive_features=held_out.sensitive_features
    )
    risk, groups = model.predict(held_out.X), held_out.sensitive_features
    cells = groups["site"] + groups["sex"]
    assert found == pytest.approx(
        min(
            metrics.concordance_index(
                held_out.y[(cells == cell).to_numpy()], risk[(cells == cell).to_numpy()]
            )
            for cell in cells.unique()
        )
    )


@pytest.mark.parametrize("name", ["worst_group_c", "worst_group_uno_c", "worst_group_auc"])
def test_groups_without_a_value_are_named_and_left_out(model, held_out, name):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[0] = "x"
    with pytest.warns(UndefinedMetricWarning, match=f"{name} is undefined .NaN. for site x"):
        found = get_scorer(name)(
            model, held_out.X, held_out.y, sensitive_features=pd.DataFrame({"site": site})
        )
    # Without the group of one patient, the value is that of the others; times of the AUC depend on all patients.
    rest = site != "x"
    assert found == pytest.approx(
        get_scorer(name)(
            model, held_out.X[rest], held_out.y[rest], sensitive_features=pd.DataFrame({"site": site[rest]})
        ),
        abs=1e-3 if name == "worst_group_auc" else 1e-12,
    )


def test_gains_of_late_entry_at_few_times_are_scored_and_brier_scores_say_why_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    time, left = rng.exponential(np.exp(-x)), rng.exponential(2.0, 300)
    seen = np.minimum(time, left)
    y = Surv.from_arrays(time <= left, seen, entry=np.where(np.arange(300) % 3, 0.0, 0.3 * seen))
    model = PublishedCox(coefficients={"x": 1.0}, baseline_survival={0.3: 0.74, 1.0: 0.37})
    X = pd.DataFrame({"x": x})
    expected = evaluate(model, X, y).value("likelihood_gain")
    assert get_scorer("likelihood_gain")(model, X, y) == pytest.approx(expected)
    with pytest.raises(ValueError, match="not known at common times since entry"):
        get_scorer("brier_skill")(model, X, y)
