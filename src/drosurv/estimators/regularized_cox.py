"""Cox models with a fairness penalty: the baselines of Keya et al. and of Rahman and Purushotham."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.disparities import PENALTIES
from drosurv.disparities import Penalty as Disparity
from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.base import CoxEstimator
from drosurv.estimators.fitting import fit_batch
from drosurv.estimators.group_labels import with_groups
from drosurv.estimators.parameters import check_count, check_number
from drosurv.estimators.training import Training
from drosurv.solvers.composite import Penalty
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class RegularizedCox(CoxEstimator):
    """Cox model whose loss, averaged over events, is penalised by a disparity of the predicted hazards.

    Parameters
    ----------
    penalty : {"keya_individual", "keya_group", "keya_intersectional", "rp_individual", "rp_group"}
        Which disparity; the group and intersectional ones need ``sensitive_features`` at fit.
    weight : float
        Times the penalty.
    scale : float
        How much two patients' hazards may differ per unit of distance between their features.
    batch_size : int, optional
        Train on random batches of this many patients, ``max_iter`` passes over all; None uses everyone at every step.
    network, hidden, lr, max_iter, l2, ties, random_state, device, verbose
        As in :class:`drosurv.CoxPH`.
    solver : {"auto", "adam"}
        Both are Adam: the penalties are not convex. So ``tol`` has no effect.

    References
    ----------
    Keya et al., Equitable Allocation of Healthcare Resources with Fair Survival Models, SDM 2021.
    Rahman and Purushotham, Fair and Interpretable Models for Survival Analysis, KDD 2022.

    Examples
    --------
    >>> from drosurv import RegularizedCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> groups = data.sensitive_features["membership"]
    >>> model = RegularizedCox("keya_group", max_iter=50, random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=groups).n_iter_
    50
    """

    _batched = ("lr", "weight")
    _convex = False

    def __init__(
        self,
        penalty: str = "keya_individual",
        weight: float = 1.0,
        scale: float = 0.01,
        *,
        batch_size: int | None = None,
        network: str | Callable[[int], Any] = "linear",
        hidden: Sequence[int] = (24,),
        solver: str = "auto",
        lr: float = 0.01,
        max_iter: int = 500,
        tol: float | None = None,
        l2: float = 0.0,
        ties: str = "breslow",
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.penalty = penalty
        self.weight = weight
        self.scale = scale
        self.batch_size = batch_size
        self.network = network
        self.hidden = hidden
        self.solver = solver
        self.lr = lr
        self.max_iter = max_iter
        self.tol = tol
        self.l2 = l2
        self.ties = ties
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.penalty not in PENALTIES:
            raise ValueError(f"penalty must be one of {sorted(PENALTIES)}, got {self.penalty!r}.")
        check_number("weight", self.weight)
        check_number("scale", self.scale)
        if self.batch_size is None:
            return
        check_count("batch_size", self.batch_size, least=2)
        if self.device not in ("auto", "cpu"):
            raise ValueError(
                f"batch_size={self.batch_size} trains on the CPU, but device={self.device!r}; "
                "use device='cpu', or batch_size=None."
            )

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, sensitive_features: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`drosurv.CoxPH.fit`; weights count in the likelihood, the penalty compares every patient once.
        sensitive_features : Series, DataFrame or array (n,) or (n, J), optional
            Group labels; several columns define groups by their combinations.

        Returns
        -------
        self
        """
        fit_batch([self], self._with_groups(X, y, sample_weight, sensitive_features))
        return self

    def _with_groups(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, sensitive_features: Any
    ) -> Training:
        training = self._check_training(X, y, sample_weight)
        needed = PENALTIES[self.penalty].needs_groups
        if sensitive_features is None:
            if needed:
                raise ArgumentError(
                    Argument("penalty", self.penalty),
                    " compares groups: pass ",
                    Argument("sensitive_features"),
                    " to fit (one label per patient).",
                )
            return training
        if not needed:
            warnings.warn(
                f"penalty={self.penalty!r} uses no groups; sensitive_features is ignored.",
                UserWarning,
                stacklevel=3,
            )
            return training
        return with_groups(training, sensitive_features)

    def _mass(self, training: Training) -> FloatArray:
        """Mass on the events alone: these baselines average over events, not over patients."""
        mass = training.mass * training.target.event
        total = float(mass.sum())
        return mass / total if total > 0 else mass

    def _penalty(self, batch: Sequence[Any], training: Training) -> tuple[Penalty | None, FloatArray | None]:
        weight = np.array([estimator.weight for estimator in batch], dtype=np.float64)
        return self._prepared(training), weight

    def _prepared(self, training: Training) -> Disparity:
        return PENALTIES[self.penalty].prepare(
            _standardised(training.X), training.target, training.codes, training.n_groups, self.scale
        )

    def _device_penalty(
        self, batch: Sequence[Any], trainings: Sequence[Training], device: str
    ) -> tuple[Callable[[Tensor], Tensor] | None, Tensor | None]:
        import torch

        weight = torch.as_tensor(
            [estimator.weight for estimator in batch], dtype=torch.float32, device=device
        )
        if len(trainings) == 1:
            return self._prepared(trainings[0]).torch, weight
        targets = [training.target for training in trainings]
        codes = [training.codes for training in trainings if training.codes is not None]
        stacked = replace(
            trainings[0],
            X=np.stack([training.X for training in trainings]),
            target=Target(np.stack([t.event for t in targets]), np.stack([t.time for t in targets])),
            codes=np.stack(codes) if codes else None,
            n_groups=max(training.n_groups for training in trainings),
        )
        return self._prepared(stacked).torch, weight

    @property
    def _worth_moving(self) -> bool:
        return self.batch_size is None and super()._worth_moving


def _standardised(X: FloatArray) -> FloatArray:
    """Features (..., n, d) with mean zero and deviation one; a constant feature becomes zero."""
    centred = X - X.mean(axis=-2, keepdims=True)
    deviation = centred.std(axis=-2, keepdims=True)
    standard: FloatArray = centred / np.where(deviation > 0, deviation, 1.0)
    return standard
