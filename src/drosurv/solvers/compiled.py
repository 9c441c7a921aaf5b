"""Adam for linear DRO-COX in one compiled loop: the kernels of loss, objective and network, with nothing between.

The same arithmetic as :func:`drosurv.solvers.adam` on the same kernels; what it saves is the interpreter, which
takes as long as the arithmetic on a few thousand patients. It holds no lock, so threads run several at once.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from drosurv.losses.cox_partial import CoxPartial, add_by_block, subtract_at, subtract_own
from drosurv.losses.risk_sets import log_sums, pull_back
from drosurv.networks.linear import Linear, combine, project
from drosurv.objectives.chi_square import ChiSquare, minimise_row
from drosurv.solvers.adam import DECAY_FIRST, DECAY_SECOND, EPSILON
from drosurv.solvers.composite import Composite
from drosurv.target import FloatArray, IntArray


def compiles(network: Any, criterion: Any) -> bool:
    """Whether the compiled loop knows these parts: linear scores, Breslow's Cox loss, one chi-square objective."""
    return (
        isinstance(network, Linear)
        and isinstance(criterion, Composite)
        and isinstance(criterion.loss, CoxPartial)
        and not criterion.loss.corrects_ties
        and isinstance(criterion.objective, ChiSquare)
        and criterion.penalty is None
    )


def compiled_adam(
    network: Linear, criterion: Composite, lr: FloatArray, steps: int, l2: float = 0.0
) -> FloatArray:
    """As :func:`drosurv.solvers.adam`, for the parts that :func:`compiles` names."""
    loss, objective = criterion.loss, criterion.objective
    assert isinstance(loss, CoxPartial)
    assert isinstance(objective, ChiSquare)
    # In order of time, gathers and scatters become plain passes.
    order = loss.risk_sets.order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    theta = network.parameters[0]
    constant = np.ascontiguousarray(np.broadcast_to(objective.constant, (len(theta),)))
    history = np.empty((len(theta), steps))
    _train(
        np.ascontiguousarray(network.columns[:, order]),
        theta,
        np.ascontiguousarray(lr, dtype=np.float64),
        l2,
        np.arange(len(order)),
        loss.risk_sets.first,
        loss.risk_sets.sorted_weight,
        place[loss.rows],
        loss.block,
        criterion.mass,
        constant,
        history,
    )
    return history


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _train(
    columns: FloatArray,
    thetas: FloatArray,
    lr: FloatArray,
    l2: float,
    order: IntArray,
    first: IntArray,
    weight: FloatArray,
    rows: IntArray,
    block: IntArray,
    mass: FloatArray,
    constant: FloatArray,
    history: FloatArray,
) -> None:  # pragma: no cover - compiled
    d, n = columns.shape
    times, events = first.shape[0], rows.shape[0]
    scores, gradient, risks = np.empty((1, n)), np.empty((1, n)), np.empty((1, n))
    levels, sums, logs = np.empty((1, times)), np.empty((1, times)), np.empty((1, times))
    pull, losses, weights = np.empty((1, times)), np.zeros(events + 1), np.empty(events + 1)
    slope = np.empty(d)
    for b in range(thetas.shape[0]):
        theta, first_moment, second_moment, eta = thetas[b], np.zeros(d), np.zeros(d), -np.inf
        for step in range(1, history.shape[1] + 1):
            combine(columns, theta, scores[0])
            log_sums(scores, order, first, weight, risks, levels, sums, logs)
            subtract_own(logs, scores, rows, block, losses[:events].reshape(1, events))
            eta, value = minimise_row(losses, mass, constant[b], eta, weights)
            pull[:] = 0.0
            add_by_block(weights[:events].reshape(1, events), block, pull)
            pull_back(pull, order, first, risks, levels, sums, gradient)
            subtract_at(weights[:events].reshape(1, events), rows, gradient)
            project(columns, gradient[0], slope)
            rate = lr[b] / (1.0 - DECAY_FIRST**step)
            shrink = math.sqrt(1.0 - DECAY_SECOND**step)
            for j in range(d):
                value += 0.5 * l2 * theta[j] * theta[j]
                g = slope[j] + l2 * theta[j]
                first_moment[j] = DECAY_FIRST * first_moment[j] + (1.0 - DECAY_FIRST) * g
                second_moment[j] = DECAY_SECOND * second_moment[j] + (1.0 - DECAY_SECOND) * g * g
                theta[j] -= rate * first_moment[j] / (math.sqrt(second_moment[j]) / shrink + EPSILON)
            history[b, step - 1] = value
