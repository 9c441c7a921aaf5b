"""The checked training data of one fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drosurv.target import FloatArray, IntArray, Target


@dataclass(frozen=True, eq=False)
class Training:
    """The checked training data of one fit.

    Attributes
    ----------
    X : (n, d) float64
    target : Target
    mass : (n,) float64
        Shares of the patients, summing to one.
    weight : (n,) float64 or None
        Their weights inside risk sets; None when all are one.
    kept : (n,) int
        Rows of the caller's data these are: patients of weight zero are left out.
    n_rows : int
        Rows the caller gave.
    codes : (n,) int or None
        Group of each patient, for estimators that are given groups.
    n_groups : int
        Number of groups.
    seed : int
        Of everything random in this fit, drawn once: a split or a start asked for twice is the same.
    """

    X: FloatArray
    target: Target
    mass: FloatArray
    weight: FloatArray | None
    kept: IntArray
    n_rows: int
    codes: IntArray | None = None
    n_groups: int = 0
    seed: int = 0

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of the kept patients put back among all rows, zero elsewhere."""
        out = np.zeros(self.n_rows)
        out[self.kept] = values
        return out
