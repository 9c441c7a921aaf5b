"""Linear models trained over slabs of patients: on an accelerator here, on many machines in drosurv.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.estimators.baseline import Baseline
from drosurv.estimators.fitted import warn_unless_converged
from drosurv.estimators.slab_baseline import baseline, follow_up
from drosurv.estimators.training import Training
from drosurv.objectives.tilted import FromSums
from drosurv.solvers import minimise
from drosurv.solvers.arrays import in_numpy
from drosurv.solvers.device_slabs import device_slabs
from drosurv.solvers.slab import Scheme
from drosurv.solvers.slab_problem import Here, SlabProblem, Workers
from drosurv.target import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class SlabPlan:
    """What is trained over slabs.

    Attributes
    ----------
    objective : FromSums
        Of the losses.
    in_first : (n,) bool, optional
        Who is in the first half, where halves are scored against each other.
    both : bool
        Whether both halves are scored.
    """

    objective: FromSums
    in_first: BoolArray | None = None
    both: bool = True

    def sides(self, n: int) -> list[BoolArray]:
        """Who is in each scored side, (n,) flags."""
        if self.in_first is None:
            return [np.ones(n, dtype=np.bool_)]
        return [self.in_first, ~self.in_first][: 2 if self.both else 1]

    def shares(self, event: BoolArray, weight: FloatArray | None) -> tuple[tuple[float, ...], list[float]]:
        """For each scored side its summed weight, and the share of that without an event."""
        sides = self.sides(len(event))
        totals = tuple(_summed(weight, own) for own in sides)
        return totals, [
            _summed(weight, own & ~event) / total for own, total in zip(sides, totals, strict=True)
        ]


def _summed(weight: FloatArray | None, own: BoolArray) -> float:
    return float(np.count_nonzero(own) if weight is None else np.sum(weight, where=own))


@dataclass(frozen=True, eq=False)
class SlabCohort:
    """What is known of all patients before a slab is made.

    Attributes
    ----------
    n, n_events : int
        Patients and events.
    patients, events : float
        The same, counted by weight.
    scheme : Scheme
        How events are scored.
    rests : sequence of float
        For each side the share of its patients without an event.
    plan : SlabPlan
    """

    n: int
    n_events: int
    patients: float
    events: float
    scheme: Scheme
    rests: Sequence[float]
    plan: SlabPlan

    @classmethod
    def of(cls, plan: SlabPlan, ties: str, event: BoolArray, weight: FloatArray | None) -> SlabCohort:
        """Of patients with these event flags and weights."""
        totals, rests = plan.shares(event, weight)
        everybody = np.ones(len(event), dtype=np.bool_)
        counts = _summed(weight, everybody), _summed(weight, event)
        return cls(len(event), int(np.count_nonzero(event)), *counts, Scheme(totals, ties), rests, plan)


def train_over_slabs(
    estimator: Any, cohort: SlabCohort, slabs: Sequence[Any], centre: FloatArray, workers: Workers
) -> SlabProblem:
    """Make the estimator the model trained on the slabs, wherever they lie; a warning where no optimum was reached.

    Parameters
    ----------
    estimator : estimator
        Linear.
    cohort : SlabCohort
    slabs : sequence of Slab
        From the longest to the shortest times.
    centre : (d,) float64
        What was subtracted from the features.
    workers : Workers
        Who does the work.
    """
    plan = cohort.plan
    problem = SlabProblem(
        slabs, len(centre), cohort.rests, plan.objective, l2=estimator.l2, workers=workers, centre=centre
    )
    found = minimise(problem, tol=estimator.tol, max_iter=estimator.max_iter)
    problem.value(found.x)
    warn_unless_converged(type(estimator).__name__, found)
    estimator.coef_ = found.x
    estimator._tell_training(found, found.value)
    estimator.n_patients_, estimator.n_events_ = cohort.patients, cohort.events
    estimator.follow_up_ = follow_up(slabs, cohort.n, workers)
    if estimator._weighs_losses:
        etas = tuple(float(tilt.eta) for tilt in problem.tilts)
        estimator.eta_ = etas[0] if plan.in_first is None else etas
    times, hazard = baseline(
        slabs, problem.at.scores, problem.at.shift, cohort.n_events, cohort.scheme.ties, workers
    )
    # Scores of a fitted model are of features as they come; the baseline gives back what centring took.
    log_hazard = np.log(hazard) - float(centre @ found.x)
    if times[0] > 0:
        times, log_hazard = np.concatenate([[0.0], times]), np.concatenate([[-np.inf], log_hazard])
    estimator._baseline = Baseline(times, log_hazard)
    return problem


def fit_on_device(estimator: Any, plan: SlabPlan, training: Training, device: Any) -> None:
    """Train a linear estimator to the optimum where its features lie, or on an accelerator."""
    target, weight = training.target, training.weight
    cohort = SlabCohort.of(plan, estimator.ties, target.event, weight)
    slabs, centre, order = device_slabs(
        training.X, target.time, target.event, weight, plan.in_first, cohort.scheme, device
    )
    problem = train_over_slabs(estimator, cohort, slabs, centre, Here())
    estimator.n_patients_, estimator.n_events_ = training.n_patients, training.n_events
    if estimator._weighs_losses:
        estimator.worst_case_weights_ = training.spread(_patient_weights(problem, training, order, plan))


def _patient_weights(problem: SlabProblem, training: Training, order: Any, plan: SlabPlan) -> FloatArray:
    """Worst-case weights of all patients, summing to one, put together where the slabs lie."""
    import torch

    def beside(values: Any) -> Any:
        return torch.as_tensor(values, device=order.device)

    event, weight = beside(training.target.event), training.weight
    mass = (
        torch.ones(len(order), dtype=torch.float64, device=order.device) if weight is None else beside(weight)
    )
    weights = torch.zeros_like(mass)
    for flags, tilt in zip(plan.sides(len(event)), problem.tilts, strict=True):
        own = beside(flags)
        # Patients without an event have loss zero.
        ratio = float(tilt.ratio(np.zeros(1))[0]) / (mass * own).sum()
        weights += mass * (own & ~event) * ratio
    start = 0
    for slab, found in zip(problem.slabs, problem.event_weights(), strict=True):
        rows = order[start : start + slab.X.shape[1]]
        start += len(rows)
        for side, q in zip(slab.sides, found, strict=True):
            weights[rows[side.event]] = q
    total: FloatArray = in_numpy(weights / weights.sum())
    return total
