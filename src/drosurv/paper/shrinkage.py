"""Shrinkage control: disparities of a reference whose scores are multiplied by factors, to compare a model's with.

Disparities of hazards fall if all scores are multiplied by a number below 1. A model whose disparity is not below that
of the reference shrunk to the same likelihood gain is no fairer than shrinking alone makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from drosurv.metrics import calibration_slope, log_partial_likelihood
from drosurv.metrics.partial_likelihood import gain_over_null, kept_share
from drosurv.patients.target import FloatArray, Target
from drosurv.presentation import Statement, plain_rows, written

# Disparities that change if scores are multiplied by a factor.
DISPARITIES = ("individual_disparity", "intersectional_disparity", "group_disparity")
# F_I is computed for a dozen scores; if there are more pairs than this, from the same random sample of so many.
SAMPLED_PAIRS = 2_000_000
_FACTORS = np.linspace(0.0, 1.0, 11)
# A model that keeps less than this share of the reference's likelihood gain is a concern.
_LITTLE_KEPT = 0.5
# Shrinkage to a larger share of the reference's scores, or of its information, is too small to mention.
_SHRUNK = 0.99
# A disparity is called lower only if it is below this share of what shrinking gives.
_CLEARLY_LOWER = 0.95


@dataclass(frozen=True, eq=False)
class ShrinkageControl:
    """Disparities of the reference with its scores multiplied by factors c, to compare the model's disparities with.

    The `curve` has a row per ``factor`` c: ``log_partial_likelihood`` per event, ``share_of_gain`` over the null model,
    ``calibration_slope`` and one column per disparity (see `disparity_column`). `factor` is the c at which the
    reference has the same likelihood gain as the model: 0 if the model has none, and the c with the largest gain if
    none reaches the model's. `at_equal_gain` has a row per disparity: its value for the ``model``, the ``reference``
    and, at the factor, the ``shrunken`` reference.
    """

    curve: pd.DataFrame
    factor: float
    at_equal_gain: pd.DataFrame
    notes: tuple[str, ...] = ()

    def statements(self, kept: float, reference: str) -> list[Statement]:
        """State whether disparities are lower only by shrinking; `kept` is the share of the reference's gain."""
        if isnan(kept):
            return []
        text = f"The model's gain in log partial likelihood over no model is {written(kept, 'share')} of {reference}'s."
        compared = [is_lower(row["model"], row["shrunken"]) for row in plain_rows(self.at_equal_gain)]
        if self.factor < _SHRUNK and kept < _SHRUNK and compared:
            lower, of = sum(compared), len(compared)
            which = f"{lower or 'none'} of {of} disparities of risk {'is' if lower < 2 else 'are'}"
            if of == 1:
                which = f"the disparity of risk is{'' if lower else ' not'}"
            text += (
                f" Compared with {reference} whose log risks are multiplied by {self.factor:.2f}, which has the same "
                f"gain, {which} lower."
            )
        return [Statement("shrinkage", text, kept < _LITTLE_KEPT)]


def shrinkage_control(
    target: Target,
    risk: FloatArray,
    reference: FloatArray,
    disparities: Callable[[FloatArray], dict[tuple[str, str], float]],
    notes: tuple[str, ...] = (),
) -> ShrinkageControl:
    """Compare log hazards (n,) with those of a reference; `disparities` computes those of scores."""
    full = gain_over_null(target, reference)
    slope = calibration_slope(target, reference)
    null = log_partial_likelihood(target, np.zeros(len(target)))
    rows = []
    for factor in _FACTORS.tolist():
        likelihood = log_partial_likelihood(target, factor * reference)
        found = disparities(factor * reference)
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
    of_model, shrunken = disparities(risk), disparities(factor * reference)
    # The last factor was 1.
    of_reference = found
    columns = ["attribute", "metric", "model", "reference", "shrunken"]
    at_equal_gain = pd.DataFrame(
        [(*key, of_model[key], of_reference[key], shrunken[key]) for key in of_model], columns=columns
    )
    return ShrinkageControl(pd.DataFrame(rows), factor, at_equal_gain, notes)


def disparity_column(attribute: str, metric: str) -> str:
    """Return the name of a disparity's column in the curve: the metric, and for F_G the attribute."""
    return f"{metric} {attribute}" if metric == "group_disparity" else metric


def is_lower(model: float | None, shrunken: float | None) -> bool:
    """Whether a model's disparity is clearly below that of the reference shrunk to the same information."""
    return model is not None and shrunken is not None and bool(model < _CLEARLY_LOWER * shrunken)


def _factor_of_equal_gain(target: Target, reference: FloatArray, gain: float, best: float) -> float:
    def surplus(factor: float) -> float:
        return gain_over_null(target, factor * reference) - gain

    # The gain is concave in c, 0 at c = 0 and largest at the calibration slope.
    best = best if np.isfinite(best) and best > 0 else 1.0
    if gain <= 0:
        return 0.0
    return best if surplus(best) <= 0 else float(brentq(surplus, 0.0, best, xtol=1e-6))
