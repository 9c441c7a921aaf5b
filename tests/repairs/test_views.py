from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline

from drosurv import CoxPH, RepairedCox
from drosurv.datasets import make_hidden_minority
from drosurv.insight import Estimate
from drosurv.repairs.corrections import Correction
from drosurv.repairs.evidence import EffectColumns
from drosurv.repairs.repair import calibration_slope
from drosurv.repairs.views import (
    NEEDED_GAIN,
    changes,
    detectable,
    hazard_ratio_table,
    in_words,
    linear_effects,
    status,
)
from drosurv.tables import TableEncoder

mpl.use("Agg")


@pytest.fixture(scope="module")
def planted():
    data = make_hidden_minority(n_samples=1500, n_features=6, minority=0.25, random_state=0)
    return RepairedCox(random_state=0).fit(data.X, data.y), data


def test_ratio_has_the_exact_poisson_interval():
    found = Estimate.ratio(12, 8.0, 0.95)
    assert found.value == 1.5
    # The ends are the expectations under which so many events, or so few, have probability 2.5 %.
    assert stats.poisson.sf(11, found.low * 8) == pytest.approx(0.025)
    assert stats.poisson.cdf(12, found.high * 8) == pytest.approx(0.025)
    assert Estimate.ratio(0, 3.0, 0.95).low == 0
    assert np.isnan(Estimate.ratio(0, 0.0, 0.95).value)


def test_slope_is_one_for_a_right_model_and_what_was_planted_for_another():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=20_000)
    time = rng.exponential(size=20_000) / np.exp(0.4 * risk)
    events, follow = (time <= 1).astype(float), np.minimum(time, 1)
    assert calibration_slope(events, np.exp(risk) * follow, risk) == pytest.approx(0.4, abs=0.05)
    assert calibration_slope(events, np.exp(0.4 * risk) * follow, 0.4 * risk) == pytest.approx(1, abs=0.12)
    assert np.isnan(calibration_slope(events, follow, np.zeros(20_000)))


def test_words_say_who_what_was_wrong_and_what_the_repair_did(planted):
    model, _ = planted
    (words,) = model.in_words()
    found = model.repairs_[0]
    assert words.startswith(
        f"For the {found.patients} patients with {found.rule}, {found.before.value:.1f} times as"
    )
    assert f"after the repair {found.after.value:.1f} times ({found.after.low:.1f} to" in words
    assert "hazard ratio of 'x1' is 0." in words
    assert f"Measured on {found.checked} patients not used for it" in words
    assert model.to_markdown().startswith(f"The model was corrected for {found.rule}.")


def test_a_group_whose_level_was_right_is_not_told_a_ratio_of_one(planted):
    model, *_ = planted
    right = replace(model.repairs_[0], before=Estimate(1.02, 0.9, 1.1), after=Estimate(0.98, 0.9, 1.1))
    words = in_words(right, model._columns)
    assert (
        "about as many had the event as predicted (after the repair 1.0 times, 0.9 to 1.1), but features"
        in words
    )
    assert "Where the model predicted one unit more of log risk" in words
    # Of a level there is nothing else to tell.
    assert "1.0 times as many had" in in_words(replace(right, version="level"), model._columns)


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
    assert len(RepairedCox().fit(null.X, null.y).to_frame()) == 0


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
    data = make_hidden_minority(n_samples=1500, n_features=6, minority=0.25, random_state=0)
    X = data.X.assign(x1=10 * data.X["x1"], sex=np.where(data.X["x4"] > 0.3, "f", "m")).drop(columns="x4")
    model = RepairedCox(base, random_state=0).fit(X, data.y)
    rows = model.hazard_ratios().rows
    everyone = {row["effect"]: row["hazard_ratio"] for row in rows if row["who"] == "everyone"}
    assert "sex is f" in everyone
    assert "sex is m" not in everyone
    assert "sex=f" not in everyone
    two = X.iloc[[0, 0]].assign(x1=[0.0, 5.0], x5=0.0)
    low, high = model.predict(two)
    assert np.exp((high - low) / 5) == pytest.approx(everyone["x1"], rel=1e-6)
    other = X.iloc[[0, 0]].assign(x5=0.0, sex=["m", "f"])
    m, f = model.predict(other)
    assert np.exp(f - m) == pytest.approx(everyone["sex is f"], rel=1e-6)


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
    level = "flag is True" if share < 0.5 else "flag is False"
    change = there[level] / everyone[level]
    assert (change if share < 0.5 else 1 / change) == pytest.approx(np.exp(0.4))
    assert {"stage", level} < set(there)
    assert "flag" not in there


def test_a_column_of_two_values_is_spoken_of_by_their_difference(planted):
    model, _ = planted
    table = pd.DataFrame({"rare": np.arange(200) < 10, "age": np.linspace(40, 80, 200)}).astype(float)
    columns = EffectColumns.learn(table, np.linspace(-1, 1, 200))
    own = np.array([0.0, 0.0, 0.4, -0.3])
    correction = Correction(np.zeros(4), own)
    (no, yes) = correction.of(columns.of(table.iloc[[150, 150]].assign(rare=[0, 1]), np.zeros(2)), True)
    told = changes(replace(model.repairs_[0], correction=correction, strength=1.0), columns)
    assert told == [
        f"'rare' is {np.exp(yes - no):.2f} times the others'",
        f"'age' is {np.exp(-0.3):.2f} times the others' per sd",
    ]


def test_a_model_that_is_not_linear_says_so(planted):
    _, data = planted
    model = RepairedCox(CoxPH(network="mlp", max_iter=5, random_state=0), max_repairs=0).fit(data.X, data.y)
    with pytest.raises(ValueError, match="has no coefficients"):
        model.hazard_ratios()


def test_the_figure_shows_before_and_after(planted):
    model, _ = planted
    ax = model.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(model.repairs_[0].rule)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["before", "after the repair"]
    mpl.pyplot.close("all")
