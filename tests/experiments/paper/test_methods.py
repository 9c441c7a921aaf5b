"""The methods are the paper's sixteen, its ablations, six rows more, and the split ones as published."""

from collections import Counter

import pytest

from experiments.paper.methods import AS_PUBLISHED, METHODS


def test_the_paper_has_eight_linear_and_eight_mlp_methods():
    kinds = Counter((method.origin, method.network) for method in METHODS.values())
    assert kinds == {
        ("paper", "linear"): 8,
        ("paper", "mlp"): 8,
        ("beyond", "linear"): 3,
        ("beyond", "mlp"): 3,
        ("ablation", "linear"): 5,
        ("ablation", "mlp"): 5,
        ("as published", "linear"): 6,
        ("as published", "mlp"): 6,
    }


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("cox", 3),
        ("cox-keya-group", 9),
        ("dro-cox", 18),
        ("dro-cox-split", 18),
        ("deep-dro-cox-cvar", 18),
        ("cox-scaled", 24),
    ],
)
def test_grids_have_the_size_of_the_papers(name, points):
    settings = list(METHODS[name].settings())
    assert len(settings) == points
    assert len({tuple(sorted(setting.items())) for setting in settings}) == points


def test_grids_hold_the_papers_values():
    values = {
        name: {setting.get(name) for method in METHODS.values() for setting in method.settings()} - {None}
        for name in ("lr", "weight", "alpha")
    }
    assert values == {
        "lr": {0.01, 0.001, 0.0001},
        "weight": {1, 0.7, 0.4},
        "alpha": {0.1, 0.15, 0.2, 0.3, 0.4, 0.5},
    }


def test_only_group_penalties_see_the_attribute_in_training():
    by_attribute = {name for name, method in METHODS.items() if method.trains_by_attribute}
    assert by_attribute == {"cox-keya-group", "cox-rp-group", "deepsurv-keya-group", "deepsurv-rp-group"}


def test_the_budget_is_set_by_the_plain_model_with_the_same_network():
    assert {method.reference for method in METHODS.values() if method.network == "linear"} == {"cox"}
    assert {method.reference for method in METHODS.values() if method.network == "mlp"} == {"deepsurv"}
    assert [name for name, method in METHODS.items() if name == method.reference] == ["cox", "deepsurv"]


def test_the_papers_robust_methods_use_the_published_constant():
    for name in ("dro-cox", "deep-dro-cox", "dro-cox-split", "deep-dro-cox-split"):
        assert dict(METHODS[name].parameters)["ball"] == "paper"


def test_the_parts_of_a_split_add_up():
    for n2 in (0.1, 0.2, 0.3, 0.4):
        assert dict(METHODS[f"dro-cox-split-n2-{n2}"].parameters)["n1"] == pytest.approx(1 - n2)


def test_every_split_method_has_one_with_the_published_mistakes_and_no_other_has():
    assert set(AS_PUBLISHED) == {
        name for name in METHODS if "split" in name and not name.endswith("published")
    }
    for name, published in AS_PUBLISHED.items():
        right = METHODS[name]
        assert (published.grid, published.parameters) == (right.grid, right.parameters)
        assert published.determinants() != right.determinants()
        assert published.scaler_share == dict(right.parameters)["n1"]
        assert "as published" in published.label
    assert {method.scaler_share for method in METHODS.values() if method.stands_for is None} == {1.0}


def test_the_shrinkage_control_starts_from_the_plain_model():
    assert METHODS["cox-scaled"].settings()[0]["factor"] == 1


def test_factors_need_no_training_of_their_own():
    scaled = METHODS["cox-scaled"]
    assert scaled.points() == METHODS["cox"].points() == METHODS["cox"].settings()
    assert len(scaled.settings()) == len(scaled.factors) * len(scaled.points())


def test_every_setting_of_a_plain_grid_is_trained_in_its_order():
    method = METHODS["dro-cox"]
    assert method.points() == method.settings()
