"""What the estimators over known or found subgroups share: full likelihood, regret, averages, the worst of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from drosurv.estimators.base import CoxEstimator
from drosurv.estimators.baseline import Baseline, follow_up
from drosurv.estimators.device import resolve_device
from drosurv.estimators.fitting import STATUS, squared_norm
from drosurv.estimators.parameters import check_count
from drosurv.estimators.progress import maybe_bar
from drosurv.estimators.training import Training
from drosurv.losses import PiecewiseExponential
from drosurv.neighborhoods import Neighborhoods
from drosurv.networks import ModuleBatch, module_scores, seeded
from drosurv.objectives import Mean, Objective
from drosurv.solvers import AveragedCriterion, AveragedProblem, AveragedTrainee, Solution, adam, minimise
from drosurv.target import FloatArray

# What the worst-off share gains per event below which a model is called the null model.
_NOTHING = 1e-4


class AveragedEstimator(CoxEstimator):
    """Base of estimators that average full-likelihood losses over subgroups and minimise the worst averages."""

    n_intervals: int
    _when_null: str

    _per_patient = ("worst_case_weights_", "subgroup_regret_", "null_loss_")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        if self.ties != "breslow":
            raise ValueError(
                f"ties must be 'breslow' for a full likelihood, which has no ties, got {self.ties!r}."
            )
        if resolve_device(self.device, worthwhile=False) != "cpu":
            raise ValueError(
                f"{type(self).__name__} trains on the processor; use device='auto' or 'cpu', got {self.device!r}."
            )

    def _train(
        self,
        training: Training,
        make_objective: Callable[[], Objective],
        make_neighborhoods: Callable[[FloatArray], Neighborhoods],
        regret: bool = True,
    ) -> None:
        """Fit the plain model, find the subgroups from its regret, and fit the worst case over them."""
        loss = PiecewiseExponential(training.target, self.n_intervals, training.weight)
        null = loss.null_losses()
        offset = null if regret else np.zeros_like(null)
        plain = AveragedCriterion(loss, None, Mean(), training.mass, null)
        scores, delta = self._minimise(training, plain, quiet=True)
        around = make_neighborhoods(plain.regrets(scores[None, :], delta[None, :])[0])
        criterion = AveragedCriterion(loss, around, make_objective(), training.mass, offset)
        scores, delta = self._minimise(training, criterion)
        self._describe(training, criterion, null, scores, delta)

    def _minimise(
        self, training: Training, criterion: AveragedCriterion[PiecewiseExponential], quiet: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Train one model; scores (n,) as predicted and shifts (K,) of the null model's log hazards."""
        if not self._uses_convex:
            return self._minimise_by_adam(training, criterion)
        problem = AveragedProblem(training.X, criterion, self.l2)
        tol = self._tol if self.tol is None else self.tol
        solution = minimise(problem, tol=tol, max_iter=self.max_iter)
        if not quiet:
            self._report(solution)
        theta, delta = solution.x[: problem.d], solution.x[problem.d :]
        self.coef_ = theta
        # The problem's features are centred: what their centre adds to the scores, the baseline gives back.
        shift = float(problem.centre @ theta)
        return training.X @ theta, delta - shift

    def _minimise_by_adam(
        self, training: Training, criterion: AveragedCriterion[PiecewiseExponential]
    ) -> tuple[FloatArray, FloatArray]:
        module = self._module(training.X.shape[1], training.seed)
        trainee = AveragedTrainee(ModuleBatch([module], training.X), criterion, self.l2)
        with maybe_bar(self, self.max_iter) as on_step, seeded(training.seed):
            history = adam(trainee, trainee, np.array([self.lr]), self.max_iter, on_step=on_step)
        trained: Any = trainee.network.trained()[0]
        scores = module_scores(trained, training.X)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"training diverged to infinite scores; lower lr (now {self.lr}) or standardise the features."
            )
        if self._is_linear:
            self.coef_ = trained.weight.detach().numpy().reshape(-1).astype(np.float64)
        else:
            self.network_ = trained
        self.n_iter_, self.converged_, self.status_, self.gap_ = self.max_iter, True, "steps_done", np.nan
        self.history_ = history[0]
        return scores, trainee.delta[0]

    def _report(self, solution: Solution) -> None:
        self.n_iter_, self.converged_ = solution.n_iter, solution.status == "converged"
        self.status_, self.gap_, self.history_ = solution.status, solution.gap, solution.history
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped before the optimum (status {solution.status!r}, relative gap "
                f"{solution.gap:.1e}): {STATUS[solution.status]}.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _describe(
        self,
        training: Training,
        criterion: AveragedCriterion[PiecewiseExponential],
        null: FloatArray,
        scores: FloatArray,
        delta: FloatArray,
    ) -> None:
        regrets = criterion.regrets(scores[None, :], delta[None, :])
        at = criterion.evaluate(regrets)
        self.objective_ = float(at.value[0]) + 0.5 * self.l2 * squared_norm(self)
        self.eta_ = float(at.eta[0])
        if (
            self._uses_convex
            and criterion.offset is null
            and at.value[0] > -_NOTHING * criterion.loss.event_share
        ):
            warnings.warn(
                f"{type(self).__name__} is the null model: under every other one the worst-off share of the patients "
                f"is no better served than by no model. {self._when_null}",
                UserWarning,
                stacklevel=4,
            )
        weights = criterion.patient_weights(at)[0]
        self.worst_case_weights_ = training.spread(weights / weights.sum())
        self.subgroup_regret_ = training.spread(regrets[0])
        self.null_loss_ = training.spread(null)
        self._baseline = piecewise_baseline(training, criterion.loss, delta)
        self.n_patients_, self.n_events_ = len(training.target), training.target.n_events
        self.follow_up_ = follow_up(training.target)


def piecewise_baseline(training: Training, loss: PiecewiseExponential, delta: FloatArray) -> Baseline:
    """The fitted piecewise-constant hazard, read at zero and at every event time."""
    times = np.unique(np.concatenate([[0.0], training.target.time[training.target.event]]))
    rates = np.exp(loss.null_psi + delta)
    with np.errstate(divide="ignore"):
        return Baseline(times, np.log(loss.intervals.cumulative(rates, *loss.intervals.place(times))))
