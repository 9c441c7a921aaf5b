"""Linear models trained over slabs of patients: on an accelerator here, on many machines in drosurv.distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from drosurv.errors import ArgumentError
from drosurv.estimators.baseline import Baseline
from drosurv.estimators.device import checked_tensor, resolve_device, solves_there
from drosurv.estimators.fitted import warn_unless_converged
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.slab_baseline import baseline, follow_up
from drosurv.estimators.training import Training
from drosurv.objectives import Objective
from drosurv.solvers import minimise
from drosurv.solvers.arrays import in_numpy, is_tensor
from drosurv.solvers.slab import Scheme, device_slabs
from drosurv.solvers.slab_problem import Here, SlabProblem, Workers
from drosurv.tables.encoder import enter
from drosurv.target import BoolArray, FloatArray


class SolvedOverSlabs(NetworkEstimator):
    """Base of estimators whose linear models may be solved where the features lie, or on an accelerator."""

    # The objective of the losses of a batch, given the patients' masses or the least of each side.
    _objective: Callable[..., Objective]

    def _slab_halves(self, event: BoolArray, seed: int) -> list[BoolArray] | None:
        """Flags (n,) of the halves that are scored against each other; None where nobody is split."""
        return None

    @property
    def _solves_over_slabs(self) -> bool:
        return self._uses_convex and not self.recalibrate

    def _solves_there(self, shape: tuple[int, ...]) -> bool:
        """Whether the optimum of (n, d) features is looked for on an accelerator."""
        if self.device != "auto":
            return self._solves_over_slabs and self.device != "cpu"
        return self._solves_over_slabs and len(shape) == 2 and solves_there(*shape)

    def _features(self, X: Any, y: Any) -> Any:
        if is_tensor(X):
            return checked_tensor(self, X, fit=True) if self._solves_over_slabs else super()._features(X, y)
        given = enter(self, X, y, fit=True)
        # On an accelerator float32 stays float32: half the memory, and the optimum is the same to 1e-6.
        there = self._solves_there(getattr(given, "shape", ()))
        precisions = (np.float64, np.float32) if there else np.float64
        return validate_data(self, given, dtype=precisions, ensure_min_samples=2)

    def _train(self, training: Training) -> None:
        lies_there = is_tensor(training.X)
        plain = training.target.is_plain and training.observation.offset is None
        if lies_there and not plain:
            raise ArgumentError(
                "X", "entry, strata, offset and id are not understood beside a tensor: pass X as an array."
            )
        if not plain or not (lies_there or self._solves_there((training.n_rows, training.X.shape[1]))):
            super()._train(training)
            return
        own = lies_there and self.device == "auto"
        device = training.X.device if own else resolve_device(self.device, worthwhile=True)
        fit_on_device(self, training, device)
        if not lies_there:
            self._keep(training)


@dataclass(frozen=True, eq=False)
class SlabCohort:
    """What is known of all patients before a slab is made.

    The `objective` is of the losses of each side; `halves` are flags (n,) of the scored halves, None where everybody is
    compared with everybody. `n` and `n_events` count patients and events, `patients` and `events` count them by weight.
    `scheme` says how events are scored, `rests` what share of each side's patients has no event.
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
    def of(cls, estimator: Any, event: BoolArray, weight: FloatArray | None, seed: int) -> SlabCohort:
        """Of patients with these event flags and weights; the seed is of the estimator's halves."""
        halves, everybody = estimator._slab_halves(event, seed), np.ones(len(event), dtype=np.bool_)
        sides = halves or [everybody]
        totals = tuple(_summed(weight, own) for own in sides)
        least = [1.0 if weight is None else np.min(weight, where=own, initial=np.inf) for own in sides]
        return cls(
            estimator._objective([estimator], np.divide(least, totals)[:, None]),
            halves,
            len(event),
            int(np.count_nonzero(event)),
            _summed(weight, everybody),
            _summed(weight, event),
            Scheme(totals, estimator.ties),
            [_summed(weight, own & ~event) / total for own, total in zip(sides, totals, strict=True)],
        )

    @property
    def in_first(self) -> BoolArray | None:
        """Who is in the first half (n,), where halves are scored against each other."""
        return None if self.halves is None else self.halves[0]


def _summed(weight: FloatArray | None, own: BoolArray) -> float:
    return float(np.count_nonzero(own) if weight is None else np.sum(weight, where=own))


def train_over_slabs(
    estimator: Any, cohort: SlabCohort, slabs: Sequence[Any], centre: FloatArray, workers: Workers
) -> SlabProblem:
    """Make a linear estimator the model trained on the slabs; a warning where no optimum was reached.

    Slabs go from the longest to the shortest times, and lie wherever the workers are. The centre (d,) is what was
    subtracted from the features.
    """
    problem = SlabProblem(
        slabs, len(centre), cohort.rests, cohort.objective, l2=estimator.l2, workers=workers, centre=centre
    )
    found = minimise(problem, tol=estimator.tol, max_iter=estimator.max_iter)
    problem.value(found.x)
    warn_unless_converged(type(estimator).__name__, found)
    estimator.coef_ = found.x
    estimator._tell_training(found, found.value)
    estimator.n_patients_, estimator.n_events_ = cohort.patients, cohort.events
    estimator.follow_up_ = follow_up(slabs, cohort.n, workers)
    if estimator._weighs_losses:
        etas = tuple(float(worst_case.eta) for worst_case in problem.worst_cases)
        estimator.eta_ = etas[0] if cohort.halves is None else etas
    times, hazard = baseline(
        slabs, problem.at.scores, problem.at.shift, cohort.n_events, cohort.scheme.ties, workers
    )
    # Scores of a fitted model are of features as they come; the baseline gives back what centring took.
    estimator._baseline = Baseline.from_zero(times, np.log(hazard) - float(centre @ found.x))
    return problem


def fit_on_device(estimator: Any, training: Training, device: Any) -> None:
    """Train a linear estimator to the optimum where its features lie, or on an accelerator."""
    target, weight = training.target, training.weight
    cohort = SlabCohort.of(estimator, target.event, weight, training.seed)
    slabs, centre, order = device_slabs(
        training.X, target.time, target.event, weight, cohort.in_first, cohort.scheme, device
    )
    problem = train_over_slabs(estimator, cohort, slabs, centre, Here())
    estimator.n_patients_, estimator.n_events_ = training.n_patients, training.n_events
    if estimator._weighs_losses:
        weights = _patient_weights(problem, training, order, cohort.halves)
        estimator.worst_case_weights_ = training.spread(weights)


def _patient_weights(
    problem: SlabProblem, training: Training, order: Any, halves: list[BoolArray] | None
) -> FloatArray:
    """Worst-case weights of all patients, summing to one, put together where the slabs lie."""
    import torch

    def beside(values: Any) -> Any:
        return torch.as_tensor(values, device=order.device)

    event, weight = beside(training.target.event), training.weight
    mass = (
        torch.ones(len(order), dtype=torch.float64, device=order.device) if weight is None else beside(weight)
    )
    weights = torch.zeros_like(mass)
    sides = [torch.ones_like(event)] if halves is None else map(beside, halves)
    for own, worst_case in zip(sides, problem.worst_cases, strict=True):
        # Patients without an event have loss zero.
        ratio = float(worst_case.ratio(np.zeros(1))[0]) / (mass * own).sum()
        weights += mass * (own & ~event) * ratio
    start = 0
    for slab, found in zip(problem.slabs, problem.event_weights(), strict=True):
        rows = order[start : start + slab.X.shape[1]]
        start += len(rows)
        for side, q in zip(slab.sides, found, strict=True):
            weights[rows[side.event]] = q
    total: FloatArray = in_numpy(weights / weights.sum())
    return total
