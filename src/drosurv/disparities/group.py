"""Group disparity: the mean hazard of every group should be the mean hazard of all (Keya et al., 2021)."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from drosurv.disparities.penalty import Penalty
from drosurv.target import FloatArray, IntArray

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


def group_gap(h: FloatArray, codes: IntArray, n_groups: int, smooth: bool) -> float:
    """Largest distance of a group's mean hazard from the mean of all hazards (n,): max over groups g of |m_g - mean h|.

    m_g is the mean of h in g, or (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth. Groups (n,) are coded from 0 to
    ``n_groups - 1``; those without a patient do not count.

    >>> group_gap(np.array([1.0, 1.0, 4.0]), np.array([0, 0, 1]), n_groups=2, smooth=False)
    2.0
    """
    groups = GroupMembership.of(codes, n_groups)
    (gaps,) = _gaps(h[None], groups, smooth=smooth)
    return float(np.abs(gaps[groups.present]).max())


def _gaps(h: Array, groups: GroupMembership, *, smooth: bool) -> Array:
    """Signed gaps (B, G) of numpy or torch hazards (B, n)."""
    return groups.means(h, smooth=smooth) - h.mean(-1)[:, None]


class KeyaGroup(GroupPenalty):
    """Group penalty of Keya et al.: :func:`group_gap` with smoothed means.

    References
    ----------
    Keya, Islam, Pan, Stockwell, Foulds (2021). Equitable allocation of healthcare resources with fair
    survival models. SIAM International Conference on Data Mining.
    """

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (B,) and gradients in h (B, n) at hazards h (B, n)."""
        member, size, present = self.groups
        gaps = _gaps(h, self.groups, smooth=True)
        widest = np.where(present, np.abs(gaps), -np.inf).argmax(axis=-1)[:, None]
        gap = np.take_along_axis(gaps, widest, axis=-1)
        pull = member.T[widest[:, 0]] / (size[widest] + 1.0) - 1.0 / self.n
        return np.abs(gap[:, 0]), np.sign(gap) * pull

    def _torch_values(self, h: Tensor, groups: GroupMembership) -> Tensor:
        gaps: Tensor = _gaps(h, groups, smooth=True)
        return gaps.abs().masked_fill(~groups.present, -float("inf")).max(dim=-1).values
