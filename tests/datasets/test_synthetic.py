import numpy as np
import pytest
from scipy import stats

from drosurv import CoxPH
from drosurv.datasets import make_hidden_minority
from drosurv.metrics import concordance_index


def in_minority(data):
    return (data.sensitive_features["membership"] == "minority").to_numpy()


def test_the_minority_is_the_upper_tail_of_x5():
    data = make_hidden_minority(random_state=1)
    assert data.X.shape == (4000, 10)
    assert in_minority(data).tolist() == (data.X["x5"] > stats.norm.ppf(0.85)).tolist()


def test_nonlinear_membership_is_both_tails_of_x5():
    data = make_hidden_minority(membership="nonlinear", minority=0.3, random_state=1)
    assert in_minority(data).tolist() == (data.X["x5"].abs() > stats.norm.ppf(0.85)).tolist()


@pytest.mark.parametrize("membership", ["linear", "nonlinear"])
@pytest.mark.parametrize("minority", [0.05, 0.15, 0.5])
def test_the_minority_has_its_share(membership, minority):
    n = 20_000
    count = in_minority(make_hidden_minority(n, 5, minority, membership, random_state=0)).sum()
    assert abs(count - n * minority) < 4 * np.sqrt(n * minority * (1 - minority))


def test_log_risk_has_the_stated_effects():
    data = make_hidden_minority(random_state=2)
    for row in range(200):
        x = data.X.iloc[row]
        a, b, c, d = (-0.6, 0.5, 0.3, 0.5) if x["x5"] > stats.norm.ppf(0.85) else (0.8, 0.5, 0.3, 0.0)
        expected = a * x["x1"] + b * x["x2"] + c * x["x3"] + d * x["x4"]
        assert data.truth["log_risk"].iloc[row] == pytest.approx(expected)


def test_times_are_exponential_with_the_true_risk():
    data = make_hidden_minority(5000, random_state=3)
    truth = data.truth
    assert stats.kstest(truth["event_time"] * np.exp(truth["log_risk"]), "expon").pvalue > 0.001
    assert stats.kstest(truth["censoring_time"] / 1.5, "expon").pvalue > 0.001
    assert data.y["time"].tolist() == truth[["event_time", "censoring_time"]].min(axis=1).tolist()
    assert data.y["event"].tolist() == (truth["event_time"] <= truth["censoring_time"]).tolist()


def test_plain_cox_fails_the_minority_as_measured_for_the_specification():
    overall, minority = [], []
    for seed in range(2):
        train = make_hidden_minority(random_state=seed)
        test = make_hidden_minority(random_state=100 + seed)
        risk = CoxPH().fit(train.X, train.y).predict(test.X)
        for rows, values in ((np.full(4000, True), overall), (in_minority(test), minority)):
            values.append(concordance_index(test.y[rows], risk[rows]))
    assert np.mean(overall) == pytest.approx(0.684, abs=0.01)
    assert np.mean(minority) == pytest.approx(0.501, abs=0.03)


def test_without_a_minority_all_follow_one_risk():
    data = make_hidden_minority(300, minority=0, random_state=0)
    assert not in_minority(data).any()
    effects = np.linalg.lstsq(data.X.to_numpy(), data.truth["log_risk"], rcond=None)[0]
    np.testing.assert_allclose(effects, [0.8, 0.5, 0.3, 0, 0, 0, 0, 0, 0, 0], atol=1e-12)
    assert in_minority(make_hidden_minority(300, minority=1, random_state=0)).all()
    assert in_minority(make_hidden_minority(300, minority=1, membership="nonlinear", random_state=0)).all()


def test_the_seed_decides_the_sample():
    first, same, other = (make_hidden_minority(50, random_state=seed) for seed in (0, 0, 1))
    assert first.X.equals(same.X)
    assert (first.y == same.y).all()
    assert not first.X.equals(other.X)
