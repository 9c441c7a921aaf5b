"""The group table: observed against expected events, survival at the horizon, gains, and what is judged."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.exceptions import UndefinedMetricWarning

from drosurv import CoxPH, Surv, evaluate
from drosurv.datasets import make_hidden_minority
from drosurv.errors import ArgumentError
from drosurv.evaluation import Predictions
from drosurv.evaluation.evaluate import evaluate_rows, prepare
from drosurv.evaluation.group_table import group_table
from drosurv.judging.judged import Horizon
from drosurv.judging.verdict import PROBLEMS
from drosurv.metrics import concordance_index
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.observation import Inference, Rows
from drosurv.patients.target import parse_target
from drosurv.predictions import as_predictions


def simulated(n, rng, *, wrong=1.0, censoring=0.7):
    """Exponential times with known hazards, predicted exactly but for a factor in group "b"."""
    x, group = rng.normal(size=n), rng.choice(["a", "b"], n, p=[0.7, 0.3])
    rate = np.exp(0.8 * x)
    died, left = rng.exponential(1 / rate), rng.exponential(1 / np.broadcast_to(censoring, n))
    y = Surv.from_arrays(died <= left, np.minimum(died, left))
    times = np.unique(y["time"])
    predicted = rate * np.where(group == "b", wrong, 1.0)
    survival = np.exp(-predicted[:, None] * times)
    return Predictions(np.log(predicted), survival, times), y, group


@pytest.fixture(scope="module")
def fitted():
    train, test = make_hidden_minority(600, random_state=0), make_hidden_minority(600, random_state=1)
    model = CoxPH(l2=0.05).fit(train.X, train.y)
    mask = (test.X.iloc[:, 0] > 0).to_numpy()
    result = evaluate(
        model,
        test.X,
        test.y,
        y_train=train.y,
        X_train=train.X,
        sensitive_features=test.sensitive_features,
        subgroups={"x > 0": mask},
    )
    return train, test, model, result, mask


def rows_of(row, test, mask):
    if row.attribute == "overall":
        return np.ones(len(test.y), bool)
    if row.attribute == "subgroup":
        return mask
    return (test.sensitive_features[row.attribute].astype(str) == row.group).to_numpy()


def test_every_column_follows_its_definition(fitted):
    train, test, model, result, mask = fitted
    cox = CoxPH().fit(train.X, train.y)
    gains, plain = (
        likelihood_gains(train.y, test.y, one.predict_survival_function(test.X, return_array=False))
        for one in (model, cox)
    )
    jumps = model.unique_times_
    hazard = np.diff(-np.log(model.predict_survival_function(test.X, times=jumps)), axis=1, prepend=0.0)
    hazards = (hazard * (jumps <= test.y["time"][:, None])).sum(axis=1)
    assert len(result.groups) == 4
    for row in result.groups.itertuples():
        own = rows_of(row, test, mask)
        target = parse_target(test.y[own])
        assert row.patients == own.sum()
        counted = test.y["event"] & (test.y["time"] <= train.y["time"].max())
        assert row.observed == counted[own].sum()
        assert row.expected == pytest.approx(hazards[own].sum())
        assert row.ratio == pytest.approx(row.observed / row.expected)
        assert row.horizon == result.settings.horizon
        survival = model.predict_survival_function(test.X[own], times=[row.horizon])[:, 0]
        risk = ObservedRisk.of(target, 1 - survival, row.horizon)
        assert row.survival_predicted == pytest.approx(1 - risk.predicted)
        assert row.survival_observed == pytest.approx(1 - risk.observed.value)
        shown = result.times[result.times["time"] == row.horizon].set_index("group").loc[row.group]
        assert row.survival_observed == 1 - shown["observed"]
        assert row.survival_predicted == 1 - shown["predicted"]
        assert row.c_index == pytest.approx(concordance_index(test.y[own], model.predict(test.X[own])))
        # Other likelihoods of the same curves: the metric takes the last interval, of few patients, as a whole.
        assert row.gain == pytest.approx(gains[own].mean(), abs=2e-2)
        assert row.gain_over_reference == pytest.approx((gains - plain)[own].mean(), abs=2e-2)


def test_events_and_survival_at_one_predicted_time_agree():
    model, y, group = simulated(400, np.random.default_rng(1), wrong=0.5)
    survival = np.exp(-np.exp(model.risk)[:, None] * 0.6)
    groups = evaluate(([0.6], survival), None, y, sensitive_features=group).groups
    np.testing.assert_allclose(groups["expected"] / groups["patients"], 1 - groups["survival_predicted"])
    # Tested events allow for censoring that depends on risk inside of a stratum.
    shown = 1 - groups["survival_observed"]
    np.testing.assert_allclose(groups["observed"] / groups["patients"], shown, rtol=0, atol=0.005)
    curve = KaplanMeier.of(parse_target(y)).at(np.array([0.6]))[0]
    assert groups["survival_observed"][0] == pytest.approx(curve, abs=0.01)


def test_ratio_has_the_interval_of_the_likelihood_ratio_of_all_tests_together():
    model, y, group = simulated(400, np.random.default_rng(0))
    found = evaluate(model, None, y, sensitive_features=group)
    n_questions = found.findings["question"].nunique()
    assert found.settings.n_tests == len(found.findings) == n_questions * len(found.groups)
    # Three quarters of the error rate are of everybody: number of events, slope, timing (a quarter), gain (one side).
    assert 1 / 0.75 < found.settings.as_many_tests <= (1 + 1 + 0.25 + 0.5) / 0.75
    bound = norm.isf(0.05 / found.settings.as_many_tests / 2) ** 2
    hazards = np.exp(model.risk) * y["time"]
    for row in found.groups[:1].itertuples():
        own = (group == row.group) | (row.attribute == "overall")
        # The variance is that of Poisson counts, or that of the observed events if it is larger by more than chance.
        beyond = ((y["event"] - row.ratio * hazards) ** 2 - row.ratio * hazards)[own]
        dispersion = 1 + max(beyond.sum() - (beyond**2).sum() / max(beyond.sum(), 1e-9), 0.0) / row.observed
        for ratio in (row.ratio_low, row.ratio_high):
            mean = ratio * row.expected
            deviance = 2 * (row.observed * np.log(row.observed / mean) - (row.observed - mean))
            # Events at the times of the table have a little less than the variance of Poisson counts.
            assert deviance == pytest.approx(bound * dispersion, rel=0.04)


def test_interval_contains_the_error_of_training_where_training_patients_are_known():
    model, y, group = simulated(400, np.random.default_rng(0))
    known = evaluate(model, None, y, y_train=y[:100], sensitive_features=group).groups.iloc[0]
    alone = evaluate(model, None, y, sensitive_features=group).groups.iloc[0]
    # Variances of the logarithms of two Poisson counts add up.
    widths = [np.log(row["ratio_high"] / row["ratio_low"]) for row in (known, alone)]
    events = alone["observed"], y["event"][:100].sum()
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(1 + events[0] / events[1]), rel=0.1)


@pytest.mark.parametrize("wrong", [1.0, 1.6, 0.6])
def test_intervals_and_p_values_agree(wrong):
    model, y, group = simulated(300, np.random.default_rng(1), wrong=wrong)
    table = evaluate(model, None, y, sensitive_features=group).groups
    assert ((table["ratio_p"] < 0.05) == ((table["ratio_low"] > 1) | (table["ratio_high"] < 1))).all()
    assert ((table["gain_p"] < 0.05) == ((table["gain_low"] > 0) | (table["gain_high"] < 0))).all()
    assert ((table["slope_p"] < 0.05) == ((table["slope_low"] > 1) | (table["slope_high"] < 1))).all()


def test_wrong_group_comes_first_and_everybody_on_top():
    model, y, group = simulated(900, np.random.default_rng(2), wrong=2.0)
    table = evaluate(model, None, y, sensitive_features=group).groups
    assert table[["attribute", "group"]].iloc[0].tolist() == ["overall", "all"]
    assert table["group"].iloc[1] == "b"
    assert table["status"].iloc[1] == "miscalibrated"
    assert table["ratio"].iloc[1] == pytest.approx(0.5, abs=0.1)
    assert table.set_index("group")["status"]["a"] == "clear"


def test_right_model_is_seldom_called_wrong():
    rng = np.random.default_rng(3)
    found = [
        group_table(
            prepare(
                as_predictions(model, None, len(y)), y, y_train=None, sensitive_features=group, wanted=()
            ),
            (),
            Horizon(),
            Inference(),
        )
        .table["status"]
        .isin(PROBLEMS)
        .any()
        for model, y, group in (simulated(250, rng) for _ in range(12))
    ]
    # A rate of 5 % gives more than 3 of 12 in one of five hundred cases.
    assert sum(found) <= 3


@pytest.mark.filterwarnings("ignore::drosurv.evaluation.SmallGroupWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_few_expected_events_are_not_judged():
    model, y, group = simulated(600, np.random.default_rng(4))
    rare = group.astype(object)
    rare[:27] = "rare"
    y["event"][:27] = False
    table = evaluate(model, None, y, sensitive_features=rare).groups.set_index("group")
    assert not table["judged"]["rare"]
    assert table["why"]["rare"] == "fewer than 50 patients"
    assert np.isnan(table["ratio_p"]["rare"])
    assert table["status"]["rare"] == "too_few"
    assert table.index[-1] == "rare"


@pytest.mark.filterwarnings("ignore::drosurv.evaluation.SmallGroupWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_many_events_where_few_were_expected_are_judged():
    """As the infants of the Wilms tumour study: 23 events where 8 were expected."""
    n, times = 400, np.linspace(0.1, 1.0, 10)
    group = np.where(np.arange(n) < 100, "infants", "others")
    time = np.ones(n)
    event = (np.arange(n) < 23) | ((np.arange(n) >= 100) & (np.arange(n) % 4 == 0))
    hazard = np.where(group == "infants", 0.08, 0.25)
    model = Predictions(np.log(hazard), np.exp(-np.outer(hazard, times)), times)
    y = Surv.from_arrays(event, time)
    inference = Inference(searched=True)
    found = evaluate_rows(model, None, y, Rows(), inference, Horizon(), sensitive_features=group)
    table = found.groups.set_index("group")
    assert table["expected"]["infants"] < 10
    assert table["judged"]["infants"]
    assert table["status"]["infants"] == "miscalibrated"
    assert found.settings.n_tests == len(found.findings)
    assert table["ratio_p"]["infants"] < 0.01


def test_events_after_the_last_predicted_time_are_not_counted():
    model, y, _ = simulated(500, np.random.default_rng(5))
    end = float(np.median(y["time"]))
    kept = model.times <= end
    short = Predictions(model.risk, model.survival[:, kept], model.times[kept])
    everybody = evaluate(short, None, y).groups.iloc[0]
    assert everybody["observed"] == (y["event"] & (y["time"] <= end)).sum()
    assert everybody["status"] not in PROBLEMS


def test_given_horizon_is_used():
    model, y, group = simulated(300, np.random.default_rng(7))
    found = evaluate(model, None, y, sensitive_features=group, horizon=0.4)
    assert set(found.groups["horizon"]) == {0.4}
    assert 0.4 in set(found.calibration["horizon"])
    with pytest.raises(ArgumentError, match="horizon"):
        evaluate(model, None, y, horizon=-1.0)


def test_risk_scores_alone_are_not_judged():
    model, y, group = simulated(300, np.random.default_rng(8))
    table = evaluate(model.risk, None, y, sensitive_features=group).groups
    assert set(table["why"]) == {"no survival curves"}
    assert table["c_index"].notna().all()


def test_groups_are_part_of_the_dictionary(fitted):
    *_, result, _ = fitted
    assert pd.DataFrame(result.to_dict()["groups"])["patients"].tolist() == result.groups["patients"].tolist()


def test_decisions_are_those_at_the_threshold_by_group(fitted):
    model, y, group = simulated(500, np.random.default_rng(10))
    result = evaluate(model, None, y, sensitive_features=group, horizon=0.5, threshold=0.4)
    found = result.decisions.set_index(["attribute", "group", "metric"])
    risk = 1 - np.exp(-0.5 * np.exp(model.risk))
    for name, rows in {("overall", "all"): group != "", ("sensitive_feature", "a"): group == "a"}.items():
        positive = parse_target(y[rows & (risk >= 0.4)])
        expected = 1 - KaplanMeier.of(positive).at(np.array([0.5]))[0]
        assert found.loc[(*name, "ppv"), "value"] == pytest.approx(expected, abs=0.02)
        assert found.loc[(*name, "ppv"), "low"] < found.loc[(*name, "ppv"), "high"]
        # Net benefit is that of the decision curves.
        curve = result.decision_curves.query("threshold == 0.4").set_index(["attribute", "group"]).loc[name]
        benefit = found.loc[(*name, "net_benefit")]
        assert (benefit["value"], benefit["low"]) == (curve["net_benefit"], curve["low"])
    gaps = found.xs("gap", level="group")["value"]
    of_groups = result.decisions.query("attribute != 'overall' and group != 'gap'").groupby("metric")["value"]
    assert gaps.droplevel("attribute").to_dict() == pytest.approx(
        (of_groups.max() - of_groups.min()).to_dict()
    )
    *_, without_threshold, _ = fitted
    assert without_threshold.decisions is None


def test_right_model_of_groups_with_different_follow_up_has_no_gaps():
    rng, found = np.random.default_rng(11), []
    for _ in range(6):
        site = rng.choice(["short", "long"], 400)
        model, y, _ = simulated(400, rng, censoring=np.where(site == "short", 2.0, 0.2))
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            result = evaluate(model, None, y, sensitive_features=site)
        assert any("follow-up differs between groups" in note for note in result.notes)
        table = result.table.set_index(["kind", "metric"]).sort_index()
        # Gaps that depend on how long groups were followed are not tested.
        assert np.isnan(table.loc[("gap", "likelihood_gain"), "p"]).all()
        assert np.isnan(table.loc[("gap", "concordance_index"), "p"]).all()
        problem = result.groups["status"].isin(PROBLEMS).any()
        found.append([table.loc[("gap", "uno_concordance"), "p"].item() < 0.05, problem])
    # A rate of 5 % gives more than 2 of 6 in two of a thousand cases.
    assert (np.sum(found, axis=0) <= 2).all()


def test_equal_follow_up_is_not_noted():
    model, y, group = simulated(600, np.random.default_rng(12))
    notes = evaluate(model, None, y, sensitive_features=group).notes
    assert not any("follow-up differs" in note for note in notes)
