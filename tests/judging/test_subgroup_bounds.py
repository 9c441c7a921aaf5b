import json
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sksurv.metrics import brier_score

from drosurv import CoxPH, Surv, audit, certify, evaluate
from drosurv.curves import parse_survival
from drosurv.datasets import make_hidden_minority
from drosurv.errors import ArgumentWarning
from drosurv.evaluation import Predictions
from drosurv.judging import certification, drawn_events
from drosurv.judging.certification import brier_losses
from drosurv.judging.drawn_events import PatientEvents, censoring_times
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.rules import readable_table
from drosurv.judging.simultaneous_tests import (
    LEAST,
    MOST,
    _p_values,
    _ratio_at,
    judged_subgroups,
    signed_root_deviance,
)
from drosurv.judging.subgroup_bounds import BRIER, GAIN, SubgroupBounds
from drosurv.patients.observation import Rows
from drosurv.patients.target import Target, parse_target, with_fields
from drosurv.predictions import as_predictions
from drosurv.repairs.expected import expected_of_frozen

GRID = np.linspace(0.01, 3, 300)


def patients(n=600, seed=0, ratio=1.0):
    """Exponential times; patients with b > 0.5 have `ratio` times the hazard that is predicted."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "flag": rng.integers(0, 2, n)})
    rate = np.exp(0.5 * X["a"].to_numpy())
    time = rng.exponential(size=n) / rate / np.where(X["b"] > 0.5, ratio, 1.0)
    end = np.minimum(rng.exponential(2.0, size=n), 3.0)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return X, y, Predictions(survival=np.exp(-np.outer(rate, GRID)), times=GRID)


@pytest.fixture(scope="module")
def twice():
    X, y, predictions = patients(1000, ratio=2.0)
    return X, y, certify(predictions, X, y, n_bootstrap=99)


def test_a_subgroup_with_twice_the_events_is_significant_and_named_and_not_called_wrong_in_time(twice):
    X, y, found = twice
    top = found.significant.iloc[0]
    assert set(found.significant["question"]) == {"level"}
    assert top["events"] == top["observed"]
    assert str(top["group"]).startswith("b > ")
    inside = found.rules[0].holds(X)
    assert top["patients"] == inside.sum()
    assert top["observed"] == y["event"][inside].sum()
    assert top["ratio"] == pytest.approx(top["observed"] / top["expected"])
    assert found.bounds.loc["observed/expected, most", "bound"] > 2.0
    assert "significantly" in found.summary()


def early_events(n=2000, seed=0):
    """Patients with b > 0.5 have 1.6 times the predicted hazard until time 0.4, and 0.5 times after."""
    X, _, predictions = patients(n, seed)
    rng = np.random.default_rng([seed, 1])
    rate, inside = np.exp(0.5 * X["a"].to_numpy()), (X["b"] > 0.5).to_numpy()
    early, late = np.where(inside, 1.6, 1.0) * rate, np.where(inside, 0.5, 1.0) * rate
    unit = rng.exponential(size=n)
    time = np.where(unit < 0.4 * early, unit / early, 0.4 + (unit - 0.4 * early) / late)
    end = np.minimum(rng.exponential(2.0, size=n), 3.0)
    return X, Surv.from_arrays(time <= end, np.minimum(time, end)), predictions


def test_a_subgroup_whose_events_come_early_is_found_though_their_number_is_right():
    X, y, predictions = early_events()
    inside = (X["b"] > 0.5).to_numpy()
    expected = np.exp(0.5 * X["a"].to_numpy()) * y["time"]
    assert y["event"][inside].sum() == pytest.approx(expected[inside].sum(), rel=0.1)
    found = certify(predictions, X, y, n_bootstrap=99)
    top = found.significant.iloc[0]
    assert top["question"] == "timing"
    assert "b > 0.5" in str(top["group"])
    assert set(found.significant["question"]) == {"timing"}
    # Checked by counting: events of the part, and the model's share of the events of the subgroup.
    member = found.rules[0].holds(X)
    since, until = top["since"], np.inf if np.isnan(top["until"]) else top["until"]
    during = member & y["event"] & (y["time"] > since) & (y["time"] <= until)
    assert top["observed"] == during.sum()
    assert top["events"] == (member & y["event"]).sum()
    hazard = np.exp(0.5 * X["a"].to_numpy()) * (np.minimum(y["time"], until) - np.minimum(y["time"], since))
    share = hazard[member].sum() / expected[member].sum()
    assert top["expected"] == pytest.approx(share * top["events"], rel=0.02)
    assert f"of their {top['events']:.0f} events came" in found.summary()


def test_weighted_events_below_0_are_shown_as_none():
    # Observed only from an entry on that is not given, hardly anybody is known to have had an event early.
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=3000), "entry": rng.uniform(0.2, 1.5, 3000)})
    time = rng.exponential(1.0, 3000)
    X, time = X[time > X["entry"]], time[time > X["entry"]]
    end = X["entry"].to_numpy() + rng.exponential(0.3, len(X))
    y, times = Surv.from_arrays(time <= end, np.minimum(time, end)), np.array([0.4, 0.8, 1.2])
    given = Predictions(survival=np.exp(-np.outer(np.exp(0.01 * X["a"]), times)), times=times)
    judged = judged_patients(as_predictions(given, None, len(y)), y, Rows())
    late = (X["entry"] > 0.8).to_numpy()
    assert judged.residuals.observed[late, 0].sum() < 0
    found = certify(given, X, y, keep_columns=["entry"], n_bootstrap=99)
    rows = found.significant if found.rescaled is None else pd.concat([found.significant, found.rescaled])
    early = rows[(rows["question"] == "timing") & (rows["since"] == 0)]
    assert (early["observed"] == 0).any()
    assert rows[["observed", "ratio", "events"]].min(axis=None) >= 0
    assert found.bounds["estimate"].iloc[:2].min() >= 0


def test_wrong_timing_for_everybody_is_corrected_before_subgroups_are_judged_again():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=1500), "b": rng.normal(size=1500)})
    rate = np.exp(0.5 * X["a"].to_numpy())
    # A Weibull hazard with shape 1.5, predicted as a constant one.
    time, end = (rng.exponential(size=1500) / rate) ** (1 / 1.5), rng.uniform(0.3, 2.0, 1500)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    predictions = Predictions(survival=np.exp(-np.outer(rate, GRID)), times=GRID)
    found = certify(predictions, X, y, n_bootstrap=99)
    assert found.timing is not None
    assert "timing" in set(found.significant["question"])
    assert found.rescaled is not None
    assert found.rescaled.empty
    assert "multiplied by one number in each part of the follow-up" in found.summary()


def test_right_predictions_are_seldom_significant():
    alarms = 0
    for seed in range(10):
        X, y, predictions = patients(250, seed)
        alarms += len(certify(predictions, X, y, n_bootstrap=59, random_state=seed).significant) > 0
    # 5 % of 10: more than 2 have a probability of 1 %.
    assert alarms <= 2


def test_right_predictions_for_whole_years_are_seldom_significant():
    """Events occur at years 1, 2, ... only, and predictions are probabilities of surviving each year."""
    alarms = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.normal(size=250), "b": rng.normal(size=250)})
        rate = 0.3 * np.exp(0.5 * X["a"].to_numpy())
        time, end = np.ceil(rng.exponential(size=250) / rate), rng.integers(1, 7, 250).astype(float)
        years = np.arange(1.0, 7.0)
        y = Surv.from_arrays(time <= end, np.minimum(time, end))
        pair = (years, np.exp(-np.outer(rate, years)))
        found = certify(pair, X, y, n_bootstrap=59, random_state=seed)
        assert found.overall["ratio"] == pytest.approx(1, abs=0.35)
        alarms += len(found.significant) > 0
    assert alarms <= 2


def test_bounds_contain_the_estimates_and_hold_for_every_measure():
    X, y, predictions = patients()
    bounds = certify(predictions, X, y, n_bootstrap=99, alpha=0.1).bounds
    assert list(bounds.index) == ["observed/expected, most", "observed/expected, least", "brier", "gain"]
    assert list(bounds.columns) == ["estimate", "bound", "group"]
    assert (bounds["bound"] > bounds["estimate"])[["observed/expected, most", "brier"]].all()
    assert (bounds["bound"] < bounds["estimate"])[["observed/expected, least", "gain"]].all()


def test_with_too_few_replicates_nothing_is_significant_and_both_warning_and_summary_say_so():
    X, y, predictions = patients(800)
    with pytest.warns(ArgumentWarning, match=r"with n_bootstrap=28, no .* level 0.9: .* 3/29. At least 30"):
        few = certify(predictions, X, y, n_bootstrap=28, level=0.9).summary()
    assert "No subgroup can be significant: " in few
    assert "differs significantly" not in few
    assert "No subgroup differs" in certify(predictions, X, y, n_bootstrap=30, level=0.9).summary()


def test_smaller_subgroups_have_wider_bounds():
    X, y, predictions = patients(800)
    bounds = [
        certify(predictions, X, y, n_bootstrap=99, alpha=alpha).bounds["bound"] for alpha in (0.05, 0.4)
    ]
    assert bounds[0]["observed/expected, most"] > bounds[1]["observed/expected, most"]
    assert bounds[0]["brier"] > bounds[1]["brier"]


def test_extremes_are_those_of_a_loop_over_rules():
    X, y, predictions = patients()
    found = certify(predictions, X, y, n_bootstrap=59, alpha=0.2)
    row = found.bounds.loc["observed/expected, most"]
    rate = np.exp(0.5 * X["a"].to_numpy())
    # Exact to the width of the grid of predictions.
    ratios = []
    for column in X:
        cuts = np.unique(np.quantile(X[column], np.arange(0.1, 1, 0.1)))
        for cut in cuts:
            for inside in (X[column] <= cut, X[column] > cut):
                inside = inside.to_numpy()
                if inside.mean() >= 0.2:
                    ratios.append(y["event"][inside].sum() / (rate * y["time"])[inside].sum())
    assert row["estimate"] >= max(ratios) - 0.02


def test_a_model_that_is_wrong_for_everybody_is_also_judged_after_rescaling():
    X, y, right = patients(1000)
    halved = Predictions(survival=np.asarray(right.survival) ** 0.5, times=GRID)
    found = certify(halved, X, y, n_bootstrap=99)
    assert found.overall["ratio"] == pytest.approx(2, abs=0.3)
    assert len(found.significant) > 0
    assert found.rescaled is not None
    assert len(found.rescaled) == 0
    assert "The number of events is wrong for all patients: 1.95 (" in found.summary()
    agrees = certify(right, X, y, n_bootstrap=99)
    assert agrees.rescaled is None
    assert agrees.summary().startswith(
        "Events agree with the predictions for all patients: observed/expected "
    )


def test_the_number_of_events_of_all_patients_is_adjusted_for_the_search_as_in_an_audit():
    X, y, right = patients(300)
    times_events = y["event"].sum() / certify(right, X, y, n_bootstrap=59).overall["expected"]
    # 1.13 times the predicted events: not significant among all tests.
    survival = np.asarray(right.survival) ** (times_events / 1.13)
    given = Predictions(survival=survival, times=GRID)
    found = certify(given, X, y, n_bootstrap=59)
    alone = evaluate(given, X, y).findings.set_index("question")
    # Three quarters of the error rate are of everybody: certify asks about the number and the timing of events.
    p = alone.loc["level", "p"]
    assert max(p / 2.75, 0.05) < found.overall["p"] < 1.25 / 0.75 * p
    low, high = found.overall["low"], found.overall["high"]
    assert low < 1 < found.overall["ratio"] < high
    assert f"all patients: observed/expected 1.130 (adjusted {low:.3f} to {high:.3f})." in found.summary()
    assert found.to_dict()["overall"]["low"] == low
    assert found.rescaled is None
    # In an audit, which also asks about the slope and the gain.
    missed = audit(given, X, y).to_dict()["sections"]["missed"]["facts"]["bounds"]["overall"]
    assert missed["p"] == pytest.approx(p / 0.75, rel=1e-4)
    assert missed["low"] < low


def test_rows_of_one_patient_do_not_make_a_subgroup_significant():
    X, y, predictions = patients(150, seed=3)
    rows = np.tile(np.arange(150), 8)
    many = Predictions(survival=np.asarray(predictions.survival)[rows], times=GRID)
    independent = certify(many, X.iloc[rows], y[rows], alpha=0.2, n_bootstrap=99)
    assert len(independent.significant) > 0
    together = certify(many, X.iloc[rows], with_fields(y[rows], id=rows), alpha=0.2, n_bootstrap=99)
    assert len(together.significant) == 0
    bounds = [found.bounds["bound"]["observed/expected, most"] for found in (independent, together)]
    assert bounds[1] > bounds[0]


def test_patients_of_a_subgroup_are_counted_by_their_ids():
    X, y, predictions = patients(600, ratio=3.0)
    # Two rows each; b differs between the rows of one patient.
    id = np.arange(600) // 2
    found = certify(predictions, X, with_fields(y, id=id), n_bootstrap=99).significant
    assert len(found) > 0
    for row in found.itertuples():
        inside = X.eval(row.group.replace(" = ", " == "))
        assert row.patients == len(np.unique(id[inside]))


def test_late_entry_is_judged_from_entry_on():
    train, test = (
        make_hidden_minority(400, minority=0.0, random_state=0),
        make_hidden_minority(400, minority=0.0, random_state=1),
    )
    model = CoxPH().fit(train.X, train.y)
    time = test.y[test.y.dtype.names[1]]
    entry = np.where(np.arange(400) % 2, 0.5 * time, 0.0)
    found = certify(model, test.X, with_fields(test.y, entry=entry), n_bootstrap=59, alpha=0.3)
    hazard = model.predict_cumulative_hazard_function(test.X)
    expected = sum(h(t) - h(v) for h, t, v in zip(hazard, time, entry, strict=True))
    assert found.overall["expected"] == pytest.approx(expected, rel=0.02)
    assert any("entry" in note for note in found.notes)


def test_strata_are_given_to_the_model():
    data = make_hidden_minority(300, minority=0.0, random_state=0)
    strata = np.where(data.X["x1"] > 0, "high", "low")
    model = CoxPH().fit(data.X, data.y, strata=strata)
    found = certify(model, data.X, data.y, strata=strata, n_bootstrap=59, alpha=0.3)
    assert found.overall["ratio"] == pytest.approx(1, abs=0.02)
    with pytest.raises(ValueError, match="strata"):
        certify(model, data.X, data.y, n_bootstrap=59)


def drawn_in_rows(judged, residuals, rng):
    """Return the events of patients, with numbers drawn for the rows in their order."""
    return PatientEvents.of(judged, residuals, np.inf, np.arange(len(residuals)), rng)


def test_censoring_times_are_observed_or_drawn_after_the_event():
    rng = np.random.default_rng(0)
    n = 20_000
    death, end = rng.exponential(size=n), rng.exponential(1.5, size=n)
    target = Target(death <= end, np.minimum(death, end))
    drawn = censoring_times(target, np.arange(n), rng)
    np.testing.assert_array_equal(drawn[~target.event], target.time[~target.event])
    assert (drawn[target.event] >= target.time[target.event]).all()
    # They have the distribution of censoring, whether or not the patient had an event.
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx(1.5 * -np.log([0.75, 0.5, 0.25]), rel=0.05)
    # And they are independent of the event time, known here for all.
    late = death > 1
    assert np.median(drawn[late]) == pytest.approx(np.median(drawn[~late]), rel=0.06)


def test_copies_of_a_patient_have_one_censoring_time():
    rng = np.random.default_rng(0)
    death, end, rows = rng.exponential(size=50), rng.exponential(1.5, size=50), np.repeat(np.arange(50), 3)
    target = Target((death <= end)[rows], np.minimum(death, end)[rows])
    drawn = censoring_times(target, np.arange(150), rng, rows).reshape(50, 3)
    assert (drawn == drawn[:, :1]).all()
    assert len(np.unique(drawn[:, 0])) > 10


@pytest.mark.parametrize("kind", ["continuous", "whole years", "few times", "entry"])
def test_draws_have_mean_zero_and_the_variance_of_the_residuals(kind):
    rng = np.random.default_rng(0)
    n, rate = 15_000, rng.choice([0.2, 0.6], 15_000)
    time, end, entry = rng.exponential(1 / rate), rng.uniform(0.5, 5, n), None
    times = {"whole years": np.arange(1.0, 6.0), "few times": np.array([1.5, 3.0])}.get(kind)
    if kind == "whole years":
        time, end = np.ceil(time), np.ceil(end)
    if kind == "entry":
        entry = rng.uniform(0, 0.4, n)
        time, end = time + entry, end + entry
    curves = (np.linspace(0.05, 6, 120) if times is None else times,)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    survival, curve_type = np.exp(-np.outer(rate, curves[0])), "step" if kind == "whole years" else "points"
    given = Predictions(survival=survival, times=curves[0], curve_type=curve_type)
    judged = judged_patients(as_predictions(given, None, n), y, Rows(entry=entry))
    assert judged.few_times == (kind == "few times")
    made = drawn_in_rows(judged, judged.residuals, rng)
    np.testing.assert_allclose(made.observed.sum(axis=0), made.expected.sum(axis=0), rtol=0.1)
    sample = made.sample(rng)
    drawn = sample.draw(slice(None), 4, sample.units(4, rng), rng)
    columns = drawn.reshape(n, -1, 4)
    whole = columns[:, 0] - columns[:, 1]
    parts = np.stack([*columns[:, 2:].transpose(1, 0, 2), whole - columns[:, 2:].sum(axis=1)])
    observed = (made.observed - made.expected).T
    assert len(parts) == len(observed) == {"few times": 2, "whole years": 3}.get(kind, 4)
    for part in (whole, *parts):
        assert abs(part.mean()) < 4 * part.std() / np.sqrt(part.size)
    # The covariance is that of the observed residuals, and that under the model.
    size = parts[0].var()
    drawn_covariance = np.cov(parts.reshape(len(parts), -1))
    near = {"rtol": 0.08, "atol": 0.08 * size}
    np.testing.assert_allclose(drawn_covariance, np.cov(observed), **near)
    variances = made.source.variances_of(slice(None)).mean(axis=0)
    np.testing.assert_allclose(drawn_covariance, made.source.as_covariance(variances[None])[0], **near)


def test_probabilities_of_one_have_no_variance_and_no_subgroup_is_found_by_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.repeat([0.0, 1.0], 200), "b": rng.normal(size=400)})
    F = np.repeat([0.95, 0.45], 200)
    # Everybody has a third more events than predicted: corrected probabilities of half of them are 1.
    event = rng.random(400) < np.minimum(1.0, 1.4 * F)
    y = Surv.from_arrays(event, np.where(event, rng.uniform(0, 2, 400), 3.0))
    found = certify((np.array([2.0]), 1 - F[:, None]), X, y, keep_columns=["a"], n_bootstrap=59)
    assert found.rescaled is not None
    assert np.isfinite(found.bounds["bound"].astype(float)).all()


def test_judged_patients_and_clusters_are_drawn_as_such():
    _, y, predictions = patients(300)
    predicted = as_predictions(predictions, None, 300)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 2, 300).astype(float)
    judged = judged_patients(predicted, y)
    some = replace(judged.residuals, weight=weight)
    rows = drawn_in_rows(judged, some, rng).sample(rng).rows
    np.testing.assert_array_equal(rows, np.flatnonzero(weight))
    # Identical rows have the same fate in most draws, rows of other patients that are put together in few.
    i = np.repeat(np.arange(300), 4)
    fives = as_predictions(predictions.take(i), None, len(i))
    shares = []
    for outcome, labels in ((y[i], i), (y, np.arange(300) % 75)):
        of = fives if len(labels) == len(i) else predicted
        judged = judged_patients(of, outcome, Rows(clusters=labels))
        shares.append(drawn_in_rows(judged, judged.residuals, rng).sample(rng).shared)
    assert shares[0] > 0.8
    assert shares[1] < 0.2


def test_very_many_patients_are_sampled_in_whole_clusters(monkeypatch):
    monkeypatch.setattr(drawn_events, "_SAMPLED_EVENTS", 70)
    _, y, predictions = patients(1000)
    rng = np.random.default_rng(0)
    for labels in (None, np.arange(1000) // 5):
        judged = judged_patients(as_predictions(predictions, None, 1000), y, Rows(clusters=labels))
        rows = drawn_in_rows(judged, judged.residuals, rng).sample(rng).rows
        assert 100 <= len(rows) < 200
        assert len(np.unique(rows)) == len(rows)
        if labels is not None:
            assert (np.bincount(labels[rows])[np.unique(labels[rows])] == 5).all()


def test_deviance_is_that_of_poisson_counts():
    from scipy.stats import poisson

    observed, expected = np.array([3.0, 12.0, 0.0]), np.array([5.0, 7.0, 2.5])
    log_ratio = poisson.logpmf(observed, np.maximum(observed, 1e-12)) - poisson.logpmf(observed, expected)
    found = signed_root_deviance(observed, expected, np.ones(3))
    np.testing.assert_allclose(found**2, 2 * log_ratio, rtol=1e-6)
    assert (np.sign(found) == [-1, 1, -1]).all()


def test_bounds_are_where_the_test_begins_to_reject():
    observed, expected, scale = (
        np.array([3.0, 40.0, 0.0]),
        np.array([5.0, 25.0, 12.0]),
        np.array([1.0, 1.3, 1.0]),
    )
    for z in (-3.1, 2.7):
        ratio = _ratio_at(observed, expected, scale, z)
        reached = signed_root_deviance(observed, ratio * expected, scale)
        np.testing.assert_allclose(reached[:2], z, atol=1e-6)
    # No count can be below 0: the lower bound is 0.
    assert _ratio_at(observed, expected, scale, 2.7)[2] == pytest.approx(0, abs=1e-6)


def test_brier_losses_have_scikit_survivals_mean():
    _, y, predictions = patients(300)
    judged = judged_patients(as_predictions(predictions, None, 300), y, horizon=1.0)
    survival = parse_survival(predictions.survival, 300, GRID).survival(np.array([1.0]))
    _, expected = brier_score(y, y, survival, [1.0])
    assert brier_losses(judged).mean() == pytest.approx(expected[0], rel=0.01)


def cut_at_one(n=500):
    """Patients, and the same patients censored at time 1; nobody drops out at that time."""
    X, y, predictions = patients(n)
    return X, y, Surv.from_arrays(y["event"] & (y["time"] <= 1.0), np.minimum(y["time"], 1.0)), predictions


def test_the_brier_score_where_follow_up_ends_counts_the_patients_who_reached_it():
    X, y, cut, predictions = cut_at_one()
    found = certify(predictions, X, cut, alpha=0.3, n_bootstrap=59)
    assert found.horizon == 1.0
    _, expected = brier_score(y, y, predictions.survival[:, GRID <= 1.0][:, -1:], [1.0])
    assert found.overall["brier"] == pytest.approx(expected[0], rel=0.01)
    assert found.bounds.loc["brier", "bound"] > expected[0]


def test_the_default_time_of_the_brier_score_may_be_given():
    X, _, cut, predictions = cut_at_one()
    options = {"alpha": 0.3, "n_bootstrap": 59}
    default = certify(predictions, X, cut, **options)
    for name in ("horizon", "brier_time"):
        pd.testing.assert_frame_equal(
            certify(predictions, X, cut, **options, **{name: default.horizon}).bounds, default.bounds
        )


def test_a_time_of_the_brier_score_alone_leaves_the_counts_of_the_whole_follow_up():
    X, y, _, predictions = cut_at_one()
    options = {"alpha": 0.3, "n_bootstrap": 59}
    whole, early, until = (
        certify(predictions, X, y, **options, **more) for more in ({}, {"brier_time": 0.5}, {"horizon": 0.5})
    )
    assert early.overall["observed"] == whole.overall["observed"] == y["event"].sum()
    assert early.overall["brier"] == pytest.approx(until.overall["brier"])
    assert until.overall["observed"] == (y["event"] & (y["time"] <= 0.5)).sum()


def test_the_brier_score_is_not_taken_after_the_last_prediction():
    X, y, predictions = patients(300)
    few = Predictions(survival=predictions.survival[:, [19, 49]], times=GRID[[19, 49]])
    assert certify(few, X, y, alpha=0.3, n_bootstrap=59).horizon == GRID[49]


def test_p_values_count_draws_that_are_as_large():
    drawn = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(_p_values(np.array([5.0, 3.0, 0.0]), drawn), [0.2, 0.6, 1.0])


def test_sentences_and_table_round_bounds_outward_alike():
    bounds = pd.DataFrame(
        {"estimate": [1.2, 0.8, 0.2, -0.1], "bound": [1.4812, 0.6777, 0.2501, -0.1601], "group": "age > 60"},
        index=[MOST, LEAST, BRIER, GAIN],
    )
    overall = {"observed": 200.0, "ratio": 1.0, "low": 0.8, "high": 1.2, "p": 1.0, BRIER: 0.2, GAIN: 0.1}
    found = SubgroupBounds(
        bounds, pd.DataFrame(), (), overall, None, 9, n_patients=500, alpha=0.05, level=0.95, horizon=1.0
    )
    assert [row["bound"] for row in found.to_table().rows] == ["1.49", "0.67", "0.251", "−0.161"]
    said = found.summary()
    assert all(text in said for text in ("more than 1.49 times", "fewer than 0.67 times", "above 0.251"))
    assert "none gains less than −0.161" in said


def test_views_hold_the_same_numbers(twice):
    *_, found = twice
    as_dict = json.loads(json.dumps(found.to_dict()))
    assert as_dict["bounds"]["brier"]["bound"] == found.bounds.loc["brier", "bound"]
    assert as_dict["significant"][0]["group"] == found.significant["group"].iloc[0]
    assert f"{found.n_subgroups:,} subgroups" in repr(found)
    assert found._repr_html_().startswith("<")
    ax = found.plot()
    assert "expected" in ax.get_xlabel()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:2] == ["all patients  (1,000)", "any subgroup"]
    assert names[2].startswith(found.significant["group"].iloc[0])
    ends = {float(end) for line in ax.get_lines() for end in line.get_xdata()}
    assert {*found.bounds["bound"][["observed/expected, most", "observed/expected, least"]]} <= ends
    assert "Not covered" in found.summary()
    assert f"With these {found.n_patients:,} patients" in found.summary()
    assert "With these" not in found.summary(overall=False)


def test_with_more_than_sixty_columns_one_column_defines_a_subgroup_and_the_summary_says_so():
    X, y, predictions = patients(300)
    wide = X.assign(**{f"x{j}": np.random.default_rng(j).normal(size=300) for j in range(58)})
    found = certify(predictions, wide, y, n_bootstrap=59)
    assert "that a single column of more than 60 defines:" in found.summary()
    assert "Not covered: subgroups that several columns, finer cuts" in found.summary()
    assert "that one or two conditions define:" in certify(predictions, X, y, n_bootstrap=59).summary()


def test_results_do_not_depend_on_the_number_of_threads():
    data = make_hidden_minority(n_samples=400, n_features=5, random_state=1)
    model = CoxPH().fit(data.X, data.y)
    found = []
    for n_jobs in (1, 2):
        with joblib.parallel_config(n_jobs=n_jobs, backend="threading"):
            found.append(certify(model, data.X, data.y, alpha=0.1, n_bootstrap=59).to_dict())
    assert found[0] == found[1]


def test_a_right_model_fitted_to_few_patients_is_not_called_wrong():
    """Without its estimation error, the test finds a significant subgroup in three of four such models."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1800, 4))
        time, end = rng.exponential(np.exp(-X @ [0.6, -0.4, 0.0, 0.0])), rng.exponential(size=1800)
        y = Surv.from_arrays(time <= end, np.minimum(time, end))
        model = CoxPH().fit(X[:300], y[:300])
        bounds = certify(model, X[300:], y[300:], n_bootstrap=59)
        found.append(len(bounds.significant if bounds.rescaled is None else bounds.rescaled) > 0)
    assert sum(found) <= 1


def test_variance_of_a_linear_model_in_subgroups_is_that_of_its_predictions():
    """Checked by fitting the model again and again: the spread of the events that it expects in a subgroup."""
    rng, coef = np.random.default_rng(0), np.array([0.5, -0.5])

    def drawn(n):
        X = rng.normal(size=(n, 2))
        time, end = rng.exponential(np.exp(-X @ coef)), rng.exponential(1.5, n)
        return X, Surv.from_arrays(time <= end, np.minimum(time, end))

    X, y = drawn(600)
    target, models = parse_target(y), [CoxPH().fit(*drawn(400)) for _ in range(60)]
    inside = X[:, 0] > np.quantile(X[:, 0], 0.8)
    expected = [expected_of_frozen(one, X, target, np.ones(1)).hazard[inside].sum() for one in models]
    judged = judged_patients(as_predictions(models[0], X, len(y)), y)
    events = drawn_in_rows(judged, judged.residuals, rng)
    subgroups = judged_subgroups(readable_table(X, len(y), None, None), events, 50)
    agree = [np.mean(subgroups.members(g) == inside) for g in range(len(subgroups))]
    place = int(np.argmax(agree))
    assert agree[place] > 0.99
    error = judged.error.of_subgroups(subgroups.sums_of_parts)
    # The variance over 60 models has a standard error of 18 %.
    assert error[place].sum() == pytest.approx(np.var(expected), rel=0.35)
    # The same as that of a group.
    for place in (3, 40):
        alone = judged.error.covariance(subgroups.members(place) * 1.0)
        np.testing.assert_allclose(error[place], alone, rtol=1e-6, atol=1e-9)


def test_adjusted_bounds_keep_only_what_further_tests_leave_significant():
    columns = {"group": ["a", "b"], "patients": [9, 9], "observed": [1.0, 1.0], "expected": [1.0, 1.0]}
    some = pd.DataFrame({**columns, "ratio": [1.0, 1.0], "p": [0.002, 0.04]})
    bounds = SubgroupBounds(pd.DataFrame(), some, ("a", "b"), {}, some, 2, 9, 0.05, 0.95, 1.0)
    bounds = replace(bounds, rescaled_rules=("b", "a"))
    found = bounds._adjusted(3.0, rescaled=False)
    assert found.significant["p"].tolist() == pytest.approx([0.006])
    assert found.rules == ("a",)
    assert found.rescaled is None
    again = bounds._adjusted(3.0, rescaled=True)
    assert again.rescaled["group"].tolist() == ["a"]
    assert again.rescaled_rules == ("b",)
    # The first row need not have the smallest p-value.
    turned = replace(bounds, significant=some.iloc[::-1], rules=("b", "a"))._adjusted(3.0, rescaled=False)
    assert turned.rules == ("a",)


def test_replicates_are_enough_for_the_adjusted_level(monkeypatch):
    monkeypatch.setattr(certification, "REPLICATES", 999)
    assert certification.enough_replicates(0.95, 1.0) == 999
    for level, factor in ((0.95, 5.0), (0.95, 40.0), (0.99, 8.0)):
        assert factor * 3 / (certification.enough_replicates(level, factor) + 1) < (1 - level) / 3


def test_predictions_of_no_events_are_called_wrong_and_not_the_patients_too_few():
    X, y, _ = patients(200)
    given = np.array([0.5, 1.0]), np.ones((200, 2))
    found = evaluate(given, X, y).findings.set_index("question")
    assert found.loc["level", "status"] == "miscalibrated"
    assert "more than 1,000 times the predicted events" in found.loc["level", "text"]
    with pytest.raises(ValueError, match=r"model expects no events .*: check the predictions"):
        certify(given, X, y)


def test_all_patients_have_a_wrong_timing_where_no_events_were_expected_in_a_part():
    X, y, predictions = patients()
    columns = [29, 99, 199]
    table = predictions.survival[:, columns]
    table[:, 0] = 1.0
    found = certify((GRID[columns], table), X, y, n_bootstrap=59)
    assert (found.timing["since"], found.timing["until"], found.timing["expected"]) == (0.0, GRID[29], 0.0)
    assert "(more than 1,000 times" in str(found)


def test_bounds_that_exclude_nothing_are_not_said():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.normal(size=200)})
    time = rng.exponential(size=200)
    found = certify(
        ([1.0], np.full((200, 1), np.exp(-1))),
        X,
        Surv.from_arrays(time <= 2, np.minimum(time, 2)),
        n_bootstrap=99,
    )
    assert "none has more than" in found.summary()
    bounds = found.bounds.assign(bound=found.bounds["bound"].mask(found.bounds.index == MOST, np.inf))
    assert (
        f"none has fewer than {found.rounded[LEAST]:.2f} times the predicted"
        in replace(found, bounds=bounds).summary()
    )
    bounds["bound"] = bounds["bound"].mask(bounds.index == LEAST, 0.0)
    text = replace(found, bounds=bounds).summary()
    assert "no wrong number of events can be excluded" in text
    assert "inf" not in text
