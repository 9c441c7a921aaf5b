"""Pictures show what the tables hold."""

from copy import copy

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from drosurv.datasets import make_hidden_minority
from drosurv.estimators import DROCox
from drosurv.tuning import AccuracyBudget, CarefulBudget, GridSearch, pareto_front


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def search():
    data = make_hidden_minority(n_samples=300, random_state=0)
    side = np.where(data.X.iloc[:, 0] > 0, "right", "left")
    grid = {"alpha": [0.1, 0.3, 1.0]}
    return GridSearch(DROCox(recalibrate=False), grid, cv=2, random_state=0).fit(
        data.X, data.y, sensitive_features=side
    )


def lines(axes):
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


def test_the_front_and_the_choice_are_drawn_where_they_lie(search):
    axes = search.plot_front()
    drawn = lines(axes)
    names = ["concordance_index", "concordance_imparity"]
    front = pareto_front(search.results_)[names].to_numpy()
    np.testing.assert_allclose(drawn["Pareto front"], front)
    np.testing.assert_allclose(
        drawn["chosen"][0], search.results_.loc[search.best_index_, names].to_numpy(float)
    )
    budget = drawn["accuracy budget"][0, 0]
    assert budget == pytest.approx(0.95 * search.reference_["concordance_index"])
    bars = axes.containers[0].lines[2]
    assert len(bars) == 2
    low = [segment[0, 1] for segment in bars[1].get_segments()]
    np.testing.assert_allclose(low, search.results_["concordance_imparity_low"])


def test_the_budget_is_drawn_on_its_own_axis_alone(search):
    other = copy(search)
    other.rule_ = AccuracyBudget(reference="best")
    best = search.results_["concordance_index"].max()
    assert lines(other.plot_front())["accuracy budget"][0, 0] == pytest.approx(0.95 * best)
    # A share of another metric is no c-index.
    for rule in (AccuracyBudget("dynamic_auc", reference=0.9), CarefulBudget("dynamic_auc")):
        other.rule_ = rule
        assert "accuracy budget" not in lines(other.plot_front())


def test_no_interval_is_promised_where_none_is_known():
    data = make_hidden_minority(n_samples=300, random_state=0)
    side = np.where(data.X.iloc[:, 0] > 0, "right", "left")
    search = GridSearch(DROCox(recalibrate=False), {"alpha": [0.3]}, cv=0.3, bootstrap=0, random_state=0)
    axes = search.fit(data.X, data.y, sensitive_features=side).plot_front()
    assert axes.containers[0].get_label() == "settings"


def test_the_shrinkage_control_is_the_curve_that_settings_are_held_against(search):
    axes = Figure().subplots()
    assert search.plot_shrinkage(axes) is axes
    drawn = lines(axes)["unregularised model x c"]
    np.testing.assert_allclose(drawn, search.control_[["gain_share", "group_disparity"]].to_numpy())
    assert drawn[0, 0] == pytest.approx(1.0)


def test_nothing_to_draw_is_said(search):
    other = copy(search)
    other.results_ = search.results_.assign(concordance_imparity=np.nan)
    with pytest.raises(ValueError, match="no setting has a value of c-index and concordance imparity"):
        other.plot_front()


def test_a_column_that_was_not_measured_is_named(search):
    with pytest.raises(ValueError, match="did not compute 'individual_disparity'"):
        search.plot_shrinkage(minimise="individual_disparity")
