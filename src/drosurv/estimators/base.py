"""What every estimator shares: checked inputs, a choice of solver, a baseline hazard, predictions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from drosurv.estimators.baseline import Baseline, follow_up
from drosurv.estimators.device import resolve_device, stack_targets, train_on_device
from drosurv.estimators.progress import maybe_bar
from drosurv.losses import CoxPartial, cox_partial
from drosurv.networks import Linear, ModuleBatch, build, linear, mlp, module_scores
from drosurv.objectives import Evaluation, Objective
from drosurv.solvers import Composite, LinearProblem, MiniBatches, adam, minimise
from drosurv.solvers.composite import Loss, Penalty
from drosurv.target import FloatArray, IntArray, Target, parse_target

if TYPE_CHECKING:
    from torch import Tensor

SOLVERS = ("auto", "adam", "convex")
_STATUS = {
    "max_iter": "it ran out of iterations; raise max_iter or scale the features",
    "stalled": "no further progress was possible in floating point; scale the features or raise tol",
    "separated": (
        "the scores grew without bound, because some combination of features separates early from late events; "
        "set l2 > 0"
    ),
}


@dataclass(frozen=True, eq=False)
class Training:
    """The checked training data of one fit.

    Attributes
    ----------
    X : (n, d) float64
    target : Target
    mass : (n,) float64
        Shares of the patients, summing to one.
    weight : (n,) float64 or None
        Their weights inside risk sets; None when all are equal.
    kept : (n,) int
        Rows of the caller's data these are: patients of weight zero are left out.
    n_rows : int
        Rows the caller gave.
    codes : (n,) int or None
        Group of each patient, for estimators that are given groups.
    n_groups : int
        Number of groups.
    """

    X: FloatArray
    target: Target
    mass: FloatArray
    weight: FloatArray | None
    kept: IntArray
    n_rows: int
    codes: IntArray | None = None
    n_groups: int = 0

    def take(self, rows: IntArray) -> Training:
        """The training data of fewer patients."""
        mass = self.mass[rows]
        return replace(
            self,
            X=self.X[rows],
            target=self.target.take(rows),
            mass=mass / mass.sum(),
            weight=None if self.weight is None else self.weight[rows],
            kept=self.kept[rows],
            codes=None if self.codes is None else self.codes[rows],
        )

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of the kept patients put back among all rows, zero elsewhere."""
        out = np.zeros(self.n_rows)
        out[self.kept] = values
        return out


class CoxEstimator(BaseEstimator):
    """Base of the estimators: subclasses name their parameters and say which loss and objective they train."""

    network: str | Callable[[int], Any]
    hidden: Sequence[int]
    solver: str
    lr: float
    max_iter: int
    tol: float | None
    l2: float
    ties: str
    random_state: Any
    device: str
    verbose: bool

    # What one batch of models trained together may differ in.
    _batched: tuple[str, ...] = ("lr",)
    _convex = True
    _tol = 1e-8
    # Fitted attributes that speak of single training patients, which a saved model leaves out.
    _per_patient: tuple[str, ...] = ()

    def __sklearn_tags__(self) -> Any:
        """Survival targets are structured arrays, which scikit-learn has no tag for."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _loss(self, training: Training) -> Loss:
        return CoxPartial(training.target, self.ties, training.weight)

    def _blocks(self, loss: Loss, training: Training) -> list[IntArray] | None:
        return None

    def _objective(self, batch: Sequence[Any], training: Training) -> Callable[[], Objective]:
        raise NotImplementedError

    def _mass(self, training: Training) -> FloatArray:
        return training.mass

    def _penalty(self, batch: Sequence[Any], training: Training) -> tuple[Penalty | None, FloatArray | None]:
        return None, None

    def _device_objective(
        self, batch: Sequence[Any], trainings: Sequence[Training], device: str
    ) -> Callable[[Tensor], Tensor]:
        """Scores (R, B, n) of B settings on R training sets to the objectives (R, B), on a device."""
        import torch

        stacked = stack_targets(trainings, device)
        mass = torch.as_tensor(np.stack([self._mass(t) for t in trainings]), device=device).unsqueeze(1)
        ties = self.ties

        def objective(scores: Tensor) -> Tensor:
            losses = cox_partial(scores, stacked.event, stacked.time, weight=stacked.weight, ties=ties)
            return self._device_scalar(batch, losses, mass)

        return objective

    def _device_scalar(self, batch: Sequence[Any], losses: Tensor, mass: Tensor) -> Tensor:
        """Losses (R, B, m) and masses (R, 1, m) to objectives (R, B)."""
        return (losses * mass.to(losses.dtype)).sum(-1)

    def _device_penalty(
        self, batch: Sequence[Any], trainings: Sequence[Training], device: str
    ) -> tuple[Callable[[Tensor], Tensor] | None, Tensor | None]:
        return None, None

    @property
    def _worth_moving(self) -> bool:
        """Whether device="auto" moves the training to an accelerator."""
        return not self._is_linear

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : (n, d) array or DataFrame
            Features; column names are kept in ``feature_names_in_``.
        y : structured array (n,)
            Event flag and time; see :class:`drosurv.Surv`.
        sample_weight : (n,) array, optional
            Weights; a patient of weight 2 counts as two.

        Returns
        -------
        self
        """
        training = self._check_training(X, y, sample_weight)
        fit_batch([self], training)
        return self

    def _check_training(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Training:
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        target = parse_target(y)
        if len(target) != len(X):
            raise ValueError(f"X and y must have the same number of rows, got {len(X)} and {len(target)}.")
        n_rows, weight, kept = len(X), None, np.arange(len(X))
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            kept = np.flatnonzero(given > 0)
            X, target, weight = X[kept], target.take(kept), given[kept]
            if not target.event.any():
                raise ValueError("sample_weight leaves no patient with an event; every event has weight 0.")
            if (weight == weight[0]).all():
                weight = None
        if np.ptp(target.time) == 0:
            raise ValueError(
                f"y has a single time, {target.time[0]}, for every patient: there is no order to learn from."
            )
        mass = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        return Training(X, target, mass, weight, kept, n_rows)

    def _check_parameters(self) -> None:
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {SOLVERS}, got {self.solver!r}.")
        if not callable(self.network) and self.network not in ("linear", "mlp"):
            raise ValueError(
                f"network must be 'linear', 'mlp' or a callable that builds a torch.nn.Module, got {self.network!r}."
            )
        if self.solver == "convex" and not self._is_linear:
            raise ValueError(
                "solver='convex' needs network='linear': other networks are not convex. Use solver='adam'."
            )
        if self.solver == "convex" and not self._convex:
            raise ValueError(
                f"solver='convex' cannot train {type(self).__name__}: its penalty is not convex. Use solver='adam'."
            )
        if self.ties not in ("breslow", "efron"):
            raise ValueError(f"ties must be 'breslow' or 'efron', got {self.ties!r}.")
        if not self.max_iter >= 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")
        if not self.lr > 0:
            raise ValueError(f"lr must be positive, got {self.lr!r}.")
        if not self.l2 >= 0:
            raise ValueError(f"l2 must not be negative, got {self.l2!r}.")
        if self.network == "mlp" and not all(int(width) >= 1 for width in self.hidden):
            raise ValueError(f"hidden must list widths of at least 1, got {self.hidden!r}.")

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.network, str) and self.network == "linear"

    @property
    def _uses_convex(self) -> bool:
        return self.solver == "convex" or (self.solver == "auto" and self._is_linear and self._convex)

    def _seed(self) -> int:
        from sklearn.utils import check_random_state

        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _module(self, n_features: int, seed: int) -> Any:
        if callable(self.network):
            return build(self.network, n_features, seed)
        if self.network == "mlp":
            return build(lambda d: mlp(d, self.hidden), n_features, seed)
        return build(linear, n_features, seed)

    def _finish(self, training: Training, scores: FloatArray, at: Evaluation, weights: FloatArray) -> None:
        """Set what a fitted estimator carries, given its training scores (n,) and objective there."""
        self._baseline = Baseline.breslow(training.target, scores, training.weight)
        self.n_patients_, self.n_events_ = len(training.target), training.target.n_events
        self.follow_up_ = follow_up(training.target)

    @property
    def unique_times_(self) -> FloatArray:
        """Times of the baseline, (K,)."""
        return self._baseline.times

    @property
    def cum_baseline_hazard_(self) -> Any:
        """Cumulative baseline hazard, a step function."""
        return self._baseline.curves(self._baseline.cumulative_hazard(np.zeros(1)))[0]

    @property
    def baseline_survival_(self) -> Any:
        """Survival of a patient of log risk zero, a step function."""
        return self._baseline.curves(np.exp(-self._baseline.cumulative_hazard(np.zeros(1))))[0]

    def predict(self, X: Any) -> FloatArray:
        """Log risk (n,) of each patient; higher means sooner."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        if self._is_linear:
            scores: FloatArray = features @ self.coef_
            return scores
        return module_scores(self.network_, features)

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Survival curves S(t | x).

        Parameters
        ----------
        X : (n, d) array or DataFrame
        return_array : bool
            False: (n,) step functions. True: (n, T) values.
        times : (T,) array, optional
            Times of the values; ``unique_times_`` if not given. Giving them implies ``return_array=True``.
        """
        hazard = self._hazard(X, times)
        return self._curves_or_array(np.exp(-hazard), return_array or times is not None)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Cumulative hazards H(t | x); parameters as in :meth:`predict_survival_function`."""
        return self._curves_or_array(self._hazard(X, times), return_array or times is not None)

    def _hazard(self, X: Any, times: ArrayLike | None) -> FloatArray:
        scores = self.predict(X)
        return self._baseline.cumulative_hazard(scores, times)

    def _curves_or_array(self, values: FloatArray, as_array: bool) -> NDArray[Any]:
        return values if as_array else self._baseline.curves(values)

    def score(self, X: Any, y: Any) -> float:
        """Harrell's c-index of the predicted risks."""
        from drosurv.metrics import concordance_index

        return float(concordance_index(y, self.predict(X)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.estimators.saved_model import save

        save(self, path)


def fit_batch(batch: Sequence[CoxEstimator], training: Training) -> None:
    """Fit estimators that differ only in what a batch may differ in, all on the same patients.

    Linear models with a convex objective are solved one by one; everything else is one batch of Adam.
    """
    fit_batches([batch], [training])


def fit_batches(batches: Sequence[Sequence[CoxEstimator]], trainings: Sequence[Training]) -> None:
    """Fit one batch of estimators on each training set; on an accelerator all of them at once."""
    lead = batches[0][0]
    device = "cpu" if lead._uses_convex else resolve_device(lead.device, lead._worth_moving)
    if device == "cpu":
        for batch, training in zip(batches, trainings, strict=True):
            if lead._uses_convex:
                for estimator in batch:
                    _fit_convex(estimator, training)
            else:
                _fit_adam(batch, training)
        return
    results = train_on_device(batches, trainings, device)
    for batch, training, (modules, history) in zip(batches, trainings, results, strict=True):
        for estimator, module, values in zip(batch, modules, history, strict=True):
            coef = module.weight.detach().numpy().reshape(-1).astype(np.float64) if lead._is_linear else None
            _accept(estimator, training, coef, module, values)


def _composite(batch: Sequence[CoxEstimator], training: Training) -> Composite:
    lead = batch[0]
    loss = lead._loss(training)
    penalty, weight = lead._penalty(batch, training)
    return Composite(
        loss,
        lead._objective(batch, training),
        lead._mass(training),
        lead._blocks(loss, training),
        penalty,
        weight,
    )


def _fit_convex(estimator: CoxEstimator, training: Training) -> None:
    composite = _composite([estimator], training)
    problem = LinearProblem(training.X, composite, estimator.l2)
    tol = estimator._tol if estimator.tol is None else estimator.tol
    solution = minimise(problem, tol=tol, max_iter=estimator.max_iter)
    estimator.coef_ = solution.x
    estimator.n_iter_, estimator.converged_ = solution.n_iter, solution.status == "converged"
    estimator.status_, estimator.gap_ = solution.status, solution.gap
    estimator.history_ = solution.history
    if not estimator.converged_:
        warnings.warn(
            f"{type(estimator).__name__} stopped before the optimum (status {solution.status!r}, relative gap "
            f"{solution.gap:.1e}): {_STATUS[solution.status]}.",
            ConvergenceWarning,
            stacklevel=5,
        )
    _close(estimator, composite, training, training.X @ solution.x)


def _fit_adam(batch: Sequence[CoxEstimator], training: Training) -> None:
    lead = batch[0]
    d, seed = training.X.shape[1], lead._seed()
    modules = [lead._module(d, seed) for _ in batch]
    lr = np.array([estimator.lr for estimator in batch], dtype=np.float64)
    network: Any
    if lead._is_linear:
        starts = [module.weight.detach().numpy().reshape(-1).astype(np.float64) for module in modules]
        network = Linear(training.X, np.stack(starts))
    else:
        network = ModuleBatch(modules, training.X)
    trainee, criterion, steps = network, _composite(batch, training), lead.max_iter
    size = getattr(lead, "batch_size", None)
    if size is not None and size < len(training.X):
        trainee = criterion = MiniBatches(
            network, lambda rows: _composite(batch, training.take(rows)), len(training.X), size, seed
        )
        steps *= max(round(len(training.X) / size), 1)
    with maybe_bar(lead) as on_step:
        history = adam(trainee, criterion, lr, steps, lead.l2, on_step)
    modules = [] if lead._is_linear else network.trained()
    for b, estimator in enumerate(batch):
        coef = network.parameters[0][b].copy() if lead._is_linear else None
        _accept(estimator, training, coef, None if lead._is_linear else modules[b], history[b])


def _accept(
    estimator: CoxEstimator, training: Training, coef: FloatArray | None, module: Any, history: FloatArray
) -> None:
    """Give a trained estimator its parameters and what follows from them."""
    if coef is not None:
        estimator.coef_ = coef
        scores = training.X @ coef
    else:
        estimator.network_ = module
        scores = module_scores(module, training.X)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"training diverged to infinite scores; lower lr (now {estimator.lr}) or standardise the features."
        )
    estimator.n_iter_, estimator.converged_ = estimator.max_iter, True
    estimator.status_, estimator.gap_ = "steps_done", np.nan
    estimator.history_ = history
    _close(estimator, _composite([estimator], training), training, scores)


def _close(estimator: CoxEstimator, composite: Composite, training: Training, scores: FloatArray) -> None:
    """Evaluate the final objective and set everything that a fitted estimator carries."""
    losses = composite.losses(scores[None, :])
    at = composite.objective(losses, composite.mass)
    value = float(at.value[0])
    if composite.penalty is not None and composite.penalty_weight is not None:
        value += float(composite.penalty_weight[0] * composite.penalty(scores[None, :])[0][0])
    if hasattr(estimator, "coef_"):
        value += 0.5 * estimator.l2 * float(estimator.coef_ @ estimator.coef_)
    estimator.objective_ = value
    estimator._finish(training, scores, at, composite.patient_weights(at)[0])
