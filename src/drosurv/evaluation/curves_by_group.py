"""Decision curves and calibration curves of everybody and every group, and ratios of attributes with many groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from drosurv.evaluation.at_horizon import OutcomesAtHorizon
from drosurv.evaluation.attributes import ALL, EVERYONE, rows_by_group
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.decision_curves import decision_curves, default_thresholds
from drosurv.evaluation.evaluator import Evaluator
from drosurv.metrics.random_intercept import random_intercept
from drosurv.observation import Inference, sample_of_many
from drosurv.target import FloatArray

#: Attributes with more groups, such as hospitals, are not drawn group by group.
MANY_GROUPS = 8
# Of very many patients a sample is drawn, but all of a group of at most so many.
_WHOLE_GROUP = 1_000
#: Name of the row of a group that is not among the audited ones.
NEW_GROUP = "a new one"
#: Levels of the two pairs of limits of a funnel plot.
FUNNEL_LEVELS = (0.95, 0.998)


def curves_by_group(
    evaluator: Evaluator, thresholds: FloatArray | None, threshold: float | None, inference: Inference
) -> dict[str, Any]:
    """Return the curves as fields of the result; none for a model without survival curves."""
    data = evaluator.everyone.data
    if not data.is_judged:
        return {}
    rows = {(EVERYONE, ALL): np.arange(len(evaluator.everyone)), **rows_by_group(evaluator.attributes)}
    sampled, used = sample_of_many(evaluator.everyone.target, evaluator.clusters), None
    if sampled is not None:
        rows = {
            key: own if len(own) <= _WHOLE_GROUP else np.intersect1d(own, sampled)
            for key, own in rows.items()
        }
        used = np.unique(np.concatenate(list(rows.values())))
        rows = {key: np.searchsorted(used, own) for key, own in rows.items()}
    outcomes = OutcomesAtHorizon.of_judged(data.judged, used)
    level = inference.level if inference.n_bootstrap else None
    at = default_thresholds(outcomes.risk) if thresholds is None else thresholds
    # The threshold that is marked is one of them.
    at = at if threshold is None else np.union1d(at, threshold)
    return {
        "decision_curves": decision_curves(outcomes, rows, at, level=level),
        "calibration_curves": calibration_curves(outcomes, rows, level=level),
    }


def shrunken_ratios(groups: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return observed over expected events of attributes with many groups, with a random intercept for each group.

    `groups` is the group table. An attribute's last row is the prediction interval of a new group.
    """
    tables = []
    for _, part in groups[groups["expected"] > 0].groupby("attribute", sort=False):
        if len(part) <= MANY_GROUPS:
            continue
        own = part[["attribute", "group", "patients", "observed", "expected", "ratio"]]
        found = random_intercept(own["observed"], own["expected"], level=level)
        new = {
            "attribute": own["attribute"].iloc[0],
            "group": NEW_GROUP,
            "shrunken": np.exp(found.mean),
            "low": found.new_low,
            "high": found.new_high,
        }
        tables.append(
            pd.concat(
                [
                    own.assign(shrunken=found.shrunken, low=found.low, high=found.high),
                    pd.DataFrame([new]),
                ],
                ignore_index=True,
            )
        )
    columns = ["attribute", "group", "patients", "observed", "expected", "ratio", "shrunken", "low", "high"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def funnel(expected: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the limits between which chance leaves observed over expected events of a right model."""
    z = float(ndtri((1 + level) / 2))
    # The square root of a Poisson count has a standard deviation of about 1/2.
    low, high = (np.maximum(np.sqrt(expected) + sign * z / 2, 0.0) ** 2 / expected for sign in (-1, 1))
    return low, high
