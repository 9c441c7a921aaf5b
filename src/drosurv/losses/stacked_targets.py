"""Targets of several training sets as tensors, for losses that are computed for all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

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
    def of(cls, losses: Sequence[Any], device: str) -> StackedTargets | None:
        """Of losses of one size, with weights inside risk sets; None where there are entry times, strata or offsets."""
        if not all(loss.target.is_plain and loss.offset is None for loss in losses):
            return None
        weights = [np.ones(loss.n) if loss.weight is None else loss.weight for loss in losses]
        weighted = any(loss.weight is not None for loss in losses)
        return cls(
            stack([loss.target.event for loss in losses], device),
            stack([loss.target.time for loss in losses], device),
            stack(weights, device).float() if weighted else None,
        )


def one_by_one(losses: Sequence[Callable[[Tensor, Tensor], Tensor]]) -> InTorch:
    """Losses of scores (B, n) and extra parameters (B, K), one training set after the other."""
    import torch

    def in_torch(scores: Tensor, extra: Tensor) -> Tensor:
        return torch.stack([loss(s, e) for loss, s, e in zip(losses, scores, extra, strict=True)])

    return InTorch(in_torch)


def stack(arrays: Sequence[Any], device: str) -> Tensor:
    """Arrays (n,) of R training sets as one tensor (R, 1, n) of the device."""
    import torch

    return torch.as_tensor(np.stack(arrays), device=device).unsqueeze(1)
