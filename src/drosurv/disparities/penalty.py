"""The contract of a training penalty: scores of a batch of models in, values and their gradients out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


class Penalty(ABC):
    """A disparity of the hazards h = exp(scores), prepared once for a set of patients.

    The last axis of scores is patients, leading axes are models. Prepared data may carry a leading axis of
    their own, one entry per training set (features (R, n, d), codes (R, n)); scores are then (R, *batch, n)
    and values (R, *batch).

    Where the disparity has a kink, the gradient is the subgradient that is 0 for |0| and for a hinge at 0,
    and of several groups that attain a maximum the first counts.
    """

    needs_groups: ClassVar[bool]

    @classmethod
    @abstractmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From everything a training set offers; each penalty takes what it needs.

        Parameters
        ----------
        X : (n, d) float64
            Standardised features.
        target : Target
        codes : (n,) int or None
            Group of each patient, 0 to ``n_groups - 1``; None only where ``needs_groups`` is False.
        n_groups : int
        scale : float
            The hinge's g.
        """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """(n,), or (R, n) where the prepared data carry a leading axis."""

    @abstractmethod
    def alone(self, r: int) -> Self:
        """The penalty of training set r alone, where the prepared data carry a leading axis."""

    @cached_property
    def _each(self) -> list[Self]:
        return [self.alone(r) for r in range(self.shape[0])]

    @abstractmethod
    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (B,) and gradients in h (B, n) at hazards h (B, n) of a single training set."""

    @abstractmethod
    def torch(self, scores: Tensor) -> Tensor:
        """Differentiable values (*batch,) at scores (*batch, n), on the scores' device and in their dtype."""

    @abstractmethod
    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone (indices or a mask), as for a mini-batch."""

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and gradients in the scores.

        Scores above 709 overflow exp; the value is then not finite.

        Parameters
        ----------
        scores : (*batch, n) or (R, *batch, n) float64

        Returns
        -------
        values : (*batch,) or (R, *batch) float64
        gradient : shape of scores, float64
        """
        self.check_scores(scores.shape)
        if len(self.shape) == 2:
            sets = [penalty(part) for penalty, part in zip(self._each, scores, strict=True)]
            return np.stack([values for values, _ in sets]), np.stack([gradient for _, gradient in sets])
        with np.errstate(over="ignore", invalid="ignore"):
            h = np.exp(scores.reshape(-1, scores.shape[-1]))
            values, gradient = self.value_and_gradient(h)
            gradient *= h
        return values.reshape(scores.shape[:-1]), gradient.reshape(scores.shape)

    def check_scores(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError unless scores of this shape fit the prepared patients."""
        leading, n = self.shape[:-1], self.shape[-1]
        if len(shape) <= len(leading) or shape[-1] != n or shape[: len(leading)] != leading:
            wanted = ", ".join([*map(str, leading), "*batch", str(n)])
            raise ValueError(
                f"scores must have shape ({wanted}), one score per prepared patient; got {shape}."
            )


def take_patients(array: NDArray[Any], rows: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Rows of prepared data: (n, ...) by ``rows`` (b,), or (R, n, ...) by indices (R, b), each set its own.

    Parameters
    ----------
    array : (n, ...) or (R, n, ...)
    rows : (b,) indices or (n,) mask, or (R, b) indices
    shape : (n,) or (R, n)
    """
    taken: NDArray[Any] = array[rows] if len(shape) == 1 else array[np.arange(shape[0])[:, None], rows]
    return taken
