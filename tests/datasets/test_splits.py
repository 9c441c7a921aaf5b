import numpy as np
import pandas as pd
import pytest

from drosurv import Surv
from drosurv.datasets import Dataset, make_hidden_minority, split


@pytest.fixture
def gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return Dataset(
        "gaps",
        pd.DataFrame(X, columns=list("abc")),
        Surv.from_arrays(rng.random(200) < 0.3, rng.exponential(size=200)),
        pd.DataFrame({"group": rng.choice(["one", "two"], size=200)}),
    )


def labels(part):
    return set(part.X.index)


def test_the_test_part_is_the_same_for_every_seed_and_validation_is_not(gaps):
    first, second = split(gaps, 1), split(gaps, 2)
    assert first.test.X.index.tolist() == second.test.X.index.tolist()
    assert labels(first.validation) != labels(second.validation)
    assert labels(split(gaps, 1, test_seed=8).test) != labels(first.test)


def test_every_patient_is_in_one_part(gaps):
    parts = split(gaps, 5, test_size=0.3, validation_size=0.5)
    assert [len(part) for part in parts] == [70, 70, 60]
    assert set.union(*map(labels, parts)) == set(range(200))


def test_each_part_has_the_same_share_of_events(gaps):
    share = gaps.y["event"].mean()
    for part in split(gaps, 1):
        assert abs(part.y["event"].mean() - share) < 1 / len(part)


def test_missing_values_become_medians_of_the_training_part(gaps):
    raw, filled = split(gaps, 1, impute=False), split(gaps, 1)
    medians = np.nanmedian(raw.train.X.to_numpy(), axis=0)
    for before, after in zip(raw, filled, strict=True):
        values = before.X.to_numpy()
        assert np.isnan(values).any()
        np.testing.assert_array_equal(after.X.to_numpy(), np.where(np.isnan(values), medians, values))


def test_no_row_outside_training_moves_an_imputed_value(gaps):
    before = split(gaps, 1)
    X = gaps.X.copy()
    X.loc[before.test.X.index] *= 100
    X.loc[before.validation.X.index] *= 100
    after = split(Dataset(gaps.name, X, gaps.y, gaps.sensitive_features), 1)
    assert after.train.X.equals(before.train.X)


def test_a_feature_without_training_values_is_named(gaps):
    empty = Dataset(gaps.name, gaps.X.assign(b=np.nan), gaps.y, gaps.sensitive_features)
    with pytest.raises(ValueError, match="no value of b"):
        split(empty, 1)
    assert split(empty, 1, impute=False).train.X["b"].isna().all()


def test_the_truth_of_a_simulation_follows_its_patients():
    data = make_hidden_minority(100, random_state=0)
    for part in split(data, 1):
        assert part.truth.equals(data.truth.loc[part.X.index])
