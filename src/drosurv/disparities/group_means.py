"""Mean hazards of groups: what the group and the intersectional disparity are made of."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from drosurv.disparities.penalty import Penalty
from drosurv.target import IntArray

if TYPE_CHECKING:
    from torch import Tensor

# A numpy array or a torch tensor.
Array: TypeAlias = Any


class GroupMembership(NamedTuple):
    """Who belongs to which of G groups, in arrays of NumPy or torch.

    `member` (n, G) is 1 where the patient belongs to the group, `size` (G,) counts its patients, and `present` (G,)
    tells whether it has any; the others never enter a maximum.
    """

    member: Array
    size: Array
    present: Array

    @classmethod
    def of(cls, codes: IntArray, n_groups: int) -> GroupMembership:
        """From codes (n,) from 0 to G - 1; groups without a patient are allowed."""
        if codes.ndim != 1 or len(codes) == 0:
            raise ValueError(f"codes must have shape (n,), one for each patient; got {codes.shape}.")
        if not np.issubdtype(codes.dtype, np.integer) or codes.min() < 0 or codes.max() >= n_groups:
            raise ValueError(
                f"codes must be integers from 0 to n_groups - 1 = {n_groups - 1}; got {codes.dtype} from "
                f"{codes.min()} to {codes.max()}. Number the groups first, for example with np.unique(..., "
                "return_inverse=True)."
            )
        member = (codes[:, None] == np.arange(n_groups)).astype(np.float64)
        size = member.sum(axis=0)
        return cls(member, size, size > 0)

    def beside(self, scores: Tensor) -> GroupMembership:
        """The same as tensors where scores lie."""
        import torch

        member, size = (
            torch.tensor(part, dtype=scores.dtype, device=scores.device) for part in (self.member, self.size)
        )
        return GroupMembership(member, size, torch.tensor(self.present, device=scores.device))

    def means(self, h: Array, *, smooth: bool) -> Array:
        """Mean hazards (B, G) of hazards (B, n); of a group without a patient they mean nothing.

        m_g = (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth, otherwise sum_{i in g} h_i / n_g
        """
        total = h @ self.member
        if smooth:
            return (total + 0.5) / (self.size + 1.0)
        return total / (self.size + (self.size == 0))


class GroupPenalty(Penalty):
    """A function of the groups' mean hazards; features and scale play no part."""

    needs_groups = True

    @cached_property
    def groups(self) -> GroupMembership:
        """Who belongs to which group."""
        return GroupMembership.of(self.codes, self.n_groups)

    @cached_property
    def _placed(self) -> dict[Any, GroupMembership]:
        """Copies of the groups by device and dtype, made when they are first needed."""
        return {}

    def torch(self, scores: Tensor) -> Tensor:
        """Differentiable values (*batch,) at scores (*batch, n)."""
        self.check_scores(tuple(scores.shape))
        place = (scores.device, scores.dtype)
        if place not in self._placed:
            self._placed[place] = self.groups.beside(scores)
        values = self._torch_values(scores.exp().reshape(-1, self.n), self._placed[place])
        return values.reshape(scores.shape[:-1])

    @abstractmethod
    def _torch_values(self, h: Tensor, groups: GroupMembership) -> Tensor:
        """Values (B,) at hazards (B, n), differentiable."""
