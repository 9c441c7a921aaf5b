"""The rows of an evaluation: one per number, with its interval, its test and who it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drosurv.evaluation.attributes import Attribute, Count
from drosurv.evaluation.disparities import Key
from drosurv.evaluation.measures import MEASURES
from drosurv.evaluation.panel import ALL, EVERYONE, Panel, number_of
from drosurv.evaluation.sheet import Cell, Sheet
from drosurv.inference import Draws, Extreme, largest_difference
from drosurv.presentation import with_interval
from drosurv.target import FloatArray

Kind = Literal["overall", "group", "gap"]

#: Short headings of the metrics that are no measure of a set of patients on its own.
FURTHER_LABELS = {
    "concordance_fraction": "CF",
    "concordance_imparity": "CI",
    "mean_hazard": "mean hazard",
    "individual_disparity": "F_I",
    "group_disparity": "F_G",
    "intersectional_disparity": "F_cap",
    "average_disparity": "F_A",
    "censored_individual_disparity": "F_I, censoring-aware",
    "censored_group_disparity": "F_G, censoring-aware",
}
LABELS = {**{name: measure.label for name, measure in MEASURES.items()}, **FURTHER_LABELS}
_BETTER = {
    **{name: measure.better for name, measure in MEASURES.items()},
    **dict.fromkeys(FURTHER_LABELS, "lower"),
    "concordance_fraction": "higher",
    "mean_hazard": "",
}


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


@dataclass(frozen=True, eq=False)
class RowMaker:
    """Makes rows of numbers.

    Parameters
    ----------
    panel : Panel
        The patients.
    sheet : Sheet
        Their numbers.
    disparities : mapping
        Attribute and metric to a disparity.
    p_values : mapping
        Attribute to metric to the p-value of its permutation test.
    small : set
        Small groups: attribute and label.
    level : float
        Nominal coverage of intervals.
    """

    panel: Panel
    sheet: Sheet
    disparities: Mapping[Key, Draws | Extreme]
    p_values: Mapping[str, Mapping[str, float]]
    small: frozenset[tuple[str, str]]
    level: float

    def rows(self) -> tuple[Row, ...]:
        """All rows: of everybody, then of each attribute's groups and gaps."""
        rows = self._overall()
        for attribute in self.panel.attributes:
            rows += self._groups(attribute)
            rows += self._gaps(attribute)
        return tuple(rows)

    def _overall(self) -> list[Row]:
        count = Count.of(self.panel.everyone.target)
        rows = [
            self._row(
                EVERYONE, ALL, measure.name, "overall", number_of(self.sheet, EVERYONE, ALL, measure), count
            )
            for measure in self.panel.measures
        ]
        for (attribute, metric), number in self.disparities.items():
            if attribute == EVERYONE:
                rows.append(self._row(EVERYONE, ALL, metric, "overall", number, count))
        return rows

    def _groups(self, attribute: Attribute) -> list[Row]:
        rows = []
        counts = attribute.counts(self.panel.everyone.target)
        for label, count in zip(attribute.labels, counts, strict=True):
            for measure in self.panel.measures:
                if measure.by_group:
                    number = number_of(self.sheet, attribute.name, label, measure)
                    rows.append(self._row(attribute.name, label, measure.name, "group", number, count))
            for metric in ("concordance_fraction", "mean_hazard"):
                cell = Cell(attribute.name, label, metric)
                if cell in self.sheet:
                    rows.append(self._row(*cell, "group", self.sheet[cell], count))
        return rows

    def _gaps(self, attribute: Attribute) -> list[Row]:
        names = [m.name for m in self.panel.measures if m.by_group and m.resampled]
        count = Count.of(self.panel.kept[attribute.name].target)
        rows = []
        for metric in ("concordance_imparity", *names):
            of_group = "concordance_fraction" if metric == "concordance_imparity" else metric
            values, draws = self.sheet.groups(attribute.name, attribute.labels, of_group)
            gap = largest_difference(values, draws)
            between = _between(attribute, values)
            rows.append(self._row(attribute.name, between, metric, "gap", gap, count))
        for (name, metric), number in self.disparities.items():
            if name == attribute.name:
                rows.append(self._row(name, ALL, metric, "gap", number, count))
        return rows

    def _row(
        self, attribute: str, group: str, metric: str, kind: Kind, number: Draws | Extreme, count: Count
    ) -> Row:
        interval = number.interval(self.level)
        p_value, test = float("nan"), ""
        if isinstance(number, Extreme):
            permuted = self.p_values.get(attribute, {}).get(metric)
            p_value = number.p_value if permuted is None else permuted
            test = "" if np.isnan(p_value) else "bootstrap" if permuted is None else "permutation"
        status = "ok"
        if np.isnan(number.estimate):
            status = "undefined"
        elif kind == "group" and (attribute, group) in self.small:
            status = "small group"
        return Row(
            attribute,
            group,
            metric,
            kind,
            "lower" if kind == "gap" else _BETTER[metric],
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


def _between(attribute: Attribute, values: FloatArray) -> str:
    """The two groups that differ most, the higher value first."""
    ascending = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    if len(ascending) < 2:
        return ALL
    return f"{attribute.labels[ascending[-1]]} vs {attribute.labels[ascending[0]]}"
