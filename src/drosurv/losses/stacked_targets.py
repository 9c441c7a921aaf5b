"""Targets of several training sets as tensors, for losses that are computed for all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class InTorch(NamedTuple):
    """The losses of R training sets of n patients each, for B models of each set.

    `losses` takes scores (R, B, n) and extra parameters (R, B, K) to losses (R, B, n). `order` (R, 1, n) is the one in
    which they come, where that is not the order of the scores: to put them back would take as long as to compute them.
    """

    losses: Callable[[Tensor, Tensor], Tensor]
    order: Tensor | None = None


@dataclass(frozen=True, eq=False)
class StackedTargets:
    """Targets of R training sets as tensors (R, 1, n), ready to meet scores (R, B, n)."""

    event: Tensor
    time: Tensor
    weight: Tensor | None

    @classmethod
    def of(
        cls, targets: Sequence[Target], weights: Sequence[FloatArray | None], device: str
    ) -> StackedTargets:
        """Targets of one size, and weights inside risk sets where there are any, on the device."""
        filled = [
            np.ones(len(target)) if weight is None else weight
            for target, weight in zip(targets, weights, strict=True)
        ]
        weighted = any(weight is not None for weight in weights)
        return cls(
            stack([target.event for target in targets], device),
            stack([target.time for target in targets], device),
            stack(filled, device).float() if weighted else None,
        )


def stack(arrays: Sequence[Any], device: str) -> Tensor:
    """Arrays (n,) of R training sets as one tensor (R, 1, n) of the device."""
    import torch

    return torch.as_tensor(np.stack(arrays), device=device).unsqueeze(1)
