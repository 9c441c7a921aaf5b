"""Studies of shifts, sizes and curves: what they draw is what they say."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, Trees
from experiments.benchmark.contenders import TunedTrees
from experiments.benchmark.encoded_part import split_in_two
from experiments.datasets.catalog import EVERY
from experiments.studies import curved_effects, monitor, repair_by_size, repair_data, shift, steps


@pytest.mark.parametrize("group", [group for group in repair_by_size.GROUPS if group != "no group"])
def test_about_an_eighth_to_a_fifth_of_the_patients_belong_to_each_group(group):
    data, inside = repair_by_size.draw(group, "level", 4000, 0)
    assert 0.12 < inside.mean() < 0.2
    assert 0.5 < data.y["event"].mean() < 0.7


def test_the_effect_of_age_is_reversed_inside_the_group_alone():
    data, inside = repair_by_size.draw("category", "effect", 8000, 0)
    age = ((data.X["age"] - 62) / 11).to_frame()
    coefs = [CoxPH().fit(age[rows], data.y[rows]).coef_[0] for rows in (inside, ~inside)]
    assert coefs[0] < -0.3
    assert coefs[1] > 0.3


def test_a_straight_truth_is_linear_and_a_curved_one_is_not():
    rng = np.random.default_rng(0)
    for shape, linear in (("straight", True), ("three curves", False)):
        X, _, risk = curved_effects.draw(shape, 500, rng)
        design = np.column_stack([np.ones(500), X])
        left = risk["risk"] - design @ np.linalg.lstsq(design, risk["risk"], rcond=None)[0]
        assert (np.abs(left).max() < 1e-8) == linear


def test_a_step_that_splines_follow_is_a_rule_for_the_linear_model():
    data, inside = steps.draw(0.16, 1500, 1)
    assert inside.mean() == pytest.approx(0.16, abs=0.03)
    found = steps.step(data.X, data.y, 1).holds(data.X)
    assert (found & inside).sum() >= 0.9 * (found | inside).sum()


def test_a_curve_is_no_step():
    data, _ = repair_data.one_draw({"smooth": 0.5, "minority": 0.0, "d": 6}, 1000, 1)
    assert steps.step(data.X, data.y, 1) is None


def test_a_difference_is_that_of_the_same_task():
    rows = pd.DataFrame(
        {
            "task": ["uis", "uis", "mgus", "mgus"],
            "model": ["cox", "dro-half"] * 2,
            "c_index": [0.5, 0.6, 0.7, 0.6],
        }
    )
    found = shift.difference(rows, "c_index", "dro-half", shift.NEW)
    assert found.to_dict() == pytest.approx({"uis": 0.1, "mgus": -0.1})


def test_new_tasks_are_one_per_dataset_and_apart_from_those_seen():
    new, seen = ([task.dataset for task in tasks] for tasks in (shift.NEW, shift.SEEN))
    assert len(set(new)) == len(new) == 20
    assert not set(new) & set(seen)


def test_rounds_of_trees_are_those_of_a_shorter_growth(downloads):
    train, test = split_in_two(EVERY.load("rossi"), 0)
    few, many = (CoxPH(Trees(lr=0.1, max_iter=k, early_stopping=False)).fit(train.X, train.y) for k in (5, 9))
    scores = TunedTrees._scores(None, many, test.X, 5)
    np.testing.assert_allclose(scores, TunedTrees._scores(None, few, test.X, 5), rtol=1e-12)
    assert np.ptp(scores - many.network_.scores(test.X.to_numpy())) > 0.01


def test_sides_of_a_task_are_apart_and_neither_is_empty(downloads):
    for name in ("compas, race", "compas, date", "hdfail"):
        train, test = shift.TASKS[name].rows()
        assert not set(train) & set(test)
        assert min(len(train), len(test)) > 1000


@pytest.mark.parametrize(
    ("setting", "ratio"),
    [
        (monitor.Setting(), 1.0),
        (monitor.Setting(seen="by risk"), 1.0),
        (monitor.Setting(seen="whole days"), 1.0),
        (monitor.Setting(ratio=2.0), 2.0),
        (monitor.Setting(ratio=0.5, group=1), 0.5),
    ],
)
def test_patients_in_use_have_as_many_events_as_their_setting_says(setting, ratio):
    observed = expected = 0.0
    for seed in range(12):
        log_risk, _, group, time, event = monitor.draw(setting, np.random.default_rng(seed))
        own = np.ones(len(group), bool) if setting.group is None else group == setting.group
        observed += event[own].sum()
        expected += (0.12 / monitor.YEAR * np.exp(log_risk) * time)[own].sum()
    assert observed / expected == pytest.approx(ratio, rel=4 / np.sqrt(observed))


def test_survivors_are_known_until_a_visit_and_deaths_at_once():
    _, _, _, time, event = monitor.draw(monitor.Setting(seen="visits"), np.random.default_rng(0))
    assert not (time[~event] % monitor.BETWEEN_VISITS).any()
    assert (time[event] % monitor.BETWEEN_VISITS).all()
    assert monitor.LAG > monitor.BETWEEN_VISITS
