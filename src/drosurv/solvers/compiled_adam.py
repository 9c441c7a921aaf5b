"""Adam for linear DRO-COX, with or without splitting, as one compiled loop.

It computes the same numbers as :func:`drosurv.solvers.adam.adam` with the same kernels, without the overhead of the
Python interpreter, which doubles the time for a few thousand patients. It releases Python's global interpreter lock, so
that several fits can run in threads.
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
from drosurv.patients.target import FloatArray, IntArray
from drosurv.solvers.adam import DECAY_FIRST, DECAY_SECOND, EPSILON
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.networks import Linear

# Patients processed at a time, so that their data stay in the cache.
_CHUNK = 16384


def _parts(criterion: Criterion) -> list[RiskPart] | None:
    """Return the parts of a criterion that compares events with risk sets; None for any other criterion.

    Each part must be one block of the criterion.
    """
    parts = criterion.loss.risk_parts()
    if parts is None or criterion.penalty is not None or not criterion.merges_censored:
        return None
    if len(parts) != len(criterion.blocks):
        return None
    same = all(
        np.array_equal(part.patients, block) for part, block in zip(parts, criterion.blocks, strict=True)
    )
    return parts if same else None


def compiled_adam(
    network: Linear, criterion: Criterion, lr: FloatArray, steps: int, l2: float = 0.0
) -> FloatArray | None:
    """Run Adam as :func:`drosurv.solvers.adam.adam` does; do nothing and return None for unsupported criteria."""
    parts, radius = _parts(criterion), criterion.block_objective.radius
    if parts is None or radius is None:
        return None
    # Sort patients by part and time, so that sums over risk sets read memory in order.
    in_risk_sets = np.concatenate([part.risk_sets.order for part in parts])
    outside = np.ones(criterion.loss.n, dtype=np.bool_)
    outside[in_risk_sets] = False
    in_none = np.flatnonzero(outside)
    layout = np.concatenate([in_none, in_risk_sets])
    position = np.empty_like(layout)
    position[layout] = np.arange(len(layout))
    masses = criterion.block_masses()
    arranged = [_part(part, position, mass) for part, mass in zip(parts, masses, strict=True)]
    # Two parts even where one is used: numba would compile the loop again for another number of parts.
    both = arranged[0], arranged[-1]
    columns, thetas = network.columns.take(layout, axis=1), network.parameters[0]
    history = np.empty((len(thetas), steps))
    for theta, rate, constant, values in zip(
        thetas, lr, np.broadcast_to(radius, len(thetas)), history, strict=True
    ):
        _train(
            columns,
            theta,
            float(rate),
            l2,
            both,
            len(parts),
            parts[0].apart,
            len(in_none),
            float(constant),
            values,
        )
    return history


class _Part(NamedTuple):
    """Events of one block, their risk sets, and arrays for the results of a step.

    There are K times, E events and m patients in risk sets; ``mass``, ``losses`` and ``weights`` (E + 1,) have one more
    value, for all censored patients; ``event_losses`` and ``event_weights`` (1, E) are the same numbers without it.
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
    event_losses: FloatArray
    event_weights: FloatArray
    slopes: FloatArray


def _part(part: RiskPart, position: IntArray, mass: FloatArray) -> _Part:
    """Return a part of the loss with its patients in their new order."""
    sets, events = part.risk_sets, len(part.rows)
    times, losses, weights = (1, len(sets.first)), np.zeros(events + 1), np.empty(events + 1)
    return _Part(
        position[sets.order],
        sets.first,
        sets.sorted_weight,
        position[part.rows],
        part.block,
        mass,
        np.empty((1, len(sets.order))),
        np.empty(times),
        np.empty(times),
        np.empty(times),
        np.empty(times),
        losses,
        weights,
        losses[None, :events],
        weights[None, :events],
        # The derivative of a loss in its log sum: 1, or with halves the share of the other half.
        np.ones((1, events)),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _train(
    columns: FloatArray,
    theta: FloatArray,
    lr: float,
    l2: float,
    parts: tuple[_Part, _Part],
    n_parts: int,
    split: bool,
    apart: int,
    constant: float,
    history: FloatArray,
) -> None:
    """Train one model; the first `apart` patients are in no risk set."""
    d, n = columns.shape
    eta, scores, gradient = np.full(2, -np.inf), np.empty((1, n)), np.empty((1, n))
    slope, first_moment, second_moment = np.zeros(d), np.zeros(d), np.zeros(d)
    for step in range(history.shape[0]):
        _combine(columns, theta, scores[0])
        total = 0.0
        for k in range(n_parts):
            p = parts[k]
            log_sums(scores, p.order, p.first, p.weight, p.risks, p.levels, p.sums, p.logs)
            if split:
                softplus_terms(p.logs, scores, p.rows, p.block, p.event_losses, p.slopes)
            else:
                event_losses(p.logs, scores, p.rows, p.block, p.event_losses)
            eta[k], value = minimise_row(p.losses, p.mass, constant, eta[k], p.weights)
            total += value
        for i in range(apart):
            gradient[0, i] = 0.0
        # No patient is in the risk sets of two parts: write their gradients first, then subtract those of events.
        for k in range(n_parts):
            p = parts[k]
            weights, slopes, pull = p.event_weights, p.slopes, p.pull
            for e in range(weights.shape[1]):
                weights[0, e] *= slopes[0, e]
            for e in range(pull.shape[1]):
                pull[0, e] = 0.0
            add_by_block(weights, p.block, pull)
            pull_back(pull, p.order, p.first, p.risks, p.levels, p.sums, gradient)
        for k in range(n_parts):
            p = parts[k]
            subtract_from_events(p.event_weights, p.rows, gradient)
        _project(columns, gradient[0], slope)
        rate = lr / (1.0 - DECAY_FIRST ** (step + 1))
        shrink = math.sqrt(1.0 - DECAY_SECOND ** (step + 1))
        for j in range(theta.shape[0]):
            total += 0.5 * l2 * theta[j] * theta[j]
            g = slope[j] + l2 * theta[j]
            first_moment[j] = DECAY_FIRST * first_moment[j] + (1.0 - DECAY_FIRST) * g
            second_moment[j] = DECAY_SECOND * second_moment[j] + (1.0 - DECAY_SECOND) * g * g
            theta[j] -= rate * first_moment[j] / (math.sqrt(second_moment[j]) / shrink + EPSILON)
        history[step] = total


# Two features at a time: as fast as a general matrix-vector product, which takes longer to compile.
@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _combine(columns: FloatArray, theta: FloatArray, out: FloatArray) -> None:
    """Write the scores (n,), columns' theta, of coefficients theta (d,)."""
    d, n = columns.shape
    odd = d % 2
    for low in range(0, n, _CHUNK):
        high = min(low + _CHUNK, n)
        part, first, one = out[low:high], columns[0, low:high], theta[0] if odd else 0.0
        for i in range(part.shape[0]):
            part[i] = one * first[i]
        for j in range(odd, d, 2):
            first, second, one, two = columns[j, low:high], columns[j + 1, low:high], theta[j], theta[j + 1]
            for i in range(part.shape[0]):
                part[i] += one * first[i] + two * second[i]


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _project(columns: FloatArray, gradient: FloatArray, out: FloatArray) -> None:
    """Write the gradient (d,) in the coefficients, given the gradient (n,) in the scores."""
    d, n = columns.shape
    out[:] = 0.0
    for low in range(0, n, _CHUNK):
        high = min(low + _CHUNK, n)
        part = gradient[low:high]
        for j in range(0, d - 1, 2):
            first, second, one, two = columns[j, low:high], columns[j + 1, low:high], 0.0, 0.0
            for i in range(part.shape[0]):
                one += first[i] * part[i]
                two += second[i] * part[i]
            out[j] += one
            out[j + 1] += two
        if d % 2:
            last, one = columns[d - 1, low:high], 0.0
            for i in range(part.shape[0]):
                one += last[i] * part[i]
            out[d - 1] += one
