"""Targets of several training sets as tensors, for losses that are computed for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


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
