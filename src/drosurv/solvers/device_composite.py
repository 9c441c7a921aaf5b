"""The training criterion on tensors of any device, for many training sets and settings at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class DeviceComposite:
    """Objective plus penalty as a function of the scores, differentiated by autograd.

    Parameters
    ----------
    objective : callable
        Scores (R, B, n) to values (R, B), differentiable.
    shape : (int, int)
        R training sets and B settings; a solver sees them as one batch of R * B models.
    penalty : callable or None
        Scores (R, B, n) to values (R, B), differentiable.
    penalty_weight : (B,) tensor or None
    """

    def __init__(
        self,
        objective: Callable[[Tensor], Tensor],
        shape: tuple[int, int],
        penalty: Callable[[Tensor], Tensor] | None = None,
        penalty_weight: Tensor | None = None,
    ) -> None:
        self.objective, self.shape = objective, shape
        self.penalty, self.penalty_weight = penalty, penalty_weight

    def __call__(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (R * B, n) to values (R * B,) and gradients (R * B, n)."""
        import torch

        leaf = scores.detach().requires_grad_()
        spread = leaf.reshape(*self.shape, -1)
        value = self.objective(spread)
        if self.penalty is not None and self.penalty_weight is not None:
            value = value + self.penalty_weight * self.penalty(spread)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach().reshape(-1), gradient
