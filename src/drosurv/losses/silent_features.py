"""Features that data say nothing about: all who are compared have the same."""

from __future__ import annotations

import numba
import numpy as np

from drosurv.target import BoolArray, FloatArray, IntArray

# A feature that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-14


def silent_features(X: FloatArray, compared: IntArray | None = None) -> BoolArray:
    """Which features (d,) are constant in every set of patients who are compared.

    Such as the feature that strata were made of, or one that differs only in patients who left before the first event.
    A loss does not change with their coefficients: its derivatives in these are nothing but rounding. `compared` (n,)
    is the set of each patient, negative for who is compared with nobody; one set of all if not given.
    """
    sets = np.zeros(len(X), np.intp) if compared is None else compared
    silent = np.ones(X.shape[1], dtype=np.bool_)
    _listen(X, sets, np.empty(sets.max(initial=-1) + 1), silent)
    return silent


@numba.njit(cache=True, nogil=True)
def _listen(X: FloatArray, sets: IntArray, first: FloatArray, silent: BoolArray) -> None:
    """Tell which features differ from the first patient of a set; of most features, the first few patients do."""
    for j in range(X.shape[1]):
        first[:] = np.nan
        for i in range(X.shape[0]):
            if sets[i] < 0:
                continue
            value, before = X[i, j], first[sets[i]]
            if np.isnan(before):
                first[sets[i]] = value
            elif abs(value - before) > _CONSTANT * max(abs(value), abs(before)):
                silent[j] = False
                break
