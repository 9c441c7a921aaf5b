"""No neighbours: everybody stands alone."""

from __future__ import annotations

from drosurv.target import FloatArray, IntArray


class Alone:
    """The average of a patient alone is the patient's own loss: every patient keeps an entry of their own."""

    def average(self, values: FloatArray) -> FloatArray:
        """The values themselves."""
        return values

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """The weights themselves."""
        return weights

    def take(self, rows: IntArray) -> Alone:
        """The same among fewer patients."""
        return self
