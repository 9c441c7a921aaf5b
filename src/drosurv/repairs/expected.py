"""Survival curves and expected events of any fitted model, or of given predictions (times, survival).

Curves have one of three types (:mod:`drosurv.curves`). "step": the curve changes at its jumps only, and the hazard of a
jump is the conditional probability 1 - S(t) / S(t-). "smooth": the curve may change at any time, and the cumulative
hazard until t is -log S(t). "points": the curve is known at times that are close together, and its cumulative hazard is
linear between them. Predictions at few times are in :mod:`drosurv.repairs.at_few_times`.

If the curves are correct and censoring is independent given the features, observed minus expected events have mean 0
in every group that the features define.

`FoldFits` are fits of a base model without one or two folds of the patients, with its predictions for those left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.curves import LARGEST_HAZARD, Baseline, ScoreValues, StepCurves, SurvivalCurves, minus_log
from drosurv.patients.observation import take
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target, parse_target, y_field
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import fit_any
from drosurv.predictions.given import log_mean_hazard
from drosurv.presentation.drawing import ProgressCallback

# Expected events of a patient are clipped to [this, log n + 3], so that one outlier cannot decide a test.
SMALLEST_EXPECTED = 1e-4
QUARTILES = (0.25, 0.5, 0.75)
# From so many patients on, arrays that take as much memory as their table are in single precision.
MANY = 20_000


def precision(n: int) -> type[np.floating[Any]]:
    """Return the type of numbers of large arrays of n patients."""
    return np.float32 if n >= MANY else np.float64


@dataclass(frozen=True, eq=False)
class ProportionalIntervals:
    """Expected events (n, k) of n patients in k intervals of time, computed when rows are read: ``self[rows]``.

    Hazards of the patients of one `model` (n,) are proportional: until the k - 1 ends of intervals their cumulative
    hazard is `scale` (n,) times that of the `base` (m, k - 1), but at most that of all intervals, `total` (n,).
    """

    base: FloatArray
    model: NDArray[Any]
    scale: NDArray[Any]
    total: FloatArray

    @staticmethod
    def of(curves: SurvivalCurves, total: FloatArray, ends: FloatArray) -> ProportionalIntervals | None:
        """Return those of a model, given their sums (n,) and the ends (k - 1,); None without proportional hazards."""
        values = curves.values
        if not (isinstance(values, ScoreValues) and isinstance(values.curves, Baseline)):
            return None
        base = values.curves.cumulative_hazard(np.zeros(1), ends)
        if base.shape != (1, len(ends)) or not base[0, -1:] > 0:
            return None
        model, scale = np.zeros(len(total), np.uint8), values.hazard(slice(None), ends[-1:])[:, 0]
        return ProportionalIntervals(base / base[0, -1], model, scale.astype(np.float32), total)

    def __getitem__(self, rows: Any) -> FloatArray:
        total = self.total[rows, None]
        at_ends = np.minimum(self.scale[rows, None] * self.base[self.model[rows]], total)
        return np.diff(at_ends, axis=1, prepend=0.0, append=total)

    def __mul__(self, factor: FloatArray) -> ProportionalIntervals:
        scale = (self.scale * factor[:, 0]).astype(np.float32)
        return replace(self, scale=scale, total=self.total * factor[:, 0])

    def longer(self, rows: BoolArray, first: IntArray) -> ProportionalIntervals:
        """Return those of some rows (n,) in the longer intervals that begin with those in `first`."""
        known, model = np.unique(self.model[rows], return_inverse=True)
        base = self.base[known][:, first[1:] - 1]
        return ProportionalIntervals(base, model.astype(np.uint8), self.scale[rows], self.total[rows])


@dataclass(frozen=True, eq=False)
class Expected:
    """Events of n patients, observed and expected by a model.

    `events` (n,) are 1 where the event was observed before the end of the predicted curve, `hazard` (n,) is the
    cumulative hazard from entry until then: the expected number of events. `log_risk` (n,) is the log of the mean
    cumulative hazard at the quartiles of the event times: under proportional hazards the log risk, up to a constant.
    `by_interval` (n, k) are the expected events in intervals of time, whose sum is the hazard, in the `precision` of
    large arrays: those of 20 intervals take as much memory as a table of 20 columns.
    """

    events: FloatArray
    hazard: FloatArray
    log_risk: FloatArray
    by_interval: FloatArray | ProportionalIntervals | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by_interval, np.ndarray):
            exact = precision(len(self.events))
            object.__setattr__(self, "by_interval", self.by_interval.astype(exact, copy=False))

    @staticmethod
    def joined(parts: Iterable[Expected], folds: IntArray) -> Expected:
        """Join the predictions of the models of all folds, in the order of the patients."""
        found: dict[str, NDArray[Any]] = {}
        bases: list[FloatArray] = []
        for fold, part in enumerate(parts):
            given = dict(vars(part))
            if isinstance(part.by_interval, ProportionalIntervals):
                given["by_interval"] = part.by_interval.scale
                given["model"] = (sum(map(len, bases)) + part.by_interval.model).astype(np.uint8)
                bases.append(part.by_interval.base)
            for name, values in given.items():
                if values is not None:
                    if name not in found:
                        exact = precision(len(folds)) if name == "by_interval" else values.dtype
                        found[name] = np.empty((len(folds), *values.shape[1:]), exact)
                    found[name][folds == fold] = values
            # Not in memory beside the next one.
            del part, given, values
        if not bases:
            return Expected(**found)
        scale, model = found.pop("by_interval"), found.pop("model")
        rows = ProportionalIntervals(np.concatenate(bases), model, scale, found["hazard"])
        return Expected(**found, by_interval=rows)

    def part(self, rows: BoolArray, first: IntArray) -> Expected:
        """Return the expected events of some rows (n,), in the longer intervals that begin with those in `first`."""
        assert self.by_interval is not None
        if isinstance(self.by_interval, ProportionalIntervals):
            by_interval: Any = self.by_interval.longer(rows, first)
        else:
            by_interval = np.add.reduceat(self.by_interval[rows], first, axis=1)
        return Expected(self.events[rows], self.hazard[rows], self.log_risk[rows], by_interval)

    def clipped(self, low: float, high: float) -> Expected:
        """Return the same with cumulative hazards clipped to [low, high]."""
        hazard = np.clip(self.hazard, low, high)
        intervals = self.by_interval
        if intervals is not None:
            factor = np.divide(hazard, self.hazard, out=np.ones_like(hazard), where=self.hazard > 0)
            if (factor != 1.0).any():
                intervals = intervals * factor[:, None]
        return Expected(self.events, hazard, self.log_risk, intervals)

    def weighted(self, weight: FloatArray) -> Expected:
        """Return events and hazards multiplied by the patients' weights (n,)."""
        if (weight == 1.0).all():
            return self
        intervals = None if self.by_interval is None else self.by_interval * weight[:, None]
        return Expected(weight * self.events, weight * self.hazard, self.log_risk, intervals)


def reference_times(target: Target) -> FloatArray:
    """Return the quartiles of the event times, at which the log risk of a patient is computed."""
    return np.quantile(target.time[target.event], QUARTILES)


def log_risk(curves: SurvivalCurves, times: FloatArray) -> FloatArray:
    """Return the log of each patient's mean cumulative hazard at the times, (n,)."""
    return log_mean_hazard(minus_log(curves.survival(times)))


def expected_of_fitted(
    curves: SurvivalCurves,
    target: Target,
    times: FloatArray,
    edges: FloatArray | None = None,
    entry: FloatArray | None = None,
    *,
    many: bool = False,
) -> Expected:
    """Return the expected events of a model that was fitted on other patients; the log risk is taken at the times.

    Patients are at risk from their entry (n,) on. With k ascending `edges`, the expected events are also counted in the
    k + 1 intervals between them; of `many` patients with proportional hazards, they are computed when they are read.
    """
    until = minus_log(curves.survival(target.time[:, None]))[:, 0]
    begun = np.zeros(len(target)) if entry is None else minus_log(curves.survival(entry[:, None]))[:, 0]
    intervals: FloatArray | ProportionalIntervals | None = None
    if many and entry is None and edges is not None:
        intervals = ProportionalIntervals.of(curves, until, edges)
    if edges is not None and intervals is None:
        # Cumulative hazards increase, so clipping them limits an interval to the patient's time at risk.
        at_edges = np.clip(minus_log(curves.survival(edges)), begun[:, None], until[:, None])
        intervals = np.diff(at_edges, axis=1, prepend=begun[:, None], append=until[:, None])
    return Expected(target.event.astype(np.float64), until - begun, log_risk(curves, times), intervals)


def expected_of_frozen(
    model: Any,
    X: Any,
    target: Target,
    times: FloatArray,
    entry: FloatArray | None = None,
    edges: FloatArray | None = None,
    cause: int | None = None,
) -> Expected:
    """Return expected events of a frozen model, counted so that likelihood ratios have mean at most 1 if it is right.

    A patient is censored at the end of the curve, and not at risk before entry (n,). The log risk is taken at the times
    (k,). With ascending `edges` (m,), the expected events are also counted in the m + 1 intervals between them. With a
    `cause`, they are those of its hazard.
    """
    curves = as_predictions(model, X, len(target), cause=cause).survival_curves
    if isinstance(curves, StepCurves):
        curves = replace(curves, own_hazard=False)
    until = np.minimum(target.time, curves.known_until)
    observed = target.event & (target.time <= curves.known_until)
    if not isinstance(curves, StepCurves):
        observed &= curves.cumulative_hazard(until[:, None])[:, 0] < LARGEST_HAZARD
    hazard = np.maximum(curves.expected_events(until, entry).hazard, 0.0)
    intervals = None if edges is None else curves.expected_events(until, entry, edges).hazard
    return Expected(observed.astype(np.float64), hazard, log_risk(curves, times), intervals)


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Fits of a base model without some folds.

    `fitted` is the model fitted on all patients, near whose parameters searches begin; `y` has the fields that ``fit``
    takes, `folds` (n,) are numbered from 0. Log risks are taken at the `times`, and
    expected events are counted in the intervals between the `edges` too.
    """

    base: Any
    fitted: Any
    X: Any
    y: Any
    folds: IntArray
    times: FloatArray
    edges: FloatArray

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    def out_of_fold(self, progress: ProgressCallback) -> Iterator[Expected]:
        """Yield the expected events of each fold's patients, by a model fitted without this fold."""
        for fold in range(self.n_folds):
            progress(fold, "fitting the model in folds", self.n_folds)
            out = self.folds == fold
            yield self._predicted(self._fit(~out), out)

    def without_each_fold(
        self, alone: Sequence[Expected], progress: ProgressCallback
    ) -> list[list[Expected]]:
        """Return, for each fold k, the expected events of each fold's patients, from which fold k learns nothing.

        Patients of another fold j are predicted by a model fitted without the folds j and k, those of fold k by the
        model fitted without it (`alone`). With models fitted without j only, predictions for fold j would depend on
        the outcomes in fold k: a model of pure noise then has the same error in all folds, and its correction seems to
        be confirmed in each of them.
        """
        found = [list(alone) for _ in range(self.n_folds)]
        pairs = list(combinations(range(self.n_folds), 2))
        for step, (j, k) in enumerate(pairs):
            progress(step, "fitting the model without pairs of folds", len(pairs))
            model = self._fit(~np.isin(self.folds, [j, k]))
            found[k][j] = self._predicted(model, self.folds == j)
            found[j][k] = self._predicted(model, self.folds == k)
        return found

    def joined(self, parts: Iterable[Expected]) -> Expected:
        """Join the expected events of all folds, in the order of the patients, without outliers."""
        largest = np.log(len(self.folds)) + 3
        clipped = map(methodcaller("clipped", SMALLEST_EXPECTED, largest), parts)
        return Expected.joined(clipped, self.folds)

    def _fit(self, rows: BoolArray) -> Any:
        return fit_any(self.base, take(self.X, rows), self.y[rows], similar=self.fitted)

    def _predicted(self, model: Any, rows: BoolArray) -> Expected:
        curves = as_predictions(model, take(self.X, rows), int(rows.sum())).survival_curves
        entry = y_field(self.y, "entry")
        entry = None if entry is None else entry[rows]
        target = parse_target(self.y[rows], require_event=False)
        many = len(self.folds) >= MANY
        return expected_of_fitted(curves, target, self.times, self.edges, entry, many=many)
