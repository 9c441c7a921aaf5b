"""Adam for linear DRO-COX, whole or split, in one compiled loop: the kernels of its parts, with nothing between.

The same arithmetic as :func:`drosurv.solvers.adam` on the same kernels; what it saves is the interpreter, which
takes as long as the arithmetic on a few thousand patients. It holds no lock, so threads run several at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from drosurv.losses.cox_partial import CoxPartial, add_by_block, subtract_at, subtract_own
from drosurv.losses.cox_split import CoxSplit, Side, softplus_terms
from drosurv.losses.risk_sets import RiskSets, log_sums, pull_back
from drosurv.networks.linear import Linear, combine, project
from drosurv.objectives.blocks import Blocks
from drosurv.objectives.chi_square import ChiSquare, minimise_row
from drosurv.objectives.objective import Objective
from drosurv.solvers.adam import DECAY_FIRST, DECAY_SECOND, EPSILON
from drosurv.solvers.composite import Composite
from drosurv.target import FloatArray, IntArray


def compiles(network: Any, criterion: Any) -> bool:
    """Whether the compiled loop knows these parts.

    It knows linear scores, and one chi-square objective over everybody's Cox losses with Breslow's ties and risk sets
    without entry times or strata, or one over each scored half's split losses.
    """
    if not (isinstance(network, Linear) and isinstance(criterion, Composite) and criterion.penalty is None):
        return False
    loss, objective = criterion.loss, criterion.objective
    if isinstance(loss, CoxPartial):
        return isinstance(objective, ChiSquare) and not loss.corrects_ties and loss.target.is_plain
    return (
        isinstance(loss, CoxSplit)
        and isinstance(objective, Blocks)
        and all(isinstance(part, ChiSquare) for part in objective.parts)
        and len(criterion.blocks) == len(loss.halves)
        and all(map(np.array_equal, criterion.blocks, loss.halves))
    )


def compiled_adam(
    network: Linear, criterion: Composite, lr: FloatArray, steps: int, l2: float = 0.0
) -> FloatArray:
    """As :func:`drosurv.solvers.adam`, for the parts that :func:`compiles` names."""
    loss = criterion.loss
    assert isinstance(loss, CoxPartial | CoxSplit)
    sides: Sequence[CoxPartial | Side] = loss.sides if isinstance(loss, CoxSplit) else [loss]
    masses, constant = _balls(criterion.objective, criterion.mass)
    # Patients risk set by risk set in order of time: gathers and scatters become plain passes.
    referred = np.concatenate([_risk_sets(side).order for side in sides])
    outside = np.ones(loss.n, dtype=np.bool_)
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
        tuple(_part(side, place, mass) for side, mass in zip(sides, masses, strict=True)),
        isinstance(loss, CoxSplit),
        len(apart),
        np.ascontiguousarray(np.broadcast_to(constant, (len(theta),))),
        history,
    )
    return history


def _balls(objective: Objective, mass: FloatArray) -> tuple[list[FloatArray], FloatArray]:
    """Masses of the losses of each side, in the loss's order and then everybody else's; the constants of all rows."""
    if isinstance(objective, ChiSquare):
        return [mass], objective.constant
    assert isinstance(objective, Blocks)
    part = objective.parts[0]
    assert isinstance(part, ChiSquare)
    # A block lists its losses by patient; the entry of its other patients has the highest number.
    shares = zip(objective.shares(mass), objective.rows, strict=True)
    return [share[np.argsort(rows)] for share, rows in shares], part.constant


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


def _risk_sets(side: CoxPartial | Side) -> RiskSets:
    assert isinstance(side.risk_sets, RiskSets), "compiles() lets no entry times and strata through"
    return side.risk_sets


def _part(side: CoxPartial | Side, place: IntArray, mass: FloatArray) -> _Part:
    """A side of the loss, its patients at their new places."""
    sets, events = _risk_sets(side), len(side.rows)
    times = (1, len(sets.first))
    return _Part(
        place[sets.order],
        sets.first,
        sets.sorted_weight,
        place[side.rows],
        side.block,
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
                    subtract_own(p.logs, scores, p.rows, p.block, losses)
                eta[k], value = minimise_row(p.losses, p.mass, constant[b], eta[k], p.weights)
                total, k = total + value, k + 1
            gradient[0, :apart] = 0.0
            # No patient is in the risk sets of two parts: what these pull is written, what events pull subtracted.
            for p in parts:
                p.weights[:-1] *= p.slopes[0]
                p.pull[:] = 0.0
                add_by_block(p.weights[:-1].reshape(p.slopes.shape), p.block, p.pull)
                pull_back(p.pull, p.order, p.first, p.risks, p.levels, p.sums, gradient)
            for p in parts:
                subtract_at(p.weights[:-1].reshape(p.slopes.shape), p.rows, gradient)
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
