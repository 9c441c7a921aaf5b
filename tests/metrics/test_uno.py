import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.metrics import concordance_index_ipcw

from drosurv.metrics import concordance_index, uno_concordance
from drosurv.patients.target import Surv


def cohort(rng, n, longest):
    time = rng.integers(1, longest, n).astype(float)
    event = rng.random(n) < 0.5
    # Events at whole times, censoring between them: scikit-survival weights ties of the two in another way.
    time += np.where(event, 0.0, 0.5)
    time[:2], event[:2] = (1.0, longest), (True, False)
    return Surv.from_arrays(event, time)


@pytest.mark.parametrize("seed", range(8))
def test_value_equals_scikit_survival(seed):
    rng = np.random.default_rng(seed)
    train, test = cohort(rng, 100, 40), cohort(rng, 60, 35)
    risk = rng.integers(0, 12, 60) + rng.choice([0.0, 6e-9], 60)
    assert uno_concordance(train, test, risk) == pytest.approx(
        concordance_index_ipcw(train, test, risk)[0], rel=1e-12
    )
    assert uno_concordance(train, test, risk, tau=20.0) == pytest.approx(
        concordance_index_ipcw(train, test, risk, tau=20.0)[0], rel=1e-12
    )


def test_events_beyond_the_training_follow_up_are_only_the_later_ones_of_pairs():
    rng = np.random.default_rng(0)
    train, test = cohort(rng, 100, 40), cohort(rng, 60, 70)
    risk = rng.normal(size=60)
    with pytest.raises(ValueError, match=r"largest observed|censoring survival function"):
        concordance_index_ipcw(train, test, risk)
    expected = concordance_index_ipcw(train, test, risk, tau=40.0)[0]
    assert uno_concordance(train, test, risk) == pytest.approx(expected, rel=1e-12)


def test_without_censoring_in_training_it_is_harrell_s():
    rng = np.random.default_rng(1)
    train, test = cohort(rng, 100, 40), cohort(rng, 60, 35)
    train["event"] = True
    risk, weight = rng.normal(size=60), rng.integers(0, 3, 60)
    expected = concordance_index(test, risk, weight)
    assert uno_concordance(train, test, risk, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


def test_no_pair_is_nan_with_a_warning():
    train = Surv.from_arrays([True, False], [1.0, 9.0])
    with pytest.warns(UndefinedMetricWarning, match="no pair of the 1 patients"):
        assert np.isnan(uno_concordance(train, train[:1], [0.0]))
