"""Disparities between the mean hazards of groups and of intersections of groups (Keya et al., 2021)."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from drosurv.patients.target import FloatArray, IntArray
from drosurv.solvers.penalty import Penalty

if TYPE_CHECKING:
    from torch import Tensor

# A numpy array or a torch tensor.
Array: TypeAlias = Any


class GroupMembership(NamedTuple):
    """Membership of n patients in G groups, as NumPy or torch arrays.

    `member` (n, G) is 1 if the patient belongs to the group, else 0; `size` (G,) is the number of patients of each
    group, and `present` (G,) is true if it is positive. Maxima are over present groups only.
    """

    member: Array
    size: Array
    present: Array

    @classmethod
    def of(cls, codes: IntArray, n_groups: int) -> GroupMembership:
        """From codes (n,) between 0 and G - 1; groups without patients are allowed."""
        member = (codes[:, None] == np.arange(n_groups)).astype(np.float64)
        size = member.sum(axis=0)
        return cls(member, size, size > 0)

    def like(self, scores: Tensor) -> GroupMembership:
        """Return the membership as tensors with the device and dtype of the scores."""
        import torch

        how: dict[str, Any] = {"dtype": scores.dtype, "device": scores.device}
        member, size = (torch.tensor(part, **how) for part in (self.member, self.size))
        return GroupMembership(member, size, torch.tensor(self.present, device=scores.device))

    def means(self, h: Array, *, smooth: bool) -> Array:
        """Return the mean hazards (B, G) of hazards (B, n); undefined for a group without patients.

        m_g = (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth, otherwise sum_{i in g} h_i / n_g
        """
        total = h @ self.member
        if smooth:
            return (total + 0.5) / (self.size + 1.0)
        return total / (self.size + (self.size == 0))


class GroupPenalty(Penalty):
    """Base class of penalties that depend only on the groups' mean hazards; features and scale are not used."""

    needs_groups = True

    @cached_property
    def groups(self) -> GroupMembership:
        """Membership of the patients in groups."""
        return GroupMembership.of(self.codes, self.n_groups)

    @cached_property
    def _copies(self) -> dict[Any, GroupMembership]:
        """Copies of the groups by device and dtype."""
        return {}

    def torch(self, scores: Tensor) -> Tensor:
        """See :meth:`Penalty.torch`."""
        key = (scores.device, scores.dtype)
        if key not in self._copies:
            self._copies[key] = self.groups.like(scores)
        values = self._torch_values(scores.exp().reshape(-1, self.n), self._copies[key])
        return values.reshape(scores.shape[:-1])

    @abstractmethod
    def _torch_values(self, h: Tensor, groups: GroupMembership) -> Tensor:
        """Return differentiable values (B,) at hazards (B, n)."""


def group_gap(h: FloatArray, codes: IntArray, n_groups: int, smooth: bool) -> float:
    """Return the largest distance of a group's mean hazard from the overall mean: max over groups g of |m_g - mean h|.

    m_g is the mean of h in g, or (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth. Groups (n,) are coded from 0 to
    ``n_groups - 1``; groups without patients do not count.

    >>> group_gap(np.array([1.0, 1.0, 4.0]), np.array([0, 0, 1]), n_groups=2, smooth=False)
    2.0
    """
    groups = GroupMembership.of(codes, n_groups)
    (gaps,) = _gaps(h[None], groups, smooth=smooth)
    return float(np.abs(gaps[groups.present]).max())


def _gaps(h: Array, groups: GroupMembership, *, smooth: bool) -> Array:
    """Return signed gaps (B, G) of NumPy or torch hazards (B, n)."""
    return groups.means(h, smooth=smooth) - h.mean(-1)[:, None]


class KeyaGroup(GroupPenalty, name="keya_group"):
    """Group penalty of Keya et al.: :func:`group_gap` with smoothed means.

    Keya et al. (2021), Equitable allocation of healthcare resources with fair survival models, SDM.
    """

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`Penalty.value_and_gradient`."""
        member, size, present = self.groups
        gaps = _gaps(h, self.groups, smooth=True)
        widest = np.where(present, np.abs(gaps), -np.inf).argmax(axis=-1)[:, None]
        gap = np.take_along_axis(gaps, widest, axis=-1)
        pull = member.T[widest[:, 0]] / (size[widest] + 1.0) - 1.0 / self.n
        return np.abs(gap[:, 0]), np.sign(gap) * pull

    def _torch_values(self, h: Tensor, groups: GroupMembership) -> Tensor:
        gaps: Tensor = _gaps(h, groups, smooth=True)
        return gaps.abs().masked_fill(~groups.present, -float("inf")).max(dim=-1).values


def log_ratio_gap(h: FloatArray, codes: IntArray, n_groups: int, smooth: bool) -> float:
    """Return the largest log ratio of two groups' mean hazards: max over groups s, s' of |log m_s - log m_s'|.

    Parameters as in :func:`group_gap`; hazards are positive, and groups are intersections of attributes.

    >>> float(np.exp(log_ratio_gap(np.array([1.0, 1.0, 4.0]), np.array([0, 0, 1]), n_groups=2, smooth=False)))
    4.0
    """
    groups = GroupMembership.of(codes, n_groups)
    (means,) = groups.means(h[None], smooth=smooth)
    means = means[groups.present]
    return float(np.log(means.max()) - np.log(means.min()))


class KeyaIntersectional(GroupPenalty, name="keya_intersectional"):
    """Intersectional penalty of Keya et al.: :func:`log_ratio_gap` with smoothed means.

    Reference as for :class:`KeyaGroup`.
    """

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`Penalty.value_and_gradient`."""
        member, size, present = self.groups
        means = self.groups.means(h, smooth=True)
        high = np.where(present, means, -np.inf).argmax(axis=-1)[:, None]
        low = np.where(present, means, np.inf).argmin(axis=-1)[:, None]
        values, gradient = np.zeros(len(h)), np.zeros_like(h)
        for group, sign in ((high, 1.0), (low, -1.0)):
            mean = np.take_along_axis(means, group, axis=-1)
            values += sign * np.log(mean[:, 0])
            gradient += sign * member.T[group[:, 0]] / ((size[group] + 1.0) * mean)
        return values, gradient

    def _torch_values(self, h: Tensor, groups: GroupMembership) -> Tensor:
        means: Tensor = groups.means(h, smooth=True)
        infinity = float("inf")
        high = means.masked_fill(~groups.present, -infinity).max(dim=-1).values
        low = means.masked_fill(~groups.present, infinity).min(dim=-1).values
        return high.log() - low.log()
