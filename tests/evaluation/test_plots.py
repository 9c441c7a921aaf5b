import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from drosurv import CoxPH, Surv
from drosurv.evaluation import partial_effects


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 2)), columns=["age", "dose"])
    y = Surv.from_arrays(rng.random(150) < 0.7, rng.exponential(np.exp(-X["age"])))
    return CoxPH().fit(X, y), X


def test_curves_are_the_mean_of_everybodys_at_the_value(fitted):
    model, X = fitted
    found = partial_effects(model, X, "age", [-1.0, 2.0], times=[0.2, 0.9])
    for row, value in zip(found.survival, [-1.0, 2.0], strict=True):
        everybody = model.predict_survival_function(X.assign(age=value), times=[0.2, 0.9])
        np.testing.assert_allclose(row, everybody.mean(axis=0))
    assert found.to_frame().columns.tolist() == [-1.0, 2.0]
    assert found.to_frame().index.tolist() == [0.2, 0.9]


def test_arrays_name_features_by_their_number(fitted):
    _, X = fitted
    as_array = CoxPH().fit(X.to_numpy(), Surv.from_arrays(np.ones(150, bool), np.arange(150.0)))
    found = partial_effects(as_array, X.to_numpy(), 1, [0.0])
    assert found.survival.shape == (1, len(as_array.unique_times_))


def test_unknown_features_are_named(fitted):
    model, X = fitted
    with pytest.raises(
        ValueError, match=r"feature must be a column of X, one of \['age', 'dose'\], got 'sex'"
    ):
        partial_effects(model, X, "sex", [0])
    with pytest.raises(ValueError, match="from 0 to 1, got 2"):
        partial_effects(model, X.to_numpy(), 2, [0])


def test_the_plot_has_a_curve_for_each_value(fitted):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    model, X = fitted
    ax = partial_effects(model, X, "age", [-1.0, 0.0, 1.0]).plot()
    assert len(ax.lines) == 3
    assert ax.get_legend().get_texts()[0].get_text().startswith("age = ")
    plt.close(ax.figure)


def test_values_between_whole_numbers_are_not_rounded():
    rng = np.random.default_rng(0)
    stage = rng.integers(0, 4, (150, 2))
    model = CoxPH().fit(stage, Surv.from_arrays(np.ones(150, bool), rng.exponential(np.exp(-stage[:, 0]))))
    found, wanted = (partial_effects(model, X, 0, [0.9], times=[0.5]) for X in (stage, stage.astype(float)))
    assert found.survival.item() == wanted.survival.item()


def test_a_finished_search_and_a_tensor_are_taken(fitted):
    _, X = fitted
    y = Surv.from_arrays(np.ones(150, bool), np.arange(150.0))
    search = GridSearchCV(CoxPH(), {"l2": [0.1]}, cv=2).fit(X, y)
    wanted = partial_effects(search.best_estimator_, X, "age", [1.0]).survival
    np.testing.assert_array_equal(partial_effects(search, X, "age", [1.0]).survival, wanted)
    alone = CoxPH(l2=0.1).fit(X.to_numpy(), y)
    found = partial_effects(alone, torch.tensor(X.to_numpy()), 0, [1.0]).survival
    np.testing.assert_allclose(found, wanted)
