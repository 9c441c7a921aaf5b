"""Linear Cox models solved over chunks of patients: on an accelerator here, on a cluster in drosurv.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.estimators.baseline import Baseline
from drosurv.estimators.capabilities import WEIGHTED
from drosurv.metrics.follow_up import FollowUp, percentiles
from drosurv.objectives import Objective
from drosurv.solvers import TrainingData, minimise
from drosurv.solvers.arrays import (
    double,
    equal_blocks,
    exp,
    flatnonzero,
    flip,
    in_numpy,
    is_tensor,
    on_host,
    searchsorted_right,
    sum_by_block,
)
from drosurv.solvers.chunk_problem import ChunkProblem, LocalWorkers, Workers
from drosurv.solvers.chunks import Scheme, device_chunks
from drosurv.solvers.device import checked_tensor, resolve_device
from drosurv.solvers.solver import warn_unless_converged
from drosurv.tables.encoder import checked_features, encode_features
from drosurv.target import BoolArray, FloatArray

# About this many steps of each curve are stored in a fitted model; each is exact at its time.
MOST_STEPS = 100_000


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
    plain = data.target.is_plain and data.observation.offset is None
    if tensor and not plain:
        raise ArgumentError(
            "X", "entry, strata, offset and id are not supported with a tensor: pass X as an array."
        )
    if not plain:
        return False
    keeps_device = tensor and estimator.device == "auto"
    device = data.X.device if keeps_device else resolve_device(estimator.device, worthwhile=True)
    target, weight = data.target, data.weight
    cohort = ChunkCohort.of(estimator, target.event, weight, data.seed)
    chunks, centre, order = device_chunks(
        data.X, target.time, target.event, weight, cohort.in_first, cohort.scheme, device
    )
    problem = fit_chunks(estimator, cohort, chunks, centre, LocalWorkers())
    estimator.n_patients_, estimator.n_events_ = data.n_patients, data.n_events
    if estimator.capabilities.objective in WEIGHTED:
        estimator.worst_case_weights_ = data.in_given_rows(
            _patient_weights(problem, data, order, cohort.halves)
        )
    if not tensor:
        estimator._kept_training, estimator._findings = data, None
    return True


@dataclass(frozen=True, eq=False)
class ChunkCohort:
    """Numbers about all patients that are needed to make and fit chunks.

    `objective` combines the losses of each half; `halves` are flags (n,) of the scored halves, None without halves.
    `n` and `n_events` are the numbers of patients and events, `patients` and `events` their summed weights. `scheme`
    has total weights and the treatment of ties, `rests` the share of each half that has no event.
    """

    objective: Objective
    halves: list[BoolArray] | None
    n: int
    n_events: int
    patients: float
    events: float
    scheme: Scheme
    rests: Sequence[float]

    @classmethod
    def of(cls, estimator: Any, event: BoolArray, weight: FloatArray | None, seed: int) -> ChunkCohort:
        """Summarise patients with given event flags and weights; `seed` is that of the estimator's halves."""
        halves, everyone = estimator._halves(event, seed), np.ones(len(event), dtype=np.bool_)
        sides = halves or [everyone]
        totals = tuple(_total(weight, side) for side in sides)
        least = [1.0 if weight is None else np.min(weight, where=side, initial=np.inf) for side in sides]
        return cls(
            estimator._objective([estimator], np.divide(least, totals)[:, None]),
            halves,
            len(event),
            int(np.count_nonzero(event)),
            _total(weight, everyone),
            _total(weight, event),
            Scheme(totals, estimator.ties),
            [_total(weight, side & ~event) / total for side, total in zip(sides, totals, strict=True)],
        )

    @property
    def in_first(self) -> BoolArray | None:
        """Flags (n,) of the first half; None without halves."""
        return None if self.halves is None else self.halves[0]


def _total(weight: FloatArray | None, rows: BoolArray) -> float:
    return float(np.count_nonzero(rows) if weight is None else np.sum(weight, where=rows))


def fit_chunks(
    estimator: Any, cohort: ChunkCohort, chunks: Sequence[Any], centre: FloatArray, workers: Workers
) -> ChunkProblem:
    """Fit a linear estimator to chunks of patients; warn if the optimum was not reached.

    Chunks are sorted from the longest to the shortest times; `centre` (d,) was subtracted from their features.
    """
    problem = ChunkProblem(
        chunks, len(centre), cohort.rests, cohort.objective, l2=estimator.l2, workers=workers, centre=centre
    )
    found = minimise(problem, tol=estimator.tol, max_iter=estimator.max_iter)
    problem.value(found.x)
    warn_unless_converged(type(estimator).__name__, found)
    estimator.coef_ = found.x
    estimator._set_status(found, found.value)
    estimator.n_patients_, estimator.n_events_ = cohort.patients, cohort.events
    estimator.follow_up_ = chunk_follow_up(chunks, cohort.n, workers)
    if estimator.capabilities.objective in WEIGHTED:
        etas = tuple(float(worst_case.eta) for worst_case in problem.worst_cases)
        estimator.eta_ = etas[0] if cohort.halves is None else etas
    times, hazard = chunk_baseline(
        chunks, problem.point.scores, problem.point.shift, cohort.n_events, cohort.scheme.ties, workers
    )
    # The fitted model gets features that are not centred, so the baseline is shifted.
    estimator._baseline = Baseline.from_zero(times, np.log(hazard) - float(centre @ found.x))
    return problem


def _patient_weights(
    problem: ChunkProblem, data: TrainingData, order: Any, halves: list[BoolArray] | None
) -> FloatArray:
    """Return the worst-case weights of all patients, summing to one, computed on the device of the chunks."""
    import torch

    def on_device(values: Any) -> Any:
        return torch.as_tensor(values, device=order.device)

    event, weight = on_device(data.target.event), data.weight
    mass = (
        torch.ones(len(order), dtype=torch.float64, device=order.device)
        if weight is None
        else on_device(weight)
    )
    weights = torch.zeros_like(mass)
    sides = [torch.ones_like(event)] if halves is None else map(on_device, halves)
    for half, worst_case in zip(sides, problem.worst_cases, strict=True):
        # Patients without an event have loss zero.
        ratio = float(worst_case.ratio(np.zeros(1))[0]) / (mass * half).sum()
        weights += mass * (half & ~event) * ratio
    start = 0
    for chunk, found in zip(problem.chunks, problem.event_weights(), strict=True):
        rows = order[start : start + chunk.X.shape[1]]
        start += len(rows)
        for side, q in zip(chunk.sides, found, strict=True):
            weights[rows[side.event]] = q
    total: FloatArray = in_numpy(weights / weights.sum())
    return total


def chunk_baseline(
    chunks: Sequence[Any], scores: Sequence[Any], shift: float, n_events: int, ties: str, workers: Workers
) -> tuple[FloatArray, FloatArray]:
    """Return ascending event times and the cumulative baseline hazard at these times.

    Chunks are sorted from the longest to the shortest times; `scores` has one array (m,) for each chunk, and `shift` is
    about the largest score.
    """
    n = len(chunks)
    risks = workers.gather(workers.map(_risk, chunks, scores, [shift] * n))
    before = list(accumulate(risks[:-1], initial=0.0))
    every = max(n_events // MOST_STEPS, 1)
    found = workers.gather(workers.map(_steps, chunks, scores, [shift] * n, before, [ties] * n, [every] * n))
    times, hazards, reached = [], [], 0.0
    for chunk_times, chunk_hazards in reversed(found):
        if len(chunk_times):
            times.append(chunk_times)
            hazards.append(chunk_hazards + reached)
            reached += float(chunk_hazards[-1])
    return np.concatenate(times), np.concatenate(hazards)


def _risk(chunk: Any, f: Any, shift: float) -> float:
    return float(_risks(chunk, f, shift).sum())


def _risks(chunk: Any, f: Any, shift: float) -> Any:
    risk = exp(f - shift)
    return risk if chunk.weight is None else double(chunk.weight) * risk


def _steps(
    chunk: Any, f: Any, shift: float, before: float, ties: str, every: int
) -> tuple[FloatArray, FloatArray]:
    """Return every k-th event time of a chunk and the last, ascending, and the chunk's cumulative hazard at each."""
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
    totals = workers.gather(workers.map(_weight, chunks))
    before = list(accumulate(totals[:-1], initial=0.0))
    found = workers.gather(workers.map(_followed, chunks, before, [every] * len(chunks)))
    # Chunks are sorted from the longest to the shortest times, curves from the shortest.
    times, survival, censoring, event_times, weights = zip(*reversed(found), strict=True)
    return FollowUp(
        np.concatenate(times),
        _continued(censoring),
        _continued(survival),
        percentiles(np.concatenate(event_times), None if weights[0] is None else np.concatenate(weights)),
    )


def _continued(curves: Sequence[FloatArray]) -> FloatArray:
    """Join the survival curves of consecutive chunks, each of which starts at one."""
    starts = accumulate((curve[-1] for curve in curves[:-1]), mul, initial=1.0)
    return np.concatenate([start * curve for start, curve in zip(starts, curves, strict=True)])


def _weight(chunk: Any) -> float:
    return float(len(chunk.time) if chunk.weight is None else double(chunk.weight).sum())


def _followed(chunk: Any, before: float, every: int) -> tuple[FloatArray | None, ...]:
    """Return ascending times of a chunk, its Kaplan-Meier curves of events and censoring, and event times and weights.

    `before` is the summed weight of all earlier chunks, whose patients are at risk at all times of this chunk.
    """
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
