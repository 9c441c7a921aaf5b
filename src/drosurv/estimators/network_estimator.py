"""What every estimator that trains a network shares: the network, the solver, and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import cleandoc
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from drosurv.errors import ArgumentError, as_number, as_whole, require
from drosurv.estimators.coefficient_inference import CoefficientInference
from drosurv.estimators.device import check_device
from drosurv.estimators.fitted import Fitted
from drosurv.estimators.parameters import check_choice, check_count, check_number, check_widths
from drosurv.estimators.recalibration import out_of_fold_factor, stretched
from drosurv.estimators.recipe import Schedule
from drosurv.losses.cox_partial import TIES
from drosurv.solvers import Stopping
from drosurv.solvers.networks import build, lightgbm, linear, mlp, restored

SOLVERS = ("auto", "adam", "convex")
NETWORKS = ("linear", "mlp", "trees")
# What trees shrink each step by, where the learning rate is left at Adam's.
TREES_LR = 0.05


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(CoefficientInference):
    """Base of estimators whose scores come from a network: linear, a perceptron, boosted trees, or the user's own.

    An estimator is a dataclass: its fields are its parameters, these shared ones among them, and scikit-learn reads
    them from the signature as usual.
    """

    network: str | Callable[[int], Any] = "linear"
    hidden: Sequence[int] = (24,)
    solver: str = "auto"
    lr: float = 0.01
    max_iter: int = 500
    tol: float | None = None
    l2: float = 0.0
    ties: str = "breslow"
    batch_size: int | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.2
    n_iter_no_change: int = 20
    dropout: float = 0.0
    tree_params: Mapping[str, Any] | None = None
    recalibrate: bool = False
    random_state: Any = None
    device: str = "auto"
    verbose: bool = False

    # What one batch of models trained together may differ in.
    _batched: ClassVar[tuple[str, ...]] = ("lr",)
    # Scores that the network gives each patient.
    _n_outputs = 1
    # Whether the criterion of a linear model is convex.
    _convex = True
    # Why tied event times play no part in the loss; empty where they do.
    _no_ties = ""
    # Why the scores are not log hazards, so that no factor can recalibrate them; empty where they are.
    _own_curves = ""

    def __init_subclass__(cls, **rest: Any) -> None:
        """Name in every model's documentation the shared parameters that it does not explain itself."""
        super().__init_subclass__(**rest)
        cls.__doc__ = _with_shared(cls.__doc__ or "")

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        if not callable(self.network) and self.network not in NETWORKS:
            raise ArgumentError.must(
                "network", f"be one of {NETWORKS} or a callable that builds a torch.nn.Module", self.network
            )
        if self.network == "trees":
            lightgbm()
            require(self.solver == "auto", "solver", "be 'auto' for trees, which are grown", self.solver)
        if self.solver == "convex" and not self._is_linear:
            raise ArgumentError(
                "solver",
                "solver='convex' needs network='linear': other networks are not convex. Use solver='adam'.",
            )
        if self.solver == "convex" and not self._convex:
            raise ArgumentError(
                "solver",
                f"solver='convex' cannot train {type(self).__name__}: its criterion is not convex. Use "
                f"solver='adam'.",
            )
        check_choice("ties", self.ties, TIES)
        if self._no_ties and self.ties != "breslow":
            raise ArgumentError.must(
                "ties", f"be 'breslow' for {self._no_ties}, which has no ties", self.ties
            )
        check_count("max_iter", self.max_iter)
        check_number("lr", self.lr, positive=True)
        check_number("l2", self.l2)
        if self.tol is not None:
            check_number("tol", self.tol)
        if self.network == "mlp":
            check_widths("hidden", self.hidden)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size, least=2)
            if self.device not in ("auto", "cpu"):
                raise ArgumentError(
                    "batch_size",
                    f"batch_size={self.batch_size!r} trains on the CPU, but "
                    f"device={self.device!r}; use device='cpu', or no batches.",
                )
        if not 0 < as_number(self.validation_fraction) < 1:
            raise ArgumentError.must("validation_fraction", "lie in (0, 1)", self.validation_fraction)
        check_count("n_iter_no_change", self.n_iter_no_change)
        require(0 <= as_number(self.dropout) < 1, "dropout", "lie in [0, 1)", self.dropout)
        check_choice("early_stopping", self.early_stopping, (True, False, "auto"))
        if self.early_stopping is True and self._uses_convex:
            raise ArgumentError(
                "early_stopping",
                "early_stopping=True is for networks that are trained step by step: a linear model is "
                "solved to its optimum. Use l2, or solver='adam'.",
            )
        if self.recalibrate and self._own_curves:
            raise ArgumentError(
                "recalibrate",
                f"recalibrate=True stretches log hazards, but {type(self).__name__} "
                f"{self._own_curves}. Use recalibrate=False.",
            )
        check_device(self.device)

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.network, str) and self.network == "linear"

    @property
    def _uses_convex(self) -> bool:
        return self.solver == "convex" or (self.solver == "auto" and self._is_linear and self._convex)

    @property
    def _stops(self) -> bool:
        """Whether patients are kept aside who say when to stop: else a network learns its patients by heart."""
        if self.early_stopping == "auto":
            return self.solver == "auto" and not self._is_linear
        return bool(self.early_stopping)

    def _schedule(self, batch: Sequence[Self]) -> Schedule:
        solver = self.solver if self._uses_convex else "trees" if self.network == "trees" else "adam"
        # Batches are drawn and trees grown on the processor.
        here = self.batch_size is not None or solver != "adam"
        rates = np.array([estimator.lr for estimator in batch], dtype=np.float64)
        required = self.early_stopping is True
        stopping = Stopping(self.validation_fraction, self.n_iter_no_change, required)
        if solver == "trees":
            rates = np.where(rates == NetworkEstimator.lr, TREES_LR, rates)
        shared = ("max_iter", "tol", "l2", "batch_size", "verbose", "tree_params")
        return Schedule(
            solver,
            type(self).__name__,
            rates,
            self._module,
            self._is_linear,
            device="cpu" if here else self.device,
            stopping=stopping if self._stops else None,
            **{name: getattr(self, name) for name in shared},
        )

    def _seed(self) -> int:
        given = self.random_state
        if given is None or isinstance(given, np.random.RandomState):
            return int(check_random_state(given).randint(2**31 - 1))
        require(
            0 <= as_whole(given) < 2**32,
            "random_state",
            "be None, a RandomState or a whole number from 0 to 2**32 - 1",
            given,
        )
        return int(given)

    def _module(self, n_features: int, seed: int) -> Any:
        if callable(self.network):
            return build(self.network, n_features, seed)
        if self.network == "mlp":
            return build(lambda d: mlp(d, self.hidden, self.dropout, self._n_outputs), n_features, seed)
        return build(linear, n_features, seed)

    def _accept(self, fitted: Fitted) -> None:
        if self.recalibrate:
            self.recalibration_ = out_of_fold_factor(self, fitted.training)
            fitted = stretched(fitted, self.recalibration_, self.ties)
        super()._accept(fitted)
        if hasattr(self, "coef_"):
            self._keep(fitted.training)

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and fitted attributes, without the training data."""
        return self._without_training(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`__getstate__` gave, with the network built anew."""
        super().__setstate__(state)
        if "network_" in state:
            self.network_ = restored(state["network_"], lambda: self._module(self.n_features_in_, 0))


def _with_shared(documentation: str) -> str:
    """A model's documentation, completed by the parameters that are as in CoxPH, which explains all of them."""
    before, header, after = cleandoc(documentation).partition("Parameters\n----------\n")
    own, gap, rest = after.partition("\n\n")
    told = [line.split(" : ")[0].split(", ") for line in own.splitlines() if not line.startswith(" ")]
    shared = [field.name for field in fields(NetworkEstimator) if field.name not in chain(*told)]
    if not header or not shared:
        return documentation
    return f"{before}{header}{own}\n{', '.join(shared)}\n    As in :class:`drosurv.CoxPH`.{gap}{rest}"
