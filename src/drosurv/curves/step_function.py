"""The curve of one patient, as a model returns it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drosurv.errors import ArgumentError
from drosurv.patients.target import FloatArray


class StepFunction:
    """A right-continuous step function on [0, infinity), constant after its last step.

    It has the attributes of scikit-survival's class of the same name, so that each library's metrics take the other's
    curves. The value at t is ``a * y[k] + b`` for the last ``x[k] <= t``, and ``a * y[0] + b`` before ``x[0]``.

    Parameters
    ----------
    x : (K,) array
        Times of the steps, increasing.
    y : (K,) array
        Values from each time on.
    a, b : float
        Factor and constant of the values.

    Attributes
    ----------
    domain : tuple of float
        ``(0.0, inf)``.

    Examples
    --------
    >>> from drosurv.curves import StepFunction
    >>> survival = StepFunction([1.0, 2.0], [0.9, 0.5])
    >>> survival(1.5), survival([2.0, 9.0]).tolist()
    (0.9, [0.5, 0.5])
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, a: float = 1.0, b: float = 0.0) -> None:
        self.x: FloatArray = np.asarray(x, dtype=np.float64)
        self.y: FloatArray = np.asarray(y, dtype=np.float64)
        if self.x.shape != self.y.shape or self.x.ndim != 1 or not len(self.x):
            raise ArgumentError(
                "y", f"y must have one value per x, got shapes {self.y.shape} and {self.x.shape}."
            )
        self.a, self.b = float(a), float(b)
        self.domain = (0.0, np.inf)

    def __call__(self, x: ArrayLike) -> Any:
        """Return the value at one time, or an array of values at many.

        Parameters
        ----------
        x : float or array
            Times, finite and not negative.
        """
        times = np.asarray(x, dtype=np.float64)
        if not np.isfinite(times).all() or (times < 0).any():
            raise ArgumentError.must("times", "be finite and not negative", x)
        step = np.searchsorted(self.x, np.maximum(times, self.x[0]), side="right") - 1
        value = self.a * self.y[step] + self.b
        return float(value) if times.ndim == 0 else value

    def __repr__(self) -> str:
        """Return the call of the constructor."""
        return f"StepFunction(x={self.x!r}, y={self.y!r}, a={self.a!r}, b={self.b!r})"


def step_functions(times: FloatArray, values: FloatArray) -> NDArray[Any]:
    """Return one step function per row of values (n, K) at the times (K,)."""
    out = np.empty(len(values), dtype=object)
    out[:] = [StepFunction(times, row) for row in values]
    return out
