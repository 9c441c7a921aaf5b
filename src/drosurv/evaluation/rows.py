"""The rows of an evaluation: one per number, with its interval, its test and who it stands on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from drosurv.evaluation.attributes import ALL, EVERYONE, Attribute, Count, warn_of_undefined, whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Key, Panel, Place, Sheet
from drosurv.evaluation.metric import Metric
from drosurv.metrics.inference import Extreme, Gap, Number, judge_gaps
from drosurv.metrics.scores import warn_undefined
from drosurv.presentation import VERSUS, attribute_name, counted, label_name, with_interval

Kind = Literal["overall", "group", "gap"]
# Metrics of how well groups are served, of which a handful of patients says nothing.
JUDGED_GAPS = (
    "concordance_imparity",
    "concordance_index",
    "brier_skill",
    "likelihood_gain",
    "calibration_difference",
)


@dataclass(frozen=True)
class Row:
    """One number, with the columns of :meth:`EvaluationResult.to_frame <drosurv.evaluation.EvaluationResult.to_frame>`.

    It is of everybody, of one group, or between groups; intervals are NaN without bootstrap and where every
    replicate gives the same number, tests NaN but for gaps.
    """

    attribute: str
    group: str
    metric: str
    kind: Kind
    better: str
    value: float
    low: float
    high: float
    standard_error: float
    p_value: float
    test: str
    n: int
    events: int
    censoring: float
    status: str
    p_adjusted: float = float("nan")
    low_adjusted: float = float("nan")
    high_adjusted: float = float("nan")

    @property
    def whose(self) -> str:
        """The group with its attribute, or "everybody"; of a gap, between whom it is."""
        if self.kind != "gap" or self.attribute == EVERYONE:
            return whose(self.attribute, self.group)
        if self.group == ALL:
            return attribute_name(self.attribute)
        return f"{attribute_name(self.attribute, self.group)}: {label_name(self.attribute, self.group)}"

    @property
    def text(self) -> str:
        """The number and its interval."""
        return with_interval(self.value, self.low, self.high)


def rows_of(
    panel: Panel,
    sheet: Sheet,
    p_values: Mapping[Key, float],
    small: Collection[tuple[str, str]],
    level: float,
) -> tuple[Row, ...]:
    """All rows: of everybody, then of each attribute's groups and gaps.

    The p-values are those of permutation tests; small groups are given by attribute and label.
    """
    numbers = panel.numbers(sheet)
    judged = _judged(numbers, p_values, level)

    def row(place: Place, kind: Kind, number: Number, count: Count, few: bool = False) -> Row:
        gap = None if kind == "group" else judged.get((place.attribute, place.metric))
        sure = gap or Gap(**vars(number.interval(level)))
        return Row(
            *place,
            kind,
            "lower" if kind == "gap" else CATALOGUE[place.metric].better,
            number.estimate,
            sure.low,
            sure.high,
            sure.standard_error,
            sure.p_value,
            sure.test,
            count.n,
            count.events,
            count.censoring,
            "undefined" if np.isnan(number.estimate) else "small group" if few else "ok",
            sure.p_adjusted,
            sure.low_adjusted,
            sure.high_adjusted,
        )

    everyone = Count.of(panel.everyone.target)
    rows = [
        row(Place(EVERYONE, ALL, metric), "overall", number, everyone, (EVERYONE, ALL) in small)
        for (attribute, metric), number in numbers.items()
        if attribute == EVERYONE
    ]
    shown = [metric for metric in panel.metrics if metric.label]
    for attribute in panel.attributes:
        name = attribute.name
        for label in attribute.labels:
            count, few = panel.counts[name, label], (name, label) in small
            for metric in shown:
                place = Place(name, label, metric.name)
                if place in sheet.numbers:
                    rows.append(row(place, "group", sheet.numbers[place], count, few))
        count = Count.of(panel.kept[name].target)
        for metric in shown:
            if (name, metric.name) in numbers:
                sides = _sides(sheet, attribute, metric)
                place = Place(name, VERSUS.join(sides) or ALL, metric.name)
                few = any((name, side) in small for side in sides)
                rows.append(row(place, "gap", numbers[name, metric.name], count, few))
    return tuple(rows)


def gaps_between_large(
    panel: Panel,
    sheet: Sheet,
    p_values: Mapping[Key, float],
    small: Collection[tuple[str, str]],
    level: float,
    permutations: int,
    **resampling: Any,
) -> tuple[Row, ...]:
    """Rows of the gaps between groups that are large enough to be judged; otherwise as `rows_of`.

    The largest gap of all groups is often that of a handful of patients: where there are such, the others have a gap,
    an interval and a test of their own. A group's value, and so the gap and its interval, counts its pairs with
    everybody. The test counts the pairs of the large groups alone, whose labels alone change places: it is right for
    what it asks, whether these groups are ordered equally well among each other.
    """
    large = panel.without(small, JUDGED_GAPS)
    changed = [attribute for attribute in large.attributes if attribute not in panel.attributes]
    own = replace(large, attributes=changed).p_values(permutations, **resampling)
    rows = rows_of(large, sheet, {**p_values, **own}, (), level)
    return tuple(row for row in rows if row.kind == "gap" and row.metric in JUDGED_GAPS)


def _judged(numbers: Mapping[Key, Number], p_values: Mapping[Key, float], level: float) -> dict[Key, Gap]:
    """Gaps with their tests; those of one metric, over all attributes, are one family."""
    families: dict[str, dict[Key, Extreme]] = {}
    for key, number in numbers.items():
        if isinstance(number, Extreme):
            families.setdefault(key[1], {})[key] = number
    found: dict[Key, Gap] = {}
    for family in families.values():
        found |= judge_gaps(family, level=level, p_values=p_values)
    return found


def _sides(sheet: Sheet, attribute: Attribute, metric: Metric) -> tuple[str, ...]:
    """The two groups that differ most, the higher value first; empty where no two groups do."""
    compared = metric.reads if metric.of == "attribute" else (metric.name,)
    if len(compared) != 1:
        return ()
    values, _ = sheet.groups(attribute.name, attribute.labels, compared[0])
    ascending = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    return (attribute.labels[ascending[-1]], attribute.labels[ascending[0]]) if len(ascending) > 1 else ()


def without_intervals(rows: Sequence[Row]) -> tuple[str, ...]:
    """A note if a group's number has no interval although there are replicates."""
    resampled = (
        row for row in rows if row.kind == "group" and row.better and CATALOGUE[row.metric].resampled
    )
    if any(np.isnan(row.low) and not np.isnan(row.value) for row in resampled):
        return ("a number without an interval is the same number in every replicate, which says nothing.",)
    return ()


def warn_of_undefined_rows(rows: Sequence[Row]) -> None:
    """One warning that names every group, and the metrics it has no value of; one if the reference gains nothing."""
    undefined: dict[str, list[str]] = {}
    gain = next((row for row in rows if row.metric == "gain_over_null"), None)
    # With a gain of the model's own there are events: the share of the reference's lacks only the latter.
    no_gain = gain is not None and gain.status != "undefined"
    for row in rows:
        if no_gain and row.metric == "share_of_gain" and row.status == "undefined":
            warn_undefined(
                "the share of the reference's gain is undefined (NaN): the reference predicts these patients no better "
                "than no model does."
            )
        elif row.status == "undefined" and row.kind != "gap":
            who = f"{row.whose} ({counted(row.n, 'patient')}, {counted(row.events, 'event')})"
            undefined.setdefault(who, []).append(row.metric)
    warn_of_undefined([f"{who}: {', '.join(metrics)}" for who, metrics in undefined.items()])
