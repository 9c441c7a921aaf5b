"""Linear models whose optimum an accelerator, or many machines, can find: over slabs of patients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.device import resolve_device, solves_there
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.over_slabs import fit_on_device
from drosurv.estimators.tensors import checked_tensor, is_tensor
from drosurv.estimators.training import Training
from drosurv.objectives.tilted import FromSums
from drosurv.tables.encoder import enter
from drosurv.target import BoolArray


class SolvedOverSlabs(NetworkEstimator):
    """Base of estimators whose linear models may be solved where the features lie, or on an accelerator."""

    # The objective of the losses.
    _slab_objective: Callable[[], FromSums]

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
                "entry, strata, offset and id are not understood beside a tensor: pass ",
                Argument("X"),
                " as an array.",
            )
        if not plain or not (lies_there or self._solves_there((training.n_rows, training.X.shape[1]))):
            super()._train(training.in_double())
            return
        own = lies_there and self.device == "auto"
        device = training.X.device if own else resolve_device(self.device, worthwhile=True)
        fit_on_device(self, training, device)
        if not lies_there:
            self._keep(training)
