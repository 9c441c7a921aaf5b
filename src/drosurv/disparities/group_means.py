"""Mean hazards of groups: what the group and the intersectional disparity are made of."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.penalty import Penalty
from drosurv.target import BoolArray, FloatArray, Target

if TYPE_CHECKING:
    import torch as torch_module
    from torch import Tensor

# A numpy array or a torch tensor.
Array: TypeAlias = Any


class GroupMembership:
    """Who belongs to which of G groups, by codes (n,) from 0 to G - 1; groups without a patient are allowed.

    `member` (n, G) is 1 where the patient belongs to the group, `size` (G,) counts its patients, and `present` (G,)
    tells whether it has any; the others never enter a maximum.
    """

    member: FloatArray
    size: FloatArray
    present: BoolArray

    def __init__(self, codes: NDArray[np.int64], n_groups: int) -> None:
        codes = np.asarray(codes)
        if codes.ndim != 1 or len(codes) == 0:
            raise ValueError(f"codes must have shape (n,), one for each patient; got {codes.shape}.")
        if not np.issubdtype(codes.dtype, np.integer) or codes.min() < 0 or codes.max() >= n_groups:
            raise ValueError(
                f"codes must be integers from 0 to n_groups - 1 = {n_groups - 1}; got {codes.dtype} from "
                f"{codes.min()} to {codes.max()}. Number the groups first, for example with np.unique(..., "
                "return_inverse=True)."
            )
        self.codes = codes
        self.member = (codes[:, None] == np.arange(n_groups)).astype(np.float64)
        self.size = self.member.sum(axis=0)
        self.present = self.size > 0


def group_means(h: Array, member: Array, size: Array, *, smooth: bool) -> Array:
    """Mean hazards (B, G) of groups, from hazards (B, n) of numpy or torch, members (n, G) and sizes (G,).

    m_g = (sum_{i in g} h_i + 1/2) / (n_g + 1) if smooth, otherwise sum_{i in g} h_i / n_g

    Of a group without a patient the value means nothing.
    """
    total = h @ member
    if smooth:
        return (total + 0.5) / (size + 1.0)
    return total / (size + (size == 0))


class GroupPenalty(Penalty):
    """A function of the groups' mean hazards; parameters as in :class:`KeyaGroup`."""

    needs_groups = True

    def __init__(self, codes: NDArray[np.int64], n_groups: int) -> None:
        self.groups = GroupMembership(codes, n_groups)
        self.n = len(self.groups.codes)
        self._placed: dict[tuple[torch_module.device, torch_module.dtype], tuple[Tensor, Tensor, Tensor]] = {}

    @classmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From a training set with groups; features, target and scale play no part."""
        if codes is None:
            raise ValueError("codes is None: this penalty compares groups; pass the patients' group codes.")
        return cls(codes, n_groups)

    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone."""
        return type(self)(self.groups.codes[rows], len(self.groups.size))

    def torch(self, scores: Tensor) -> Tensor:
        """Differentiable values (*batch,) at scores (*batch, n)."""
        import torch

        self.check_scores(tuple(scores.shape))
        place = (scores.device, scores.dtype)
        if place not in self._placed:
            self._placed[place] = (
                torch.tensor(self.groups.member, dtype=scores.dtype, device=scores.device),
                torch.tensor(self.groups.size, dtype=scores.dtype, device=scores.device),
                torch.tensor(self.groups.present, device=scores.device),
            )
        h = scores.exp().reshape(-1, self.n)
        return self._torch_values(h, *self._placed[place]).reshape(scores.shape[:-1])

    @abstractmethod
    def _torch_values(self, h: Tensor, member: Tensor, size: Tensor, present: Tensor) -> Tensor:
        """Values (B,) at hazards (B, n), differentiable."""
