"""Rates, shares of groups and spread of risks of a pilot table, for the plan of an audit."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.curves import PointCurves
from drosurv.estimators import CoxPHCV
from drosurv.evaluation.attributes import parse_attributes
from drosurv.metrics import default_horizon
from drosurv.predictions import as_predictions
from drosurv.presentation import group_name
from drosurv.tables import SurvivalTable
from drosurv.target import of_any_cause, parse_target
from drosurv.workflows.saved_model import OpenedModel


def pilot_rates(table: SurvivalTable, opened: OpenedModel | None = None, seed: int = 0) -> dict[str, Any]:
    """Return arguments of :func:`drosurv.plan` from a table: event_rate, spread, groups and n_columns.

    The spread is that of the saved model `opened`, or of a cross-validated Cox model of the table.
    """
    y = of_any_cause(table.y)
    event = parse_target(y).event
    groups = {
        group_name(attribute.name, label): (len(rows) / len(table), float(event[rows].mean()))
        for attribute in parse_attributes(table.groups, len(table))
        for label, rows in attribute.rows.items()
    }
    if opened is None:
        model, X = CoxPHCV(random_state=seed).fit(table.X, y), table.X
    else:
        model, X = opened.estimator, opened.features(table.frame)
    columns = table.X if opened is None else opened.readable(table.frame)
    found = {
        "event_rate": float(event.mean()),
        "groups": {name: both for name, both in groups.items() if 0 < both[1] < 1},
        "n_columns": columns.shape[1],
    }
    spread = _spread(model, X, y)
    return found if spread is None else {**found, "spread": spread}


def _spread(model: Any, X: Any, y: Any) -> float | None:
    """Return the standard deviation of log cumulative hazards at the horizon, weighted by expected events."""
    target = parse_target(y)
    curves = as_predictions(model, X, len(target)).curves
    if curves is None or isinstance(curves, PointCurves):
        return None
    weight = curves.expected_events(np.minimum(target.time, curves.known_until)).hazard
    hazard = curves.cumulative_hazard(np.array([default_horizon(target)]))[:, 0]
    known = (hazard > 0) & (weight > 0)
    log_risk, weight = np.log(hazard[known]), weight[known]
    spread = np.sqrt(np.average((log_risk - np.average(log_risk, weights=weight)) ** 2, weights=weight))
    return float(spread) if spread > 0 else None
