"""Features that data say nothing about: all who are compared have the same."""

from __future__ import annotations

import numpy as np

from drosurv.target import BoolArray, FloatArray, IntArray

# A feature that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-14
# So many patients show of nearly every feature that it varies.
_LOOK = 1000


def silent_features(X: FloatArray, compared: IntArray | None = None) -> BoolArray:
    """Which features (d,) are constant in every set of patients who are compared.

    Such as the feature that strata were made of, or one that differs only in patients who left before the first event.
    A loss does not change with their coefficients: its derivatives in these are nothing but rounding. `compared` (n,)
    is the set of each patient, negative for who is compared with nobody; one set of all if not given.
    """
    sets = np.zeros(len(X), np.intp) if compared is None else compared
    rows = np.flatnonzero(sets >= 0)
    silent = np.ones(X.shape[1], dtype=np.bool_)
    for some in (rows[:: max(1, len(rows) // _LOOK)], rows):
        if len(some) and silent.any():
            silent[silent] = _constant(X[np.ix_(some, np.flatnonzero(silent))], sets[some])
    return silent


def _constant(X: FloatArray, sets: IntArray) -> BoolArray:
    order = np.argsort(sets, kind="stable")
    begins = np.flatnonzero(np.diff(sets[order], prepend=-1))
    lowest, highest = (end.reduceat(X[order], begins, axis=0) for end in (np.minimum, np.maximum))
    same = highest - lowest <= _CONSTANT * np.maximum(-lowest, highest)
    constant: BoolArray = np.logical_and.reduce(same, axis=0)
    return constant
