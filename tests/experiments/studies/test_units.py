"""The smallest run of each study, which notices a change of the public functions that it calls."""

from functools import partial
from itertools import islice

import numpy as np
import pytest

from drosurv import CoxPH
from experiments.benchmark.encoded_part import split_in_two
from experiments.datasets.catalog import EVERY
from experiments.speed import clinical, data, peers
from experiments.studies import (
    coverage,
    coverage_cox_cv,
    curve_bands,
    curved_effects,
    false_alarms,
    monitor,
    noise,
    plan,
    power_of_versions,
    recalibration,
    repair,
    repair_null,
    shift,
    steps,
    subgroup_bounds,
)

GROUP, SEARCH = (0.25, 1.0, 0.4), (0.5, 0.3, 2.0, 3, 59)
CERTIFIED = ("late entry", "weights", "hospitals", "2 rows per patient", "fitted, strata", "fitted, cause 1")
# What a run measures, by name, and the run of a seed.
RUNS = {
    "monitor": (
        {"alarm", "change", "found"},
        partial(monitor.run, monitor.Setting("year", fitted=True), 1.1),
    ),
    "plan, group": ({"power"}, partial(plan.power_of_group, *GROUP)),
    "plan, slope": ({"width"}, partial(plan.width_of_slope, *GROUP[:2])),
    "plan, c-index": ({"c_index"}, partial(plan.c_index, *GROUP[:2])),
    "plan, search": ({"factor"}, partial(plan.bound_of_search, *SEARCH)),
    "plan, audit": ({"power"}, partial(plan.power_of_audit, 1.5, 2)),
    "plan, deviations": ({"above", "below"}, partial(plan.deviations, 2, 0.3)),
    "certify, folds": (
        {"significant", "overall"},
        partial(subgroup_bounds.cross_fitted_false_alarm, 300, 0.55, 59),
    ),
    **{
        f"certify, {kind}": ({"significant", "overall"}, partial(subgroup_bounds.right, kind, 59))
        for kind in CERTIFIED
    },
    "repair, size": ({"repairs"}, lambda seed: repair.work("d", "1000", "2.2", seed)[0]),
    "repair, frozen": ({"repairs"}, lambda seed: repair.work("f", "right, in steps", "", seed)[0]),
    **{
        f"repair, {kind}": ({"change"}, lambda seed, kind=kind: repair_null.work(kind, seed)[0])
        for kind in ("clusters, correlation 0.5", "frozen, clusters, correlation 0.5")
    },
    "versions": ({"any"}, lambda seed: power_of_versions.found(("right", "fitted Cox model", 200, seed))),
    "steps": ({"RepairedCox()", steps.MODELS[2]}, lambda seed: steps.work(0.16, 300, seed)[0]),
    "curved effects": ({"truth", "CoxPHCV()"}, lambda seed: curved_effects.work("straight", 60, seed)[0]),
}
ALARMS = {
    "functions": partial(false_alarms.exact, "Weibull", "functions", 100),
    "few in a group": partial(false_alarms.tiny_group, 100, 6, 0.0),
    "copies": partial(false_alarms.copies, 40, 2, "many times"),
    "counted rows": partial(false_alarms.weighted, 100, "three times"),
    "late entry": partial(false_alarms.late_entry, 400, "three times", late=0.5),
    "one cause": partial(false_alarms.one_cause, 100, "three times", True, threshold=0.3),
    "few times": partial(false_alarms.censored, "heavy", (3.0,), 100),
    "fresh": partial(false_alarms.fresh, "right, 80 x 6 rows"),
    "folds": partial(false_alarms.folds, "plain", 100),
    **{
        f"fitted, {kind}": partial(false_alarms.fitted, kind, 100, 100)
        for kind in ("plain", "strata", "late entry", "causes", "AFT", "discrete time")
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_measures_what_its_study_counts(name):
    measured, run = RUNS[name]
    found = run(0)
    assert measured <= set(found)
    # Nothing is to be found where a model is right.
    assert all(np.isfinite(found[one]) for one in measured - {"found"})


@pytest.mark.parametrize("name", ALARMS)
def test_each_kind_of_predictions_is_asked_about_everybody_and_groups(name):
    asked = ALARMS[name](0)["single"]
    assert {question.endswith(", group") for question in asked} == {True, False}


@pytest.mark.parametrize("design", ["dependent censoring", "clusters", "late entry", "two causes"])
def test_a_sample_of_a_design_has_intervals_of_metrics_and_decisions(design):
    found = coverage.evaluated(coverage.DESIGNS[design], 80, 0)
    assert {("concordance_index", "all"), ("sensitivity", "all")} <= set(found)


@pytest.mark.parametrize("setting", ["right, 55 % events", "right, 80 x 6 rows"])
def test_a_sample_of_a_setting_has_intervals_of_tests(setting):
    found = coverage.tested(setting, 80, 0)
    assert all(low <= value <= high for value, low, high in found.values())
    assert {who for _, who in found} == {"all", "True", "False"}


@pytest.mark.parametrize("clusters", [False, True])
def test_intervals_of_cross_validated_cox_are_three(clusters):
    assert len(coverage_cox_cv.covered((60, 2, 0.5, 0, clusters))) == len(coverage_cox_cv.INTERVALS)


def test_noise_gives_a_gain_and_the_penalty():
    gain, l2 = noise.gain((40, 2, 0.0, 0))
    assert gain < 0.01
    assert l2 > 0


def test_bands_of_right_predictions_are_known():
    held = curve_bands.covered((1000, 0.4, "exponential", True, (1.0, 0.0), np.zeros(14), 0))
    assert np.isfinite(held).all()


def test_right_models_of_few_patients_do_no_harm_to_many_others(monkeypatch):
    monkeypatch.setattr(false_alarms, "MANY", 200)
    asked = []
    monkeypatch.setattr(false_alarms, "ask", lambda *_, harmful, **__: asked.append(harmful()))
    for kind in ("strata", "late entry", "causes"):
        false_alarms.fitted(kind, 100, 100, 0, cause=1 if kind == "causes" else None)
    assert asked == [False] * 3


def test_fits_with_entry_times_and_strata_are_timed(monkeypatch):
    def missing(*_, **__):
        raise peers.Missing("not asked")

    monkeypatch.setattr(clinical, "correlated", lambda n, d: data.correlated(200, 3))
    monkeypatch.setattr(peers, "fit", missing)
    rows = list(islice(clinical.rows(), 5))
    assert [bool(row.measured) for row in rows] == [True, True, False, True, False]


def test_models_are_compared_on_data(downloads):
    (row,) = shift.compare(*split_in_two(EVERY.load("rossi"), 0), {"cox": CoxPH()})
    assert row["gain"] > row["worst_named_gain"]
    before, after = (recalibration.measured("colon", "CoxPH", wanted, 0) for wanted in (False, True))
    assert before["c-index"] == pytest.approx(after["c-index"])
    assert before["slope"] != after["slope"]
