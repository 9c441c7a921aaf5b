"""The rows of an evaluation: one per number, with its interval, its test and who it stands on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drosurv.evaluation.attributes import Attribute, Count
from drosurv.evaluation.between import Number
from drosurv.evaluation.catalogue import CATALOGUE, Metric
from drosurv.evaluation.engine import ALL, EVERYONE, Key, Panel
from drosurv.evaluation.sheet import Place, Sheet
from drosurv.inference import Extreme, Gap, judge_gaps
from drosurv.presentation import with_interval

Kind = Literal["overall", "group", "gap"]


@dataclass(frozen=True)
class Row:
    """One number.

    Parameters
    ----------
    attribute, group : str
        Whose it is: "overall" and "all" for everybody. A gap names the two groups, the higher value first.
    metric : str
        Which metric.
    kind : "overall", "group" or "gap"
        Of everybody, of one group, or between groups.
    better : str
        Which values are good: "higher", "lower", "near 1", "near 0".
    value, low, high, standard_error : float
        The number, its interval and standard error; NaN without bootstrap.
    p_value : float
        Of the hypothesis that the gap is zero.
    test : "permutation", "bootstrap" or ""
        Where the p-value comes from.
    n, events, censoring
        Patients, events and share of censored patients that the number stands on.
    status : "ok", "small group" or "undefined"
        Whether it can be relied on.
    p_adjusted, low_adjusted, high_adjusted : float
        Of a gap, allowing for all attributes in which the metric was compared; NaN for other numbers.
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
    def verdict(self) -> str:
        """Of a gain over no model: "harmed" if the interval is below 0, "served" if above, else "unclear"."""
        return "harmed" if self.high < 0 else "served" if self.low > 0 else "unclear"

    @property
    def whose(self) -> str:
        """The group with its attribute, or "everybody"."""
        return "everybody" if self.attribute == EVERYONE else f"{self.attribute} {self.group}"

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

    Parameters
    ----------
    panel : Panel
        The patients.
    sheet : Sheet
        Their numbers.
    p_values : mapping
        Attribute and metric to the p-value of its permutation test.
    small : collection
        Small groups: attribute and label.
    level : float
        Nominal coverage of intervals.
    """
    overall = panel.overall(sheet)
    gaps = panel.gaps(sheet, overall)
    judged = _judged(overall, gaps, p_values, level)

    def row(place: Place, kind: Kind, number: Number, count: Count) -> Row:
        metric = CATALOGUE[place.metric]
        status = "ok"
        if np.isnan(number.estimate):
            status = "undefined"
        elif kind == "group" and (place.attribute, place.group) in small:
            status = "small group"
        gap = None if kind == "group" else judged.get((place.attribute, place.metric))
        sure = gap or number.interval(level)
        return Row(
            *place,
            kind,
            "lower" if kind == "gap" else metric.better,
            number.estimate,
            sure.low,
            sure.high,
            sure.standard_error,
            gap.p_value if gap else float("nan"),
            gap.test if gap else "",
            count.n,
            count.events,
            count.censoring,
            status,
            *((gap.p_adjusted, gap.low_adjusted, gap.high_adjusted) if gap else ()),
        )

    everyone = Count.of(panel.everyone.target)
    rows = [
        row(Place(EVERYONE, ALL, metric), "overall", number, everyone) for metric, number in overall.items()
    ]
    shown = [metric for metric in panel.metrics if metric.label]
    for attribute in panel.attributes:
        for label in attribute.labels:
            places = [Place(attribute.name, label, metric.name) for metric in shown]
            count = panel.counts[attribute.name, label]
            rows += [
                row(place, "group", panel.number(sheet, place), count) for place in places if place in sheet
            ]
        count = Count.of(panel.kept[attribute.name].target)
        for metric in shown:
            if (attribute.name, metric.name) in gaps:
                place = Place(attribute.name, _between(sheet, attribute, metric), metric.name)
                rows.append(row(place, "gap", gaps[attribute.name, metric.name], count))
    return tuple(rows)


def _judged(
    overall: Mapping[str, Number], gaps: Mapping[Key, Number], p_values: Mapping[Key, float], level: float
) -> dict[Key, Gap]:
    """Gaps with their tests; those of one metric, over all attributes, are one family."""
    families: dict[tuple[str, bool], dict[Key, Extreme]] = {}
    everything = {**{(EVERYONE, metric): number for metric, number in overall.items()}, **gaps}
    for key, number in everything.items():
        if isinstance(number, Extreme):
            families.setdefault((key[1], key[0] == EVERYONE), {})[key] = number
    found: dict[Key, Gap] = {}
    for family in families.values():
        found |= judge_gaps(family, level=level, p_values=p_values)
    return found


def _between(sheet: Sheet, attribute: Attribute, metric: Metric) -> str:
    """The two groups that differ most, the higher value first; ALL where no two groups do."""
    compared = metric.reads[:1] if metric.of == "attribute" else (metric.name,)
    if len(metric.reads) > 1 or not compared:
        return ALL
    values, _ = sheet.groups(attribute.name, attribute.labels, compared[0])
    ascending = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    if len(ascending) < 2:
        return ALL
    return f"{attribute.labels[ascending[-1]]} vs {attribute.labels[ascending[0]]}"
