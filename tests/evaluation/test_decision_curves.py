"""Decision curves against brute force, dcurves, simulated truth and a bootstrap that fits again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv, evaluate
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.curves_by_group import decision_curves, decision_table, default_thresholds
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.target import Target

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
    outcomes = ObservedRisk.of(target, data["cancerpredmarker"].to_numpy(), 1.0)
    # True and false positives of Python's dcurves 1.1.7, whose censoring is that of the patients above the threshold.
    recorded = {
        0.05: (0.13047076504092, 0.42419590162575),
        0.20: (0.09665009923722, 0.13401656742945),
        0.50: (0.04899737068144, 0.01766929598523),
    }
    found = decision_curves({ALL: outcomes}, np.array([*recorded]))
    expected = [tp - t / (1 - t) * fp for t, (tp, fp) in recorded.items()]
    np.testing.assert_allclose(found["net_benefit"], expected, atol=0.006)


def test_with_censoring_by_risk_and_group_the_curves_are_those_of_the_truth():
    risk, group, target = patients(40_000, 2)
    thresholds = np.array([0.2, 0.4, 0.6])
    rows = np.flatnonzero(group == 1)
    outcomes = ObservedRisk.of(target, risk, 1.0, rows=rows)
    found = decision_curves({("sex", "1"): outcomes}, thresholds)
    p = risk[rows, None]
    truth = ((p >= thresholds) * (p - (1 - p) * thresholds / (1 - thresholds))).mean(axis=0)
    np.testing.assert_allclose(found["net_benefit"], truth, atol=0.015)
    assert ((found["low"] < truth) & (truth < found["high"])).all()


def test_thresholds_that_divide_a_stratum_have_no_bias_from_censoring_by_risk():
    """Events weighted within strata gave net benefits that are too low by up to a third of their standard deviation."""
    thresholds, errors = np.array([0.4, 0.5, 0.6]), []
    for seed in range(100):
        risk, _, target = patients(200, seed)
        found = decision_curves({ALL: ObservedRisk.of(target, risk, 1.0)}, thresholds)["net_benefit"]
        p = risk[:, None]
        truth = ((p >= thresholds) * (p - (1 - p) * thresholds / (1 - thresholds))).mean(axis=0)
        errors.append(found.to_numpy() - truth)
    assert (abs(np.mean(errors, axis=0)) < 0.2 * np.std(errors, axis=0)).all()


def test_with_causes_the_benefit_is_that_of_the_incidence():
    rng = np.random.default_rng(3)
    n = 5_000
    time, first = rng.exponential(size=n), rng.random(n) < 0.4
    risk = 0.3 * rng.random(n)
    outcomes = ObservedRisk.of(Target(first, time, other=~first), risk, 1.0)
    found = decision_curves({ALL: outcomes}, np.array([0.1, 0.2]))
    expected = [brute_force(risk, first & (time <= 1.0), t) for t in (0.1, 0.2)]
    np.testing.assert_allclose(found["net_benefit"], expected)


def test_bands_are_as_wide_as_those_of_a_bootstrap_that_weights_for_censoring_again():
    risk, _, target = patients(300, 4)
    thresholds, rng = np.array([0.2, 0.5]), np.random.default_rng(5)

    def curve(rows):
        return decision_curves({ALL: ObservedRisk.of(target, risk, 1.0, rows=rows)}, thresholds)

    draws = [curve(rng.integers(300, size=300))["net_benefit"] for _ in range(60)]
    found = curve(np.arange(300))
    # Two correlated thresholds need between 1.96 and 2.24 standard errors.
    ratio = (found["high"] - found["low"]) / 2 / np.std(draws, axis=0)
    assert ((ratio > 1.7) & (ratio < 2.6)).all()


def test_copies_of_patients_in_clusters_do_not_narrow_the_band():
    risk, _, target = patients(300, 6)
    thresholds = np.array([0.2, 0.5])
    alone = ObservedRisk.of(target, risk, 1.0)
    # The same patients and strata: five times the events would make five times as many.
    rows, stratum = np.repeat(alone.rows, 5), np.repeat(alone.outcomes.stratum, 5)
    outcomes = replace(
        alone.outcomes, target=target.take(rows), weight=np.ones(len(rows)), stratum=stratum, risk=risk[rows]
    )
    together = ObservedRisk(
        risk[rows], outcomes, np.arange(len(rows)), np.unique(rows, return_inverse=True)[1], risk[rows]
    )
    widths = [
        (found["high"] - found["low"]).to_numpy()
        for found in (decision_curves({ALL: one}, thresholds) for one in (alone, together))
    ]
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.05)


def test_a_group_whose_follow_up_ends_before_the_horizon_has_no_curve():
    risk, group, target = patients(400, 7)
    time = np.where(group == 1, np.minimum(target.time, 0.6), target.time)
    short = Target(target.event & (time == target.time), time)
    groups = {
        ("sex", str(k)): ObservedRisk.of(short, risk, 1.0, rows=np.flatnonzero(group == k)) for k in (0, 1)
    }
    found = decision_curves(groups, np.array([0.2, 0.4])).set_index("group")["net_benefit"]
    assert found["1"].isna().all()
    assert found["0"].notna().all()
    assert calibration_curves(groups).numbers["group"].tolist() == ["0"]


def test_without_censoring_decisions_are_shares_and_a_gap_is_that_of_two_shares():
    risk, group, target = patients(400, 9, censored=False)
    groups = {
        ("sex", str(k)): ObservedRisk.of(target, risk, 1.0, rows=np.flatnonzero(group == k)) for k in (0, 1)
    }
    found = decision_table(groups, 0.4, 0.95).set_index(["group", "metric"])
    shares, errors = [], []
    for k in (0, 1):
        own, above, happened = group == k, risk >= 0.4, target.time <= 1.0
        share, n = above[own & happened].mean(), (own & happened).sum()
        row = found.loc[str(k), "sensitivity"]
        assert row["value"] == pytest.approx(share)
        assert row["predicted"] == pytest.approx(risk[own & above].sum() / risk[own].sum())
        assert found.loc[str(k), "ppv"]["value"] == pytest.approx(happened[own & above].mean())
        assert row["positives"] == (own & above).sum()
        shares, errors = [*shares, share], [*errors, share * (1 - share) / n]
    gap = found.loc["gap", "sensitivity"]
    assert gap["value"] == pytest.approx(abs(shares[0] - shares[1]))
    assert gap["high"] - gap["value"] == pytest.approx(1.96 * np.sqrt(sum(errors)), rel=0.03)


def test_default_thresholds_are_round_and_end_at_the_99th_percentile():
    found = default_thresholds(np.linspace(0, 0.4, 1001))
    np.testing.assert_allclose(found, np.arange(1, 40) / 100)
    assert default_thresholds(np.full(10, 0.003)).max() <= 0.003
    assert len(default_thresholds(np.ones(10))) <= 50


def test_the_plot_has_a_panel_for_each_group_and_marks_the_threshold(evaluated):
    result = evaluated(threshold=0.3)
    figure = result.plot_decision_curves("sex")
    assert [ax.get_title() for ax in figure.axes] == ["sex f", "sex m"]
    rows = result.decision_curves.query("attribute == 'sex' and group == 'm'")
    drawn = [line.get_ydata() for line in figure.axes[1].get_lines()]
    assert any(np.array_equal(y, rows["net_benefit"]) for y in drawn)
    assert any(np.array_equal(line.get_xdata(), [0.3, 0.3]) for line in figure.axes[1].get_lines())


def test_decisions_of_groups_are_not_compared_where_high_risks_are_left_out():
    rng, n = np.random.default_rng(3), 900
    eta = 0.8 * rng.normal(size=n)
    time, left = rng.exponential(np.exp(-eta)), rng.exponential(np.exp(-1.5 * eta))
    target, risk = Target(time <= left, np.minimum(time, left)), -np.expm1(-np.exp(eta))
    rows = {("sex", "m"): np.arange(0, n, 3), ("sex", "w"): np.setdiff1d(np.arange(n), np.arange(0, n, 3))}
    groups = {key: ObservedRisk.of(target, risk, 1.0, rows=own) for key, own in rows.items()}
    partly = [key[1] for key, one in groups.items() if one.left_out]
    assert partly == [key[1] for key, own in rows.items() if len(groups[key]) < len(own)]
    gaps = decision_table(groups, 0.4, 0.95).query("group == 'gap'")
    assert gaps["reason"].eq(f"some patients are not judged in {', '.join(partly)}").all()
    assert gaps["value"].isna().all()
    # By an earlier time everybody was followed.
    early = {key: ObservedRisk.of(target, risk, 0.05, rows=own) for key, own in rows.items()}
    assert not any(one.left_out for one in early.values())
    assert decision_table(early, 0.4, 0.95).query("group == 'gap'")["value"].notna().all()
