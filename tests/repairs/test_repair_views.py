import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from drosurv import CoxPH, CoxPHCV, RepairedCox, Surv, repair
from drosurv.datasets import load_nwtco, make_hidden_minority
from drosurv.patients.draws import draw_folds, row_order
from drosurv.patients.target import parse_target
from drosurv.predictions import as_predictions
from drosurv.repairs.effect_columns import EffectColumns
from drosurv.repairs.repair import HeldOutNumber
from drosurv.repairs.repair_search import STRENGTHS, VERSIONS, Correction
from drosurv.repairs.repair_views import (
    NEEDED_GAIN,
    detectable,
    hazard_ratio_table,
    in_words,
    linear_effects,
    status,
)
from drosurv.tables import TableEncoder

mpl.use("Agg")

# Rules of one condition, which is all that these tests need.
SIMPLE = {"max_conditions": 1, "folds": 3, "random_state": 0}


@pytest.fixture(scope="module")
def planted():
    model, X, y = hidden()
    return model, SimpleNamespace(X=X, y=y)


def test_the_interval_of_a_mean_is_students():
    gains = np.random.default_rng(0).normal(size=30)
    found = HeldOutNumber.mean(gains, 0.9)
    expected = stats.ttest_1samp(gains, 0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert np.isnan(HeldOutNumber.mean(gains[:1], 0.9).value)


def level_shift(n=3000, seed=0, ratio=3.0, everyone=1.0):
    """A model of the patients without the shift, and patients of whom a group has another hazard."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]).assign(flag=rng.random(n) < 0.25)
    X["flag"] = X["flag"].astype(float)
    hazard = everyone * np.exp(0.5 * X["a"]) * np.where(X["flag"] == 1, ratio, 1.0)
    time, end = rng.exponential(size=n) / hazard, rng.exponential(size=n)
    return X, Surv.from_arrays(time <= end, np.minimum(time, end))


@cache
def wilms():
    data = load_nwtco()
    return RepairedCox(CoxPH(), max_repairs=1, **SIMPLE).fit(data.X, data.y), data.X, data.y


@cache
def hidden():
    data = make_hidden_minority(n_samples=1000, n_features=6, minority=0.25, random_state=0)
    return RepairedCox(CoxPH(), **SIMPLE).fit(data.X, data.y), data.X, data.y


@cache
def frozen_everyone():
    return frozen_shift(1.0, everyone=2.0)


@cache
def frozen_group():
    return frozen_shift(1.6)


@cache
def frozen_level():
    return frozen_shift(1.6, random_state=5)


@cache
def frozen_half():
    """For everyone, and half a correction of the effects of a group."""
    return frozen_shift(1.75, random_state=6)


def frozen_shift(ratio, everyone=1.0, random_state=0):
    model = CoxPH().fit(*level_shift(ratio=1.0, seed=1))
    X, y = level_shift(n=1200, ratio=ratio, seed=4, everyone=everyone)
    return repair(model, X, y, frozen=True, max_conditions=1, random_state=random_state), X, y


def held_out(model, X, y, *, frozen):
    """Events of patients, and those that models predict which were not fitted on them, each (n,).

    A frozen model is judged as it is: a step of its curve from S to S' expects 1 - S'/S events of a patient at risk.
    """
    target = parse_target(y)
    if frozen:
        times = model.base_.unique_times_
        survival = model.base_.predict_survival_function(X, times=times)
        at_risk = times <= target.time[:, None]
        expected = (at_risk * (1 - survival / np.column_stack([np.ones(len(X)), survival[:, :-1]]))).sum(
            axis=1
        )
        return target.event & (
            target.time <= as_predictions(model.base_, X, len(X)).curves.known_until
        ), expected
    rng, order = np.random.default_rng(model.random_state), row_order(target, X)
    folds = draw_folds(len(X), model.folds, rng, target.event, order=order)
    hazard = np.empty(len(X))
    for fold in range(model.folds):
        out = folds == fold
        fitted = clone(model.base_).fit(X[~out], y[~out])
        curves = fitted.predict_cumulative_hazard_function(X[out])
        hazard[out] = [curve(time) for curve, time in zip(curves, target.time[out], strict=True)]
    return target.event, hazard


CASES = (wilms, hidden, frozen_everyone, frozen_group, frozen_level, frozen_half)


@pytest.mark.parametrize("case", CASES)
def test_every_number_of_a_sentence_is_that_of_the_models_predictions(case):
    """Counts, predicted events and hazard ratios are read from the sentence and computed anew from predictions."""
    model, X, y = case()
    assert model.repairs_
    event, hazard = held_out(model, X, y, frozen=case.__name__.startswith("frozen"))
    first, last = model.repairs_[0], model.repairs_[-1]
    before, after = hazard, hazard * np.exp(model.held_out_)
    assert first.predicted == pytest.approx(before[first.holds(X)].sum(), rel=1e-3)
    assert last.predicted_after == pytest.approx(after[last.holds(X)].sum(), rel=1e-3)
    for found, words in zip(model.repairs_, model.in_words(), strict=True):
        inside = found.holds(X)
        whom = (
            f"all {len(X):,} patients"
            if found.rule is None
            else f"the {inside.sum():,} patients with {found.rule}"
        )
        who = "the model" if case.__name__.startswith("frozen") else "models fitted without these patients"
        assert words.startswith(
            f"For {whom}, {event[inside].sum():,.0f} events were observed; {who} "
            f"predicted {found.predicted:.1f} without the repair and {found.predicted_after:.1f} with it."
        )
        multiplied = re.findall(r"The repair multiplies their hazards by ([0-9.]+)(\.|: half of)", words)
        assert bool(multiplied) == (found.version == "level" and case.__name__.startswith("frozen"))
        if multiplied and len(model.repairs_) == 1:
            factors = np.exp(model.predict(X) - model.base_.predict(X))[inside]
            np.testing.assert_allclose(factors, float(multiplied[0][0]), atol=0.005)
            assert (multiplied[0][1] == ".") == (found.strength == 1)
        for name, there, elsewhere, unit in re.findall(
            r"of '([^']+)' is ([0-9.]+) there and ([0-9.]+) elsewhere(?: \(per ([0-9.]+)\))?", words
        ):
            step = X[name].max() - X[name].min() if not unit else float(unit)
            low = X[name].min() if not unit else X[name].clip(*X[name].quantile([0.01, 0.99])).mean()
            ratio = np.exp(
                model.predict(X.assign(**{name: low + step})) - model.predict(X.assign(**{name: low}))
            )
            assert float(there) == pytest.approx(np.median(ratio[inside]), rel=0.01)
            assert float(elsewhere) == pytest.approx(np.median(ratio[~inside]), rel=0.01)
        changes_only_effects = found.version != "level" and found.before.low <= 1 <= found.before.high
        assert ("was right within chance" in words) == changes_only_effects
        checked = model.checked_[model.repairs_.index(found)]
        assert f"Checked on the {checked.sum():,} patients" in words
        if len(model.repairs_) > 1:
            # What was before is another repair, and not the model.
            continue
        ratios = [event[checked].sum() / predicted[checked].sum() for predicted in (before, after)]
        assert re.search(
            rf"had {ratios[0]:.2f} times the predicted events, after the repair {ratios[1]:.2f} times", words
        )
        r = model.held_out_[checked]
        gains = event[checked] * r - np.expm1(r) * hazard[checked]
        assert f"the gain in log likelihood per patient is {gains.mean():.3f}" in words


def test_sentences_of_every_kind_of_repair_are_checked():
    repairs = [one for case in CASES for one in case()[0].repairs_]
    assert {one.version for one in repairs} == {version for kind in VERSIONS.values() for version in kind}
    assert {one.strength for one in repairs} == {*STRENGTHS}
    assert {one.version for one in repairs if one.rule is None} == {"level"}
    assert "level" in {one.version for one in repairs if one.rule is not None}


def test_a_repair_of_a_frozen_model_that_changes_other_patients_says_so():
    one = hidden()[0].repairs_[0]
    said = "The predictions of all other patients are corrected too: their gain is 0.012 (−0.001 to 0.025)."
    full = replace(one, version="full", gain_outside=HeldOutNumber(0.012, -0.001, 0.025))
    assert said in in_words(full, frozen=True)
    assert "other patients" not in in_words(replace(full, version="own"), frozen=True)
    without_slope = in_words(replace(full, slope_before=np.nan, slope_after=1.04), frozen=True)
    assert "Their calibration slope is 1.04 after the repair" in without_slope
    assert "other patients" not in in_words(replace(full, rule=None), frozen=True)


def test_the_sentence_about_wilms_tumours_names_the_ratio_of_the_table():
    """'histol' multiplies the hazard of infants by more than ten, that of others by less than four."""
    model, *_ = wilms()
    (change,) = [change for change in model.repairs_[0].changes if change.label == "histol"]
    assert change.inside > 10
    assert change.outside < 4
    rows = {(row["who"], row["effect"]): row["hazard_ratio"] for row in model.hazard_ratios().rows}
    assert change.inside == pytest.approx(rows[str(model.repairs_[0].rule), "histol"], rel=1e-6)


def test_a_rule_on_one_linear_column_names_a_nonlinear_effect_as_possible(planted):
    model, data = planted
    (words,) = model.in_words()
    assert "A nonlinear effect of 'x5', which is linear in the base model, would look the same" in words
    base = CoxPHCV(splines=4, l2s=[0.01], random_state=0)
    curved = RepairedCox(base, max_repairs=1, **SIMPLE).fit(data.X, data.y)
    assert curved.repairs_
    assert all("nonlinear" not in words for words in curved.in_words())


def test_what_would_have_been_found_is_what_gains_enough():
    for expected in (12.0, 150.0):
        for rho in detectable(expected):
            if rho > 0:
                assert expected * (rho * np.log(rho) - rho + 1) == pytest.approx(NEEDED_GAIN, rel=1e-6)
    low, high = detectable(150.0)
    assert 0 < low < 1 < high < 2
    assert detectable(5.0)[0] == 0
    assert detectable(0.0) == (0, np.inf)


def test_a_shortfall_that_rounds_to_nothing_is_not_spoken_of():
    assert 0 < detectable(0.1 * 318)[0] < 0.05
    assert status([], 318, 20).endswith(
        "at least 2.6 times as many events as predicted would probably have been found."
    )
    assert "at least 1.6 times as many events as predicted (or at most 0.5 times) would" in status(
        [], 1600, 20
    )
    # Nor is an excess that rounds to one.
    assert "at least 1.03 times as many events as predicted (or at most 0.97 times) would" in status(
        [], 600_000, 20
    )


def test_frame_holds_every_number(planted):
    model, _ = planted
    (row,) = model.to_frame().to_dict("records")
    found = model.repairs_[0]
    assert row["who"] == str(found.rule)
    assert row["before"] == found.before.value
    assert row["gain_outside_low"] == found.gain_outside.low
    null = make_hidden_minority(n_samples=100, random_state=0)
    assert len(RepairedCox(CoxPH()).fit(null.X, null.y).to_frame()) == 0


def test_hazard_ratios_are_those_of_the_predictions(planted):
    model, data = planted
    table = model.hazard_ratios()
    assert {row["who"] for row in table.rows} == {"everyone", str(model.repairs_[0].rule)}
    there = {row["effect"]: row["hazard_ratio"] for row in table.rows if row["who"] != "everyone"}
    everyone = {row["effect"]: row["hazard_ratio"] for row in table.rows if row["who"] == "everyone"}
    # A step of one feature, within the range where repairs are linear, inside the group and outside.
    for x5, ratios in ((2.0, {**everyone, **there}), (0.0, everyone)):
        patients = pd.DataFrame(np.zeros((2, 6)), columns=data.X.columns).assign(x5=x5)
        patients.loc[1, "x1"] = 0.5
        low, high = model.predict(patients)
        assert np.exp(2 * (high - low)) == pytest.approx(ratios["x1"], rel=1e-6)
    assert there["x1"] < 1 < everyone["x1"]


@pytest.mark.parametrize("base", [make_pipeline(TableEncoder(), CoxPH()), CoxPH()])
def test_hazard_ratios_of_a_table_are_per_unit_of_its_columns(base):
    data = make_hidden_minority(n_samples=500, n_features=6, minority=0.25, random_state=0)
    X = data.X.assign(x1=10 * data.X["x1"], sex=np.where(data.X["x4"] > 0.3, "f", "m")).drop(columns="x4")
    model = RepairedCox(base, max_repairs=1, **SIMPLE).fit(X, data.y)
    rows = model.hazard_ratios().rows
    everyone = {row["effect"]: row["hazard_ratio"] for row in rows if row["who"] == "everyone"}
    assert "sex = f" in everyone
    assert "sex = m" not in everyone
    assert "sex=f" not in everyone
    two = X.iloc[[0, 0]].assign(x1=[0.0, 5.0], x5=0.0)
    low, high = model.predict(two)
    assert np.exp((high - low) / 5) == pytest.approx(everyone["x1"], rel=1e-6)
    other = X.iloc[[0, 0]].assign(x5=0.0, sex=["m", "f"])
    m, f = model.predict(other)
    assert np.exp(f - m) == pytest.approx(everyone["sex = f"], rel=1e-6)


def test_columns_of_an_array_are_called_as_in_rules():
    data = make_hidden_minority(n_samples=200, n_features=5, random_state=0)
    scaled = make_pipeline(TableEncoder(), CoxPH()).fit(data.X.to_numpy(), data.y)
    found, plain = linear_effects(scaled), linear_effects(CoxPH().fit(data.X.to_numpy(), data.y))
    assert list(found) == list(plain) == ["x0", "x1", "x2", "x3", "x4"]
    assert found == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_effects_of_truths_and_of_codes_are_those_of_the_encoders_columns(planted, share):
    model, data = planted
    rng, n = np.random.default_rng(0), len(data.y)
    flag, stage = rng.random(n) < share, rng.integers(1, 4, n)
    X = data.X[["x1"]].assign(sex=rng.choice(["f", "m"], n), flag=flag, stage=stage)
    base = make_pipeline(TableEncoder(categorical=["stage"]), CoxPH()).fit(X, data.y)
    columns = EffectColumns.learn(X, base.predict(X))
    own = np.array([0.1, 0.0, 0.0, 0.0, 0.2, 0.3])
    assert [column.name for column in columns.columns[-2:]] == ["flag", "stage"]
    found = replace(model.repairs_[0], correction=Correction(np.zeros(6), own), strength=1.0)
    rows = hazard_ratio_table(base, columns, [found]).rows
    everyone, there = (
        {row["effect"]: row["hazard_ratio"] for row in rows if (row["who"] == "everyone") == whole}
        for whole in (True, False)
    )
    assert there["flag = True"] / everyone["flag = True"] == pytest.approx(np.exp(0.4))
    assert {"stage", "flag = True"} < set(there)
    assert "flag" not in there


def test_the_figure_shows_before_and_after(planted):
    model, _ = planted
    ax = model.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(model.repairs_[0].rule)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["before", "after the repair"]
    mpl.pyplot.close("all")


def test_a_repair_of_effects_that_predicts_a_worse_total_says_what_it_improves():
    model, *_ = wilms()
    found = model.repairs_[0]
    assert not found.moves_away
    worse = replace(found, events=60.0, predicted=53.0, predicted_after=47.3)
    assert worse.moves_away
    assert (
        "improves the predictions of single patients, not their total: 60 events were observed"
        in in_words(worse, frozen=False)
    )


def test_the_total_of_events_of_wilms_tumours_moves_towards_the_observed_one_with_the_default_model():
    data = load_nwtco()
    model = RepairedCox(CoxPHCV(), folds=3, max_conditions=1, max_repairs=1, random_state=3).fit(
        data.X, data.y
    )
    assert model.repairs_
    for found in model.repairs_:
        assert abs(found.events - found.predicted_after) < abs(found.events - found.predicted)
