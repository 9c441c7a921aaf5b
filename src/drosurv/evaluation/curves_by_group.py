"""Decision curves and calibration curves of everybody and of every group of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.evaluation.at_horizon import OutcomesAtHorizon
from drosurv.evaluation.attributes import ALL, EVERYONE, rows_by_group
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.decision_curves import decision_curves, default_thresholds
from drosurv.evaluation.evaluator import Evaluator
from drosurv.findings.from_predictions import censoring_columns
from drosurv.observation import Inference
from drosurv.target import FloatArray


def curves_by_group(
    evaluator: Evaluator,
    X: Any,
    thresholds: FloatArray | None,
    threshold: float | None,
    inference: Inference,
) -> dict[str, Any]:
    """Return the curves as fields of the result; none for a model without survival curves."""
    everyone = evaluator.everyone
    if not everyone.data.has_curves:
        return {}
    n = len(everyone)
    indicators = [one.groups.codes == k for one in evaluator.attributes for k in range(len(one.labels))]
    groups = np.column_stack(indicators).astype(np.float64) if indicators else None
    outcomes = OutcomesAtHorizon.of(
        everyone.target,
        1 - everyone.survival_at_horizon,
        everyone.data.horizon,
        censoring_columns(groups, X, n),
        clusters=evaluator.clusters,
    )
    rows = {(EVERYONE, ALL): np.arange(n), **rows_by_group(evaluator.attributes)}
    level = inference.level if inference.n_bootstrap else None
    at = default_thresholds(outcomes.risk) if thresholds is None else thresholds
    # The threshold that is marked is one of them.
    at = at if threshold is None else np.union1d(at, threshold)
    return {
        "decision_curves": decision_curves(outcomes, rows, at, level=level),
        "calibration_curves": calibration_curves(outcomes, rows, level=level),
    }
