"""Group disparity: the mean hazard of every group should be the mean hazard of all (Keya et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.group_means import Array, GroupMembership, GroupPenalty, group_means
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


def group_gap(h: FloatArray, codes: NDArray[np.int64], n_groups: int, smooth: bool) -> float:
    """Largest distance of a group's mean hazard from the mean hazard of all.

    max over groups g of |m_g - mean h|

    with m_g the mean of h in g, or (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth.

    Parameters
    ----------
    h : (n,) float64
        Hazards.
    codes : (n,) int
        Group of each patient, 0 to ``n_groups - 1``.
    n_groups : int
        Groups without a patient do not count.
    smooth : bool
        Whether group means are smoothed.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import group_gap
    >>> group_gap(np.array([1.0, 1.0, 4.0]), np.array([0, 0, 1]), n_groups=2, smooth=False)
    2.0
    """
    groups = GroupMembership(codes, n_groups)
    (gaps,) = _gaps(h[None], groups.member, groups.size, smooth=smooth)
    return float(np.abs(gaps[groups.present]).max())


def _gaps(h: Array, member: Array, size: Array, *, smooth: bool) -> Array:
    """Signed gaps (B, G) of numpy or torch hazards (B, n)."""
    return group_means(h, member, size, smooth=smooth) - h.mean(-1)[:, None]


class KeyaGroup(GroupPenalty):
    """Group penalty of Keya et al.: :func:`group_gap` with smoothed means.

    max over groups g of | (sum_{i in g} h_i + 1/2) / (n_g + 1) - mean h |

    Parameters
    ----------
    codes : (n,) int
        Group of each patient, 0 to ``n_groups - 1``.
    n_groups : int
        Groups without a patient are allowed and never count.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import KeyaGroup
    >>> values, gradient = KeyaGroup(np.array([0, 0, 1]), n_groups=2)(np.log([[1.5, 1.0, 3.5]]))
    >>> values
    array([1.])

    References
    ----------
    Keya, Islam, Pan, Stockwell, Foulds (2021). Equitable allocation of healthcare resources with fair
    survival models. SIAM International Conference on Data Mining.
    """

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (B,) and gradients in h (B, n) at hazards h (B, n)."""
        member, size = self.groups.member, self.groups.size
        gaps = _gaps(h, member, size, smooth=True)
        widest = np.where(self.groups.present, np.abs(gaps), -np.inf).argmax(axis=-1)[:, None]
        gap = np.take_along_axis(gaps, widest, axis=-1)
        pull = member.T[widest[:, 0]] / (size[widest] + 1.0) - 1.0 / h.shape[-1]
        return np.abs(gap[:, 0]), np.sign(gap) * pull

    def _torch_values(self, h: Tensor, member: Tensor, size: Tensor, present: Tensor) -> Tensor:
        gaps: Tensor = _gaps(h, member, size, smooth=True)
        return gaps.abs().masked_fill(~present, -float("inf")).max(dim=-1).values
