"""The baseline hazard that goes with a partial likelihood: Breslow's and Efron's, within strata, with entry times."""

from __future__ import annotations

import numpy as np

from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.tie_blocks import tie_shares
from drosurv.target import FloatArray


def log_hazard_jumps(loss: CoxPartial, scores: FloatArray) -> FloatArray:
    """Log of the jumps (K,) of the cumulative baseline hazard at the loss's event times, stratum by stratum.

    .. math:: dH_k = sum_{l=0}^{m-1} wbar / (S_k - l/m D_k)

    with the risk S_k of all at risk, the risk D_k and the mean weight wbar of the m events; Breslow's form leaves out
    D_k. Everything stays in logs, so that scores (n,), which do not hold the loss's offset, have a baseline whatever
    their size.
    """
    scores = scores if loss.offset is None else scores + loss.offset
    log_risk: FloatArray = loss.risk_sets.log_sums(scores[None, :])[0]
    rows, block = loss.rows, loss.block
    own = np.ones(len(rows)) if loss.weight is None else loss.weight[rows]
    total = np.bincount(block, own)
    if loss.ties == "breslow":
        return np.log(total) - log_risk
    part = np.bincount(block, own * np.exp(scores[rows] - log_risk[block]))
    left = 1.0 - tie_shares(block) * part[block]
    return np.log(total / np.bincount(block) * np.bincount(block, 1.0 / left)) - log_risk
