import numpy as np
from sklearn.preprocessing import StandardScaler

from drosurv.solvers.neighborhoods import standardise


def test_features_are_scaled_by_the_training_patients():
    rng = np.random.default_rng(1)
    train, other = rng.normal(3, 2, size=(50, 3)), rng.normal(size=(20, 3))
    scaler = StandardScaler().fit(train)
    ours = standardise(train, other)
    np.testing.assert_allclose(ours[0], scaler.transform(train))
    np.testing.assert_allclose(ours[1], scaler.transform(other))


def test_a_constant_feature_becomes_zero():
    train, other = standardise(np.full((5, 1), 0.1) + 1e-17, np.ones((2, 1)))
    assert (train == 0).all()
    assert (other == 0).all()


def test_each_training_set_of_a_stack_is_scaled_alone():
    X = np.random.default_rng(2).normal(3, 2, size=(2, 30, 3))
    for alone, stacked in zip(X, standardise(X)[0], strict=True):
        np.testing.assert_allclose(stacked, standardise(alone)[0])
