"""Evaluation of one of several causes: findings, the group table, decisions and curves by its hazard and incidence."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid

from drosurv import CauseSpecificCox, CoxPH, Surv, audit, certify, compare, evaluate, monitor, repair
from drosurv.errors import InputError
from drosurv.evaluation import evaluate_by_cause, get_scorer, make_scorers
from drosurv.metrics import FollowUp, aalen_johansen, concordance_by_cause
from drosurv.metrics.dynamic_auc import dynamic_auc_curve
from drosurv.metrics.follow_up import brier_times
from drosurv.metrics.nonparametric import KaplanMeier, censored_later
from drosurv.patients.target import CompetingTarget, with_fields
from drosurv.predictions import Predictions


def cohort(seed, n=400, hidden=0.0):
    """Cause 1 is more frequent than the features say in group b; cause 2 is as they say."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x0", "x1"])
    site = pd.Series(rng.choice(["a", "b"], n), name="site")
    first = 0.2 * np.exp(0.6 * X["x0"] + hidden * (site == "b"))
    second = 0.2 * np.exp(0.5 * X["x1"])
    T, C = rng.exponential(1 / (first + second)), rng.uniform(0.5, 5, n)
    cause = np.where(T > C, 0, np.where(rng.random(n) < first / (first + second), 1, 2))
    return X, Surv.competing(cause, np.minimum(T, C)), site


@pytest.fixture(scope="module")
def model():
    X, y, _ = cohort(0, n=600)
    return CauseSpecificCox().fit(X, y)


@pytest.fixture(scope="module")
def found(model):
    X, y, site = cohort(1, hidden=0.7)
    return evaluate(model, X, y, sensitive_features=site, cause=1, horizon=2.0, threshold=0.35)


def table(model, X, times):
    return {k: model.predict_cumulative_incidence(X, times, k) for k in (1, 2)}


def test_a_wrong_cause_is_found_and_the_right_one_is_clear(model, found):
    wrong = found.findings.query("status == 'miscalibrated' and question == 'level'")
    assert "b" in wrong["group"].tolist()
    X, y, site = cohort(1, hidden=0.7)
    other = evaluate(model, X, y, sensitive_features=site, cause=2).findings
    assert not (other["status"] == "miscalibrated").any()
    assert any("events are those of cause 1" in note for note in found.notes)


def test_patients_with_another_cause_are_not_called_censored(found):
    _, y, _ = cohort(1, hidden=0.7)
    own, other, censored = ((y["cause"] == k).sum() for k in (1, 2, 0))
    said = f"{len(y):,} patients, {own} events, {other} events of another cause ({censored / len(y):.1%}"
    assert said.replace("%", " % censored)") in found.summary()
    assert "had an event of cause 1" in found.summary()


def test_the_group_table_has_events_hazards_and_incidences_of_the_cause(model, found):
    X, y, site = cohort(1, hidden=0.7)
    row = found.groups.query("group == 'b'").iloc[0]
    own = (site == "b").to_numpy()
    assert row["observed"] == (y["cause"][own] == 1).sum()
    hazard = model.curves_by_cause(X[own]).of_cause(1).summed_hazard(y["time"][own, None]).hazard[:, 0]
    assert row["expected"] == pytest.approx(hazard.sum(), rel=1e-6)
    observed = aalen_johansen(y["cause"][own], y["time"][own]).at(np.array([2.0]))[0]
    # Within strata of risk, of which censoring is independent here.
    assert row["survival_observed"] == pytest.approx(1 - observed, abs=0.01)
    predicted = model.predict_cumulative_incidence(X[own], [2.0], 1).mean()
    assert row["survival_predicted"] == pytest.approx(1 - predicted)


def test_another_cause_ends_the_time_at_risk(found):
    _, y, site = cohort(1, hidden=0.7)
    for rows, at in ((found.calibration, "horizon"), (found.survival, "time")):
        shown = rows.query("group == 'b'")
        time = y["time"][(site == "b").to_numpy()]
        assert shown["at_risk"].tolist() == (time[:, None] >= shown[at].to_numpy()).sum(axis=0).tolist()


def test_decisions_are_by_incidence(model, found):
    X, y, _ = cohort(1, hidden=0.7)
    above = model.predict_cumulative_incidence(X, [2.0], 1)[:, 0] >= 0.35
    shares = found.decisions.query("attribute == 'overall'").set_index("metric")["value"]
    # Sensitivity: of those with the event by the horizon, the share above the threshold.
    both = aalen_johansen(y["cause"][above], y["time"][above]).at(np.array([2.0]))[0] * above.mean()
    everybody = aalen_johansen(y["cause"], y["time"]).at(np.array([2.0]))[0]
    assert shares["sensitivity"] == pytest.approx(both / everybody, abs=0.02)
    curve = found.decision_curves.query("attribute == 'overall' and threshold == 0.35")["net_benefit"].item()
    assert curve == pytest.approx(both - (above.mean() - both) * 0.35 / 0.65, abs=0.005)


def test_metrics_are_those_of_the_incidence(model, found):
    X, y, _ = cohort(1, hidden=0.7)
    incidence = model.predict_cumulative_incidence(X, [2.0], 1)
    assert found.value("concordance_index") == pytest.approx(
        concordance_by_cause(y["cause"], y["time"], incidence[:, 0])
    )
    row = found.to_frame().query("attribute == 'overall' and metric == 'uno_concordance'").iloc[0]
    assert row["low"] < row["value"] < row["high"]


def in_steps(y, step):
    """Round times up, so that events of both causes and censorings are tied."""
    return Surv.competing(y["cause"], np.ceil(y["time"] / step) * step)


@pytest.mark.parametrize(("horizon", "cause"), [(None, 1), (2.0, 2)])
def test_numbers_are_those_by_cause(model, horizon, cause):
    X, y, site = cohort(8, n=200)
    y, how = in_steps(y, 0.25), {"cause": cause, "horizon": horizon}
    found = evaluate(model, X, y, sensitive_features=site, **how)
    own = found.by_cause.query("cause == @cause").drop_duplicates(["attribute", "group"])
    indices = [one.set_index("group")["c_index"].sort_index() for one in (found.groups, own)]
    pd.testing.assert_series_equal(*indices)
    times = np.array([0.5, 1.25, 2.0, 3.0])
    of_table = evaluate(Predictions(incidence=table(model, X, times), times=times), None, y, **how)
    by_cause = of_table.by_cause.query("cause == @cause")["c_index"].iloc[0]
    assert of_table.groups["c_index"][0] == pytest.approx(by_cause)


def test_metrics_of_a_cause_follow_their_definitions(model):
    X, y, _ = cohort(9, n=150)
    y = in_steps(y, 0.25)
    cause, time, n = y["cause"], y["time"], len(y)
    found = evaluate(model, X, y, cause=1, horizon=2.0)
    f = model.predict_cumulative_incidence(X, [2.0], 1)[:, 0]

    def before(t):
        """Probability of not being censored before t; events come before censorings."""
        left = 1.0
        for c in np.unique(time[(cause == 0) & (time < t)]):
            at_risk = (time > c).sum() + ((time == c) & (cause == 0)).sum()
            left *= 1 - ((time == c) & (cause == 0)).sum() / at_risk
        return left

    G = np.array([before(t) for t in time])
    sums = np.zeros((2, 2))
    # Uno's index is until a time with a tenth of the patients at risk.
    last = np.sort(time)[::-1][n // 10 - 1]
    for i in np.flatnonzero(cause == 1):
        for j in range(n):
            if cause[j] == 2 or time[j] > time[i] or (time[j] == time[i] and cause[j] == 0):
                right = (f[i] > f[j]) + 0.5 * (f[i] == f[j])
                weight = time[i] <= last and 1 / (G[i] * min(1, before(min(time[i], time[j]))))
                sums += np.outer([1.0, weight], [right, 1.0])
    index, uno = sums[:, 0] / sums[:, 1]
    assert found.value("concordance_index") == pytest.approx(index)
    assert found.value("uno_concordance") == pytest.approx(uno)

    target = CompetingTarget(cause, time).among_others(1)
    follow_up = FollowUp.of(target)
    curve = dynamic_auc_curve(follow_up, target, f)
    for t, value in zip(curve.times, curve.auc, strict=True):
        case = (cause == 1) & (time <= t)
        free = (time > t) | ((time == t) & (cause == 0)) | ((time <= t) & (cause == 2))
        weight = np.outer(1 / G[case], [1 / before(min(t, own)) for own in time[free]])
        right = (f[case][:, None] > f[free]) + 0.5 * (f[case][:, None] == f[free])
        assert value == pytest.approx((weight * right).sum() / weight.sum())
    risen = np.diff(aalen_johansen(cause, time).at(curve.times), prepend=0.0)
    assert curve.mean == pytest.approx(risen @ curve.auc / risen.sum())
    assert found.value("dynamic_auc") == pytest.approx(curve.mean)

    at = brier_times(follow_up, target, until=np.sort(time)[::-1][int(np.ceil(n / 10)) - 1])
    predicted, scores = model.predict_cumulative_incidence(X, at, 1), []
    for column, t in enumerate(at):
        known = np.where((time <= t) & (cause > 0), 1 / G, 0.0)
        known[(time > t) | ((time == t) & (cause == 0))] = 1 / before(t)
        scores.append(known @ (((time <= t) & (cause == 1)) - predicted[:, column]) ** 2 / n)
    score = trapezoid(scores, at) / (at[-1] - at[0])
    assert found.value("integrated_brier_score") == pytest.approx(score)


def test_curves_of_one_cause_are_those_of_aalen_johansen_with_any_weights():
    _, y, _ = cohort(2)
    y = in_steps(y, 0.1)
    target = CompetingTarget(y["cause"], y["time"]).among_others(2)
    weight, at = np.random.default_rng(0).integers(0, 4, len(y)).astype(float), np.array([0.05, 0.5, 2, 4.8])
    curve = aalen_johansen(y["cause"], y["time"], of=2, weight=weight)
    found = KaplanMeier.of(target, weight)
    np.testing.assert_allclose(found.at(at), 1 - curve.at(at))
    place = np.searchsorted(found.times, at[1:], side="right") - 1
    error = found.survival[place] * np.sqrt(found.log_variance[place])
    np.testing.assert_allclose(error, np.sqrt(curve.variance[place]), rtol=0.05)
    # Each patient a cluster: the variance of sums of clusters is that of independent patients.
    alone = KaplanMeier.of(target, clusters=np.arange(len(y))).interval(at[1:])
    for own, other in zip(alone, KaplanMeier.of(target).interval(at[1:]), strict=True):
        np.testing.assert_allclose(own, other, atol=0.003)
    rows, later, parts = censored_later(target, weight)
    np.testing.assert_allclose(KaplanMeier.of(later, parts).at(at), 1 - curve.at(at), atol=0.003)
    np.testing.assert_allclose(np.bincount(rows, parts), weight)
    assert later.time[target.event[rows]].tolist() == target.time[target.event].tolist()


def test_tables_of_incidences_are_evaluated_and_one_alone_at_its_times(model):
    X, y, site = cohort(3)
    times = np.linspace(0.03, 4.5, 150)
    of_model = evaluate(model, X, y, cause=1, horizon=2.0).groups.iloc[0]
    whole = evaluate(Predictions(incidence=table(model, X, times), times=times), X, y, cause=1)
    assert whole.groups["expected"][0] == pytest.approx(of_model["expected"], rel=0.02)
    assert set(whole.by_cause["cause"]) == {1, 2}
    few = np.array([1.0, 2.0])
    alone = evaluate(
        Predictions(incidence={1: table(model, X, few)[1]}, times=few),
        None,
        y,
        sensitive_features=site,
        cause=1,
        threshold=0.3,
    )
    assert set(alone.by_cause["cause"]) == {1}
    row = alone.groups.iloc[0]
    assert row["ratio"] == pytest.approx(of_model["ratio"], abs=0.05)
    assert not (alone.findings["status"] == "miscalibrated").any()


def test_one_cause_gives_the_numbers_of_an_event():
    X, y, site = cohort(4, n=800)
    train, old, _ = cohort(5, n=800)
    plain, one = (Surv.from_arrays, Surv.competing)
    cox = CoxPH().fit(train, plain(old["cause"] == 1, old["time"]))
    causes = CauseSpecificCox().fit(train, one(old["cause"] == 1, old["time"]))
    how = {"sensitive_features": site, "horizon": 2.0, "threshold": 0.3}
    wanted = evaluate(cox, X, plain(y["cause"] == 1, y["time"]), **how)
    found = evaluate(causes, X, one(y["cause"] == 1, y["time"]), cause=1, **how)
    same = [
        "attribute",
        "group",
        "patients",
        "observed",
        "expected",
        "ratio",
        "ratio_low",
        "ratio_high",
        "slope",
    ]
    same += ["survival_observed", "survival_predicted", "status"]
    pd.testing.assert_frame_equal(found.groups[same], wanted.groups[same], rtol=1e-4)
    shown = ["status", "question", "attribute", "group", "value", "low", "high", "p"]
    without = "question not in ('gain', 'gain over reference')"
    pd.testing.assert_frame_equal(
        found.findings.query(without)[shown].reset_index(drop=True),
        wanted.findings.query(without)[shown].reset_index(drop=True),
        rtol=1e-3,
    )
    assert found.value("concordance_index") == pytest.approx(wanted.value("concordance_index"))
    shown = ["attribute", "group", "threshold", "net_benefit"]
    pd.testing.assert_frame_equal(found.decision_curves[shown], wanted.decision_curves[shown], rtol=1e-6)


def test_late_entries_and_other_models_of_causes(model):
    X, y, site = cohort(6)
    entry = np.random.default_rng(0).uniform(0, 0.8, len(y))
    seen = y["time"] > entry
    late = with_fields(y[seen], entry=entry[seen])
    found = evaluate(model, X[seen], late, cause=1, sensitive_features=site[seen])
    assert not (found.findings["status"] == "miscalibrated").any()
    worse = CauseSpecificCox(l2=1.0).fit(*cohort(0)[:2])
    compared = evaluate(model, X, y, cause=1, reference=worse)
    assert compared.groups["gain_over_reference"][0] > 0


def test_models_are_compared_by_one_cause(model):
    X, y, _ = cohort(6, n=600)
    models = {"right": model, "shrunken": CauseSpecificCox(l2=1.0).fit(*cohort(0)[:2])}
    table = compare(models, X, y, cause=1, metrics=["concordance_index", "likelihood_gain"])
    gains = table.query("metric == 'likelihood_gain' and attribute == 'overall'").set_index("model")
    assert gains["difference"]["shrunken"] < 0
    assert gains["p"]["shrunken"] < 0.05
    wanted = evaluate(model, X, y, cause=1).value("concordance_index")
    ranked = table.query("metric == 'concordance_index' and model == 'right'")["value"]
    assert ranked.iloc[0] == pytest.approx(wanted)


def test_a_model_of_one_event_is_evaluated_for_events_of_any_cause():
    X, y, _ = cohort(7, n=300)
    event = Surv.from_arrays(y["cause"] > 0, y["time"])
    assert evaluate(CoxPH().fit(X, event), X, y).by_cause is None


def test_a_cause_is_chosen_by_its_name_or_number_and_another_one_is_refused():
    X, y, _ = cohort(0, n=150)
    y = Surv.competing(y["cause"], y["time"], names=["relapse", "death"])
    model = CauseSpecificCox().fit(X, y)
    asked = {
        "evaluate": lambda cause: evaluate(model, X, y, cause=cause).summary(),
        "compare": lambda cause: compare({"one": model}, X, y, cause=cause).to_string(),
        "certify": lambda cause: certify(model, X, y, cause=cause, n_bootstrap=59).summary(),
        "monitor": lambda cause: str(
            monitor(model, X, y, start=np.zeros(len(X)), every=1, lag=4, cause=cause)
        ),
        "incidence": lambda cause: str(model.predict_cumulative_incidence(X, [1.0], cause)),
        "summary": lambda cause: str(model.summary(cause)),
        "score": lambda cause: model.score(X, y, cause),
    }
    for name, ask in asked.items():
        assert ask("Death") == ask(2) != ask("relapse"), name
        for wrong in (3, 1.5, "other"):
            with pytest.raises(InputError, match="cause must be"):
                ask(wrong)
    for ask in (audit, repair):
        with pytest.raises(InputError, match="cause must be one of 'relapse', 'death', or its number, got 3"):
            ask(model, X, y, cause=3, **({"frozen": True} if ask is repair else {}))


def test_survival_at_few_times_is_evaluated_at_them_for_events_of_any_cause_too():
    X, y, _ = cohort(3)
    hazard, times = 0.2 * np.exp(0.6 * X["x0"]) + 0.2 * np.exp(0.5 * X["x1"]), [0.5, 1.5, 3.0]
    given, one = (times, np.exp(-np.outer(hazard, times))), Surv.from_arrays(y["cause"] > 0, y["time"])
    found, expected = (evaluate(given, None, target) for target in (y, one))
    for metric in ("integrated_brier_score", "brier_skill", "calibration_difference", "likelihood_gain"):
        assert found.value(metric) == pytest.approx(expected.value(metric), abs=1e-9)
    assert found.value("brier_skill") > 0


def every_judgement(model, X, y, **how):
    """Yield every function that judges a model of causes, by name, called with these patients."""
    start = {"start": np.zeros(len(y)), "every": 1.0, "lag": 4.0}
    calls = {
        "evaluate": lambda: evaluate(model, X, y, **how),
        "audit": lambda: audit(model, X, y, **how),
        "certify": lambda: certify(model, X, y, n_bootstrap=19, **how),
        "compare": lambda: compare({"one": model}, X, y, **how),
        "monitor": lambda: monitor(model, X, y, **start, **how),
        "repair": lambda: repair(model, X, y, frozen=True, **how),
        "scorer": lambda: get_scorer("c_index", cause=how.get("cause"))(model, X, y),
    }
    yield from calls.items()


def test_incidences_of_some_causes_are_not_compared_with_events_of_any(model):
    X, y, _ = cohort(3, n=300)
    times = [0.5, 2.0]
    second = Predictions(incidence={2: table(model, X, times)[2]}, times=times)
    for name, ask in every_judgement(second, X, y):
        if name != "scorer":
            with pytest.raises(InputError, match="incidences of cause 2 only, and y also events of cause 1"):
                ask()
    # Survival of no event at all may be given beside it.
    survival = model.predict_survival_function(X, times=times)
    whole = Predictions(survival=survival, incidence=second.incidence, times=times)
    found, wanted = (evaluate(one, None, y).groups for one in (whole, (times, survival)))
    pd.testing.assert_frame_equal(found, wanted)


def test_incidences_are_given_by_number_or_name(model):
    X, y, _ = cohort(3, n=300)
    times, named = [0.5, 2.0], Surv.competing(y["cause"], y["time"], names=["relapse", "death"])
    numbered = table(model, X, times)
    by_name = Predictions(incidence={"Death": numbered[2], "relapse": numbered[1]}, times=times)
    found = evaluate(by_name, None, named, cause="death")
    wanted = evaluate(Predictions(incidence=numbered, times=times), None, named, cause=2)
    pd.testing.assert_frame_equal(found.groups, wanted.groups)
    assert set(evaluate_by_cause(by_name, None, named)["cause"]) == {"relapse", "death"}
    with pytest.raises(InputError, match="have incidences of causes that are numbers, as y has no names"):
        evaluate(by_name, None, y, cause=1)
    wrong = Predictions(incidence={"other": numbered[1]}, times=times)
    with pytest.raises(InputError, match="those of y, 'relapse' and 'death', got \\['other'\\]"):
        evaluate(wrong, None, named, cause=1)


def test_causes_in_another_order_than_in_training_are_refused():
    X, y, _ = cohort(0, n=300)
    names = ["relapse", "death"]
    model = CauseSpecificCox().fit(X, Surv.competing(y["cause"], y["time"], names=names))
    swapped = Surv.competing(np.array([0, 2, 1])[y["cause"]], y["time"], names=names[::-1])
    said = "'relapse', 'death', and y 'death', 'relapse'"
    for _, ask in every_judgement(model, X, swapped, cause="death"):
        with pytest.raises(InputError, match=said):
            ask()
    for ask in (model.score, lambda X, y, cause: evaluate_by_cause(model, X, y)):
        with pytest.raises(InputError, match=said):
            ask(X, swapped, "death")
    plain = CauseSpecificCox().fit(X, y)
    with pytest.raises(InputError, match=f"reference has the causes {said}"):
        evaluate(plain, X, swapped, cause=1, reference=model)
    others = Surv.competing(y["cause"], y["time"], names=["Rezidiv", "Tod"])
    with pytest.warns(UserWarning, match="causes are matched by their numbers"):
        evaluate(model, X, others, cause=2)
    fewer = y["cause"] < 2
    only = Surv.competing(y["cause"][fewer], y["time"][fewer], names=names[:1])
    assert evaluate(model, X[fewer], only, cause="relapse").by_cause is not None


def test_a_model_of_causes_says_that_one_event_is_compared_with_any_cause(model):
    X, y, _ = cohort(7, n=300)
    event = Surv.from_arrays(y["cause"] > 0, y["time"])
    with pytest.warns(UserWarning, match="predicts events of 2 causes, and y has one event: .* of any cause"):
        evaluate(model, X, event)


def test_scorers_score_one_cause_or_any(model):
    X, y, site = cohort(7, n=300)
    names = ["c_index", "uno_c", "auc", "neg_ibs", "neg_ici", "likelihood_gain", "worst_group_c"]
    for cause, asked in ((2, names), (None, [names[0], names[5]])):
        wanted = evaluate(model, X, y, cause=cause, sensitive_features=site)
        scorers = make_scorers(asked, cause=cause)
        found = [scorers[name](model, X, y, sensitive_features=site) for name in asked]
        values = [wanted.value(name) for name in ("concordance_index", "uno_concordance", "dynamic_auc")]
        values += [-wanted.value("integrated_brier_score"), -wanted.value("integrated_calibration_index")]
        values += [wanted.value("likelihood_gain"), wanted.groups.query("group != 'all'")["c_index"].min()]
        expected = dict(zip(names, values, strict=True))
        np.testing.assert_allclose(found, [expected[name] for name in asked], rtol=1e-9)
    with pytest.warns(UserWarning, match="it needs log hazard, which the predictions do not give"):
        assert np.isnan(get_scorer("gain_over_null", cause=1)(model, X, y))


@pytest.mark.sections("causes")
def test_incidences_at_few_times_are_judged_by_cause_at_these_times(model):
    X, y, site = cohort(2)
    times = np.array([1.0, 2.0, 3.0, 4.9])
    P = Predictions(incidence=table(model, X, times), times=times)
    found = evaluate(P, X, y, sensitive_features=site).by_cause
    # Until 4.9 fewer than a tenth of the patients are observed.
    assert found["horizon"].unique().tolist() == [1.0, 2.0, 3.0]
    everyone = found.query("group == 'all' and cause == 2").set_index("horizon")
    for k, time in enumerate(times[:3]):
        assert everyone["predicted"][time] == pytest.approx(P.incidence[2][:, k].mean())
        observed = aalen_johansen(y["cause"], y["time"], of=2).at(np.array([time]))[0]
        assert everyone["observed"][time] == pytest.approx(observed)
    for late, said in ((1.5, r"\(1, 2, 3\), got 1.5\.$"), (4.9, r"\(1, 2, 3\), got 4.9\. Too few")):
        with pytest.raises(InputError, match=f"^at must be one of the times .* observed {said}"):
            evaluate_by_cause(P, X, y, at=[1.0, late])
        for verb in (evaluate, audit):
            with pytest.raises(InputError, match=f"^horizon must be one of the times .* observed {said}"):
                verb(P, X, y, horizon=late)
    assert evaluate_by_cause(P, X, y, at=[3.0, 1.0])["horizon"].unique().tolist() == [1.0, 3.0]
    page = audit(P, X, y, sensitive_features=site, search_rules=False)
    shown = page.parts["causes"]
    assert {row["horizon"] for row in shown.tables[0].rows} == {1.0, 2.0, 3.0}
    said = [one.text for one in shown.statements if one.code == "cause_censored"]
    assert len(said) == 2
    assert all("the estimate by time 2 for" in one for one in said)


def test_incidences_at_many_times_are_judged_by_cause_at_any_time(model):
    X, y, _ = cohort(2)
    times = np.linspace(0.05, 4.9, 98)
    P = Predictions(incidence=table(model, X, times), times=times)
    assert evaluate_by_cause(P, X, y, at=[1.52])["predicted"][0] == pytest.approx(
        table(model, X, [1.5])[1].mean()
    )


def test_late_entry_leaves_no_table_by_cause_of_incidences_at_few_times(model):
    X, y, _ = cohort(2)
    entry = np.where(y["time"] > 1.0, 0.5, 0.0)
    P = Predictions(incidence=table(model, X, [1.0, 2.0]), times=[1.0, 2.0])
    assert evaluate(P, X, with_fields(y, entry=entry)).by_cause is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda F: {1: F[1] - 0.3, 2: F[2] + 0.3},
            r"of cause 1 .* between 0 and 1 .* got -0\.\d+ in row \d+",
        ),
        (lambda F: {1: F[1], 2: F[2][:, :2]}, r"of cause 2 must have shape \(\d+, 3\), got shape \(\d+, 2\)"),
        (
            lambda F: {1: np.where(np.arange(3) == 1, np.nan, F[1]), 2: F[2]},
            "of cause 1 .* got nan .* row 1 at",
        ),
        (
            lambda F: {"death": F[1][:, ::-1], "other": F[2]},
            "of death .* do not fall .* after .* row 1 at time 2",
        ),
        (lambda F: {1: 100 * F[1], 2: 100 * F[2]}, "of cause 1 .* divide percentages by 100"),
        (lambda F: {1: F[1] * 0 + 0.6, 2: F[2] * 0 + 0.5}, "incidences of all causes sum to 1.1 for row 1"),
        (lambda F: {1: F[1][:, 0], 2: F[2][:, 0]}, "of cause 1 must have one row per patient and one column"),
        (lambda F: {}, "at least one cause"),
    ],
)
def test_wrong_incidences_are_refused_with_their_cause(model, change, said):
    F = table(model, cohort(2)[0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=said) as refused:
        Predictions(incidence=change(F), times=[1.0, 2.0, 3.0])
    assert refused.value.argument == "incidence"


def test_the_incidence_of_one_cause_alone_at_many_times_is_shown_at_its_times():
    rng = np.random.default_rng(7)
    time, left, cause = rng.exponential(4, 300), rng.uniform(1, 6, 300), rng.integers(1, 3, 300)
    y = Surv.competing(np.where(time <= left, cause, 0), np.minimum(time, left))
    at = np.linspace(0.1, 5, 50)
    rate = rng.uniform(0.8, 1.2, 300)[:, None] / 4
    given = Predictions(incidence={1: -np.expm1(-rate * at) / 2}, times=at)
    result = evaluate(given, None, y, cause=1)
    assert set(result.times["time"]) <= set(at)
    assert len(result.times) >= 4
    assert result.summary().startswith("By time ")
