"""One cell of the benchmark from scratch: scikit-survival's Cox on columns encoded by hand."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sksurv.datasets import load_flchain
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored, integrated_brier_score

from drosurv.datasets import load
from experiments.benchmark import tournament
from experiments.benchmark.tournament import Match, evaluate_match
from experiments.fingerprint import data_fingerprint

# Every sixth patient: the pairs of all take seconds.
EVERY = 6


@pytest.fixture(scope="module")
def ours():
    data = load("flc")
    some = data.take(np.arange(0, len(data), EVERY))
    tournament._parts.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tournament, "load", lambda name: some)
        # The groups that a forest finds are not compared here.
        patch.setattr("experiments.benchmark.measures.TREES", 3)
        yield evaluate_match(Match("flc", "cox", 1, 0, data_fingerprint(some)))
    tournament._parts.cache_clear()


@pytest.fixture(scope="module")
def by_hand():
    """Test outcomes, log risks and survival at the training event times, and the patients' sex and age."""
    table, y = load_flchain()
    table, y = table.iloc[::EVERY], y[::EVERY]
    X = table[["age", "creatinine", "flc.grp", "kappa", "lambda"]].astype(float)
    X["male"] = (table["sex"] == "M").astype(float)
    rows = train_test_split(np.arange(len(X)), test_size=0.4, stratify=y["death"], random_state=1)
    train, test = map(np.sort, rows)
    X = X.fillna(X.iloc[train].median())
    X = ((X - X.iloc[train].mean()) / X.iloc[train].std(ddof=0)).to_numpy()
    # Its penalty is on the sum of the losses, and ours of 1e-4 on their mean.
    cox = CoxPHSurvivalAnalysis(alpha=1e-4 * len(train), ties="breslow", tol=1e-12).fit(X[train], y[train])
    # Times are thinned to quantiles where there are more than 2,000; FLC has fewer event times in training.
    times = np.unique(y[train]["futime"][y[train]["death"]])
    times = times[times > 0]
    assert len(times) <= 2000
    steps = np.hstack([np.ones((len(test), 1)), cox.predict_survival_function(X[test], return_array=True)])
    survival = steps[:, np.searchsorted(cox.unique_times_, times, side="right")]
    own = steps[np.arange(len(test)), np.searchsorted(cox.unique_times_, y[test]["futime"], side="right")]
    groups = [table["sex"].to_numpy()[test], table["age"].to_numpy()[test] > 65]
    return y[train], y[test], cox.predict(X[test]), times, survival, own, groups


def test_the_c_index_of_everybody_and_of_the_worst_group(ours, by_hand):
    _, y, risk, *_, groups = by_hand

    def c_index(rows):
        return concordance_index_censored(y["death"][rows], y["futime"][rows], risk[rows])[0]

    assert ours["c_index"] == pytest.approx(c_index(slice(None)), abs=1e-6)
    found = [c_index(labels == label) for labels in groups for label in np.unique(labels)]
    assert ours["worst_named_c_index"] == pytest.approx(min(found), abs=1e-6)


def test_the_brier_score(ours, by_hand):
    y_train, y, _, times, survival, *_ = by_hand
    inside = (times > y["futime"].min()) & (times <= np.quantile(y["futime"], 0.9))
    chosen = np.flatnonzero(inside)
    chosen = chosen[np.linspace(0, len(chosen) - 1, 200).astype(int)]
    expected = integrated_brier_score(y_train, y, survival[:, chosen], times[chosen])
    assert ours["ibs"] == pytest.approx(expected, abs=1e-5)


def test_the_calibration_slope_is_the_effect_of_the_risk_itself(ours, by_hand):
    _, y, risk, *_ = by_hand
    slope = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12).fit(risk[:, None], y).coef_[0]
    assert ours["slope"] == pytest.approx(slope, abs=1e-4)


def test_observed_against_expected_events_of_the_worst_group(ours, by_hand):
    _, y, *_, own, groups = by_hand
    expected = -np.log(np.maximum(own, 1e-10))
    found = [
        abs(np.log((y["death"][labels == label].sum() + 0.5) / (expected[labels == label].sum() + 0.5)))
        for labels in groups
        for label in np.unique(labels)
    ]
    assert ours["worst_named_oe"] == pytest.approx(max(found), abs=1e-4)
