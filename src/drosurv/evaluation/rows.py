"""The rows of an evaluation: one per number, with its interval, its test and who it stands on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drosurv.evaluation.attributes import Attribute, Count
from drosurv.evaluation.between import Number
from drosurv.evaluation.catalogue import CATALOGUE, Metric
from drosurv.evaluation.engine import ALL, EVERYONE, Panel
from drosurv.evaluation.sheet import Place, Sheet
from drosurv.inference import Extreme
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
    p_values: Mapping[tuple[str, str], float],
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

    def row(place: Place, kind: Kind, number: Number, count: Count) -> Row:
        metric = CATALOGUE[place.metric]
        interval = number.interval(level)
        p_value, test = float("nan"), ""
        if isinstance(number, Extreme):
            permuted = p_values.get((place.attribute, place.metric))
            p_value = number.p_value if permuted is None else permuted
            test = "" if np.isnan(p_value) else "bootstrap" if permuted is None else "permutation"
        status = "ok"
        if np.isnan(number.estimate):
            status = "undefined"
        elif kind == "group" and (place.attribute, place.group) in small:
            status = "small group"
        return Row(
            *place,
            kind,
            "lower" if kind == "gap" else metric.better,
            number.estimate,
            interval.low,
            interval.high,
            interval.standard_error,
            p_value,
            test,
            count.n,
            count.events,
            count.censoring,
            status,
        )

    everyone, overall = Count.of(panel.everyone.target), panel.overall(sheet)
    rows = [
        row(Place(EVERYONE, ALL, metric), "overall", number, everyone) for metric, number in overall.items()
    ]
    gaps = panel.gaps(sheet, overall)
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
