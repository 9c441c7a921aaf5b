"""CoxPHCV against R's rms, brute force and plain fits; what it chooses, reports and refuses."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import drosurv
from drosurv import CoxPH, CoxPHCV, Surv
from drosurv.errors import ArgumentError
from drosurv.estimators import penalty_choice
from drosurv.estimators.spline_design import SplineDesign
from drosurv.metrics.calibration import spline_columns
from drosurv.patients.draws import draw_folds, row_order
from drosurv.patients.target import parse_target, with_fields
from drosurv.tables import TableEncoder

FIXTURES = Path(__file__).parents[1] / "fixtures"
RMS = json.loads((FIXTURES / "rms_splines.json").read_text())


def r_table(name):
    table = pd.read_csv(FIXTURES / f"rms_{name}.csv")
    return table.drop(columns=["time", "event"]), Surv.from_arrays(table["event"] == 1, table["time"])


def sample(n=300, seed=0, curved=1.0):
    rng = np.random.default_rng(seed)
    age, dose, sex = rng.normal(60, 10, n), rng.exponential(size=n), rng.integers(0, 2, n)
    score = curved * ((age - 60) / 10) ** 2 + 0.5 * sex
    time = np.ceil(100 * rng.exponential(size=n) * np.exp(-score)) / 100
    X = pd.DataFrame({"age": age, "dose": dose, "sex": sex.astype(float)})
    return X, Surv.from_arrays(rng.random(n) < 0.7, time)


def folds_of(features, y, n_folds, seed=0):
    order = row_order(parse_target(y), features)
    return draw_folds(len(y), n_folds, np.random.default_rng(seed), y["event"], order=order)


X, Y = sample()
# Few penalties and folds, where a test is not about them.
FEW = {"l2s": (0.01, 0.1), "cv": 3}
_fitted = {}


def fitted(**parameters):
    key = repr(sorted(parameters.items()))
    if key not in _fitted:
        _fitted[key] = CoxPHCV(**parameters).fit(X, Y)
    return _fitted[key]


# Against R.


@pytest.mark.parametrize(("name", "ties", "knots"), [("pbc", "breslow", 4), ("pbc", "efron", 3)])
def test_without_penalty_it_is_the_model_of_rms(name, ties, knots):
    table, y = r_table(name)
    wanted = RMS[f"{name}_{ties}"]
    model = CoxPHCV(splines=knots, l2s=[0.0], ties=ties, cv=2).fit(table, y)
    for column, at in wanted["knots"].items():
        np.testing.assert_allclose(model.knots_[column], at, rtol=1e-9)
    np.testing.assert_allclose(model.coef_, wanted["coef"], rtol=2e-4)
    found = model.summary()["p nonlinear"][list(wanted["knots"])]
    np.testing.assert_allclose(found, wanted["p_nonlinear"], rtol=2e-3)


def test_splines_at_the_knots_of_rms_give_its_likelihood_and_coefficients():
    table, y = r_table("rotterdam")
    wanted = RMS["rotterdam_breslow"]
    none = np.empty(0)
    knots = tuple(np.array(wanted["knots"].get(name, none), dtype=float) for name in table.columns)
    values = table.to_numpy(dtype=float)
    columns = np.vstack([spline_columns(x, t) for x, t in zip(values.T, knots, strict=True)]).T
    scale = columns.std(axis=0)
    model = CoxPH(tol=1e-12).fit(columns / scale, y)
    np.testing.assert_allclose(model.coef_ / scale, wanted["coef"], rtol=1e-3)
    assert -model.objective_ * len(y) == pytest.approx(wanted["loglik"][1], abs=1e-5)


# The choice.


def log_partial_likelihood(y, score, weight=None):
    """Breslow's, from its definition, one event after the other."""
    weight = np.ones(len(y)) if weight is None else weight
    total = 0.0
    for i in np.flatnonzero(y["event"]):
        at_risk = y["time"] >= y["time"][i]
        total += weight[i] * (score[i] - np.log(np.sum(weight[at_risk] * np.exp(score[at_risk]))))
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_the_cross_validated_partial_likelihood(weighted):
    table, y = sample(120, seed=3)
    weight = np.random.default_rng(1).integers(1, 4, 120).astype(float) if weighted else None
    model = CoxPHCV(splines=3, l2s=[0.5, 0.01], cv=3, random_state=5).fit(table, y, weight)
    folds = folds_of(table, y, 3, 5)
    values = table.to_numpy()
    for k in range(3):
        rows = folds != k
        inside = None if weight is None else weight[rows]
        design = SplineDesign.learn(values[rows], inside, 3)
        for c in range(4):
            factor = model.cv_results_["nonlinear_penalty"][c]
            penalised = design.with_nonlinear_penalty(factor)
            # The penalty of the summed loss is that of the fit to all patients.
            share = rows.mean() if weight is None else inside.sum() / weight.sum()
            plain = CoxPH(l2=model.cv_results_["l2"][c] / share)
            plain.fit(penalised.standardised(values[rows]), y[rows], inside)
            score = plain.predict(penalised.standardised(values))
            wanted = log_partial_likelihood(y, score, weight)
            wanted -= log_partial_likelihood(y[rows], score[rows], inside)
            assert model.cv_results_[f"split{k}_test_score"][c] == pytest.approx(wanted, abs=5e-3)


def test_the_best_score_is_chosen_and_fitted_on_everybody():
    model = fitted()
    results = pd.DataFrame(model.cv_results_)
    splits = results.filter(regex="^split")
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=1))
    best = results.loc[results["mean_test_score"].idxmax()]
    assert best["rank_test_score"] == 1
    assert model.l2_ == best["l2"]
    assert len(model.knots_["age"]) == best["knots"]
    assert sorted(set(results["knots"])) == [0, 4]
    plain = CoxPH(l2=model.l2_).fit(model._design.standardised(X.to_numpy()), Y)
    np.testing.assert_allclose(plain.coef_, model.estimator_.coef_, atol=1e-8)


def noise(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), Surv.from_arrays(rng.random(n) < 0.6, rng.exponential(size=n))


@pytest.mark.parametrize(("n", "d"), [(60, 20), (40, 60)])
def test_on_noise_the_penalty_grows_until_little_is_left(n, d):
    gains, largest = [], []
    new, y = noise(1000, d, seed=99)
    for seed in range(3):
        model = CoxPHCV(splines=False).fit(*noise(n, d, seed))
        difference = log_partial_likelihood(y, model.predict(new)) - log_partial_likelihood(y, np.zeros(1000))
        gains.append(difference / y["event"].sum())
        largest.append(model.l2_)
    # With penalties up to 1 the mean is below -0.03 in both cases.
    assert np.mean(gains) > -0.015
    assert max(largest) > 50


def test_many_rows_give_the_scores_of_few_and_penalties_near_another_models_are_enough(monkeypatch):
    wanted = CoxPHCV(cv=3).fit(X, Y)
    monkeypatch.setattr(penalty_choice, "MANY_ROWS", 100)
    found = CoxPHCV(cv=3).fit(X, Y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"], atol=5e-3
    )
    for near in (wanted.l2_, 1.0):
        other = CoxPHCV(cv=3)
        other.begin_near(SimpleNamespace(l2_=near))
        other.fit(X, Y)
        assert (other.l2_, other.knots_.keys()) == (wanted.l2_, wanted.knots_.keys())
        np.testing.assert_allclose(other.coef_, wanted.coef_, rtol=1e-9)
        few = len(other.cv_results_["l2"]) < len(wanted.cv_results_["l2"])
        assert few == (near == wanted.l2_)
        # The next fit begins as usual.
        assert "_near" not in vars(other)


def test_penalties_below_the_usual_ones_are_tried_where_they_gain():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = Surv.from_arrays(np.ones(200, dtype=bool), np.exp(-x[:, 0] + 0.02 * rng.normal(size=200)))
    model = CoxPHCV(splines=False).fit(x, y)
    assert model.l2_ < 1e-4


def test_without_a_clear_gain_the_largest_penalty_is_chosen_that_keeps_most_of_it():
    features, y = noise(60, 20, seed=5)
    model = CoxPHCV(splines=False).fit(features, y)
    table = pd.DataFrame(model.cv_results_)
    folds = folds_of(features, y, 5)
    null = log_partial_likelihood(y, np.zeros(60)) * 5
    null -= sum(log_partial_likelihood(y[folds != k], np.zeros((folds != k).sum())) for k in range(5))
    gain = table.filter(regex="^split").sum(axis=1) - null
    assert 0 < gain.max() < 2
    assert model.l2_ == table["l2"][gain >= 0.75 * gain.max()].max()
    assert model.l2_ > table["l2"][gain.idxmax()]


def test_a_curved_effect_is_splined_and_a_straight_one_is_not():
    assert len(fitted().knots_["age"]) == 4
    assert len(fitted().knots_["sex"]) == 0
    table, y = sample(400, seed=4, curved=0.0)
    y["time"] = np.exp(-0.05 * table["age"] + 0.3 * np.log(y["time"]))
    assert CoxPHCV().fit(table, y).knots_["age"].size == 0
    curved, straight = fitted(), fitted(splines=False)
    assert curved.score(X, Y) > straight.score(X, Y) + 0.1


def test_the_true_curve_is_recovered():
    table, y = sample(4000, seed=7, curved=0.5)
    model = CoxPHCV().fit(table, y)
    ages = np.array([45.0, 50.0, 60.0, 70.0, 75.0])
    effect = model.partial_effect("age", ages)
    assert abs(effect["coef"] - effect["shrunken coef"]).max() < 0.05
    truth = 0.5 * ((ages - 60) / 10) ** 2 - 0.5 * ((table["age"].median() - 60) / 10) ** 2
    np.testing.assert_allclose(effect["coef"], truth, atol=0.15)


def test_without_penalty_and_splines_it_is_plain_cox():
    model = fitted(splines=False, l2s=(0.0,))
    np.testing.assert_allclose(model.coef_, CoxPH().fit(X, Y).coef_, rtol=1e-6)
    assert model.get_feature_names_out().tolist() == ["age", "dose", "sex"]


def test_design_columns_are_named_and_have_coefficients():
    model = fitted(splines=5, l2s=(0.01,))
    names = model.get_feature_names_out().tolist()
    assert names[:5] == ["age", "age'", "age''", "age'''", "dose"]
    assert len(names) == len(model.coef_) == 9
    parts = zip(X.to_numpy().T, model._design.knots, strict=True)
    scores = model.coef_ @ np.vstack([spline_columns(x, t) for x, t in parts])
    difference = scores - model.predict(X)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_units_of_columns_do_not_change_predictions():
    other = CoxPHCV(**FEW).fit(X * [0.01, 1000.0, 1.0], Y)
    np.testing.assert_allclose(other.predict(X * [0.01, 1000.0, 1.0]), fitted(**FEW).predict(X), atol=1e-6)


# What is known of the rows.


def test_copies_that_share_an_id_are_weights():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    weighted = CoxPHCV(splines=4, **FEW, random_state=0).fit(X, Y, counts)
    for field in ("id", "clusters"):
        y = with_fields(Y[rows], **{field: rows})
        copied = CoxPHCV(splines=4, **FEW, random_state=0).fit(X.iloc[rows], y)
        assert copied.l2_ == weighted.l2_
        for name, knots in weighted.knots_.items():
            np.testing.assert_allclose(copied.knots_[name], knots)
        np.testing.assert_allclose(
            copied.cv_results_["mean_test_score"], weighted.cv_results_["mean_test_score"], rtol=1e-5
        )
        np.testing.assert_allclose(copied.predict(X), weighted.predict(X), atol=1e-6)


def test_rows_of_one_id_that_follow_each_other_are_one_patient():
    half = Y["time"] / 2
    first = Surv.from_arrays(np.zeros(len(Y), dtype=bool), half)
    rows = pd.concat([X, X], ignore_index=True)
    y = np.concatenate([first, Y])
    entry, id = np.concatenate([np.zeros(len(X)), half]), np.tile(np.arange(len(X)), 2)
    cut, whole = CoxPHCV(**FEW).fit(rows, with_fields(y, entry=entry, id=id)), fitted(**FEW)
    np.testing.assert_allclose(
        cut.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=1e-5
    )
    assert cut.l2_ == whole.l2_
    assert cut.n_patients_ == len(X)
    with pytest.raises(ArgumentError, match="no entry times"):
        CoxPHCV().fit(rows, with_fields(y, id=id))


def test_folds_keep_ids_together_and_spread_events_within_strata():
    event, strata = np.arange(200) % 3 == 0, np.arange(200) % 4
    folds = draw_folds(200, 5, np.random.default_rng(0), event, strata=strata)
    for stratum in range(4):
        counts = np.bincount(folds[event & (strata == stratum)], minlength=5)
        assert np.ptp(counts) <= 1
    ids = np.repeat(np.arange(100), 2)
    folds = draw_folds(200, 5, np.random.default_rng(0), event, ids, strata)
    assert (folds[::2] == folds[1::2]).all()


def test_a_column_that_is_equal_within_strata_has_no_effect_in_any_order_of_the_rows():
    table = X.assign(centre=np.arange(len(X)) % 3)
    wanted = CoxPH().fit(X, Y, strata=table["centre"]).summary()
    order = np.random.default_rng(0).permutation(len(X))
    for rows in (np.arange(len(X)), order):
        model = CoxPHCV(splines=False, l2s=[0.01], cv=3)
        found = model.fit(table.iloc[rows], Y[rows], strata=table["centre"].iloc[rows]).summary()
        assert found.loc["centre", ["coef", "se(coef)"]].isna().all()
        np.testing.assert_allclose(found.loc[wanted.index, "se(coef)"], wanted["se(coef)"], rtol=1e-5)


def test_a_level_of_one_patient_does_not_disturb_the_other_coefficients():
    # Without the tenth of the patients that holds the one, the jackknife does not know the coefficient.
    table = X.assign(rare=np.arange(len(X)) == 7)
    wanted = CoxPH().fit(table.astype(float), Y).summary()["coef"]
    for rows in (np.arange(len(X)), np.random.default_rng(0).permutation(len(X))):
        model = CoxPHCV(splines=False, l2s=[0.01], cv=3).fit(table.iloc[rows].astype(float), Y[rows])
        np.testing.assert_allclose(model.summary()["coef"], wanted, rtol=1e-4)


def test_strata_and_offset_are_part_of_the_model():
    strata, offset = np.where(X["dose"] > 1, "b", "a"), 0.3 * X["sex"].to_numpy()
    model = CoxPHCV(splines=False, l2s=[0.01]).fit(X, Y, strata=strata, offset=offset)
    plain = CoxPH(l2=0.01).fit(model._design.standardised(X.to_numpy()), Y, strata=strata, offset=offset)
    np.testing.assert_allclose(model.estimator_.coef_, plain.coef_, rtol=1e-8)
    curves = model.predict_survival_function(X, times=[0.5], strata=strata, offset=offset)
    assert curves.shape == (300, 1)
    with pytest.raises(ArgumentError, match="offset"):
        model.predict(X)


def test_zero_weights_take_patients_out():
    weight = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.0)
    kept = weight > 0
    without, alone = CoxPHCV(**FEW).fit(X, Y, weight), CoxPHCV(**FEW).fit(X[kept], Y[kept])
    np.testing.assert_allclose(without.predict(X), alone.predict(X), atol=1e-9)


# Conventions.


def test_tables_with_categories_and_missing_values_are_encoded():
    table = X.assign(stage=np.where(X["dose"] > 1, "late", "early"))
    table.loc[3, "age"] = np.nan
    model = CoxPHCV(l2s=[0.01, 0.1]).fit(table, Y)
    assert np.isfinite(model.predict(table)).all()
    assert any("late" in name or "early" in name for name in model.knots_)


def test_pipelines_cross_validation_and_summary_work():
    pipeline = make_pipeline(StandardScaler(), CoxPHCV(**FEW))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.6
    table = drosurv.summary(pipeline.fit(X, Y))
    assert table.index.tolist() == ["age", "dose", "sex"]
    columns = ["coef", "se(coef)", "shrunken coef"]
    per_unit = fitted(**FEW).summary().loc["sex", columns].astype(float)
    np.testing.assert_allclose(table.loc["sex", columns].astype(float), per_unit, atol=1e-4)


def test_folds_are_the_same_in_every_fit_unless_seeded():
    known = fitted(**FEW).cv_results_["mean_test_score"]
    assert CoxPHCV(**FEW).fit(X, Y).cv_results_["mean_test_score"] == pytest.approx(known, rel=1e-9)
    drawn = [
        CoxPHCV(random_state=np.random.RandomState(3), l2s=[0.1]).fit(X, Y).cv_results_ for _ in range(2)
    ]
    assert np.array_equal(drawn[0]["mean_test_score"], drawn[1]["mean_test_score"])
    with pytest.raises(ArgumentError, match="random_state must"):
        CoxPHCV(random_state="seven").fit(X, Y)
    other = CoxPHCV(**FEW, random_state=1).fit(X, Y).cv_results_["mean_test_score"]
    assert not np.allclose(other, known, rtol=1e-9)


# The summary and the plot.


def test_the_summary_compares_quartiles_of_splined_columns_and_units_of_others():
    model, table = fitted(), fitted().summary()
    low, high = np.quantile(X["age"], [0.25, 0.75])
    pair = pd.DataFrame({"age": [low, high], "dose": 1.0, "sex": 0.0})
    assert table.loc["age", "shrunken coef"] == pytest.approx(np.diff(model.predict(pair))[0], abs=1e-8)
    pair = pd.DataFrame({"age": 50.0, "dose": 1.0, "sex": [0.0, 1.0]})
    assert table.loc["sex", "shrunken coef"] == pytest.approx(np.diff(model.predict(pair))[0], abs=1e-8)
    assert table.loc["sex", "contrast"] == "per unit"
    assert any("unpenalised" in note for note in table.notes)
    assert table.loc["age", "p nonlinear"] < 1e-4
    assert np.isnan(table.loc["sex", "p nonlinear"])
    assert "p nonlinear" in repr(table)
    assert "unpenalised, bias-corrected (95 % interval)" in repr(table)


def test_nonlinearity_p_values_are_uniform_under_linear_effects_whatever_is_chosen():
    ps = []
    for seed in range(14):
        table, y = sample(100, seed=100 + seed, curved=0.0)
        ps.append(CoxPHCV(l2s=[0.1], cv=2).fit(table, y).summary().loc["age", "p nonlinear"])
    ps = np.array(ps)
    assert 0.35 < ps.mean() < 0.65
    assert (ps < 0.1).mean() < 0.25


@pytest.mark.parametrize("given", ["nothing", "weights", "clusters"])
def test_standard_errors_are_those_of_plain_cox_with_the_same_columns(given):
    fields = {"weights": {"weight": np.full(len(X), 100.0)}, "clusters": {"clusters": np.arange(len(X)) // 6}}
    y = with_fields(Y, **fields.get(given, {}))
    found = CoxPHCV(splines=False, l2s=(0.1,)).fit(X, y).summary()
    wanted = CoxPH().fit(X, y).summary()
    np.testing.assert_allclose(found["se(coef)"], wanted["se(coef)"], rtol=1e-5)
    # The jackknife moves estimates by a small part of their standard errors.
    assert (abs(found["coef"] - wanted["coef"]) < 0.5 * wanted["se(coef)"]).all()


def test_copies_of_patients_do_not_narrow_the_intervals():
    rows = np.tile(np.arange(len(X)), 5)
    five = CoxPHCV(splines=False, l2s=(0.1,)).fit(X.iloc[rows], with_fields(Y[rows], id=rows))
    robust = CoxPH().fit(X, Y).summary(method="sandwich")
    np.testing.assert_allclose(five.summary()["se(coef)"], robust["se(coef)"], rtol=1e-5)
    assert (five.n_patients_, five.n_events_) == (len(X), Y["event"].sum())


def test_the_bias_correction_is_a_jackknife_of_ten_groups():
    features, y = noise(100, 6, seed=1)
    found = CoxPHCV(splines=False, l2s=(0.1,)).fit(features, y).summary()
    folds = folds_of(features, y, 10)
    parts = [CoxPH(tol=1e-12).fit(features[folds != k], y[folds != k]).coef_ for k in range(10)]
    wanted = 10 * CoxPH(tol=1e-12).fit(features, y).coef_ - 9 * np.mean(parts, axis=0)
    np.testing.assert_allclose(found["coef"], wanted, atol=1e-5)


def test_estimates_of_a_strong_effect_are_nearly_unbiased_and_its_intervals_cover():
    coefs, covered = [], []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(150, 10))
        time, left = rng.exponential(np.exp(-features[:, 0])), rng.exponential(2, 150)
        y = Surv.from_arrays(time <= left, np.minimum(time, left))
        row = CoxPHCV(splines=False, l2s=(0.1,), cv=2).fit(features, y).summary().iloc[0]
        coefs.append(row[["coef", "shrunken coef"]])
        covered.append(row["coef lower 95%"] < 1 < row["coef upper 95%"])
    mean, shrunken = np.mean(coefs, axis=0)
    # The mean of 16 estimates has a standard error of 0.04.
    assert abs(mean - 1) < 0.08
    assert shrunken < 0.9
    assert np.mean(covered) > 0.85


def test_more_columns_than_events_have_no_intervals_and_the_notes_say_why():
    features, y = noise(40, 60, seed=0)
    table = CoxPHCV(splines=False).fit(features, y).summary()
    assert table["coef"].isna().all()
    assert table["shrunken coef"].notna().all()
    text = " ".join(table.notes)
    assert "No intervals" in text
    assert "fewer than 2 for each of 60 columns" in text
    assert "fewer than 2" not in " ".join(fitted().summary().notes)


def test_weights_that_sum_to_one_leave_numbers_of_events_and_knots_as_they_are():
    shares = CoxPHCV(**FEW).fit(X, Y, np.full(len(X), 1 / len(X)))
    assert shares.n_events_ == fitted(**FEW).n_events_ == Y["event"].sum()
    assert shares.n_patients_ == len(X)
    for name, knots in fitted(**FEW).knots_.items():
        np.testing.assert_allclose(shares.knots_[name], knots)
    np.testing.assert_allclose(shares.predict(X), fitted(**FEW).predict(X), atol=1e-6)


def test_the_forest_plot_names_contrasts_and_shows_intervals_and_shrunken_ratios():
    table = fitted().summary()
    ax = table.forest_plot()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [f"{name}, {contrast}" for name, contrast in table["contrast"].items()]
    drawn = {line.get_label(): line.get_xdata() for line in ax.get_lines()}
    np.testing.assert_allclose(drawn["unpenalised, bias-corrected"], table["exp(coef)"])
    np.testing.assert_allclose(drawn["this model, shrunken"], table["shrunken exp(coef)"])
    assert ax.get_xlabel() == "hazard ratio (95 % interval)\nof the second value to the first, or as named"


@pytest.mark.parametrize("wide", [False, True])
def test_nothing_in_the_forest_plot_overlaps_or_is_cut_off(wide):
    rng = np.random.default_rng(0)
    columns = 30 if wide else 3
    names = [f"a column with a long name, number {j}" for j in range(columns)]
    features = pd.DataFrame(rng.normal(size=(60, columns)), columns=names)
    time = rng.exponential(np.exp(-features.iloc[:, 0]))
    table = CoxPHCV(splines=False).fit(features, Surv.from_arrays(rng.random(60) < 0.4, time)).summary()
    # There are no intervals with more columns than events.
    assert table["exp(coef)"].isna().all() == wide
    ax = table.forest_plot()
    ax.figure.canvas.draw()
    legend, frame = ax.get_legend(), ax.get_window_extent()
    assert (legend is None) == wide
    texts = [ax.xaxis.label, *ax.get_yticklabels(), *ax.get_xticklabels()]
    boxes = [text.get_window_extent() for text in texts] + ([legend.get_window_extent()] if legend else [])
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])
        assert not box.overlaps(frame)
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= ax.figure.bbox.x1
        assert box.y1 <= ax.figure.bbox.y1
    assert len(ax.get_xticks()) >= 3
    marks = np.concatenate([line.get_xydata() for line in ax.get_lines() if line.get_marker() in "so"])
    marks = ax.transData.transform(marks[np.isfinite(marks).all(axis=1)])
    assert ((marks > frame.min) & (marks < frame.max)).all()
    # The marks of one row do not hide each other.
    assert len(np.unique(marks[:, 1].round())) == len(marks)


def test_the_contrast_of_a_level_is_against_its_reference():
    features = X.assign(sex=np.where(X["sex"] > 0, "m", "f"), site=np.arange(len(X)) % 3).astype(
        {"site": "category"}
    )
    alone = CoxPHCV(**FEW).fit(features, Y)
    piped = make_pipeline(TableEncoder(), CoxPHCV(**FEW)).fit(features, Y)
    for table in (alone.summary(), drosurv.summary(piped)):
        levels = table["contrast"].drop(["age", "dose"])
        assert levels.str.startswith("against ").all()
        assert len(levels) == 3


def test_partial_effects_are_differences_of_predictions_from_the_median():
    model = fitted()
    effect = model.partial_effect("age")
    others = pd.DataFrame({"age": effect.index, "dose": 1.0, "sex": 0.0})
    at_median = pd.DataFrame({"age": [X["age"].median()], "dose": 1.0, "sex": 0.0})
    wanted = model.predict(others) - model.predict(at_median)
    np.testing.assert_allclose(effect["shrunken coef"], wanted, atol=1e-9)
    assert effect["se(coef)"].min() < 0.02
    low, high = np.quantile(X["age"], [0.25, 0.75])
    quartiles = model.partial_effect("age", [low, high])["coef"]
    assert model.summary().loc["age", "coef"] == pytest.approx(quartiles[high] - quartiles[low])
    with pytest.raises(ArgumentError, match="column must be one of"):
        model.partial_effect("weight")


def test_the_plot_shows_curve_band_and_knots():
    ax = fitted().plot_partial_effect("age")
    curve, unpenalised, _, knots = ax.get_lines()
    effect = fitted().partial_effect(0)
    np.testing.assert_allclose(curve.get_ydata(), effect["shrunken exp(coef)"])
    np.testing.assert_allclose(unpenalised.get_ydata(), effect["exp(coef)"])
    np.testing.assert_allclose(knots.get_xdata(), fitted().knots_["age"])
    assert len(ax.collections) == 1
    assert ax.get_xlabel() == "age"


# Bad input.


def test_a_column_may_have_the_name_of_a_spline():
    table = X.rename(columns={"dose": "age'"})
    model = CoxPHCV(splines=4, **FEW).fit(table, Y)
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == 7
    assert names[:4] == ["age", "age''", "age'''", "age'"]
    np.testing.assert_allclose(model.predict(table), fitted(splines=4, **FEW).predict(X), atol=1e-9)


def test_constant_and_nearly_constant_columns_do_no_harm():
    table = X.assign(same=7.0, rare=(np.arange(len(X)) == 5) * 1.0, noise=1.0 + 1e-15 * np.arange(len(X)))
    model = CoxPHCV(**FEW).fit(table, Y)
    assert model.coef_[model.get_feature_names_out() == "same"] == 0.0
    assert np.isfinite(model.predict(table)).all()
    assert model.score(table, Y) > fitted().score(X, Y) - 0.03


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_values_of_an_array_are_an_error_in_prediction(bad):
    values = X.to_numpy().copy()
    values[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        CoxPHCV(l2s=[0.1]).fit(X.to_numpy(), Y).predict(values)


def test_few_distinct_values_stay_linear():
    table = X.assign(grade=np.arange(len(X)) % 5.0)
    model = CoxPHCV(splines=6, l2s=[0.01]).fit(table, Y)
    assert len(model.knots_["grade"]) == 0
    assert len(model.knots_["age"]) == 6
    only = CoxPHCV(l2s=[0.01]).fit(table[["sex", "grade"]], Y)
    assert set(only.cv_results_["knots"]) == {0}


def test_separated_data_get_a_finite_fit_by_the_penalty():
    table = pd.DataFrame({"x": np.arange(60.0)})
    y = Surv.from_arrays(np.ones(60, dtype=bool), 61.0 - np.arange(60.0))
    model = CoxPHCV().fit(table, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(table, y) == 1.0
    assert np.isnan(model.summary()["p nonlinear"]).all()


def test_more_columns_than_events_are_fitted():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 60))
    y = Surv.from_arrays(np.arange(40) % 4 == 0, rng.exponential(size=40))
    model = CoxPHCV(**FEW).fit(wide, y)
    assert np.isfinite(model.predict(wide)).all()
    assert len(model.summary()) == 60


def test_fewer_events_than_folds_take_fewer_folds_and_one_event_is_an_error():
    event = np.zeros(len(X), dtype=bool)
    event[:3] = True
    y = Surv.from_arrays(event, Y["time"])
    with pytest.warns(UserWarning, match="3 folds are used instead of cv=5"):
        model = CoxPHCV().fit(X, y)
    assert "split2_test_score" in model.cv_results_
    assert "split3_test_score" not in model.cv_results_
    event[1:3] = False
    with pytest.raises(ArgumentError, match="one patient with an event"):
        CoxPHCV().fit(X, Surv.from_arrays(event, Y["time"]))


# With the rest of the library.


def test_effects_are_linear_beyond_the_outer_knots_and_constant_beyond_the_range_of_training():
    model = fitted()
    last, most = model.knots_["age"][-1], X["age"].max()
    coef = model.partial_effect("age", np.linspace(last, most, 4))["coef"]
    np.testing.assert_allclose(np.diff(coef), np.diff(coef).mean(), rtol=1e-6)
    assert np.ptp(model.partial_effect("age", [most, 500.0])["coef"]) == 0.0
    row = pd.DataFrame({"age": [most, 500.0], "dose": 1.0, "sex": 0.0})
    assert np.ptp(model.predict(row)) == 0.0


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler(), TableEncoder()])
def test_contrasts_are_on_the_units_before_scaling(scaler):
    model = make_pipeline(scaler, CoxPHCV(splines=3, l2s=[0.01], cv=2)).fit(X, Y)
    found = drosurv.summary(model)
    low, high = np.quantile(X["age"], [0.25, 0.75])
    assert found["contrast"]["age"] == f"{low:.4g} to {high:.4g}"
