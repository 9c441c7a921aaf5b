"""What a linear Cox model asks of a slab of patients: sums that add up over slabs.

Every function here is pure: the same slab and carries give the same answer on any machine, so that work lost can be
done again. Answers stay where the slab lies, an accelerator perhaps: to fetch one is to wait for all work before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drosurv.objectives.objective import WorstCase
from drosurv.solvers.arrays import (
    Array,
    double,
    exp,
    flipped,
    in_numpy,
    in_precision_of,
    joined,
    less,
    log,
    running_sums_at,
    set_places,
    summed_by_place,
    vector_beside,
)
from drosurv.solvers.slab import ScoredEvents, Slab
from drosurv.target import FloatArray


def scores(slab: Slab, theta: Any) -> Array:
    """Scores (m,) in float64 at coefficients theta (d,)."""
    X = slab.X
    return double(vector_beside(X, theta) @ X)


def extent(slab: Slab, f: Array) -> Array:
    """Lowest and highest score, and for each side the risk over exp(highest) that later slabs must add to theirs."""
    highest = f.max()
    risk = exp(f - highest)
    return joined([f.min(), highest, *((risk * _one_or(side.reference)).sum() for side in slab.sides)])


class Losses(NamedTuple):
    """Losses (E,) of one side's events; in Efron's form beside them the log (E,) of what each term compares with."""

    value: Array
    log_terms: Array | None = None


def losses(slab: Slab, f: Array, shift: float, before: Array) -> list[Losses]:
    """Losses of each side's events, given the risk of earlier slabs over exp(shift)."""
    risk, out = exp(f - shift), []
    for side, carry in zip(slab.sides, before, strict=True):
        own, by_risk = f[side.event], risk * _one_or(side.reference)
        total = by_risk.cumsum(0)[side.last] + carry
        if side.own:
            total = total + exp(own - shift)
        if side.ties is None:
            out.append(Losses(log(total) + (shift - own)))
            continue
        log_terms = log(total - side.ties.step * side.ties.total(by_risk[side.event])) + shift
        out.append(Losses(side.ties.mean(log_terms) - own, log_terms))
    return out


def moments(slab: Slab, values: list[Losses], which: int, low: float, high: float, base: float) -> Array:
    """Numbers of the moments (4,) of one side's losses."""
    side, l = slab.sides[which], values[which].value
    between = side.mass * ((l > low) & (l < high))
    off = l - base
    first = between * off
    above = side.mass * (l >= high)
    return joined([above.sum(), between.sum(), first.sum(), (first * off).sum()])


def bounds(values: list[Losses], which: int) -> Array:
    """Smallest and largest loss (2,) of one side; infinities the wrong way round where it has none."""
    l = values[which].value
    nothing = l.sum()
    return joined([l.min(), l.max()] if len(l) else [nothing + np.inf, nothing - np.inf])


def members(
    slab: Slab, values: list[Losses], which: int, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Distinct losses of one side above a bound and up to another, and their masses: for bounds that few lie between.

    They are fetched. Equal losses may be many, where times are coarse, and are one.
    """
    l = values[which].value
    inside = (l > low) & (l <= high)
    distinct, place = np.unique(in_numpy(l[inside]), return_inverse=True)
    masses = in_numpy(slab.sides[which].mass[inside])
    return distinct, in_numpy(np.bincount(place, masses, len(distinct)))


def pulled(
    slab: Slab, f: Array, values: list[Losses], shift: float, worst_cases: tuple[WorstCase, ...]
) -> Array:
    """What the events of a slab pull on everybody at risk: for each side the sum of q_i / S_i."""
    return joined(
        [
            _pulls(side, f, l, shift, _weights(side, l, worst_case)).sum()
            for side, l, worst_case in zip(slab.sides, values, worst_cases, strict=True)
        ]
    )


def gradient(
    slab: Slab,
    f: Array,
    values: list[Losses],
    shift: float,
    worst_cases: tuple[WorstCase, ...],
    after: Array,
) -> Array:
    """The slab's part (d,) of the gradient, given what the events of later slabs pull."""
    slope = 0.0 * f
    for side, l, worst_case, carry in zip(slab.sides, values, worst_cases, after, strict=True):
        q = _weights(side, l, worst_case)
        slope = slope + _pulled_risk(side, f, _pulls(side, f, l, shift, q), shift, carry)
        # Of an event's own risk, exp(-l) is its share in a risk set of others.
        kept = q * (1.0 - exp(-l.value)) if side.own else q
        slope = less(slope, side.event, kept)
    X = slab.X
    return double(X @ in_precision_of(X, slope))


def feature_risk(slab: Slab, f: Array, shift: float) -> Array:
    """For each side the features (d,) summed by risk, which later slabs must add to theirs."""
    X, risk = slab.X, exp(f - shift)
    return joined([double(X @ in_precision_of(X, risk * _one_or(side.reference))) for side in slab.sides])


class Bend(NamedTuple):
    """What a slab adds to the second derivatives where one side's weights follow the losses.

    With J_i the gradient of loss i in the coefficients: ``active`` (d, d) = sum_A p_i J_i J_i', ``on_active`` (d,) =
    sum_A p_i J_i and ``on_along`` (d,) = sum_A p_i (l_i - eta) J_i over the losses A that can still gain weight.
    """

    active: Array
    on_active: Array
    on_along: Array


def curvature(
    slab: Slab,
    f: Array,
    values: list[Losses],
    shift: float,
    worst_cases: tuple[WorstCase, ...],
    after: Array,
    before: Array,
) -> tuple[Array, list[Bend | None]]:
    """Second derivatives (d, d) under fixed weights, and for each side what following adds, if anything.

    `before` holds for each side the features of earlier slabs summed by risk.
    """
    X, risk = slab.X, exp(f - shift)
    inside, by_terms = 0.0 * f, 0.0
    bends: list[Bend | None] = []
    for everybody, found, worst_case, pull, carry in zip(
        slab.sides, values, worst_cases, after, before, strict=True
    ):
        side, l, q = _weighed(everybody, found, worst_case)
        inside = inside + _pulled_risk(side, f, _pulls(side, f, l, shift, q), shift, pull)
        if not len(q):
            # Late events have small risk sets and so small losses: whole slabs may be without weight.
            bends.append(None)
            continue
        by_risk = X * in_precision_of(X, risk * _one_or(side.reference))
        means = running_sums_at(by_risk, vector_beside(X, carry), side.last)
        if side.own:
            means += X[:, side.event] * in_precision_of(X, exp(f[side.event] - shift))
            inside = less(inside, side.event, -q * exp(-l.value))
        if side.ties is not None:
            means -= side.ties.total(by_risk[:, side.event]) * in_precision_of(X, side.ties.step)
        means *= in_precision_of(X, _inverse_risk(side, f, l, shift))
        by_terms = by_terms + double((means * in_precision_of(X, _even(side, q))) @ means.T)
        if worst_case.scale <= 0.0:
            bends.append(None)
            continue
        if side.ties is not None:
            means = side.ties.mean(means)
        means -= X[:, side.event]
        active, along = (in_precision_of(X, part) for part in _bending(side, l, worst_case))
        grown = (means * active) @ means.T, means @ active, means @ along
        bends.append(Bend(*(double(part) for part in grown)))
    return double((X * in_precision_of(X, inside)) @ X.T) - by_terms, bends


def patient_weights(slab: Slab, values: list[Losses], worst_cases: tuple[WorstCase, ...]) -> list[Array]:
    """Worst-case weights of each side's events."""
    return [
        _weights(side, l, worst_case)
        for side, l, worst_case in zip(slab.sides, values, worst_cases, strict=True)
    ]


def _weights(side: ScoredEvents, l: Losses, worst_case: WorstCase) -> Array:
    """q_i = p_i times what the worst_case says of loss i."""
    return side.mass * worst_case.ratio(l.value)


def _weighed(side: ScoredEvents, l: Losses, worst_case: WorstCase) -> tuple[ScoredEvents, Losses, Array]:
    """The events that have weight, mostly few under a robust objective; tied ones share theirs and stay together."""
    q = _weights(side, l, worst_case)
    if side.ties is not None:
        return side, l, q
    held = set_places(q > 0.0)
    few = side._replace(event=side.event[held], last=side.last[held], mass=side.mass[held])
    return few, Losses(l.value[held]), q[held]


def _even(side: ScoredEvents, q: Array) -> Array:
    """Weights of the terms: events of a block share theirs evenly."""
    return q if side.ties is None else side.ties.mean(q)


def _bending(side: ScoredEvents, l: Losses, worst_case: WorstCase) -> tuple[Array, Array]:
    """Masses of the losses whose weight moves with them, and the same times their excess over eta."""
    over = l.value - worst_case.eta
    active = side.mass * ((over > 0.0) & (over * worst_case.slope < worst_case.cap))
    return active, active * over


def _inverse_risk(side: ScoredEvents, f: Array, l: Losses, shift: float) -> Array:
    """1 / S_i of each term; without ties from l_i = log S_i - f_i."""
    return exp(shift - (l.value + f[side.event] if l.log_terms is None else l.log_terms))


def _pulls(side: ScoredEvents, f: Array, l: Losses, shift: float, q: Array) -> Array:
    """q_i / S_i of each term."""
    return _even(side, q) * _inverse_risk(side, f, l, shift)


def _pulled_risk(side: ScoredEvents, f: Array, pulls: Array, shift: float, carry: float) -> Array:
    """Risk of each patient times the sum of q_i / S_i over the terms that have the patient at risk."""
    per_place = summed_by_place(side.last, pulls, f)
    # From the back, where the terms are smallest: subtracting from a total would leave only its rounding there.
    total = flipped(flipped(per_place).cumsum(0)) + carry
    if side.ties is not None:
        total = less(total, side.event, side.ties.total(side.ties.step * pulls))
    return total * exp(f - shift) * _one_or(side.reference)


def _one_or(reference: Array | None) -> Array | float:
    return 1.0 if reference is None else reference
