"""Predicted and observed risk of everybody and each group by a few times: the table that readers compare first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from drosurv.evaluation.at_horizon import JudgedRisks, within
from drosurv.evaluation.data import EvaluationData
from drosurv.evaluation.evaluator import Evaluator
from drosurv.judging.adjustment import ALL, EVERYONE
from drosurv.judging.words import SUBGROUP
from drosurv.metrics.estimates import Estimates
from drosurv.metrics.follow_up import last_with_enough_at_risk
from drosurv.patients.target import FloatArray, IntArray

COLUMNS = (
    *("attribute", "group", "time", "patients", "predicted", "observed", "low", "high"),
    *("ratio", "ratio_low", "ratio_high", "left_out"),
)
#: Largest number of times.
MOST_TIMES = 5
# A time within this share of the horizon is left out, and times are written with so many digits.
_NEAR, _DIGITS = 0.15, 2


def no_risks(*_: object, **__: object) -> pd.DataFrame:
    """Return the table without a row, of a model without survival curves."""
    return pd.DataFrame(columns=list(COLUMNS))


def named_times(data: EvaluationData, judged: JudgedRisks) -> FloatArray:
    """Return the times of the table: predicted times, or quarter points of the follow-up; and the horizon."""
    horizon = judged.horizon
    if not data.has_curves:
        return np.array([horizon])
    if data.judged.few_times:
        assert data.few_times is not None
        times = data.few_times[data.few_times <= data.judged.residuals.ends[-1]]
        others = times[times != horizon]
        if len(others) >= MOST_TIMES:
            others = others[np.linspace(0, len(others) - 1, MOST_TIMES - 1).round().astype(np.intp)]
        return np.union1d(others, horizon)
    last = last_with_enough_at_risk(judged.target)
    if data.outcome.entry is None:
        last = min(last, data.predicted.until)
    quarters = last * np.arange(1, 5) / 4
    # Rounded down, so that they stay inside of the follow-up.
    unit = 10.0 ** (np.floor(np.log10(np.maximum(quarters, 1e-300))) - _DIGITS + 1)
    quarters = np.unique(np.round(np.floor(quarters / unit * (1 + 1e-9)) * unit, 12))
    quarters = quarters[(quarters > 0) & (np.abs(quarters - horizon) > _NEAR * horizon)]
    return np.union1d(quarters, horizon)


def risks_by_time(
    evaluator: Evaluator, level: float, subgroups: Mapping[str, IntArray], *, alone: bool = False
) -> pd.DataFrame:
    """Return predicted and observed risk by each named time; empty for a model without survival curves.

    `subgroups` are the rows of patients of more groups, by name; `alone` leaves out everybody and the named groups.
    Observed risks are those of :mod:`drosurv.metrics.observed_risk`, with intervals that are not adjusted.
    """
    data = evaluator.everyone.data
    if not data.is_judged or data.judged.cohort.several_events:
        return no_risks()
    judged = JudgedRisks(data, evaluator.clusters)
    groups: dict[tuple[str, str], IntArray] = {}
    if not alone:
        groups[EVERYONE, ALL] = np.arange(len(evaluator.everyone))
        groups |= evaluator.rows
    groups |= {(SUBGROUP, name): rows for name, rows in subgroups.items()}
    risks = {float(time): judged.risk_by(float(time)) for time in named_times(data, judged)}
    records = []
    for (attribute, group), rows in groups.items():
        rows = rows[judged.inside[rows]]
        clusters = within(evaluator.clusters, rows)
        for time, risk in risks.items():
            found = judged.observed(time, risk, rows)
            (interval,) = Estimates([found.observed], clusters).intervals(level)
            predicted = found.predicted if found.predicted > 0 else np.nan
            records.append(
                {
                    "attribute": attribute,
                    "group": group,
                    "time": time,
                    "patients": round(found.patients),
                    "predicted": found.predicted,
                    "observed": interval.estimate,
                    "low": interval.low,
                    "high": interval.high,
                    "ratio": interval.estimate / predicted,
                    "ratio_low": interval.low / predicted,
                    "ratio_high": interval.high / predicted,
                    "left_out": round(found.left_out),
                }
            )
    return pd.DataFrame(records, columns=list(COLUMNS))
