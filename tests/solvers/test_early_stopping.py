"""Early stopping by a validation set."""

import numpy as np
import pytest

from drosurv import MLP, CoxPH, DeepHit, SubgroupRobustCox, Surv, Trees, datasets
from drosurv.patients.observation import Rows
from drosurv.patients.target import Target, with_fields
from drosurv.solvers import Options, TrainingData
from drosurv.solvers.solver import validation_split


def split(event, fraction, clusters=None, seed=0):
    """Rows of the training and the validation set, for patients with these event flags."""
    data = TrainingData.parse(
        np.zeros((len(event), 1)), Target(event, np.arange(1.0, len(event) + 1)), None, seed=seed
    )
    if clusters is not None:
        data = data.observed(
            Rows(clusters=np.unique(clusters, return_inverse=True)[1]), name="CoxPH", robust=False
        )
    return validation_split(Options("adam", "CoxPH", early_stopping=True, validation_fraction=fraction), data)


def test_the_validation_set_is_stratified_by_event_and_no_row_is_lost():
    event = np.arange(200) % 4 == 0
    train, validation = split(event, 0.2, seed=3)
    assert sorted([*train, *validation]) == list(range(200))
    assert event[validation].sum() == 10
    assert len(validation) == 40


def test_rows_of_a_cluster_stay_in_one_set():
    together = np.repeat(np.arange(100), 3)
    event = np.arange(300) % 6 == 2
    train, validation = split(event, 0.2, together)
    assert not set(together[train]) & set(together[validation])
    assert len(validation) == 60
    assert event[validation].sum() == 10
    # Rows of one patient, as fit is told of them.
    data = datasets.make_hidden_minority(n_samples=150, random_state=0)
    rows, later = np.repeat(np.arange(150), 2), np.tile([False, True], 150)
    time = np.where(later, data.y["time"][rows], data.y["time"][rows] / 2)
    y = Surv.from_arrays(data.y["event"][rows] & later, time)
    entry = np.where(later, data.y["time"][rows] / 2, 0.0)
    network = MLP(early_stopping=True, max_iter=3)
    whole = CoxPH(network, random_state=0).fit(data.X, with_fields(data.y, entry=np.zeros(150)))
    cut = CoxPH(network, random_state=0).fit(data.X.iloc[rows], with_fields(y, entry=entry, id=rows))
    # Adding to all scores changes no loss.
    risk, expected = (model.predict(data.X) for model in (cut, whole))
    np.testing.assert_allclose(risk - risk.mean(), expected - expected.mean(), atol=1e-5)


def test_the_best_epoch_is_kept():
    data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    settings = {"hidden": (32,), "lr": 0.05, "batch_size": 100}
    stopped = MLP(early_stopping=True, validation_fraction=0.3, n_iter_no_change=5, **settings)
    short = CoxPH(stopped, random_state=0)
    short.fit(data.X, data.y)
    assert short.status_ == "stopped_early"
    assert short.n_iter_ < 100
    # Without early stopping this network overfits.
    test = datasets.make_hidden_minority(n_samples=1000, random_state=1)
    network = MLP(max_iter=short.n_iter_ + 60, early_stopping=False, **settings)
    long = CoxPH(network, random_state=0).fit(data.X, data.y)
    assert short.score(test.X, test.y) > long.score(test.X, test.y)


@pytest.mark.parametrize(
    "model",
    [
        CoxPH("mlp", random_state=0),
        CoxPH("trees", random_state=0),
        DeepHit(random_state=0),
        SubgroupRobustCox(network="mlp", n_trees=5, recalibrate=False, random_state=0),
    ],
    ids=str,
)
def test_networks_stop_early_unless_told_otherwise(model):
    data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    assert model.fit(data.X, data.y).status_ == "stopped_early"
    assert model.converged_
    assert model.n_iter_ < 500
    kind = Trees if model.network == "trees" else MLP
    model.set_params(network=kind(early_stopping=False, max_iter=3))
    assert model.fit(data.X, data.y).status_ == "steps_done"


def test_where_nobody_can_be_validation_everybody_is_trained_on():
    data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    few = CoxPH(MLP(max_iter=3), random_state=0).fit(data.X[:30], data.y[:30])
    alike = SubgroupRobustCox(network=MLP(max_iter=3), kernel="neighbors", random_state=0).fit(data.X, data.y)
    papers = CoxPH(MLP(max_iter=3), solver="adam", random_state=0).fit(data.X, data.y)
    assert {few.status_, alike.status_, papers.status_} == {"steps_done"}
    with pytest.raises(ValueError, match="early_stopping must be one of"):
        CoxPH(MLP(early_stopping="sometimes")).fit(data.X, data.y)
