import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from drosurv import Surv
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import CoxPH
from drosurv.repairs.insight import Certificate, SubgroupCurve, certify

mpl.use("Agg")


def certificate(losses, bound=1.0, confidence=0.95):
    none = np.empty(0)
    return Certificate(
        SubgroupCurve(none, none, none, none), np.sort(losses)[::-1], bound, 1.0, confidence, "worst_case"
    )


def true_survival(data, horizon):
    return np.exp(-horizon * np.exp(data.truth["log_risk"].to_numpy()))


def test_guarantee_is_the_cvar_after_the_best_losses_became_the_largest():
    losses = np.random.default_rng(0).random(400) ** 2
    found = certificate(losses)
    assert found.margin == pytest.approx(np.sqrt(np.log(20) / 800))
    # On a fine grid of equal masses, replace the best share epsilon by the bound and average the worst share.
    fine = np.sort(np.repeat(losses, 500))
    fine[: round(found.margin * len(fine))] = 1.0
    fine = np.sort(fine)[::-1]
    for alpha in (0.02, 0.1, 0.5, 1.0):
        assert found.guarantee(alpha) == pytest.approx(fine[: round(alpha * len(fine))].mean(), abs=1e-4)


def test_guarantee_holds_for_every_alpha_at_once_in_nearly_all_samples():
    rng = np.random.default_rng(1)
    alphas = np.linspace(0.01, 1, 100)
    truth = 1 - alphas / 2  # CVaR of a uniform loss
    broken = sum(
        (certificate(rng.random(200), confidence=0.8).guarantee(alphas) < truth).any() for _ in range(300)
    )
    assert broken <= 0.2 * 300
    # The bound is not vacuous: it stays within two margins of the truth at alpha = 1.
    assert certificate(rng.random(200)).guarantee(1.0) < 0.5 + 2 * certificate(rng.random(200)).margin


def test_guarantee_falls_with_alpha_and_smallest_alpha_is_where_it_meets_the_tolerance():
    found = certificate(np.random.default_rng(2).random(300))
    curve = found.guarantee(np.linspace(0.001, 1, 1000))
    assert (np.diff(curve) <= 1e-12).all()
    smallest = found.smallest_alpha(0.7)
    assert found.guarantee(smallest) == pytest.approx(0.7, abs=1e-6)
    assert found.smallest_alpha(float(found.guarantee(1.0)) - 1e-6) is None


@pytest.fixture(scope="module")
def plain():
    """Predictions right for the majority and wrong for the minority, whose group is known to the test."""
    data = make_hidden_minority(n_samples=2000, random_state=0)
    majority_risk = data.X.to_numpy()[:, :4] @ [0.8, 0.5, 0.3, 0.0]
    times = np.array([0.25, 0.5])
    survival = np.exp(-times * np.exp(majority_risk)[:, None])
    return data, (times, survival)


@pytest.fixture(scope="module")
def found(plain):
    data, model = plain
    return certify(model, data.X, data.y, horizon=0.5, alphas=[0.1, 0.3, 0.6, 1.0])


def test_estimate_at_alpha_one_is_the_mean_and_rises_for_smaller_groups(found):
    frame = found.to_frame()
    assert frame["estimate"].iloc[-1] == pytest.approx(found.losses.mean())
    assert frame["estimate"].iloc[0] > frame["estimate"].iloc[-1] + 0.03
    assert (frame["low"] <= frame["estimate"]).all()
    assert (frame["estimate"] <= frame["high"]).all()
    assert (frame["estimate"] <= frame["guarantee"]).all()


def test_band_covers_the_true_mean_loss_and_the_estimate_comes_near_the_true_worst_subgroup(plain, found):
    data, model = plain
    alive, survival = true_survival(data, 0.5), model[1][:, 1]
    expected = np.sort(alive * (1 - survival) ** 2 + (1 - alive) * survival**2)[::-1]
    worst, mean = expected[: int(0.3 * len(expected))].mean(), expected.mean()
    assert found.curve.low[-1] <= mean <= found.curve.high[-1]
    assert mean + 0.5 * (worst - mean) < found.curve.estimate[1] < worst + 0.03


def test_the_estimate_is_the_mean_loss_of_known_patients_when_one_flag_tells_them_all():
    rng = np.random.default_rng(0)
    flag = rng.random(3000) < 0.3
    y = Surv.from_arrays(np.ones(3000, bool), np.where(rng.random(3000) < np.where(flag, 0.9, 0.2), 1.0, 3.0))
    model = (np.array([2.0]), np.full((3000, 1), 0.8))
    result = certify(model, flag[:, None].astype(float), y, horizon=2.0, alphas=[0.3])
    truth = 0.9 * 0.8**2 + 0.1 * 0.2**2
    assert result.curve.low[0] <= truth <= result.curve.high[0]
    assert result.curve.high[0] - result.curve.low[0] < 0.06


def test_categories_missing_values_and_a_worst_case_for_the_censored_are_accepted(plain, found):
    data, model = plain
    table = data.X[["x1", "x5"]].assign(site=pd.Series(np.where(data.X["x5"] > 0, "north", "south")))
    table.loc[::7, "x1"] = np.nan
    other = certify(model, data.X, data.y, horizon=0.5, features=table, censoring="worst_case")
    assert other.bound == 1.0
    assert other.losses.mean() > found.losses.mean()


def test_same_seed_gives_the_same_certificate_and_the_figure_shows_both_curves(plain, found):
    data, model = plain
    again = certify(model, data.X, data.y, horizon=0.5, alphas=[0.1, 0.3, 0.6, 1.0])
    pd.testing.assert_frame_equal(found.to_frame(), again.to_frame())
    drawn = found.plot(tolerance=0.5, time_unit="days")
    assert drawn.get_ylabel().endswith(" days")
    labels = drawn.get_legend_handles_labels()[1]
    assert any("estimate" in label for label in labels)
    assert any("guarantee" in label for label in labels)
    mpl.pyplot.close("all")


@pytest.fixture(scope="module")
def late():
    """Few are followed to the horizon, which gives them large censoring weights."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2))
    time, end = rng.exponential(size=400) / np.exp(x[:, 0]), rng.exponential(0.7, 400)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    horizon = float(np.sort(y["time"])[-6])
    with pytest.warns(UserWarning, match="only 5 of the 400 patients are still observed at the horizon"):
        return certify((np.array([horizon]), np.exp(-horizon * np.exp(x[:, :1]))), x, y, horizon=horizon)


def test_no_number_of_a_certificate_is_outside_the_possible_and_all_fall_with_alpha(late, found):
    for one in (late, found):
        frame = one.to_frame()
        for column in ("estimate", "low", "high", "guarantee"):
            assert frame[column].dtype == np.float64
            assert frame[column].between(0, 1).all()
            assert (frame[column].diff().dropna() <= 1e-12).all()
    assert late.bound > 1


def test_what_cannot_be_guaranteed_is_said_in_words(late, found):
    assert (late.to_frame()["guarantee"] == 1.0).all()
    assert "nothing can be guaranteed for any group" in late.summary()
    smallest = found.smallest_alpha(1 - 1e-6)
    assert f"groups of less than {100 * smallest:.1f} %" in found.summary()
    assert found.guarantee(0.9 * smallest) == 1.0
    assert found.guarantee(1.1 * smallest) < 1.0


def test_no_word_promises_more_than_the_guarantee(found):
    everyone, smallest = float(found.guarantee(1.0)), found.smallest_alpha(0.5)
    said = found.summary(tolerance=0.5)
    (at_most,) = re.findall(r"at most ([0-9.]+);", said)
    (at_least,) = re.findall(r"every group of at least ([0-9.]+) % of the patients stays under 0.5", said)
    assert everyone <= float(at_most) < everyone + 0.0011
    assert smallest <= float(at_least) / 100 < smallest + 0.0011
    shown = [row["guarantee"] for row in found.to_table().rows]
    assert (np.array(shown) >= found.guarantee([row["alpha"] for row in found.to_table().rows])).all()
    assert "no group size is guaranteed to stay under 0" in found.summary(tolerance=0.0)


def test_smallest_alpha_of_the_estimate_asks_the_upper_band():
    alphas = np.array([0.1, 0.5, 1.0])
    curve = SubgroupCurve(alphas, np.array([0.3, 0.2, 0.1]), alphas, np.array([0.4, 0.25, 0.15]))
    found = Certificate(curve, np.ones(5), 1.0, 1.0, 0.95, "ipcw")
    assert found.smallest_alpha(0.3, "estimate") == 0.5
    assert found.smallest_alpha(0.1, "estimate") is None


def test_a_handful_of_patients_is_refused(plain):
    data, (times, survival) = plain
    with pytest.raises(ValueError, match="20 held-out patients say too little"):
        certify((times, survival[:20]), data.X[:20], data.y[:20], horizon=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": [0.0, 0.5]}, "alphas must be shares"),
        ({"alphas": [np.nan]}, "alphas must be shares"),
        ({"confidence": 1.0}, "confidence must lie"),
        ({"features": np.zeros((3, 1))}, "features: the table has 3 rows, but y has 2000"),
        ({"features": "x"}, "features must be a table with one row per patient, got 'x'"),
        ({"alphas": "x"}, "alphas must be shares"),
        ({"confidence": "x"}, "confidence must lie .* got 'x'"),
        ({"horizon": -1.0}, "horizon must be a time above 0, .* got -1.0"),
        ({"horizon": "x"}, "horizon must be a time above 0, .* got 'x'"),
        ({"horizon": 1e9}, "outside the follow-up"),
    ],
)
def test_bad_questions_are_refused(plain, options, message):
    data, model = plain
    with pytest.raises(ValueError, match=message):
        certify(model, data.X, data.y, **({"horizon": 0.5} | options))


def test_a_model_of_this_library_brings_the_censoring_of_its_training_patients():
    train, test = make_hidden_minority(600, random_state=0), make_hidden_minority(600, random_state=1)
    model = CoxPH().fit(train.X, train.y)
    options = {"horizon": 0.5, "alphas": [0.5]}
    by_default = certify(model, test.X, test.y, **options)
    given = certify(model, test.X, test.y, y_train=train.y, **options)
    np.testing.assert_array_equal(by_default.losses, given.losses)
    assert by_default.bound != certify(model, test.X, test.y, y_train=test.y, **options).bound


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.5, np.nan])
def test_shares_that_are_none_have_no_guarantee(alpha):
    with pytest.raises(ValueError, match="alpha must be shares"):
        certificate(np.ones(60)).guarantee([0.5, alpha])


@pytest.mark.parametrize("which", ["guarantee", "estimate"])
def test_a_tolerance_that_is_no_number_is_refused(which):
    with pytest.raises(ValueError, match="tolerance must be a finite"):
        certificate(np.ones(60)).smallest_alpha(np.nan, which)
    with pytest.raises(ValueError, match="which must be"):
        certificate(np.ones(60)).smallest_alpha(0.5, f"{which}s")
