"""Linear Cox models solved over chunks of patients: on an accelerator here, on a cluster in drosurv.distributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.curves import Baseline
from drosurv.errors import ArgumentError
from drosurv.estimators.capabilities import WEIGHTED
from drosurv.metrics.follow_up import FollowUp, percentiles
from drosurv.objectives import Objective
from drosurv.objectives.objective import Mean
from drosurv.patients.arrays import is_tensor, on_host
from drosurv.patients.draws import require_events
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.solvers import TrainingData, minimise
from drosurv.solvers import chunk_likelihood as kernels
from drosurv.solvers.arrays import (
    double,
    equal_blocks,
    exp,
    flatnonzero,
    flip,
    in_numpy,
    searchsorted_right,
    sum_by_block,
)
from drosurv.solvers.chunk_likelihood import ChunkState, Marks, RowsOnDevice, Scheme, device_chunks
from drosurv.solvers.chunk_problem import ChunkProblem, LocalWorkers, Workers
from drosurv.solvers.convex import SEPARATED, Minimum, Nearby
from drosurv.solvers.device import checked_tensor, resolve_device
from drosurv.solvers.solver import warn_unless_converged
from drosurv.tables.encoder import checked_features, encode_features

# About this many steps of each curve are stored in a fitted model; each is exact at its time.
MOST_STEPS = 100_000
# Most Newton steps to the best factor of recalibration, and the relative size of the last one: the error that it leaves
# is about its square.
_NEWTON_STEPS, _PRECISION = 100, 1e-4


def features_on_device(estimator: Any, X: Any, y: Any) -> Any:
    """Return checked features for an accelerator: a tensor, or an array that may be float32.

    Features in float32 stay float32, which needs half the memory and changes the optimum by at most 1e-6.
    """
    if is_tensor(X):
        return checked_tensor(estimator, X, fit=True)
    given = encode_features(estimator, X, y, fit=True)
    return checked_features(estimator, given, fit=True, dtype=(np.float64, np.float32))


def fit_on_device(estimator: Any, data: TrainingData) -> bool:
    """Solve a linear model on the device of its features, or on an accelerator; return False if the CPU is needed."""
    tensor = is_tensor(data.X)
    plain = data.target.is_plain and data.rows.offset is None
    if tensor and not plain:
        raise ArgumentError(
            "X", "entry, strata, offset and id are not supported with a tensor: pass X as an array."
        )
    if not plain:
        return False
    keeps_device = tensor and estimator.device == "auto"
    device = data.X.device if keeps_device else resolve_device(estimator.device, worthwhile=True)
    target, weight, clusters = data.target, data.weight, data.rows.cluster
    patients = RowsOnDevice.of(data.X, target.time, target.event, weight, device, clusters)
    order = on_host(patients.order)
    cohort = ChunkCohort.of(
        estimator,
        on_host(patients.event),
        None if weight is None else weight[order],
        data.seed,
        position=order,
        clusters=None if clusters is None else clusters[order],
    )
    chunks, centre = device_chunks(patients, cohort.marks, cohort.scheme)
    problem = fit_chunks(estimator, cohort, chunks, centre, LocalWorkers())
    estimator.n_patients_, estimator.n_events_ = data.n_patients, data.n_events
    if estimator.capabilities.objective in WEIGHTED:
        estimator.worst_case_weights_ = data.in_given_rows(_patient_weights(problem, patients, cohort.halves))
    if not tensor:
        estimator._kept_training, estimator._findings = data, None
    return True


@dataclass(frozen=True, eq=False)
class ChunkCohort:
    """Numbers about all patients that are needed to make and fit chunks.

    `objective` combines the losses of each half; `halves` are flags (n,) of the scored halves, None without halves.
    `n` and `n_events` are the numbers of patients and events, `patients` and `events` their summed weights. `scheme`
    has total weights and the treatment of ties, `rests` the share of each half that has no event. For recalibration,
    `fold` (n,) is the fold of each patient, and `without_fold` maps each fold to the cohort of the other patients.
    """

    objective: Objective
    halves: list[BoolArray] | None
    n: int
    n_events: int
    patients: float
    events: float
    scheme: Scheme
    rests: Sequence[float]
    fold: NDArray[np.int8] | None = None
    without_fold: Mapping[int, ChunkCohort] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        estimator: Any,
        event: BoolArray,
        weight: FloatArray | None,
        seed: int,
        *,
        position: IntArray | None = None,
        clusters: Any = None,
    ) -> ChunkCohort:
        """Summarise patients with given event flags and weights, and draw their halves and folds, as far as used.

        Patients are in the order of :func:`drosurv.patients.draws.row_order`; `position` (n,) are the given rows in
        this order. `seed` is that of the estimator's halves.
        """
        halves = estimator._halves(event, seed, position)
        everybody = cls._summary(estimator, event, weight, halves)
        fold = estimator._folds(event, clusters, seed, everybody.events)
        if fold is None:
            return everybody
        others, fold = {}, fold.astype(np.int8)
        for k in np.unique(fold[event]).tolist():
            with estimator._training_on_folds() as trained:
                others[k] = cls._summary(estimator, event, weight, halves, fold != k)
            if not trained:
                return everybody
        return replace(everybody, fold=fold, without_fold=others)

    @classmethod
    def _summary(
        cls,
        estimator: Any,
        event: BoolArray,
        weight: FloatArray | None,
        halves: list[BoolArray] | None,
        kept: BoolArray | None = None,
    ) -> ChunkCohort:
        """Summarise the patients `kept` (n,); None keeps all."""
        everyone = np.ones(len(event), dtype=np.bool_) if kept is None else kept
        sides = [everyone] if halves is None else [half & everyone for half in halves]
        totals = tuple(_total(weight, side) for side in sides)
        happened = event & everyone
        if halves is not None and kept is not None:
            require_events(happened, sides[0], estimator.n1, both=len(sides) > 1)
        least = [1.0 if weight is None else np.min(weight, where=side, initial=np.inf) for side in sides]
        return cls(
            estimator._objective([estimator], np.divide(least, totals)[:, None]),
            halves,
            int(np.count_nonzero(everyone)),
            int(np.count_nonzero(happened)),
            _total(weight, everyone),
            _total(weight, happened),
            Scheme(totals, estimator.ties),
            [_total(weight, side & ~event) / total for side, total in zip(sides, totals, strict=True)],
        )

    @property
    def marks(self) -> Marks:
        """The halves and folds of the patients (n,)."""
        return Marks(None if self.halves is None else self.halves[0], self.fold)


def _total(weight: FloatArray | None, rows: BoolArray) -> float:
    return float(np.count_nonzero(rows) if weight is None else np.sum(weight, where=rows))


def fit_chunks(
    estimator: Any, cohort: ChunkCohort, chunks: Sequence[Any], centre: FloatArray, workers: Workers
) -> ChunkProblem:
    """Fit a linear estimator to chunks of patients; warn if the optimum was not reached.

    Chunks are sorted from the longest to the shortest times; `centre` (d,) was subtracted from their features.
    """
    problem, found = _solved(estimator, cohort, chunks, centre, workers)
    warn_unless_converged(type(estimator).__name__, found)
    factor = None
    if cohort.without_fold:
        near = Nearby(found.x, problem.curvature()) if problem.smooth else None
        factor = estimator._checked_factor(
            _factor_of_folds(estimator, cohort, chunks, centre, workers, found.x, near)
        )
        # The attributes below are those of the model of all patients.
        problem.value(found.x)
    theta = found.x
    if factor is not None:
        estimator.recalibration_, theta = factor, factor * found.x
    estimator.coef_ = theta
    estimator._set_status(found, found.value)
    estimator.n_patients_, estimator.n_events_ = cohort.patients, cohort.events
    estimator.follow_up_ = chunk_follow_up(chunks, cohort.n, workers)
    if estimator.capabilities.objective in WEIGHTED:
        etas = tuple(float(worst_case.eta) for worst_case in problem.worst_cases)
        estimator.eta_ = etas[0] if cohort.halves is None else etas
    times, hazard = chunk_baseline(chunks, theta, cohort.n_events, cohort.scheme.ties, workers)
    # The fitted model gets features that are not centred, so the baseline is shifted.
    estimator._baseline = Baseline.from_zero(times, np.log(hazard) - float(centre @ theta))
    return problem


def _solved(
    estimator: Any,
    cohort: ChunkCohort,
    chunks: Sequence[Any],
    centre: FloatArray,
    workers: Workers,
    start: FloatArray | None = None,
    near: Nearby | None = None,
) -> tuple[ChunkProblem, Minimum]:
    """Find the coefficients of a cohort, starting at zeros or at `start` (d,); the problem is left at the optimum.

    The Hessians are those of the problem `near`, if there is one.
    """
    problem = ChunkProblem(
        chunks,
        len(centre),
        cohort.rests,
        cohort.objective,
        l2=estimator.l2,
        workers=workers,
        centre=centre,
        n_events=cohort.n_events,
    )
    problem.sample = near
    found = minimise(problem, tol=estimator.tol, max_iter=estimator.max_iter, start=start)
    problem.value(found.x)
    return problem, found


def _factor_of_folds(
    estimator: Any,
    cohort: ChunkCohort,
    chunks: Sequence[Any],
    centre: FloatArray,
    workers: Workers,
    theta: FloatArray,
    near: Nearby | None,
) -> float:
    """Return the factor of recalibration from held-out scores of all folds, given the coefficients of all patients."""
    n, held_out = len(chunks), []
    # Only events have a loss in the partial likelihood of the held-out patients.
    scheme = Scheme((cohort.patients,), estimator.ties)
    for k, others in cohort.without_fold.items():
        part = workers.map(kernels.without_fold, chunks, [k] * n, [others.scheme] * n)
        _, found = _solved(estimator, others, part, centre, workers, theta, near)
        scored = workers.map(kernels.held_out, chunks, [found.x] * n, [k] * n, [scheme] * n)
        problem = ChunkProblem(scored, 1, [0.0], Mean(), workers=workers, n_events=cohort.n_events)
        held_out.append(HeldOutChunks(problem))
    return best_factor(held_out)


def best_factor(held_out: Sequence[Any]) -> float:
    """Return the factor b that maximises the partial likelihood of scores b f of all folds; 1 without folds.

    Each element of `held_out` has the `spread` of its scores, and `derivatives` of the mean loss in the factor.
    Patients are compared within their fold, because scores of different models may differ by a constant. The factor is
    infinite if the scores separate early from late events. It is found by Newton's method, bracketed by the sign of the
    derivative.
    """
    if not held_out:
        return 1.0
    factor, low, high, widest = 1.0, -np.inf, np.inf, max(part.spread for part in held_out)
    for _ in range(_NEWTON_STEPS):
        slope, curvature = np.sum([part.derivatives(factor) for part in held_out], axis=0).tolist()
        if slope < 0.0 and (curvature <= 0.0 or factor * widest > SEPARATED):
            return np.inf
        step = -slope / curvature if curvature > 0.0 else np.inf
        if abs(step) <= _PRECISION * abs(factor):
            return factor + step
        low, high = (factor, high) if slope < 0.0 else (low, factor)
        factor = factor + step if low < factor + step < high else (low + high) / 2.0
    return factor


class HeldOutChunks:
    """The partial likelihood of the held-out patients of a fold as a function of the factor of their scores."""

    def __init__(self, problem: ChunkProblem) -> None:
        self._problem = problem
        problem.value(np.ones(1))
        self.spread = problem.spread

    def derivatives(self, factor: float) -> tuple[float, float]:
        """Return first and second derivative of the mean loss."""
        if np.isinf(self._problem.value(np.array([factor]))):
            return np.nan, np.nan
        return float(self._problem.gradient()[0]), float(self._problem.curvature()[0][0, 0])


def _patient_weights(
    problem: ChunkProblem, patients: RowsOnDevice, halves: list[BoolArray] | None
) -> FloatArray:
    """Return the worst-case weights of all patients, summing to one, computed on the device of the chunks."""
    import torch

    order, event = patients.order, patients.event
    mass = torch.ones_like(event, dtype=torch.float64)
    if patients.weight is not None:
        mass = patients.weight[order]
    found = torch.zeros_like(mass)
    sides = [torch.ones_like(event)]
    if halves is not None:
        sides = [torch.as_tensor(half, device=order.device) for half in halves]
    for half, worst_case in zip(sides, problem.worst_cases, strict=True):
        # Patients without an event have loss zero.
        ratio = float(worst_case.ratio(np.zeros(1))[0]) / (mass * half).sum()
        found += mass * (half & ~event) * ratio
    start = 0
    for state, of_events in zip(problem.chunks, problem.event_weights(), strict=True):
        stop = start + len(state.chunk.time)
        for side, q in zip(state.chunk.sides, of_events, strict=True):
            found[start:stop][side.event] = q
        start = stop
    weights = torch.empty_like(found)
    weights[order] = found
    total: FloatArray = in_numpy(weights / weights.sum())
    return total


def chunk_baseline(
    chunks: Sequence[Any], theta: FloatArray, n_events: int, ties: str, workers: Workers
) -> tuple[FloatArray, FloatArray]:
    """Return ascending event times and the cumulative baseline hazard at these times, at coefficients theta (d,).

    Chunks are sorted from the longest to the shortest times.
    """
    n = len(chunks)
    highest, risks = np.transpose(workers.gather(workers.map(_risk, chunks, [theta] * n)))
    shift = float(highest.max())
    before = list(accumulate((risks * np.exp(highest - shift))[:-1].tolist(), initial=0.0))
    every = max(n_events // MOST_STEPS, 1)
    found = workers.gather(
        workers.map(_steps, chunks, [theta] * n, [shift] * n, before, [ties] * n, [every] * n)
    )
    times, hazards, reached = [], [], 0.0
    for chunk_times, chunk_hazards in reversed(found):
        if len(chunk_times):
            times.append(chunk_times)
            hazards.append(chunk_hazards + reached)
            reached += float(chunk_hazards[-1])
    return np.concatenate(times), np.concatenate(hazards)


def _risk(state: ChunkState, theta: FloatArray) -> tuple[float, float]:
    """Return the highest score, and the summed risk divided by its exponential."""
    f = state.scores(theta)
    highest = float(f.max())
    return highest, float(_risks(state.chunk, f, highest).sum())


def _risks(chunk: Any, f: Any, shift: float) -> Any:
    risk = exp(f - shift)
    return risk if chunk.weight is None else double(chunk.weight) * risk


def _steps(
    state: ChunkState, theta: FloatArray, shift: float, before: float, ties: str, every: int
) -> tuple[FloatArray, FloatArray]:
    """Return every k-th event time of a chunk and the last, ascending, and the chunk's cumulative hazard at each."""
    chunk, f = state.chunk, state.scores(theta)
    # Times are descending, their negatives ascending; equal times form blocks.
    ascending, risk, positions = -double(chunk.time), _risks(chunk, f, shift), flatnonzero(chunk.event)
    block, starts, counts, earlier = equal_blocks(ascending[positions])
    firsts = ascending[positions[starts]]
    at_risk = (risk.cumsum(0) + before)[searchsorted_right(ascending, firsts) - 1]
    weight = double(chunk.event if chunk.weight is None else chunk.weight)[positions]
    n_events = sum_by_block(weight, block, starts)
    jumps = n_events / at_risk
    if ties == "efron":
        # The mean of 1 / (S - k/m D), k = 0..m-1, for m tied events with summed risk D.
        tied = sum_by_block(risk[positions], block, starts)
        terms = 1.0 / (at_risk[block] - double(earlier) / counts * tied[block])
        jumps = n_events / counts[starts] * sum_by_block(terms, block, starts)
    hazard = flip(jumps).cumsum(0) * np.exp(-shift)
    return _thinned(-flip(firsts), every), _thinned(hazard, every)


def _thinned(values: Any, every: int) -> FloatArray:
    """Copy every k-th value and the last; a slice without a copy would keep all values in memory."""
    return np.array(on_host(values[(len(values) - 1) % every :: every]))


def chunk_follow_up(chunks: Sequence[Any], n: int, workers: Workers) -> FollowUp:
    """Return the follow-up of the n patients of all chunks."""
    every = max(n // MOST_STEPS, 1)
    patients, events = zip(*workers.gather(workers.map(_counts, chunks)), strict=True)
    before = list(accumulate(patients[:-1], initial=0.0))
    found = workers.gather(workers.map(_followed, chunks, before, [every] * len(chunks)))
    # Chunks are sorted from the longest to the shortest times, curves from the shortest.
    times, survival, censoring, event_times, weights = zip(*reversed(found), strict=True)
    return FollowUp(
        np.concatenate(times),
        _continued(censoring),
        _continued(survival),
        percentiles(np.concatenate(event_times), None if weights[0] is None else np.concatenate(weights)),
        sum(patients),
        sum(events),
    )


def _continued(curves: Sequence[FloatArray]) -> FloatArray:
    """Join the survival curves of consecutive chunks, each of which starts at one."""
    starts = accumulate((curve[-1] for curve in curves[:-1]), mul, initial=1.0)
    return np.concatenate([start * curve for start, curve in zip(starts, curves, strict=True)])


def _counts(state: ChunkState) -> tuple[float, float]:
    """Return the summed weights of the patients of a chunk, and of those with an event."""
    chunk = state.chunk
    weight = 1.0 + 0.0 * double(chunk.time) if chunk.weight is None else double(chunk.weight)
    return float(weight.sum()), float((weight * chunk.event).sum())


def _followed(state: ChunkState, before: float, every: int) -> tuple[FloatArray | None, ...]:
    """Return ascending times of a chunk, its Kaplan-Meier curves of events and censoring, and event times and weights.

    `before` is the summed weight of all earlier chunks, whose patients are at risk at all times of this chunk.
    """
    chunk = state.chunk
    ascending, weight = -double(chunk.time), chunk.weight
    mass = 0.0 * ascending + 1.0 if weight is None else double(weight)
    block, starts, counts, _ = equal_blocks(ascending)
    at_risk = mass.cumsum(0)[starts + counts[starts] - 1] + before
    events = sum_by_block(mass * chunk.event, block, starts)
    censored = sum_by_block(mass * ~chunk.event, block, starts)
    positions = flip(flatnonzero(chunk.event))
    return (
        _thinned(-flip(ascending[starts]), every),
        _thinned(_kaplan_meier(events, at_risk), every),
        # At equal times events come before censoring.
        _thinned(_kaplan_meier(censored, at_risk - events), every),
        _thinned(-ascending[positions], every),
        None if weight is None else _thinned(mass[positions], every),
    )


def _kaplan_meier(events: Any, at_risk: Any) -> Any:
    """Return the Kaplan-Meier curve by ascending time, given counts by descending time."""
    # Add 1 to the denominator where there are no events, to avoid 0 / 0.
    share = events / (at_risk + (events == 0.0))
    return flip((1.0 - share).clip(0.0, 1.0)).cumprod(0)
