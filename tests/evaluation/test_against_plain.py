from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv.curves import parse_survival
from drosurv.estimators import CoxPH
from drosurv.evaluation import Predictions, against_plain, beside
from drosurv.metrics import FollowUp, concordance_index, integrated_brier_score, likelihood_gains
from drosurv.target import Surv, parse_target


def cohort(seed, n=500):
    """The first feature works the other way round in site b, whom plain Cox therefore serves badly."""
    rng = np.random.default_rng(seed)
    site = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n), site == "b"])
    X = np.column_stack([X, X[:, 0] * X[:, 2]])
    log_risk = np.where(site == "a", 1.0, -1.0) * X[:, 0] + 0.5 * X[:, 1]
    time = rng.exponential(np.exp(-log_risk))
    censoring = rng.exponential(2.0, n)
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring)), pd.Series(site, name="site")


@pytest.fixture(scope="module")
def train():
    return cohort(0)


@pytest.fixture(scope="module")
def held_out():
    return cohort(1)


class OnlySome:
    """Cox on all columns, beside plain Cox that is given only the first three by `against_plain`."""

    def __init__(self, X, y):
        self.model = CoxPH().fit(X, y)

    def _with_product(self, X):
        return np.column_stack([X, X[:, 0] * X[:, 2]])

    def predict(self, X):
        return self.model.predict(self._with_product(X))

    def predict_survival_function(self, X, return_array=False, times=None):
        return self.model.predict_survival_function(self._with_product(X), return_array, times)


@pytest.fixture(scope="module")
def timid(train, held_out):
    """A model with a strong ridge, and its comparison with plain Cox."""
    (X, y, _), (X_test, y_test, site) = train, held_out
    model = CoxPH(l2=5.0).fit(X, y)
    return model, against_plain(model, X, y, X_test, y_test, site, n_bootstrap=30)


def test_a_timid_model_is_dominated_and_its_slope_is_far_from_one(timid):
    _, found = timid
    assert found.dominated
    assert "everybody" in found.worse
    assert found.slope_is_far
    assert found.slope > 1.5
    told = {statement.code: statement for statement in found.statements}
    assert told["dominated"].concern
    assert "use plain Cox" in told["dominated"].text
    assert "understated" in told["slope"].text
    assert f"({found.slope_low:.3f} to {found.slope_high:.3f}; plain Cox: " in told["slope"].text
    assert "probabilities without recalibrating." in told["slope"].text


def test_no_advice_to_recalibrate_a_recalibrated_model(train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    # Features a tenth as wide among those judged: their risks are too near to each other whatever training did.
    model = CoxPH(recalibrate=True).fit(X, y)
    found = against_plain(model, X, y, X_test / 10, y_test, site, n_bootstrap=20)
    assert found.slope > 5
    slope = found.statements[1].text
    assert "It was recalibrated in training already" in slope
    assert "without recalibrating" not in slope
    assert "or these patients differ from the training patients (recalibrate on patients like these)" in slope
    too_bold = replace(found, slope=0.4, slope_low=0.2, slope_high=0.6).statements[1].text
    assert "(more patients, fewer columns or a penalty would help)" in too_bold


def test_a_model_that_sees_the_group_is_better_for_it(train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    found = against_plain(OnlySome(X, y), X[:, :3], y, X_test[:, :3], y_test, site, n_bootstrap=30)
    assert "site b" in found.better
    assert not found.dominated
    assert not found.slope_is_far
    assert "site b" in str(found)


def test_plain_cox_is_like_itself(train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    model = make_pipeline(StandardScaler(), CoxPH()).fit(X, y)
    found = against_plain(model, X, y, X_test, y_test, site, n_bootstrap=20)
    np.testing.assert_allclose(found.table["difference"], 0, atol=1e-6)
    assert (found.better, found.worse, found.dominated) == ((), (), False)
    assert str(found) == "The model predicts the same as plain Cox."


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(0)], ids=["none", "generator"])
def test_both_models_are_drawn_on_the_same_patients_whatever_the_seed(train, held_out, random_state):
    (X, y, _), (X_test, y_test, _) = train, held_out
    model = CoxPH().fit(X, y), X_test
    found = beside(model, model, y_test, y_train=y, n_bootstrap=10, random_state=random_state)
    np.testing.assert_array_equal(found.table[["low", "high"]], 0.0)
    with pytest.raises(ValueError, match="n_bootstrap must be 0 or a whole number from 2, got -3"):
        beside(model, model, y_test, y_train=y, n_bootstrap=-3)


def test_a_difference_that_is_rounded_away_is_none_even_if_significant(train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    plain, timid = CoxPH().fit(X, y), CoxPH(l2=5.0).fit(X, y)
    times, risk = plain.unique_times_, plain.predict(X_test)
    better, curves = (model.predict_survival_function(X_test, times=times) for model in (plain, timid))
    almost = Predictions(risk, 0.9999 * curves + 0.0001 * better, times)
    same = Predictions(risk, curves, times)
    found = beside((almost, None), (same, None), y_test, site, y_train=y, n_bootstrap=30)
    assert (found.table["low"] > 0).any()
    assert (found.better, found.worse, found.dominated) == ((), (), False)


def test_values_are_those_of_the_metrics(timid, train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    model, found = timid
    table = found.table.set_index(["group", "metric"])
    plain = CoxPH().fit(X, y)
    rows = (site == "b").to_numpy()
    for name, one in (("model", model), ("plain", plain)):
        assert table.loc[("b", "concordance_index"), name] == pytest.approx(
            concordance_index(y_test[rows], one.predict(X_test[rows]))
        )
        assert table.loc[("all", "integrated_brier_score"), name] == pytest.approx(
            integrated_brier_score(y, y_test, one.predict_survival_function(X_test))
        )
    # Less is better in the Brier score, and the difference is turned round.
    row = table.loc[("all", "integrated_brier_score")]
    assert row["difference"] == pytest.approx(row["plain"] - row["model"])


def test_scores_without_curves_are_compared_by_order(train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    found = against_plain(Predictions(np.zeros(len(y_test))), X, y, X_test, y_test, site, n_bootstrap=20)
    assert set(found.table["metric"]) == {"concordance_index"}
    assert found.dominated


def test_intervals_are_those_of_paired_means_and_hold_together(train, held_out):
    (X, y, _), (X_test, y_test, site) = train, held_out
    model, plain = CoxPH(l2=0.3).fit(X, y), CoxPH().fit(X, y)
    few = np.where(np.arange(len(site)) < 20, "few", site)
    found = beside((model, X_test), (plain, X_test), y_test, {"site": few}, y_train=y, n_bootstrap=80)
    # Twenty patients are too few: three metrics of everybody and of two groups are judged together.
    assert len(found.table) == 9
    assert found.served("site", "few") == "too few"
    target = parse_target(y_test)
    ours, theirs = (
        likelihood_gains(
            FollowUp.parse(parse_target(y)),
            target,
            parse_survival(one.predict_survival_function(X_test), len(target)),
        )
        for one in (model, plain)
    )
    rows = found.table[found.table["metric"] == "likelihood_gain"].set_index("group")
    for group, members in (("all", slice(None)), ("a", few == "a"), ("b", few == "b")):
        paired = (ours - theirs)[members]
        expected = stats.norm.interval(1 - 0.05 / 9, paired.mean(), stats.sem(paired))
        width = expected[1] - expected[0]
        np.testing.assert_allclose(
            rows.loc[group, ["low", "high"]].astype(float), expected, atol=0.15 * width
        )
        assert rows.loc[group, "difference"] == pytest.approx(paired.mean())


def test_a_group_that_is_worse_in_anything_is_served_worse(timid):
    _, found = timid
    assert found.served("overall", "all") == "worse"
    assert {f"site {group}" for group in "ab" if found.served("site", group) == "worse"} <= set(found.worse)


@pytest.mark.filterwarnings("ignore")
def test_without_a_comparable_pair_nothing_is_claimed(train):
    _, y, _ = train
    tied = Surv.from_arrays([True, True], [1.0, 1.0])
    found = beside(
        (Predictions([0.0, 1.0]), None), (Predictions([1.0, 0.0]), None), tied, y_train=y, n_bootstrap=5
    )
    assert found.table.empty
    assert not found.dominated
    assert found.served("overall", "all") == "too few"
    assert "cannot be compared" in str(found)


def test_a_finished_search_is_its_best_model(train, held_out):
    (X, y, _), (X_test, y_test, _) = train, held_out
    pipeline = make_pipeline(StandardScaler(), CoxPH(ties="efron"))
    search = GridSearchCV(pipeline, {"coxph__recalibrate": [True]}, cv=2).fit(X, y)
    found, wanted = (
        against_plain(model, X, y, X_test, y_test, n_bootstrap=0)
        for model in (search, search.best_estimator_)
    )
    assert found.recalibrated
    pd.testing.assert_frame_equal(found.table, wanted.table)
