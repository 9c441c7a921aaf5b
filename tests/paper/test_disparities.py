import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.paper import (
    average_disparity,
    censored_group_disparity,
    censored_individual_disparity,
    group_disparity,
    individual_disparity,
    intersectional_disparity,
)
from drosurv.patients.target import Surv


def unit(X):
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, length, out=np.zeros_like(X), where=length > 0)


def excess(h, U, scale):
    """[|h_i - h_j| - scale ||u_i - u_j||]_+ for all ordered pairs."""
    distance = np.sqrt(((U[:, None, :] - U[None, :, :]) ** 2).sum(axis=-1))
    return np.maximum(np.abs(h[:, None] - h[None, :]) - scale * distance, 0)


@pytest.mark.parametrize("spread", [1e-3, 0.05, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.0, 0.01, 0.5])
def test_individual_disparity_equals_the_double_sum(spread, scale):
    rng = np.random.default_rng(0)
    for n in (2, 3, 40, 150):
        risk, X = rng.normal(size=n) * spread, rng.normal(size=(n, 4)) * 3
        X[0] = 0.0
        paper = np.triu(excess(np.exp(risk), X, scale)).sum()
        table = np.triu(excess(np.exp(risk), unit(X), scale)).sum() / (n * (n - 1))
        close = {"rel": 1e-9, "abs": 1e-12}
        assert individual_disparity(risk, X, scale=scale) == pytest.approx(paper, **close)
        assert individual_disparity(risk, X, scale=scale, convention="table") == pytest.approx(table, **close)


def test_individual_disparity_of_patients_with_equal_features_is_the_sum_of_differences():
    assert individual_disparity(np.log([1.0, 2.0, 4.0]), np.ones((3, 2))) == pytest.approx(1 + 3 + 2)


patients = st.lists(
    st.tuples(st.floats(-3, 3), st.sampled_from("ab"), st.sampled_from("xyz")), min_size=2, max_size=20
).filter(lambda rows: len({row[1] for row in rows}) > 1)


@settings(max_examples=30, deadline=None)
@given(patients)
def test_group_and_intersectional_disparity_equal_their_definitions(rows):
    risk, first, second = map(np.array, zip(*rows, strict=True))
    h = np.exp(risk)
    both = np.char.add(first, second)
    for convention, add, more in (("paper", 0.0, 0.0), ("table", 0.5, 1.0)):

        def mean(inside, add=add, more=more):
            return (h[inside].sum() + add) / (inside.sum() + more)

        gap = max(abs(mean(first == g) - h.mean()) for g in set(first))
        logs = [np.log(mean(both == s)) for s in set(both)]
        close = {"rel": 1e-9, "abs": 1e-12}
        assert group_disparity(risk, first, convention=convention) == pytest.approx(gap, **close)
        found = intersectional_disparity(risk, np.column_stack((first, second)), convention=convention)
        assert found == pytest.approx(max(logs) - min(logs), **close)


def test_average_disparity_is_the_mean_of_the_three():
    rng = np.random.default_rng(2)
    risk, X = rng.normal(size=60), rng.normal(size=(60, 3))
    attributes = pd.DataFrame({"sex": rng.choice(["f", "m"], 60), "old": rng.random(60) < 0.5})
    for convention in ("paper", "table"):
        parts = [
            individual_disparity(risk, X, scale=0.02, convention=convention),
            group_disparity(risk, attributes["sex"], convention=convention),
            intersectional_disparity(risk, attributes, convention=convention),
        ]
        found = average_disparity(risk, X, attributes["sex"], attributes, scale=0.02, convention=convention)
        assert found == pytest.approx(np.mean(parts))


def test_patients_without_a_label_are_a_group_or_left_out():
    risk = np.log([1.0, 3.0, 100.0])
    assert group_disparity(risk, ["a", "b", None], missing="drop") == pytest.approx(1.0)
    assert group_disparity(risk, ["a", "b", None]) == pytest.approx(100 - 104 / 3)


@pytest.mark.parametrize("seed", range(10))
def test_censoring_aware_disparities_equal_their_definitions(seed):
    rng = np.random.default_rng(seed)
    n = 40
    event, time = rng.random(n) < 0.5, rng.integers(0, 10, n).astype(float)
    risk, X, groups = rng.normal(size=n), rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    y = Surv.from_arrays(event, time)
    pair = ~event[:, None] & event[None, :] & (time[:, None] <= time[None, :])
    terms = np.where(pair, excess(np.exp(risk), unit(X), 0.3), 0.0) / (event.sum() * (~event).sum())
    assert censored_individual_disparity(y, risk, X, scale=0.3) == pytest.approx(terms.sum(), rel=1e-9)
    within = terms[groups[:, None] == groups[None, :]].sum()
    assert censored_group_disparity(y, risk, X, groups, scale=0.3) == pytest.approx(within, rel=1e-9)


def test_undefined_disparities_are_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="single patient"):
        assert np.isnan(individual_disparity([1.0], [[1.0]], convention="table"))
    assert individual_disparity([1.0], [[1.0]]) == 0.0
    X, risk = np.ones((2, 1)), [0.0, 1.0]
    none, all_ = (Surv.from_arrays([event, event], [1.0, 2.0]) for event in (False, True))
    with pytest.warns(UndefinedMetricWarning, match="no event in y"):
        assert np.isnan(censored_individual_disparity(none, risk, X))
    with pytest.warns(UndefinedMetricWarning, match="no censored patient in y"):
        assert np.isnan(censored_group_disparity(all_, risk, X, ["a", "b"]))
