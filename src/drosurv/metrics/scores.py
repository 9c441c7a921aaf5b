"""Checks of risk scores, weights and groups, with which every metric starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.errors import ArgumentError, arg, row_number, warn_caller
from drosurv.patients.groups import Groups, Missing, parse_groups
from drosurv.patients.observation import given_weight, label_codes, weights
from drosurv.patients.target import FloatArray, Target, parse_entry, parse_target, y_field
from drosurv.presentation import counted


@dataclass(frozen=True, eq=False)
class ScoredTarget:
    """Outcomes of n patients and the risk scores that a model gave them.

    Risk scores (n,) are finite; a higher score means an earlier event. Weights (n,) are not negative; by default all
    are 1.
    """

    target: Target
    risk: FloatArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.risk)

    def take(self, rows: NDArray[Any]) -> ScoredTarget:
        """Return the given rows (indices or a mask)."""
        return ScoredTarget(self.target.take(rows), self.risk[rows], self.weight[rows])

    def by_time(self) -> ScoredTarget:
        """Return the patients with positive weight, sorted by time."""
        order = self.target.order
        return self.take(order[self.weight[order] > 0])


def parse_scored(
    y: Any,
    risk: Any,
    sample_weight: Any = None,
    *,
    late_entry: bool = False,
    weighted: bool = True,
    strata: Any = None,
) -> ScoredTarget:
    """Check a target, its risk scores, weights, entry times and strata against each other.

    A target without events is allowed: metrics then return NaN with a warning, so that a small group without events
    does not prevent the evaluation of the others. `late_entry` says whether the metric is defined with entry times,
    `weighted` whether with weights.
    """
    target = metric_target(y, late_entry=late_entry, weighted=weighted)
    if strata is not None:
        target = replace(target, stratum=label_codes("strata", strata, len(target))[0])
    scores = parse_risk(risk, len(target))
    return ScoredTarget(target, scores, parse_weights(given_weight(y, sample_weight), len(target)))


def metric_target(y: Any, *, name: str = "y", late_entry: bool = False, weighted: bool = False) -> Target:
    """Return the target of a metric, which need not have an event, with its entry times.

    Raise for entry times and weights that the metric does not take. Ids and clusters change no metric.
    """
    target = parse_target(y, name=name, require_event=False)
    for argument, taken in (("entry", late_entry), ("weight", weighted)):
        if y_field(y, argument) is not None and not taken:
            raise ArgumentError(
                argument,
                f"{name} has a field {argument!r}, which this metric does not take: pass Surv.event_time({name}), or "
                "judge the model with drosurv.evaluate.",
            )
    return replace(target, entry=parse_entry(y, target))


def parse_grouped(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    missing: Missing = "group",
    labels: Sequence[Any] | None = None,
) -> tuple[ScoredTarget, Groups]:
    """Check a scored target and the groups of its patients; those without a group are removed."""
    scored = parse_scored(y, risk, sample_weight)
    parsed = parse_groups(groups, len(scored), missing=missing, labels=labels)
    if parsed.codes.min() >= 0:
        return scored, parsed
    return scored.take(parsed.kept), parsed.of_kept()


def parse_risk(risk: Any, n: int | None = None, *, name: str = "risk") -> FloatArray:
    """Risk scores as a finite float64 vector, of length n where n is given."""
    scores = np.asarray(risk)
    if scores.dtype.kind not in "fiub":
        try:
            scores = scores.astype(np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(name, f"{arg(name)} must hold numbers, got dtype {scores.dtype}.") from None
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1:
        raise ArgumentError(name, f"{arg(name)} must be one score per patient, got shape {scores.shape}.")
    if len(scores) == 0:
        raise ArgumentError(name, f"{arg(name)} is empty: at least one patient is needed.")
    if n is not None and len(scores) != n:
        raise ArgumentError(
            name,
            f"{arg(name)} has {counted(len(scores), 'score')} for the {counted(n, 'patient')} of y: give one score per "
            "row.",
        )
    finite = np.isfinite(scores)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ArgumentError(
            name,
            f"{arg(name)} contains {counted(int((~finite).sum()), 'NaN or infinite score')} (first at row "
            f"{row_number(row, risk)}: {scores[row]}); such a patient cannot be ranked: drop the row or "
            "correct the model.",
        )
    return scores


def parse_weights(sample_weight: Any, n: int) -> FloatArray:
    """Patient weights as a finite, non-negative float64 vector of length n; ones for None.

    Metrics that take `y` pass what :func:`drosurv.patients.observation.given_weight` returns.
    """
    if sample_weight is None:
        return np.ones(n)
    return weights(sample_weight, n)


def warn_undefined(message: str) -> None:
    """Warn, with scikit-learn's UndefinedMetricWarning, that a metric is undefined on this data."""
    warn_caller(message, category=UndefinedMetricWarning)


def weighted_mean(values: FloatArray, weight: FloatArray, name: str) -> FloatArray:
    """Mean over patients, (n, ...) -> (...); NaN, with a warning that names the metric, if nobody has weight."""
    total = float(weight.sum())
    if total == 0:
        warn_undefined(f"{name} is undefined (NaN): every one of the {len(weight)} patients has weight 0.")
        return np.full(values.shape[1:], np.nan)
    return np.asarray(weight @ values / total)
