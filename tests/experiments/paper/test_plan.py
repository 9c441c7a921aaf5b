"""Which units the experiments need: each once, with the references they are judged by."""

from collections import Counter

import pytest

from experiments.paper.methods import METHODS
from experiments.paper.plan import EXPERIMENTS, find_experiments, plan_units

PRINTS = {"flc": "a" * 64, "support": "b" * 64, "seer": "c" * 64}


def kinds(units):
    return Counter((unit.dataset, unit.method.name) for unit in units)


def test_there_are_seven_attribute_tables_of_24_methods_and_the_ablations():
    tables = [experiment for experiment in EXPERIMENTS.values() if len(experiment.methods) == 24]
    assert [experiment.name for experiment in tables] == [
        *("flc-age", "flc-gender", "support-age", "support-gender", "support-race", "seer-age", "seer-race")
    ]
    assert [name for name in EXPERIMENTS if name not in {table.name for table in tables}] == [
        *("alpha", "split-size", "sides")
    ]


def test_the_whole_plan_trains_every_method_once_per_dataset_and_repeat():
    counts = kinds(plan_units(find_experiments(), PRINTS))
    assert set(counts.values()) == {10}
    # 24 methods on three datasets; 4 sizes and one side, linear and MLP, right and as published, on FLC alone.
    assert len(counts) == 3 * 24 + 2 * 2 * 5
    assert counts.keys() >= {("flc", name) for name in METHODS}


def test_two_tables_of_one_dataset_need_no_more_units_than_one():
    one, two = (
        plan_units(find_experiments(only), PRINTS) for only in (["flc-age"], ["flc-age", "flc-gender"])
    )
    assert one == two
    assert {unit.attributes for unit in one} == {("age", "gender")}


def test_cox_comes_with_linear_methods_and_deepsurv_with_mlps():
    linear = plan_units(find_experiments(["flc-age"]), PRINTS, methods=["dro-cox"], repeats=3)
    assert kinds(linear) == {("flc", "cox"): 3, ("flc", "dro-cox"): 3}
    deep = plan_units(find_experiments(["seer-race"]), PRINTS, methods=["deep-dro-cox"], repeats=1)
    assert kinds(deep) == {("seer", "cox"): 1, ("seer", "deepsurv"): 1, ("seer", "deep-dro-cox"): 1}


def test_an_experiment_without_the_wanted_method_needs_nothing():
    assert plan_units(find_experiments(["alpha"]), PRINTS, methods=["deepsurv"]) == ()


def test_repeats_come_one_after_the_other():
    repeats = [unit.repeat for unit in plan_units(find_experiments(["flc", "seer"]), PRINTS, repeats=2)]
    assert repeats == sorted(repeats)


def test_the_ablations_show_the_published_mlps_at_the_setting_that_gives_them():
    settings = {
        name: dict(EXPERIMENTS["sides"].setting_of(METHODS[name])) for name in EXPERIMENTS["sides"].methods
    }
    assert settings.pop("deep-dro-cox-split-published") == {"alpha": 0.5, "lr": 0.0001}
    assert settings.pop("deep-dro-cox-split-one-side-published") == {"alpha": 0.5, "lr": 0.0001}
    assert list(settings.values()) == [{"alpha": 0.1, "lr": 0.01}] * 6
    assert EXPERIMENTS["flc-age"].setting_of(METHODS["deep-dro-cox-split-published"]) is None


def test_a_dataset_stands_for_its_tables():
    assert [experiment.name for experiment in find_experiments(["support"])] == [
        *("support-age", "support-gender", "support-race")
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: find_experiments(["flc-race"]),
            "'flc-race' is not an experiment or a dataset; choose from flc-age",
        ),
        (lambda: plan_units(find_experiments(), PRINTS, methods=["cocks"]), "'cocks' is not a method"),
        (
            lambda: plan_units(find_experiments(), PRINTS, repeats=0),
            "repeats must be a whole number, at least 1, got 0",
        ),
    ],
)
def test_a_plan_that_cannot_be_made_says_what_to_change(call, message):
    with pytest.raises(ValueError, match=message):
        call()
