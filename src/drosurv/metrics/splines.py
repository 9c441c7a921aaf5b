"""Restricted cubic splines of one column."""

from __future__ import annotations

import numba
import numpy as np

from drosurv.patients.target import FloatArray


def spline_columns(x: FloatArray, knots: FloatArray) -> FloatArray:
    r"""Design columns of a restricted cubic spline of a column (n,) with k knots, as rows (k - 1, n).

    The first is the column itself, the others are its nonlinear parts, which are linear beyond the outer knots:

    .. math:: h_j(x) = \frac{(x - t_j)_+^3 - (x - t_{k-1})_+^3 \frac{t_k - t_j}{t_k - t_{k-1}}
              + (x - t_k)_+^3 \frac{t_{k-1} - t_j}{t_k - t_{k-1}}}{(t_k - t_1)^2}

    These are the columns of R's ``rms::rcs``. Without knots there is only the column itself.
    """
    out = np.empty((1 + max(len(knots) - 2, 0), len(x)))
    out[0] = x
    if len(out) > 1:
        # numba would compile the loop again for arrays stored otherwise.
        write_spline(np.require(x, requirements=["C", "W"]), knots, out)
    return out


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def write_spline(x: FloatArray, knots: FloatArray, out: FloatArray) -> None:
    """Write the nonlinear columns at x (n,) to the first n numbers of the rows of `out` (k - 1, N) but the first."""
    before, last = knots[-2], knots[-1]
    # In units of the knots' range: cubes of large numbers would lose digits.
    size = last - knots[0]
    per_size = 1.0 / size
    for j in range(out.shape[0] - 1):
        first, column = knots[j], out[j + 1]
        by_before, by_last = (last - first) / (last - before), (before - first) / (last - before)
        # In a form that the compiler can vectorise.
        for i in range(x.shape[0]):
            a, b, c = (x[i] - first) * per_size, (x[i] - before) * per_size, (x[i] - last) * per_size
            a = a if a > 0.0 else 0.0
            b = b if b > 0.0 else 0.0
            c = c if c > 0.0 else 0.0
            column[i] = size * (a * a * a - by_before * (b * b * b) + by_last * (c * c * c))
