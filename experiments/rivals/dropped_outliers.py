"""DORO: the worst case over what is left when the largest losses are dropped as outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.objectives.objective import Evaluation, Objective
from drosurv.patients.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

# What rounding leaves of a dropped outlier is less than this share of a patient, and would outweigh all others.
_TRACE = 1e-6


class DroppedOutliers(Objective):
    """The inner objective of the losses without the share epsilon, in [0, 1), of the patients who have the largest."""

    # The set of dropped patients jumps.
    smooth = False

    def __init__(self, inner: Objective, epsilon: float) -> None:
        self.inner, self.epsilon = inner, epsilon

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and threshold, row by row."""
        parts = [self.inner(row[None], self._left(row, mass)) for row in losses]
        joined = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "weights", "eta")
        )
        return Evaluation(*joined)

    def _left(self, losses: FloatArray, mass: FloatArray) -> FloatArray:
        """Masses (n,) of what is left, summing to one; the patient at the border keeps a part."""
        order = np.argsort(-losses, kind="stable")
        before = np.cumsum(mass[order]) - mass[order]
        left = np.empty_like(mass)
        left[order] = mass[order] - np.clip(self.epsilon - before, 0.0, mass[order])
        left[left < _TRACE * mass] = 0.0
        shares: FloatArray = left / left.sum()
        return shares

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Values (..., B) at losses (..., B, n) and masses (..., 1, n), differentiable."""
        import torch

        share = (mass / mass.sum(-1, keepdim=True)).expand(losses.shape)
        order = losses.detach().argsort(dim=-1, descending=True, stable=True)
        sorted_share = share.gather(-1, order)
        before = sorted_share.cumsum(-1) - sorted_share
        dropped = torch.minimum((self.epsilon - before).clamp(min=0.0), sorted_share)
        left = torch.zeros_like(sorted_share).scatter(-1, order, sorted_share - dropped)
        return self.inner.torch(losses, left * (left >= _TRACE * share))
