"""What every objective computes: its value, its weights, and its second derivative; what they share on tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drosurv.errors import ArgumentError, OnProcessorOnly
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor, device


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An objective at one batch of losses.

    Attributes
    ----------
    value : (B,) float64
    weights : (B, n) float64
        The gradient of the value in the losses: not negative, summing to one. For a robust objective these are
        the worst-case weights, the subpopulation that the adversary picks.
    eta : (B,) float64
        The threshold above which losses carry weight (the value itself for the mean).
    """

    value: FloatArray
    weights: FloatArray
    eta: FloatArray


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivative of an objective in its losses: diag(diagonal) + sum_r scale_r vector_r vector_r'."""

    diagonal: FloatArray
    scales: FloatArray
    vectors: FloatArray


class Objective(ABC):
    """Maps losses (B, n) and the patients' masses (n,) to one number per row.

    Attributes
    ----------
    smooth : bool
        Whether it has a gradient almost everywhere, so that a solver may try Newton's method on it as it is.
    tol : float
        Relative gap to which the convex solver goes, unless it is told another.
    by_patient : bool
        Whether it looks at each patient, so that those without a loss may not be taken together.
    radius : (B,) float64 or None
        Constants C of a chi-square ball, which the compiled solver knows; None for every other objective.
    """

    smooth: bool = True
    tol: float = 1e-8
    by_patient: bool = False
    radius: FloatArray | None = None

    @abstractmethod
    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and threshold at the losses."""

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Second derivative at one row of losses (n,); None where it is zero, or there is none."""
        return None

    def smoothed(self, smoothing: float) -> Objective:
        """An objective without kinks that is never above this one, and approaches it as ``smoothing`` falls."""
        return self

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """The values (..., B) in torch, differentiable, at losses (..., B, n) and masses (..., 1, n) of any sum."""
        raise OnProcessorOnly(
            "device", f"device must be 'auto' or 'cpu': {type(self).__name__} works on the processor."
        )


def uniform_mass(n: int) -> FloatArray:
    """Equal masses of n patients, summing to one."""
    return np.full(n, 1.0 / n)


def check_alpha(alpha: ArrayLike) -> NDArray[Any]:
    """Reject subpopulation sizes outside (0, 1]."""
    alphas = np.asarray(alpha, dtype=np.float64)
    if not (np.isfinite(alphas).all() and (alphas > 0).all() and (alphas <= 1).all()):
        wanted = "lie in (0, 1], as the smallest share of patients to protect"
        raise ArgumentError.must("alpha", wanted, alpha)
    return alphas


class Placed:
    """Numbers (B,) of this process that are copied to each device once, as a step there must not wait for them."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        self._on: dict[device, Tensor] = {}

    def beside(self, tensor: Tensor) -> Tensor:
        """The numbers in double precision where a tensor lies."""
        import torch

        if tensor.device not in self._on:
            self._on[tensor.device] = torch.tensor(self.values, dtype=torch.float64, device=tensor.device)
        return self._on[tensor.device]


def first_order(losses: Tensor, value: Tensor, weights: Tensor) -> Tensor:
    """A scalar with the given value whose gradient in the losses is the given weights (Danskin)."""
    return value.to(losses.dtype) + (weights.to(losses.dtype) * (losses - losses.detach())).sum(-1)


def shares_of(values: Tensor, mass: Tensor | None) -> Tensor:
    """Masses (..., n) that sum to one."""
    import torch

    if mass is None:
        return torch.full_like(values, 1.0 / values.shape[-1])
    return (mass.double() / mass.double().sum(-1, keepdim=True)).expand(values.shape)


def alphas_of(losses: Tensor, alpha: float | Tensor) -> Tensor:
    """One checked alpha (...,) in float64 for every row of losses (..., n)."""
    import torch

    check_alpha(alpha.detach().cpu().numpy() if isinstance(alpha, torch.Tensor) else alpha)
    wanted = torch.as_tensor(alpha, dtype=torch.float64, device=losses.device)
    return wanted.expand(losses.shape[:-1]) if wanted.ndim == 0 else wanted
