"""What every estimator that trains a network shares: the network, the solver, and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from drosurv.estimators.base import SurvivalEstimator
from drosurv.estimators.coefficient_inference import CoefficientInference
from drosurv.estimators.device import check_device, resolve_device
from drosurv.estimators.fitting import Fitted, Schedule
from drosurv.estimators.parameters import check_count, check_number, check_widths
from drosurv.networks import build, linear, mlp, restored

SOLVERS = ("auto", "adam", "convex")


class NetworkEstimator(CoefficientInference, SurvivalEstimator):
    """Base of estimators whose scores come from a network: linear, a perceptron, or the user's own."""

    # What a subclass does not offer its users keeps these values.
    network: str | Callable[[int], Any] = "linear"
    hidden: Sequence[int] = (24,)
    solver: str = "auto"
    lr: float = 0.01
    max_iter: int = 500
    tol: float | None = None
    l2: float = 0.0
    ties: str = "breslow"
    random_state: Any = None
    device: str = "auto"
    verbose: bool = False
    batch_size: int | None = None

    _batched: tuple[str, ...] = ("lr",)
    # Whether the criterion of a linear model is convex.
    _convex = True
    # Why tied event times play no part in the loss; empty where they do.
    _no_ties = ""

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
                f"solver='convex' cannot train {type(self).__name__}: its criterion is not convex. Use solver='adam'."
            )
        if self.ties not in ("breslow", "efron"):
            raise ValueError(f"ties must be 'breslow' or 'efron', got {self.ties!r}.")
        if self._no_ties and self.ties != "breslow":
            raise ValueError(
                f"ties must be 'breslow' for {self._no_ties}, which has no ties, got {self.ties!r}."
            )
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

    def _schedule(self, batch: Sequence[Self]) -> Schedule:
        solver = "convex" if self._uses_convex else "adam"
        # A linear model is too little work to be worth moving, and mini-batches are drawn on the processor.
        worthwhile = not self._is_linear and self.batch_size is None
        return Schedule(
            solver,
            type(self).__name__,
            np.array([estimator.lr for estimator in batch], dtype=np.float64),
            self._module,
            self._is_linear,
            self.max_iter,
            self.tol,
            self.l2,
            self.batch_size,
            "cpu" if solver == "convex" else resolve_device(self.device, worthwhile),
            self.verbose,
        )

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

    def _accept(self, fitted: Fitted) -> None:
        super()._accept(fitted)
        if self._is_linear:
            self._keep(fitted.training)

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and fitted attributes, without the training data."""
        return self._without_training(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`__getstate__` gave, with the network built anew."""
        super().__setstate__(state)
        if "network_" in state:
            self.network_ = restored(self._module(self.n_features_in_, 0), state["network_"])
