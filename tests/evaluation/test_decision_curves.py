"""Decision curves against brute force, dcurves, sums over groups, simulated truth and a bootstrap that fits again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from drosurv import Surv, evaluate
from drosurv.evaluation.at_horizon import OutcomesAtHorizon
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.decision_curves import decision_curves, default_thresholds
from drosurv.target import Target

EXAMPLE = Path(__file__).parents[1] / "metrics" / "fixtures" / "dcurves_survival.csv"
ALL = ("overall", "all")


def patients(n, seed, censored=True):
    """Right risks by time 1, groups, and outcomes; censoring depends on risk and group."""
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=n), rng.integers(2, size=n)
    rate = 0.4 * np.exp(0.8 * x + 0.4 * group)
    time = rng.exponential(1 / rate)
    left = rng.exponential(np.exp(0.5 * group - 0.5 * x) * 1.5) if censored else np.full(n, np.inf)
    return 1 - np.exp(-rate), group, Target(time <= left, np.minimum(time, left))


def brute_force(risk, happened, threshold):
    above = risk >= threshold
    return (above & happened).mean() - threshold / (1 - threshold) * (above & ~happened).mean()


def test_without_censoring_the_curves_are_those_of_the_definition():
    risk, group, target = patients(300, 0, censored=False)
    labels = np.array(["f", "m"])[group]
    y = Surv.from_arrays(target.event, target.time)
    times = [0.5, 1.0]
    survival = np.column_stack([np.sqrt(1 - risk), 1 - risk])
    thresholds = [0.6, 0.1, 0.25]
    found = evaluate(
        (times, survival),
        None,
        y,
        sensitive_features={"sex": labels},
        horizon=1.0,
        thresholds=thresholds,
        threshold=0.3,
        n_bootstrap=2,
    ).decision_curves
    assert [*found.columns[:7]] == [
        *("attribute", "group", "threshold", "net_benefit", "low", "high", "treat_all")
    ]
    assert found["threshold"].unique().tolist() == [0.1, 0.25, 0.3, 0.6]
    happened = target.time <= 1.0
    for row in found.itertuples():
        mine = np.ones(300, bool) if row.group == "all" else labels == row.group
        expected = brute_force(risk[mine], happened[mine], row.threshold)
        everybody = brute_force(np.ones(mine.sum()), happened[mine], row.threshold)
        assert row.net_benefit == pytest.approx(expected)
        assert row.treat_all == pytest.approx(everybody)
        assert row.treat_none == 0
        odds = row.threshold / (1 - row.threshold)
        assert row.avoided_per_100 == pytest.approx(100 * (expected - everybody) / odds)
        assert row.low < row.net_benefit < row.high


def test_curves_are_near_those_of_dcurves_on_its_survival_example():
    data = pd.read_csv(EXAMPLE)
    target = Target(data["cancer"].to_numpy() == 1, data["ttcancer"].to_numpy())
    outcomes = OutcomesAtHorizon.of(target, data["cancerpredmarker"].to_numpy(), 1.0, np.empty((750, 0)))
    # True and false positives of Python's dcurves 1.1.7, whose censoring is that of the patients above the threshold.
    recorded = {
        0.05: (0.13047076504092, 0.42419590162575),
        0.20: (0.09665009923722, 0.13401656742945),
        0.50: (0.04899737068144, 0.01766929598523),
    }
    found = decision_curves(outcomes, {ALL: np.arange(750)}, np.array([*recorded]))
    expected = [tp - t / (1 - t) * fp for t, (tp, fp) in recorded.items()]
    np.testing.assert_allclose(found["net_benefit"], expected, atol=0.003)


def test_the_parts_of_groups_by_their_shares_give_the_whole():
    risk, group, target = patients(400, 1)
    outcomes = OutcomesAtHorizon.of(target, risk, 1.0, group[:, None].astype(float))
    groups = {ALL: np.arange(400)} | {("sex", str(k)): np.flatnonzero(group == k) for k in (0, 1)}
    found = decision_curves(outcomes, groups, np.array([0.1, 0.3, 0.5]))
    for column in ("net_benefit", "treat_all"):
        by_group = found.pivot_table(index="threshold", columns="group", values=column)
        shares = np.bincount(group) / 400
        np.testing.assert_allclose(by_group[["0", "1"]] @ shares, by_group["all"], rtol=1e-12)


def test_with_censoring_by_risk_and_group_the_curves_are_those_of_the_truth():
    risk, group, target = patients(40_000, 2)
    outcomes = OutcomesAtHorizon.of(target, risk, 1.0, group[:, None].astype(float))
    thresholds = np.array([0.2, 0.4, 0.6])
    rows = np.flatnonzero(group == 1)
    found = decision_curves(outcomes, {("sex", "1"): rows}, thresholds)
    p = risk[rows, None]
    truth = ((p >= thresholds) * (p - (1 - p) * thresholds / (1 - thresholds))).mean(axis=0)
    np.testing.assert_allclose(found["net_benefit"], truth, atol=0.015)
    assert ((found["low"] < truth) & (truth < found["high"])).all()


def test_with_causes_the_benefit_is_that_of_the_incidence():
    rng = np.random.default_rng(3)
    n = 5_000
    time, first = rng.exponential(size=n), rng.random(n) < 0.4
    risk = 0.3 * rng.random(n)
    target = Target(first, time)
    outcomes = OutcomesAtHorizon.of(target, risk, 1.0, np.empty((n, 0)), other=~first)
    found = decision_curves(outcomes, {ALL: np.arange(n)}, np.array([0.1, 0.2]))
    expected = [brute_force(risk, first & (time <= 1.0), t) for t in (0.1, 0.2)]
    np.testing.assert_allclose(found["net_benefit"], expected)


def test_bands_are_as_wide_as_those_of_a_bootstrap_that_weights_for_censoring_again():
    risk, group, target = patients(500, 4)
    columns, thresholds, rng = group[:, None].astype(float), np.array([0.2, 0.5]), np.random.default_rng(5)

    def curve(rows, level=None):
        outcomes = OutcomesAtHorizon.of(target.take(rows), risk[rows], 1.0, columns[rows])
        return decision_curves(outcomes, {ALL: np.arange(500)}, thresholds, level=level)

    draws = [curve(rng.integers(500, size=500))["net_benefit"] for _ in range(60)]
    found = curve(np.arange(500), 0.95)
    # Two correlated thresholds need between 1.96 and 2.24 standard errors.
    ratio = (found["high"] - found["low"]) / 2 / np.std(draws, axis=0)
    assert ((ratio > 1.7) & (ratio < 2.6)).all()


def test_bands_hold_the_truth_where_events_are_rare_and_censored():
    thresholds = np.arange(1, 15) / 20
    p = 1 - np.exp(-0.1 * np.exp(0.8 * norm.ppf((np.arange(10_000) + 0.5) / 10_000)))[:, None]
    benefit = ((p >= thresholds) * (p - (1 - p) * thresholds / (1 - thresholds))).mean(axis=0)
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=200)
        risk = 1 - np.exp(-0.1 * np.exp(0.8 * x))
        time, left = rng.exponential(-2 / np.log1p(-risk)), rng.exponential(3 * np.exp(-0.4 * x))
        outcomes = OutcomesAtHorizon.of(
            Target(time <= left, np.minimum(time, left)), risk, 2.0, np.empty((200, 0))
        )
        found = decision_curves(outcomes, {ALL: np.arange(200)}, thresholds)
        held.append(((found["low"] <= benefit) & (benefit <= found["high"])).all())
    # Squares of the patients' contributions in place of the recalibrated variance: 77 %.
    assert np.mean(held) >= 0.88


def test_copies_of_patients_in_clusters_do_not_narrow_the_band():
    risk, group, target = patients(300, 6)
    copies = np.repeat(np.arange(300), 5)
    columns = group[:, None].astype(float)
    alone = OutcomesAtHorizon.of(target, risk, 1.0, columns)
    together = OutcomesAtHorizon.of(target.take(copies), risk[copies], 1.0, columns[copies], clusters=copies)
    weighted = OutcomesAtHorizon.of(target, risk, 1.0, columns, weight=np.full(300, 5.0))
    widths = [
        (found["high"] - found["low"]).to_numpy()
        for found in (
            decision_curves(one, {ALL: np.arange(len(one))}, np.array([0.2, 0.5]))
            for one in (alone, together, weighted)
        )
    ]
    # By cluster the variance is that of the sums, else that of the model.
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.15)
    np.testing.assert_allclose(widths[2], widths[0] / np.sqrt(5), rtol=0.1)


def test_patients_of_weight_0_do_not_count():
    risk, group, target = patients(300, 8)
    columns, weight = group[:, None].astype(float), (np.arange(300) % 7 > 0) * 1.0
    kept = np.flatnonzero(weight)
    whole = OutcomesAtHorizon.of(target, risk, 1.0, columns, weight=weight)
    part = OutcomesAtHorizon.of(target.take(kept), risk[kept], 1.0, columns[kept])
    bands = [
        decision_curves(one, {ALL: np.arange(len(one))}, np.array([0.2, 0.5]))[["net_benefit", "low", "high"]]
        for one in (whole, part)
    ]
    np.testing.assert_allclose(*bands, rtol=1e-9)


def test_a_group_whose_follow_up_ends_before_the_horizon_has_no_curve():
    risk, group, target = patients(400, 7)
    time = np.where(group == 1, np.minimum(target.time, 0.6), target.time)
    short = Target(target.event & (time == target.time), time)
    outcomes = OutcomesAtHorizon.of(short, risk, 1.0, group[:, None].astype(float))
    groups = {("sex", str(k)): np.flatnonzero(group == k) for k in (0, 1)}
    found = decision_curves(outcomes, groups, np.array([0.2, 0.4])).set_index("group")["net_benefit"]
    assert found["1"].isna().all()
    assert found["0"].notna().all()
    assert calibration_curves(outcomes, groups).numbers["group"].tolist() == ["0"]


def test_default_thresholds_are_round_and_end_at_the_99th_percentile():
    found = default_thresholds(np.linspace(0, 0.4, 1001))
    np.testing.assert_allclose(found, np.arange(1, 40) / 100)
    assert default_thresholds(np.full(10, 0.003)).max() <= 0.003
    assert len(default_thresholds(np.ones(10))) <= 50


@pytest.mark.parametrize("thresholds", [[0.2, 1.0], [0.0], [], ["a"]])
def test_thresholds_lie_between_0_and_1(model, held_out, thresholds):
    with pytest.raises(ValueError, match="thresholds"):
        evaluate(model, held_out.X, held_out.y, thresholds=thresholds)


def test_the_plot_has_a_panel_for_each_group_and_marks_the_threshold(evaluated):
    result = evaluated(threshold=0.3, n_bootstrap=2)
    figure = result.plot_decision_curves("sex")
    assert [ax.get_title() for ax in figure.axes] == ["sex f", "sex m"]
    rows = result.decision_curves.query("attribute == 'sex' and group == 'm'")
    drawn = [line.get_ydata() for line in figure.axes[1].get_lines()]
    assert any(np.array_equal(y, rows["net_benefit"]) for y in drawn)
    assert any(np.array_equal(line.get_xdata(), [0.3, 0.3]) for line in figure.axes[1].get_lines())
