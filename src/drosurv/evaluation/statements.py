"""An evaluation as the records that sentences are made of: the words themselves are in ``presentation``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from drosurv.estimators import CoxPH
from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Row
from drosurv.evaluation.predictions import final_step, prepared, unwrapped
from drosurv.evaluation.reference import ShrinkageControl
from drosurv.metrics.inference import is_beyond_chance, widening
from drosurv.presentation import GroupGap, GroupNumber, Statement, moment, plain, plain_rows, sentences
from drosurv.solvers.arrays import on_host
from drosurv.tables.encoder import enter
from drosurv.target import Target

HARM_METRICS = ("brier_skill", "likelihood_gain")
_VERDICTS = {"worse": "harmed", "better": "served", "not shown": "unclear"}
_OVERALL = ("concordance_index", "integrated_brier_score")


def statements(result: Any, reference: str, time_unit: str = "") -> tuple[Statement, ...]:
    """What the numbers say, in the order of a reader's questions."""
    own = {row.metric: row for row in result.select(kind="overall")}
    first = next(iter(own.values()))
    numbers = [(CATALOGUE[metric].label, own[metric].text) for metric in _OVERALL if metric in own]
    at = moment(result.settings.horizon, time_unit)
    ranked = judged_gaps(result, "concordance_index")
    return (
        sentences.overall_statement(first.n, first.events, numbers),
        *(
            sentences.gap_statements(ranked, any_groups=bool(result.attributes))
            if "concordance_index" in own
            else ()
        ),
        *sentences.imparity_statements(judged_gaps(result, "concordance_imparity")),
        *sentences.harm_statements(judged_gains(result), some_small=bool(result.small_groups)),
        *sentences.calibration_statements(*judged_calibration(result), at),
        *_shrinkage(own, result.control, reference),
        *sentences.small_group_statements(result.small_groups),
    )


def judged_gaps(result: Any, metric: str) -> list[GroupGap]:
    """Gaps between the groups of each attribute that are large enough to be judged, the largest first.

    Groups are compared within their attribute, since ranking only the young is harder than ranking everybody, whatever
    the model. Intervals and p-values allow for the number of attributes. A gap is beyond chance if its p-value is
    below one less the level.
    """
    of_group = "concordance_fraction" if metric == "concordance_imparity" else metric
    tested = result.gaps(metric)
    looks = sum(not isnan(row.p_value) for row in tested)
    found = []
    for row in tested:
        groups = result.select(metric=of_group, attribute=row.attribute, kind="group")
        groups = sorted((group for group in groups if group.status == "ok"), key=lambda group: group.value)
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
                beyond_chance=is_beyond_chance(row.p_adjusted, result.settings.level),
            )
        )
    return sorted(found, key=lambda gap: -gap.size)


def number_of(row: Row, zero: float = 0.0, wider: float = 1.0) -> GroupNumber:
    """A row's number above its zero, with an interval so many times wider."""
    value, below, above = row.value - zero, wider * (row.value - row.low), wider * (row.high - row.value)
    return GroupNumber(row.attribute, row.group, value, value - below, value + above, row.metric)


def judged_gains(result: Any, metrics: Sequence[str] = HARM_METRICS, zero: float = 0.0) -> list[GroupNumber]:
    """Gains over no model of every group that can be judged, with intervals that hold together.

    They are what the metrics are above their zero.
    """
    rows = [row for metric in metrics for row in result.select(metric=metric, kind="group")]
    return _judged(rows, result.settings.level, zero)


def harm_records(result: Any) -> list[dict[str, Any]]:
    """Rows of gains over no model, of everybody and of groups, with the verdict that the sentences give."""
    judged = {(number.attribute, number.group, number.metric): number for number in judged_gains(result)}
    found = []
    for row in result.rows:
        if row.metric not in HARM_METRICS or row.kind == "gap":
            continue
        number = (
            number_of(row)
            if row.kind == "overall" and row.status == "ok"
            else judged.get((row.attribute, row.group, row.metric))
        )
        ends = {} if number is None else {"low_adjusted": number.low, "high_adjusted": number.high}
        verdict = "unclear" if number is None else _VERDICTS[sentences.against_nothing([number])]
        found.append({**row._asdict(), **ends, "verdict": verdict})
    return found


def judged_calibration(result: Any) -> tuple[list[GroupNumber], GroupNumber | None]:
    """Predicted less observed survival at the horizon of every group that can be judged, and of everybody.

    They are judged together, so that a right model is seldom called off, however many numbers are looked at.
    """
    rows, horizon = plain_rows(result.calibration), plain(result.settings.horizon)
    unsure = {
        (row["attribute"], row["group"])
        for row in rows
        if row["horizon"] == horizon and row["difference_low"] is None
    }
    together = result.select(metric="calibration_difference", kind="overall")
    groups = result.select(metric="calibration_difference", kind="group")
    sure = [row for row in groups if (row.attribute, row.group) not in unsure]
    found = _judged([*together, *sure], result.settings.level)
    everybody = next((number for number in found if number.attribute == EVERYONE), None)
    return [number for number in found if number is not everybody], everybody


def _judged(rows: Sequence[Row], level: float, zero: float = 0.0) -> list[GroupNumber]:
    """The numbers that can be judged, with intervals so much wider that all of them hold together."""
    known = [row for row in rows if row.status == "ok" and not isnan(row.low)]
    return [number_of(row, zero, widening(level, len(known))) for row in known]


def _shrinkage(own: dict[str, Row], control: ShrinkageControl | None, reference: str) -> list[Statement]:
    if control is None or "share_of_gain" not in own:
        return []
    compared = tuple((row["model"], row["shrunken"]) for row in plain_rows(control.at_equal_gain))
    kept, slope = own["share_of_gain"].value, own["calibration_slope"].value
    return sentences.shrinkage_statements(kept, slope, control.factor, compared, reference)


# The test costs n d^2 and d^4; beyond this it is left to check_proportional_hazards.
_MOST_FEATURES = 60
_MOST_WORK = 1e9


def hazards_statement(
    model: Any, X: Any, target: Target, given: dict[str, Any], level: float
) -> tuple[Statement, ...]:
    """A sentence on features whose effect changes with time; nothing where none does, or the model is not linear Cox.

    Plain Cox is fitted to the scored patients and tested there, so that a model's training data are not needed and an
    overfitted model is not held against hazards. The patients' entry times, strata and offset may be given.
    """
    final = final_step(model)
    is_cox = hasattr(final, "check_proportional_hazards") and not final._own_curves
    if X is None or not is_cox or np.ndim(getattr(final, "coef_", 0)) != 1:
        return ()
    d = len(final.coef_)
    if d > _MOST_FEATURES or len(target) * d**2 > _MOST_WORK or target.n_events < 10 * d:
        return ()
    with warnings.catch_warnings(action="ignore"):
        # A fit of tensors keeps no residuals to test.
        features = on_host(enter(final, prepared(model, X)))
        if isinstance(features, np.ndarray) and hasattr(unwrapped(model), "steps"):
            # Most steps lose the names of columns, but know them.
            with suppress(AttributeError, ValueError):
                features = pd.DataFrame(features, columns=unwrapped(model)[:-1].get_feature_names_out())
        cox = CoxPH().fit(features, target.to_structured(), **given)
        if not cox.converged_:
            return ()
        test = cox.check_proportional_hazards()
    return (Statement("hazards", test.sentence(1 - level), concern=True),) if test.changing(1 - level) else ()
