"""What is known of each patient at one time, and how much it counts for those of whom nothing is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from drosurv.errors import Argument, ArgumentError, as_number, require
from drosurv.metrics.follow_up import FollowUp
from drosurv.target import FloatArray, Target

Censoring = Literal["ipcw", "worst_case"]


@dataclass(frozen=True, eq=False)
class HorizonOutcomes:
    """Status of n patients at the horizon t, weighted so that censoring does not distort it.

    The Brier loss of predicted survival S_i at t is then w_i (z_i - S_i)^2: `alive` (n,) holds z_i, 1 if free of the
    event at t, and `weight` (n,) w_i >= 0, at most `bound`, so that losses lie in [0, bound].
    """

    alive: FloatArray
    weight: FloatArray
    bound: float

    def losses(self, survival: FloatArray) -> FloatArray:
        """Brier losses (n,) of predicted survival (n,)."""
        return self.weight * (self.alive - survival) ** 2


def outcomes_at(
    horizon: float, target: Target, follow_up: FollowUp, censoring: Censoring, survival: FloatArray
) -> HorizonOutcomes:
    r"""Who is alive at the horizon t, and with what weight.

    "ipcw": patients censored before t have weight 0, the others the inverse of their probability of being under
    observation,

    .. math:: w_i = \frac{1[Y_i \le t, d_i = 1]}{G(Y_i)} + \frac{1[Y_i > t]}{G(t)} \le \frac{1}{G(t)}

    with G from the training set, whose follow-up is given. "worst_case": everyone has weight 1, and patients censored
    before t take whichever status makes the loss of their predicted survival (n,) larger.
    """
    require(censoring in get_args(Censoring), "censoring", 'be "ipcw" or "worst_case"', censoring)
    if not 0 < as_number(horizon) < target.time.max():
        raise ArgumentError(
            f"{Argument('horizon', horizon)} lies outside the follow-up of y: it must be positive and below "
            f"{target.time.max():g}, the longest time."
        )
    alive = (target.time > horizon).astype(np.float64)
    if censoring == "worst_case":
        unknown = (target.time <= horizon) & ~target.event
        return HorizonOutcomes(np.where(unknown, survival < 0.5, alive), np.ones(len(target)), 1.0)
    observed = float(follow_up.censoring_at(np.array([horizon]))[0])
    if horizon > follow_up.times[-1] or observed <= 0:
        raise ArgumentError(
            f"{Argument('horizon', horizon)} lies beyond the follow-up of the training set ({follow_up.end:g}), where "
            'nobody knows how many were censored; choose an earlier one, or censoring="worst_case".'
        )
    weight = np.where(alive == 1, 1 / observed, follow_up.inverse_probability(target))
    return HorizonOutcomes(alive, weight, 1 / observed)
