"""The scoring engine: every metric of the catalogue for one model on one set of patients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.evaluation.attributes import ALL, EVERYONE, Attribute, Count
from drosurv.evaluation.catalogue import CATALOGUE, Metric, Need, with_what_it_reads
from drosurv.evaluation.patients import Patients, hazards_exist
from drosurv.evaluation.sheet import Between, Key, Place, Sheet
from drosurv.inference import Draws, Number, largest_difference, permutation_test
from drosurv.inference.resampling import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.target import FloatArray, IntArray


class _Computed(NamedTuple):
    """Numbers that are computed together: where they stand, and what they are for patient weights (n,).

    The second argument says whether the weights are a replicate.
    """

    places: list[Place]
    values: Callable[[FloatArray, bool], list[float]]


@dataclass(frozen=True, eq=False)
class Panel:
    """One model's patients in all their groups, and the metrics that they can have, or those that are wanted.

    The intersections of all attributes are for F_cap. Notes say what is left out, and why. Unless it is to look inside
    groups, what any set of patients has is taken of everybody alone.
    """

    everyone: Patients
    attributes: Sequence[Attribute] = ()
    intersection: Attribute | None = None
    wanted: Collection[str] | None = None
    notes: tuple[str, ...] = ()
    inside_groups: bool = True

    @cached_property
    def has_hazards(self) -> bool:
        """Whether every exp(risk) is a positive number; differences of hazards have no value otherwise."""
        return self.everyone.scoring.has_risk and hazards_exist(self.everyone.risk)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that can be computed of what is there."""
        names = CATALOGUE.keys() if self.wanted is None else with_what_it_reads(set(self.wanted))
        return tuple(
            metric for metric in CATALOGUE.values() if metric.name in names and not self.lacks(metric)
        )

    def lacks(self, metric: Metric) -> bool:
        """Whether the metric needs something that these patients do not have."""
        scoring = self.everyone.scoring
        has: dict[Need, Callable[[], bool]] = {
            "risk": lambda: scoring.has_risk,
            "survival": lambda: scoring.has_curves,
            "reference": lambda: scoring.reference is not None,
            "features": lambda: scoring.features is not None,
            "groups": lambda: bool(self.attributes),
            "hazards": lambda: self.has_hazards,
        }
        return not all(has[need]() for need in metric.needs)

    def of(self, kind: str) -> list[Metric]:
        """Those of one kind (see :class:`~drosurv.evaluation.catalogue.Metric`)."""
        return [metric for metric in self.metrics if metric.of == kind]

    def rescored(self, risk: FloatArray, wanted: Collection[str], pairs: Pairs) -> Panel:
        """The same patients with other risk scores and no curves, and some metrics."""
        scoring = replace(self.everyone.scoring, model=risk, reference=None, pairs=pairs)
        return replace(self, everyone=Patients(scoring), wanted=wanted)

    def without(self, groups: Collection[tuple[str, str]], wanted: Collection[str]) -> Panel:
        """The same patients without some groups, given by attribute and label, and some metrics.

        An attribute with fewer than two groups left is left out.
        """
        named = [
            attribute.without([label for name, label in groups if name == attribute.name])
            for attribute in self.attributes
        ]
        left = [attribute for attribute in named if len(attribute.labels) > 1]
        return replace(self, attributes=left, intersection=None, wanted=wanted)

    @cached_property
    def kept(self) -> dict[str, Patients]:
        """Attribute to all patients that belong to one of its groups."""
        return {attribute.name: self._of(attribute) for attribute in self.attributes}

    @cached_property
    def members(self) -> dict[Key, Patients]:
        """Attribute and label to the patients of a group."""
        return {
            (attribute.name, label): self.everyone.take(rows)
            for attribute in self.attributes
            for label, rows in zip(attribute.labels, attribute.rows, strict=True)
        }

    @cached_property
    def counts(self) -> dict[Key, Count]:
        """Attribute and label to the number of patients and events."""
        return {key: Count.of(patients.target) for key, patients in self.members.items()}

    def sheet(
        self,
        replicates: int = 0,
        *,
        random_state: Any = None,
        threads: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> Sheet:
        """Values on the patients and on bootstrap replicates of them; `advance` is called after each.

        Panels of the same patients, with the same seed, get the same replicates.
        """
        n, parts = len(self.everyone), self._parts
        places = [place for part in parts for place in part.places]
        streams = seed_sequence(random_state)
        # The first row is the patients themselves, whose undefined values are told of together, by group.
        values = np.empty((1 + replicates, len(places)))
        weights = np.ones((1 + replicates, n), dtype=np.uint16)

        def draw(row: int) -> tuple[IntArray, list[float]]:
            if row == 0:
                times = np.ones(n, dtype=np.int64)
            else:
                rows = replicate_rng(streams, row - 1).integers(n, size=n)
                times = np.bincount(rows, minlength=n)
            weight = times.astype(np.float64)
            return times, [value for part in parts for value in part.values(weight, row > 0)]

        # What the patients share (sorted pairs, curves) is made once, before threads ask for it.
        ((_, values[0]),) = in_parallel(draw, 1, 1)
        drawn = in_parallel(lambda replicate: draw(1 + replicate), replicates, threads)
        for row, (times, found) in enumerate(drawn, 1):
            weights[row], values[row] = times, found
            advance()
        return Sheet(places, values[0], values[1:], weights[1:])

    def numbers(self, sheet: Sheet) -> dict[Key, Number]:
        """Attribute and metric to the number that compares its groups; under "overall", to that of everybody."""
        found: dict[Key, Number] = {}
        for metric in self.of("patients"):
            found[EVERYONE, metric.name] = self.number(sheet, Place(EVERYONE, ALL, metric.name))
        for metric in self.of("everybody"):
            found[EVERYONE, metric.name] = metric.function(self._between(None, sheet, found))
        for attribute in self.attributes:
            for metric in self.metrics:
                if metric.of == "attribute":
                    number = metric.function(self._between(attribute, sheet, found))
                elif self._inside(metric) and metric.resampled:
                    values, draws = sheet.groups(attribute.name, attribute.labels, metric.name)
                    number = largest_difference(values, draws, metric.widest)
                else:
                    continue
                found[attribute.name, metric.name] = number
        return found

    def number(self, sheet: Sheet, place: Place) -> Draws:
        """A number of a set of patients with its own kind of interval."""
        metric = CATALOGUE[place.metric]
        lowest, highest = metric.bounds
        return sheet[place]._replace(lowest=lowest, highest=highest, method=metric.interval)

    def p_values(
        self,
        permutations: int,
        *,
        random_state: Any = None,
        threads: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> dict[Key, float]:
        """p-values by permutation of the labels of the gaps that the catalogue has a test for.

        The p-values of other gaps come from the bootstrap. `advance` is called after each test.
        """
        found: dict[Key, float] = {}
        for name, attribute, metric in self.tests if permutations else ():
            assert metric.test is not None
            patients = self._of(attribute)
            result = permutation_test(
                metric.test(patients),
                attribute.kept_groups,
                permutations=permutations,
                random_state=random_state,
                threads=threads,
            )
            found[name, metric.name] = result.p_value
            advance()
        return found

    @cached_property
    def tests(self) -> list[tuple[str, Attribute, Metric]]:
        """Attributes and metrics whose gaps are tested by permutation."""
        tested = [metric for metric in self.metrics if metric.test is not None]
        found = [
            (attribute.name, attribute, metric)
            for attribute in self.attributes
            for metric in tested
            if metric.of != "everybody"
        ]
        if self.intersection is not None and len(self.intersection.groups) > 1:
            found += [(EVERYONE, self.intersection, metric) for metric in tested if metric.of == "everybody"]
        return found

    @cached_property
    def _parts(self) -> list[_Computed]:
        """What is computed anew for every replicate."""
        sets = self.of("patients")
        by_group = [metric for metric in sets if self._inside(metric)]
        found = [_of_set(EVERYONE, ALL, self.everyone, sets)]
        for attribute in self.attributes:
            for label in attribute.labels:
                found.append(_of_set(attribute.name, label, self.members[attribute.name, label], by_group))
            found += [
                _of_groups(attribute.name, attribute, self.kept[attribute.name], metric)
                for metric in self.of("groups")
            ]
        if self.intersection is not None:
            read = {name for metric in self.of("everybody") for name in metric.reads}
            found += [
                _of_groups(EVERYONE, self.intersection, self._of(self.intersection), metric)
                for metric in self.of("groups")
                if metric.name in read
            ]
        return found

    def _inside(self, metric: Metric) -> bool:
        """Whether the metric is also taken of every group on its own."""
        return self.inside_groups and metric.of == "patients" and metric.by_group

    def _of(self, attribute: Attribute) -> Patients:
        # Attributes that leave nobody out share the sorted pairs of everyone.
        everybody = len(attribute.kept) == len(self.everyone)
        return self.everyone if everybody else self.everyone.take(attribute.kept)

    def _between(self, attribute: Attribute | None, sheet: Sheet, known: Mapping[Key, Number]) -> Between:
        if attribute is None:
            return Between(EVERYONE, self.intersection, self.everyone, sheet, known)
        return Between(attribute.name, attribute, self.kept[attribute.name], sheet, known)


def replicates_of(name: str, value: int) -> int:
    """A number of replicates or permutations: 0 for none."""
    if value != int(value) or value < 0 or value == 1:
        raise ArgumentError.must(name, "be 0 or a whole number from 2", value)
    return int(value)


def _of_set(attribute: str, label: str, patients: Patients, metrics: Sequence[Metric]) -> _Computed:
    """Metrics of one set of patients."""

    def values(weight: FloatArray, resampled: bool) -> list[float]:
        own = weight if patients.rows is None else weight[patients.rows]
        return [
            float("nan") if resampled and not metric.resampled else metric(patients, own)
            for metric in metrics
        ]

    return _Computed([Place(attribute, label, metric.name) for metric in metrics], values)


def _of_groups(name: str, attribute: Attribute, patients: Patients, metric: Metric) -> _Computed:
    """One metric of all groups of an attribute."""

    def values(weight: FloatArray, resampled: bool) -> list[float]:
        found: list[float] = metric.function(patients, attribute.kept_groups, weight[attribute.kept]).tolist()
        return found

    return _Computed([Place(name, label, metric.name) for label in attribute.labels], values)
