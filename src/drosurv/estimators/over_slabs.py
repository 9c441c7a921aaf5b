"""Linear models trained over slabs of patients: on an accelerator here, on many machines in drosurv.distributed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from drosurv.estimators.baseline import Baseline
from drosurv.estimators.fitting import STATUS
from drosurv.estimators.slab_baseline import baseline
from drosurv.estimators.training import Training
from drosurv.metrics import FollowUp
from drosurv.objectives.tilt import Spread, Tilt
from drosurv.solvers import Solution, minimise
from drosurv.solvers.device_slabs import device_slabs
from drosurv.solvers.slab_problem import Here, SlabProblem
from drosurv.target import BoolArray, FloatArray, Target

# Patients whose times stand for everybody's in what a model keeps of the follow-up.
FOLLOWED = 1_000_000


@dataclass(frozen=True, eq=False)
class SlabPlan:
    """What is trained over slabs.

    Attributes
    ----------
    tilt : callable
        Spread of the losses and price to the objective there.
    smooth : bool
        Whether the objective without a price is differentiable.
    tol : float
        Relative gap at which to stop.
    in_first : (n,) bool, optional
        Who is in the first half, where halves are scored against each other.
    both : bool
        Whether both halves are scored.
    """

    tilt: Callable[[Spread, float], Tilt]
    smooth: bool
    tol: float
    in_first: BoolArray | None = None
    both: bool = True

    def shares(self, event: BoolArray, weight: FloatArray | None) -> tuple[list[float], list[float]]:
        """For each scored side its summed weight, and the share of that without an event."""
        w = np.ones(len(event)) if weight is None else weight
        sides = [np.ones(len(event), dtype=np.bool_)]
        if self.in_first is not None:
            sides = [self.in_first, ~self.in_first][: 2 if self.both else 1]
        totals = [float(w[own].sum()) for own in sides]
        return totals, [
            float(w[own & ~event].sum()) / total for own, total in zip(sides, totals, strict=True)
        ]


class Timed(NamedTuple):
    """What the baseline hazard needs of a slab's patients, from the longest to the shortest time."""

    time: FloatArray
    event: BoolArray
    weight: FloatArray | None


def fit_on_device(estimator: Any, plan: SlabPlan, training: Training, device: str) -> None:
    """Train a linear estimator to the optimum on an accelerator."""
    target, weight = training.target, training.weight
    totals, rests = plan.shares(target.event, weight)
    slabs, centre, order = device_slabs(
        training.X, target.time, target.event, weight, plan.in_first, totals, device
    )
    problem = SlabProblem(slabs, training.X.shape[1], rests, plan.tilt, smooth=plan.smooth, l2=estimator.l2)
    found = solved(estimator, problem, plan)
    scores = [scored.cpu().numpy() for scored in problem.scores]
    ends = np.cumsum([len(scored) for scored in scores])[:-1]
    parts = [
        np.split(values[order], ends) if values is not None else [None] * len(scores)
        for values in (target.time, target.event, weight)
    ]
    timed = [Timed(*part) for part in zip(*parts, strict=True)]
    every = max(len(target) // FOLLOWED, 1)
    some = None if weight is None else weight[::every]
    accept(
        estimator,
        problem,
        found,
        centre,
        baseline(timed, scores, problem.shift, target.n_events, Here()),
        FollowUp.of(Target(target.event[::every], target.time[::every]), some),
        training.n_patients,
        training.n_events,
    )
    if hasattr(estimator, "alpha"):
        estimator.worst_case_weights_ = training.spread(
            _patient_weights(problem, target.event, training.mass, order, plan)
        )


def solved(estimator: Any, problem: SlabProblem, plan: SlabPlan) -> Solution:
    """The optimum; a warning where it was not reached."""
    tol = plan.tol if estimator.tol is None else estimator.tol
    found = minimise(problem, tol=tol, max_iter=estimator.max_iter)
    problem.value(found.x)
    if found.status != "converged":
        warnings.warn(
            f"{type(estimator).__name__} stopped before the optimum (status {found.status!r}, relative gap "
            f"{found.gap:.1e}): {STATUS[found.status]}.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return found


def accept(
    estimator: Any,
    problem: SlabProblem,
    found: Solution,
    centre: FloatArray,
    steps: tuple[FloatArray, FloatArray],
    follow_up: FollowUp,
    n_patients: float,
    n_events: float,
) -> None:
    """Make the estimator the trained model; `steps` are times and cumulative hazards of a patient at the centre."""
    estimator.coef_ = found.x
    estimator.n_iter_, estimator.status_, estimator.gap_ = found.n_iter, found.status, found.gap
    estimator.converged_, estimator.history_ = found.status == "converged", found.history
    estimator.objective_ = found.value
    estimator.n_patients_, estimator.n_events_, estimator.follow_up_ = n_patients, n_events, follow_up
    if hasattr(estimator, "alpha"):
        etas = tuple(float(tilt.eta) for tilt in problem.tilts)
        estimator.eta_ = etas if len(etas) > 1 or hasattr(estimator, "sides") else etas[0]
    times, hazard = steps
    # Scores of a fitted model are of features as they come; the baseline gives back what centring took.
    log_hazard = np.log(hazard) - float(centre @ found.x)
    if times[0] > 0:
        times, log_hazard = np.concatenate([[0.0], times]), np.concatenate([[-np.inf], log_hazard])
    estimator._baseline = Baseline(times, log_hazard)


def _patient_weights(
    problem: SlabProblem, event: BoolArray, mass: FloatArray, order: Any, plan: SlabPlan
) -> FloatArray:
    """Worst-case weights of all patients, summing to one."""
    weights = np.zeros(len(event))
    sides = [np.ones(len(event), dtype=np.bool_)]
    if plan.in_first is not None:
        sides = [plan.in_first, ~plan.in_first][: len(problem.tilts)]
    for own, tilt in zip(sides, problem.tilts, strict=True):
        rest = own & ~event
        # Patients without an event have loss zero.
        ratio = tilt.level * (tilt.eta <= 0.0)
        if tilt.slope > 0.0:
            ratio = min(max(ratio - tilt.slope * tilt.eta, 0.0), tilt.cap)
        weights[rest] = mass[rest] / mass[own].sum() * ratio
    for places, q in zip(_event_places(problem, order), problem.event_weights(), strict=True):
        for own_places, own_q in zip(places, q, strict=True):
            weights[own_places] = own_q
    total: FloatArray = weights / weights.sum()
    return total


def _event_places(problem: SlabProblem, order: Any) -> Sequence[list[Any]]:
    """Rows of the caller's patients that each slab's events are."""
    starts = np.cumsum([0, *(slab.X.shape[1] for slab in problem.slabs)])
    return [
        [order[start : start + slab.X.shape[1]][side.event.cpu().numpy()] for side in slab.sides]
        for start, slab in zip(starts, problem.slabs, strict=False)
    ]
