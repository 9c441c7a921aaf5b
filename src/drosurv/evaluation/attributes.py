"""Sensitive attributes: the groups of patients, their sizes, and warnings about small groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, warn_caller
from drosurv.judging.questions import FEWEST_EVENTS, FEWEST_PATIENTS
from drosurv.metrics.scores import warn_undefined
from drosurv.patients.groups import EVERYONE, Groups, Missing, intersections, parse_groups
from drosurv.patients.observation import in_pandas
from drosurv.patients.target import IntArray, Target
from drosurv.presentation import AND, counted, group_name
from drosurv.tables.columns import MOST_LEVELS


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

    @classmethod
    def of(cls, target: Target) -> Count:
        """Count the patients and events of a target."""
        return cls(len(target), target.n_events)


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
        return Attribute(
            self.name, Groups(rank[self.groups.codes], tuple(self.labels[k] for k in kept), self.name)
        )

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
    return {
        (attribute.name, label): rows for attribute in attributes for label, rows in attribute.rows.items()
    }


def parse_attributes(
    sensitive_features: Any,
    n: int,
    *,
    missing: Missing = "group",
    at_least: int = 2,
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
    found = [
        Attribute(
            key,
            parse_groups(
                column,
                n,
                name=f"{name} {key!r}",
                argument="sensitive_features",
                missing=missing,
                at_least=at_least,
            ),
        )
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
    name = AND.join(attribute.name for attribute in attributes)
    found = intersections(
        [replace(attribute.groups, labels=attribute.labels) for attribute in attributes], name
    )
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
    text = f"undefined (NaN), because comparable pairs, events or follow-up are missing: {'; '.join(named)}."
    warn_undefined(text)
    return (text,)


def text_of(label: Any) -> str:
    """Return a group's label as tables show it."""
    return AND.join(map(str, label)) if isinstance(label, tuple) else str(label)
