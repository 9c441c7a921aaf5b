import numpy as np
import pandas as pd
import pytest

from drosurv import CauseSpecificCox, Surv, evaluate
from drosurv.evaluation import evaluate_by_cause
from drosurv.evaluation.by_cause import at_middle, findings_by_cause
from drosurv.metrics import aalen_johansen, concordance_by_cause, concordance_index
from drosurv.patients.observation import Rows
from drosurv.patients.target import with_fields
from drosurv.predictions import as_predictions
from drosurv.report import audit
from drosurv.report.sections.calibration_sections import cause_statements


@pytest.fixture(scope="module")
def evaluated():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(400, 2)), rng.choice(["a", "b"], 400)
    # Group b often dies of the second cause first, so that counting those as censored claims most there.
    first, second = rng.exponential(1.0, 400), rng.exponential(np.where(group == "b", 0.5, 4.0))
    time = np.minimum(np.minimum(first, second), 3.0)
    cause = np.where(time == first, 1, np.where(time == second, 2, 0))
    model = CauseSpecificCox().fit(X, Surv.competing(cause, time))
    table = evaluate_by_cause(
        model, X, Surv.competing(cause, time), at=[0.5, 1.0], sensitive_features=pd.Series(group, name="site")
    )
    return model, X, cause, time, group, table


def test_there_is_a_row_for_every_cause_group_and_time(evaluated):
    table = evaluated[-1]
    assert len(table) == 2 * 3 * 2
    assert set(table["group"]) == {"all", "a", "b"}


def test_numbers_are_those_of_the_metrics_among_the_group(evaluated):
    model, X, cause, time, group, table = evaluated
    row = table[(table["cause"] == 2) & (table["group"] == "b") & (table["horizon"] == 1.0)].iloc[0]
    own = group == "b"
    observed = aalen_johansen(cause[own], time[own], of=2).at(np.array([1.0]))[0]
    assert row["observed"] == pytest.approx(observed)
    predicted = model.predict_cumulative_incidence(X[own], times=[1.0], cause=2).mean()
    assert row["predicted"] == pytest.approx(predicted)
    by_incidence = model.predict_cumulative_incidence(X[own], times=[1.0], cause=2)[:, 0]
    assert row["c_index"] == pytest.approx(concordance_by_cause(cause[own], time[own], by_incidence, of=2))


def test_brier_scores_of_a_group_have_its_own_censoring_weights(evaluated):
    model, X, cause, time, group, _ = evaluated
    left = np.random.default_rng(3).exponential(np.where(group == "b", 0.8, 3.0))
    y = Surv.competing(np.where(time <= left, cause, 0), np.minimum(time, left))
    own = group == "b"
    table = evaluate_by_cause(model, X, y, at=[0.5, 1.0], sensitive_features=group)
    alone = evaluate_by_cause(model, X[own], y[own], at=[0.5, 1.0])
    np.testing.assert_allclose(table.query("group == 'b'")["brier"], alone["brier"], rtol=1e-12)


def test_a_horizon_is_that_of_the_table_by_cause_and_one_cause_has_one_c_index(evaluated):
    X, rng = evaluated[1], np.random.default_rng(2)
    # Who often has the second event rarely has the first: scores of the first cause alone would rank them too high.
    second = rng.exponential(np.exp(-1.5 * X[:, 0]))
    first = rng.exponential(np.exp(-0.2 * X[:, 0]))
    y = Surv.competing(np.where(first < second, 1, 2), np.minimum(first, second))
    model = CauseSpecificCox().fit(X, y)
    whole = evaluate(model, X, y, horizon=0.7).by_cause.set_index("cause")
    assert whole["horizon"].unique().tolist() == [0.7]
    alone = evaluate(model, X, y, horizon=0.7, cause=1)
    assert whole["c_index"][1] == pytest.approx(alone.value("concordance_index"))
    assert whole["c_index"][1] > 0.55 > model.score(X, y, 1)
    assert whole["observed"][1] == pytest.approx(1 - alone.groups["survival_observed"][0])


def test_counting_other_causes_as_censored_claims_most_where_they_are_frequent(evaluated):
    table = evaluated[-1]
    late = table[(table["cause"] == 1) & (table["horizon"] == 1.0)].set_index("group")
    late = late["observed_if_others_censored"] - late["observed"]
    assert late["b"] > late["all"] > late["a"] > 0


def test_evaluate_judges_an_event_of_any_cause_and_tells_the_causes_apart(evaluated):
    model, X, cause, time, group, _ = evaluated
    y = Surv.competing(cause, time)
    result = evaluate(model, X, y, sensitive_features=pd.Series(group, name="site"))
    assert result.select(metric="concordance_index", kind="overall")[0].events == (cause > 0).sum()
    # Ranked by the predicted probability of any event by the horizon.
    survival = model.predict_survival_function(X, times=[result.settings.horizon])[:, 0]
    anything = Surv.from_arrays(cause > 0, time)
    assert result.value("concordance_index") == pytest.approx(concordance_index(anything, -survival))
    wanted = evaluate_by_cause(model, X, y, sensitive_features=pd.Series(group, name="site"))
    pd.testing.assert_frame_equal(result.by_cause, wanted)
    told = evaluate(model, X, y, y_train=y, reference=model)
    assert told.value("brier_skill") == pytest.approx(result.value("brier_skill"))
    assert told.groups["gain_over_reference"].tolist() == [0.0]
    # A probability of any event is no log hazard.
    assert "share_of_gain" not in told.overall
    assert any("not log hazards" in note or "need scores that are log hazards" in note for note in told.notes)


def test_late_entries_are_judged_from_entry_on(evaluated):
    model, X, cause, time, group, table = evaluated
    sites, y = pd.Series(group, name="site"), Surv.competing(cause, time)
    at_zero = evaluate_by_cause(
        model, X, with_fields(y, entry=np.zeros(len(X))), [0.5, 1.0], sensitive_features=sites
    )
    pd.testing.assert_frame_equal(at_zero, table)
    kept = time > 0.3
    late = with_fields(y[kept], entry=np.full(kept.sum(), 0.3))
    found = evaluate_by_cause(model, X[kept], late, [0.5]).iloc[0]
    by = model.predict_cumulative_incidence(X[kept], times=[0.3, 0.8], cause=1)
    alive = model.predict_survival_function(X[kept], times=[0.3])[:, 0]
    assert found["predicted"] == pytest.approx(((by[:, 1] - by[:, 0]) / alive).mean())
    observed = aalen_johansen(cause[kept], time[kept] - 0.3).at(np.array([0.5]))
    assert found["observed"] == pytest.approx(observed.item())
    result = evaluate(model, X[kept], late)
    wanted = evaluate_by_cause(model, X[kept], late)
    pd.testing.assert_frame_equal(result.by_cause, wanted)


def test_patients_from_different_entries_on_are_ranked_by_their_incidence(evaluated):
    model, X, cause, time = evaluated[0], *(part[:120] for part in evaluated[1:4])
    entry = np.random.default_rng(1).uniform(0, 0.9) * time
    entry[::3] = 0.0
    found = evaluate_by_cause(
        model, X, with_fields(Surv.competing(cause, time), entry=entry), [0.4, 0.5, 0.6]
    ).iloc[0]
    incidence = []
    for x, since in zip(X, entry, strict=True):
        by = model.predict_cumulative_incidence(x[None], times=[since, since + 0.5], cause=1)[0]
        incidence.append((by[1] - by[0]) / model.predict_survival_function(x[None], times=[since])[0, 0])
    assert found["c_index"] == pytest.approx(concordance_by_cause(cause, time - entry, incidence, of=1))
    assert found["c_index"] != concordance_by_cause(cause, time - entry, model.predict(X, 1), of=1)


def test_dropped_labels_stay_out_and_times_beyond_follow_up_have_no_score(evaluated):
    model, X, cause, time, group, _ = evaluated
    labels = pd.Series(group, name="site", dtype=object)
    labels[:3] = None
    told = {"sensitive_features": labels, "missing": "drop", "at": [0.5, 1.0, 50.0]}
    table = evaluate_by_cause(model, X, Surv.competing(cause, time), **told)
    assert set(table["group"]) == {"all", "a", "b"}
    assert table.query("group != 'all'").groupby(["cause", "horizon"])["patients"].sum().unique() == [397]
    assert table.groupby("horizon")[["brier", "observed"]].count().to_dict("list") == {
        "brier": [6, 6, 0],
        "observed": [6, 6, 0],
    }


def test_scored_patients_need_not_have_had_every_cause(evaluated):
    model, X, cause, time, *_ = evaluated
    some = cause != 1
    y = Surv.competing(cause[some], time[some])
    table = evaluate_by_cause(model, X[some], y, at=[1.0]).set_index("cause")
    assert table["observed"][1] == 0.0
    assert table["predicted"][1] > 0.1
    assert np.isnan(table["c_index"][1])
    assert table["c_index"][2] > 0.4
    assert set(evaluate(model, X[some], y).by_cause["cause"]) == {1, 2}


def test_no_sentence_names_a_group_too_small_to_be_judged(evaluated):
    model, X, cause, time, group, _ = evaluated
    # With events enough, but too few patients.
    few = np.where(np.isin(np.arange(len(X)), np.flatnonzero(cause == 1)[:30]), "few", group)
    table = evaluate_by_cause(model, X, Surv.competing(cause, time), [1.0], sensitive_features={"site": few})
    assert table.query("group == 'few' and cause == 1")["events"].item() == 30
    assert set(at_middle(table)["group"]) == {"all", "a", "b"}


@pytest.mark.sections("verdict", "causes")
def test_the_audit_has_a_section_by_cause(evaluated):
    model, X, cause, time, group, _ = evaluated
    y = Surv.competing(cause, time)
    report = audit(model, X, y, sensitive_features=pd.Series(group, name="site"), search_rules=False)
    shown = report.tables["causes"]
    assert len(shown) == 2 * 3 * 3
    said = [s.text for s in report.parts["causes"].statements]
    # Group b often dies of the second cause first.
    assert any("Cause 1: if other causes counted as censored" in text and "site b" in text for text in said)
    assert "Cause by cause" in report.to_html()
    assert "The event is an event of any cause." in report.parts["verdict"].facts["note"]
    ranked = next(text for text in said if "the c-index is lowest" in text)
    assert "site a" in ranked
    assert "site b" in ranked
    assert ranked.endswith("Whether it is chance was not tested.")


def test_sentences_claim_nothing_beyond_follow_up_and_of_no_other_group_where_there_is_none(evaluated):
    model, X, cause, time, *_ = evaluated
    cut = np.quantile(time, 0.4)
    short = Surv.competing(np.where(time > cut, 0, cause), np.minimum(time, cut))
    for y, horizon, ends in ((short, 2 * cut, []), (Surv.competing(cause, time), 1.0, [" % had it."] * 2)):
        found = evaluate_by_cause(model, X, y, [horizon])
        said = list(cause_statements(at_middle(found), [], ""))
        assert [s.text[-10:] for s in said if s.code == "cause_censored"] == ends


def test_strata_and_offset_reach_the_incidences_and_the_ranks(evaluated):
    _, X, cause, time, group, _ = evaluated
    y, offset = Surv.competing(cause, time), np.linspace(-1, 1, len(X))
    model = CauseSpecificCox().fit(X, y, strata=group, offset=offset)
    found = evaluate_by_cause(model, X, y, [0.5, 1.0, 2.0], strata=group, offset=offset)
    incidence = model.predict_cumulative_incidence(
        X, times=[0.5, 1.0, 2.0], cause=2, strata=group, offset=offset
    )
    own = found[found["cause"] == 2]
    np.testing.assert_allclose(own["predicted"], incidence.mean(axis=0))
    assert own["c_index"].iloc[0] == pytest.approx(concordance_by_cause(cause, time, incidence[:, 1], of=2))
    alone = CauseSpecificCox().fit(X, y, offset=offset)
    c_index = evaluate_by_cause(alone, X, y, [0.5], offset=offset)["c_index"].iloc[0]
    incidence = alone.predict_cumulative_incidence(X, times=[0.5], cause=1, offset=offset)[:, 0]
    assert c_index == pytest.approx(concordance_by_cause(cause, time, incidence, of=1))
    result = evaluate(model, X, y, strata=group, offset=offset)
    assert set(result.by_cause["cause"]) == {1, 2}


@pytest.mark.sections("causes")
def test_a_wrong_cause_is_found_among_both_and_named_on_the_page(evaluated):
    model, X, cause, time, group, _ = evaluated
    # Half of the events of the second cause in group a are not seen any more.
    lost = (cause == 2) & (group == "a") & (np.arange(len(X)) % 2 == 0)
    y = Surv.competing(np.where(lost, 0, cause), time)
    predicted = as_predictions(model, X, len(y))
    members = {("site", name): np.flatnonzero(group == name) for name in ("a", "b")}
    found = findings_by_cause(predicted, y, Rows(), members)
    assert [(k, row.group) for k, row in found] == [(k, name) for k in (1, 2) for name in ("all", "a", "b")]
    # The model, which does not know the site, expects too few events of cause 2 in b and too many in a.
    wrong = {(k, row.group) for k, row in found if row.status == "miscalibrated"}
    assert wrong == {(2, "a"), (2, "b")}
    few = findings_by_cause(predicted, y, Rows(), members, relevance=20.0)
    assert {row.status for _, row in few if row.p < 0.05} == {"clear"}
    report = audit(model, X, y, sensitive_features=pd.Series(group, name="site"), search_rules=False)
    said = [s.text for s in report.parts["causes"].statements if s.concern]
    assert len(said) == 2
    assert all(text.startswith("Cause 2: ") for text in said)


def test_only_a_group_is_said_to_have_the_largest_error_of_the_groups():
    row = {
        "cause": "Cause 1",
        "attribute": "site",
        "group": "a",
        "horizon": 2.0,
        "observed": 0.2,
        "c_index": np.nan,
    }
    shares = {"a": 0.25, "b": 0.28}
    table = pd.DataFrame(
        [row | {"group": group, "observed_if_others_censored": s} for group, s in shares.items()]
    )
    everybody = table.iloc[[0]].assign(attribute="overall", group="all", observed_if_others_censored=0.4)
    said = "would be 28.0 %, where 20.0 % had it, the largest error of the groups with enough patients."
    (one,) = cause_statements(table, [], "years")
    assert one.text.endswith(said)
    (one,) = cause_statements(pd.concat([table, everybody]).reset_index(drop=True), [], "years")
    assert one.text.endswith("for everybody would be 40.0 %, where 20.0 % had it.")
