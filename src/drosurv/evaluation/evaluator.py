"""Metrics of one model for everybody and every group, with the influence of each patient on them.

All intervals and tests of an evaluation come from these estimates; groups and models are compared by differences of
influences.

Groups are those of sensitive attributes (:class:`Attribute`), with their sizes and warnings about small groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.errors import ArgumentError, arg, warn_caller
from drosurv.evaluation.catalogue import CATALOGUE, GroupComparison, Metric, Need
from drosurv.evaluation.data import Subset, hazards_exist
from drosurv.judging.questions import FEWEST_EVENTS, FEWEST_PATIENTS
from drosurv.metrics import compare_follow_up
from drosurv.metrics.estimates import Estimate, Estimates, Interval
from drosurv.metrics.follow_up import FollowUpComparison
from drosurv.metrics.scores import warn_undefined
from drosurv.paper import shrinkage
from drosurv.paper.sampled_pairs import Pairs
from drosurv.patients.groups import ALL, EVERYONE, Groups, Missing, intersections, parse_groups
from drosurv.patients.observation import in_pandas
from drosurv.patients.target import FloatArray, IntArray
from drosurv.predictions import as_predictions
from drosurv.presentation import AND, counted, group_name
from drosurv.tables.columns import MOST_LEVELS

# Attribute and metric, or attribute and group.
Key = tuple[str, str]
# Attribute, group and metric.
RowKey = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Metrics of one model on one set of patients and their groups: all that can be computed, or those `wanted`.

    By default metrics of the paper's tables are left out, unless they are wanted; with `paper` all are computed. Notes
    say what is left out, and why; `not_compared` is the one that says why there is no reference. Rows of one of the
    `clusters` (n,) are correlated; `patients` (n,) are the numbers of the rows' patients, if some have several.
    """

    everyone: Subset
    attributes: Sequence[Attribute] = ()
    wanted: Collection[str] | None = None
    notes: tuple[str, ...] = ()
    clusters: IntArray | None = None
    patients: IntArray | None = None
    not_compared: str = ""
    paper: bool = False

    @cached_property
    def has_hazards(self) -> bool:
        """Whether every exp(risk) is a positive number; differences of hazards have no value otherwise."""
        return self.everyone.data.scores.has_log_hazards and hazards_exist(self.everyone.risk)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that can be computed from the predictions, features and groups given."""
        return tuple(metric for metric in self.asked if not self.lacks(metric))

    @property
    def asked(self) -> list[Metric]:
        """The metrics that are asked for."""
        if self.wanted is not None:
            return [metric for metric in CATALOGUE.values() if metric.name in self.wanted]
        return [metric for metric in CATALOGUE.values() if self.paper or not metric.is_papers]

    def lacks(self, metric: Metric) -> bool:
        """Whether the metric needs something that these patients do not have."""
        data = self.everyone.data
        has: dict[Need, Callable[[], bool]] = {
            "risk": lambda: data.scores.has_risk,
            "log hazard": lambda: data.scores.has_log_hazards,
            "slope": lambda: (
                bool(np.ptp(data.judged.score)) if data.is_judged else data.scores.has_log_hazards
            ),
            "gains": lambda: data.is_judged,
            "survival": lambda: data.has_curves,
            "curves": lambda: data.has_curves and data.few_times is None,
            "one event": lambda: not data.judged.cohort.several_events,
            "two times": lambda: data.has_curves and (data.few_times is None or len(data.brier_times) > 1),
            "reference": lambda: data.reference_risk is not None,
            "features": lambda: data.features is not None,
            "groups": lambda: bool(self.attributes),
            "hazards": lambda: self.has_hazards,
        }
        return not all(has[need]() for need in metric.needs)

    @cached_property
    def follow_ups(self) -> dict[str, FollowUpComparison]:
        """How follow-up differs between the groups of each attribute."""
        target, attributes = self.everyone.target, self.attributes
        return {
            one.name: compare_follow_up(target.take(one.groups.kept), one.kept_groups) for one in attributes
        }

    @cached_property
    def kept(self) -> dict[str, Subset]:
        """Patients that belong to a group, by attribute."""
        everybody = self.everyone
        return {
            one.name: everybody if len(one.kept) == len(everybody) else everybody.take(one.kept)
            for one in self.attributes
        }

    @cached_property
    def members(self) -> dict[Key, Subset]:
        """Patients of each group, by attribute and label."""
        until = {name: found.horizon for name, found in self.follow_ups.items()}
        return {key: self.everyone.take(rows, until[key[0]]) for key, rows in self.rows.items()}

    @property
    def subsets(self) -> dict[Key, Subset]:
        """Everybody, and then the patients of each group, by attribute and label."""
        return {(EVERYONE, ALL): self.everyone, **self.members}

    @cached_property
    def rows(self) -> dict[Key, IntArray]:
        """Rows of the patients of each group, by attribute and label."""
        return rows_by_group(self.attributes)

    @cached_property
    def counts(self) -> dict[Key, Count]:
        """Numbers of patients and events of each group, by attribute and label."""
        return {key: self.count(patients) for key, patients in self.members.items()}

    def count(self, patients: Subset) -> Count:
        """Return the numbers of patients and events in some rows."""
        n, events = len(patients), patients.target.n_events
        if self.patients is None:
            return Count(n, events)
        codes = self.patients if patients.rows is None else self.patients[patients.rows]
        return Count(len(np.unique(codes)), events, n)

    @cached_property
    def estimates(self) -> dict[RowKey, Estimate]:
        """Metrics of everybody and of each group, by attribute, group and metric; NaN where undefined."""
        found = {}
        # One warning names all undefined values.
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            for key, patients in self.subsets.items():
                for metric in self.metrics:
                    if not metric.is_papers and (metric.by_group or key[0] == EVERYONE):
                        found[(*key, metric.name)] = estimate_of(metric, patients)
        return found

    def intervals(self, level: float) -> dict[RowKey, Interval]:
        """Return the interval of each estimate, with no ends if no patient had an event."""
        if not self.everyone.target.event.any():
            nan = float("nan")
            return {key: Interval(each.value, nan, nan, level) for key, each in self.estimates.items()}
        found: dict[RowKey, Interval] = {}
        for who in dict.fromkeys(key[:2] for key in self.estimates):
            own = {key: each for key, each in self.estimates.items() if key[:2] == who}
            intervals = Estimates(list(own.values()), self.clusters).intervals(level)
            found |= {key: within(each, CATALOGUE[key[2]]) for key, each in zip(own, intervals, strict=True)}
        return found

    def gaps(self, level: float, groups: Collection[Key]) -> dict[Key, Interval]:
        """Test the largest gap between some groups of each attribute, by attribute and metric.

        Intervals and p-values of one metric are adjusted for all attributes. Gaps of other metrics than comparable ones
        depend on how long groups were followed; they are not tested.
        """
        found: dict[Key, Interval] = {}
        for metric in self.metrics:
            keys = [key for key in groups if (*key, metric.name) in self.estimates]
            if not metric.comparable or not keys:
                continue
            attributes = list(dict.fromkeys(attribute for attribute, _ in keys))
            families = [[k for k, key in enumerate(keys) if key[0] == name] for name in attributes]
            own = Estimates([self.estimates[(*key, metric.name)] for key in keys], self.clusters)
            largest = metric.bounds[1] - metric.bounds[0]
            for name, gap in zip(attributes, own.largest_gaps(families, level), strict=True):
                high = gap.high if np.isnan(gap.high) else min(gap.high, largest)
                found[name, metric.name] = replace(gap, high=high)
        return found

    @cached_property
    def papers_metrics(self) -> dict[RowKey, float]:
        """Metrics of the paper's tables, by attribute, group ("all" if none) and metric."""
        found: dict[RowKey, float] = {}
        papers = [metric for metric in self.metrics if metric.is_papers]
        everyone = self.everyone
        crossed = GroupComparison(everyone, everyone)
        if self.attributes and papers:
            crossing = intersection_of(self.attributes)
            crossed = GroupComparison(everyone, everyone.take(crossing.kept), crossing.kept_groups)
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            for metric in papers:
                if metric.of == "everybody":
                    found[EVERYONE, ALL, metric.name] = metric.function(crossed)
            for one in self.attributes if papers else ():
                between = GroupComparison(everyone, self.kept[one.name], one.kept_groups, crossed)
                for metric in papers:
                    if metric.of == "groups":
                        values = zip(one.labels, metric.function(between).tolist(), strict=True)
                        found |= {(one.name, label, metric.name): value for label, value in values}
                    elif metric.of == "attribute":
                        found[one.name, ALL, metric.name] = metric.function(between)
        return found

    @cached_property
    def control(self) -> shrinkage.ShrinkageControl | None:
        """The shrinkage control, if it is wanted, there is a reference, and all hazards are finite and not 0."""
        data = self.everyone.data
        reference = data.reference_risk
        if not self.paper or reference is None or not self.has_hazards or not hazards_exist(reference):
            return None
        notes: tuple[str, ...] = ()
        if data.features is not None and self._pairs != "all":
            pairs = f"{shrinkage.SAMPLED_PAIRS:,} random pairs of patients"
            notes = (f"the shrinkage control estimates F_I from {pairs}.",)
        scores = self.everyone.target, self.everyone.risk, reference
        return shrinkage.shrinkage_control(*scores, self.disparities, notes)

    def disparities(self, risk: FloatArray) -> dict[Key, float]:
        """Return F_I, F_cap and every attribute's F_G of scores (n,), as far as there are features and groups."""
        predicted = as_predictions(risk, None, len(risk))
        data = replace(self.everyone.data, predicted=predicted, reference=None, pairs=self._pairs)
        scored = replace(self, everyone=Subset(data), wanted=shrinkage.DISPARITIES)
        found = {(key[0], key[2]): value for key, value in scored.papers_metrics.items()}
        return {key: found[key] for name in shrinkage.DISPARITIES for key in found if key[1] == name}

    @property
    def _pairs(self) -> Pairs:
        """The pairs for F_I of a dozen scores: all, or a sample if computing all would take long."""
        n, pairs = len(self.everyone), self.everyone.data.pairs
        few = pairs == "all" or n * (n - 1) / 2 <= shrinkage.SAMPLED_PAIRS
        return "all" if few else shrinkage.SAMPLED_PAIRS


def within(interval: Interval, metric: Metric) -> Interval:
    """Return an interval, cut at the lowest and highest possible value of the metric."""
    low, high = (float(end) for end in np.clip([interval.low, interval.high], *metric.bounds))
    return replace(interval, low=low, high=high)


def estimate_of(metric: Metric, patients: Subset) -> Estimate:
    """Return a metric of a set of patients; NaN if there are none, or if the value is infinite."""
    if len(patients) == 0:
        return Estimate.undefined(len(patients.data.target))
    found: Estimate = metric.function(patients)
    return found if np.isfinite(found.value) else replace(found, value=float("nan"))


def most_different(values: Mapping[str, float]) -> tuple[str, ...]:
    """Return the two groups that differ most, the higher value first; empty if fewer than two have a value."""
    known = sorted((label for label, value in values.items() if not np.isnan(value)), key=values.__getitem__)
    return (known[-1], known[0]) if len(known) > 1 else ()


def whose(attribute: str, group: str, everybody: str = "everybody") -> str:
    """Return the name of a group with its attribute, for readers."""
    return everybody if attribute == EVERYONE else group_name(attribute, group)


class SmallGroupWarning(UserWarning):
    """A group has too few patients or events for reliable metrics."""


class Count(NamedTuple):
    """Numbers of patients and events that a metric was computed from, and of rows if patients have several."""

    patients: int
    events: int
    rows: int | None = None

    @property
    def censoring(self) -> float:
        """Share of censored rows."""
        rows = self.patients if self.rows is None else self.rows
        return 1.0 - self.events / rows if rows else float("nan")

    @property
    def is_small(self) -> bool:
        """Whether there are too few patients or events to judge them."""
        return self.patients < FEWEST_PATIENTS or self.events < FEWEST_EVENTS


@dataclass(frozen=True, eq=False)
class Attribute:
    """A sensitive attribute: its name, and the group of each of n patients."""

    name: str
    groups: Groups

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The groups' labels as text, distinct."""
        plain = tuple(text_of(label) for label in self.groups.labels)
        return plain if len(set(plain)) == len(plain) else tuple(map(repr, self.groups.labels))

    def without(self, groups: Collection[tuple[str, str]]) -> Attribute:
        """Return the attribute without some groups (given by attribute and label) and without their patients."""
        kept = [k for k, label in enumerate(self.labels) if (self.name, label) not in groups]
        if len(kept) == len(self.labels):
            return self
        # Patients left out have the code -1, which indexes the last element.
        rank = np.full(len(self.labels) + 1, -1)
        rank[kept] = np.arange(len(kept))
        labels = tuple(self.labels[k] for k in kept)
        return Attribute(self.name, Groups(rank[self.groups.codes], labels, self.name))

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """Rows of the patients of each group."""
        return {label: np.flatnonzero(self.groups.codes == k) for k, label in enumerate(self.labels)}

    @cached_property
    def kept(self) -> IntArray:
        """Rows of all patients that belong to a group."""
        return np.flatnonzero(self.groups.kept)

    @cached_property
    def kept_groups(self) -> Groups:
        """Groups of the kept patients."""
        return self.groups.of_kept()


def rows_by_group(attributes: Iterable[Attribute]) -> dict[tuple[str, str], IntArray]:
    """Return the rows of each group's patients, by attribute and label."""
    return {(one.name, label): rows for one in attributes for label, rows in one.rows.items()}


def parse_attributes(
    sensitive_features: Any, n: int, *, missing: Missing = "group", at_least: int = 2
) -> list[Attribute]:
    """Return an `Attribute` for each column of n labels; raise if one has fewer than `at_least` groups."""
    if sensitive_features is None:
        return []
    columns = named_columns(sensitive_features)
    name = arg("sensitive_features")
    if EVERYONE in columns:
        raise ArgumentError(
            "sensitive_features",
            f"{name} has an attribute called {EVERYONE!r}, which is what the tables call all patients: rename it.",
        )
    how: dict[str, Any] = {"argument": "sensitive_features", "missing": missing, "at_least": at_least}
    found = [
        Attribute(key, parse_groups(column, n, name=f"{name} {key!r}", **how))
        for key, column in columns.items()
    ]
    for attribute in found:
        numbers = [float(label) for label in attribute.groups.labels if isinstance(label, Real)]
        if len(numbers) > MOST_LEVELS:
            raise ArgumentError(
                "sensitive_features",
                f"{name} {attribute.name!r} holds {len(numbers):,} different numbers, and each would be a group: "
                f"cut it first, for example in two groups, above {np.median(numbers):g} and not.",
            )
    return found


def compared_attributes(sensitive_features: Any, n: int) -> tuple[list[Attribute], list[str]]:
    """Return the attributes with at least two groups, and a note on each that has one group only."""
    found = parse_attributes(sensitive_features, n, at_least=1)
    notes = [
        f"attribute '{one.name}' is left out: all patients are in one group, {one.labels[0]}."
        for one in found
        if len(one.labels) == 1
    ]
    return [one for one in found if len(one.labels) > 1], notes


def with_intersections(sensitive_features: Any, n: int) -> dict[str, Groups]:
    """Return the groups of each attribute and, of several attributes, those of their intersections, by name."""
    attributes = parse_attributes(sensitive_features, n, at_least=1)
    if len(attributes) > 1:
        attributes.append(intersection_of(attributes))
    return {attribute.name: attribute.groups for attribute in attributes}


def intersection_of(attributes: Sequence[Attribute]) -> Attribute:
    """Return the attribute of all intersections that have patients; a single attribute is returned unchanged."""
    if len(attributes) == 1:
        return attributes[0]
    name = AND.join(one.name for one in attributes)
    found = intersections([replace(one.groups, labels=one.labels) for one in attributes], name)
    if len(found) == 0:
        raise ArgumentError(
            "sensitive_features",
            f"no patient has a label of every attribute, {name}: leave one out, or pass {arg('missing', 'group')}.",
        )
    return Attribute(name, found)


def named_columns(features: Any) -> dict[str, Any]:
    """Return columns of labels by name."""
    single, features = "sensitive_feature", in_pandas(features)
    if isinstance(features, Mapping):
        return {str(key): column for key, column in features.items()}
    if isinstance(features, pd.DataFrame):
        columns = {str(key): features.iloc[:, place] for place, key in enumerate(features.columns)}
        if len(columns) < features.shape[1]:
            raise ArgumentError(
                "sensitive_features",
                f"{arg('sensitive_features')} has two columns of the same name: {[*features.columns]}.",
            )
        return columns
    if isinstance(features, pd.Series):
        return {single if features.name is None else str(features.name): features}
    if isinstance(features, list) and features and isinstance(features[0], list):
        features = np.array(features, dtype=object)
    if isinstance(features, np.ndarray) and features.ndim == 2:
        return {f"{single}_{place}": column for place, column in enumerate(features.T)}
    return {single: features}


def warn_of_small_groups(counts: Mapping[tuple[str, str], Count]) -> frozenset[tuple[str, str]]:
    """Return the groups with too few patients or events, after one warning that names them all."""
    small = {key: count for key, count in counts.items() if count.is_small}
    if small:
        named = "; ".join(
            f"{group_name(attribute, label)}: {counted(count.patients, 'patient')}, {counted(count.events, 'event')}"
            for (attribute, label), count in small.items()
        )
        warn_caller(
            f"small groups, whose numbers are unreliable ({named}). They have fewer than {FEWEST_PATIENTS} patients "
            f"or {FEWEST_EVENTS} events: read their intervals, or merge groups.",
            category=SmallGroupWarning,
        )
    return frozenset(small)


def warn_of_undefined(named: Sequence[str]) -> tuple[str, ...]:
    """Give one warning that names all undefined numbers, and return it as a note."""
    if not named:
        return ()
    missing = "comparable pairs, events, follow-up or differences between predictions are missing"
    text = f"undefined (NaN), because {missing}: {'; '.join(named)}."
    warn_undefined(text)
    return (text,)


def text_of(label: Any) -> str:
    """Return a group's label as tables show it."""
    return AND.join(map(str, label)) if isinstance(label, tuple) else str(label)
