"""The training criterion on tensors of any device, for many training sets and settings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from drosurv.errors import OnProcessorOnly
from drosurv.losses.stacked_targets import stack
from drosurv.solvers.criterion import Criterion

if TYPE_CHECKING:
    from torch import Tensor, dtype


class TorchCriterion:
    """The criteria of R training sets of one size, each for B settings, as one batch of R * B models.

    Parameters
    ----------
    criteria : sequence of Criterion
        One for each training set; the objective of the first is that of all.
    settings : int
        B.
    device : str
    """

    def __init__(self, criteria: Sequence[Criterion], settings: int, device: str) -> None:
        import torch

        lead = criteria[0]
        losses = type(lead.loss).stacked([criterion.loss for criterion in criteria], device)
        if losses is None or any(criterion.neighborhoods is not None for criterion in criteria):
            raise OnProcessorOnly.must(
                "device", "be 'auto' or 'cpu': this model trains on the processor", device
            )
        self.losses, self.objective = losses, lead.make_objective()
        self.shape = (len(criteria), settings)
        self.mass = stack([criterion.patient_mass for criterion in criteria], device)
        self.offset = (
            None if lead.offset is None else stack([criterion.offset for criterion in criteria], device)
        )
        blocks = [] if lead.whole else range(len(lead.blocks))
        self.blocks = [stack([criterion.blocks[k] for criterion in criteria], device) for k in blocks]
        self.start = torch.stack([torch.as_tensor(c.loss.start, device=device) for c in criteria])
        self.extra_ridge = lead.loss.extra_ridge
        self.penalties = [criterion.penalty for criterion in criteria if criterion.penalty is not None]
        weight = np.ones(1) if lead.penalty_weight is None else lead.penalty_weight
        self.penalty_weight = torch.as_tensor(weight, device=device)

    def first_extra(self, kind: dtype) -> Tensor | None:
        """The extra parameters (R * B, K) that training starts from, None where there are none."""
        if self.start.shape[1] == 0:
            return None
        return self.start.to(kind).repeat_interleave(self.shape[1], dim=0)

    def __call__(self, scores: Tensor, extra: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Scores (R * B, n) and extra (R * B, K) to values (R * B,) and the gradients in both, by autograd."""
        import torch

        leaf = scores.detach().requires_grad_()
        rates = None if extra is None else extra.detach().requires_grad_()
        value = self._value(leaf, rates)
        leaves = [leaf] if rates is None else [leaf, rates]
        by_score, *by_extra = torch.autograd.grad(value.sum(), leaves)
        return value.detach().reshape(-1), by_score, by_extra[0] if by_extra else None

    def _value(self, leaf: Tensor, rates: Tensor | None) -> Tensor:
        import torch

        scores = leaf.reshape(*self.shape, -1)
        extra = scores.new_zeros((*self.shape, 0)) if rates is None else rates.reshape(*self.shape, -1)
        losses = self.losses(scores, extra)
        if self.offset is not None:
            losses = losses - self.offset.to(losses.dtype)
        value = scores.new_zeros(self.shape) if self.blocks else self.objective.torch(losses, self.mass)
        for rows in self.blocks:
            own = losses.gather(-1, rows.expand(*self.shape, -1))
            value = value + self.objective.torch(own, self.mass.gather(-1, rows))
        if rates is not None:
            moved = extra - self.start.to(extra.dtype).unsqueeze(1)
            value = value + 0.5 * self.extra_ridge * moved.square().sum(-1)
        if self.penalties:
            found = [p.torch(own) for p, own in zip(self.penalties, scores, strict=True)]
            value = value + self.penalty_weight.to(value.dtype) * torch.stack(found)
        return value
