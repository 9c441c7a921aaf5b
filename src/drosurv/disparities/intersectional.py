"""Intersectional disparity: all intersections of attributes should have alike mean hazards (Keya et al.)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.disparities.group import GroupMembership, GroupPenalty
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor


def log_ratio_gap(h: FloatArray, codes: IntArray, n_groups: int, smooth: bool) -> float:
    """Largest log ratio of two groups' mean hazards: max over groups s, s' of |log m_s - log m_s'|.

    Parameters as in :func:`group_gap`; hazards are positive, groups the intersections of attributes.

    >>> float(np.exp(log_ratio_gap(np.array([1.0, 1.0, 4.0]), np.array([0, 0, 1]), n_groups=2, smooth=False)))
    4.0
    """
    groups = GroupMembership.of(codes, n_groups)
    (means,) = groups.means(h[None], smooth=smooth)
    means = means[groups.present]
    return float(np.log(means.max()) - np.log(means.min()))


class KeyaIntersectional(GroupPenalty):
    """Intersectional penalty of Keya et al.: :func:`log_ratio_gap` with smoothed means.

    Reference as for :class:`KeyaGroup`.
    """

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (B,) and gradients in h (B, n) at hazards h (B, n)."""
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
