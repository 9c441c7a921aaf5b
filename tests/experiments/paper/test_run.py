"""A unit's numbers, from scikit-learn, scikit-survival and the definitions written out."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sksurv.metrics import concordance_index_censored, cumulative_dynamic_auc, integrated_brier_score

import drosurv
from drosurv import CoxPH, RegularizedCox
from experiments.fingerprint import data_fingerprint
from experiments.paper import Protocol, run
from experiments.paper.methods import METHODS
from experiments.paper.run import _estimators, cohort_of, evaluate_unit, load_dataset, train_units
from experiments.paper.unit import CONTROLS, DRAWS, STORED_METRICS, Unit
from experiments.runs import one_thread

PROTOCOL = Protocol(max_iter=20, bootstrap=20)
ATTRIBUTES = ("age", "gender")


@pytest.fixture(scope="module")
def data():
    return load_dataset("flc")


@pytest.fixture(scope="module")
def make_unit(data):
    fingerprint = data_fingerprint(data)

    def make(method="cox", repeat=0, protocol=PROTOCOL, **changes):
        chosen = replace(METHODS[method], **changes)
        return Unit("flc", ATTRIBUTES, chosen, repeat, fingerprint, protocol)

    return make


@pytest.fixture(scope="module")
def parts(data):
    """Rows of training, validation and test part of repeat 0, and features scaled by scikit-learn."""
    event = data.y["event"]
    rest, test = train_test_split(np.arange(len(event)), test_size=0.2, stratify=event, random_state=7)
    train, validation = train_test_split(rest, test_size=0.2, stratify=event[rest], random_state=0)
    scaler = StandardScaler().fit(data.X.iloc[train].to_numpy())
    rows = {"train": train, "validation": validation, "test": test}
    return rows, {part: scaler.transform(data.X.iloc[r].to_numpy()) for part, r in rows.items()}


@pytest.fixture(scope="module")
def cox(make_unit):
    return evaluate_unit(make_unit())


def row_of(result, **wanted):
    (row,) = (row for row in result["rows"] if all(row[name] == value for name, value in wanted.items()))
    return row


def concordance_fraction(y, risk, member):
    """Algorithm B.1 of the paper, for the members against everybody."""
    time, event = y["time"], y["event"]
    earlier = (time[:, None] < time[None, :]) & event[:, None]
    tied_time = time[:, None] == time[None, :]
    higher, same = risk[:, None] > risk[None, :], risk[:, None] == risk[None, :]
    credit = np.where(earlier, higher + 0.5 * same, 0.0)
    credit += np.where(earlier.T, higher.T + 0.5 * same, 0.0)
    both = tied_time & event[:, None] & event[None, :]
    credit += np.where(both, np.where(same, 1.0, 0.5), 0.0)
    own = tied_time & event[:, None] & ~event[None, :]
    credit += np.where(own, np.where(higher, 1.0, 0.5), 0.0)
    credit += np.where(own.T, np.where(higher.T, 1.0, 0.5), 0.0)
    pairs = earlier | earlier.T | both | own | own.T
    np.fill_diagonal(credit, 0.0)
    np.fill_diagonal(pairs, False)
    return credit[member].sum() / pairs[member].sum()


def test_every_row_is_there_and_says_what_it_cost(cox, make_unit):
    rows = [(row["part"], row["attribute"], row["lr"]) for row in cox["rows"]]
    rates = [setting["lr"] for setting in make_unit().method.settings()]
    assert sorted(rows) == sorted(product(("validation", "test"), ATTRIBUTES, rates))
    assert all(row.keys() >= {*STORED_METRICS, *CONTROLS} for row in cox["rows"])
    assert cox["cpu_seconds"] > 0


@pytest.mark.parametrize("part", ["validation", "test"])
def test_the_metrics_are_those_of_the_published_tables(cox, data, parts, part):
    rows, X = parts
    model = CoxPH(solver="adam", lr=0.01, max_iter=20, random_state=1).fit(X["train"], data.y[rows["train"]])
    y_train, y = data.y[rows["train"]], data.y[rows[part]]
    risk, hazard = model.predict(X[part]), np.exp(model.predict(X[part]))
    row = row_of(cox, part=part, attribute="age", lr=0.01)
    c_index = concordance_index_censored(y["event"], y["time"], risk)[0]
    assert row["concordance_index"] == pytest.approx(c_index, abs=1e-12)
    times = np.percentile(y["time"], np.linspace(5, 81, 15))
    assert row["dynamic_auc"] == pytest.approx(cumulative_dynamic_auc(y_train, y, risk, times)[1], abs=1e-9)
    at = np.linspace(max(y_train["time"].min(), y["time"].min()), y["time"].max(), 50, endpoint=False)
    survival = model.predict_survival_function(X[part], times=at)
    brier = integrated_brier_score(y_train, y, survival, at)
    assert row["integrated_brier_score"] == pytest.approx(brier, abs=1e-9)
    sorted_curves = survival[np.argsort(-y["time"], kind="stable")]
    misaligned = integrated_brier_score(y_train, y, sorted_curves, at) if part == "test" else np.nan
    assert row["misaligned_brier_score"] == pytest.approx(misaligned, abs=1e-9, nan_ok=True)
    at_risk = (y["time"][None, :] >= y["time"][:, None]) @ hazard
    likelihood = (risk - np.log(at_risk))[y["event"]].mean()
    assert row["log_partial_likelihood"] == pytest.approx(likelihood, abs=1e-9)
    silent = -np.log((y["time"][None, :] >= y["time"][:, None]).sum(axis=1))[y["event"]].mean()
    assert row["null_log_partial_likelihood"] == pytest.approx(silent, abs=1e-9)
    unit_rows = X[part] / np.linalg.norm(X[part], axis=1, keepdims=True)
    excess = np.abs(hazard[:, None] - hazard[None, :]) - 0.01 * cdist(unit_rows, unit_rows)
    n = len(risk)
    individual = np.triu(np.maximum(excess, 0.0), 1).sum() / (n * (n - 1))
    assert row["individual_disparity"] == pytest.approx(individual, rel=1e-6)
    labels = data.sensitive_features.iloc[rows[part]]
    old = (labels["age"] == ">65").to_numpy()
    cells = (labels["age"] + labels["gender"]).to_numpy()
    smoothed = {
        cell: (hazard[cells == cell].sum() + 0.5) / ((cells == cell).sum() + 1) for cell in set(cells)
    }
    ratio = np.log(max(smoothed.values())) - np.log(min(smoothed.values()))
    assert row["intersectional_disparity"] == pytest.approx(ratio, rel=1e-9)
    gaps = [abs((hazard[side].sum() + 0.5) / (side.sum() + 1) - hazard.mean()) for side in (old, ~old)]
    assert row["group_disparity"] == pytest.approx(max(gaps), rel=1e-9)
    imparity = abs(concordance_fraction(y, risk, old) - concordance_fraction(y, risk, ~old))
    assert row["concordance_imparity"] == pytest.approx(imparity, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_of_an_estimator_is_named(make_unit, monkeypatch, method):
    named = []

    def constructor(cls, given):
        def make(**parameters):
            named.append(parameters.keys() == cls().get_params(deep=False).keys())
            return given(**parameters)

        return make

    made = [(drosurv, METHODS[method].estimator), (drosurv, "MLP"), (run, "PublishedSplit")]
    for module, name in made:
        if hasattr(module, name):
            cls = getattr(module, name)
            monkeypatch.setattr(module, name, constructor(cls, cls))
    _estimators(make_unit(method), "cpu")
    assert named
    assert all(named)


def test_attributes_share_what_does_not_look_at_them(cox):
    age, gender = (row_of(cox, part="test", attribute=name, lr=0.001) for name in ATTRIBUTES)
    for name in ("concordance_index", "integrated_brier_score", "individual_disparity"):
        assert age[name] == gender[name]
    assert age["group_disparity"] != gender["group_disparity"]


def test_only_the_test_part_has_an_interval(cox):
    for row in cox["rows"]:
        known = [np.isfinite(row[f"concordance_imparity_{end}"]) for end in ("se", "low", "high")]
        assert known == [row["part"] == "test"] * 3
        if row["part"] == "test":
            assert 0 <= row["concordance_imparity_low"] <= row["concordance_imparity"]
            assert row["concordance_imparity"] <= row["concordance_imparity_high"]


def test_scaled_scores_keep_every_order_and_shrink_every_disparity(make_unit, cox):
    result = evaluate_unit(make_unit("cox-scaled", factors=(1.0, 0.5, 0.1), grid=(("lr", (0.01,)),)))
    plain, half, tenth = (
        row_of(result, part="test", attribute="age", lr=0.01, factor=factor) for factor in (1.0, 0.5, 0.1)
    )
    same = row_of(cox, part="test", attribute="age", lr=0.01)
    np.testing.assert_allclose(plain.pop(DRAWS), same.pop(DRAWS))
    assert {name: plain[name] for name in same} == pytest.approx(same)
    for shrunk, factor in ((half, 0.5), (tenth, 0.1)):
        assert shrunk["concordance_index"] == pytest.approx(plain["concordance_index"])
        assert shrunk["concordance_imparity"] == pytest.approx(plain["concordance_imparity"])
        # The baseline of shrunken scores is estimated anew.
        assert shrunk["calibration_slope"] == pytest.approx(plain["calibration_slope"] / factor, rel=0.05)
    for name in ("individual_disparity", "group_disparity", "intersectional_disparity"):
        assert plain[name] > half[name] > tenth[name]


def test_a_group_penalty_is_trained_once_for_each_attribute(make_unit, data, parts):
    grid = (("weight", (1.0,)), ("lr", (0.01,)))
    result = evaluate_unit(make_unit("cox-keya-group", grid=grid))
    rows, X = parts
    y = data.y[rows["test"]]
    for attribute in ATTRIBUTES:
        labels = data.sensitive_features[attribute].iloc[rows["train"]]
        model = RegularizedCox("keya_group", weight=1.0, lr=0.01, max_iter=20, random_state=1, device="cpu")
        model.fit(X["train"], data.y[rows["train"]], sensitive_features=labels)
        c_index = concordance_index_censored(y["event"], y["time"], model.predict(X["test"]))[0]
        row = row_of(result, part="test", attribute=attribute)
        assert row["concordance_index"] == pytest.approx(c_index, abs=1e-9)
    age, gender = (row_of(result, part="test", attribute=name) for name in ATTRIBUTES)
    assert age["log_partial_likelihood"] != gender["log_partial_likelihood"]


def test_a_training_that_diverges_has_no_numbers_and_spoils_no_other(make_unit):
    result = evaluate_unit(make_unit("dro-cox", grid=(("alpha", (0.5,)), ("lr", (0.01, 1e308)))))
    for part in ("validation", "test"):
        assert np.isnan(row_of(result, part=part, attribute="age", lr=1e308)["concordance_index"])
        assert np.isfinite(row_of(result, part=part, attribute="age", lr=0.01)["concordance_index"])


def test_repeats_trained_together_score_as_if_trained_alone(make_unit):
    units = [make_unit("deepsurv", repeat, replace(PROTOCOL, max_iter=3, bootstrap=0)) for repeat in (0, 1)]
    _, trained = train_units(units, device="cpu")
    together, alone = evaluate_unit(units[1], trained=trained), evaluate_unit(units[1])
    for one, other in zip(together["rows"], alone["rows"], strict=True):
        assert one == pytest.approx(other, nan_ok=True)


def test_a_unit_planned_for_other_data_is_refused(make_unit):
    with pytest.raises(ValueError, match="flc/cox/repeat 0 was planned for other data"):
        cohort_of(replace(make_unit(), data_fingerprint="0" * 64))


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with one_thread(with_torch=True):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
