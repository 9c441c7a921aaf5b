"""A loss given as a torch function and differentiated by torch: the shortest way to add a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from drosurv.errors import InputError, require_extra
from drosurv.losses.loss import NOTHING, InTorch, OnePerPatient, one_by_one
from drosurv.patients.target import FloatArray, Target

if TYPE_CHECKING:
    from torch import Tensor

Function = Callable[..., "Tensor"]
# With smaller second derivatives per unit of weight, the Newton steps of trees would be too large.
_SMALLEST_CURVATURE = 0.1


class TorchLoss(OnePerPatient):
    """A loss given as a function of torch tensors, prepared for one target.

    It can be combined with any objective and network, and is minimised by Adam. The convex solver needs second
    derivatives: write a :class:`drosurv.losses.ConvexLoss` to use it.

    Parameters
    ----------
    function : callable
        ``function(scores, event, time)``, or ``function(scores, event, time, extra)`` with extra parameters. It takes
        scores (B, n), event (n,) bool, time (n,) and extra (B, K), and returns one differentiable loss per patient
        (B, n).
    target : Target
        Events and times of n patients.
    start : (K,) array
        Start of the extra parameters; none by default.
    shift : (K,) array, optional
        See :class:`drosurv.losses.Loss`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.losses import TorchLoss
    >>> from drosurv.patients.target import Target
    >>> def exponential(scores, event, time):
    ...     return scores.exp() * time - event * scores
    >>> loss = TorchLoss(exponential, Target(np.array([True, False]), np.array([2.0, 3.0])))
    >>> loss(np.zeros((1, 2)))
    array([[2., 3.]])
    >>> loss.pullback(np.ones((1, 2)))[0]
    array([[1., 3.]])
    """

    # The function may copy numbers from the device.
    recordable = False

    def __init__(
        self, function: Function, target: Target, start: FloatArray = NOTHING, shift: FloatArray | None = None
    ) -> None:
        require_extra("torch", "deep")
        super().__init__(target)
        self.function, self.start, self.shift = function, np.asarray(start, dtype=np.float64), shift
        self._leaves: list[Any] = []
        self._losses: Any = None

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, n) at scores (B, n) and extra parameters (B, K)."""
        import torch

        extra = np.broadcast_to(extra, (len(scores), self.n_extra))
        self._leaves = [torch.tensor(part, requires_grad=True) for part in (scores, extra)]
        self._losses = self._of(self._leaves[0], self._leaves[1], "cpu")
        losses: FloatArray = self._losses.detach().numpy().astype(np.float64)
        return losses

    def _of(self, scores: Tensor, extra: Tensor, device: str) -> Tensor:
        """Return the losses (B, n) in torch."""
        import torch

        event = torch.as_tensor(self.target.event, device=device)
        time = torch.as_tensor(self.target.time, dtype=scores.dtype, device=device)
        given = (scores, event, time, extra) if self.n_extra else (scores, event, time)
        losses = self.function(*given)
        if losses.shape != (len(scores), self.n):
            raise InputError(
                f"the loss must return one number per patient, shape {(len(scores), self.n)}; it returned "
                f"{tuple(losses.shape)}."
            )
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients by autograd: in the scores (B, n) and in extra (B, K)."""
        import torch

        found = torch.autograd.grad(
            self._weighted(weights), self._leaves, retain_graph=True, allow_unused=True
        )
        pairs = zip(self._leaves, found, strict=True)
        by_score, by_extra = (
            np.zeros(leaf.shape) if gradient is None else gradient.numpy() for leaf, gradient in pairs
        )
        return by_score, by_extra

    def _weighted(self, weights: FloatArray) -> Tensor:
        """Return the weighted sum of the losses; for gradients of more than one number torch imports its compiler."""
        import torch

        assert self._losses is not None, "losses come before their gradients"
        return (self._losses * torch.tensor(weights)).sum()

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) by autograd; where these are small or negative, return the weights."""
        import torch

        scores = self._leaves[0]
        (slope,) = torch.autograd.grad(self._weighted(weights), scores, create_graph=True)
        if not slope.requires_grad:
            return weights
        (second,) = torch.autograd.grad(slope.sum(), scores, retain_graph=True)
        found: FloatArray = second.numpy()
        return np.where(found > _SMALLEST_CURVATURE * weights, found, weights)

    @classmethod
    def stacked(cls, losses: Sequence[Self], device: str) -> InTorch | None:
        """Return the function, applied to each training set."""
        return one_by_one([partial(loss._of, device=device) for loss in losses])
