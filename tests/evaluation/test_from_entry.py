"""Patients who entered late, belong to strata or have an offset, and hazards that are not proportional."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import (
    MLP,
    AcceleratedFailureTime,
    CoxPH,
    PublishedCox,
    SubgroupRobustCox,
    Surv,
    audit,
    certify,
    evaluate,
    load,
)
from drosurv.errors import ArgumentError
from drosurv.evaluation import Predictions, compare
from drosurv.evaluation.evaluate import prepare
from drosurv.metrics import FollowUp, concordance_index, likelihood_gain, observed_over_expected
from drosurv.patients.observation import Rows, select_rows
from drosurv.patients.target import parse_target, with_fields
from drosurv.predictions import as_predictions


def patients(seed=0, n=240):
    """Weibull times of increasing hazard, seen from a random age on: only who is alive then is seen at all."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(8 * n, 2)), columns=["a", "b"])
    stratum = rng.choice(["north", "south"], 8 * n)
    scale = np.where(stratum == "north", 1.0, 1.6) * np.exp(-(0.8 * X["a"] - 0.5 * X["b"]) / 2.5)
    time, entry = scale * rng.weibull(2.5, 8 * n), rng.uniform(0, 1.2, 8 * n)
    seen = np.flatnonzero(time > entry)[:n]
    left = entry + rng.exponential(1.0, 8 * n)
    y = Surv.from_arrays(time[seen] <= left[seen], np.minimum(time, left)[seen])
    return X.iloc[seen].reset_index(drop=True), y, entry[seen], stratum[seen]


TRAIN, TEST = patients(0, 2000), patients(1)


def test_forgotten_entry_times_are_noticed(tmp_path, recwarn):
    X, y, entry, _ = TRAIN
    CoxPH().fit(X, with_fields(y, entry=entry)).save(tmp_path / "model")
    model, test = load(tmp_path / "model"), TEST[:2]
    evaluate(model, TEST[0], with_fields(TEST[1], entry=TEST[2]))
    assert not recwarn
    for judge in (evaluate, certify):
        with pytest.warns(UserWarning, match="fitted with entry times, but entry is not given"):
            judge(model, *test)


def test_entry_at_time_zero_is_no_entry():
    X, y, *_ = TEST
    model = CoxPH().fit(X, y)
    plain = evaluate(model, X, y, y_train=FollowUp.of_test_patients(parse_target(y)))
    late = evaluate(model, X, with_fields(y, entry=np.zeros(len(X))))
    for metric in (
        "concordance_index",
        "integrated_brier_score",
        "calibration_difference",
        "likelihood_gain",
    ):
        assert late.value(metric) == pytest.approx(plain.value(metric), rel=1e-9)


def test_entry_at_time_zero_is_no_entry_of_predictions_at_few_times():
    X, y, *_ = TEST
    times = np.quantile(y["time"][y["event"]], [0.3, 0.6])
    given = times, CoxPH().fit(X, y).predict_survival_function(X, times=times)
    plain, late = (evaluate(given, None, each) for each in (y, with_fields(y, entry=np.zeros(len(X)))))
    assert len(plain.times) == 2
    pd.testing.assert_frame_equal(plain.times, late.times)
    pd.testing.assert_frame_equal(plain.findings, late.findings)


def test_rounding_errors_between_rows_of_a_patient_are_no_gap_and_no_overlap():
    event, stop = np.array([False, True] * 2), np.array([0.1 + 0.2, 1.0, 0.3, 2.0])
    y = Surv.from_arrays(event, stop, entry=[0.0, 0.3, 0.0, 0.1 + 0.2], id=[1, 1, 2, 2])
    for judged in (False, True):
        assert Rows.parse(y, judged=judged).entry.tolist() == [0.0, 0.3, 0.0, 0.3]
    apart = Surv.from_arrays(event, stop, entry=[0.0, 0.3 - 1e-6, 0.0, 0.3], id=[1, 1, 2, 2])
    with pytest.raises(ArgumentError, match="overlap"):
        Rows.parse(apart)


def observed(model, X, y, given):
    given = dict(given)
    y = with_fields(y, entry=given.pop("entry", None))
    return as_predictions(model, X, len(y), rows=Rows.parse(y, **given)), y


def test_predictions_are_conditional_on_no_event_before_entry():
    X, y, entry, strata = TEST
    offset = np.linspace(-0.3, 0.3, len(X))
    model = CoxPH(ties="efron").fit(X, with_fields(y, entry=entry), strata=strata, offset=offset)
    given = {"entry": entry, "strata": strata, "offset": offset}
    data = prepare(*observed(model, X, y, given), horizon=0.4).everyone.data
    np.testing.assert_allclose(data.target.time, y["time"] - entry)
    # Times are written in one way, with thousands apart.
    days = Surv.from_arrays(y["event"], 5000 * y["time"])
    in_days = {**given, "entry": 5000 * entry}
    longer = CoxPH(ties="efron").fit(X, with_fields(days, entry=5000 * entry), strata=strata, offset=offset)
    notes = prepare(*observed(longer, X, days, in_days), horizon=2000.0).notes
    assert sum("at time 2,000 after entry." in note for note in notes) == 1
    since = data.target.time[:, None]
    for i in (0, 7, 100):
        row, own = X.iloc[[i]], {"strata": strata[[i]], "offset": offset[[i]]}
        curve = model.predict_survival_function(row, **own)[0]
        wanted = curve(entry[i] + 0.4) / curve(entry[i])
        assert data.curves.survival(np.array([0.4]))[i, 0] == pytest.approx(wanted, rel=1e-12)
        assert data.risk[i] == pytest.approx(np.log(-np.log(wanted)), rel=1e-9)
        # A step at the patient's own time is not lost by rounding of times.
        wanted = curve(y["time"][i]) / curve(entry[i])
        assert data.curves.survival(since)[i, 0] == pytest.approx(wanted, rel=1e-12)


def test_from_entry_on_events_allow_for_the_error_of_the_fit():
    X, y, entry, _ = TEST
    model = CoxPH().fit(X, with_fields(y, entry=entry))
    everybody = evaluate(model, X, with_fields(y, entry=entry)).groups.iloc[0]
    trained = float(y["event"].sum())

    def interval(level):
        return observed_over_expected(
            everybody["observed"], everybody["expected"], level=level, training_events=trained
        )

    # Four tests are made of everybody: of events, their timing, the slope, and the gain over one curve. They are
    # correlated, so the adjustment is less than Bonferroni's.
    widest, narrowest = interval(1 - 0.05 / 4), interval(0.95)
    assert widest.low < everybody["ratio_low"] < narrowest.low
    assert narrowest.high < everybody["ratio_high"] < widest.high


@pytest.mark.parametrize(
    "model", [CoxPH(), SubgroupRobustCox(alpha=1.0, n_trees=2, random_state=0, recalibrate=False)]
)
def test_a_right_model_is_calibrated_from_entry_on_and_strata_are_ranked_together(model):
    X, y, entry, strata = TRAIN
    model.fit(X, with_fields(y, entry=entry), strata=strata)
    X, y, entry, strata = patients(2, 1200)
    result = evaluate(model, X, with_fields(y, entry=entry), strata=strata)
    ranked = next(note for note in result.notes if note.startswith("patients are ranked"))
    assert ranked.endswith(f"cumulative hazard at time {result.settings.horizon:.3g} after entry.")
    assert abs(result.value("calibration_difference")) < 0.03
    assert result.value("brier_skill") > 0.02
    assert any("evaluated from their entry" in note for note in result.notes)
    within = concordance_index(y, model.predict(X))
    assert result.value("concordance_index") > within


def test_strata_and_offset_go_to_a_pipeline_s_last_step():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, _, strata = TEST
    pipeline = make_pipeline(StandardScaler(), CoxPH())
    pipeline.fit(X, y, coxph__strata=strata)
    alone = CoxPH().fit(X, y, strata=strata)
    found, wanted = (evaluate(m, X, y, strata=strata) for m in (pipeline, alone))
    assert found.value("concordance_index") == pytest.approx(wanted.value("concordance_index"), abs=1e-6)


def test_an_offset_alone_is_added_to_the_scores():
    X, y, *_ = TEST
    offset = np.random.default_rng(0).normal(size=len(X))
    model = CoxPH().fit(X, y, offset=offset)
    found = evaluate(model, X, y, offset=offset).value("concordance_index")
    assert found == pytest.approx(concordance_index(y, X.to_numpy() @ model.coef_ + offset))


def test_patients_of_several_rows_are_judged_once_by_what_was_known_first():
    X, y, entry, strata = TEST
    model = CoxPH().fit(X, y, strata=strata)
    groups = pd.DataFrame({"stratum": strata})
    cut = (entry + y["time"]) / 2
    # Later features say nothing that could have been known at the first row; after an event more may follow.
    rows = pd.concat([X, X + 5, X[:30] - 5], ignore_index=True)
    event = np.r_[np.zeros(len(X), bool), y["event"], np.zeros(30, bool)]
    both = Surv.from_arrays(event, np.r_[cut, y["time"], y["time"][:30] + 1])
    stopped = Surv.from_arrays(
        y["event"], np.where(y["event"] | (np.arange(len(y)) >= 30), y["time"], y["time"] + 1)
    )
    again = {
        "entry": np.r_[entry, cut, y["time"][:30]],
        "strata": np.r_[strata, strata, strata[:30]],
        "id": np.r_[: len(X), : len(X), :30],
    }
    shuffled = np.random.default_rng(0).permutation(len(rows))
    whole = evaluate(model, X, with_fields(stopped, entry=entry), strata=strata, sensitive_features=groups)
    split = evaluate(
        model,
        rows.iloc[shuffled],
        with_fields(both, entry=again["entry"], id=again["id"])[shuffled],
        strata=again["strata"][shuffled],
        sensitive_features=pd.concat([groups, groups, groups[:30]]).iloc[shuffled],
    )
    assert any("510 rows are of 240 patients" in note for note in split.notes)
    columns = ["metric", "attribute", "group", "value"]
    pd.testing.assert_frame_equal(split.to_frame()[columns], whole.to_frame()[columns], rtol=1e-9)


def test_the_score_compares_patients_at_risk_in_one_stratum():
    X, y, entry, strata = TEST
    offset = np.linspace(-1, 1, len(X))
    model = CoxPH().fit(X, y, strata=strata, offset=offset)
    risk = X.to_numpy() @ model.coef_ + offset
    found = model.score(X, with_fields(y, entry=entry), strata=strata, offset=offset)
    assert found == pytest.approx(concordance_index(with_fields(y, entry=entry), risk, strata=strata))


def test_hazards_that_are_not_proportional_are_mentioned():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["age", "dose"])
    seen = rng.random(300) < 0.9
    steady = Surv.from_arrays(seen, rng.exponential(np.exp(-0.7 * X["age"])))
    # The shape depends on the dose, so that its effect turns round.
    turning = Surv.from_arrays(seen, rng.exponential(size=300) ** np.exp(0.7 * X["dose"]))
    for y, mentioned in ((steady, False), (turning, True)):
        found = evaluate(CoxPH().fit(X, y), X, y).summary()
        assert ("the effect of dose (p below 0.001) changes with time" in found) == mentioned
    steps = make_pipeline(StandardScaler(), CoxPH()).fit(X, turning)
    assert "the effect of dose (p below" in evaluate(steps, X, turning).summary()
    mlp = CoxPH(MLP(max_iter=5), random_state=0).fit(X, turning)
    for model in (mlp, AcceleratedFailureTime().fit(X, turning), X["dose"].to_numpy()):
        assert "proportional" not in evaluate(model, X, turning).summary()


def test_what_was_given_for_rows_is_that_of_the_patients_first_rows():
    labels = select_rows({"site": ["a", "b", float("nan")]}, np.array([2, 0]))["site"]
    assert np.isnan(labels[0])
    assert labels[1] == "a"
    followed = [(np.array([0, 1]), "first"), (np.array([2]), "second")]
    given = Predictions([0.1, 0.2, 0.3], [[0.9]] * 3, [1.0], trained_on=followed)
    found = select_rows(given, np.array([2, 0]))
    assert found.risk == [0.3, 0.1]
    assert [(rows.tolist(), seen) for rows, seen in found.trained_on] == [([1], "first"), ([0], "second")]


def test_the_note_on_a_missing_reference_does_not_ask_for_what_was_given():
    X, y, *_ = TEST
    offset = np.zeros(len(X))
    model = CoxPH().fit(X, y, offset=offset)
    found = evaluate(model, X, y, offset=offset, y_train=y, X_train=X)
    assert found.not_compared in found.notes
    asked = "pass a fitted reference model, or, where there are no entry times, strata, offsets or causes"
    assert asked in found.not_compared
    assert evaluate(model, X, y, offset=offset, reference=model).not_compared == ""


def test_a_model_gains_nothing_over_itself():
    X, y, entry, strata = TEST
    y, given = with_fields(y, entry=entry), {"strata": strata, "offset": np.linspace(-1, 1, len(X))}
    model = CoxPH().fit(X, y, **given)
    alone = evaluate(model, X, y, reference=model, **given).groups.iloc[0]
    assert alone["gain_over_reference"] == pytest.approx(0.0, abs=1e-12)
    plain = CoxPH().fit(X, Surv.event_time(y))
    beside = evaluate(model, X, y, reference=plain, **given).groups.iloc[0]
    assert beside["gain_over_reference"] != 0


def test_predictions_of_a_reference_are_taken_as_they_are_beside_entry_times():
    X, y, entry, _ = TEST
    model = CoxPH().fit(X, with_fields(y, entry=entry))
    survival = model.predict_survival_function(X, times=model.unique_times_)
    given = Predictions(survival=survival, times=model.unique_times_, curve_type="step")
    found = evaluate(model, X, with_fields(y, entry=entry), reference=given).groups.iloc[0]
    assert found["gain_over_reference"] == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("entry", [None, 0.3])
def test_the_null_model_of_the_scored_patients_is_allowed_for(entry):
    X, y, *_ = TEST
    model, times = CoxPH().fit(X, y), np.unique(y["time"])
    kept = y["time"] > (entry or 0.0)
    y, curves = y[kept], model.predict_survival_function(X[kept], times=times)
    if entry is None:
        found = evaluate(Predictions(model.predict(X[kept]), curves, times), None, y)
    else:
        found = evaluate(model, X[kept], with_fields(y, entry=np.full(len(y), entry)))
        before = model.predict_survival_function(X[kept], times=[entry])
        later = times > entry
        y, times, curves = (
            Surv.from_arrays(y["event"], y["time"] - entry),
            times[later] - entry,
            curves[:, later] / before,
        )
    of_test = FollowUp.of_test_patients(parse_target(y))
    allowed, seen = (likelihood_gain(null, y, curves, times) for null in (of_test, y))
    assert found.value("likelihood_gain") == pytest.approx(allowed, abs=0.01)
    assert allowed > seen + 0.5 * 20 / len(y) - 1e-9


def spread(knots, hazard, since, own):
    """A cumulative hazard at times since then, where each step is spread evenly over the time since the last one."""
    steps = np.concatenate([[True], np.diff(hazard) > 0])
    return np.diff(np.interp(since + np.concatenate([[0.0], own]), knots[steps], hazard[steps]), prepend=0.0)[
        1:
    ]


@pytest.mark.parametrize(("n", "n_strata"), [(60, 0), (600, 0), (300, 4)])
def test_a_model_of_few_steps_has_hazard_between_them(n, n_strata):
    """The steps of a curve from entry on, or of a stratum, and the events of all have nothing to do with each other."""
    (X, y, entry, _), (X_train, y_train, entry_train, _) = TEST, patients(2, n)
    since = Surv.from_arrays(y["event"], y["time"] - entry)
    if n_strata:
        given, entry, since, null = {"strata": np.arange(len(X)) % n_strata}, np.zeros(len(X)), y, y_train
        model = CoxPH().fit(X_train, y_train, strata=np.arange(n) % n_strata)
    else:
        given, y, null = {}, with_fields(y, entry=entry), FollowUp.of_test_patients(parse_target(since))
        model = CoxPH().fit(X_train, with_fields(y_train, entry=entry_train))
    result = evaluate(model, X, y, **given)
    gain = result.findings.query("question == 'gain'").iloc[0]
    told = {name: value for name, value in given.items() if name == "strata"}
    knots, own = np.concatenate([[0.0], model.unique_times_]), np.unique(since["time"])
    hazard = -np.log(model.predict_survival_function(X, times=knots, **told))
    smooth = [spread(knots, each, late, own) for late, each in zip(entry, hazard, strict=True)]
    wanted = likelihood_gain(null, since, np.exp(-np.cumsum(smooth, axis=1)), own)
    # Hazards are constant on other intervals: by chance, gains differ by about a standard error, 0.03 to 0.05. Without
    # hazard between its steps, the gain of the model of 60 patients would be lower by 2.
    error = (gain["high"] - gain["low"]) / 2 / norm.isf(0.025 / result.settings.as_many_tests)
    assert error < 0.05
    assert result.value("likelihood_gain") == gain["value"] == pytest.approx(wanted, abs=3 * error)


def test_compare_judges_every_model_from_entry_on_with_its_strata():
    X, y, entry, strata = TEST
    models = {
        "plain": CoxPH().fit(X, with_fields(y, entry=entry)),
        "stratified": CoxPH().fit(X, with_fields(y, entry=entry), strata=strata),
    }
    table = compare(models, X, with_fields(y, entry=entry), strata=strata)
    for name, model in models.items():
        given = {"strata": strata} if name == "stratified" else {}
        alone = evaluate(model, X, with_fields(y, entry=entry), **given)
        for metric in ("concordance_index", "integrated_brier_score", "likelihood_gain"):
            found = table[(table["model"] == name) & (table["metric"] == metric)]["value"].item()
            assert found == pytest.approx(alone.value(metric))


def test_few_events_are_the_reason_why_proportional_hazards_were_not_tested():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 5)), columns=list("abcde"))
    y = Surv.from_arrays(np.arange(80) % 2 == 0, rng.exponential(size=80))
    result = evaluate(CoxPH().fit(X, y), X, y)
    (statement,) = (one for one in result.statements() if one.code == "hazards_untested")
    assert "Proportional hazards were not tested: 40 events for 5 features" in statement.text
    assert not statement.concern


def late_patients(at, n=600, seed=0):
    """True survival at times of patients of whom half came under observation late; nobody is censored."""
    rng = np.random.default_rng(seed)
    x, entry = rng.normal(size=4 * n), np.maximum(rng.uniform(-2, 2, 4 * n), 0.0)
    time = rng.exponential(3 * np.exp(-0.7 * x))
    seen = np.flatnonzero(time > entry)[:n]
    x, entry, time = x[seen], entry[seen], time[seen]
    survival = np.exp(-np.asarray(at) / 3 * np.exp(0.7 * x)[:, None])
    return pd.DataFrame({"x": x}), Surv.from_arrays(np.ones(n, bool), time), entry, survival


def test_predictions_at_few_times_count_from_the_first_time_of_those_at_risk_then():
    at = [1.0, 2.0, 4.0]
    X, y, entry, survival = late_patients(at)
    observed_events = expected = at_horizon = free = counted = 0.0
    for own, since, time in zip(survival, entry, y["time"], strict=True):
        if since > 1.0 or time <= 1.0:
            continue
        observed_events += time <= 4.0
        expected += 1 - own[2] / own[0]
        counted, at_horizon, free = counted + 1, at_horizon + own[1] / own[0], free + (time > 2.0)
    how = {"sensitive_features": {"side": np.where(X["x"] > 0, "high", "low")}}
    found = evaluate((at, survival), X, with_fields(y, entry=entry), **how, horizon=2.0, threshold=0.5)
    everybody = found.groups.iloc[0]
    assert everybody["observed"] == pytest.approx(observed_events)
    assert everybody["expected"] == pytest.approx(expected)
    assert everybody["survival_predicted"] == pytest.approx(at_horizon / counted)
    assert everybody["survival_observed"] == pytest.approx(free / counted)
    # Nobody else is in a decision curve.
    curve = found.decision_curves.query("attribute == 'overall'")
    assert curve["patients"].iloc[0] == counted
    np.testing.assert_allclose(curve["treat_all"], 1 - free / counted / (1 - curve["threshold"]))
    shares = found.decisions.query("attribute == 'overall'").set_index("metric")["value"]
    inside = (entry <= 1.0) & (y["time"] > 1.0)
    risk = 1 - survival[inside, 1] / survival[inside, 0]
    had = y["time"][inside] <= 2.0
    assert shares["sensitivity"] == pytest.approx((had & (risk >= 0.5)).sum() / had.sum())
    assert {"level", "timing", "slope", "gain", "below threshold"} <= {*found.findings["question"]}
    assert set(found.findings["status"]) <= {"clear", "unclear"}
    # Ranked by the time since entry.
    since = Surv.from_arrays(y["event"], y["time"] - entry)
    assert found.value("concordance_index") == pytest.approx(concordance_index(since, X["x"]))
    assert "at risk at the first predicted time" in " ".join(found.notes)
    bounds = certify((at, survival), X, with_fields(y, entry=entry), n_bootstrap=59)
    assert bounds.overall["expected"] == pytest.approx(expected)
    assert (
        evaluate((at, survival**2), X, with_fields(y, entry=entry)).findings["status"][0] == "miscalibrated"
    )


def test_a_table_of_many_times_is_conditional_on_no_event_before_entry():
    at = np.linspace(0.05, 12, 240)
    X, y, entry, survival = late_patients(at)
    found = evaluate((at, survival), X, with_fields(y, entry=entry))
    hazard = np.exp(0.7 * X["x"]) / 3
    inside = y["time"] <= at[-1]
    expected = float((hazard * (np.minimum(y["time"], at[-1]) - entry)).sum())
    assert found.groups["expected"][0] == pytest.approx(expected, rel=1e-6)
    assert found.groups["observed"][0] == inside.sum()
    # The hazard is constant, so that survival since entry is that since time 0.
    curves = prepare(*observed((at, survival), X, y, {"entry": entry})).everyone.data.curves
    early = np.linspace(0, at[-1] - entry.max(), 50)
    np.testing.assert_allclose(curves.survival(early), np.exp(-np.outer(hazard, early)), rtol=1e-6)


def test_a_published_score_is_judged_from_the_first_time_after_entry_by_every_verb():
    at = [1.0, 2.0, 4.0]
    X, y, entry, survival = late_patients(at)
    score = PublishedCox({"x": 0.7}, {time: float(np.exp(-time / 3)) for time in at})
    wanted = evaluate((at, survival), X, with_fields(y, entry=entry)).groups.iloc[0]
    found = evaluate(score, X, with_fields(y, entry=entry)).groups.iloc[0]
    report = audit(score, X, with_fields(y, entry=entry), search_rules=False)
    page = json.loads(report.to_summary())["groups"][0]
    for column in ("observed", "expected", "gain"):
        assert found[column] == pytest.approx(wanted[column])
        assert page[column] == pytest.approx(wanted[column], rel=1e-3)
    table = compare({"score": score, "table": (at, survival)}, X, with_fields(y, entry=entry))
    gain = table.query("metric == 'likelihood_gain' and model == 'table'")["difference"].item()
    assert gain == pytest.approx(0, abs=1e-9)


def test_with_few_times_only_those_who_can_be_judged_are_counted():
    rng = np.random.default_rng(3)
    entry = rng.uniform(50, 95, 600)
    hazard = 0.05 * np.exp(0.5 * rng.normal(size=600))
    stop, left = entry + rng.exponential(1 / hazard), entry + rng.uniform(5, 40, 600)
    y, times = Surv.from_arrays(stop <= left, np.minimum(stop, left)), np.array([70.0, 80.0, 90.0])
    given = times, np.exp(-np.outer(hazard, times))
    found = evaluate(given, None, with_fields(y, entry=entry))
    judged = (entry <= 70) & (y["time"] > 70)
    row = found.groups.iloc[0]
    assert row["patients"] == judged.sum() < 400
    assert row["expected"] == pytest.approx((1 - np.exp(-hazard * 20))[judged].sum())
    assert found.not_judged.startswith(f"{600 - judged.sum()} of 600 patients are not judged")
    assert found.not_judged in found.notes
    bounds = certify(given, rng.normal(size=(600, 2)), with_fields(y, entry=entry), n_bootstrap=59)
    assert "brier" not in bounds.bounds.index
    assert "Brier" not in bounds.summary()
    assert bounds.n_events == (judged & y["event"] & (y["time"] <= 90)).sum()


def test_rows_of_patients_who_all_entered_at_zero_are_judged_like_one_row_each():
    rng = np.random.default_rng(4)
    rate, at = 0.2 * np.exp(rng.normal(size=150)), [1.0, 3.0]
    time, left = rng.exponential(1 / rate), rng.uniform(1, 6, 150)
    event, end = time <= left, np.minimum(time, left)
    S, i = np.exp(-rate[:, None] * np.array(at)), np.repeat(np.arange(150), 2)
    first = np.arange(300) % 2 == 0
    y = Surv.from_arrays(
        event[i] & ~first, np.where(first, end[i] / 2, end[i]), entry=np.where(first, 0, end[i] / 2), id=i
    )
    rows = evaluate((at, S[i]), None, y)
    whole = evaluate((at, S), None, Surv.from_arrays(event, end))
    pd.testing.assert_frame_equal(rows.findings, whole.findings)
    pd.testing.assert_frame_equal(rows.times, whole.times)
    assert rows.summary().startswith(whole.summary().split("\n")[0])


def test_a_time_of_late_entrants_says_what_it_counts_from_or_who_is_judged():
    rng = np.random.default_rng(5)
    rate, entry = 0.2 * np.exp(0.5 * rng.normal(size=300)), rng.uniform(0, 1, 300)
    time = entry + rng.exponential(1 / rate)
    left = entry + rng.uniform(2, 6, 300)
    y = Surv.from_arrays(time <= left, np.minimum(time, left), entry=entry)
    many, few = np.arange(1, 61) / 10, np.array([1.0, 3.0])
    curves, table = (evaluate((at, np.exp(-rate[:, None] * at)), None, y, horizon=3.0) for at in (many, few))
    assert curves.summary().startswith("By time 3 after entry: of 100 patients ")
    assert any("times count from there" in note for note in curves.notes)
    assert table.summary().startswith("By time 3 (of those at risk at time 1): of 100 patients ")
    assert not any("times count from there" in note for note in table.notes)
