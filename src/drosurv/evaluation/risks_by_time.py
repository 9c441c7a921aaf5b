"""The table of mean predicted and observed risk by a few times, of everybody and groups.

Observed risks are weighted for censoring within strata of predicted risk of the group alone
(:mod:`drosurv.metrics.risk_strata`), so that the censoring of other patients does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from drosurv.evaluation.data import JudgedRisks
from drosurv.evaluation.evaluator import Evaluator
from drosurv.judging.words import SUBGROUP
from drosurv.metrics.follow_up import last_with_enough_at_risk
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.target import FloatArray, IntArray

COLUMNS = (
    *("attribute", "group", "time", "patients", "predicted", "observed", "low", "high"),
    *("ratio", "ratio_low", "ratio_high", "left_out"),
)
#: Largest number of times.
MOST_TIMES = 5
#: Largest share of the patients whom a number of 100 patients leaves out.
MOST_LEFT_OUT = 0.1
# A time within this share of the horizon is left out, and times are written with so many digits.
_NEAR, _DIGITS = 0.15, 2


def no_risks(*_: object, **__: object) -> pd.DataFrame:
    """Return the table without a row, of a model without survival curves."""
    return pd.DataFrame(columns=list(COLUMNS))


def named_times(risks: JudgedRisks) -> FloatArray:
    """Return the times of the table: predicted times, or quarter points of the follow-up; and the horizon.

    A quarter point until which more than a tenth of the patients were not followed is left out.
    """
    data, horizon = risks.data, risks.horizon
    if not data.has_curves:
        return data.judged.residuals.ends if data.judged.few_times else np.array([horizon])
    if data.judged.few_times:
        assert data.few_times is not None
        tested = data.judged.residuals.ends
        times = np.union1d(data.few_times[data.few_times <= tested[-1]], horizon)
        return times if len(times) <= MOST_TIMES else tested
    last = last_with_enough_at_risk(risks.target)
    if data.outcome.entry is None:
        last = min(last, data.predicted.until)
    quarters = last * np.arange(1, 5) / 4
    # Rounded down, so that they stay inside of the follow-up.
    unit = 10.0 ** (np.floor(np.log10(np.maximum(quarters, 1e-300))) - _DIGITS + 1)
    quarters = np.unique(np.round(np.floor(quarters / unit * (1 + 1e-9)) * unit, 12))
    quarters = quarters[(quarters > 0) & (np.abs(quarters - horizon) > _NEAR * horizon)]
    # The risk of those who were followed is not comparable with that of everybody by an earlier time.
    everybody = np.arange(len(risks.target))
    kept = [
        t
        for t in quarters.tolist()
        if risks.observed(t, everybody).left_out <= MOST_LEFT_OUT * len(everybody)
    ]
    return np.union1d(kept, horizon)


def risks_by_time(
    evaluator: Evaluator, level: float, subgroups: Mapping[str, IntArray], *, alone: bool = False
) -> pd.DataFrame:
    """Return predicted and observed risk by each time of groups and `subgroups` (rows by name), or these `alone`."""
    data = evaluator.everyone.data
    if not data.is_judged or data.judged.cohort.several_events:
        return no_risks()
    groups: dict[tuple[str, str], IntArray] = {}
    if not alone:
        groups[EVERYONE, ALL] = np.arange(len(evaluator.everyone))
        groups |= evaluator.rows
    groups |= {(SUBGROUP, name): rows for name, rows in subgroups.items()}
    times, records = named_times(data.risks).tolist(), []
    for (attribute, group), rows in groups.items():
        for time in times:
            found = data.risks.observed(time, rows)
            (interval,) = found.estimates([found.observed]).intervals(level)
            predicted = found.predicted if found.predicted > 0 else np.nan
            ends = np.array([interval.estimate, interval.low, interval.high])
            who = attribute, group, time, round(found.patients)
            records.append((*who, found.predicted, *ends, *ends / predicted, found.left_out))
    return pd.DataFrame(records, columns=list(COLUMNS))
