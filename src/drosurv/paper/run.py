"""One unit evaluated: its grid trained, and every setting scored on validation and test patients."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drosurv.evaluation.attributes import EVERYONE
from drosurv.metrics import integrated_brier_score
from drosurv.metrics.time_grid import brier_times
from drosurv.paper.cohort import Cohort, cohort_of
from drosurv.paper.result import CONTROLS, PARTS, STORED_METRICS
from drosurv.paper.training import EVERY, TrainedScores, train, trained_settings
from drosurv.paper.unit import Unit
from drosurv.runs import one_thread
from drosurv.target import FloatArray

# Draws the bootstrap's patients: the same for every setting, method and repeat, because all share one test set.
BOOTSTRAP_SEED = 0


def evaluate_unit(unit: Unit, *, seer_file: str | None = None) -> dict[str, Any]:
    """Train the grid of a unit as one batch and score it.

    Gives ``rows``, one per setting, attribute and part, as ``check_result`` describes them, and ``cpu_seconds`` of
    this process. `seer_file` is as in ``load_dataset``.
    """
    start = time.process_time()
    with one_thread(with_torch=True):
        cohort = cohort_of(unit, seer_file)
        (predictions,) = train([unit], [cohort])
        rows = score_unit(unit, cohort, predictions)
    return {"rows": rows, "cpu_seconds": time.process_time() - start}


def train_units(
    units: Sequence[Unit], *, seer_file: str | None = None, device: str = "cuda"
) -> list[dict[str, TrainedScores]]:
    """Train units that differ only in their repeat, as one batch; each entry is for :func:`evaluate_trained`."""
    return train(units, [cohort_of(unit, seer_file) for unit in units], device=device)


def evaluate_trained(
    unit: Unit, *, trained: Mapping[str, TrainedScores], seer_file: str | None = None
) -> dict[str, Any]:
    """Score a unit that :func:`train_units` has trained; the result is that of :func:`evaluate_unit`."""
    start = time.process_time()
    with one_thread(with_torch=False):
        rows = score_unit(unit, cohort_of(unit, seer_file), trained)
    return {"rows": rows, "cpu_seconds": time.process_time() - start}


def score_unit(unit: Unit, cohort: Cohort, predictions: Mapping[str, TrainedScores]) -> list[dict[str, Any]]:
    """Score every setting of a trained unit.

    The interval of CI is bootstrapped and the misaligned IBS computed on the test part only: nothing is shown of the
    validation part, where the columns are NaN.
    """
    trained = trained_settings(unit.method)
    rows = []
    for key, found in predictions.items():
        attributes = unit.attributes if key == EVERY else (key,)
        intervals: dict[int, dict[str, dict[str, float]]] = {}
        for setting in unit.method.settings():
            number = trained.index({name: value for name, value in setting.items() if name != "factor"})
            scores = {part: setting.get("factor", 1.0) * found[part][number] for part in found}
            if number not in intervals:
                # Scaling scores changes no order, so all factors share one interval.
                intervals[number] = _intervals(unit, cohort, scores["test"])
            misaligned = _misaligned(cohort, scores)
            for part in PARTS:
                measured = _measure(cohort, part, scores)
                for attribute in attributes:
                    row = {"part": part, "attribute": attribute, **setting}
                    row |= dict.fromkeys((*STORED_METRICS, *CONTROLS), float("nan"))
                    row |= measured.get(EVERY, {}) | measured.get(attribute, {})
                    if part == "test":
                        row |= intervals[number].get(attribute, {}) | misaligned
                    rows.append(row)
    return rows


def _measure(cohort: Cohort, part: str, scores: Mapping[str, FloatArray]) -> dict[str, dict[str, float]]:
    """Metrics by attribute, those of no attribute under ``EVERY``; nothing where training diverged."""
    risk = scores[part]
    if not np.isfinite(risk).all():
        return {}
    held_out = cohort.held_out[part]
    curves = held_out.breslow(risk, scores["train"])
    measured = held_out.measure(
        risk, curves, metrics=(*STORED_METRICS, "calibration_slope", "gain_over_null")
    )
    found: dict[str, dict[str, float]] = {EVERY: {}}
    for (attribute, metric), number in measured.items():
        key = EVERY if attribute == EVERYONE else attribute
        found.setdefault(key, {})[metric] = number.estimate
    silent = found[EVERY]["log_partial_likelihood"] - found[EVERY].pop("gain_over_null")
    found[EVERY]["null_log_partial_likelihood"] = silent
    return found


def _misaligned(cohort: Cohort, scores: Mapping[str, FloatArray]) -> dict[str, float]:
    """The published IBS, rebuilt to explain published numbers: each patient's curve against another's outcome.

    Curves are those of patients sorted by time, labels stand in their own order.
    """
    held_out, risk = cohort.held_out["test"], scores["test"]
    baseline_risk = scores.get("unscaled", scores["train"])
    if not (np.isfinite(risk).all() and np.isfinite(baseline_risk).all()):
        return {}
    by_time = np.argsort(-held_out.target.time, kind="stable")
    times = brier_times(held_out.follow_up, held_out.target, grid="table")
    survival = held_out.breslow(risk[by_time], baseline_risk).at(times)
    score = integrated_brier_score(held_out.follow_up, held_out.target, survival, times)
    return {"misaligned_brier_score": score}


def _intervals(unit: Unit, cohort: Cohort, risk: FloatArray) -> dict[str, dict[str, float]]:
    if not np.isfinite(risk).all() or unit.protocol.bootstrap == 0:
        return {}
    metric = "concordance_imparity"
    drawn = cohort.held_out["test"].measure(
        risk, metrics=[metric], replicates=unit.protocol.bootstrap, random_state=BOOTSTRAP_SEED
    )
    found = {}
    for (attribute, _), number in drawn.items():
        interval = number.interval(0.95)
        ends = {"se": interval.standard_error, "low": interval.low, "high": interval.high}
        found[attribute] = {f"{metric}_{name}": value for name, value in ends.items()}
    return found
