"""Group disparity: the mean hazard of every group should be the mean hazard of all (Keya et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.disparities.group_means import Array, GroupMembership, GroupPenalty
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor


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
