"""Metrics that a frame is asked for, by name or as callables, as functions of rows of patients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.evaluation.catalogue import CATALOGUE, Metric
from drosurv.evaluation.engine import Panel
from drosurv.evaluation.patients import Patients, Scoring
from drosurv.evaluation.predictions import predict_risk
from drosurv.target import IntArray, Target

# A metric of the patients in the given rows.
RowMetric = Callable[[IntArray], float]


@dataclass(frozen=True, eq=False)
class RowMetrics:
    """Metrics by the name they have in tables.

    Attributes
    ----------
    functions : dict of str to callable
        What each makes of rows of patients.
    named : tuple of str
        Those of the catalogue.
    patients : Patients or None
        Whom they are of; None where all metrics are callables.
    """

    functions: Mapping[str, RowMetric]
    named: tuple[str, ...]
    patients: Patients | None

    @classmethod
    def parse(
        cls, metrics: Any, target: Target, risk: Any, y_train: Any, sample_params: Mapping[str, Any]
    ) -> RowMetrics:
        """From what :class:`~drosurv.evaluation.SurvivalMetricFrame` is given."""
        n = len(target)
        given = _by_name(metrics)
        scores = predict_risk(risk, None, n, name="risk")
        structured = target.to_structured()
        params_of = {next(iter(given)): sample_params} if is_single(metrics) else sample_params
        unused = [name for name in params_of if not callable(given.get(name))]
        if sample_params and unused:
            raise ValueError(
                f"sample_params names {unused}, which are no callables among the metrics {[*given]}: "
                "only those take any."
            )
        named = tuple(metric for metric in given.values() if isinstance(metric, str))
        if named and y_train is None:
            raise ValueError(
                "y_train is needed for metrics given by name: they take censoring weights from it."
            )
        patients = Patients(Scoring(risk, None, target, y_train, name="risk")) if named else None

        def of_callable(metric: Callable[..., float], params: Mapping[str, Any]) -> RowMetric:
            arrays = {key: np.asarray(values) for key, values in params.items()}
            for key, values in arrays.items():
                if len(values) != n:
                    raise ValueError(f"sample_params {key!r} has {len(values)} entries for {n} patients.")
            return lambda rows: metric(
                structured[rows], scores[rows], **{key: values[rows] for key, values in arrays.items()}
            )

        def of_name(name: str) -> RowMetric:
            assert patients is not None
            metric, everyone = _metric(name, patients), patients
            return lambda rows: metric(everyone.take(rows), np.ones(len(rows)))

        functions = {
            name: of_name(metric) if isinstance(metric, str) else of_callable(metric, params_of.get(name, {}))
            for name, metric in given.items()
        }
        return cls(functions, named, patients)


def is_single(metrics: Any) -> bool:
    """Whether one metric was given, and not a collection of them."""
    return not isinstance(metrics, (Mapping, list, tuple))


def _by_name(metrics: Any) -> dict[str, Any]:
    if is_single(metrics):
        return {_name(metrics): metrics}
    found = dict(metrics) if isinstance(metrics, Mapping) else {_name(metric): metric for metric in metrics}
    if not found or len(found) < len(metrics):
        raise ValueError("metrics must hold at least one metric, each under a name of its own.")
    for metric in found.values():
        _name(metric)
    return found


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    if callable(metric):
        return getattr(metric, "__name__", "metric")
    raise ValueError(f"a metric must be a callable (y, risk) -> number or a name, got {metric!r}.")


def _metric(name: str, patients: Patients) -> Metric:
    panel = Panel(patients)
    known = [metric.name for metric in panel.of("patients") if metric.by_group]
    if name not in known:
        raise ValueError(
            f"metric {name!r} is not one that these groups can have; known by name: {known}. Those of survival "
            "curves need risk=Predictions(risk, survival, times)."
        )
    return CATALOGUE[name]
