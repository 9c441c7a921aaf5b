"""The published IBS: curves of patients sorted by time, scored against labels in their own order."""

from __future__ import annotations

import numpy as np

from drosurv.metrics import integrated_brier_score
from drosurv.metrics.time_grid import brier_times
from drosurv.target import FloatArray
from drosurv.tuning.held_out import HeldOut


def misaligned_brier_score(held_out: HeldOut, risk: FloatArray, baseline_risk: FloatArray) -> float:
    """Integrated Brier score with each patient's curve held against another patient's outcome.

    A mistake, rebuilt to explain published numbers. Breslow's baseline hazard comes from the training patients'
    `baseline_risk` (m,).
    """
    by_time = np.argsort(-held_out.target.time, kind="stable")
    times = brier_times(held_out.follow_up, held_out.target, grid="table")
    survival = held_out.breslow(risk[by_time], baseline_risk).at(times)
    return integrated_brier_score(held_out.follow_up, held_out.target, survival, times)
