"""A split and its measures, by hand on small data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

from drosurv import CoxPH, NullModel, Surv
from drosurv.curves import parse_survival
from drosurv.datasets import Dataset, make_hidden_minority
from drosurv.metrics import concordance_index
from drosurv.metrics.likelihood_gain import likelihood_gains
from experiments.benchmark import tournament
from experiments.benchmark.contenders import CONTENDERS, ForestRanks, SurvivalForest, TunedTrees
from experiments.benchmark.encoded_part import split_in_two
from experiments.benchmark.measures import MEASURES, event_times, judge, time_grid
from experiments.benchmark.tournament import Match, evaluate_match


@pytest.fixture(scope="module", autouse=True)
def small_forests():
    """Trees are few where it is not looked at what they find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.benchmark.measures.TREES", 3)
        patch.setattr(SurvivalForest, "trees", 20)
        yield


@pytest.fixture(scope="module")
def dataset():
    data = make_hidden_minority(600, random_state=0)
    stage = np.where(data.X["x1"] > 0, "late", "early").astype(object)
    stage[:3] = "rare"
    return Dataset("made up", data.X.assign(stage=stage), data.y, data.sensitive_features)


@pytest.fixture(scope="module")
def parts(dataset):
    return split_in_two(dataset, 0)


def test_a_split_is_sixty_to_forty_with_equal_event_rates(dataset, parts):
    train, test = parts
    assert (len(train.X), len(test.X)) == (360, 240)
    rate = dataset.y["event"].mean()
    assert train.y["event"].mean() == pytest.approx(rate, abs=0.005)
    assert test.y["event"].mean() == pytest.approx(rate, abs=0.005)
    assert set(train.X.index) | set(test.X.index) == set(range(600))


def test_encoding_is_learnt_in_training_and_rare_levels_are_none(parts):
    train, test = parts
    assert train.X.columns.tolist() == test.X.columns.tolist()
    assert [name for name in train.X.columns if name.startswith("stage=")] in (
        ["stage=late"],
        ["stage=early"],
    )
    np.testing.assert_allclose(train.X.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(train.X.std(ddof=0), 1)


def test_measures_are_those_of_their_definitions(parts):
    train, test = parts
    model = CoxPH().fit(train.X, train.y)
    times = time_grid(train)
    risk = model.predict(test.X)
    survival = model.predict_survival_function(test.X, times=times)
    found = judge(train, test, risk, survival, times, 0)
    assert set(found) == set(MEASURES) - {"seconds_to_fit"}
    gains = likelihood_gains(train.y, test.y, parse_survival(survival, len(test.y), times, "step"))
    assert found["gain"] == pytest.approx(gains.mean())
    assert found["c_index"] == concordance_index(test.y, risk)
    labels = test.attributes["membership"].to_numpy()
    groups = [labels == label for label in ("minority", "majority")]
    assert found["worst_named_gain"] == pytest.approx(min(gains[group].mean() for group in groups))
    at_patient_times = model.predict_survival_function(test.X, times=np.sort(test.y["time"]))
    place = np.argsort(np.argsort(test.y["time"], kind="stable"), kind="stable")
    hazard = -np.log(at_patient_times[np.arange(len(place)), place])
    ratios = [(test.y["event"][g].sum() + 0.5) / (hazard[g].sum() + 0.5) for g in groups]
    assert found["worst_named_oe"] == pytest.approx(max(abs(np.log(ratios))), rel=1e-3)


def test_the_forest_finds_the_group_that_a_wrong_model_harms(parts, monkeypatch):
    monkeypatch.setattr("experiments.benchmark.measures.TREES", 20)
    train, test = parts
    times = time_grid(train)
    in_group = test.X["x1"].to_numpy() > 0
    base = np.exp(-np.linspace(0.02, 2, len(times)))[None, :]
    # Twice the hazard for one half of the patients, half for the other: the opposite of nothing.
    survival = np.where(in_group[:, None], base**6, base)
    found = judge(train, test, np.where(in_group, 1.8, 0.0), survival, times, 0)
    gains = likelihood_gains(train.y, test.y, parse_survival(survival, len(test.y), times, "step"))
    assert found["found_gain"] < gains.mean()
    assert found["found_oe"] > 0.3


def test_predictions_that_are_not_finite_are_refused(parts):
    train, test = parts
    times = time_grid(train)
    survival = np.full((len(test.X), len(times)), 0.5)
    with pytest.raises(ValueError, match="not finite"):
        judge(train, test, np.full(len(test.X), np.nan), survival, times, 0)


@pytest.fixture(scope="module")
def small_data():
    data = make_hidden_minority(340, random_state=1)
    tournament._parts.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tournament, "load", lambda name: data)
        yield
    tournament._parts.cache_clear()


# One of each class and network: how its parameters are set is not looked at here.
KINDS = {
    (type(one.model), repr(getattr(one.model, "network", one.model))): one.name for one in CONTENDERS.values()
}


@pytest.mark.parametrize("method", sorted(KINDS.values()))
def test_every_method_gives_every_measure(method, small_data, monkeypatch):
    contender = CONTENDERS[method]
    if contender.needs:
        pytest.importorskip(
            contender.needs, reason=f"{contender.needs} is installed for `make benchmark` only"
        )
    # Training is short: how well it goes is not looked at here.
    monkeypatch.setattr(TunedTrees, "rounds", (10,))
    parameters = contender.model.get_params() if isinstance(contender.model, BaseEstimator) else {}
    steps = [name for name in parameters if name.split("__")[-1] == "max_iter"]
    # Beside a network, max_iter is that of the network.
    nested = [name for name in steps if name.endswith("network__max_iter")]
    short = dict.fromkeys(nested or steps, 20)
    if short:
        model = clone(contender.model).set_params(**short)
        monkeypatch.setitem(CONTENDERS, method, replace(contender, model=model))
    found = evaluate_match(Match("small", method, 0, 0, "f" * 64))
    assert "error" not in found
    expected = set(MEASURES)
    assert set(found) == expected
    undefined = {"slope", "slope_error"} if method == "null" else set()
    assert {name for name in expected if not np.isfinite(found[name])} == undefined


def test_a_forest_with_a_cox_baseline_keeps_its_ranks_and_gains_likelihood(parts):
    train, test = parts
    forest, ranks = SurvivalForest(train, 0), ForestRanks(train, 0)
    risks = (forest.predict(test.X), ranks.predict(test.X))
    assert (np.argsort(risks[0], kind="stable") == np.argsort(risks[1], kind="stable")).all()
    times = time_grid(train)
    gains = [
        likelihood_gains(train.y, test.y, model.predict_survival_function(test.X, times), times).mean()
        for model in (forest, ranks)
    ]
    assert gains[1] > gains[0]


def test_a_method_that_fails_says_why_and_hides_nothing(small_data, monkeypatch):
    def fail(train, seed):
        raise ValueError("nothing to learn")

    monkeypatch.setitem(CONTENDERS, "cox", replace(CONTENDERS["cox"], model=fail))
    assert evaluate_match(Match("small", "cox", 0, 0, "f" * 64)) == {"error": "ValueError: nothing to learn"}


def test_times_are_the_event_times_of_training_and_the_null_model_gains_nothing(parts):
    train, test = parts
    times = time_grid(train)
    assert times.tolist() == sorted(set(train.y["time"][train.y["event"]]))
    survival = NullModel().fit(train.X, train.y).predict_survival_function(test.X, times=times)
    found = judge(train, test, np.zeros(len(test.X)), survival, times, 0)
    assert found["gain"] == pytest.approx(0, abs=1e-3)
    assert found["c_index"] == 0.5


def test_thinned_times_are_many_where_events_are_many():
    rng = np.random.default_rng(0)
    time = np.concatenate([rng.uniform(0, 1, 1500), rng.uniform(1, 10, 500)])
    data = pd.DataFrame({"a": rng.normal(size=2000)})
    groups = pd.DataFrame({"g": ["u", "v"] * 1000})
    train, _ = split_in_two(Dataset("many", data, Surv.from_arrays(np.ones(2000), time), groups), 0)
    thinned = event_times(train, 100)
    assert len(thinned) <= 100
    assert np.mean(thinned <= 1) == pytest.approx(0.75, abs=0.05)
