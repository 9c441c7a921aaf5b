"""Adam for linear DRO-COX, whole or split, in one compiled loop: the kernels of its parts, with nothing between.

The same arithmetic as :func:`drosurv.solvers.adam` on the same kernels; what it saves is the interpreter, which
takes as long as the arithmetic on a few thousand patients. It holds no lock, so threads run several at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from drosurv.losses.cox_partial import event_losses, subtract_from_events
from drosurv.losses.cox_split import softplus_terms
from drosurv.losses.loss import RiskPart, add_by_block
from drosurv.losses.risk_sets import log_sums, pull_back
from drosurv.objectives.chi_square import minimise_row
from drosurv.solvers.adam import DECAY_FIRST, DECAY_SECOND, EPSILON
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.networks.linear import Linear, combine, project
from drosurv.target import FloatArray, IntArray


def _parts(criterion: Criterion) -> list[RiskPart] | None:
    """Events against risk sets, each part with an objective of its own; None for any other criterion."""
    parts = criterion.loss.risk_parts()
    if parts is None or criterion.penalty is not None or not criterion.joins_the_lossless:
        return None
    if len(parts) != len(criterion.blocks):
        return None
    own = all(
        np.array_equal(part.patients, block) for part, block in zip(parts, criterion.blocks, strict=True)
    )
    return parts if own else None


def compiled_adam(
    network: Linear, criterion: Criterion, lr: FloatArray, steps: int, l2: float = 0.0
) -> FloatArray | None:
    """As :func:`drosurv.solvers.adam`; None, and nothing is done, where the criterion has other parts."""
    parts, radius = _parts(criterion), criterion.of_block.radius
    if parts is None or radius is None:
        return None
    # Patients risk set by risk set in order of time: gathers and scatters become plain passes.
    referred = np.concatenate([part.risk_sets.order for part in parts])
    outside = np.ones(criterion.loss.n, dtype=np.bool_)
    outside[referred] = False
    apart = np.flatnonzero(outside)
    layout = np.concatenate([apart, referred])
    place = np.empty_like(layout)
    place[layout] = np.arange(len(layout))
    theta = network.parameters[0]
    history = np.empty((len(theta), steps))
    _train(
        network.columns.take(layout, axis=1),
        theta,
        np.ascontiguousarray(lr, dtype=np.float64),
        l2,
        tuple(_part(part, place, mass) for part, mass in zip(parts, criterion.block_masses(), strict=True)),
        parts[0].apart,
        len(apart),
        np.ascontiguousarray(np.broadcast_to(radius, (len(theta),))),
        history,
    )
    return history


class _Part(NamedTuple):
    """Events with one objective and the risk sets they refer to, and room for what a step computes of them.

    K times, E events, m patients in risk sets; ``mass``, ``losses`` and ``weights`` have one entry more, for all
    patients without a loss.
    """

    order: IntArray
    first: IntArray
    weight: FloatArray
    rows: IntArray
    block: IntArray
    mass: FloatArray
    risks: FloatArray
    levels: FloatArray
    sums: FloatArray
    logs: FloatArray
    pull: FloatArray
    losses: FloatArray
    weights: FloatArray
    slopes: FloatArray


def _part(part: RiskPart, place: IntArray, mass: FloatArray) -> _Part:
    """A part of the loss, its patients at their new places."""
    sets, events = part.risk_sets, len(part.rows)
    times = (1, len(sets.first))
    return _Part(
        place[sets.order],
        sets.first,
        sets.sorted_weight,
        place[part.rows],
        part.block,
        mass,
        np.empty((1, len(sets.order))),
        np.empty(times),
        np.empty(times),
        np.empty(times),
        np.empty(times),
        np.zeros(events + 1),
        np.empty(events + 1),
        # A whole loss rises as fast as its log sum; a split one, by the others' share.
        np.ones((1, events)),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _train(
    columns: FloatArray,
    thetas: FloatArray,
    lr: FloatArray,
    l2: float,
    parts: tuple[_Part, ...],
    split: bool,
    apart: int,
    constant: FloatArray,
    history: FloatArray,
) -> None:
    d, n = columns.shape
    scores, gradient, slope = np.empty((1, n)), np.empty((1, n)), np.empty(d)
    for b in range(thetas.shape[0]):
        theta, first_moment, second_moment = thetas[b], np.zeros(d), np.zeros(d)
        eta = np.full(len(parts), -np.inf)
        for step in range(1, history.shape[1] + 1):
            combine(columns, theta, scores[0])
            total, k = 0.0, 0
            for p in parts:
                log_sums(scores, p.order, p.first, p.weight, p.risks, p.levels, p.sums, p.logs)
                losses = p.losses[:-1].reshape(p.slopes.shape)
                if split:
                    softplus_terms(p.logs, scores, p.rows, p.block, losses, p.slopes)
                else:
                    event_losses(p.logs, scores, p.rows, p.block, losses)
                eta[k], value = minimise_row(p.losses, p.mass, constant[b], eta[k], p.weights)
                total, k = total + value, k + 1
            gradient[0, :apart] = 0.0
            # No patient is in the risk sets of two parts: what these pull is written, what events pull subtracted.
            for p in parts:
                np.multiply(p.weights[:-1], p.slopes[0], p.weights[:-1])
                p.pull[:] = 0.0
                add_by_block(p.weights[:-1].reshape(p.slopes.shape), p.block, p.pull)
                pull_back(p.pull, p.order, p.first, p.risks, p.levels, p.sums, gradient)
            for p in parts:
                subtract_from_events(p.weights[:-1].reshape(p.slopes.shape), p.rows, gradient)
            project(columns, gradient[0], slope)
            rate = lr[b] / (1.0 - DECAY_FIRST**step)
            shrink = math.sqrt(1.0 - DECAY_SECOND**step)
            for j in range(d):
                total += 0.5 * l2 * theta[j] * theta[j]
                g = slope[j] + l2 * theta[j]
                first_moment[j] = DECAY_FIRST * first_moment[j] + (1.0 - DECAY_FIRST) * g
                second_moment[j] = DECAY_SECOND * second_moment[j] + (1.0 - DECAY_SECOND) * g * g
                theta[j] -= rate * first_moment[j] / (math.sqrt(second_moment[j]) / shrink + EPSILON)
            history[b, step - 1] = total
