"""The one rule of tuning: the best worst group within an accuracy budget, and plain Cox unless better beyond chance."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv import CoxPH, DROCox, NullModel, RegularizedCox
from drosurv.tables import SurvivalTable
from drosurv.tables.target_columns import TargetColumns
from drosurv.workflows.tuning import choose, default_grid, tune

# Few distinct values, so that ties happen all the time.
rows = st.tuples(
    st.sampled_from([0.1, 0.18, 0.19, 0.2, 0.21]),
    st.sampled_from([-0.1, 0.0, 0.1, 0.2]),
    st.sampled_from([0.001, 0.049, 0.06, 0.3]),
)


@settings(deadline=None, max_examples=60)
@given(found=st.lists(rows, min_size=1, max_size=6), tolerance=st.sampled_from([0.0, 0.1, 0.3]))
def test_the_choice_is_the_loop_over_its_definition(found, tolerance):
    table = pd.DataFrame(
        [
            (0.2, "a", 0.05, np.nan, np.nan),
            *((of_all, "a", worst, worst - 0.05, p) for of_all, worst, p in found),
        ],
        columns=["likelihood_gain", "worst_group", "worst_gain", "difference", "p"],
    )
    best = 0
    for row, (of_all, worst, p) in enumerate(found, start=1):
        allowed = of_all >= 0.2 - tolerance * 0.2 and worst > 0.05 and p < 0.05
        if allowed and (best == 0 or worst > found[best - 1][1]):
            best = row
    chosen, reason = choose(table, tolerance)
    assert chosen == best
    assert ("no setting predicts the worst group" in reason) == (best == 0)


@pytest.fixture(autouse=True)
def few_replicates(monkeypatch):
    monkeypatch.setattr("drosurv.workflows.tuning._REPLICATES", 99)


@pytest.fixture(scope="module")
def table():
    """The effect of x turns round in site b, a fifth of the patients."""
    rng = np.random.default_rng(0)
    n = 500
    site = rng.choice(["a", "b"], n, p=[0.8, 0.2])
    x, z = rng.normal(size=(2, n))
    time = rng.exponential(np.exp(-np.where(site == "a", 1.0, -0.6) * x - 0.5 * z))
    censoring = rng.exponential(2.0, n)
    frame = pd.DataFrame({"x": x, "z": z, "site": site})
    frame["days"], frame["died"] = np.minimum(time, censoring), (time <= censoring).astype(int)
    return SurvivalTable.parse(frame, TargetColumns("days", "died"), groups=["site"])


def test_a_setting_that_serves_the_worst_group_better_is_chosen_and_trained_on_everybody(table):
    found = tune(
        table, DROCox(recalibrate=False), {"alpha": [0.5, 1.0]}, tolerance=0.3, folds=3, verbose=False
    )
    assert found.settings["alpha"].tolist() == [None, 0.5, 1.0]
    assert found.parameters == {"alpha": 0.5}
    assert found.settings["chosen"].tolist() == [False, True, False]
    assert found.trained.estimator.alpha == 0.5
    assert found.trained.estimator.n_patients_ == len(table)
    # With alpha = 1 the model is plain Cox.
    assert abs(found.settings["difference"].iloc[2]) < 1e-5
    assert set(found.settings["worst_group"]) == {"site b"}


def test_plain_cox_is_chosen_where_others_help_the_worst_group_only_by_predicting_nothing(table):
    ridge = tune(table, CoxPH(), {"l2": [1.0, 5.0]}, tolerance=0.0, folds=2, verbose=False)
    # The c-index would not tell: the ridge shrinks all predictions, and the worst group loses less by them.
    assert (ridge.settings["worst_gain"].iloc[1:] > ridge.settings["worst_gain"].iloc[0]).all()
    assert ridge.parameters == {}
    assert ridge.reason.startswith("no setting predicts the worst group significantly better than plain Cox")
    assert type(ridge.trained.estimator) is CoxPH
    assert ridge.trained.estimator.l2 == 0


def test_the_default_grid_is_of_alpha_or_of_the_weight_of_a_penalty():
    assert default_grid(DROCox()) == {"alpha": [0.1, 0.15, 0.2, 0.3, 0.4, 0.5]}
    assert default_grid(RegularizedCox()) == {"weight": [1.0, 0.7, 0.4]}
    for estimator in (CoxPH(), NullModel()):
        with pytest.raises(ValueError, match="has no parameter that is tuned by default"):
            default_grid(estimator)


@pytest.mark.parametrize("role", ["id", "clusters"])
def test_rows_of_one_patient_or_cluster_share_a_fold(table, monkeypatch, role):
    taken = []

    def spied(model, X, y, parts, **options):
        taken.append(parts)
        assert len(np.unique(options["fit_options"]["clusters"])) == len(table.frame) // 2
        return cross_fitted(model, X, y, parts, **options)

    from drosurv.report.cross_fit import cross_fitted

    monkeypatch.setattr("drosurv.workflows.tuning.cross_fitted", spied)
    frame = table.frame.assign(who=np.arange(len(table.frame)) // 2)
    repeated = SurvivalTable.parse(frame, TargetColumns("days", "died"), **{role: "who"})
    found = tune(repeated, CoxPH(), {"l2": [0.1]}, folds=2, verbose=False)
    assert found.trained.observed == {"clusters": "who"}
    for train, scored in taken[0]:
        assert set(frame["who"].iloc[train]).isdisjoint(frame["who"].iloc[scored])
