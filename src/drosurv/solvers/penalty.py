"""Base class of fairness penalties: functions of the scores of a batch of models, with gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from drosurv.patients.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor


# Penalties by the name that users pass; a subclass is registered when it is defined.
PENALTIES: dict[str, type[Penalty]] = {}


class Penalty(ABC):
    """A disparity of the hazards h = exp(scores), prepared for n patients.

    A subclass gives its name, ``class MyPenalty(Penalty, name="my_penalty")``, under which
    :class:`drosurv.RegularizedCox` and the command line find it.

    Parameters are the standardised features (n, d), the target, and group codes (n,) from 0 to ``n_groups - 1``, which
    may be None if ``needs_groups`` is False. `scale` is the hazard difference that penalties over pairs allow per unit
    of feature distance.

    The last axis of scores is patients, leading axes are models. The gradients of the absolute value and of the
    positive part at 0 are taken as 0; if several groups attain a maximum, the gradient is that of the first.
    """

    needs_groups: ClassVar[bool]

    def __init_subclass__(cls, name: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name is not None:
            PENALTIES[name] = cls

    def __init__(
        self,
        X: FloatArray,
        target: Target,
        codes: NDArray[np.int64] | None,
        n_groups: int,
        scale: float = 0.01,
    ) -> None:
        self.X, self.target, self.n, self.n_groups, self.scale = X, target, len(X), n_groups, float(scale)
        self.codes = np.asarray(codes) if self.needs_groups else np.zeros(self.n, dtype=np.int64)

    @abstractmethod
    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values (B,) and gradients in h (B, n) at hazards h (B, n)."""

    @abstractmethod
    def torch(self, scores: Tensor) -> Tensor:
        """Return differentiable values ``(*batch,)`` at scores ``(*batch, n)``, on their device and in their dtype."""

    def subset(self, rows: NDArray[Any]) -> Self:
        """Return the penalty for a subset of the patients (indices or a mask), such as a mini-batch."""
        return type(self)(self.X[rows], self.target.take(rows), self.codes[rows], self.n_groups, self.scale)

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values ``(*batch,)`` and gradients ``(*batch, n)`` at scores ``(*batch, n)``.

        For scores above 709, exp overflows and the value is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            h = np.exp(scores.reshape(-1, self.n))
            values, gradient = self.value_and_gradient(h)
            gradient *= h
        return values.reshape(scores.shape[:-1]), gradient.reshape(scores.shape)
