"""A loss written in torch and differentiated by torch: the short way to a loss of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from drosurv.losses.loss import NOTHING, Loss
from drosurv.target import FloatArray, IntArray, Target

if TYPE_CHECKING:
    from torch import Tensor

Function = Callable[..., "Tensor"]


class TorchLoss(Loss):
    """A function of torch tensors as a prepared loss.

    Any objective, neighbourhoods and network can be trained on it, by Adam. The convex solver wants second derivatives:
    write a :class:`drosurv.losses.Loss` for that.

    Parameters
    ----------
    function : callable
        ``function(scores, event, time)``, or ``function(scores, event, time, extra)`` with extra parameters: scores
        (B, n), event (n,) bool, time (n,) and extra (B, K) to one loss per patient (B, n), differentiable.
    target : Target
        n patients.
    start : (K,) array
        Where the extra parameters start; none by default.
    shift : (K,) array, optional
        See :class:`drosurv.losses.Loss`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.losses import TorchLoss
    >>> from drosurv.target import Target
    >>> def exponential(scores, event, time):
    ...     return scores.exp() * time - event * scores
    >>> loss = TorchLoss(exponential, Target(np.array([True, False]), np.array([2.0, 3.0])))
    >>> loss(np.zeros((1, 2)))
    array([[2., 3.]])
    >>> loss.pullback(np.ones((1, 2)))[0]
    array([[1., 3.]])
    """

    def __init__(
        self,
        function: Function,
        target: Target,
        start: FloatArray = NOTHING,
        shift: FloatArray | None = None,
    ) -> None:
        self.function, self.target = function, target
        self.start = np.asarray(start, dtype=np.float64)
        self.shift = shift
        self.n, self.rows = len(target), np.arange(len(target))
        self._leaves: list[Any] = []
        self._losses: Any = None

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        return float(self.target.event.mean())

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (B, n) at scores (B, n) and extra parameters (B, K)."""
        import torch

        extra = np.broadcast_to(extra, (len(scores), self.n_extra))
        self._leaves = [torch.tensor(part, requires_grad=True) for part in (scores, extra)]
        at, rates = self._leaves
        self._losses = self._of(at, rates, "cpu")
        losses: FloatArray = self._losses.detach().numpy().astype(np.float64)
        return losses

    def _of(self, scores: Tensor, extra: Tensor, device: str) -> Tensor:
        import torch

        event = torch.as_tensor(self.target.event, device=device)
        time = torch.as_tensor(self.target.time, dtype=scores.dtype, device=device)
        given = (scores, event, time, extra) if self.n_extra else (scores, event, time)
        losses = self.function(*given)
        if losses.shape != (len(scores), self.n):
            raise ValueError(
                f"the loss must give one number per patient, shape {(len(scores), self.n)}; it gave "
                f"{tuple(losses.shape)}."
            )
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradients by autograd, by score (B, n) and by extra (B, K)."""
        import torch

        found = torch.autograd.grad(
            self._losses, self._leaves, torch.tensor(weights), retain_graph=True, allow_unused=True
        )
        pairs = zip(self._leaves, found, strict=True)
        by_score, by_extra = (
            np.zeros(leaf.shape) if gradient is None else gradient.numpy() for leaf, gradient in pairs
        )
        return by_score, by_extra

    def take(self, rows: IntArray) -> Self:
        """The same loss among fewer patients."""
        return type(self)(self.function, self.target.take(rows), self.start, self.shift)

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> Callable[[Tensor, Tensor], Tensor]:
        """The function itself, one training set after the other."""
        import torch

        return lambda scores, extra: torch.stack(
            [loss._of(s, e, device) for loss, s, e in zip(losses, scores, extra, strict=True)]
        )
