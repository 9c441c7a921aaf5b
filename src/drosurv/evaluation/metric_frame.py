"""The deprecated SurvivalMetricFrame; the result of `evaluate` has the same attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, warn_caller
from drosurv.evaluation.attributes import intersection_of, parse_attributes, rows_by_group
from drosurv.evaluation.evaluate import evaluate
from drosurv.evaluation.predictions import predict_risk
from drosurv.evaluation.result import compare_groups
from drosurv.groups import Missing
from drosurv.target import parse_target

_MOVED = {
    "gaps": "to_frame(), whose rows of kind 'gap' have intervals and tests",
    "counts": "groups",
    "group_min": "by_group.min()",
    "group_max": "by_group.max()",
}


class SurvivalMetricFrame:
    """Deprecated: metrics overall and by group. Use :func:`~drosurv.evaluation.evaluate`.

    The result of ``evaluate`` has ``overall``, ``by_group``, ``difference()`` and ``ratio()``. For other functions,
    control features or parameters per patient, use fairlearn's ``MetricFrame``: the functions of ``drosurv.metrics``
    work there. This class will be removed in 0.4.

    Parameters
    ----------
    metrics : str, callable ``(y, risk) -> float``, or dict or list of them
        A name is that of a metric in the table of ``evaluate``.
    y : structured array, (n,)
        Event and time of the patients.
    risk : (n,) array or Predictions
        Risk scores, higher meaning sooner; or with survival curves, for metrics that need them.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels
        Groups of the patients; several columns mean their intersections.
    y_train : structured array or FollowUp, optional
        Training targets, for metrics given by name.
    missing, min_group, min_events
        As in ``evaluate``.

    Examples
    --------
    >>> from drosurv import Surv
    >>> from drosurv.evaluation import SurvivalMetricFrame
    >>> from drosurv.metrics import concordance_index
    >>> y = Surv.from_arrays([True] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> risk, sex = [6.0, 5.0, 1.0, 3.0, 2.0, 4.0], ["f", "m", "f", "m", "f", "m"]
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     frame = SurvivalMetricFrame(metrics=concordance_index, y=y, risk=risk, sensitive_features=sex)
    >>> frame.by_group.round(3).to_dict(), round(frame.difference(), 3)
    ({'f': 0.667, 'm': 0.667}, 0.0)
    """

    def __init__(
        self,
        *,
        metrics: Any,
        y: Any,
        risk: Any,
        sensitive_features: Any,
        y_train: Any = None,
        missing: Missing = "group",
        min_group: int = 50,
        min_events: int = 10,
        control_features: Any = None,
        sample_params: Any = None,
    ) -> None:
        for name, remedy in (
            ("control_features", "call drosurv.evaluate on the patients of each level"),
            ("sample_params", "pass metrics that hold them, such as a functools.partial"),
        ):
            if locals()[name] is not None:
                raise ArgumentError(name, f"{name} was removed in 0.3: {remedy}.")
        warn_caller(
            "SurvivalMetricFrame will be removed in 0.4: use drosurv.evaluate, whose result has overall, by_group, "
            "difference() and ratio().",
            category=DeprecationWarning,
        )
        target = parse_target(y, require_event=False)
        attributes = parse_attributes(sensitive_features, len(target), missing=missing)
        if not attributes:
            raise ArgumentError(
                "sensitive_features", "sensitive_features must be given: a frame by group needs groups."
            )
        attribute = attributes[0] if len(attributes) == 1 else intersection_of(attributes)
        self._single = not isinstance(metrics, (Mapping, list, tuple))
        given = _by_name([metrics] if self._single else metrics)
        rows = {group: inside for (_, group), inside in rows_by_group([attribute]).items()}
        self._overall = pd.Series(np.nan, [*given], dtype=float)
        self._by_group = pd.DataFrame(np.nan, pd.Index([*rows], name=attribute.name), [*given], dtype=float)
        if any(isinstance(metric, str) for metric in given.values()):
            found = evaluate(
                risk,
                None,
                target,
                y_train=y_train,
                sensitive_features={attribute.name: attribute.groups},
                n_bootstrap=0,
                min_group=min_group,
                min_events=min_events,
            )
        for name, metric in given.items():
            if isinstance(metric, str):
                if metric not in found.by_group:
                    raise ArgumentError.must("metrics", f"be among {[*found.by_group]}", metric)
                self._overall[name] = found.value(metric)
                self._by_group[name] = [found.value(metric, attribute.name, group) for group in rows]
            else:
                structured, scores = (
                    target.to_structured(),
                    predict_risk(risk, None, len(target), name="risk"),
                )
                self._overall[name] = metric(structured, scores)
                self._by_group[name] = [
                    metric(structured[inside], scores[inside]) for inside in rows.values()
                ]

    @property
    def overall(self) -> Any:
        """Metrics of all patients."""
        return self._shaped(self._overall)

    @property
    def by_group(self) -> Any:
        """Metrics of every group."""
        return self._by_group.iloc[:, 0] if self._single else self._by_group

    def difference(self, method: Literal["between_groups", "to_overall"] = "between_groups") -> Any:
        """Largest absolute difference between two groups, or, "to_overall", of a group from all patients."""
        return self._shaped(compare_groups(self._by_group, self._overall, method, "difference"))

    def ratio(self, method: Literal["between_groups", "to_overall"] = "between_groups") -> Any:
        """Smallest ratio of what :meth:`difference` compares, at most 1; `method` as there."""
        return self._shaped(compare_groups(self._by_group, self._overall, method, "ratio"))

    def _shaped(self, values: pd.Series) -> Any:
        return float(values.iloc[0]) if self._single else values

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an error that says what replaces a removed attribute."""
        instead = f": use drosurv.evaluate(...).{_MOVED[name]}." if name in _MOVED else "."
        raise AttributeError(f"SurvivalMetricFrame has no attribute {name!r}{instead}")


def _by_name(metrics: Any) -> dict[str, str | Callable[..., float]]:
    """Return metrics, given by name or as functions, each under its name."""
    listed = metrics if isinstance(metrics, Mapping) else {_name(metric): metric for metric in metrics}
    if not listed or len(listed) < len(metrics):
        raise ArgumentError("metrics", "metrics must hold at least one metric, each under a name of its own.")
    for metric in listed.values():
        _name(metric)
    return dict(listed)


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    if callable(metric):
        return getattr(metric, "__name__", "metric")
    raise ArgumentError(
        "metrics", f"a metric must be a callable (y, risk) -> number or a name, got {metric!r}."
    )
