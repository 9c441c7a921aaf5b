"""Metrics of survival models group by group, under the names fairlearn gives its MetricFrame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.errors import ArgumentError, warn_caller
from drosurv.evaluation.attributes import (
    Attribute,
    Count,
    intersection_of,
    parse_attributes,
    warn_of_small_groups,
    warn_of_undefined,
)
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Panel, frame_of, replicates_of, rows_of, value_of
from drosurv.evaluation.patients import Patients, Scoring
from drosurv.groups import Missing
from drosurv.metrics.inference import largest_gap
from drosurv.presentation import AND
from drosurv.target import FloatArray, IntArray, parse_target

Compare = Literal["between_groups", "to_overall"]
# A metric of the patients in the given rows.
RowMetric = Callable[[IntArray], float]


class SurvivalMetricFrame:
    """Deprecated: metrics overall and by group, with group sizes, events and censoring.

    Use :func:`~drosurv.evaluation.evaluate`, whose result has ``overall``, ``by_group``, ``difference()`` and
    ``ratio()``. This class will be removed in 0.4.

    Several sensitive features mean their intersections. With control features everything is computed inside
    each of their levels.

    Parameters
    ----------
    metrics : callable, str, or dict or list of them
        A callable takes ``(y, risk)`` of a group, and what `sample_params` holds for it, and returns a number;
        a name is that of a metric in :func:`~drosurv.evaluate`'s table that groups can have, such as
        "concordance_index" or "brier_skill".
    y : structured array, (n,)
        What happened to the patients.
    risk : (n,) array or Predictions
        Risk scores, higher meaning sooner; or with survival curves, for metrics that need them.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels
        Groups of the patients.
    control_features : as sensitive_features, optional
        Groups to compare inside of.
    y_train : structured array or FollowUp, optional
        Training targets, for named metrics.
    sample_params : dict, optional
        Per-patient arrays, such as ``{"sample_weight": w}``, that callables get the group's part of; with
        several metrics a dict of metric to such a dict.
    missing : "group" or "drop"
        Whether patients without a label form a group of their own or are left out altogether.
    min_group, min_events : int
        Groups with fewer patients or events are warned of.

    Examples
    --------
    >>> from drosurv import Surv
    >>> from drosurv.evaluation import SurvivalMetricFrame
    >>> from drosurv.metrics import concordance_index
    >>> y = Surv.from_arrays([True] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> risk, sex = [6.0, 5.0, 1.0, 3.0, 2.0, 4.0], ["f", "m", "f", "m", "f", "m"]
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     frame = SurvivalMetricFrame(
    ...         metrics=concordance_index, y=y, risk=risk, sensitive_features=sex, min_group=1, min_events=1
    ...     )
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
        control_features: Any = None,
        y_train: Any = None,
        sample_params: Mapping[str, Any] | None = None,
        missing: Missing = "group",
        min_group: int = 50,
        min_events: int = 10,
    ) -> None:
        warn_caller(
            "SurvivalMetricFrame will be removed in 0.4: use drosurv.evaluate, whose result has overall, by_group, "
            "difference() and ratio().",
            category=DeprecationWarning,
        )
        self._target = parse_target(y, require_event=False)
        n = len(self._target)
        self._controls = parse_attributes(
            control_features, n, missing=missing, name="control_features", at_least=1
        )
        self._sensitive = parse_attributes(sensitive_features, n, missing=missing)
        if not self._sensitive:
            raise ArgumentError(
                "sensitive_features", "sensitive_features must be given: a frame by group needs groups."
            )
        self._attributes = [*self._controls, *self._sensitive]
        names = [attribute.name for attribute in self._attributes]
        if len(set(names)) < len(names):
            raise ArgumentError(
                "control_features", f"control_features and sensitive_features share a name: {names}."
            )
        kept = np.logical_and.reduce([attribute.groups.kept for attribute in self._attributes])
        self._kept: IntArray = np.flatnonzero(kept)
        self._single = not isinstance(metrics, (Mapping, list, tuple))
        given = _by_name([metrics] if self._single else metrics)
        self._named = [metric for metric in given.values() if isinstance(metric, str)]
        params = {next(iter(given)): sample_params} if self._single else sample_params or {}
        unused = [name for name in params if not callable(given.get(name))]
        if sample_params and unused:
            raise ArgumentError(
                "sample_params",
                f"sample_params names {unused}, which are no callables among the metrics {[*given]}: "
                "only those take any.",
            )
        if self._named and y_train is None:
            raise ArgumentError(
                "y_train", "y_train is needed for metrics given by name: they take censoring weights from it."
            )
        self._patients = Patients(Scoring(risk, None, self._target, y_train, name="risk"))
        # Groups with different follow-up get censoring weights by group, as in an evaluation.
        cells = intersection_of(self._attributes)
        weighted = Panel(self._patients, [cells]).weighted(cells.name)
        whole, parts = (
            {
                name: _of_name(metric, patients)
                if isinstance(metric, str)
                else _of_callable(metric, patients, params.get(name) or {})
                for name, metric in given.items()
            }
            for patients in (self._patients, weighted)
        )
        self._counts = {
            key: Count.of(self._target.take(rows)) for key, rows in self._cells(self._attributes).items()
        }
        attribute = AND.join(names)
        named = {(attribute, AND.join(key)): count for key, count in self._counts.items() if count.n}
        self._small = warn_of_small_groups(named, min_group=min_group, min_events=min_events)
        self._by_group = self._table(self._attributes, parts)
        self._overall = self._table(self._controls, whole)
        # Levels of the control features, of which there is one without any, by groups, by metrics.
        self._values = self._by_group.to_numpy().reshape(len(self._overall), -1, len(given))

    @property
    def sensitive_levels(self) -> list[str]:
        """Names of the sensitive features."""
        return [attribute.name for attribute in self._sensitive]

    @property
    def control_levels(self) -> list[str] | None:
        """Names of the control features, or None."""
        return [attribute.name for attribute in self._controls] or None

    @property
    def overall(self) -> Any:
        """Metrics of all patients, or of each level of the control features."""
        return self._shaped(self._overall.to_numpy())

    @property
    def by_group(self) -> Any:
        """Metrics of every group; NaN for combinations of features that hold nobody."""
        return self._by_group.iloc[:, 0] if self._single else self._by_group

    @cached_property
    def counts(self) -> pd.DataFrame:
        """Patients ``n``, ``events`` and share of ``censoring`` of every group."""
        rows = [(*count, count.censoring) for count in self._counts.values()]
        return pd.DataFrame(rows, self._by_group.index, columns=["n", "events", "censoring"])

    def group_min(self) -> Any:
        """Lowest value over the groups, of every metric (and level of the control features)."""
        return self._shaped(np.fmin.reduce(self._values, axis=1))

    def group_max(self) -> Any:
        """Highest value over the groups, of every metric (and level of the control features)."""
        return self._shaped(np.fmax.reduce(self._values, axis=1))

    def difference(self, method: Compare = "between_groups") -> Any:
        """Largest absolute difference between two groups, or, "to_overall", of a group from all patients."""
        if self._is_between(method):
            return self._shaped(largest_gap(self._values.swapaxes(1, 2)))
        away = np.abs(self._values - self._overall.to_numpy()[:, None])
        return self._shaped(np.fmax.reduce(away, axis=1))

    def ratio(self, method: Compare = "between_groups") -> Any:
        """Smallest ratio of what :meth:`difference` compares, turned to be at most 1; `method` as there."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._is_between(method):
                lowest, highest = np.fmin.reduce(self._values, axis=1), np.fmax.reduce(self._values, axis=1)
                compared = ~np.isnan(largest_gap(self._values.swapaxes(1, 2)))
                return self._shaped(np.where(compared, lowest / highest, np.nan))
            ratios = self._values / self._overall.to_numpy()[:, None]
            return self._shaped(np.fmin.reduce(np.where(ratios > 1, 1 / ratios, ratios), axis=1))

    def gaps(
        self,
        *,
        n_bootstrap: int = 500,
        n_permutations: int | None = None,
        level: float = 0.95,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> pd.DataFrame:
        """Gaps between groups of the metrics given by name, with intervals and tests, as an evaluation has them.

        Parameters are as in :func:`~drosurv.evaluate`. There is one row per metric, with the columns of
        :meth:`EvaluationResult.to_frame <drosurv.evaluation.EvaluationResult.to_frame>`.
        """
        if self._controls or not self._named:
            raise ArgumentError(
                "metrics",
                "gaps are tested for metrics given by name, without control_features: name a metric of evaluate, "
                "such as 'concordance_index'.",
            )
        panel = Panel(self._patients, [intersection_of(self._sensitive)], self._named)
        resampling: dict[str, Any] = {"random_state": random_state, "threads": threads}
        permutations = n_bootstrap if n_permutations is None else n_permutations
        drawn = panel.draw(replicates_of("n_bootstrap", n_bootstrap), **resampling)
        p_values = panel.p_values(replicates_of("n_permutations", permutations), **resampling)
        rows = rows_of(panel, drawn, p_values, self._small, level)
        return frame_of([row for row in rows if row.kind == "gap"])

    def _is_between(self, method: Compare) -> bool:
        if method not in ("between_groups", "to_overall"):
            raise ArgumentError.must("method", "be 'between_groups' or 'to_overall'", method)
        return method == "between_groups"

    def _shaped(self, values: FloatArray) -> Any:
        """A metric of each level (levels, metrics); without the level where there is one, a single metric unnamed."""
        found = pd.DataFrame(values, self._overall.index, self._overall.columns)
        inside: Any = found if self._controls else found.iloc[0].rename(None)
        if not self._single:
            return inside
        return inside.iloc[:, 0] if self._controls else float(inside.iloc[0])

    def _cells(self, attributes: Sequence[Attribute]) -> dict[tuple[str, ...], IntArray]:
        """Every combination of labels, in order, to the rows of the patients who have it, if any."""
        cell = np.zeros(len(self._kept), dtype=np.intp)
        for attribute in attributes:
            cell = cell * len(attribute.groups) + attribute.groups.codes[self._kept]
        labels = product(*(attribute.labels for attribute in attributes))
        return {key: self._kept[cell == k] for k, key in enumerate(labels)}

    def _table(self, attributes: Sequence[Attribute], functions: Mapping[str, RowMetric]) -> pd.DataFrame:
        """Every metric of every combination of labels."""
        cells = self._cells(attributes)
        found = pd.DataFrame(np.nan, _index(attributes), list(functions))
        undefined = []
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            for k, (key, rows) in enumerate(cells.items()):
                if len(rows) == 0:
                    continue
                values = {name: float(function(rows)) for name, function in functions.items()}
                found.iloc[k] = list(values.values())
                who = AND.join(key) or "all"
                undefined += [f"{name} of {who}" for name, value in values.items() if np.isnan(value)]
        warn_of_undefined(undefined)
        return found


def _index(attributes: Sequence[Attribute]) -> pd.Index[Any]:
    """Every combination of labels as the index of a table; a single row where there are no attributes."""
    if len(attributes) > 1:
        labels = [attribute.groups.labels for attribute in attributes]
        return pd.MultiIndex.from_product(labels, names=[attribute.name for attribute in attributes])
    only, name = (attributes[0].groups.labels, attributes[0].name) if attributes else ([0], None)
    return pd.Index(list(only), name=name, tupleize_cols=False)


def _by_name(metrics: Any) -> dict[str, Any]:
    """Metrics, given by name, as functions or both, each under its name."""
    found = dict(metrics) if isinstance(metrics, Mapping) else {_name(metric): metric for metric in metrics}
    if not found or len(found) < len(metrics):
        raise ArgumentError("metrics", "metrics must hold at least one metric, each under a name of its own.")
    for metric in found.values():
        _name(metric)
    return found


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    if callable(metric):
        return getattr(metric, "__name__", "metric")
    raise ArgumentError(
        "metrics", f"a metric must be a callable (y, risk) -> number or a name, got {metric!r}."
    )


def _of_name(name: str, patients: Patients) -> RowMetric:
    """A metric of the catalogue that these groups can have."""
    known = [metric.name for metric in Panel(patients).of("patients") if metric.by_group]
    if name not in known:
        raise ArgumentError(
            "metrics",
            f"metric {name!r} is not one that these groups can have; known by name: {known}. Those of survival "
            "curves need risk=Predictions(risk, survival, times).",
        )
    return lambda rows: value_of(CATALOGUE[name], patients.take(rows), np.ones(len(rows)))


def _of_callable(metric: Callable[..., float], patients: Patients, params: Mapping[str, Any]) -> RowMetric:
    """A function of target and scores, with its part of the per-patient arrays."""
    structured, scores = patients.target.to_structured(), patients.risk
    arrays = {key: np.asarray(values) for key, values in params.items()}
    for key, values in arrays.items():
        if len(values) != len(scores):
            raise ArgumentError(
                "sample_params",
                f"sample_params {key!r} has {len(values)} entries for {len(scores)} patients.",
            )
    return lambda rows: metric(
        structured[rows], scores[rows], **{key: values[rows] for key, values in arrays.items()}
    )
