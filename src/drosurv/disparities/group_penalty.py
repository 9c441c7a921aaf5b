"""What the penalties over group means share: membership matrices, prepared once."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.group_means import GroupMembership
from drosurv.disparities.penalty import Penalty, take_patients
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    import torch as torch_module
    from torch import Tensor


class GroupPenalty(Penalty):
    """A function of the groups' mean hazards.

    Parameters
    ----------
    codes : (n,) or (R, n) int
        Group of each patient, 0 to ``n_groups - 1``.
    n_groups : int
        Groups without a patient are allowed and never count.
    """

    needs_groups = True

    def __init__(self, codes: NDArray[np.int64], n_groups: int) -> None:
        self.groups = GroupMembership(codes, n_groups)
        self._placed: dict[tuple[torch_module.device, torch_module.dtype], tuple[Tensor, Tensor, Tensor]] = {}

    @classmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From a training set with groups; features, target and scale play no part."""
        if codes is None:
            raise ValueError("codes is None: this penalty compares groups; pass the patients' group codes.")
        return cls(codes, n_groups)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,) or (R, n)."""
        return self.groups.codes.shape

    def alone(self, r: int) -> Self:
        """The penalty of training set r alone."""
        return type(self)(self.groups.codes[r], self.groups.size.shape[-1])

    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone."""
        return type(self)(take_patients(self.groups.codes, rows, self.shape), self.groups.size.shape[-1])

    def torch(self, scores: Tensor) -> Tensor:
        """Differentiable values (*batch,) at scores (*batch, n), or (R, *batch) at (R, *batch, n)."""
        import torch

        self.check_scores(tuple(scores.shape))
        place = (scores.device, scores.dtype)
        if place not in self._placed:
            self._placed[place] = (
                torch.tensor(self.groups.member, dtype=scores.dtype, device=scores.device),
                torch.tensor(self.groups.size, dtype=scores.dtype, device=scores.device),
                torch.tensor(self.groups.present, device=scores.device),
            )
        h = scores.exp().reshape(*self.shape[:-1], -1, self.shape[-1])
        return self._torch_values(h, *self._placed[place]).reshape(scores.shape[:-1])

    @abstractmethod
    def _torch_values(self, h: Tensor, member: Tensor, size: Tensor, present: Tensor) -> Tensor:
        """Values (..., B) at hazards (..., B, n), differentiable."""
