import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import (
    calibration_slope,
    concordance_imparity,
    concordance_index,
    gain_over_null,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
    log_partial_likelihood,
    scaled_control,
    share_of_gain,
)
from drosurv.target import Surv


def cohort(seed=0, n=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    risk = X @ [0.8, -0.4, 0.0]
    y = Surv.from_arrays(rng.random(n) < 0.7, np.ceil(10 * rng.exponential(size=n) / np.exp(risk)))
    attributes = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "old": X[:, 2] > 0})
    return y, risk, X, attributes


def test_the_null_model_gains_nothing_and_its_likelihood_is_that_of_the_risk_set_sizes():
    y, risk, _, _ = cohort()
    assert gain_over_null(y, np.full(len(y), 7.0)) == pytest.approx(0, abs=1e-12)
    sizes = [(y["time"] >= time).sum() for event, time in y if event]
    expected = log_partial_likelihood(y, risk) + np.log(sizes).mean()
    assert gain_over_null(y, risk) == pytest.approx(expected)


def test_share_is_one_for_the_reference_itself_and_small_for_its_shadow():
    y, risk, _, _ = cohort()
    assert share_of_gain(y, risk + 3, risk) == pytest.approx(1.0)
    assert 0 < share_of_gain(y, 0.02 * risk, risk) < 0.1
    with pytest.warns(UndefinedMetricWarning, match="the reference gains -"):
        assert np.isnan(share_of_gain(y, risk, -risk))


@pytest.mark.parametrize("convention", ["paper", "table"])
def test_the_control_curve_is_every_metric_of_the_scaled_scores(convention):
    y, risk, X, attributes = cohort()
    factors = [0.0, 0.25, 1.0]
    table = scaled_control(
        y, risk, X, attributes["sex"], attributes, factors=factors, scale=0.05, convention=convention
    )
    for row, factor in zip(table.itertuples(), factors, strict=True):
        scores = factor * risk
        assert row.factor == factor
        assert row.log_partial_likelihood == pytest.approx(log_partial_likelihood(y, scores))
        assert row.share_of_gain == pytest.approx(share_of_gain(y, scores, risk), abs=1e-12)
        assert row.individual_disparity == pytest.approx(
            individual_disparity(scores, X, scale=0.05, convention=convention)
        )
        assert row.group_disparity == group_disparity(scores, attributes["sex"], convention=convention)
        found = intersectional_disparity(scores, attributes, convention=convention)
        assert row.intersectional_disparity == pytest.approx(found)
        if factor:
            assert row.calibration_slope == pytest.approx(calibration_slope(y, scores), rel=1e-6)
    assert np.isnan(table["calibration_slope"][0])


def test_shrinking_lowers_every_disparity_but_neither_concordance_nor_imparity():
    y, risk, X, attributes = cohort()
    table = scaled_control(y, risk, X, attributes["sex"], attributes)
    assert table["factor"].tolist() == pytest.approx(np.linspace(0, 1, 11).tolist())
    for name in ("individual_disparity", "intersectional_disparity", "share_of_gain"):
        assert table[name].is_monotonic_increasing
    assert concordance_index(y, 0.1 * risk) == concordance_index(y, risk)
    groups = attributes["sex"]
    assert concordance_imparity(y, 0.1 * risk, groups) == concordance_imparity(y, risk, groups)
