"""Metrics of some of the patients: those of the catalogue, and functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Panel, value_of
from drosurv.evaluation.patients import Patients
from drosurv.target import IntArray

# A metric of the patients in the given rows.
RowMetric = Callable[[IntArray], float]


def by_name(metrics: Any) -> dict[str, Any]:
    """Metrics, given by name, as functions or both, each under its name."""
    found = dict(metrics) if isinstance(metrics, Mapping) else {_name(metric): metric for metric in metrics}
    if not found or len(found) < len(metrics):
        raise ArgumentError("metrics must hold at least one metric, each under a name of its own.")
    for metric in found.values():
        _name(metric)
    return found


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    if callable(metric):
        return getattr(metric, "__name__", "metric")
    raise ArgumentError(f"a metric must be a callable (y, risk) -> number or a name, got {metric!r}.")


def of_name(name: str, patients: Patients) -> RowMetric:
    """A metric of the catalogue that these groups can have."""
    known = [metric.name for metric in Panel(patients).of("patients") if metric.by_group]
    if name not in known:
        raise ArgumentError(
            f"metric {name!r} is not one that these groups can have; known by name: {known}. Those of survival "
            "curves need risk=Predictions(risk, survival, times)."
        )
    return lambda rows: value_of(CATALOGUE[name], patients.take(rows), np.ones(len(rows)))


def of_callable(metric: Callable[..., float], patients: Patients, params: Mapping[str, Any]) -> RowMetric:
    """A function of target and scores, with its part of the per-patient arrays."""
    structured, scores = patients.target.to_structured(), patients.risk
    arrays = {key: np.asarray(values) for key, values in params.items()}
    for key, values in arrays.items():
        if len(values) != len(scores):
            raise ArgumentError(
                Argument("sample_params"), f" {key!r} has {len(values)} entries for {len(scores)} patients."
            )
    return lambda rows: metric(
        structured[rows], scores[rows], **{key: values[rows] for key, values in arrays.items()}
    )
