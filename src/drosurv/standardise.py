"""Features on one scale, so that distances and penalties do not depend on their units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float64]


def standardise(X_train: Features, *others: Features, weight: Features | None = None) -> tuple[Features, ...]:
    """Features scaled to mean 0 and deviation 1 by the training patients; a constant feature becomes 0.

    The training patients (..., m, d), who may have weights (m,), come first in what is returned, then the others
    (..., n, d), scaled alike.
    """
    centre = np.average(X_train, axis=-2, weights=weight, keepdims=True)
    spread = np.sqrt(np.average((X_train - centre) ** 2, axis=-2, weights=weight, keepdims=True))
    # A column that only rounding keeps from being constant would be blown up to noise.
    constant = spread <= 1e-12 * np.maximum(np.abs(centre), 1.0)
    spread = np.where(constant, 1.0, spread)
    return tuple(np.where(constant, 0.0, (X - centre) / spread) for X in (X_train, *others))
