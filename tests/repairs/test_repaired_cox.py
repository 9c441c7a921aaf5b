import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sksurv.ensemble import RandomSurvivalForest

import drosurv
from drosurv import AcceleratedFailureTime, CoxPH, CoxPHCV, RepairedCox, Surv, repair
from drosurv.curves.survival_curves import parse_survival
from drosurv.datasets import make_hidden_minority
from drosurv.metrics import likelihood_gain
from drosurv.patients.draws import draw_folds, row_order
from drosurv.patients.target import parse_target, with_fields
from drosurv.predictions import Predictions
from drosurv.repairs import expected
from drosurv.repairs.expected import FoldFits
from drosurv.tables import TableEncoder
from drosurv.tables.columns import UnseenLevelWarning

# One rule with one condition, which is all that most of these tests need.
SIMPLE = {"max_repairs": 1, "max_conditions": 1, "folds": 3, "random_state": 0}


def sample(n=1200, seed=0, **options):
    return make_hidden_minority(n_samples=n, n_features=6, minority=0.25, random_state=seed, **options)


@pytest.fixture(scope="module")
def planted():
    train = sample()
    return (
        RepairedCox(CoxPH(), max_conditions=1, folds=3, random_state=0).fit(train.X, train.y),
        train,
        sample(seed=1),
    )


def gain(model, test, rows=slice(None)):
    X, y = test.X[rows], test.y[rows]
    times = np.quantile(y["time"], np.linspace(0.01, 1, 100))
    return likelihood_gain(model.follow_up_, y, model.predict_survival_function(X, times=times), times)


def test_a_hidden_minority_is_found_and_better_served(planted):
    model, _, test = planted
    (found,) = model.repairs_
    assert str(found.rule).startswith("x5 > 0.")
    inside = (test.sensitive_features["membership"] == "minority").to_numpy()
    held = found.rule.holds(test.X)
    assert (held & inside).sum() / (held | inside).sum() > 0.7
    assert gain(model.base_, test, inside) < 0.03
    assert gain(model, test, inside) > 0.1
    assert gain(model, test) > gain(model.base_, test) + 0.03
    assert found.slope_before < 0.5 < found.slope_after


def test_curves_are_the_bases_times_the_repair(planted):
    model, *_ = planted
    test = sample(n=200, seed=1)
    times = np.array([0.2, 0.7, 1.5])
    hazard = model.predict_cumulative_hazard_function(test.X, times=times)
    np.testing.assert_allclose(model.predict_survival_function(test.X, times=times), np.exp(-hazard))
    base = model.base_.predict_cumulative_hazard_function(test.X, times=times)
    ratio = hazard / base / np.exp(model.log_hazard_ratios(test.X))[:, None]
    # The baseline is fitted again, the same for everybody.
    np.testing.assert_allclose(np.ptp(np.log(ratio), axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(
        model.predict(test.X), model.base_.predict(test.X) + model.log_hazard_ratios(test.X)
    )
    # Who only has the base's predictions is told the same.
    at = model.unique_times_
    said = model.base_.predict_survival_function(test.X, times=at)
    np.testing.assert_allclose(
        model.correct((at, said), test.X), model.predict_survival_function(test.X, times=at), atol=0.005
    )
    curve = model.predict_survival_function(test.X.iloc[:1])[0]
    assert curve(0.0) == 1.0
    assert (np.diff(curve.y) <= 0).all()
    assert 0.5 < model.score(test.X, test.y) < 1


def test_the_baseline_again_makes_expected_events_match(planted):
    model, train, test = planted
    for data in (train, test):
        X, y = data.X[:600], data.y[:600]
        hazards = model.predict_cumulative_hazard_function(X, times=y["time"])
        assert y["event"].sum() == pytest.approx(np.trace(hazards), rel=0.08)


@pytest.fixture(scope="module")
def right():
    """A right model, whom nothing repairs, and its patients."""
    data = make_hidden_minority(n_samples=800, n_features=6, minority=0.0, random_state=3)
    return RepairedCox(CoxPH(), random_state=0).fit(data.X, data.y), data


def test_a_right_model_stays_as_it_is(right):
    model, data = right
    assert model.repairs_ == []
    np.testing.assert_array_equal(model.predict(data.X), CoxPH().fit(data.X, data.y).predict(data.X))
    nothing = (
        "Nothing was repaired: no correction of CoxPH, for all patients or for a group of at least 20, was confirmed "
        "by patients not used to find it."
    )
    assert model.status_.startswith(nothing)
    assert nothing in model.summary().notes[0]
    assert "a tenth of the patients with at least 2.2 times as many events as predicted" in model.status_


def test_the_same_seed_gives_the_same_model_and_numbered_columns_are_called_as_those_of_an_array(planted):
    def counted_from_one(said):
        return re.sub(r"\bx(\d+)", lambda found: f"x{int(found[1]) + 1}", str(said))

    model, train, test = planted
    numbered = clone(model).fit(pd.DataFrame(train.X.to_numpy()), train.y)
    assert counted_from_one(numbered.repairs_[0].rule) == str(model.repairs_[0].rule)
    found = numbered.predict(pd.DataFrame(test.X.to_numpy()))
    np.testing.assert_allclose(found, model.predict(test.X), rtol=1e-12)
    assert counted_from_one(numbered.hazard_ratios().rows) == str(model.hazard_ratios().rows)


def test_in_single_precision_the_same_is_repaired(planted, monkeypatch):
    model, train, test = planted
    monkeypatch.setattr(expected, "MANY", 1)
    single = clone(model).fit(train.X, train.y)
    assert [repair.who for repair in single.repairs_] == [repair.who for repair in model.repairs_]
    difference = np.abs(single.predict(test.X) - model.predict(test.X)).max()
    assert 0 < difference < 1e-6


def test_a_saved_model_is_the_same_model(planted, tmp_path):
    model, _, test = planted
    model.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(test.X), model.predict(test.X))
    np.testing.assert_array_equal(
        loaded.predict_survival_function(test.X, times=[0.5, 1.0]),
        model.predict_survival_function(test.X, times=[0.5, 1.0]),
    )
    assert loaded.repairs_[0].rule == model.repairs_[0].rule
    assert loaded.status_ == model.status_


def test_a_forest_is_repaired_but_cannot_be_saved_without_pickle(tmp_path):
    data = sample(n=400)
    base = RandomSurvivalForest(n_estimators=3, min_samples_leaf=60, random_state=0)
    model = RepairedCox(base, **SIMPLE).fit(data.X, data.y)
    assert model.repairs_
    expected = sum(
        h(t)
        for h, t in zip(
            model.predict_cumulative_hazard_function(data.X.iloc[:5]), data.y["time"][:5], strict=True
        )
    )
    assert np.isfinite(expected)
    with pytest.raises(TypeError, match=r"cannot save model.base.*RandomSurvivalForest"):
        model.save(tmp_path / "model")


def test_risks_of_a_base_of_time_ratios_are_those_of_its_hazards():
    data = sample(n=500)
    model = RepairedCox(AcceleratedFailureTime(), **SIMPLE).fit(data.X, data.y)
    assert model.repairs_
    # Weibull's hazards are proportional, so that at any time they tell the log risk up to a constant.
    (hazard,) = model.predict_cumulative_hazard_function(data.X, times=[0.5]).T
    np.testing.assert_allclose(np.ptp(model.predict(data.X) - np.log(hazard)), 0, atol=1e-6)
    with pytest.raises(ValueError, match="AcceleratedFailureTime has no coefficients that are log hazard"):
        model.hazard_ratios()


def test_a_frozen_model_is_recalibrated_for_everyone_before_a_group_is_named():
    there, here = make_hidden_minority(1000, 6, 0.0, random_state=0), sample(n=1200)
    model = CoxPH().fit(there.X, there.y)
    repaired = repair(model, here.X, here.y, frozen=True, max_conditions=1, max_repairs=2, random_state=0)
    assert repaired.base_ is model
    kinds = [found.kind for found in repaired.repairs_]
    assert kinds[0] == "everyone"
    assert any(str(found.rule).startswith("x5 > 0.") for found in repaired.repairs_[1:])
    test = sample(seed=5)
    assert gain(repaired, test) > gain(model, test) + 0.03


def test_predictions_alone_can_be_repaired():
    here = sample(n=1000)
    # So close together that curves are known throughout.
    times = np.linspace(0.01, 4, 400)
    hazard = np.exp(0.8 * here.X["x1"] + 0.5 * here.X["x2"] + 0.3 * here.X["x3"])
    survival = np.exp(-np.outer(hazard, times))
    model = repair((times, survival), here.X, here.y, frozen=True, max_conditions=1, random_state=0)
    assert "x5" in str(model.repairs_[-1].rule)
    corrected = model.correct((times, survival), here.X)
    assert ((corrected >= 0) & (corrected <= 1)).all()
    ratio = np.log(corrected[:, 50]) / np.log(survival[:, 50])
    held = model.repairs_[-1].rule.holds(here.X)
    assert np.ptp(np.log(ratio[held])) > 0.5
    with pytest.raises(ValueError, match="now missing:\n- x1"):
        model.correct((times, survival), here.X.drop(columns="x1"))
    with pytest.raises(ValueError, match=r"pass predictions for these patients to correct"):
        model.predict(here.X)


def test_a_right_frozen_model_off_by_a_factor_names_no_group():
    named = 0
    for seed in range(3):
        here = make_hidden_minority(400, 5, 0.0, random_state=seed)
        # So close together that curves are known throughout: ratios are those of hazards.
        times = np.linspace(0.01, 4, 400)
        survival = np.exp(-np.outer(2 * np.exp(here.truth["log_risk"]), times))
        model = repair((times, survival), here.X, here.y, frozen=True, random_state=seed)
        assert model.repairs_[0].rule is None
        assert model.repairs_[0].before.value == pytest.approx(0.5, abs=0.1)
        assert model.repairs_[0].after.value == pytest.approx(1.0, abs=0.1)
        named += len(model.repairs_) - 1
    assert named == 0
    assert repair((times, survival), here.X, here.y, frozen=True, max_repairs=0).attempts_ == []
    # Where risks are compared must not come from the outcomes, or the theorem would not hold.
    again = repair((times, survival), here.X, here.y[::-1], frozen=True, max_repairs=0)
    np.testing.assert_array_equal(again._times, model._times)


def test_a_repair_after_which_a_table_would_be_known_throughout_is_told_by_its_times():
    here = make_hidden_minority(400, 5, 0.0, random_state=0)
    times = np.linspace(0.15, 4, 120)
    survival = np.exp(-np.outer(2 * np.exp(here.truth["log_risk"]), times))
    half = np.sqrt(survival)
    throughout = [parse_survival(one, 400, times).known_throughout for one in (survival, half)]
    assert throughout == [False, True]
    model = repair((times, survival), here.X, here.y, frozen=True, **SIMPLE)
    assert model.repairs_[0].rule is None
    assert model.repairs_[0].by in times
    assert model.repairs_[0].after.value == pytest.approx(1.0, abs=0.1)


def test_rules_use_the_features_given():
    data = sample(500)
    table = pd.DataFrame(
        {"age": np.round(60 + 10 * data.X["x5"]), "sex": np.where(data.X["x6"] > 0, "f", "m")}
    )
    model = RepairedCox(CoxPH(), **SIMPLE).fit(data.X, data.y, features=table)
    assert model.repairs_[0].rule.conditions[0].column == "age"
    risk = model.predict(data.X, features=table)
    assert np.isfinite(risk).all()
    median = model.predict_median(data.X, features=table)
    curves = model.predict_survival_function(data.X, features=table)
    assert median.tolist() == [min(curve.x[curve.y <= 0.5], default=np.inf) for curve in curves]
    # The mean of those who have survived a time is the area under what is then left of the curve.
    mean = model.predict_expectation(data.X, features=table, conditional_after=0.4)
    for i in (0, 50, 100):
        at = np.append(0.0, curves[i].x)
        left = np.minimum(curves[i](at[:-1]) / curves[i](0.4), 1.0)
        assert mean[i] == pytest.approx(left @ np.diff(at))
    with pytest.raises(ValueError, match=r"features must have the columns \['age'\]"):
        model.predict(data.X)
    with pytest.raises(ValueError, match="age"):
        model.predict(data.X, features=table[["sex"]])
    # A category never seen before, and a missing value: neither meets a rule that names another.
    table.loc[0, "sex"], table.loc[1, "age"] = "x", np.nan
    assert np.isfinite(model.predict(data.X, features=table)).all()


def test_with_too_few_events_the_status_says_so_and_the_base_is_kept():
    data = make_hidden_minority(n_samples=60, n_features=5, random_state=0)
    model = RepairedCox(CoxPH()).fit(data.X, data.y)
    assert model.repairs_ == []
    assert model.status_ == (
        "Nothing was repaired, because no subgroup was searched for: "
        f"{data.y['event'].sum()} events are too few, at least 50 are needed (10 in a group and 10 outside of it, in "
        "2 of 5 folds); 60 patients are too few, at least 100 are needed (20 in a group and 20 outside of it, in 2 of "
        "5 folds)."
    )
    np.testing.assert_array_equal(model.predict(data.X), CoxPH().fit(data.X, data.y).predict(data.X))
    pairs = RepairedCox(CoxPH()).fit(data.X, with_fields(data.y, clusters=np.arange(60) // 2)).status_
    events = int(data.y["event"].sum() / 2)
    assert f"{events} events are too few, at least 50 are needed (10 in" in pairs
    assert "; 30 clusters are too few" in pairs
    assert pairs.endswith("; the rows of one patient or cluster count together as one.")
    wide = make_hidden_minority(n_samples=120, n_features=12, random_state=0)
    needed = "at least 120 are needed (10 for each of 12 columns)"
    assert needed in RepairedCox(CoxPH()).fit(wide.X, wide.y).status_


def test_constant_columns_define_no_group():
    data = sample(500)
    X = data.X.assign(same=1.0)
    model = RepairedCox(CoxPH(l2=0.01), **SIMPLE).fit(X, data.y)
    assert model.repairs_[0].rule.conditions[0].column == "x5"
    assert "clusters" not in model.status_
    pairs = np.arange(len(X)) // 2
    only = RepairedCox(CoxPH(l2=0.01), **SIMPLE).fit(X[["same"]], with_fields(data.y, clusters=pairs))
    assert only.repairs_ == []
    assert "The 500 rows are in 250 clusters, each of which counts once" in only.status_
    # The two rows of a patient are half of the follow-up each.
    second, end = np.arange(len(X)) % 2 == 1, data.y["time"][1::2].repeat(2)
    time, entry = np.where(second, end, end / 2), np.where(second, end / 2, 0.0)
    y = Surv.from_arrays(data.y["event"] & second, time, entry=entry, id=pairs)
    only = RepairedCox(CoxPH(l2=0.01), **SIMPLE).fit(X[["same"]], y)
    assert "The 500 rows are of 250 patients, each of whom counts once" in only.status_


def test_columns_missing_at_prediction_are_named(planted):
    model, *_ = planted
    with pytest.raises(ValueError, match="now missing:\n- x5"):
        model.predict(sample(n=300).X.drop(columns="x5"))


def test_predictions_in_every_form_are_repaired_without_a_model():
    data = sample(n=400)
    with pytest.raises(NotFittedError, match="This CoxPH instance is not fitted yet"):
        repair(CoxPH(), data.X, data.y, frozen=True)
    times = np.quantile(data.y["time"], [0.2, 0.5, 0.9])
    survival = CoxPH().fit(data.X, data.y).predict_survival_function(data.X, times=times)
    forms = [(times, survival), Predictions(survival=survival, times=times)]
    found = [
        repair(form, data.X, data.y, frozen=frozen, **SIMPLE)
        for form, frozen in zip(forms, (True, False), strict=True)
    ]
    for repaired in found:
        assert repaired.base_ is None
        np.testing.assert_allclose(
            repaired.correct(forms[1], data.X), found[0].correct(forms[0], data.X), rtol=1e-12
        )
    with pytest.raises(ValueError, match="risk scores but no survival curves"):
        repair(np.zeros(400), data.X, data.y)


def test_extra_columns_are_ignored_and_their_order_does_not_matter(planted):
    model, data, _ = planted
    shuffled = data.X[data.X.columns[::-1]].assign(extra="text")
    np.testing.assert_allclose(model.predict(shuffled), model.predict(data.X))
    np.testing.assert_allclose(
        model.predict_survival_function(shuffled, times=[0.5]),
        model.predict_survival_function(data.X, times=[0.5]),
    )


def test_summary_has_standard_errors_where_nothing_was_repaired(planted, right):
    model, data = right
    pd.testing.assert_frame_equal(
        pd.DataFrame(model.summary()), pd.DataFrame(CoxPH().fit(data.X, data.y).summary())
    )
    assert {"who", "effect", "hazard_ratio"} <= set(planted[0].summary().columns)


def test_drosurv_summary_and_predictions_take_a_repaired_pipeline_on_raw_tables():
    data = make_hidden_minority(n_samples=400, n_features=5, minority=0.0, random_state=0)
    raw = data.X.assign(sex=np.where(data.X["x3"] > 0, "f", "m"))
    base = make_pipeline(TableEncoder(), CoxPH())
    model = RepairedCox(base=base, **SIMPLE).fit(raw, data.y)
    assert model.repairs_ == []
    expected = drosurv.summary(clone(base).fit(raw, data.y))
    pd.testing.assert_frame_equal(pd.DataFrame(drosurv.summary(model)), pd.DataFrame(expected))
    more = raw.assign(notes="free text", admitted="2020-01-01")[["notes", *raw.columns[::-1], "admitted"]]
    np.testing.assert_allclose(model.predict(more), model.predict(raw))


def test_weights_equal_copies():
    data = sample(500)
    weight = np.random.default_rng(0).integers(1, 3, 500)
    rows = np.repeat(np.arange(500), weight)
    options = {**SIMPLE, "min_group": 20}
    clusters = np.arange(500)
    weighted = RepairedCox(CoxPH(), **options).fit(
        data.X, with_fields(data.y, clusters=clusters), sample_weight=weight
    )
    copies = RepairedCox(CoxPH(), **options).fit(
        data.X.iloc[rows], with_fields(data.y[rows], clusters=clusters[rows])
    )
    (first,), (second,) = weighted.repairs_[:1], copies.repairs_[:1]
    assert first.rule.conditions[0].column == second.rule.conditions[0].column
    assert np.corrcoef(weighted.predict(data.X), copies.predict(data.X))[0, 1] > 0.98


def frozen_predictions(n=600, seed=0):
    """Predictions (rates, columns, target) of a model that is wrong about those with x5 > 1.08."""
    data = sample(n, seed=seed)
    rate = np.exp(0.8 * data.X["x1"] + 0.5 * data.X["x2"] + 0.3 * data.X["x3"]).to_numpy()
    return rate, data.X, data.y


def test_copies_of_patients_in_clusters_are_no_evidence():
    rate, X, y = frozen_predictions()
    rows = np.tile(np.arange(600), 5)
    options = {**SIMPLE, "frozen": True, "min_group": 20}
    # So close together that curves are known throughout.
    times = np.linspace(0.0, 12.0, 601)[1:]
    survival = np.exp(-np.outer(rate, times))
    one = repair((times, survival), X, y, **options)
    five = repair((times, survival[rows]), X.iloc[rows], with_fields(y[rows], clusters=rows), **options)
    assert [attempt.e for attempt in five.attempts_] == pytest.approx(
        [attempt.e for attempt in one.attempts_], rel=1e-6
    )
    assert five.to_frame()["gain_low"].to_numpy() == pytest.approx(one.to_frame()["gain_low"], rel=0.05)
    assert five.min_group_ == one.min_group_
    # Clusters need not be patients: what is counted are rows.
    assert "all 600 patients" in one.in_words()[0]
    assert "all 3,000 rows" in five.in_words()[0]


def test_intervals_of_one_patient_are_as_the_whole_follow_up():
    rate, X, y = frozen_predictions()
    # So close together that curves are known throughout.
    times = np.linspace(0.0, 12.0, 601)[1:]
    survival = np.exp(-np.outer(rate, times))
    split = np.flatnonzero(y["time"] > 0.5)
    rows = np.concatenate([np.arange(600), split])
    time, event, entry = y["time"].copy(), y["event"].copy(), np.zeros(600)
    time[split], event[split] = 0.5, False
    late = y[split]
    cut = Surv.from_arrays(np.append(event, late["event"]), np.append(time, late["time"]))
    options = {**SIMPLE, "frozen": True, "min_group": 20}
    one = repair((times, survival), X, y, **options)
    entry = np.append(entry, np.full(len(split), 0.5))
    two = repair((times, survival[rows]), X.iloc[rows], with_fields(cut, id=rows, entry=entry), **options)
    assert one.repairs_
    assert [a.e for a in two.attempts_] == pytest.approx([a.e for a in one.attempts_], rel=0.05)
    assert two.repairs_[0].patients == one.repairs_[0].patients == 600
    assert not two.repairs_[0].in_rows


def test_late_entry_counts_hazards_from_entry_on():
    """Patients seen from half their time on: the subgroup is found, and expected events are those after entry."""
    rng = np.random.default_rng(0)
    data = sample(1600)
    time = data.y[data.y.dtype.names[1]]
    entry = np.minimum(rng.exponential(0.3, 1600), 0.999 * time.max())
    seen = entry < time
    X, y, entry = data.X[seen], data.y[seen], entry[seen]
    model = RepairedCox(CoxPH(), **SIMPLE).fit(X, with_fields(y, entry=entry))
    assert model.repairs_[-1].rule.conditions[0].column == "x5"
    repaired = model.repairs_[0]
    inside, expected = repaired.holds(X), 0.0
    event = y[y.dtype.names[0]]
    order = row_order(parse_target(y), X, entry)
    folds = draw_folds(len(X), model.folds, np.random.default_rng(0), event, order=order)
    for fold in range(model.folds):
        out = folds == fold
        fitted = CoxPH().fit(X[~out], with_fields(y[~out], entry=entry[~out]))
        group = out & inside
        hazards = fitted.predict_cumulative_hazard_function(X[group])
        expected += sum(h(t) - h(v) for h, t, v in zip(hazards, time[seen][group], entry[group], strict=True))
    assert repaired.predicted == pytest.approx(expected, rel=1e-3)
    # A model that ignored entry would expect far more events.
    assert abs(repaired.after.value - 1) < 0.3


def test_without_a_base_splines_explain_a_curved_effect_and_no_rule_is_needed():
    """A quadratic effect and no subgroup."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "c"])
    hazard = np.exp(0.7 * X["a"] ** 2 - 0.5 * X["b"])
    time, end = rng.exponential(size=500) / hazard, rng.exponential(size=500)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    model = RepairedCox(folds=3, max_conditions=1, random_state=0).fit(X, y)
    assert isinstance(model.base_, CoxPHCV)
    assert model.repairs_ == []
    assert model.base is None
    assert RepairedCox(CoxPH(), folds=3, max_conditions=1, random_state=0).fit(X, y).repairs_


def test_beside_a_curved_effect_only_the_subgroup_is_named():
    """A quadratic effect of `a` for everybody, and an effect of `b` that is reversed where `c` is high."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 3)), columns=["a", "b", "c"])
    log_hazard = 0.7 * X["a"] ** 2 + np.where(X["c"] > 0.8, -1.0, 1.0) * X["b"]
    time, end = rng.exponential(size=800) / np.exp(log_hazard), rng.exponential(size=800)
    model = RepairedCox(folds=3, max_conditions=1, random_state=0).fit(
        X, Surv.from_arrays(time <= end, np.minimum(time, end))
    )
    assert isinstance(model.base_, CoxPHCV)
    assert {condition.column for repair in model.repairs_ for condition in repair.rule.conditions} == {"c"}
    assert all("nonlinear" not in words for words in model.in_words())


@pytest.mark.parametrize("case", ["whole years", "falling hazards", "rising hazards"])
def test_right_predictions_at_few_times_are_not_changed(case):
    """Read as straight lines between their times, such predictions seemed wrong in most samples."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 3)), columns=["a", "b", "c"])
    rate = np.exp(0.7 * X["a"] - 0.5 * X["b"]).to_numpy()
    if case == "whole years":
        times, end = np.arange(1.0, 9.0), rng.integers(1, 9, 1000).astype(float)
        hazard = 0.2 * np.outer(rate, times)
        time = np.ceil(rng.exponential(size=1000) / rate / 0.2)
    else:
        shape = 0.5 if case == "falling hazards" else 2.0
        times, end = np.array([0.25, 0.5, 1.0, 2.0, 3.0]), np.minimum(rng.exponential(1.5, 1000), 3.0)
        hazard = np.outer(rate, times**shape)
        time = (rng.exponential(size=1000) / rate) ** (1 / shape)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    found = repair((times, np.exp(-hazard)), X, y, frozen=True, **SIMPLE)
    assert found.repairs_ == []
    assert max(attempt.e for attempt in found.attempts_) < 20


def test_an_unseen_level_is_predicted_as_the_level_that_the_message_names():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(60, 10, 600), "sex": rng.choice(["f", "m"], 600)})
    X["site"] = rng.choice(list("ABCD"), 600, p=[0.2, 0.2, 0.2, 0.4])
    risk = 0.03 * (X["age"] - 60) + 2.0 * ((X["site"] == "D") & (X["sex"] == "m"))
    time, end = rng.exponential(np.exp(-risk)), rng.exponential(2, size=600)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    model = RepairedCox(CoxPH(), folds=3, max_repairs=1, max_conditions=2, random_state=0).fit(X, y)
    assert "site = D" in model.status_
    two = pd.DataFrame({"age": [60.0, 60.0], "sex": ["f", "m"], "site": ["D", "D"]})
    with pytest.warns(
        UnseenLevelWarning, match="'site' holds 1 text in 2 rows, not seen in training; taken as 'D'"
    ):
        unseen = model.predict(two.assign(site="Z"))
    np.testing.assert_allclose(unseen, model.predict(two))
    np.testing.assert_allclose(model.predict(two.assign(site=None)), model.predict(two))
    with pytest.warns(UnseenLevelWarning):
        curves = model.predict_survival_function(two.assign(site=pd.Categorical(["Z", "Z"])), times=[1.0])
    np.testing.assert_allclose(curves, model.predict_survival_function(two, times=[1.0]))


def test_predictions_for_a_check_do_not_depend_on_the_outcomes_of_its_fold():
    data, folds = sample(300), np.arange(300) % 5
    event, time = data.y["event"], data.y["time"]
    other = Surv.from_arrays(np.where(folds == 2, ~event, event), time)
    times, edges = np.array([0.5, 1.0]), np.array([0.3, 0.8])
    found = []
    for y in (data.y, other):
        fits = FoldFits(CoxPH(), None, data.X, y, folds, times, edges)
        found.append(fits.without_each_fold(list(fits.out_of_fold(lambda *_: None)), lambda *_: None))
    for fold in (0, 1, 3, 4):
        np.testing.assert_array_equal(found[0][2][fold].hazard, found[1][2][fold].hazard)
    assert not np.array_equal(found[0][0][1].hazard, found[1][0][1].hazard)
    np.testing.assert_allclose(found[0][2][1].by_interval.sum(axis=1), found[0][2][1].hazard)


def test_a_model_of_noise_may_lose_its_effects_but_not_reverse_them():
    rng = np.random.default_rng(1005)
    X = pd.DataFrame(rng.normal(size=(300, 10)).round(3), columns=[f"x{j}" for j in range(10)])
    y = Surv.from_arrays(rng.random(300) < 0.7, rng.exponential(500, 300))
    model = RepairedCox(CoxPH(), max_conditions=1, random_state=0).fit(X, y)
    assert [found.kind for found in model.repairs_] == ["everyone"]
    base = model.base_.predict(X)
    slope = np.cov(model.predict(X), base)[0, 1] / np.var(base, ddof=1)
    assert -1e-12 < slope < 0.5


def test_a_fitted_model_is_not_fitted_again_without_a_word():
    data = sample(200)
    model = CoxPH().fit(data.X, data.y)
    with pytest.warns(UserWarning, match="model is fitted already, and is fitted again to these patients"):
        repair(model, data.X, data.y, max_repairs=0)
