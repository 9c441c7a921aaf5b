"""Breslow's baseline hazard and the survival curves it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sksurv.functions import StepFunction

from drosurv.losses.risk_sets import RiskSets, distinct
from drosurv.metrics import FollowUp
from drosurv.target import FloatArray, Target


class HeldStepFunction(StepFunction):
    """A step function on [0, infinity) that holds its last value after its last point."""

    def __init__(self, x: FloatArray, y: FloatArray) -> None:
        super().__init__(x, y, domain=(0, np.inf))

    def __call__(self, x: ArrayLike) -> Any:
        """Value at one time or at many."""
        times = np.asarray(x, dtype=np.float64)
        if not np.isfinite(times).all() or (times < 0).any():
            raise ValueError(f"times must be finite and not negative, got {x!r}.")
        held = np.searchsorted(self.x, np.maximum(times, self.x[0]), side="right") - 1
        value = self.y[held]
        return float(value) if times.ndim == 0 else value


@dataclass(frozen=True, eq=False)
class Baseline:
    """Cumulative baseline hazard on a grid of times, in logs.

    Attributes
    ----------
    times : (K,) float64
        Zero (unless someone had the event then), and each time of an event.
    log_cumulative : (K,) float64
        Log of the cumulative baseline hazard; minus infinity where it is still zero.
    """

    times: FloatArray
    log_cumulative: FloatArray

    @staticmethod
    def breslow(target: Target, scores: FloatArray, weight: FloatArray | None = None) -> Baseline:
        """Breslow's estimate: at each event time, events over the summed risks of those at risk.

        Everything stays in logs, so that scores of any size give a baseline.
        """
        died = target.order[target.event[target.order]]
        at, block = distinct(target.time[died])
        counts = np.bincount(block, None if weight is None else weight[died])
        log_risk = RiskSets(target.time, at, weight, target.order).log_sums(np.atleast_2d(scores))[0]
        log_cumulative = np.logaddexp.accumulate(np.log(counts) - log_risk)
        if at[0] > 0:
            at = np.concatenate([[0.0], at])
            log_cumulative = np.concatenate([[-np.inf], log_cumulative])
        return Baseline(at, log_cumulative)

    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Cumulative hazards (n, T) of patients with the given scores, at the given or its own times."""
        log_base = self.log_cumulative
        if times is not None:
            wanted = np.asarray(times, dtype=np.float64)
            if wanted.ndim != 1 or not np.isfinite(wanted).all() or (wanted < 0).any():
                raise ValueError(f"times must be a list of finite times >= 0, got {times!r}.")
            place = np.searchsorted(self.times, wanted, side="right") - 1
            log_base = np.where(place >= 0, self.log_cumulative[np.maximum(place, 0)], -np.inf)
        with np.errstate(over="ignore"):
            hazard: FloatArray = np.exp(log_base[None, :] + np.asarray(scores)[:, None])
        return hazard

    def curves(self, values: FloatArray) -> NDArray[Any]:
        """One step function per row of values (n, K) on this baseline's times."""
        out = np.empty(len(values), dtype=object)
        for i, row in enumerate(values):
            out[i] = HeldStepFunction(self.times, row)
        return out


def follow_up(target: Target, weight: FloatArray | None = None) -> FollowUp:
    """What evaluation needs of the training target: Kaplan-Meier curves of events and of censoring."""
    return FollowUp.of(target, weight)
