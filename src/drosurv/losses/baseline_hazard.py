"""The baseline hazard that goes with a partial likelihood: Breslow's and Efron's, within strata, with entry times."""

from __future__ import annotations

import numpy as np

from drosurv.losses.risk_windows import RiskWindows, Slots
from drosurv.target import FloatArray, Target


def log_hazard_jumps(
    target: Target, scores: FloatArray, weight: FloatArray | None = None, ties: str = "breslow"
) -> tuple[Slots, FloatArray]:
    """Log of the jumps (K,) of the cumulative baseline hazard at the slots, the event times of each stratum.

    .. math:: dH_k = sum_{l=0}^{m-1} wbar / (S_k - l/m D_k)

    with the risk S_k of all at risk, the risk D_k and the mean weight wbar of the m events; Breslow's form leaves out
    D_k. Everything stays in logs, so that scores of any size have a baseline.

    Parameters
    ----------
    target : Target
    scores : (n,) float64
        Log risks.
    weight : (n,) float64 or None
    ties : {"breslow", "efron"}
    """
    slots = Slots.of(target)
    log_risk = RiskWindows(slots, weight).log_sums(scores[None, :])[0]
    own = np.ones(len(slots.rows)) if weight is None else weight[slots.rows]
    count, total = np.bincount(slots.block), np.bincount(slots.block, own)
    if ties == "breslow":
        return slots, np.log(total) - log_risk
    part = np.bincount(slots.block, own * np.exp(scores[slots.rows] - log_risk[slots.block]))
    place = np.arange(len(slots.block)) - np.repeat(np.cumsum(count) - count, count)
    left = 1.0 - (place / count[slots.block]) * part[slots.block]
    terms = np.bincount(slots.block, 1.0 / left)
    return slots, np.log(total / count * terms) - log_risk
