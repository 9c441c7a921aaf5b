"""The training criterion on tensors of any device, for several training sets and settings in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from drosurv.errors import OnProcessorOnly
from drosurv.losses.loss import stack
from drosurv.patients.target import IntArray
from drosurv.solvers.criterion import Criterion

if TYPE_CHECKING:
    from torch import Tensor, dtype


class TorchCriterion:
    """The criteria of R training sets of equal size, each for B settings, as one batch of R * B models.

    All training sets have the objective of the first.
    """

    neighborhoods, divisible = None, True

    def __init__(self, criteria: Sequence[Criterion], settings: int, device: str) -> None:
        import torch

        self._given, lead = (criteria, settings, device), criteria[0]
        found = type(lead.loss).stacked([criterion.loss for criterion in criteria], device)
        if found is None or any(criterion.neighborhoods is not None for criterion in criteria):
            raise OnProcessorOnly.must(
                "device", "be 'auto' or 'cpu': this model trains only on the CPU", device
            )
        self.losses, order = found
        self.objective = lead.block_objective
        self.recordable = torch.device(device).type == "cuda" and lead.loss.recordable
        self.shape = (len(criteria), settings)
        self.null_losses = None
        if lead.null_losses is not None:
            losses = stack([criterion.null_losses for criterion in criteria], device)
            self.null_losses = losses if order is None else losses.gather(-1, order)
        self.blocks = [_block_members(criteria, k, device, order) for k in range(len(lead.blocks))]
        self.start = torch.stack([torch.as_tensor(c.loss.start, device=device) for c in criteria])
        self.extra_ridge = lead.loss.extra_ridge
        self.penalties = [criterion.penalty for criterion in criteria if criterion.penalty is not None]
        self.penalty_weight = torch.as_tensor(lead.penalty_weight, device=device)

    def take(self, rows: IntArray) -> TorchCriterion:
        """Return the same criterion for a subset of the patients of each training set."""
        criteria, settings, device = self._given
        return TorchCriterion([criterion.take(rows) for criterion in criteria], settings, device)

    def first_extra(self, kind: dtype) -> Tensor | None:
        """Return the extra parameters (R * B, K) at which training starts; None if the loss has none."""
        if self.start.shape[1] == 0:
            return None
        return self.start.to(kind).repeat_interleave(self.shape[1], dim=0)

    def __call__(self, scores: Tensor, extra: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return values (R * B,) at scores (R * B, n) and extra (R * B, K), and the gradients in both, by autograd."""
        import torch

        leaf = scores.detach().requires_grad_()
        rates = None if extra is None else extra.detach().requires_grad_()
        value = self._value(leaf, rates)
        leaves = [leaf] if rates is None else [leaf, rates]
        by_score, *by_extra = torch.autograd.grad(value.sum(), leaves)
        return value.detach().reshape(-1), by_score, by_extra[0] if by_extra else None

    def values(self, scores: Tensor, extra: Tensor | None = None) -> Tensor:
        """Return the values (R * B,) without gradients."""
        return self._value(scores.detach(), extra).detach().reshape(-1)

    def _value(self, leaf: Tensor, rates: Tensor | None) -> Tensor:
        """Return the criterion of each model: the objective of all blocks, and penalties."""
        import torch

        scores = leaf.reshape(*self.shape, -1)
        extra = scores.new_zeros((*self.shape, 0)) if rates is None else rates.reshape(*self.shape, -1)
        losses = self.losses(scores, extra)
        if self.null_losses is not None:
            losses = losses - self.null_losses.to(losses.dtype)
        value = scores.new_zeros(self.shape)
        for rows, mass in self.blocks:
            block = losses.gather(-1, rows.expand(*self.shape, -1))
            value = value + self.objective.torch(block, mass)
        if rates is not None:
            moved = extra - self.start.to(extra.dtype).unsqueeze(1)
            value = value + 0.5 * self.extra_ridge * moved.square().sum(-1)
        if self.penalties:
            added = [p.torch(of_set) for p, of_set in zip(self.penalties, scores, strict=True)]
            value = value + self.penalty_weight.to(value.dtype) * torch.stack(added)
        return value


def _block_members(
    criteria: Sequence[Criterion], k: int, device: str, order: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the positions (R, 1, m) of the patients of block k among losses in the given order, and their masses.

    If patients without a loss are merged, one of them has the mass of all. Training sets with fewer losses than others
    are padded with patients of loss zero and mass zero.
    """
    members = [criterion.blocks[k] for criterion in criteria]
    masses = [criterion.patient_mass[rows] for criterion, rows in zip(criteria, members, strict=True)]
    if criteria[0].merges_censored:
        with_loss = [np.isin(rows, c.loss.rows) for c, rows in zip(criteria, members, strict=True)]
        width = max(int(has_loss.sum()) + (not has_loss.all()) for has_loss in with_loss)
        for r, has_loss in enumerate(with_loss):
            # Patients with a loss first. All sets have equally many members, so there are enough others for padding.
            kept = np.concatenate([np.flatnonzero(has_loss), np.flatnonzero(~has_loss)])[:width]
            count, mass = int(has_loss.sum()), masses[r][kept]
            mass[count:] = 0.0
            mass[count : count + 1] = masses[r][~has_loss].sum()
            members[r], masses[r] = members[r][kept], mass
    rows, mass = stack(members, device), stack(masses, device)
    if order is None:
        return rows, mass
    positions, sorting = order.argsort(dim=-1).gather(-1, rows).sort(dim=-1)
    return positions, mass.gather(-1, sorting)
