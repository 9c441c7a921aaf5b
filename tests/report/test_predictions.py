"""Predictions of any program, audited without the model."""

import json

import numpy as np
import pandas as pd
import pytest
from sksurv.metrics import brier_score, concordance_index_censored

from drosurv import CoxPH, Surv
from drosurv.curves import parse_survival
from drosurv.datasets import make_hidden_minority
from drosurv.evaluation import Predictions
from drosurv.metrics import default_horizon
from drosurv.patients.target import parse_target, with_fields
from drosurv.predictions.columns import prediction_columns
from drosurv.predictions.given import (
    form_of,
    log_mean_hazard,
    log_risk,
    read_columns,
    read_predictions,
    read_scores,
)
from drosurv.report import Page, audit

TIMES = [0.25, 0.5, 1.0, 2.0]


@pytest.fixture(scope="module")
def patients():
    return make_hidden_minority(400, random_state=1)


@pytest.fixture(scope="module")
def model():
    train = make_hidden_minority(400, random_state=0)
    return CoxPH().fit(train.X, train.y)


def audit_predictions(predictions, y, *, unit="", name="plain Cox", **options):
    kinds = {key: options.pop(key) for key in ("times", "risk", "kind") if key in options}
    notes = ()
    if not isinstance(predictions, Predictions):
        alone = np.ndim(predictions) == 1
        read = read_scores(predictions, **kinds) if alone else read_predictions(predictions, y, **kinds)
        predictions, notes, _ = read
    warnings = [{"severity": "note", "text": note} for note in notes]
    page = Page(time_unit=unit, reference_name=name, warnings=warnings)
    return audit(predictions, None, y, page=page, **options)


def audit_of(predictions, patients, **options):
    given = {"search_rules": False, **options}
    return audit_predictions(predictions, patients.y, sensitive_features=patients.sensitive_features, **given)


@pytest.fixture(scope="module")
def report(model, patients):
    return audit_of(
        model.predict_survival_function(patients.X, times=TIMES), patients, times=TIMES, unit="years"
    )


def test_survival_at_a_few_times_is_enough_for_every_section_but_the_rules(report, model, patients):
    event, time = patients.y["event"], patients.y["time"]
    expected = concordance_index_censored(event, time, model.predict(patients.X))[0]
    assert report.tables["groups"].rows[0]["c_index"] == pytest.approx(expected, abs=1e-5)
    assert len(report.tables["calibration_curves"])
    assert "were not searched" in report.parts["missed"].statements[0].text
    (said,) = (s.text for s in report.parts["verdict"].statements if s.code == "events")
    assert (
        "events happened by 2 years, with those censored before counted like others of their risk; " in said
    )
    # Later events do not help to exclude an error.
    (closing,) = (s.text for s in report.parts["verdict"].statements if s.code == "closing")
    judged = int((event & (time <= 2)).sum())
    assert judged < event.sum()
    assert f"patients and {judged:,} events by 2 years, " in closing
    assert {row["time"] for row in report.tables["survival"].rows} == {0.0, *TIMES}
    assert "<html" in report.to_html()


def test_survival_is_judged_only_where_something_was_predicted(report, model, patients):
    row = report.tables["groups"].rows[0]
    # The last predicted time that is no later than the median follow-up.
    reached = [time for time in TIMES if time <= default_horizon(patients.y)]
    assert row["horizon"] == reached[-1] == 1.0
    expected = model.predict_survival_function(patients.X, times=[row["horizon"]]).mean()
    assert row["survival_predicted"] == pytest.approx(expected, abs=1e-5)


def test_headings_say_which_slope_is_which(report, model, patients):
    headings = {column.key: column.label for column in report.tables["groups"].columns}
    assert headings["slope"] == "Calibration slope, at 1 year"
    assert headings["observed"] == "Events by 2 years, weighted"
    assert headings["observed"] in report.tables["by_group"].header
    assert "Slope of observed on predicted risk at 1 year" in report.tables["calibration_numbers"].header
    assert "they count events by 2 years, weighted for censoring, and" in " ".join(report.to_html().split())
    throughout = audit(model, patients.X, patients.y, search_rules=False)
    assert "Calibration slope, whole follow-up" in throughout.tables["groups"].header
    assert "they count events over the whole follow-up" in " ".join(throughout.to_html().split())


def test_the_page_explains_only_what_its_charts_of_calibration_show(report, model, patients):
    def explained(report):
        html = " ".join(report.to_html().split())
        start = html.index('<section id="calibration"')
        return html[start : html.index('<div class="body', start)]

    assert "ICI: mean distance of the curve" in explained(report)
    assert "band" in explained(report)
    few = slice(0, 60)
    small = audit_predictions(
        model.predict_survival_function(patients.X[few], times=[1.0]),
        patients.y[few],
        times=[1.0],
        kind="survival",
        sensitive_features=None,
        search_rules=False,
    )
    assert {row["kind"] for row in small.tables["calibration_curves"].rows} <= {"parts", "point"}
    text = explained(small)
    assert "A dot shows all patients of a group" in text
    assert not any(word in text for word in ("curve", "band", "ICI"))
    assert "<h3>Over time</h3>" in report.to_html()
    assert "The observed curve assumes that censoring has nothing to do with risk" in report.to_html()
    assert "<h3>Over time</h3>" not in small.to_html()


def test_a_risk_score_alone_is_ranked_and_what_it_lacks_is_named(model, patients):
    report = audit_of(model.predict(patients.X), patients)
    assert len(report.tables["calibration_curves"]) == 0
    (reason,) = (text for text in report.parts["method"].facts["missing"] if "Brier" in text)
    assert reason.endswith("are left out: the model gives no survival curves.")
    # The model is wrong for the minority, which the slope of its scores shows.
    assert {row["group"] for row in report.parts["verdict"].facts["problems"]} == {"minority"}
    c_index = f"{report.tables['groups'].rows[0]['c_index']:.3f}"
    found = report.parts["verdict"].facts["findings"]
    assert any(f"ranked no worse than by chance: c-index {c_index} (" in row["text"] for row in found)
    everybody = audit_predictions(
        model.predict(patients.X), patients.y, sensitive_features=None, search_rules=False
    )
    assert everybody.parts["verdict"].facts["status"] == "unclear"
    assert "Only ranking and the differences between patients can be judged" in everybody.to_html()
    assert "tests of this report" not in everybody.to_html()
    # Columns that the table lacks are not explained, and the c-index is in the verdict.
    note = everybody.parts["verdict"].facts["note"]
    assert not any(word in note for word in ("Expected", "Gain", "does not use"))


@pytest.mark.sections("verdict")
def test_a_score_of_points_is_not_said_to_be_too_timid_or_too_bold(model, patients):
    report = audit_of(50 + 20 * model.predict(patients.X), patients)
    assert report.parts["verdict"].facts["status"] != "miscalibrated"


@pytest.mark.sections("verdict", "missed")
def test_brier_score_and_survival_are_at_the_last_predicted_time(model, patients):
    """Follow-up ends there with the predictions; scikit-survival uses the later follow-up."""
    times = [0.5, 1.0]
    survival = model.predict_survival_function(patients.X, times=times)
    report = audit_of(survival, patients, times=times, features=patients.X[["x1"]], search_rules=True)
    bounds = report.parts["missed"].facts["bounds"]
    assert bounds["horizon"] == report.tables["groups"].rows[0]["horizon"] == 1.0
    _, expected = brier_score(patients.y, patients.y, survival[:, -1:], [1.0])
    # Weights for censoring depend on the predictions and the features.
    assert bounds["overall"]["brier"] == pytest.approx(expected[0], rel=0.02)


@pytest.mark.sections("missed")
def test_columns_that_are_given_define_subgroups(model, patients):
    survival = model.predict_survival_function(patients.X, times=TIMES)
    report = audit_predictions(survival, patients.y, times=TIMES, features=patients.X[["x1"]], unit="years")
    bounds = report.parts["missed"].facts["bounds"]["bounds"]
    assert all(bound["group"].startswith("x1") for bound in bounds.values())


@pytest.mark.sections("verdict")
def test_another_models_predictions_can_be_compared_with(model, patients):
    survival = model.predict_survival_function(patients.X, times=TIMES)
    # A model that knows a tenth of what this one does.
    cautious = np.exp(0.1 * np.log(survival) + 0.9 * np.log(survival).mean(axis=0))
    worse = Predictions(0.1 * model.predict(patients.X), cautious, TIMES)
    report = audit_of(survival, patients, times=TIMES, reference=worse, name="the old score")
    assert report.tables["groups"].rows[0]["gain_over_reference_low"] > 0
    assert "Gain over the old score" in report.to_html()


@pytest.mark.sections("verdict")
def test_the_truth_is_not_called_harmful_where_the_training_patients_are_not_known():
    generator = np.random.default_rng(0)
    time, censored = generator.exponential(1.0, 300), generator.uniform(0.0, 2.0, 300)
    y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
    times = np.linspace(0.05, 2.0, 40)
    truth = np.broadcast_to(np.exp(-times), (300, 40))
    told = {"times": times, "risk": generator.normal(size=300), "search_rules": False}
    report = audit_predictions(truth, y, sensitive_features={"half": np.arange(300) % 2}, **told)
    assert report.parts["verdict"].facts["status"] == "unclear"
    assert all(row["gain_low"] < 0 < row["gain_high"] for row in report.tables["groups"].rows)


def test_the_risk_of_curves_is_the_log_hazard_ratio_up_to_a_constant():
    risk, times = np.array([-1.0, 0.0, 2.0]), np.array([0.01, 0.2, 0.5])
    curves = parse_survival(np.exp(-np.outer(np.exp(risk), times)), 3, times)
    np.testing.assert_allclose(np.diff(log_mean_hazard(curves.cumulative_hazard(times))), np.diff(risk))


FRAME = pd.DataFrame(
    {
        "S(365)": [0.9, 0.8],
        "S(730)": [0.7, 0.6],
        "lp": [0.1, 0.2],
        "sex": ["f", "m"],
        "name": ["a", "b"],
        "x5": [1, 7],
    }
)


@pytest.mark.parametrize(
    "names", [("365", "730"), ("X365", "X730"), ("surv_365", "surv_730"), ("s365", "s730")]
)
def test_columns_are_recognised_however_programs_name_them(names):
    frame = FRAME.rename(columns=dict(zip(("S(365)", "S(730)"), names, strict=True))).drop(columns="x5")
    found = prediction_columns(frame)
    assert found.names == (*names, "lp")
    np.testing.assert_array_equal(found.times, [365, 730])
    # Names of people are no feature.
    assert list(found.features) == ["sex"]


def test_names_may_be_numbers():
    found = prediction_columns(pd.DataFrame({730: [0.7, 0.6], 365: [0.9, 0.8], "age": [40, 50]}))
    assert (found.names, list(found.features)) == (("365", "730"), ["age"])


@pytest.mark.parametrize("kind", ["float64", "Float64"])
def test_whom_nothing_is_predicted_for_is_said(kind):
    frame = FRAME.drop(columns=["lp", "x5"]).assign(**{"S(730)": pd.array([np.nan, 0.6], dtype=kind)})
    with pytest.raises(ValueError, match="missing for 1 patient, the first in row 1"):
        prediction_columns(frame)
    with pytest.raises(ValueError, match="first in row 8"):
        prediction_columns(frame.set_index(pd.Index([7, 9])))
    # Beside a risk score, they may be what they like.
    assert prediction_columns(frame.drop(columns="S(365)").assign(risk=[1, 2])).names == ("risk",)


def test_a_missing_value_makes_no_prediction_of_a_column():
    asked, empty, amount = [1.0, np.nan, 0.0], [np.nan] * 3, [0.2, np.nan, 0.4]
    others = pd.DataFrame({"x1": asked, "pred2": empty, "pred3": empty, "t4": amount})
    found = prediction_columns(others.assign(S365=[0.9, 0.8, 0.7]))
    assert found.names == ("S365",)
    with pytest.raises(ValueError, match="no column of the table is recognised"):
        prediction_columns(others.drop(columns="t4"))


def test_columns_that_cannot_be_survival_are_not_taken_for_it():
    found = prediction_columns(FRAME.drop(columns=["S(365)", "S(730)"]))
    assert found.survival is None
    assert found.names == ("lp",)
    assert "x5" in found.features


def test_columns_named_otherwise_do_not_hide_predictions():
    found = prediction_columns(FRAME.assign(t3=[0, 1], S100=[2.5, 0.1], surv90d=[0.95, 0.9]))
    assert found.names == ("S(365)", "S(730)", "lp")
    assert found.unread == ("surv90d",)
    assert list(found.features) == ["sex", "x5", "t3", "S100"]
    assert prediction_columns(FRAME[["lp"]].assign(x5=[0, 1])).survival is None


def test_columns_that_name_patients_or_number_rows_define_no_subgroups():
    frame = pd.DataFrame({"S365": np.linspace(0.1, 0.9, 40), "age": [50, 60] * 20, "row": np.arange(40)})
    found = prediction_columns(frame.assign(patient_id=frame.index[::-1] + 1000))
    assert found.ids == ("row", "patient_id")
    assert list(found.features) == ["age"]


MANY = 40
AT_TIMES = pd.DataFrame(
    {"S1": np.linspace(0.9, 0.99, MANY), "S3": np.linspace(0.6, 0.8, MANY), "S5": np.linspace(0.3, 0.5, MANY)}
)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("S1", 1.2, r"column 'S1' holds 1.2 \(row 8\), which is no probability"),
        ("S5", -0.01, r"column 'S5' holds -0.01 \(row 8\), which is no probability"),
        ("S3", 0.97, r"column 'S3' holds 0.97 in row 8, above 0.916\d* in column 'S1' \(1 such row\)"),
        ("S3", "n/a?", r"column 'S3' holds 1 text \(first: row 8\), which is no number"),
        ("S3", "0,7", r"column 'S3' holds '0,7' in 1 row \(first: row 8\), which is no number"),
    ],
)
@pytest.mark.parametrize("given", [(), ("S1=1", "S3=3", "S5=5")], ids=["recognised", "given"])
def test_one_value_that_cannot_be_a_probability_is_named(column, value, said, given):
    frame = AT_TIMES.astype({column: object})
    frame.loc[7, column] = value
    with pytest.raises(ValueError, match=said):
        prediction_columns(frame.infer_objects(), survival=given)
    with pytest.raises(ValueError, match=said):
        prediction_columns(frame.infer_objects().assign(lp=0.5), survival=given)
    # Rows keep their number in the file when others are left out.
    with pytest.raises(ValueError, match=said.replace("row 8", "row 108")):
        prediction_columns(frame.infer_objects().set_index(frame.index + 100), survival=given)


@pytest.mark.parametrize("values", [[0.0], [1.0], [0.0, 1.0]])
def test_columns_of_0_and_1_are_not_recognised_and_the_reason_is_given(values):
    frame = pd.DataFrame(dict.fromkeys(("S1", "S3"), np.resize(values, MANY)))
    held = " and ".join(f"{value:g}" for value in values)
    said = (
        rf"By name, S1 and S3 may be, but they hold only the values? {held}: pass survival=\['S1=1', 'S3=3'\]"
    )
    with pytest.raises(ValueError, match=said):
        prediction_columns(frame)
    assert prediction_columns(frame, survival=["S1", "S3"]).names == ("S1", "S3")


def test_features_that_look_a_little_like_predictions_do_not_stop_risk_scores():
    rng = np.random.default_rng(0)
    counts = pd.DataFrame({f"x{k}": rng.poisson(0.2, MANY) for k in (1, 2)})
    assert prediction_columns(counts.assign(lp=1.5, T3=rng.uniform(0.1, 2, MANY))).names == ("lp",)


@pytest.mark.parametrize(
    "names", [("risk_365", "risk_730"), ("mortality_365", "mortality_730"), ("cif365", "cif730")]
)
def test_columns_of_event_probabilities_are_recognised(names):
    percent = pd.DataFrame(dict(zip(names, ([10.0, 20.0], [30.0, 40.0]), strict=True)))
    assert prediction_columns(percent).names == names
    assert prediction_columns(percent / 100).names == names


FORMATS = {
    "survival": lambda s: s,
    "survival in percent": lambda s: 100 * s,
    "event probability": lambda s: 1 - s,
    "mortality in percent": lambda s: 100 * (1 - s),
}


@pytest.mark.parametrize("written", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("times", [TIMES, [1.0]], ids=["several times", "one time"])
def test_every_format_of_probabilities_is_read_as_the_same_survival(model, patients, written, times):
    survival = model.predict_survival_function(patients.X, times=times)
    form, notes = form_of(written(survival), np.array(times), parse_target(patients.y))
    np.testing.assert_allclose(form.survival(written(survival)), survival, atol=1e-12)
    assert any("percentages" in note for note in notes) == (written(survival).max() > 1)


@pytest.mark.parametrize("kind", ["survival", "event probability"])
def test_the_kind_that_is_given_decides(model, patients, kind):
    survival = model.predict_survival_function(patients.X, times=[1.0])
    form, _ = form_of(survival, np.array([1.0]), parse_target(patients.y), kind)
    np.testing.assert_allclose(form.survival(survival), survival if kind == "survival" else 1 - survival)


def test_a_hazard_ratio_is_recognised_by_the_probabilities(model, patients):
    risk = model.predict(patients.X)
    for score in (risk, np.exp(risk), 7 * np.exp(risk)):
        found, _ = log_risk(score, risk)
        np.testing.assert_allclose(found - found.mean(), risk - risk.mean(), atol=1e-9)
    assert "hazard ratio" in log_risk(np.exp(risk), risk)[1][0]
    found, (note,) = log_risk(np.random.default_rng(0).normal(size=len(risk)), risk)
    np.testing.assert_array_equal(found, risk)
    assert "was left out" in note
    with pytest.raises(ValueError, match="a higher score must mean an earlier event"):
        log_risk(-risk, risk)
    with pytest.raises(ValueError, match="above 0"):
        log_risk(risk, risk, "hazard ratio")


@pytest.mark.sections("verdict")
def test_partial_hazards_beside_survival_are_no_miscalibration(model, patients):
    survival = model.predict_survival_function(patients.X, times=TIMES)
    slopes = []
    for risk in (None, np.exp(model.predict(patients.X))):
        report = audit_of(survival, patients, times=TIMES, risk=risk)
        slopes.append(report.tables["groups"].rows[0]["slope"])
    assert slopes[0] == pytest.approx(slopes[1], abs=1e-6)


def test_a_column_named_like_a_risk_score_that_ranks_the_patients_otherwise_is_a_feature(model, patients):
    S1 = model.predict_survival_function(patients.X, times=[1.0])[:, 0]
    hr = np.random.default_rng(0).integers(40, 200, len(S1))
    frame = pd.DataFrame({"hr": hr, "S1": S1, "lp": -np.log(S1)})
    found = prediction_columns(frame)
    assert (found.names, found.no_scores, list(found.features)) == (("S1", "lp"), ("hr",), ["hr"])
    (note,) = (one for one in read_columns(found, patients.y).notes if "'hr'" in one)
    assert "ranks the patients otherwise than S1: it was not read as one. Pass risk='hr' if it is." in note
    asked = prediction_columns(frame, risk="hr")
    assert (asked.names, asked.no_scores) == (("S1", "hr"), ())
    # Without other predictions, and of few patients, the name decides.
    assert prediction_columns(frame[["hr"]]).names == ("hr",)
    assert prediction_columns(frame[["hr", "S1"]][:10]).names == ("S1", "hr")
    assert prediction_columns(frame.assign(risk=100 * (1 - S1))).names == ("S1", "lp")


def test_columns_can_be_named_with_their_times():
    found = prediction_columns(
        FRAME.rename(columns={"S(365)": "one", "S(730)": "two"}), survival=["two=2", "one=1"]
    )
    assert found.names[:2] == ("one", "two")
    np.testing.assert_array_equal(found.survival[0], [0.9, 0.7])
    with pytest.raises(ValueError, match="must be a column whose name ends in its time"):
        prediction_columns(FRAME, survival=["sex"])
    with pytest.raises(ValueError, match="risk='z' is not a column"):
        prediction_columns(FRAME, risk="z")
    with pytest.raises(ValueError, match="no column of the table is recognised"):
        prediction_columns(FRAME[["sex"]])
    with pytest.raises(ValueError, match="missing for 1 patient, the first in row 2"):
        prediction_columns(FRAME.assign(lp=[0.1, np.nan]), risk="lp")


@pytest.mark.parametrize(
    ("kind", "slope"), [(None, False), ("hazard ratio", True), ("log risk", True), ("other", False)]
)
@pytest.mark.sections("verdict", "groups")
def test_positive_scores_alone_are_not_taken_for_log_risks(kind, slope):
    """lifelines' predict_partial_hazard gives hazard ratios; without probabilities nothing tells them apart."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = Surv.from_arrays(rng.random(300) < 0.7, rng.exponential(np.exp(-x)))
    report = audit_predictions(np.exp(x), y, kind=kind, search_rules=False)
    rows = [row for row in report.tables["accuracy"].rows if "slope" in row["metric"].lower()]
    assert any(row["value"] is not None for row in rows) == slope
    told = [w["text"] for w in report.parts["verdict"].facts["warnings"]]
    assert any("may be hazard ratios or log risks" in text for text in told) == (kind is None)
    if kind == "hazard ratio":
        assert rows[0]["value"] == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize(("few", "late"), [(True, False), (False, False), (True, True)])
@pytest.mark.sections("verdict", "missed")
def test_the_numbers_of_all_patients_are_those_of_the_group_table_in_the_bounds_too(
    model, patients, few, late
):
    """The group table and the bounds count the same events of the same patients, and use the same null model."""
    train = make_hidden_minority(400, random_state=0).y
    times = TIMES if few else np.unique(train["time"][train["event"]])
    given = Predictions(survival=model.predict_survival_function(patients.X, times=times), times=times)
    known = {} if few else {"y_train": train}
    time = patients.y["time"]
    entry = np.where(np.arange(len(time)) % 2, 0.9 * time, 0.0)
    report = audit(
        given,
        None,
        with_fields(patients.y, entry=entry if late else None),
        sensitive_features=patients.sensitive_features,
        features=patients.X[["x1", "x2"]],
        **known,
    )
    found = json.loads(report.to_summary())
    everybody, overall = found["groups"][0], found["subgroup_bounds"]["overall"]
    for name in ("observed", "expected", "ratio", "gain"):
        assert overall[name] == pytest.approx(everybody[name], rel=1e-5)
    notes = " ".join(found["subgroup_bounds"]["notes"])
    weighted = "events are counted by time 2, with those censored before counted like others of their risk."
    assert (weighted in notes) == few
    if late:
        # Those at risk at the first predicted time are judged, from there on.
        judged = (entry <= TIMES[0]) & (time > TIMES[0])
        events = patients.y["event"] & (time <= 2.0) & judged
        assert judged.sum() < len(time)
        assert found["subgroup_bounds"]["n_patients"] == everybody["patients"] == judged.sum()
        assert found["subgroup_bounds"]["n_events"] == events.sum()
        assert (
            f"With these {judged.sum()} patients and {events.sum()} events by time 2,"
            in found["verdict"]["text"]
        )


def few_times_of(n, **fields):
    """Right predictions of two levels of risk at three times, and the outcomes of n rows."""
    rng = np.random.default_rng(6)
    level = rng.integers(2, size=n // 2).repeat(2)
    rate = np.where(level, 0.5, 0.1)
    time, left = rng.exponential(1 / rate), rng.uniform(1, 6, n)
    at = [1.0, 3.0, 5.0]
    y = Surv.from_arrays(time <= left, np.minimum(time, left), **fields)
    return (at, np.exp(-rate[:, None] * at)), y, {"level": level}


def test_of_patients_with_several_rows_both_are_counted():
    given, y, groups = few_times_of(240, id=np.arange(240) // 2)
    with pytest.warns(UserWarning, match="differences between predictions are missing: level = 0 .*slope"):
        report = audit(given, None, y, sensitive_features=groups, search_rules=False)
    sizes = next(iter(report.parts["patients"].tables)).rows[0]
    assert "120 (240 rows)" in sizes.values()
    assert report.to_html().count("120 patients with") > 0


def test_the_note_on_two_ratios_names_the_times_of_predictions_at_few_times():
    given, y, groups = few_times_of(240)
    with pytest.warns(UserWarning, match="calibration_slope"):
        report = audit(given, None, y, sensitive_features=groups, search_rules=False, horizon=1.0)
    note = report.parts["verdict"].facts["note"]
    assert "events are those by time 5, risks those by time 1." in note
    assert "over the whole follow-up" not in note


@pytest.mark.filterwarnings("ignore:small groups", "ignore:undefined")
def test_a_page_is_written_where_no_event_is_predicted_or_observed_by_the_horizon():
    rng = np.random.default_rng(9)
    time, left = 3 + rng.exponential(2, 60), rng.uniform(1, 4, 60)
    at = np.linspace(0.1, 8, 60)
    S = np.tile(np.exp(-np.maximum(at - 3, 0) / 2), (60, 1))
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    report = audit((at, S), None, y, sensitive_features={"g": rng.integers(2, size=60)}, horizon=1.0)
    assert report.times["observed"].iloc[0] == report.times["predicted"].iloc[0] == 0
    assert "predicted risk" in report.to_html()
