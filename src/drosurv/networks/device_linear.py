"""Linear networks on tensors of any device: scores theta . x of many models on several training sets."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor


class DeviceLinear:
    """B linear models on each of R training sets of features (n, d), one batch of R * B models.

    The coefficients, one float32 tensor (R * B, d), start at theta and are updated in place by a solver.
    """

    def __init__(self, X: Sequence[FloatArray], theta: FloatArray, device: str) -> None:
        import torch

        # One row per feature: sums over patients then run along memory.
        self.columns = torch.stack(
            [torch.tensor(part, dtype=torch.float32, device=device).T.contiguous() for part in X]
        )
        self.parameters: list[Tensor] = [torch.tensor(theta, dtype=torch.float32, device=device)]

    @property
    def recordable(self) -> bool:
        """Whether scores are work on an accelerator, which never waits for it."""
        return self.columns.is_cuda

    def scores(self) -> Tensor:
        """Scores (R * B, n) at the current coefficients."""
        sets, d, _ = self.columns.shape
        return (self.parameters[0].view(sets, -1, d) @ self.columns).flatten(0, 1)

    def pullback(self, gradient: Tensor) -> list[Tensor]:
        """Gradient in the coefficients (R * B, d), given the gradient in the scores (R * B, n)."""
        if len(gradient) == 1:
            # One long vector: this product is spread over the device, the general one is not.
            return [(self.columns[0] @ gradient[0])[None]]
        sets, _, n = self.columns.shape
        return [(gradient.view(sets, -1, n) @ self.columns.mT).flatten(0, 1)]

    # As they are outside of training.
    evaluated = scores

    def take(self, rows: IntArray) -> DeviceLinear:
        """The same models on fewer patients, sharing the coefficients."""
        part = copy.copy(self)
        part.columns = self.columns[..., rows]
        return part

    def trained(self) -> list[FloatArray]:
        """Coefficients (d,) of each model."""
        return list(self.parameters[0].double().cpu().numpy())
