"""The search against plain loops of fit and score, and what it must refuse."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.metrics import concordance_index_censored

from drosurv import MLP
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import CoxPH, DROCox, DROCoxSplit, GroupDROCox, RegularizedCox, SubgroupRobustCox
from drosurv.evaluation import SmallGroupWarning
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.metrics import concordance_imparity, integrated_brier_score
from drosurv.tables import TableEncoder
from drosurv.tuning import (
    AccuracyBudget,
    BestScore,
    CarefulBudget,
    FixedSetting,
    GridSearch,
    OneStandardError,
    ParetoPoint,
)


@pytest.fixture(scope="module")
def data():
    return make_hidden_minority(n_samples=300, random_state=0)


@pytest.fixture(scope="module")
def groups(data):
    return pd.DataFrame(
        {
            "side": np.where(data.X.iloc[:, 0] > 0, "right", "left"),
            "height": np.where(data.X.iloc[:, 1] > 0.5, "high", "low"),
        }
    )


def folds_of(data, n=3):
    return list(StratifiedKFold(n, shuffle=True, random_state=0).split(np.zeros(len(data)), data.y["event"]))


def c_index(y, risk):
    return concordance_index_censored(y["event"], y["time"], risk)[0]


@pytest.fixture(scope="module")
def adam():
    return DROCox(solver="adam", max_iter=12, random_state=0, recalibrate=False)


@pytest.fixture(scope="module")
def search(adam, data, groups):
    grid = {"alpha": [0.2, 0.5], "lr": [0.1, 0.01]}
    search = GridSearch(adam, grid, rule=AccuracyBudget(), cv=3, random_state=0)
    return search.fit(data.X, data.y, sensitive_features=groups)


@pytest.fixture(scope="module")
def careful(data, groups):
    """A search by the default rule over three folds."""
    search = GridSearch(DROCox(recalibrate=False), {"alpha": [0.1, 0.5]}, cv=3, random_state=0)
    return search.fit(data.X, data.y, sensitive_features=groups)


@pytest.fixture(scope="module")
def on_one_part(data, groups):
    """A search by the default rule on one validation set."""
    search = GridSearch(
        DROCox(recalibrate=False), {"alpha": [0.1, 0.5]}, cv=0.3, bootstrap=20, random_state=0
    )
    return search.fit(data.X, data.y, sensitive_features=groups)


def test_scores_are_those_of_fitting_every_setting_on_every_fold(search, adam, data):
    for number, row in search.results_.iterrows():
        model = clone(adam).set_params(alpha=row["alpha"], lr=row["lr"])
        scores = [
            c_index(data.y[held], model.fit(data.X.iloc[train], data.y[train]).predict(data.X.iloc[held]))
            for train, held in folds_of(data)
        ]
        assert row["concordance_index"] == pytest.approx(np.mean(scores), abs=1e-6), number
        assert row["concordance_index_se"] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(3), abs=1e-6)


def test_the_reference_is_the_best_plain_model_of_the_same_network_and_solver(search, data):
    means = []
    for lr in (0.1, 0.01):
        plain = CoxPH(solver="adam", max_iter=12, random_state=0, lr=lr)
        means.append(
            np.mean(
                [
                    c_index(
                        data.y[held], plain.fit(data.X.iloc[train], data.y[train]).predict(data.X.iloc[held])
                    )
                    for train, held in folds_of(data)
                ]
            )
        )
    assert search.reference_["concordance_index"] == pytest.approx(max(means), abs=1e-6)
    assert search.reference_["lr"] == (0.1, 0.01)[int(np.argmax(means))]
    assert search.rule_ == AccuracyBudget(reference=search.reference_["concordance_index"])


def test_the_choice_is_the_rules_and_is_trained_on_everybody(search, adam, data):
    accuracy, disparity = search.results_["concordance_index"], search.results_["concordance_imparity"]
    inside = accuracy >= 0.95 * search.reference_["concordance_index"]
    assert search.best_index_ == disparity[inside].idxmin()
    assert search.best_params_ == search.results_.loc[search.best_index_, ["alpha", "lr"]].to_dict()
    # The published rule does not choose the plain model.
    assert len(search.results_) == 4
    assert "plain" not in search.results_
    again = clone(adam).set_params(**search.best_params_).fit(data.X, data.y)
    np.testing.assert_allclose(search.predict(data.X), again.predict(data.X), atol=1e-9)
    times = [0.1, 0.5]
    for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
        ours, theirs = (getattr(model, name)(data.X, times=times) for model in (search, again))
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert search.score(data.X, data.y) == pytest.approx(again.score(data.X, data.y))


def test_a_table_of_text_is_what_its_encoder_in_a_pipeline_gives(data, groups):
    X = data.X.assign(side=groups["side"])
    models = (
        DROCox(recalibrate=False),
        make_pipeline(TableEncoder(standardize=False), DROCox(recalibrate=False)),
    )
    ours, theirs = (
        GridSearch(model, {"alpha": [0.5]}, cv=2, random_state=0, min_group=20).fit(
            X, data.y, sensitive_features=groups["side"]
        )
        for model in models
    )
    pd.testing.assert_frame_equal(ours.results_, theirs.results_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))


def test_of_several_attributes_the_one_with_the_largest_disparity_counts(search):
    folds = search.fold_results_
    for metric in ("concordance_imparity", "group_disparity"):
        largest = folds[[f"{metric}_side", f"{metric}_height"]].max(axis=1)
        np.testing.assert_allclose(folds[metric], largest)
        for name in (f"{metric}_side", f"{metric}_height"):
            means = folds.groupby("candidate")[name].mean()
            np.testing.assert_allclose(search.results_[name], means)


def test_the_interval_of_few_folds_is_that_of_students_t(search):
    table = search.results_
    # The 97.5 % quantile of Student's t with two degrees of freedom, from a printed table.
    reach = table["concordance_index_high"] - table["concordance_index"]
    np.testing.assert_allclose(reach, 4.3027 * table["concordance_index_se"], rtol=1e-4)


def test_the_control_is_the_plain_model_shrunk(search):
    control = search.control_
    assert control["factor"].iloc[0] == 1.0
    assert control["gain_share"].iloc[0] == pytest.approx(1.0)
    np.testing.assert_allclose(control["concordance_imparity"], control["concordance_imparity"].iloc[0])
    slopes = control["calibration_slope"] * control["factor"]
    np.testing.assert_allclose(slopes, slopes.iloc[0])
    assert (np.diff(control["group_disparity"]) < 0).all()


def test_moving_the_features_origin_changes_no_disparity(on_one_part, data, groups):
    names = ["group_disparity", "intersectional_disparity", "concordance_imparity"]
    moved = clone(on_one_part).fit(data.X + 3.0, data.y, sensitive_features=groups)
    pd.testing.assert_frame_equal(moved.results_[names], on_one_part.results_[names], rtol=1e-4)


def test_one_validation_part_brings_bootstrap_errors(on_one_part):
    results = on_one_part.results_
    for metric in ("concordance_index", "concordance_imparity"):
        assert (results[f"{metric}_se"] > 0).all()
        assert (results[f"{metric}_low"] <= results[metric]).all()
        assert (results[metric] <= results[f"{metric}_high"]).all()


def test_one_standard_error_of_any_metric_is_known_on_one_validation_part(data, groups):
    rule = OneStandardError("integrated_brier_score", maximise=False)
    search = GridSearch(
        DROCox(recalibrate=False), {"alpha": [0.3, 1.0]}, cv=0.3, rule=rule, bootstrap=20, random_state=0
    )
    search.fit(data.X, data.y, sensitive_features=groups["side"])
    assert (search.results_["integrated_brier_score_se"] > 0).all()
    assert "within one standard error" in search.choice_.reason
    assert search.results_["plain"].tolist() == [False, False, True]


def test_a_validation_set_of_ones_own_is_what_is_scored(data):
    train, held = np.arange(200), np.arange(200, 300)
    search = GridSearch(CoxPH(), {"l2": [0.0, 0.1]}, cv=[(train, held)], refit=False, bootstrap=0)
    search.fit(data.X, data.y)
    for _, row in search.results_.iterrows():
        model = CoxPH(l2=row["l2"]).fit(data.X.iloc[train], data.y[train])
        assert row["concordance_index"] == pytest.approx(
            c_index(data.y[held], model.predict(data.X.iloc[held]))
        )
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize(
    "estimator",
    [
        CoxPH(l2=0.01, solver="adam", max_iter=5),
        DROCoxSplit(random_state=0, recalibrate=False),
        DROCox(network=MLP(hidden=(3,), max_iter=2), random_state=0, recalibrate=False),
        RegularizedCox("keya_group", max_iter=3, random_state=0),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{getattr(estimator, 'penalty', '')}",
)
def test_every_estimator_has_a_grid_and_is_tuned(estimator, data, groups):
    folds = [(np.arange(200), np.arange(200, 300))]
    search = GridSearch(estimator, cv=folds, bootstrap=5, random_state=0)
    search.fit(data.X, data.y, sensitive_features=groups["side"])
    assert (search.results_["error"] == "").all()
    assert search.results_["concordance_index"].between(0, 1).all()
    chosen = CoxPH if search.results_["plain"].loc[search.best_index_] else type(estimator)
    assert isinstance(search.best_estimator_, chosen)


def test_the_steps_before_the_estimator_see_only_training_patients(data, groups):
    pipeline = Pipeline([("scale", StandardScaler()), ("cox", DROCox(recalibrate=False))])
    search = GridSearch(pipeline, {"alpha": [0.5]}, cv=3, random_state=0)
    search.fit(100 + 5 * data.X, data.y, sensitive_features=groups)
    scores = []
    for train, held in folds_of(data):
        scaler = StandardScaler().fit(data.X.iloc[train])
        model = DROCox(alpha=0.5, recalibrate=False).fit(scaler.transform(data.X.iloc[train]), data.y[train])
        scores.append(c_index(data.y[held], model.predict(scaler.transform(data.X.iloc[held]))))
    assert search.results_["concordance_index"].iloc[0] == pytest.approx(np.mean(scores), abs=1e-6)
    assert isinstance(search.best_estimator_, Pipeline)
    np.testing.assert_allclose(search.predict(data.X), search.best_estimator_.predict(data.X))
    assert search.predict_survival_function(data.X, times=[0.5]).shape == (len(data), 1)


def test_processes_change_nothing(careful, data, groups):
    # Threads stand in for processes, whose start would take longer than all other tests.
    with parallel_config(backend="threading"):
        parallel = clone(careful).set_params(n_jobs=2).fit(data.X, data.y, sensitive_features=groups)
    pd.testing.assert_frame_equal(parallel.results_, careful.results_)


@pytest.mark.parametrize(
    "rule",
    [BestScore("integrated_brier_score", maximise=False), ParetoPoint(minimise="average_disparity")],
    ids=["brier", "pareto"],
)
def test_what_a_rule_reads_is_measured(rule, data, groups):
    search = GridSearch(
        DROCox(recalibrate=False), {"alpha": [0.3, 1.0]}, rule=rule, cv=0.3, bootstrap=0, random_state=0
    )
    results = search.fit(data.X, data.y, sensitive_features=groups).results_
    assert rule.choose(results).index == search.best_index_
    assert results["plain"].tolist() == [False, False, True]
    if isinstance(rule, ParetoPoint):
        thirds = ["individual_disparity", "group_disparity", "intersectional_disparity"]
        np.testing.assert_allclose(results["average_disparity"], results[thirds].mean(axis=1))


def test_without_groups_the_best_c_index_is_chosen(data):
    search = GridSearch(DROCox(recalibrate=False), {"alpha": [0.1, 1.0]}, cv=2, random_state=0).fit(
        data.X, data.y
    )
    assert search.rule_ == BestScore()
    assert search.best_index_ == search.results_["concordance_index"].idxmax()
    assert (type(search.best_estimator_) is CoxPH) == (search.best_index_ == 2)
    assert "group_disparity" not in search.results_


def test_a_setting_that_diverges_is_named_and_not_chosen(adam, data):
    search = GridSearch(adam, {"lr": [1e9, 0.1]}, cv=2, random_state=0).fit(data.X, data.y)
    assert search.best_index_ == search.results_["concordance_index"].idxmax() != 0
    assert "diverged" in search.results_["error"].iloc[0]
    assert search.results_["error"].iloc[1] == ""
    with pytest.raises(ValueError, match="no setting could be trained; the first: training diverged"):
        GridSearch(adam, {"lr": [1e9]}, cv=2).fit(data.X, data.y)


def test_the_plain_model_is_not_recalibrated(data):
    search = GridSearch(DROCox(recalibrate=True), {"alpha": [0.5]}, cv=2, rule=BestScore(), random_state=0)
    same = GridSearch(DROCox(recalibrate=False), {"alpha": [0.5]}, cv=2, rule=BestScore(), random_state=0)
    with_factor, without = (found.fit(data.X, data.y).results_ for found in (search, same))
    pd.testing.assert_series_equal(with_factor.iloc[-1], without.iloc[-1])
    assert with_factor["gain_over_null"].iloc[0] != without["gain_over_null"].iloc[0]


def test_an_unregularised_model_that_cannot_be_trained_is_named(adam, data, monkeypatch):
    monkeypatch.setattr(CoxPH, "predict", lambda self, X: np.full(len(X), 1e9))
    with pytest.raises(ValueError, match=r"unregularised model could not be trained.*diverged"):
        GridSearch(adam, {"alpha": [0.5]}, cv=2).fit(data.X, data.y)


def test_a_fold_without_a_group_is_named_where_the_rule_needs_it(data):
    groups = np.where(np.arange(len(data)) < 3, "rare", "common")
    folds = [(np.arange(100, 300), np.arange(100)), (np.arange(200), np.arange(200, 300))]
    search = GridSearch(DROCox(recalibrate=False), {"alpha": [0.5]}, cv=folds, min_group=1, min_events=1)
    with pytest.raises(ValueError, match="a validation set has no patients or events of a group"):
        search.fit(data.X, data.y, sensitive_features=groups)
    tuned = GridSearch(
        DROCox(recalibrate=False), {"alpha": [0.5]}, cv=folds, rule=BestScore(), min_group=1, min_events=1
    )
    results = tuned.fit(data.X, data.y, sensitive_features=groups).results_
    for name in ("group_disparity", "intersectional_disparity", "concordance_imparity"):
        assert results[name].isna().all()


def test_groups_too_small_to_be_judged_are_left_out_of_the_disparities(data, groups):
    side = groups["side"].astype(object).to_numpy()
    few = np.where(np.arange(len(data)) < 20, "few", side)
    search = GridSearch(DROCox(recalibrate=False), {"alpha": [0.5]}, cv=3, random_state=0)
    with pytest.warns(SmallGroupWarning, match=r"side few: 20 patients.*fewer than 50.*left out"):
        search.fit(data.X, data.y, sensitive_features={"side": few})
    expected = []
    for train, held in folds_of(data):
        model = DROCox(alpha=0.5, recalibrate=False).fit(data.X.iloc[train], data.y[train])
        large = held[few[held] != "few"]
        expected.append(concordance_imparity(data.y[large], model.predict(data.X.iloc[large]), few[large]))
    assert search.results_["concordance_imparity"].iloc[0] == pytest.approx(np.mean(expected), abs=1e-6)
    # With nothing left to compare, the best c-index decides.
    rare = np.where(np.arange(len(data)) < 20, "few", "others")
    with pytest.warns(SmallGroupWarning):
        search.fit(data.X, data.y, sensitive_features=rare)
    assert search.rule_ == BestScore()
    with pytest.warns(SmallGroupWarning), pytest.raises(ValueError, match="no two with at least 50 patients"):
        search.set_params(rule=CarefulBudget()).fit(data.X, data.y, sensitive_features=rare)


def test_parameters_round_trip_and_nothing_happens_before_fit(adam):
    search = GridSearch(adam, {"alpha": [0.1]}, cv=4, rule=FixedSetting({"alpha": 0.1}))
    copy = clone(search)
    assert copy.get_params()["estimator__max_iter"] == 12
    assert copy.get_params()["cv"] == 4
    assert copy.rule == search.rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": AccuracyBudget()}, "concordance_imparity compares groups: pass sensitive_features"),
        ({"metrics": ["accuracy"]}, "'accuracy' is not a metric that a search can compute"),
        ({"grid": {"alpha": 0.2}}, r"grid\['alpha'\] must be a list"),
        ({"grid": {}}, "grid contains no setting"),
        ({"grid": {"beta": [1]}}, "Invalid parameter 'beta'"),
        ({"cv": 1}, "cv must be between 2 and"),
        (
            {"rule": BestScore("integrated_brier_score")},
            "lower values of it are better, but the rule prefers higher",
        ),
        (
            {"rule": AccuracyBudget("integrated_brier_score")},
            "metric='integrated_brier_score': lower values",
        ),
        ({"rule": ParetoPoint(minimise="dynamic_auc")}, "minimise='dynamic_auc': higher values"),
        ({"rule": OneStandardError(maximise=False)}, "metric='concordance_index': higher values"),
        ({"cv": 1.5}, "cv=1.5 as a share"),
        ({"cv": None}, "cv must be a number of folds, .* got None"),
        ({"cv": "five"}, "cv must be a number of folds, .* got 'five'"),
        ({"rule": "careful"}, r"rule must be a rule such as CarefulBudget\(\), .* got 'careful'"),
        ({"bootstrap": "x"}, "bootstrap must be a whole number, 0 for none, got 'x'"),
        ({"min_group": "x"}, "min_group must be a number that is not negative, got 'x'"),
        ({"grid": "alpha"}, "grid must name parameters and lists of values, .* got 'alpha'"),
        ({"grid": 2}, "grid must name parameters and lists of values, .* got 2"),
        ({"metrics": 2}, "metrics must be a list of metrics' names, or None, got 2"),
        ({"n_jobs": "x"}, "n_jobs must be a whole number other than 0, or None, got 'x'"),
        ({"random_state": "x"}, "random_state must be a whole number that is not negative, .* got 'x'"),
        ({"metrics": ["concordance_indx"]}, r"Did you mean 'concordance_index'\?"),
    ],
)
def test_bad_input_is_refused_with_the_remedy(options, message, data):
    with pytest.raises(ValueError, match=message):
        GridSearch(DROCox(), **{"grid": {"alpha": [0.5]}, "cv": 2, **options}).fit(data.X, data.y)


def test_sensitive_features_of_other_patients_are_refused(data):
    with pytest.raises(ValueError, match="10 labels for 300 patients"):
        GridSearch(DROCox()).fit(data.X, data.y, sensitive_features=["a"] * 10)
    with pytest.raises(ValueError, match="an attribute called 'overall'"):
        GridSearch(DROCox()).fit(data.X, data.y, sensitive_features={"overall": ["a", "b"] * 150})
    with pytest.raises(ValueError, match="at least 2 groups, got 1"):
        GridSearch(DROCox()).fit(data.X, data.y, sensitive_features={"sex": ["a"] * 300})


def test_only_our_estimators_are_tuned(data):
    with pytest.raises(TypeError, match="got StandardScaler"):
        GridSearch(StandardScaler(), {"with_mean": [True]}).fit(data.X, data.y)


def test_predicting_before_searching_is_an_error(data):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        GridSearch(DROCox()).predict(data.X)


@pytest.mark.parametrize("fixture", ["careful", "on_one_part"])
def test_the_plain_model_is_a_candidate_and_is_compared_on_the_same_patients(fixture, data, request):
    search = request.getfixturevalue(fixture)
    table = search.results_
    assert isinstance(search.rule_, CarefulBudget)
    assert table["plain"].tolist() == [False, False, True]
    assert table.loc[2, "concordance_index"] == search.reference_["concordance_index"]
    difference = table["concordance_imparity"] - table.loc[2, "concordance_imparity"]
    np.testing.assert_allclose(table["concordance_imparity_difference"], difference, atol=1e-12)
    assert (table["concordance_imparity_difference_se"][:2] > 0).all()
    for told in ("concordance imparity", "c-index", "likelihood gain"):
        assert told in search.choice_.reason
    if search.best_params_ == {}:
        plain = CoxPH().fit(data.X, data.y)
        np.testing.assert_allclose(search.predict(data.X), plain.predict(data.X), atol=1e-6)


def test_the_plain_models_row_is_not_rounded_to_the_grids_whole_numbers(data):
    search = GridSearch(
        DROCox(recalibrate=False), {"lr": [1, 2]}, cv=2, rule=BestScore(), refit=False, random_state=0
    )
    assert search.fit(data.X, data.y).results_["lr"].tolist() == [1, 2, CoxPH().lr]


def test_paired_differences_of_folds_have_the_standard_error_of_their_mean(careful, data, groups):
    plain = GridSearch(CoxPH(), {"l2": [0.0]}, cv=3, rule=BestScore(), random_state=0, refit=False)
    plain.fit(data.X, data.y, sensitive_features=groups)
    by_fold = [table.fold_results_["concordance_imparity"].to_numpy() for table in (careful, plain)]
    difference = by_fold[0][:3] - by_fold[1]
    row = careful.results_.iloc[0]
    assert row["concordance_imparity_difference"] == pytest.approx(difference.mean(), abs=1e-9)
    expected = difference.std(ddof=1) / np.sqrt(3)
    assert row["concordance_imparity_difference_se"] == pytest.approx(expected, abs=1e-9)


def test_noise_does_not_buy_a_model_that_says_less(data):
    """Labels at random: no setting is fairer than plain Cox, and a timid one must not be chosen for it."""
    chosen = []
    for seed in range(2):
        labels = np.random.default_rng(seed).choice(["a", "b"], len(data))
        search = GridSearch(
            DROCox(recalibrate=False), {"alpha": [0.1, 0.3]}, cv=2, random_state=seed, refit=False
        )
        search.fit(data.X, data.y, sensitive_features=labels)
        row, plain = search.results_.loc[search.best_index_], search.results_.iloc[-1]
        chosen.append(search.best_params_ == {})
        assert row["gain_over_null"] >= 0.9 * plain["gain_over_null"] - 1e-12
    assert sum(chosen) == 2


@pytest.mark.parametrize(
    "estimator",
    [
        SubgroupRobustCox(n_trees=3, min_group=20, random_state=0, recalibrate=False),
        GroupDROCox(recalibrate=False),
    ],
)
def test_estimators_that_train_alone_are_tuned_by_their_own_curves(data, groups, estimator):
    train, held = np.arange(200), np.arange(200, 300)
    rule = BestScore("integrated_brier_score", maximise=False)
    search = GridSearch(estimator, {"alpha": [0.3, 0.5]}, cv=[(train, held)], rule=rule, bootstrap=0)
    search.fit(data.X, data.y, sensitive_features=groups["side"])
    assert (search.results_["error"] == "").all()
    own = {"sensitive_features": groups["side"].iloc[train]} if isinstance(estimator, GroupDROCox) else {}
    model = clone(estimator).set_params(alpha=0.3).fit(data.X.iloc[train], data.y[train], **own)
    curves = model.predict_survival_function(data.X.iloc[held])
    expected = integrated_brier_score(data.y[train], data.y[held], curves)
    assert search.results_["integrated_brier_score"].iloc[0] == pytest.approx(expected, rel=1e-9)


def test_rows_of_one_patient_stay_together(data):
    owners = np.arange(len(data)) // 3
    search = GridSearch(CoxPH(), {"l2": [0.0, 0.1]}, cv=3, random_state=0, refit=False)
    search.fit(data.X, data.y, groups=owners)
    assert len(search.results_) == 2
    straddling = [(np.arange(200), np.arange(200, 300)), (np.arange(100, 300), np.arange(101))]
    with pytest.raises(ValueError, match="fold 0 of cv has rows of patient 28 in both"):
        GridSearch(CoxPH(), {"l2": [0.0]}, cv=straddling).fit(data.X, data.y, groups=np.arange(300) // 7)


def test_a_search_measures_whatever_the_catalogue_holds(data, groups):
    names = [name for name, metric in CATALOGUE.items() if metric.of != "groups" and name != "share_of_gain"]
    search = GridSearch(
        DROCox(recalibrate=False), {"alpha": [0.5]}, cv=0.4, metrics=names, bootstrap=0, rule=BestScore()
    )
    search.fit(data.X, data.y, sensitive_features=groups)
    assert search.results_[names].notna().all(axis=None)
