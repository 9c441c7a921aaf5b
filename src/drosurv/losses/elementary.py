"""Exponentials and logarithms of whole arrays, in forms that compilers turn into vector instructions."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.target import FloatArray

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Below this exp is no normal number.
_UNDERFLOW = -708.0
_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def exponentials(x: FloatArray, scratch: NDArray[np.int64]) -> None:
    """Replace x <= 0 by exp(x), in a form that compilers turn into vector instructions.

    With k = round(x / ln 2) and r = x - k ln 2, exp(x) = 2^k exp(r); the exponent field of a float is 2^k and
    a polynomial of degree 12 gives exp(r) to the last bit for |r| <= ln(2)/2.
    """
    for i in range(x.shape[0]):
        v = x[i] if x[i] > _UNDERFLOW else _UNDERFLOW
        k = np.floor(v * _LOG2E + 0.5)
        r = (v - k * _LN2_HIGH) - k * _LN2_LOW
        # The Taylor terms in pairs (Estrin's scheme), so that the multiplications do not wait for each other.
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
        middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
        high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
        x[i] = low + r4 * (middle + r4 * (high + r4 * (1.0 / 479001600.0)))
        scratch[i] = (np.int64(k) + 1023) << 52
    powers = scratch.view(np.float64)
    for i in range(x.shape[0]):
        x[i] *= powers[i]


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def logarithms(x: FloatArray, level: FloatArray, out: FloatArray) -> None:
    """Write log(x) + level for x >= 0, in a form that compilers turn into vector instructions.

    With x = 2^e m, m between sqrt(1/2) and sqrt(2), and s = (m - 1)/(m + 1): log m = 2 (s + s^3/3 + s^5/5 + ...).
    """
    bits = x.view(np.int64)
    mantissa_bits = np.empty(x.shape[0], np.int64)
    exponent = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        e = (bits[i] - _SQRT_HALF) >> 52
        mantissa_bits[i] = bits[i] - (e << 52)
        exponent[i] = e
    mantissa = mantissa_bits.view(np.float64)
    for i in range(x.shape[0]):
        s = (mantissa[i] - 1.0) / (mantissa[i] + 1.0)
        z = s * s
        p = 1.0 / 21.0
        p = p * z + 1.0 / 19.0
        p = p * z + 1.0 / 17.0
        p = p * z + 1.0 / 15.0
        p = p * z + 1.0 / 13.0
        p = p * z + 1.0 / 11.0
        p = p * z + 1.0 / 9.0
        p = p * z + 1.0 / 7.0
        p = p * z + 1.0 / 5.0
        p = p * z + 1.0 / 3.0
        log_mantissa = 2.0 * s + (2.0 * s) * z * p
        value = (exponent[i] * _LN2_HIGH + level[i]) + (exponent[i] * _LN2_LOW + log_mantissa)
        out[i] = value if x[i] > 0.0 else -np.inf
