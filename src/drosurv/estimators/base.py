"""What every estimator shares: checked inputs, a choice of solver, a baseline hazard, predictions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from drosurv.estimators.baseline import Baseline, follow_up
from drosurv.estimators.device import check_device, stack_targets
from drosurv.estimators.fitting import fit_batch
from drosurv.estimators.parameters import check_count, check_number, check_widths
from drosurv.estimators.training import Training
from drosurv.losses import CoxPartial, cox_partial
from drosurv.networks import build, linear, mlp, module_scores, module_state, restored
from drosurv.objectives import Evaluation, Mean, Objective
from drosurv.solvers.composite import Loss, Penalty
from drosurv.target import FloatArray, IntArray, parse_target

if TYPE_CHECKING:
    from torch import Tensor

SOLVERS = ("auto", "adam", "convex")


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
        return Mean

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
            Weights; a patient of weight 2 counts as two (but two tied events differ under ``ties="efron"``).

        Returns
        -------
        self
        """
        training = self._check_training(X, y, sample_weight)
        fit_batch([self], training)
        return self

    def _check_training(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Training:
        for earlier in ("coef_", "network_", "_baseline"):
            # The last fit may have been of another network, and one that fails leaves no model behind.
            self.__dict__.pop(earlier, None)
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
            if (weight == 1.0).all():
                weight = None
        if np.ptp(target.time) == 0:
            raise ValueError(
                f"y has a single time, {target.time[0]}, for every patient: there is no order to learn from."
            )
        mass = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        return Training(X, target, mass, weight, kept, n_rows, seed=self._seed())

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
        check_count("max_iter", self.max_iter)
        check_number("lr", self.lr, positive=True)
        check_number("l2", self.l2)
        if self.tol is not None:
            check_number("tol", self.tol)
        if self.network == "mlp":
            check_widths("hidden", self.hidden)
        check_device(self.device)

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.network, str) and self.network == "linear"

    @property
    def _uses_convex(self) -> bool:
        return self.solver == "convex" or (self.solver == "auto" and self._is_linear and self._convex)

    def _seed(self) -> int:
        from sklearn.utils import check_random_state

        if isinstance(self.random_state, (int, np.integer)):
            if not 0 <= self.random_state < 2**32:
                raise ValueError(f"random_state must lie between 0 and 2**32 - 1, got {self.random_state}.")
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

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has come to its end: names and number of the features are set before."""
        return hasattr(self, "_baseline")

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
        if hasattr(self, "coef_"):
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

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and fitted attributes, a network as plain arrays, so that any way of keeping them works."""
        state = dict(super().__getstate__())
        if "network_" in state:
            state["network_"] = module_state(state["network_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`__getstate__` gave, with the network built anew."""
        super().__setstate__(state)
        if "network_" in state:
            self.network_ = restored(self._module(self.n_features_in_, 0), state["network_"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.persistence import save

        save(self, path)
