"""Networks and trees as values: names are their defaults, their settings are nested parameters, misuse is named."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import drosurv
from drosurv import MLP, CoxPH, DeepHit, DROCox, Trees, datasets
from drosurv.errors import ArgumentError
from drosurv.estimators.network_settings import as_network, readable_parameters

DATA = datasets.make_hidden_minority(n_samples=150, random_state=0)
OF_NETWORKS = {field.name for kind in (MLP, Trees) for field in fields(kind)} | {"tree_params"}
OF_LINEAR = {"lr", "max_iter"}


def make(n_features):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


def test_no_estimator_has_a_setting_of_networks():
    for name, cls in drosurv.all_estimators():
        assert not set(inspect.signature(cls).parameters) & (OF_NETWORKS - OF_LINEAR), name


@pytest.mark.parametrize(("name", "value"), [("mlp", MLP()), ("trees", Trees()), (make, MLP(module=make))])
def test_a_name_or_a_function_is_the_value_with_its_defaults(name, value):
    assert as_network(name) == value
    by_name, by_value = (CoxPH(network, random_state=0).fit(DATA.X, DATA.y) for network in (name, value))
    np.testing.assert_array_equal(by_name.predict(DATA.X), by_value.predict(DATA.X))


@pytest.mark.parametrize(
    "network", ["mlp", MLP(), make, "trees", Trees()], ids=["mlp", "MLP", "function", "trees", "Trees"]
)
@pytest.mark.parametrize(("name", "value"), [("lr", 0.1), ("max_iter", 7)])
def test_a_setting_of_linear_models_beside_a_network_is_an_error_with_the_remedy(network, name, value):
    kind = type(as_network(network)).__name__
    message = rf"{name} must be left out .*, got {value}: use network={kind}\({name}={value}\)"
    with pytest.raises(ArgumentError, match=message):
        CoxPH(network, **{name: value}).fit(DATA.X, DATA.y)
    with pytest.raises(ArgumentError, match=rf"use network=MLP\({name}={value}\)"):
        DeepHit(**{name: value}).fit(DATA.X, DATA.y)


@pytest.mark.parametrize("network", [MLP((3,), max_iter=4), Trees(max_iter=4)], ids=str)
def test_settings_are_nested_parameters_and_can_be_searched(network):
    model = DROCox(network=network, random_state=0, recalibrate=False)
    assert model.get_params()["network__max_iter"] == 4
    again = clone(model).set_params(network__lr=0.2)
    assert (again.network.lr, again.network.max_iter, model.network) == (0.2, 4, network)
    search = GridSearchCV(model, {"network__lr": [1e-9, 0.2]}, cv=2).fit(DATA.X, DATA.y)
    assert search.best_params_ == {"network__lr": 0.2}
    assert search.best_estimator_.network.lr == 0.2


@pytest.mark.parametrize(
    ("network", "remedy"),
    [
        ("mlp", r"MLP\(\)"),
        ("trees", r"Trees\(\)"),
        ("linear", r"MLP\(...\) or Trees"),
        (make, r"MLP\(module="),
    ],
)
def test_a_setting_of_a_network_that_is_a_name_is_an_error_with_the_remedy(network, remedy):
    with pytest.raises(ArgumentError, match=f"network__lr is a setting of a network .* use network={remedy}"):
        CoxPH(network).set_params(network__lr=0.1)
    assert CoxPH(network).set_params(network=MLP(), network__lr=0.1).network.lr == 0.1


def test_parameters_are_written_with_those_of_the_network():
    found = readable_parameters(DROCox(network=Trees(lr=0.1)))
    assert (found["network"], found["network__lr"], found["alpha"]) == ("Trees", 0.1, 0.5)
    assert readable_parameters(CoxPH())["network"] == "linear"
    assert str(CoxPH(MLP((8,), lr=0.1))) == "CoxPH(network=MLP(hidden=(8,), lr=0.1))"
