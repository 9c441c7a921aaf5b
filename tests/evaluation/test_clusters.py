"""Patients of hospitals, litters or families: each counts as a patient, and variances go by cluster."""

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv.datasets import make_hidden_minority
from drosurv.evaluation import evaluate_by_cause
from drosurv.patients.observation import Rows
from drosurv.patients.target import with_fields
from drosurv.planning import excluded_errors
from drosurv.report.audit import fold_parts

N, COPIES = 300, 5
TRAIN, TEST = make_hidden_minority(500, random_state=0), make_hidden_minority(N, random_state=1)
ROWS = np.repeat(np.arange(N), COPIES)
SIDE = pd.Series(np.where(TEST.X["x1"] > 0, "a", "b"), name="side")
MODEL = drosurv.CoxPH().fit(TRAIN.X, TRAIN.y)
INTERVALS = ["value", "low", "high", "p"]


def evaluated(rows, **fields):
    return drosurv.evaluate(
        MODEL,
        TEST.X.iloc[rows],
        with_fields(TEST.y[rows], **fields),
        y_train=TRAIN.y,
        sensitive_features=SIDE.iloc[rows].reset_index(drop=True),
        threshold=0.4,
    )


def in_order(result):
    return result.findings.set_index(["question", "attribute", "group"]).sort_index()[INTERVALS]


@pytest.fixture(scope="module")
def results():
    return {
        "one": evaluated(np.arange(N)),
        "id": evaluated(ROWS, id=ROWS),
        "clusters": evaluated(ROWS, clusters=pd.Series(ROWS, name="litter")),
    }


def test_copies_in_clusters_are_as_sure_as_one_row_each(results):
    """The variance by cluster has Student's t, and is never below that of one row each."""
    one, five = in_order(results["one"]), in_order(results["clusters"])
    np.testing.assert_allclose(five["value"], one["value"], rtol=2e-3)
    width = (five["high"] - five["low"]) / (one["high"] - one["low"])
    assert width.between(1, 1.2).all()
    np.testing.assert_allclose(width.loc[["level", "gain"]], 1, atol=0.05)


def widths(table, low="low"):
    return table[low.removesuffix("low") + "high"].to_numpy(dtype=float) - table[low].to_numpy(dtype=float)


SHOWN = {
    "Kaplan-Meier": lambda result: widths(result.survival),
    "calibration at horizons": lambda result: widths(result.calibration),
    "predicted less observed": lambda result: widths(result.calibration, "difference_low"),
    "decisions": lambda result: widths(result.decisions),
    "decision curves": lambda result: widths(result.decision_curves),
    "calibration curves": lambda result: widths(result.calibration_curves.points),
    "ratio": lambda result: widths(result.calibration_curves.numbers, "ratio_low"),
    "slope": lambda result: widths(result.calibration_curves.numbers, "slope_low"),
    "gaps": lambda result: widths(result.between_large),
}


IN_STRATA = ("decisions", "decision curves", "calibration curves", "ratio", "slope")


@pytest.mark.parametrize("shown", SHOWN)
def test_copies_in_clusters_have_intervals_as_wide_as_one_row_each(results, shown):
    """Independent rows would have intervals of 0.45 times the width; copies make more strata of predicted risk."""
    one, five = (SHOWN[shown](results[name]) for name in ("one", "clusters"))
    known = one > 0
    assert known.sum() >= 2
    ratio = five[known] / one[known]
    in_strata = shown in IN_STRATA
    assert np.mean(np.abs(ratio - 1) < 0.12) >= (0.6 if in_strata else 1)
    assert np.median(ratio) == pytest.approx(1, abs=0.1 if in_strata else 0.03)


def test_incidences_of_causes_have_intervals_by_cluster():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 2)))
    y = drosurv.Surv.competing(rng.integers(0, 3, N), rng.exponential(size=N).round(1) + 0.1)
    model = drosurv.CauseSpecificCox().fit(X, y)
    how = {"at": [0.5, 1.0]}
    one = evaluate_by_cause(model, X, y, sensitive_features=SIDE, **how)
    many = {"sensitive_features": SIDE.iloc[ROWS].to_numpy(), **how}
    five = evaluate_by_cause(model, X.iloc[ROWS], with_fields(y[ROWS], clusters=ROWS), **many)
    np.testing.assert_allclose(five["observed"], one["observed"])
    wide, alone = (widths(table, "observed_low") for table in (five, one))
    np.testing.assert_allclose(wide / alone, 1, atol=0.03)
    independent = evaluate_by_cause(model, X.iloc[ROWS], y[ROWS], **many)
    np.testing.assert_allclose(widths(independent, "observed_low") / alone, COPIES**-0.5, atol=0.02)
    # The table of an evaluation has the same intervals.
    table = drosurv.evaluate(model, X.iloc[ROWS], with_fields(y[ROWS], clusters=ROWS), cause=1).by_cause
    assert len(table) == 6
    again = evaluate_by_cause(model, X.iloc[ROWS], with_fields(y[ROWS], clusters=ROWS))
    pd.testing.assert_frame_equal(table, again)


@pytest.mark.filterwarnings("ignore:small groups")
def test_hospitals_count_copies_of_patients_once():
    hospital = pd.Series(np.arange(N) % 10, name="hospital").astype(str)
    one, five = (
        drosurv.evaluate(
            MODEL,
            TEST.X.iloc[rows],
            with_fields(TEST.y[rows], clusters=rows),
            sensitive_features=hospital.iloc[rows].reset_index(drop=True),
        )
        for rows in (np.arange(N), ROWS)
    )
    assert one.design_effects == {}
    assert five.design_effects["overall"] == pytest.approx(COPIES, rel=0.01)
    # Each of the groups has 30 patients, and so a factor of 30 / 29.
    assert five.design_effects["hospital"] == pytest.approx(COPIES * 30 / 29, rel=0.01)
    np.testing.assert_allclose(widths(five.shrunken) / widths(one.shrunken), 1, atol=0.05)
    lines = [result.plot_funnel().lines[0].get_ydata() for result in (one, five)]
    np.testing.assert_allclose(lines[1], lines[0], atol=0.02)


def test_errors_that_cannot_be_excluded_are_those_of_one_row_each():
    how, litter = {"n_bootstrap": 59}, pd.Series(ROWS, name="litter")
    one = drosurv.certify(MODEL, TEST.X, TEST.y, **how)
    five = drosurv.certify(MODEL, TEST.X.iloc[ROWS], with_fields(TEST.y[ROWS], clusters=litter), **how)
    assert five.n_patients == COPIES * N
    assert five.summary().endswith("There are 1,500 patients in 300 clusters (litter).")
    assert one.design_effect == 1
    assert five.design_effect == pytest.approx(COPIES, rel=0.01)
    sentence = excluded_errors(1500, 5 * 240, n_columns=4, design_effect=5)
    alone = excluded_errors(300, 240, n_columns=4)
    numbers = "0.88 to 1.13 times the predicted events cannot be excluded for everybody"
    assert numbers in sentence
    assert numbers in alone
    assert "times for a subgroup of 5 % with as many events as predicted" in alone
    ends = [text.partition("for everybody and ")[2].partition(" About ")[0] for text in (sentence, alone)]
    assert ends[0] == ends[1] != ""
    # Five times as many rows are needed.
    needed = [
        int(text.partition("About ")[2].partition(" ")[0].replace(",", "")) for text in (sentence, alone)
    ]
    assert needed[0] == pytest.approx(5 * needed[1], rel=0.01)


def test_clusters_and_ids_differ_in_the_number_of_patients_alone(results):
    id, clusters = results["id"], results["clusters"]
    pd.testing.assert_frame_equal(in_order(clusters), in_order(id))
    assert clusters.groups["patients"].tolist() == (COPIES * id.groups["patients"]).tolist()
    assert clusters.rows[0].patients == COPIES * N
    overall = {name: results[name].table.query("metric == 'concordance_index'") for name in results}
    for name in ("low", "high"):
        np.testing.assert_allclose(overall["clusters"][name], overall["id"][name])
        # Pairs of copies are not compared, and with replicates neither is a patient with a copy.
        np.testing.assert_allclose(overall["clusters"][name], overall["one"][name], atol=2e-3)


def test_patients_and_clusters_are_said_once(results):
    found = results["clusters"]
    assert found.summary().count("1,500 patients in 300 clusters (litter), ") == 1
    assert found.summary().count("cluster") == 1
    settings = found.to_dict()["settings"]
    assert (settings["clusters"], settings["clusters_name"]) == (300, "litter")
    assert "cluster" not in results["id"].summary()


def test_models_are_compared_by_cluster():
    models = {"Cox": MODEL, "null": drosurv.NullModel().fit(TRAIN.X, TRAIN.y)}
    how = {"y_train": TRAIN.y, "metrics": ["likelihood_gain"]}
    one = drosurv.compare(models, TEST.X, TEST.y, **how)
    five = drosurv.compare(models, TEST.X.iloc[ROWS], with_fields(TEST.y[ROWS], clusters=ROWS), **how)
    for name in ("difference", "difference_low", "difference_high"):
        np.testing.assert_allclose(five[name], one[name], atol=2e-3)


def test_folds_keep_clusters_together():
    rows = Rows.parse(with_fields(TEST.y, clusters=np.arange(N) // 4))
    for train, test in fold_parts(TEST.y["event"], 3, 0, rows.cluster_codes):
        assert not {*(train // 4)} & {*(test // 4)}
        assert len(train) + len(test) == N


def test_an_audit_in_folds_trains_without_the_cluster_of_a_patient(monkeypatch):
    seen = []
    fit = drosurv.CoxPH.fit

    def recorded(self, X, y, *args, **given):
        seen.append(y["clusters"] if "clusters" in y.dtype.names else None)
        return fit(self, X, y, *args, **given)

    monkeypatch.setattr(drosurv.CoxPH, "fit", recorded)
    litter = pd.Series(np.arange(N) // 3, name="litter")
    how = {"folds": 3, "search_rules": False}
    report = drosurv.audit(drosurv.CoxPH(), TEST.X, with_fields(TEST.y, clusters=litter), **how)
    trained = [set(one) for one in seen if one is not None]
    # The model and plain Cox; each fold has a third of the 100 litters.
    assert sorted(map(len, trained)) == [66, 66, 67, 67, 67, 67]
    assert "300 patients in 100 clusters (litter) with" in report.to_dict()["subtitle"]
    assert {row["name"]: row["value"] for row in report.tables["data"].rows}["Patients"] == "300"


def test_patients_who_enter_late_have_all_rows_in_one_cluster():
    y = drosurv.Surv.from_arrays([False, True, True, True], [2.0, 3.0, 4.0, 5.0])
    given = {"entry": [0.0, 2.0, 0.0, 0.0], "id": ["p", "p", "q", "r"]}
    message = (
        "clusters must hold all rows of a patient in one cluster: patient 'p' is in 'a' and, in row 2, in 'b'"
    )
    wrong = with_fields(y, **given, clusters=["a", "b", "b", "b"])
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    calls = {
        "evaluate": lambda: drosurv.evaluate(MODEL, X, wrong),
        "audit": lambda: drosurv.audit(MODEL, X, wrong),
        "compare": lambda: drosurv.compare({"m": MODEL}, X, wrong),
        "certify": lambda: drosurv.certify(MODEL, X, wrong),
        "fit": lambda: drosurv.CoxPH().fit(X, wrong),
        "without entry": lambda: drosurv.evaluate(MODEL, X, with_fields(wrong, entry=None)),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=message):
            call()
    rows = Rows.parse(with_fields(y, **given, clusters=["a", "a", "b", "b"]))
    assert rows.cluster_codes.tolist() == [0, 0, 1, 1]
    assert rows.patient_codes.tolist() == [0, 0, 1, 2]


def test_clusters_of_one_row_each_change_nothing():
    plain = evaluated(np.arange(N))
    alone = evaluated(np.arange(N), clusters=np.arange(N))
    pd.testing.assert_frame_equal(plain.table, alone.table)


def test_a_group_that_is_one_cluster_is_judged_given_the_cluster():
    """As without clusters; everybody has at least the variance of independent patients."""
    hospital = pd.Series(np.repeat(list("abc"), N // 3), name="hospital")
    how = {"sensitive_features": hospital, "threshold": 0.5, "horizon": 1.0}
    alone, given = (
        drosurv.evaluate(MODEL, TEST.X, y, y_train=TRAIN.y, **how)
        for y in (TEST.y, with_fields(TEST.y, clusters=hospital))
    )
    levels = [one.groups.set_index("group")[["ratio_low", "ratio_high"]] for one in (alone, given)]
    pd.testing.assert_frame_equal(levels[0].loc[["a", "b", "c"]], levels[1].loc[["a", "b", "c"]])
    assert levels[1].loc["all", "ratio_high"] > levels[0].loc["all", "ratio_high"]
    rates, by_cluster = (
        one.decisions.set_index(["group", "metric"])[["low", "high"]] for one in (alone, given)
    )
    pd.testing.assert_frame_equal(rates.loc[["a", "b", "c"]], by_cluster.loc[["a", "b", "c"]])
    # Three clusters may agree in one of the five measures by chance.
    assert (by_cluster.loc["all", "low"] <= rates.loc["all", "low"]).sum() >= 4
    assert rates["low"].notna().all()
    curves, bands = (one.decision_curves.set_index("group")[["low", "high"]] for one in (alone, given))
    pd.testing.assert_frame_equal(curves.loc["a"], bands.loc["a"])
