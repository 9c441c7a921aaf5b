"""Rates, shares of groups and spread of risks of a pilot table, for the plan of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.curves import PointCurves
from drosurv.errors import ArgumentError, arg
from drosurv.estimators import CoxPHCV
from drosurv.evaluation.evaluator import parse_attributes
from drosurv.metrics import default_horizon
from drosurv.patients.target import of_any_cause, parse_target
from drosurv.predictions import as_predictions
from drosurv.presentation import counted, group_name
from drosurv.tables import read_survival_table
from drosurv.workflows.saved_model import OpenedModel


def pilot_rates(
    frame: pd.DataFrame,
    *,
    groups: Sequence[str] = (),
    drop: Sequence[str] = (),
    opened: OpenedModel | None = None,
    seed: int = 0,
    **target: Any,
) -> dict[str, Any]:
    """Return arguments of :func:`drosurv.plan` from a table: event_rate, spread, groups and n_columns.

    The spread is that of the saved model `opened`, or of a cross-validated Cox model of the table without the columns
    to `drop`; `target` names the columns of the target, by default those of the saved model.
    """
    if opened is not None:
        table = opened.table(frame, groups=groups, **target)
        model, X = opened.estimator, opened.features(table.frame)
        n_columns = opened.readable(table.frame).shape[1]
    else:
        if target.pop("entry", None) is not None:
            raise ArgumentError("entry", f"a plan counts patients from time 0: leave out {arg('entry')}.")
        if target.get("event") is None:
            raise ArgumentError(
                "event",
                f"a pilot table needs its outcome: pass {arg('time', text='COLUMN')} and "
                f"{arg('event', text='COLUMN')}.",
            )
        table = read_survival_table(frame, groups=groups, drop=drop, **target)
        model, X = CoxPHCV(random_state=seed).fit(table.X, of_any_cause(table.y)), table.X
        n_columns = X.shape[1]
    if table.id is not None and table.frame[table.id].duplicated().any():
        patients = f"{counted(table.frame[table.id].nunique(), 'patient')} in {len(table):,} rows"
        raise ArgumentError(
            "id",
            f"a plan counts patients, and column {table.id!r} names {patients}: give one row for each patient.",
        )
    y = of_any_cause(table.y)
    event = parse_target(y).event
    shares = {
        group_name(attribute.name, label): (len(rows) / len(table), float(event[rows].mean()))
        for attribute in parse_attributes(table.groups, len(table))
        for label, rows in attribute.rows.items()
    }
    found = {
        "event_rate": float(event.mean()),
        "groups": {name: both for name, both in shares.items() if 0 < both[1] < 1},
        "n_columns": n_columns,
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
