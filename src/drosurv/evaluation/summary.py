"""An evaluation as the records that sentences are made of: the words themselves are in ``presentation``."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from drosurv.evaluation.control import ShrinkageControl
from drosurv.evaluation.rows import Row
from drosurv.inference import widening
from drosurv.presentation import (
    GroupGap,
    GroupNumber,
    Shrinkage,
    Statement,
    calibration_statements,
    gap_statements,
    harm_statements,
    imparity_statements,
    moment,
    overall_statement,
    plain,
    plain_rows,
    shrinkage_statements,
    small_group_statements,
)

if TYPE_CHECKING:
    import pandas as pd

HARM_METRICS = ("brier_skill", "likelihood_gain")
_OVERALL = {"concordance_index": "c-index", "integrated_brier_score": "IBS"}


def statements(
    rows: Sequence[Row],
    calibration: pd.DataFrame,
    control: ShrinkageControl | None,
    *,
    level: float,
    horizon: float,
    reference: str,
    time_unit: str = "",
) -> tuple[Statement, ...]:
    """What the numbers say, in the order of a reader's questions.

    Parameters
    ----------
    rows, calibration, control
        Of an :class:`~drosurv.evaluation.EvaluationResult`.
    level : float
        Of the intervals; a gap is beyond chance if its p-value is below one less this.
    horizon : float
        When calibration is spoken of.
    reference : str
        What the reference model is called.
    time_unit : str
        What times count, such as "days".
    """
    small = [
        (row.attribute, row.group) for row in rows if row.kind == "group" and row.status == "small group"
    ]
    own = {row.metric: row for row in rows if row.kind == "overall"}
    first = own["concordance_index"]
    numbers = [(label, own[metric].text) for metric, label in _OVERALL.items() if metric in own]
    return (
        overall_statement(first.n, first.events, numbers),
        *gap_statements(
            judged_gaps(rows, "concordance_index", level), any_groups=any(row.kind == "group" for row in rows)
        ),
        *imparity_statements(judged_gaps(rows, "concordance_imparity", level)),
        *harm_statements(judged_gains(rows, level), some_small=bool(small)),
        *calibration_statements(
            judged_calibration(calibration, set(small), horizon, level), moment(horizon, time_unit)
        ),
        *_shrinkage(own, control, reference),
        *small_group_statements(list(dict.fromkeys(small))),
    )


def judged_gaps(rows: Sequence[Row], metric: str, level: float) -> list[GroupGap]:
    """Gaps between the groups of each attribute that are large enough to be judged.

    Groups are compared within their attribute, since ranking only the young is harder than ranking everybody, whatever
    the model. Intervals and p-values allow for the number of attributes.
    """
    of_group = "concordance_fraction" if metric == "concordance_imparity" else metric
    tested = [row for row in rows if row.metric == metric and row.kind == "gap"]
    looks = sum(not isnan(row.p_value) for row in tested)
    found = []
    for row in tested:
        groups = sorted(
            (
                group
                for group in rows
                if (group.metric, group.attribute, group.kind) == (of_group, row.attribute, "group")
                and group.status == "ok"
            ),
            key=lambda group: group.value,
        )
        if len(groups) < 2:
            continue
        worst, best = groups[0], groups[-1]
        found.append(
            GroupGap(
                attribute=row.attribute,
                worst=(worst.group, worst.value),
                best=(best.group, best.value),
                low=row.low_adjusted,
                high=row.high_adjusted,
                p_value=row.p_adjusted,
                p_alone=row.p_value,
                looks=looks,
                beyond_chance=bool(row.p_adjusted < 1 - level),
                with_small=abs(best.value - worst.value - row.value) > 1e-9,
            )
        )
    return sorted(found, key=lambda gap: -gap.size)


def judged_gains(rows: Sequence[Row], level: float) -> list[GroupNumber]:
    """Gains over no model of every group that can be judged, with intervals that hold together."""
    judged = [
        row
        for metric in HARM_METRICS
        for row in rows
        if row.metric == metric and row.kind == "group" and row.status == "ok" and not isnan(row.low)
    ]
    wider = widening(level, len(judged))
    return [
        GroupNumber(
            row.attribute,
            row.group,
            row.value,
            row.low,
            row.high,
            row.value - wider * (row.value - row.low),
            row.value + wider * (row.high - row.value),
            row.metric,
        )
        for row in judged
    ]


def judged_calibration(
    calibration: pd.DataFrame, small: set[tuple[str, str]], horizon: float, level: float
) -> list[GroupNumber]:
    """Predicted less observed survival of every group that can be judged, from the intervals of the table."""
    judged = [
        row
        for row in plain_rows(calibration)
        if row["horizon"] == plain(horizon)
        and row["attribute"] != "overall"
        and (row["attribute"], row["group"]) not in small
        and row["low"] is not None
        # Before a group's first event its observed survival is 1 without an interval.
        and row["low"] < row["high"]
    ]
    wider = widening(level, len(judged))
    return [_difference(row, wider) for row in judged]


def _difference(row: dict[str, Any], wider: float) -> GroupNumber:
    value = row["difference"]
    below, above = row["high"] - row["observed"], row["observed"] - row["low"]
    return GroupNumber(
        row["attribute"],
        row["group"],
        value,
        value - below,
        value + above,
        value - wider * below,
        value + wider * above,
        "calibration_difference",
    )


def _shrinkage(own: dict[str, Row], control: ShrinkageControl | None, reference: str) -> list[Statement]:
    if control is None or "share_of_gain" not in own:
        return []
    compared = tuple((row["model"], row["shrunken"]) for row in plain_rows(control.at_equal_gain))
    return shrinkage_statements(
        Shrinkage(
            reference,
            own["share_of_gain"].value,
            own["calibration_slope"].value,
            control.factor,
            compared,
        )
    )
