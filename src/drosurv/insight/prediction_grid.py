"""Survival probabilities that somebody else predicted, at common times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.target import FloatArray

# A model that is certain of death is followed until its cumulative hazard reaches this, and no further.
LARGEST_HAZARD = 23.0
SMALLEST_HAZARD = 1e-10
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class PredictionGrid:
    """Cumulative hazards of n patients, straight lines between common times.

    Parameters
    ----------
    times : (m,) float64
        Increasing, from 0.
    hazard : (n, m) float64
        Not falling, 0 at time 0.
    """

    times: FloatArray
    hazard: FloatArray

    @staticmethod
    def parse(pair: tuple[Any, ...], n: int) -> PredictionGrid:
        """From a pair (times, survival) for n patients."""
        if len(pair) != 2:
            raise ValueError(f"predictions must be a pair (times, survival), got {len(pair)} items.")
        times = np.asarray(pair[0], dtype=np.float64)
        survival = np.asarray(pair[1], dtype=np.float64)
        if times.ndim != 1 or survival.shape != (n, len(times)) or len(times) == 0:
            raise ValueError(
                f"predictions must be times (m,) and survival ({n}, m), one row per patient; got shapes "
                f"{times.shape} and {survival.shape}."
            )
        if not np.isfinite(times).all() or times[0] < 0 or not (np.diff(times) > 0).all():
            raise ValueError(
                f"times of predictions must be finite, not negative and increasing, got {times}."
            )
        wrong = ~((survival >= -_ROUNDING) & (survival <= 1 + _ROUNDING))
        if wrong.any():
            row, column = (int(place) for place in np.argwhere(wrong)[0])
            raise ValueError(
                f"predictions must be survival probabilities between 0 and 1, got {survival[row, column]:g} for "
                f"row {row} at time {times[column]:g}; a cumulative hazard H is the probability exp(-H)."
            )
        rising = np.diff(survival, axis=1) > _ROUNDING
        if rising.any():
            row, column = (int(place) for place in np.argwhere(rising)[0])
            raise ValueError(
                f"survival cannot rise with time, but that of row {row} does after time {times[column]:g}, from "
                f"{survival[row, column]:g} to {survival[row, column + 1]:g}; check the order of the columns."
            )
        hazard = -np.log(np.clip(survival, np.exp(-LARGEST_HAZARD), 1.0))
        hazard = np.maximum.accumulate(hazard, axis=1)
        if times[0] > 0:
            times, hazard = np.concatenate([[0.0], times]), np.column_stack([np.zeros(n), hazard])
        return PredictionGrid(times, hazard)

    def at_own(self, times: FloatArray) -> FloatArray:
        """Cumulative hazards (n,) at a time of each patient's own; beyond the last time, that of the last."""
        last = len(self.times) - 1
        before = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, last)
        after = np.minimum(before + 1, last)
        rows, width = np.arange(len(times)), self.times[after] - self.times[before]
        share = np.where(width > 0, (times - self.times[before]) / np.where(width > 0, width, 1.0), 0.0)
        own: FloatArray = (1 - share) * self.hazard[rows, before] + share * self.hazard[rows, after]
        return own

    def log_risk(self, times: FloatArray) -> FloatArray:
        """Log of each patient's mean cumulative hazard at common times, (n,)."""
        at_times = [self.at_own(np.full(len(self.hazard), time)) for time in times]
        risk: FloatArray = np.log(np.maximum(np.mean(at_times, axis=0), SMALLEST_HAZARD))
        return risk
