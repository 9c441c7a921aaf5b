"""The Cox partial likelihood over chunks of patients, with derivatives.

Patients are sorted from the longest to the shortest time, so a risk set is everyone up to a position. A chunk is a
block of consecutive patients in that order; equal times are never in two chunks. From the other chunks it needs a few
sums: the summed risk of all earlier chunks (longer times), and the summed q_i / S_i of the events in all later chunks.

Arrays are NumPy or torch arrays: the CPU, an accelerator and a cluster use the same code. Features are stored as
(d, m), so that cumulative sums over patients read memory in order. Results depend only on the arguments, so that what
a lost machine held can be computed again on any other; they stay on the device of the chunk.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drosurv.errors import InputError
from drosurv.objectives.objective import WorstCase
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.solvers.arrays import (
    Array,
    array_like,
    cumulative_sums_at,
    double,
    equal_blocks,
    exp,
    flatnonzero,
    flip,
    in_numpy,
    in_precision_of,
    log,
    searchsorted_right,
    stack,
    subtract_at,
    sum_by_block,
    sum_by_position,
)

if TYPE_CHECKING:
    from torch import Tensor

# Patients in a chunk on an accelerator: enough to use all of it, few enough that a step needs little memory besides the
# features.
ROWS = 1 << 21


class Ties(NamedTuple):
    """Blocks of events with equal times, for Efron's method.

    The loss of each of the m events of a block contains the mean of log(S - k/m D), k = 0..m-1, with D their summed
    risk. Each event computes one of these m terms.

    `block` (E,) is the block of each event, `starts` (K,) the index of the first event of each block; `share` and
    `step` (E,) are 1/m and k/m of each event.
    """

    block: Array
    starts: Array
    share: Array
    step: Array

    @classmethod
    def of(cls, last: Array) -> Ties | None:
        """Find the blocks of events with the same risk set, given by its `last` position; None without ties."""
        block, starts, counts, before = equal_blocks(last)
        if len(starts) == len(last):
            return None
        share = 1.0 / double(counts)
        return cls(block, starts, share, share * double(before))

    def total(self, values: Array) -> Array:
        """Return for each event the sum (..., E) of values over its block."""
        return sum_by_block(values, self.block, self.starts)[..., self.block]

    def mean(self, values: Array) -> Array:
        """Return for each event the mean (..., E) of values over its block."""
        return self.total(values * in_precision_of(values, self.share))


class ScoredEvents(NamedTuple):
    """Events of one half (or of all patients) and the risk sets that they are compared with.

    `event` (E,) are their positions in the chunk, ascending; `last` (E,) is the last position with the same time: the
    risk set is everyone up to it. `mass` (E,) are the masses of the events, `reference` (m,) the weights of patients in
    risk sets, None if all are one. If `adds_event`, risk sets contain only patients of the other half, and the risk of
    the event itself is added. `ties` are the blocks of tied events for Efron's method.
    """

    event: Array
    last: Array
    mass: Array
    reference: Array | None
    adds_event: bool
    ties: Ties | None = None


class Scheme(NamedTuple):
    """Total weights and treatment of ties, the same for all chunks.

    `totals` are the summed weights of the patients of each half, over all chunks; one total without halves. With halves
    `ties` is "breslow".
    """

    totals: tuple[float, ...]
    ties: str = "breslow"


class Marks(NamedTuple):
    """What is drawn for each patient (m,) before training; None if nothing is.

    `in_first` says whether a patient is in the first half of a split, `fold` in which fold a patient is held out.
    """

    in_first: Array | None = None
    fold: Array | None = None

    @classmethod
    def joined(cls, parts: Sequence[Marks]) -> Marks:
        """Join the marks of several sets of patients."""
        return cls(
            *(None if marks[0] is None else np.concatenate(marks) for marks in zip(*parts, strict=True))
        )

    def take(self, rows: Any) -> Marks:
        """Return the marks of some patients."""
        return Marks(*(None if values is None else values[rows] for values in self))


class Chunk(NamedTuple):
    """Features (d, m), scored events, times, event flags, weights and marks of m patients, sorted by descending time.

    An object with the same attributes that reads them from disk can be used instead.
    """

    X: Array
    sides: tuple[ScoredEvents, ...]
    time: Array
    event: Array
    weight: Array | None
    marks: Marks


def make_chunk(
    X: Array, time: Array, event: Array, weight: Array | None, marks: Marks, scheme: Scheme
) -> Chunk:
    """Make a chunk of m patients, sorted from the longest to the shortest time, with centred features (d, m).

    `weight` is None if all weights are one.
    """
    in_first = marks.in_first
    if in_first is None:
        sides = [_scored(time, event, weight, scheme.totals[0], None, scheme.ties == "efron")]
    else:
        halves = (in_first, ~in_first)[: len(scheme.totals)]
        sides = [
            _scored(time, event & half, weight, total, ~half, False)
            for half, total in zip(halves, scheme.totals, strict=True)
        ]
    return Chunk(X, tuple(sides), time, event, weight, marks)


def _scored(
    time: Array, event: Array, weight: Array | None, total: float, others: Array | None, efron: bool
) -> ScoredEvents:
    """Prepare the given events; risk sets contain only the `others` (m,), or everyone if None."""
    ascending = -double(time)
    positions = flatnonzero(event)
    last = searchsorted_right(ascending, ascending[positions]) - 1
    mass = (double(event[positions]) if weight is None else double(weight)[positions]) / total
    reference = weight
    if others is not None:
        reference = double(others) if weight is None else double(others) * weight
    ties = Ties.of(last) if efron else None
    return ScoredEvents(positions, last, mass, reference, others is not None, ties)


class ChunkState:
    """A chunk, and its scores and losses at the last point, which are computed again where they are not known.

    A cluster keeps it on a worker. A copy on another worker has only the chunk.
    """

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk
        self._scores: tuple[FloatArray, Array] | None = None
        self._losses: tuple[At, list[Losses]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"chunk": self.chunk, "_scores": None, "_losses": None}

    def scores(self, theta: FloatArray) -> Array:
        """Return the scores (m,) in float64 at coefficients theta (d,)."""
        if self._scores is None or not np.array_equal(self._scores[0], theta):
            # Free the memory of the last point first: with many patients, two points need much memory.
            self._scores = self._losses = None
            X = self.chunk.X
            self._scores = theta, double(array_like(X, theta) @ X)
        return self._scores[1]

    def losses(self, at: At) -> list[Losses]:
        """Return the losses of each half's events."""
        if self._losses is None or not self._losses[0].equals(at):
            self._losses = at, losses(self.chunk, self.scores(at.theta), at.shift, at.before)
        return self._losses[1]


class At(NamedTuple):
    """A point as one chunk needs it.

    `theta` (d,) are the coefficients, `shift` is about the highest score of all patients, and `before` has for each
    half the summed risk of earlier chunks, divided by exp(shift).
    """

    theta: FloatArray
    shift: float
    before: FloatArray

    def equals(self, other: At) -> bool:
        """Return whether two points are the same."""
        same = self.shift == other.shift and np.array_equal(self.theta, other.theta)
        return bool(same and np.array_equal(self.before, other.before))


class RowsOnDevice(NamedTuple):
    """Patients on an accelerator, and the `order` (n,) of :func:`drosurv.patients.draws.row_order`.

    Features (n, d) and weights (n,) are in the given order; times and event flags (n,) are sorted.
    """

    X: Tensor
    weight: Tensor | None
    order: Tensor
    time: Tensor
    event: Tensor

    @classmethod
    def of(
        cls,
        X: Any,
        time: FloatArray,
        event: BoolArray,
        weight: FloatArray | None,
        device: Any,
        clusters: IntArray | None = None,
    ) -> RowsOnDevice:
        """Copy patients to a device and sort them, as :func:`drosurv.patients.draws.row_order` does."""
        import torch

        with warnings.catch_warnings():
            # torch warns that arrays of a DataFrame are read-only; nothing is written to them.
            warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
            given, times, events, weights, numbers = (
                None if values is None else torch.as_tensor(values, device=device)
                for values in (X, time, event, weight, clusters)
            )
        assert given is not None, "features are given"
        assert times is not None, "times are given"
        assert events is not None, "event flags are given"
        ascending, order = times.sort(stable=True)
        new = torch.ones_like(order, dtype=torch.bool)
        new[1:] = ascending[1:] != ascending[:-1]
        others = [values for values in (weights, numbers) if values is not None]
        for column in chain([events], given.unbind(1), others):
            later = torch.ones_like(new)
            later[:-1] = new[1:]
            tied = (~(new & later)).nonzero()[:, 0]
            if len(tied) == 0:
                break
            values, by = column[order[tied]].sort(stable=True)
            within = new.cumsum(0)[tied][by].argsort(stable=True)
            order[tied], values = order[tied][by][within], values[within]
            new[tied[1:]] |= values[1:] != values[:-1]
        order = order.flip(0)
        return cls(given, weights, order, times[order], events[order])


def device_chunks(
    patients: RowsOnDevice, marks: Marks, scheme: Scheme, rows: int = ROWS
) -> tuple[list[ChunkState], FloatArray]:
    """Make chunks of about `rows` patients each, from the longest to the shortest times, on an accelerator.

    The marks are those of the sorted patients. Return the chunks and the centre (d,) of the features.
    """
    import torch

    given, device = patients.X, patients.order.device
    order, descending, events = patients.order, patients.time, patients.event
    centre = _centre(given, patients.weight)
    # A sum is finite only if all its terms are.
    if not bool(torch.isfinite(centre).all()):
        column = int((~torch.isfinite(centre)).nonzero()[0])
        raise InputError(
            f"X contains NaN or infinity (first in column {column}); drop or correct those rows."
        )
    weights = None if patients.weight is None else patients.weight[order]
    marked = Marks(*(None if values is None else torch.as_tensor(values, device=device) for values in marks))
    chunks, start, n = [], 0, len(given)
    while start < n:
        stop = min(start + rows, n)
        # Equal times stay in one chunk.
        stop = int((descending >= descending[stop - 1]).sum()) if stop < n else n
        block = slice(start, stop)
        features = (given[order[block]] - centre.to(given.dtype)).T.contiguous()
        here = (events[block], None if weights is None else weights[block], marked.take(block))
        chunks.append(ChunkState(make_chunk(features, descending[block], *here, scheme)))
        start = stop
    return chunks, centre.cpu().numpy()


def _centre(X: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean of the features in float64, without copying them."""
    import torch

    if weight is None:
        # torch makes a copy to sum in double precision, so sum part by part.
        parts = (X[row : row + ROWS] for row in range(0, len(X), ROWS))
        return torch.stack([part.sum(0, dtype=torch.float64) for part in parts]).sum(0) / len(X)
    return ((weight / weight.sum()).to(X.dtype) @ X).double()


def without_fold(state: ChunkState, fold: int, scheme: Scheme) -> ChunkState:
    """Return the chunk for training without a fold, whose patients get weight zero; the features are shared."""
    chunk = state.chunk
    if not isinstance(chunk, Chunk):
        return ChunkState(FoldOnDisk(chunk, fold, scheme))
    kept = chunk.marks.fold != fold
    weight = double(kept) * _one_or(chunk.weight)
    part = make_chunk(chunk.X, chunk.time, chunk.event & kept, weight, chunk.marks, scheme)
    return ChunkState(part)


class FoldOnDisk:
    """A chunk on disk for training without a fold; only the features are read again at every access."""

    def __init__(self, chunk: Any, fold: int, scheme: Scheme) -> None:
        self._stored, small = chunk, {name: getattr(chunk, name) for name in Chunk._fields[2:]}
        part = without_fold(ChunkState(Chunk(np.zeros((0, 0)), (), **small)), fold, scheme).chunk
        self.sides, self.time, self.event, self.weight, self.marks = part[1:]

    @property
    def X(self) -> Array:
        """Features (d, m)."""
        return self._stored.X


def held_out(state: ChunkState, theta: FloatArray, fold: int, scheme: Scheme) -> ChunkState:
    """Return a chunk whose only feature is the score at theta, in which only the patients of a fold have weight."""
    chunk = state.chunk
    f, inside = state.scores(theta), chunk.marks.fold == fold
    weight = double(inside) * _one_or(chunk.weight)
    return ChunkState(make_chunk(f[None], chunk.time, chunk.event & inside, weight, Marks(), scheme))


def extent(state: ChunkState, theta: FloatArray) -> Array:
    """Return the lowest and highest score, and for each half the summed risk of the chunk divided by exp(highest)."""
    f, sides = state.scores(theta), state.chunk.sides
    highest = f.max()
    risk = exp(f - highest)
    return stack([f.min(), highest, *((risk * _one_or(side.reference)).sum() for side in sides)])


class Losses(NamedTuple):
    """Losses (E,) of one half's events; with Efron's ties also the terms log(S - k/m D), (E,)."""

    value: Array
    log_terms: Array | None = None


def losses(chunk: Chunk, f: Array, shift: float, before: Array) -> list[Losses]:
    """Return the losses of each half's events, given the summed risk of earlier chunks divided by exp(shift)."""
    risk, out = exp(f - shift), []
    for side, carry in zip(chunk.sides, before, strict=True):
        score, weighted = f[side.event], risk * _one_or(side.reference)
        total = weighted.cumsum(0)[side.last] + carry
        if side.adds_event:
            total = total + exp(score - shift)
        if side.ties is None:
            out.append(Losses(log(total) + (shift - score)))
            continue
        log_terms = log(total - side.ties.step * side.ties.total(weighted[side.event])) + shift
        out.append(Losses(side.ties.mean(log_terms) - score, log_terms))
    return out


def masses(state: ChunkState) -> list[FloatArray]:
    """Return the masses of each half's events, copied to the CPU."""
    return [in_numpy(side.mass) for side in state.chunk.sides]


def loss_values(state: ChunkState, at: At) -> list[FloatArray]:
    """Return the losses of each half's events, copied to the CPU."""
    return [in_numpy(l.value) for l in state.losses(at)]


def moments(state: ChunkState, at: At, which: int, low: float, high: float, base: float) -> Array:
    """Return the moments (4,) of one half's losses: mass above `high`, and mass, sum and sum of squares between."""
    side, l = state.chunk.sides[which], state.losses(at)[which].value
    between = side.mass * ((l > low) & (l < high))
    off = l - base
    first = between * off
    above = side.mass * (l >= high)
    return stack([above.sum(), between.sum(), first.sum(), (first * off).sum()])


def bounds(state: ChunkState, at: At, which: int) -> Array:
    """Return the smallest and largest loss (2,) of one half; (inf, -inf) if it has none."""
    l = state.losses(at)[which].value
    zero = l.sum()
    return stack([l.min(), l.max()] if len(l) else [zero + np.inf, zero - np.inf])


def members(state: ChunkState, at: At, which: int, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return the distinct losses of one half in (low, high] and their summed masses, copied to the CPU.

    There should be few losses between the bounds.
    """
    l = state.losses(at)[which].value
    inside = (l > low) & (l <= high)
    distinct, index = np.unique(in_numpy(l[inside]), return_inverse=True)
    mass = in_numpy(state.chunk.sides[which].mass[inside])
    return distinct, in_numpy(np.bincount(index, mass, len(distinct)))


def pulled(state: ChunkState, at: At, worst_cases: tuple[WorstCase, ...]) -> Array:
    """Return for each half the sum of q_i / S_i over the events of the chunk."""
    f, sides = state.scores(at.theta), zip(state.chunk.sides, state.losses(at), worst_cases, strict=True)
    return stack(
        [_pulls(side, f, l, at.shift, _weights(side, l, worst_case)).sum() for side, l, worst_case in sides]
    )


def gradient(state: ChunkState, at: At, worst_cases: tuple[WorstCase, ...], after: Array) -> Array:
    """Return the part (d,) of the gradient from this chunk, given the sums of q_i / S_i over later chunks."""
    chunk, f, values, shift = state.chunk, state.scores(at.theta), state.losses(at), at.shift
    slope = 0.0 * f
    for side, l, worst_case, carry in zip(chunk.sides, values, worst_cases, after, strict=True):
        q = _weights(side, l, worst_case)
        slope = slope + _pulled_risk(side, f, _pulls(side, f, l, shift, q), shift, carry)
        # With halves, the event's share exp(-l) of the risk is subtracted from its weight.
        of_events = q * (1.0 - exp(-l.value)) if side.adds_event else q
        slope = subtract_at(slope, side.event, of_events)
    X = chunk.X
    return double(X @ in_precision_of(X, slope))


def feature_risk(state: ChunkState, at: At) -> Array:
    """Return for each half the sum (d,) of features times risk over the chunk."""
    X, risk, sides = state.chunk.X, exp(state.scores(at.theta) - at.shift), state.chunk.sides
    return stack([double(X @ in_precision_of(X, risk * _one_or(side.reference))) for side in sides])


def sums_of_chunk(state: ChunkState, at: At, worst_cases: tuple[WorstCase, ...]) -> tuple[Array, Array]:
    """Return :func:`pulled` and :func:`feature_risk`."""
    return pulled(state, at, worst_cases), feature_risk(state, at)


def slopes(
    state: ChunkState, at: At, worst_cases: tuple[WorstCase, ...], after: Array, before: Array
) -> tuple[Array, tuple[Array, list[WeightTerms | None]]]:
    """Return :func:`gradient` and :func:`curvature`."""
    return gradient(state, at, worst_cases, after), curvature(state, at, worst_cases, after, before)


class WeightTerms(NamedTuple):
    """Sums over a chunk for the terms of the Hessian that come from the change of one half's weights with the losses.

    With J_i the gradient of loss i in the coefficients, p_i its mass, and A the losses whose weights change:
    ``squares`` (d, d) = sum_A p_i J_i J_i', ``sums`` (d,) = sum_A p_i J_i, ``excess_sums`` (d,) =
    sum_A p_i (l_i - eta) J_i.
    """

    squares: Array
    sums: Array
    excess_sums: Array


def curvature(
    state: ChunkState, at: At, worst_cases: tuple[WorstCase, ...], after: Array, before: Array
) -> tuple[Array, list[WeightTerms | None]]:
    """Return the Hessian (d, d) with fixed weights, and for each half the sums for changing weights.

    `before` holds for each half the sum of features times risk over earlier chunks.
    """
    chunk, f, values, shift = state.chunk, state.scores(at.theta), state.losses(at), at.shift
    X, risk = chunk.X, exp(f - shift)
    inside, by_terms = 0.0 * f, 0.0
    weight_terms: list[WeightTerms | None] = []
    for events, found, worst_case, pull, carry in zip(
        chunk.sides, values, worst_cases, after, before, strict=True
    ):
        side, l, q = _with_weight(events, found, worst_case)
        inside = inside + _pulled_risk(side, f, _pulls(side, f, l, shift, q), shift, pull)
        if not len(q):
            # Late events have small risk sets and small losses: all events of a chunk may have weight zero.
            weight_terms.append(None)
            continue
        by_risk = X * in_precision_of(X, risk * _one_or(side.reference))
        means = cumulative_sums_at(by_risk, array_like(X, carry), side.last)
        if side.adds_event:
            means += X[:, side.event] * in_precision_of(X, exp(f[side.event] - shift))
            inside = subtract_at(inside, side.event, -q * exp(-l.value))
        if side.ties is not None:
            means -= side.ties.total(by_risk[:, side.event]) * in_precision_of(X, side.ties.step)
        means *= in_precision_of(X, _inverse_risk(side, f, l, shift))
        by_terms = by_terms + double((means * in_precision_of(X, _term_weights(side, q))) @ means.T)
        if worst_case.scale <= 0.0:
            weight_terms.append(None)
            continue
        if side.ties is not None:
            means = side.ties.mean(means)
        means -= X[:, side.event]
        active, excess = (in_precision_of(X, part) for part in _changing_masses(side, l, worst_case))
        sums = (means * active) @ means.T, means @ active, means @ excess
        weight_terms.append(WeightTerms(*(double(part) for part in sums)))
    return double((X * in_precision_of(X, inside)) @ X.T) - by_terms, weight_terms


def patient_weights(state: ChunkState, at: At, worst_cases: tuple[WorstCase, ...]) -> list[Array]:
    """Return the worst-case weights of each half's events."""
    return [
        _weights(side, l, worst_case)
        for side, l, worst_case in zip(state.chunk.sides, state.losses(at), worst_cases, strict=True)
    ]


def _weights(side: ScoredEvents, l: Losses, worst_case: WorstCase) -> Array:
    """Return the worst-case weights q_i."""
    return side.mass * worst_case.ratio(l.value)


def _with_weight(side: ScoredEvents, l: Losses, worst_case: WorstCase) -> tuple[ScoredEvents, Losses, Array]:
    """Keep the events with positive weight, usually few under a robust objective; with Efron's ties keep all."""
    q = _weights(side, l, worst_case)
    if side.ties is not None:
        return side, l, q
    kept = flatnonzero(q > 0.0)
    few = side._replace(event=side.event[kept], last=side.last[kept], mass=side.mass[kept])
    return few, Losses(l.value[kept]), q[kept]


def _term_weights(side: ScoredEvents, q: Array) -> Array:
    """Return the weight of each event's term: with Efron's ties, the mean weight of the tied events."""
    return q if side.ties is None else side.ties.mean(q)


def _changing_masses(side: ScoredEvents, l: Losses, worst_case: WorstCase) -> tuple[Array, Array]:
    """Return the masses (E,) of the losses whose weights change with them, 0 for others, and mass times excess."""
    over = l.value - worst_case.eta
    active = side.mass * ((over > 0.0) & (over * worst_case.slope < worst_case.cap))
    return active, active * over


def _inverse_risk(side: ScoredEvents, f: Array, l: Losses, shift: float) -> Array:
    """Return 1 / S_i of each term; without ties it follows from l_i = log S_i - f_i."""
    return exp(shift - (l.value + f[side.event] if l.log_terms is None else l.log_terms))


def _pulls(side: ScoredEvents, f: Array, l: Losses, shift: float, q: Array) -> Array:
    """Return q_i / S_i of each term."""
    return _term_weights(side, q) * _inverse_risk(side, f, l, shift)


def _pulled_risk(side: ScoredEvents, f: Array, pulls: Array, shift: float, carry: float) -> Array:
    """Return each patient's risk times the sum of q_i / S_i over the terms in which the patient is at risk."""
    by_position = sum_by_position(side.last, pulls, f)
    # Summed from the end, where terms are smallest, to keep rounding errors small.
    total = flip(flip(by_position).cumsum(0)) + carry
    if side.ties is not None:
        total = subtract_at(total, side.event, side.ties.total(side.ties.step * pulls))
    return total * exp(f - shift) * _one_or(side.reference)


def _one_or(reference: Array | None) -> Array | float:
    return 1.0 if reference is None else reference
