"""The linear network: scores theta . x, without bias, in NumPy and on tensors of any device."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numba
import numpy as np

from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor

# Patients worked through at a time, so that their numbers stay in a near cache: while one feature after the other
# comes by, and while rows become columns.
_CHUNK = 16384
_TURNED = 128


class Linear:
    """A batch of linear models on fixed features (n, d); a solver updates the coefficients theta (B, d) in place."""

    recordable = False

    def __init__(self, X: FloatArray, theta: FloatArray) -> None:
        # One row per feature: sums over patients then run along memory.
        self.columns: FloatArray = np.empty(X.shape[::-1])
        for low in range(0, len(X), _TURNED):
            self.columns[:, low : low + _TURNED] = X[low : low + _TURNED].T
        self.parameters: list[FloatArray] = [theta]

    def scores(self) -> FloatArray:
        """Scores (B, n) at the current coefficients."""
        theta = self.parameters[0]
        if len(theta) > 1:
            return theta @ self.columns
        out = np.empty((1, self.columns.shape[1]))
        combine(self.columns, theta[0], out[0])
        return out

    def pullback(self, gradient: FloatArray) -> list[FloatArray]:
        """Gradient in the coefficients (B, d), given the gradient in the scores (B, n)."""
        if len(gradient) > 1:
            return [gradient @ self.columns.T]
        out = np.empty((1, self.columns.shape[0]))
        project(self.columns, gradient[0], out[0])
        return [out]

    # As they are outside of training.
    evaluated = scores

    def take(self, rows: IntArray) -> Linear:
        """The same models on fewer patients, sharing the coefficients."""
        return Linear(self.columns[:, rows].T, self.parameters[0])


class DeviceLinear:
    """B linear models on each of R training sets of features (n, d), one batch of R * B models.

    The coefficients, one float32 tensor (R * B, d), start at theta and are updated in place by a solver.
    """

    def __init__(self, X: Sequence[FloatArray], theta: FloatArray, device: str) -> None:
        import torch

        # One row per feature: sums over patients then run along memory.
        self.columns = torch.stack(
            [torch.tensor(part, dtype=torch.float32, device=device).T.contiguous() for part in X]
        )
        self.parameters: list[Tensor] = [torch.tensor(theta, dtype=torch.float32, device=device)]

    @property
    def recordable(self) -> bool:
        """Whether scores are work on an accelerator, which never waits for it."""
        return self.columns.is_cuda

    def scores(self) -> Tensor:
        """Scores (R * B, n) at the current coefficients."""
        sets, d, _ = self.columns.shape
        return (self.parameters[0].view(sets, -1, d) @ self.columns).flatten(0, 1)

    def pullback(self, gradient: Tensor) -> list[Tensor]:
        """Gradient in the coefficients (R * B, d), given the gradient in the scores (R * B, n)."""
        if len(gradient) == 1:
            # One long vector: this product is spread over the device, the general one is not.
            return [(self.columns[0] @ gradient[0])[None]]
        sets, _, n = self.columns.shape
        return [(gradient.view(sets, -1, n) @ self.columns.mT).flatten(0, 1)]

    # As they are outside of training.
    evaluated = scores

    def take(self, rows: IntArray) -> DeviceLinear:
        """The same models on fewer patients, sharing the coefficients."""
        part = copy.copy(self)
        part.columns = self.columns[..., rows]
        return part

    def trained(self) -> list[FloatArray]:
        """Coefficients (d,) of each model."""
        return list(self.parameters[0].double().cpu().numpy())


# For one model these plain loops, two features at a time, beat a general matrix-vector product.
@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def combine(columns: FloatArray, theta: FloatArray, out: FloatArray) -> None:
    """Scores (n,) of coefficients (d,): columns' theta."""
    d, n = columns.shape
    odd = d % 2
    for low in range(0, n, _CHUNK):
        high = min(low + _CHUNK, n)
        part, first, one = out[low:high], columns[0, low:high], theta[0] if odd else 0.0
        for i in range(part.shape[0]):
            part[i] = one * first[i]
        for j in range(odd, d, 2):
            first, second, one, two = columns[j, low:high], columns[j + 1, low:high], theta[j], theta[j + 1]
            for i in range(part.shape[0]):
                part[i] += one * first[i] + two * second[i]


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def project(columns: FloatArray, gradient: FloatArray, out: FloatArray) -> None:
    """Gradient (d,) in the coefficients, given that in the scores (n,)."""
    d, n = columns.shape
    out[:] = 0.0
    for low in range(0, n, _CHUNK):
        high = min(low + _CHUNK, n)
        part = gradient[low:high]
        for j in range(0, d - 1, 2):
            first, second, one, two = columns[j, low:high], columns[j + 1, low:high], 0.0, 0.0
            for i in range(part.shape[0]):
                one += first[i] * part[i]
                two += second[i] * part[i]
            out[j] += one
            out[j + 1] += two
        if d % 2:
            last, one = columns[d - 1, low:high], 0.0
            for i in range(part.shape[0]):
                one += last[i] * part[i]
            out[d - 1] += one
