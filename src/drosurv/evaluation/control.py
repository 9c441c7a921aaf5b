"""Shrinkage control: what plain shrinking of a reference model would have done to the same disparities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from drosurv.evaluation.engine import Key, Panel
from drosurv.evaluation.patients import Patients, hazards_exist
from drosurv.metrics import calibration_slope, gain_over_null, log_partial_likelihood
from drosurv.metrics.partial_likelihood import kept_share
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.target import FloatArray, Target

# Disparities that shrinking moves.
DISPARITIES = ("individual_disparity", "intersectional_disparity", "group_disparity")
# F_I is computed for a dozen scores: where there are more pairs than this, all use the same random ones.
SAMPLED_PAIRS = 2_000_000
_FACTORS = np.linspace(0.0, 1.0, 11)


@dataclass(frozen=True, eq=False)
class ShrinkageControl:
    """The curve "reference x c", and its point that gains as much likelihood as the model.

    The `curve` has a row per ``factor`` c: ``log_partial_likelihood`` per event, ``share_of_gain`` over the null model,
    ``calibration_slope`` and one column per disparity (see `disparity_column`). The c-index and concordance imparity
    are not there: they do not change. At the `factor` the shrunken reference gains as much as the model; it is 0 if the
    model gains nothing, the most useful c if no c gains as much. There, `at_equal_gain` has a row per disparity:
    ``attribute``, ``metric``, the ``model``'s value, the ``reference``'s and the ``shrunken`` reference's. A model
    whose disparity is not below the last has only shrunk. The notes say what a reader should know of how it was made.
    """

    curve: pd.DataFrame
    factor: float
    at_equal_gain: pd.DataFrame
    notes: tuple[str, ...] = ()


def shrinkage_control(panel: Panel) -> ShrinkageControl | None:
    """Compare a model with shrunken copies of its reference; None without one, or where hazards overflow or are 0."""
    target, reference = panel.everyone.target, panel.everyone.scoring.reference
    if reference is None or not panel.has_hazards or not hazards_exist(reference):
        return None
    risk = panel.everyone.risk
    full = gain_over_null(target, reference)
    slope = calibration_slope(target, reference)
    null = log_partial_likelihood(target, np.zeros(len(target)))
    rows = []
    for factor in _FACTORS.tolist():
        likelihood = log_partial_likelihood(target, factor * reference)
        found = disparities(panel, factor * reference)
        rows.append(
            {
                "factor": factor,
                "log_partial_likelihood": likelihood,
                "share_of_gain": float(kept_share(likelihood - null, full)),
                "calibration_slope": slope / factor if factor else np.nan,
                **{disparity_column(*key): value for key, value in found.items()},
            }
        )
    factor = _factor_of_equal_gain(target, reference, gain_over_null(target, risk), slope)
    # The last factor is 1, the reference itself.
    own, full_size, shrunken = disparities(panel, risk), found, disparities(panel, factor * reference)
    columns = ["attribute", "metric", "model", "reference", "shrunken"]
    beside = pd.DataFrame([(*key, own[key], full_size[key], shrunken[key]) for key in own], columns=columns)
    sampled = panel.everyone.scoring.features is not None and _pairs(panel) != "all"
    note = f"the shrinkage control estimates F_I from {SAMPLED_PAIRS:,} random pairs of patients."
    return ShrinkageControl(pd.DataFrame(rows), factor, beside, (note,) if sampled else ())


def disparities(panel: Panel, risk: FloatArray) -> dict[Key, float]:
    """F_I, F_cap and every attribute's F_G of scores that are compared with each other.

    Those without features or groups are left out.
    """
    scoring = replace(panel.everyone.scoring, model=risk, reference=None, pairs=_pairs(panel))
    scored = replace(panel, everyone=Patients(scoring), wanted=DISPARITIES)
    numbers = scored.numbers(scored.sheet())
    return {key: numbers[key].estimate for name in DISPARITIES for key in numbers if key[1] == name}


def _pairs(panel: Panel) -> Pairs:
    """How many pairs F_I is computed from: all, or few enough to be quick for a dozen scores."""
    n, pairs = len(panel.everyone), panel.everyone.scoring.pairs
    return "all" if pairs == "all" or n * (n - 1) / 2 <= SAMPLED_PAIRS else SAMPLED_PAIRS


def disparity_column(attribute: str, metric: str) -> str:
    """Column of the control curve: the metric, and for F_G the attribute."""
    return f"{metric} {attribute}" if metric == "group_disparity" else metric


def _factor_of_equal_gain(target: Target, reference: FloatArray, gain: float, best: float) -> float:
    def surplus(factor: float) -> float:
        return gain_over_null(target, factor * reference) - gain

    # The gain is concave in c, 0 at c = 0 and largest at the calibration slope.
    best = best if np.isfinite(best) and best > 0 else 1.0
    if gain <= 0:
        return 0.0
    return best if surplus(best) <= 0 else float(brentq(surplus, 0.0, best, xtol=1e-6))
