"""One unit evaluated: its grid trained, and every setting scored on validation and test patients."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

import drosurv
from drosurv.datasets import Dataset, load_flc, load_seer, load_support, split
from drosurv.errors import InputError, OnProcessorOnly
from drosurv.metrics import integrated_brier_score
from drosurv.metrics.follow_up import brier_times
from drosurv.patients.groups import EVERYONE
from drosurv.patients.target import FloatArray
from drosurv.solvers.neighborhoods import standardise
from experiments.fingerprint import data_fingerprint
from experiments.grid import fit_grids
from experiments.paper.published_split import PublishedSplit
from experiments.paper.scoring import HeldOut, interval_columns
from experiments.paper.unit import CONTROLS, DRAWS, PARTS, STORED_METRICS, Unit
from experiments.runs import one_thread

# Risk scores (points, n) of a grid by part: "train", "validation" and "test", and "unscaled" (the training patients
# with features as they are) where the published IBS needs it. NaN throughout for a point whose training diverged.
TrainedScores = Mapping[str, FloatArray]


def evaluate_unit(
    unit: Unit, *, trained: Mapping[str, TrainedScores] | None = None, seer_file: str | None = None
) -> dict[str, Any]:
    """Train the grid of a unit as one batch, unless ``train_units`` has, and score it.

    Gives ``rows``, one per setting, attribute and part, each with every metric of ``STORED_METRICS`` and every one of
    the ``CONTROLS`` (NaN where there is none), and ``cpu_seconds`` of this process. `seer_file` is as in
    ``load_dataset``.
    """
    start = time.process_time()
    with one_thread(with_torch=trained is None):
        if trained is None:
            (trained,) = train_units([unit], seer_file=seer_file)
        rows = _score(unit, cohort_of(unit, seer_file), trained)
    return {"rows": rows, "cpu_seconds": time.process_time() - start}


def train_units(
    units: Sequence[Unit], *, seer_file: str | None = None, device: str = "cpu"
) -> list[dict[str, TrainedScores]]:
    """Train units that differ only in their repeat; on an accelerator all of them are one batch.

    One dict per unit, by attribute, or under ``EVERYONE`` where one training serves all attributes.
    """
    method, attributes = units[0].method, list(units[0].attributes)
    cohorts = [cohort_of(unit, seer_file) for unit in units]
    found: list[dict[str, TrainedScores]] = [{} for _ in units]
    # A group penalty looks at one attribute, the intersectional one at all of them together.
    for key in attributes if method.trains_by_attribute else (EVERYONE,):
        grids = [_estimators(units[0], device) for _ in units]
        seen = attributes if key == EVERYONE else [key]
        samples = [
            {
                "X": cohort.X["train"],
                "y": cohort.y_train,
                "sensitive_features": cohort.sensitive_features[seen],
            }
            for cohort in cohorts
        ]
        errors = fit_grids(grids, samples)
        # Training that diverged leaves a row without numbers; a device that cannot train the method is a mistake here.
        for error in chain.from_iterable(errors):
            if isinstance(error, OnProcessorOnly):
                raise error
        for predictions, grid, failed, cohort in zip(found, grids, errors, cohorts, strict=True):
            unscaled = {"unscaled": cohort.unscaled} if method.unscaled_baseline else {}
            predictions[key] = {
                part: np.stack(
                    [
                        np.full(len(X), np.nan) if error is not None else estimator.predict(X)
                        for estimator, error in zip(grid, failed, strict=True)
                    ]
                )
                for part, X in (cohort.X | unscaled).items()
            }
    return found


# Parameters that are the same for every method of the paper. Each parameter is named, so that another default of the
# library changes nothing here.
AS_PUBLISHED_TRAINING: dict[str, Any] = {
    "l2": 0.0,
    "ties": "breslow",
    "tol": None,
    "recalibrate": False,
    "verbose": False,
}
AS_PUBLISHED_NETWORK: dict[str, Any] = {
    "batch_size": None,
    "dropout": 0.0,
    "early_stopping": False,
    "validation_fraction": 0.2,
    "n_iter_no_change": 20,
    "module": None,
}
# Distance scale of the penalties of Keya et al. and of Rahman and Purushotham.
PENALTY_SCALE = 0.01


def _estimators(unit: Unit, device: str) -> list[Any]:
    method, protocol = unit.method, unit.protocol
    make: Any = PublishedSplit if method.stands_for else getattr(drosurv, method.estimator)
    return [
        make(
            **_network(unit, point.pop("lr")),
            solver="adam",
            random_state=protocol.initial_seed,
            # The published gradient has no form on tensors.
            device="cpu" if make is PublishedSplit else device,
            **AS_PUBLISHED_TRAINING,
            **({"scale": PENALTY_SCALE} if method.estimator == "RegularizedCox" else {}),
            **dict(method.parameters),
            **point,
        )
        for point in map(dict, method.points())
    ]


def _network(unit: Unit, lr: float) -> dict[str, Any]:
    """Return the parameters of a linear model, or of a perceptron, and of its steps."""
    steps = {"lr": lr, "max_iter": unit.protocol.max_iter}
    if unit.method.network == "linear":
        return {"network": "linear", **steps}
    network = drosurv.MLP(hidden=unit.protocol.hidden, **steps, **AS_PUBLISHED_NETWORK)
    # Beside a network these two are those of a linear model, and have to keep their defaults.
    return {"network": network, "lr": 0.01, "max_iter": 500}


def _score(unit: Unit, cohort: Cohort, trained: Mapping[str, TrainedScores]) -> list[dict[str, Any]]:
    """Score every setting.

    The interval of CI is bootstrapped and the misaligned IBS computed on the test part only: nothing is shown of the
    validation part, where the columns are NaN.
    """
    rows = []
    for key, found in trained.items():
        attributes = unit.attributes if key == EVERYONE else (key,)
        for number, point in enumerate(unit.method.points()):
            # Scaling scores changes no order, so all factors share one interval.
            intervals = _intervals(unit, cohort, found["test"][number])
            for setting in unit.method.scaled(point):
                scores = {part: setting.get("factor", 1.0) * found[part][number] for part in found}
                misaligned = _misaligned(cohort, scores)
                for part in PARTS:
                    measured = _measure(cohort, part, scores)
                    for attribute in attributes:
                        row = {"part": part, "attribute": attribute, **setting}
                        row |= dict.fromkeys((*STORED_METRICS, *CONTROLS), float("nan"))
                        row |= measured[EVERYONE] | measured[attribute]
                        if part == "test":
                            row |= intervals.get(attribute, {}) | misaligned
                        rows.append(row)
    return rows


def _measure(
    cohort: Cohort, part: str, scores: Mapping[str, FloatArray]
) -> defaultdict[str, dict[str, float]]:
    """Metrics by attribute, those of no attribute under ``EVERYONE``; nothing where training diverged."""
    risk, held_out = scores[part], cohort.held_out[part]
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    if not np.isfinite(risk).all():
        return found
    curves = held_out.breslow(risk, scores["train"])
    metrics = (*STORED_METRICS, "calibration_slope", "gain_over_null")
    for (attribute, metric), number in held_out.measure(risk, curves, metrics=metrics).items():
        found[attribute][metric] = number
    overall = found[EVERYONE]
    silent = overall["log_partial_likelihood"] - overall.pop("gain_over_null")
    overall["null_log_partial_likelihood"] = silent
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
    survival = held_out.breslow(risk[by_time], baseline_risk).survival(times)
    score = integrated_brier_score(held_out.follow_up, held_out.target, survival, times, grid="table")
    return {"misaligned_brier_score": score}


def _intervals(unit: Unit, cohort: Cohort, risk: FloatArray) -> dict[str, dict[str, Any]]:
    if not np.isfinite(risk).all() or unit.protocol.bootstrap == 0:
        return {}
    metric = "concordance_imparity"
    # All methods and repeats share one test set, of which the same patients are drawn for each.
    drawn = cohort.held_out["test"].imparity(risk, unit.protocol.bootstrap)
    return {
        attribute: interval_columns(metric, number) | {DRAWS: np.round(number.draws, 6).tolist()}
        for attribute, number in drawn.items()
    }


def load_dataset(name: str, *, as_published: bool = True, seer_file: str | None = None) -> Dataset:
    """One of the paper's three datasets before splitting, by default imputed and ordered as behind its tables.

    `seer_file` is a copy of SEER to read instead of the downloaded one, whose rows stand in another order than in the
    file behind the published split.
    """
    if name == "seer":
        return load_seer(as_published, seer_file)
    return {"flc": load_flc, "support": load_support}[name](as_published)


@dataclass(frozen=True, eq=False)
class Cohort:
    """One repeat's patients.

    `X` holds the features of "train", "validation" and "test", standardised by the training part, or by as much of it
    as the method says; `unscaled` are those of the training part as they are, and `y_train` and `sensitive_features`
    its target and attributes. `held_out` are "validation" and "test", ready to be scored.
    """

    X: dict[str, FloatArray]
    unscaled: FloatArray
    y_train: Any
    sensitive_features: pd.DataFrame
    held_out: dict[str, HeldOut]


@lru_cache(maxsize=1)
def cohort_of(unit: Unit, seer_file: str | None = None) -> Cohort:
    """The patients that a unit is trained and then scored on; its fingerprint must be that of the data found."""
    protocol = unit.protocol
    dataset, fingerprint = _loaded(unit.dataset, protocol.as_published, seer_file)
    if fingerprint != unit.data_fingerprint:
        raise InputError(
            f"{unit} was planned for other data than those found now (fingerprint "
            f"{unit.data_fingerprint[:12]} against {fingerprint[:12]}): plan again."
        )
    train, *others = split(dataset, unit.repeat, test_seed=protocol.test_seed)
    parts = dict(zip(("validation", "test"), others, strict=True))
    features = [np.asarray(part.X, dtype=np.float64) for part in (train, *others)]
    first = features[0][: round(len(features[0]) * unit.method.scaler_share)]
    X = dict(zip(("train", *parts), standardise(first, *features)[1:], strict=True))
    held_out = {
        name: HeldOut(
            train.y,
            X[name],
            part.y,
            part.sensitive_features[list(unit.attributes)],
            convention=protocol.convention,
        )
        for name, part in parts.items()
    }
    return Cohort(X, features[0], train.y, train.sensitive_features[list(unit.attributes)], held_out)


@lru_cache(maxsize=3)
def _loaded(name: str, as_published: bool, seer_file: str | None) -> tuple[Dataset, str]:
    """A process works on many units of the same data, and reads them once."""
    dataset = load_dataset(name, as_published=as_published, seer_file=seer_file)
    return dataset, data_fingerprint(dataset)
