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
        _write_spline(np.require(x, requirements=["C", "W"]), knots, out)
    return out


@numba.njit(cache=True, nogil=True)
def _write_spline(x: FloatArray, knots: FloatArray, out: FloatArray) -> None:
    before, last = knots[-2], knots[-1]
    # In units of the knots' range: cubes of large numbers would lose digits.
    size = last - knots[0]
    for j in range(out.shape[0] - 1):
        first = knots[j]
        by_before, by_last = (last - first) / (last - before), (before - first) / (last - before)
        for i in range(x.shape[0]):
            a = max((x[i] - first) / size, 0.0)
            b = max((x[i] - before) / size, 0.0)
            c = max((x[i] - last) / size, 0.0)
            out[j + 1, i] = size * (a * a * a - by_before * (b * b * b) + by_last * (c * c * c))
