import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.svm import FastSurvivalSVM

import drosurv
from drosurv import metrics
from drosurv.estimators import AcceleratedFailureTime, CoxPH
from drosurv.evaluation import EvaluationResult, Predictions, SmallGroupWarning, evaluate, get_scorer
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluator import with_intersections
from drosurv.judging.verdict import PROBLEMS
from drosurv.metrics import FollowUp
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.risk_strata import EventsByTime
from drosurv.patients.groups import parse_groups
from drosurv.patients.target import Surv, Target, parse_target, with_fields


@pytest.fixture(scope="module")
def result(train, held_out, evaluated):
    groups = with_intersections(held_out.sensitive_features, len(held_out.y))
    with pytest.warns(SmallGroupWarning, match="site b & sex m"):
        return evaluated(X_train=train.X, sensitive_features=groups, paper=True)


_ENDS = ("", "_low", "_high", "_p")


def quick(model, train, held_out, **changes):
    options = {"y_train": train.y, "sensitive_features": held_out.sensitive_features}
    X = changes.pop("X", held_out.X)
    y = changes.pop("y", held_out.y)
    return evaluate(model, X, y, **{**options, **changes})


def quiet(*args, **changes):
    with pytest.warns(SmallGroupWarning):
        return quick(*args, **changes)


@pytest.fixture(scope="module")
def plain(model, train, held_out):
    """Values without intervals, by default options otherwise."""
    return quick(model, train, held_out)


def test_every_number_of_a_group_has_its_patients_and_events(result, held_out):
    table = result.to_frame()
    sites, events = held_out.sensitive_features["site"], pd.Series(held_out.y["event"])
    for site in ("a", "b"):
        rows = table[(table["attribute"] == "site") & (table["group"] == site)]
        assert set(rows["patients"]) == {(sites == site).sum()}
        assert set(rows["events"]) == {events[sites == site].sum()}
        np.testing.assert_allclose(rows["censoring"], 1 - events[sites == site].mean())
    assert len(table[["attribute", "group", "metric"]].drop_duplicates()) == len(table)


def test_gaps_are_the_largest_difference_between_groups_and_name_them(result):
    table = result.to_frame()
    groups = table[(table["attribute"] == "site") & (table["metric"] == "concordance_index")]
    gap = groups[groups["kind"] == "gap"].iloc[0]
    a, b = (result.value("concordance_index", "site", site) for site in ("a", "b"))
    assert gap["value"] == pytest.approx(a - b)
    assert gap["group"] == "a vs b"
    # The attribute "site & sex" has a small group.
    tested = table[(table["kind"] == "gap") & table["p"].notna()]
    assert set(tested["attribute"]) == {"site", "sex"}
    assert set(tested["metric"]) == {name for name, metric in CATALOGUE.items() if metric.comparable}
    assert ((tested["low"] > 0) == (tested["p"] < 0.05)).all()
    assert tested["adjusted"].all()
    assert np.isnan([gap["low"], gap["high"], gap["p"]]).all()


def test_intervals_hold_their_number_and_nothing_is_judged_by_the_papers_metrics(result):
    table = result.to_frame()
    # Held against itself, the model's share of the gain does not vary.
    without = {"d_calibration_p", "integrated_calibration_index", "share_of_gain"}
    papers = {name for name, metric in CATALOGUE.items() if metric.is_papers}
    assert table.loc[table["metric"].isin(without | papers), ["low", "high", "p"]].isna().all(axis=None)
    own = table[~table["metric"].isin(without | papers) & (table["kind"] != "gap")]
    assert own[["low", "high", "standard_error"]].notna().all(axis=None)
    assert (own["low"] <= own["value"] + 1e-9).all()
    assert (own["value"] <= own["high"] + 1e-9).all()
    assert set(table.loc[table["status"] != "ok", "attribute"]) == {"site & sex"}


def test_the_papers_metrics_are_shown_if_they_are_asked_for(plain, result):
    papers = {name for name, metric in CATALOGUE.items() if metric.is_papers}
    assert papers <= set(result.table["metric"])
    assert papers.isdisjoint(plain.table["metric"])
    assert plain.control is None


def test_gain_and_slope_have_one_number_and_one_interval(evaluated):
    result = evaluated()
    table = result.to_frame()
    groups = result.groups.set_index(["attribute", "group"])
    for metric, column in (("likelihood_gain", "gain"), ("calibration_slope", "slope")):
        rows = table[(table["metric"] == metric) & (table["kind"] != "gap")]
        rows = rows.set_index(["attribute", "group"])
        judged = groups.loc[groups["judged"]].index
        assert rows.loc[judged, "adjusted"].all()
        for end in ("low", "high"):
            np.testing.assert_array_equal(rows.loc[judged, end], groups.loc[judged, f"{column}_{end}"])
        np.testing.assert_array_equal(rows.loc[judged, "value"], groups.loc[judged, column])
    assert not table.loc[table["metric"] == "concordance_index", "adjusted"][table["kind"] != "gap"].any()
    assert f"adjusted for all {result.settings.n_tests} tests" in repr(result)


def test_findings_are_the_numbers_of_the_group_table_and_the_sentences_of_the_summary(result):
    columns = {
        "level": "ratio",
        "slope": "slope",
        "gain": "gain",
        "gain over reference": "gain_over_reference",
    }
    groups = result.groups.set_index(["attribute", "group"])
    for row in result.findings.itertuples():
        if row.question in columns and row.status != "too_few":
            found = [groups.loc[(row.attribute, row.group), columns[row.question] + end] for end in _ENDS]
            assert found == pytest.approx([row.value, row.low, row.high, row.p])
    problems = result.findings[result.findings["status"].isin(PROBLEMS)]
    assert len(problems)
    for text in problems["text"]:
        assert text in result.summary()
    assert result.verdict.status == problems["status"].iloc[0] == "miscalibrated"
    assert groups.loc[("site", "b"), "status"] == "miscalibrated"
    # It cannot be told of a group whose interval includes half more or a third fewer events than predicted.
    right = groups.loc[("site", "a")]
    wide = right["ratio_low"] < 1 / 1.5 or right["ratio_high"] > 1.5
    assert right["status"] == ("unclear" if wide else "clear")


def test_calibration_and_curves_are_those_of_each_group(result, model, train, held_out):
    rows = np.flatnonzero(held_out.sensitive_features["site"] == "b")
    curves = model.predict_survival_function(held_out.X[rows])
    quartiles = FollowUp.parse(train.y).event_percentiles[[25, 50, 75]]
    horizons = np.union1d(quartiles, result.settings.horizon)
    found = result.calibration.query("attribute == 'site' and group == 'b'").reset_index(drop=True)
    np.testing.assert_array_equal(found["horizon"], horizons)
    target = Target(held_out.y["event"][rows], held_out.y["time"][rows])
    for row in found.itertuples():
        risk = np.array([1 - curve(row.horizon) for curve in curves])
        outcomes = EventsByTime.of(row.horizon, target, risk).outcomes
        assert (row.predicted, row.observed) == pytest.approx((1 - risk.mean(), 1 - outcomes.mean()))
        assert row.difference == pytest.approx(row.predicted - row.observed)
        assert row.at_risk == (target.time >= row.horizon).sum()
    # Survival is one less the risk of the table of times, with the same interval.
    times = result.by_horizon(result.times)["site", "b"]
    then = found[found["horizon"] == result.settings.horizon].iloc[0]
    assert [1 - then[name] for name in ("predicted", "observed", "high", "low")] == pytest.approx(
        [times[name] for name in ("predicted", "observed", "low", "high")]
    )
    survival = result.groups.set_index(["attribute", "group"]).loc[("site", "b")]
    assert survival["survival_observed"] == then["observed"]
    # The metric is the difference at the horizon.
    rows_of_site = result.select(metric="calibration_difference", attribute="site", kind="group")
    (metric,) = (row for row in rows_of_site if row.group == "b")
    then = found["horizon"] == result.settings.horizon
    (there,) = found.loc[then, ["difference", "difference_low", "difference_high"]].to_numpy(dtype=float)
    np.testing.assert_allclose(there, [metric.value, metric.low, metric.high])
    assert (found["difference_low"] < found["difference"]).all()
    assert (found["difference_high"] > found["difference"]).all()
    shares = result.d_calibration.query("attribute == 'site' and group == 'b'")["share"]
    np.testing.assert_allclose(shares, metrics.d_calibration(held_out.y[rows], curves).shares)
    lines = result.survival.query("attribute == 'site' and group == 'b'")
    assert lines["predicted"].iloc[0] == pytest.approx(1.0)
    later = lines.iloc[30]
    observed = metrics.calibration_at(held_out.y[rows], curves, [later["time"]])
    assert later["observed"] == pytest.approx(observed["observed"].item())
    assert later["predicted"] == pytest.approx(observed["predicted"].item())
    assert later["at_risk"] == (held_out.y["time"][rows] >= later["time"]).sum()


def test_curves_are_shown_where_patients_are_at_risk_long_after_the_last_event_but_one():
    rng = np.random.default_rng(0)
    time, event = np.append(rng.uniform(0, 1, 200), np.linspace(2.0, 10.0, 30)), np.arange(230) < 200
    # The last event is among the last three patients.
    event[-3] = True
    y = Surv.from_arrays(event, time)
    survival = Predictions(survival=[lambda t: np.exp(-t)] * 230)
    lines = evaluate(survival, None, y, y_train=y).survival
    enough = lines[lines["at_risk"] >= 5]
    assert enough["time"].iloc[-1] == pytest.approx(np.sort(time)[-5], abs=0.2)
    km = KaplanMeier.of(parse_target(y)).at(lines["time"].to_numpy())
    np.testing.assert_allclose(lines["observed"], km)
    assert len(lines) <= 102


def test_concordance_between_groups_is_shown(result, model, held_out):
    expected = metrics.cross_group_concordance(
        held_out.y, model.predict(held_out.X), held_out.sensitive_features["site"]
    )
    found = result.cross_group.query("attribute == 'site'").set_index(["event_first", "other"])["value"]
    for first in ("a", "b"):
        for other in ("a", "b"):
            assert found[first, other] == pytest.approx(expected.loc[first, other])


def test_bare_arrays_give_what_the_model_gives(plain, model, train, held_out):
    times = model.unique_times_
    curves = model.predict_survival_function(held_out.X, times=times)
    said = Predictions(model.predict(held_out.X), curves, times, curve_type="step")
    found, wanted = quick(said, train, held_out).to_frame(), plain.to_frame()
    # The hazard of a jump of a table is a probability, that of the model its own increment.
    hazards = wanted["metric"].isin(["likelihood_gain", "calibration_slope"])
    pd.testing.assert_frame_equal(found[~hazards], wanted[~hazards])
    np.testing.assert_allclose(found["value"][hazards], wanted["value"][hazards], atol=0.1)


def test_scores_alone_leave_out_what_needs_curves_and_say_so(train, held_out):
    svm = FastSurvivalSVM(max_iter=5, random_state=0).fit(train.X, train.y)
    # A bare array is one of log hazards, whose differences are judged, of everybody and four groups.
    for given, n_slopes in ((svm, 0), (svm.predict(held_out.X), 5)):
        found = quick(given, train, held_out)
        assert "integrated_brier_score" not in set(found.to_frame()["metric"])
        assert any("gives no survival curves" in note for note in found.notes)
        assert len(found.calibration) == 0
        assert sorted(found.findings["question"]) == ["ranking", *n_slopes * ["slope"]]
        with pytest.raises(ValueError, match="no survival curves"):
            found.plot_calibration()


def test_a_frame_and_a_pipeline_give_what_arrays_give(result, train, held_out):
    columns = ["x", "y", "z"]
    X_train, X = (
        pd.DataFrame(part.X, columns=columns, index=range(7, 7 + len(part.X))) for part in (train, held_out)
    )
    pipeline = make_pipeline(StandardScaler(), CoxPH()).fit(X_train, train.y)
    found = quick(pipeline, train, held_out, X=X, X_train=X_train)
    for metric in ("concordance_index", "integrated_brier_score", "share_of_gain"):
        assert found.value(metric) == pytest.approx(result.value(metric), rel=1e-4)


def test_without_features_or_training_features_the_notes_say_what_is_missing(model, train, held_out):
    found = quick(model.predict(held_out.X), train, held_out, X=None, paper=True)
    assert any("F_I" in note and "which predictions do not tell" in note for note in found.notes)
    assert any("share of plain Cox" in note for note in found.notes)
    metrics_found = set(found.to_frame()["metric"])
    assert not {"individual_disparity", "average_disparity", "share_of_gain"} & metrics_found
    assert "group_disparity" in metrics_found
    text = pd.DataFrame({"x": held_out.X[:, 0], "site": "somewhere"})
    found = quick(model.predict(held_out.X), train, held_out, X=text, paper=True)
    assert any("text or missing" in note for note in found.notes)
    far = quick(model, train, held_out, X=10 + held_out.X, paper=True)
    assert any("not standardised" in note for note in far.notes)


def test_the_follow_up_kept_by_a_model_replaces_training_targets(plain, model, train, held_out):
    kept = quick(model, train, held_out, y_train=model.follow_up_)
    np.testing.assert_allclose(plain.to_frame()["value"], kept.to_frame()["value"], rtol=1e-9)
    with_X = quick(model, train, held_out, y_train=model.follow_up_, X_train=train.X)
    assert any("y_train and numeric X_train to fit plain Cox on" in note for note in with_X.notes)


def test_plain_cox_beside_plain_cox_treats_ties_alike(train, held_out):
    y, y_test = (Surv.from_arrays(own["event"], np.ceil(own["time"] / 4)) for own in (train.y, held_out.y))
    cox = CoxPH(ties="efron").fit(train.X, y)
    found = evaluate(cox, held_out.X, y_test, y_train=y, X_train=train.X)
    assert found.value("share_of_gain") == pytest.approx(1, abs=1e-6)


def test_a_reference_may_be_any_model_or_scores(model, train, held_out):
    other = 0.5 * model.predict(held_out.X)
    for reference in (model, model.predict(held_out.X), Predictions(model.predict(held_out.X))):
        found = quick(other, train, held_out, reference=reference, paper=True)
        assert 0.4 < found.value("share_of_gain") < 1
        assert found.control.factor == pytest.approx(0.5, abs=1e-4)


def test_a_reference_no_better_than_no_model_is_why_its_share_is_undefined(model, train, held_out):
    with pytest.warns(UndefinedMetricWarning) as told:
        found = quick(model, train, held_out, reference=-model.predict(held_out.X))
    assert np.isnan(found.value("share_of_gain"))
    assert ["no better than no model" in str(warning.message) for warning in told] == [True]


@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (1.0, -1000.0)])
def test_hazards_that_overflow_or_vanish_leave_their_disparities_out(model, train, held_out, factor, shift):
    found = quick(factor * model.predict(held_out.X) + shift, train, held_out, paper=True)
    assert any("overflows" in note for note in found.notes)
    assert "group_disparity" not in set(found.to_frame()["metric"])
    assert np.isfinite(found.value("concordance_index"))
    assert found.control is None


def test_missing_labels_are_a_group(model, train, held_out):
    site = held_out.sensitive_features["site"].where(np.arange(len(held_out.y)) % 4 > 0)
    grouped = quick(model, train, held_out, sensitive_features=site).to_frame()
    assert set(grouped.loc[grouped["kind"] == "group", "group"]) == {"a", "b", "missing"}


def test_a_group_without_comparable_pairs_is_nan_with_a_warning_that_names_it(model, train, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[np.flatnonzero(~held_out.y["event"])[:3]] = "lonely"
    with (
        pytest.warns(
            UndefinedMetricWarning, match=r"site lonely \(3 patients, 0 events\): concordance_index"
        ),
        pytest.warns(SmallGroupWarning, match="site lonely"),
    ):
        found = quick(model, train, held_out, sensitive_features={"site": site})
    assert np.isnan(found.value("concordance_index", "site", "lonely"))
    row = next(row for row in found.rows if row.group == "lonely" and row.metric == "concordance_index")
    assert row.status == "undefined"
    assert found.value("concordance_index", "site") == pytest.approx(
        abs(found.value("concordance_index", "site", "a") - found.value("concordance_index", "site", "b"))
    )


def test_small_groups_are_warned_of_and_marked(model, train, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[:12] = "few"
    with pytest.warns(SmallGroupWarning, match="site few: 12 patients"):
        found = quick(model, train, held_out, sensitive_features={"site": site})
    marked = {row.group for row in found.select(kind="group") if row.status == "small group"}
    assert marked == {"few"}
    # A gap is marked just where one of its two groups is.
    for row in found.select(kind="gap"):
        if row.status != "undefined":
            assert (row.status == "small group") == ("few" in row.group.split(" vs "))
    assert {row.status for row in found.select(metric="concordance_index", kind="gap")} <= {
        "ok",
        "small group",
    }
    assert "Not judged (fewer than 50 patients): site few." in found.summary()


def test_a_group_of_two_has_values_without_an_interval(model, train, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    early, late = np.argsort(held_out.y["time"])[[0, -1]]
    assert held_out.y["event"][early]
    site[[early, late]] = "two"
    with (
        pytest.warns(UndefinedMetricWarning, match="calibration_slope"),
        pytest.warns(SmallGroupWarning, match="site two"),
    ):
        found = quick(model, train, held_out, sensitive_features={"site": site})
    row = next(row for row in found.select(metric="concordance_index") if row.group == "two")
    assert row.value in (0, 1)
    assert np.isnan([row.low, row.high]).all()
    assert any("calibration_slope" in note and "site two" in note for note in found.notes)
    assert f"{row.value:.3f} (" not in found.to_markdown()


def test_groups_that_can_be_judged_have_a_gap_and_a_test_of_their_own(model, train, held_out):
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[:12] = "few"
    sex = held_out.sensitive_features["sex"]
    options = {"paper": True}
    with pytest.warns(SmallGroupWarning, match="site few: 12 patients"):
        found = quick(model, train, held_out, sensitive_features={"site": site, "sex": sex}, **options)
    # As if the few had no label and were left out.
    site[:12] = None
    without = parse_groups(site, missing="drop")
    dropped = quick(model, train, held_out, sensitive_features={"site": without, "sex": sex}, **options)
    for metric in ("uno_concordance", "brier_skill", "calibration_difference"):
        gaps = {row.attribute: row for row in found.gaps(metric)}
        assert {*gaps} == {"site", "sex"}
        (alone,) = dropped.select(metric=metric, attribute="site", kind="gap")
        assert gaps["site"].value == pytest.approx(alone.value)
        assert gaps["site"].group == alone.group
        assert gaps["site"].p == pytest.approx(alone.p, abs=2e-3)
        (everybody,) = found.select(metric=metric, attribute="sex", kind="gap")
        assert (gaps["sex"].value, gaps["sex"].p) == (everybody.value, everybody.p)
        (whole,) = found.select(metric=metric, attribute="site", kind="gap")
        assert np.isnan([whole.low, whole.high, whole.p]).all()
    (told,) = (s.text for s in found.statements() if s.code == "worst_group")
    assert "few" not in told
    assert {row.attribute for row in found.gaps("group_disparity")} == {"site", "sex"}


def test_an_attribute_with_one_group_is_left_out_and_said(model, train, held_out):
    groups = {"country": ["a"] * 240, "sex": held_out.sensitive_features["sex"].to_numpy()}
    found = quick(model, train, held_out, sensitive_features=groups)
    assert found.attributes == ("sex",)
    assert any(
        "attribute 'country' is left out: all patients are in one group, a." in note for note in found.notes
    )
    alone = quick(model, train, held_out, sensitive_features={"country": ["a"] * 240})
    assert set(alone.findings["attribute"]) == {"overall"}


def test_without_sensitive_features_everybody_is_evaluated(model, train, held_out):
    found = quick(model, train, held_out, sensitive_features=None)
    assert set(found.to_frame()["kind"]) == {"overall"}
    assert any("by group" in note for note in found.notes)
    assert found.summary()


def test_it_can_be_written_as_json(result):
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert len(written["metrics"]) == len(result.rows)
    assert written["metrics"][0]["value"] == result.rows[0].value
    assert {"settings", "calibration", "control", "notes", "summary", "findings"} <= set(written)


def test_a_number_that_is_not_there_is_named(result):
    assert isinstance(result, EvaluationResult)
    with pytest.raises(KeyError, match=re.escape("metric='c'")):
        result.value("c")


def test_names_of_attributes_and_groups_do_not_collide_with_those_of_the_table(model, train, held_out):
    names = {"intersection": "site", "all": "sex"}
    labels = {"a": "all", "b": "overall", "f": "all", "m": "mean_hazard"}
    renamed = {new: held_out.sensitive_features[old].map(labels) for new, old in names.items()}
    plain, odd = (
        quiet(model, train, held_out, sensitive_features=with_intersections(given, 240))
        for given in (held_out.sensitive_features, renamed)
    )
    columns = ["metric", "kind", "value", "low", "high", "p", "patients", "status"]
    pd.testing.assert_frame_equal(odd.to_frame()[columns], plain.to_frame()[columns], rtol=1e-9)


def test_a_group_that_the_null_model_errs_nothing_on_has_no_skill_and_stops_nothing(model, train, held_out):
    """Patients censored before the first time of the grid add nothing to either Brier score."""
    y = held_out.y.copy()
    early = np.flatnonzero(~y["event"])[:12]
    y["time"][early] = 0.0
    site = held_out.sensitive_features["site"].to_numpy(dtype=object).copy()
    site[early] = "early"
    with (
        pytest.warns(UndefinedMetricWarning, match="site early .*brier_skill"),
        pytest.warns(SmallGroupWarning, match="site early"),
    ):
        found = quick(model, train, held_out, y=y, sensitive_features={"site": site})
    assert np.isnan(found.value("brier_skill", "site", "early"))
    gap = found.gaps("brier_skill")[0]
    assert 0 < gap.p <= 1
    assert set(gap.group.split(" vs ")) == {"a", "b"}
    model_with_groups = get_scorer("worst_group_brier_skill")
    with pytest.warns(UndefinedMetricWarning, match="worst_group_brier_skill is undefined .* site early"):
        worst = model_with_groups(model, held_out.X, y, sensitive_features={"site": site})
    assert worst == pytest.approx(min(found.value("brier_skill", "site", group) for group in "ab"))


def test_training_features_are_taken_by_name(model, train, held_out):
    names = ["a", "b", "c"]
    X, X_train = (pd.DataFrame(part.X * [1.0, 5.0, 0.2], columns=names) for part in (held_out, train))
    risk = model.predict(held_out.X)
    one, other = (
        quick(risk, train, held_out, X=X, X_train=table).to_frame()
        for table in (X_train, X_train[["c", "a", "b"]])
    )
    pd.testing.assert_frame_equal(one, other)
    with pytest.raises(ValueError, match="only one of them has c, d"):
        quick(risk, train, held_out, X=X, X_train=X_train.rename(columns={"c": "d"}))


def test_intervals_and_p_values_of_gaps_are_adjusted_for_all_attributes(result, evaluated, held_out):
    table = result.to_frame()
    gaps = {row.attribute: row for row in result.gaps("uno_concordance")}
    assert len(gaps) == 3
    # Alone, an attribute has a smaller p-value and a narrower interval.
    alone = evaluated(sensitive_features={"site": held_out.sensitive_features["site"]})
    own = alone.gaps("uno_concordance")[0]
    # One pair of groups each of site and sex, six of their intersections.
    assert own.p < gaps["site"].p <= min(8 * own.p, 1.0) * 1.01
    assert gaps["site"].high > own.high
    assert table.loc[table["kind"] == "group", "p"].isna().all()


@pytest.fixture(scope="module")
def opposite(train, held_out):
    """Eight patients whom the scores order nearly backwards, among others whom they order rightly."""
    y = held_out.y
    few = np.flatnonzero(y["event"])[:8]
    risk = -y["time"]
    # One mistake among the others, without which their calibration slope would be infinite.
    risk[y["time"].argmax()] = 0.0
    risk[few[np.argsort(y["time"][few], kind="stable")]] = np.array([1, 0, 2, 3, 5, 4, 6, 7]) - 100.0
    size = np.where(np.isin(np.arange(len(y)), few), "few", "others")
    with pytest.warns(SmallGroupWarning, match="few: 8 patients"):
        return evaluate(
            risk,
            None,
            y,
            y_train=train.y,
            sensitive_features={"size": size, "site": held_out.sensitive_features["site"]},
            paper=True,
        )


def test_no_interval_leaves_what_is_possible(opposite):
    table = opposite.to_frame()
    shares = ["concordance_index", "uno_concordance", "dynamic_auc", "concordance_imparity"]
    bounded = table[table["metric"].isin(shares)]
    assert bounded["high"].max() <= 1
    assert bounded["low"].min() >= 0


def test_a_handful_of_patients_is_neither_best_nor_worst_served(opposite):
    few = [sentence for sentence in opposite.summary().split("\n") if "few" in sentence]
    assert few == ["Not judged (fewer than 50 patients): size few."]
    for metric in ("concordance_index", "concordance_imparity"):
        found = {row.attribute: row.status for row in opposite.select(metric=metric, kind="gap")}
        assert found == {"size": "small group", "site": "ok"}


def test_curves_alone_rank_patients_and_leave_out_what_needs_log_hazards(model, train, held_out):
    options = {
        "y_train": train.y,
        "X_train": train.X,
        "sensitive_features": held_out.sensitive_features,
        "paper": True,
    }
    said = Predictions(survival=model.predict_survival_function(held_out.X))
    curves = evaluate(said, held_out.X, held_out.y, **options)
    full = evaluate(model, held_out.X, held_out.y, **options).to_frame()
    found = curves.to_frame()
    needs_hazards = {
        name for name, metric in CATALOGUE.items() if {"log hazard", "hazards"} & set(metric.needs)
    }
    # Hazards are proportional: curves rank patients as the model's scores do.
    assert "concordance_index" in set(found["metric"])
    expected = full[~full["metric"].isin(needs_hazards)].reset_index(drop=True)
    # The model's own hazards are not those of its curves, where times are tied.
    hazards = expected["metric"].isin(["likelihood_gain", "calibration_slope"])
    pd.testing.assert_frame_equal(found[~hazards], expected[~hazards])
    np.testing.assert_allclose(found["value"][hazards], expected["value"][hazards], atol=0.1)
    (note,) = (note for note in curves.notes if "they need scores that are log hazards" in note)
    for label in ("LPL", "F_I", "F_cap"):
        assert label in note
    said = "patients are ranked by the mean of their predicted cumulative hazards: no risk scores were given."
    assert said in curves.notes
    assert "Brier skill" in repr(curves)
    assert "IBS" in curves.summary()
    assert curves.control is None


def test_a_reference_without_scores_is_compared_by_its_curves(model, train, held_out):
    # A table at times so close together is known throughout; events are not at its times, which are no steps.
    other, times = AcceleratedFailureTime().fit(train.X, train.y), np.linspace(0.03, 60.03, 1201)
    curves = other.predict_survival_function(held_out.X, times=times)
    found = quick(model, train, held_out, reference=(times, curves))
    # The model is one of proportional hazards too, with the same features.
    assert found.groups["gain_over_reference"][0] == pytest.approx(0, abs=0.03)
    assert any("the reference has no scores that are log hazards" in note for note in found.notes)
    assert found.control is None
    few = quick(model, train, held_out, reference=(times[199::200], curves[:, 199::200]))
    assert np.isnan(few.groups["gain_over_reference"]).all()
    assert any("the reference is known at few times only" in note for note in few.notes)


def test_features_may_be_a_tensor(plain, model, train, held_out):
    found = quick(model, train, held_out, X=torch.tensor(held_out.X))
    pd.testing.assert_frame_equal(found.to_frame(), plain.to_frame(), rtol=1e-9)


def test_intersections_are_found_by_their_labels(model, train, held_out):
    both = list(map(tuple, held_out.sensitive_features.to_numpy()))
    found = quiet(model, train, held_out, sensitive_features={"both": both})
    rows = np.flatnonzero([label == ("a", "f") for label in both])
    wanted = metrics.concordance_index(held_out.y[rows], model.predict(held_out.X)[rows])
    assert found.value("concordance_index", "both", ("a", "f")) == pytest.approx(wanted)


def test_constant_scores_name_no_worst_group(train, held_out):
    with pytest.warns(UndefinedMetricWarning, match="calibration_slope"):
        found = quick(np.zeros(len(held_out.X)), train, held_out).summary()
    assert "No two groups that are large enough have different c-indices." in found
    assert "Lowest c-index" not in found


def test_counts_are_of_events_where_patients_have_several(model, train, held_out):
    n = len(held_out.y) // 2
    y = held_out.y[: 2 * n].copy()
    y["event"] &= y["time"] < np.quantile(y["time"], 0.4)
    y["time"] *= 0.3
    ids = np.repeat(np.arange(n), 2)
    assert np.bincount(ids, y["event"]).max() == 2
    alone, several = (
        quick(model, train, held_out, X=held_out.X[: 2 * n], y=of, sensitive_features=None)
        for of in (y, with_fields(y, id=ids))
    )
    # Fewer events than patients do not say that each patient has one at most.
    assert several.groups[["observed", "expected"]].max(axis=None) < n
    assert ": of 100 patients " in alone.summary()
    assert "events were counted" in several.summary()
    assert several.times.empty


def test_every_form_of_predictions_is_evaluated(plain, model, train, held_out):
    times = model.unique_times_
    survival = model.predict_survival_function(held_out.X, times=times)
    for form in (
        Predictions(model.predict(held_out.X), survival, times),
        (times, survival),
        GridSearchCV(CoxPH(), {"l2": [0.0]}, cv=2).fit(train.X, train.y),
        FrozenEstimator(model),
    ):
        found = quick(form, train, held_out)
        # Between the times of a table the cumulative hazard is linear, and that of the model a step.
        rel = 1e-9 if hasattr(form, "predict") else 2e-2
        for metric in ("integrated_brier_score", "brier_skill"):
            assert found.value(metric) == pytest.approx(plain.value(metric), rel=rel)


TIMES = np.array([5.0, 20.0])


def predicted_at(held_out, change=lambda survival: survival, times=TIMES):
    survival = change(np.exp(-np.outer(np.exp(held_out.X[:, 0]), times) / 30))
    return evaluate((times, survival), None, held_out.y)


def test_equal_predictions_are_judged_without_a_slope(held_out):
    equal = predicted_at(held_out, lambda survival: np.broadcast_to(survival.mean(axis=0), survival.shape))
    assert "slope" not in set(equal.findings["question"])
    assert any("predictions of all patients are equal" in note for note in equal.notes)


@pytest.mark.filterwarnings("ignore:undefined")
@pytest.mark.parametrize(
    ("times", "late"), [([1, 3], ""), ([1, 3, 15], "time 15"), ([3, 10, 15], "time 10 and time 15")]
)
def test_predictions_at_times_that_nobody_reaches_are_named(times, late):
    rng = np.random.default_rng(0)
    x, end = rng.normal(size=300), rng.uniform(1, 7, size=300)
    time = rng.exponential(2 * np.exp(-x))
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    found = evaluate((times, np.exp(-np.outer(np.exp(x) / 2, times))), None, y)
    notes = [note for note in found.notes if "are not judged: too few patients are observed" in note]
    assert notes == (
        [f"predictions at {late} are not judged: too few patients are observed until then."] if late else []
    )


def test_an_undefined_number_is_named_only_if_no_finding_has_it_and_arrays_are_called_the_reference():
    rng = np.random.default_rng(8)
    x = rng.normal(size=400)
    time, left = rng.exponential(5 * np.exp(0.8 * x)), rng.uniform(0.5, 3, 400)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    # Risks in the reverse order, and far too small.
    at = np.arange(1, 41) / 10
    S = np.exp(-0.0002 * np.exp(3 * x)[:, None] * at)
    result = evaluate((at, S), None, y, reference=(at, np.tile(np.exp(-at / 5), (400, 1))))
    text = result.summary()
    assert np.isfinite(result.value("calibration_slope"))
    assert not any("calibration_slope" in note for note in result.notes)
    assert "The reference predicts all patients better" in text
    assert "inf" not in text.replace("information", "")
    table = drosurv.compare({"one": (at, S)}, None, y).set_index("metric")
    slope = table.loc["calibration_slope"]
    assert slope["low"] <= slope["value"] <= slope["high"]


def test_events_at_a_horizon_that_is_a_time_up_to_rounding_count():
    """0.3 is below 0.1 + 0.2: events at this time were not counted by a horizon of 0.3."""
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(300, 2)), rng.integers(1, 10, 300) / 10
    y = Surv.from_arrays(rng.random(300) < 0.7, np.where(time == 0.3, 0.1 + 0.2, time))
    model = CoxPH().fit(X, y)
    found, wanted = (evaluate(model, X, y, horizon=horizon).to_dict() for horizon in (0.3, 0.1 + 0.2))
    assert found == wanted
    bounds = [drosurv.certify(model, X, y, horizon=horizon, n_bootstrap=59) for horizon in (0.3, 0.1 + 0.2)]
    by_then = int(y["event"][y["time"] < 0.35].sum())
    assert [found.n_events for found in bounds] == [by_then, by_then]
