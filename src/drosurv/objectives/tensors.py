"""What the robust objectives share on tensors of any device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drosurv.objectives.objective import check_alpha
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor, device


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
