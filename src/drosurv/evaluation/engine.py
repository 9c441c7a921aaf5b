"""The scoring engine: every metric of the catalogue for one model on one set of patients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drosurv.errors import ArgumentError
from drosurv.evaluation.attributes import ALL, EVERYONE, Attribute, Count, intersection_of, rows_by_group
from drosurv.evaluation.catalogue import CATALOGUE, with_what_it_reads
from drosurv.evaluation.metric import Between, Metric, Need
from drosurv.evaluation.patients import Patients, hazards_exist
from drosurv.metrics.inference import Draws, Number, largest_difference, permutation_test
from drosurv.metrics.inference.resampling import in_parallel, replicate_rng, seed_sequence
from drosurv.target import FloatArray, IntArray

# Attribute and metric.
Key = tuple[str, str]


class Place(NamedTuple):
    """Which number it is: the metric of a group of an attribute."""

    attribute: str
    group: str
    metric: str


@dataclass(frozen=True, eq=False)
class Sheet:
    """Numbers by place, on the patients and on every replicate, NaN where undefined.

    The weights (replicates, n) say how often each patient was drawn.
    """

    numbers: Mapping[Place, Draws]
    weights: NDArray[np.uint16]

    def groups(self, attribute: str, labels: Sequence[str], metric: str) -> tuple[FloatArray, FloatArray]:
        """Values (k,) of an attribute's groups and their replicates (replicates, k)."""
        found = [self.numbers[Place(attribute, label, metric)] for label in labels]
        return np.array([one.estimate for one in found]), np.column_stack([one.draws for one in found])


@dataclass(frozen=True, eq=False)
class Panel:
    """One model's patients in all their groups, and the metrics that they can have, or those that are wanted.

    Notes say what is left out, and why. Unless it is to look inside groups, what any set of patients has is taken of
    everybody alone.
    """

    everyone: Patients
    attributes: Sequence[Attribute] = ()
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

    def without(self, groups: Collection[tuple[str, str]], wanted: Collection[str]) -> Panel:
        """The same patients without some groups, given by attribute and label, and some metrics.

        An attribute with fewer than two groups left is left out.
        """
        left = (attribute.without(groups) for attribute in self.attributes)
        compared = [attribute for attribute in left if len(attribute.labels) > 1]
        return replace(self, attributes=compared, wanted=wanted)

    @cached_property
    def partitions(self) -> dict[str, Attribute]:
        """Every attribute by name; under "overall" the intersections of all, where F_cap compares them."""
        named = {attribute.name: attribute for attribute in self.attributes}
        crossed = any("groups" in metric.needs for metric in self.of("everybody"))
        return {**named, EVERYONE: intersection_of(self.attributes)} if crossed else named

    @cached_property
    def kept(self) -> dict[str, Patients]:
        """All patients that belong to one of a partition's groups."""
        # Partitions that leave nobody out share the sorted pairs of everyone.
        everybody = len(self.everyone)
        return {
            name: self.everyone if len(of.kept) == everybody else self.everyone.take(of.kept)
            for name, of in self.partitions.items()
        }

    @cached_property
    def members(self) -> dict[Key, Patients]:
        """Attribute and label to the patients of a group."""
        return {key: self.everyone.take(rows) for key, rows in rows_by_group(self.attributes).items()}

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
        n, streams = len(self.everyone), seed_sequence(random_state)

        def draw(row: int) -> tuple[IntArray, list[float]]:
            rows = replicate_rng(streams, row).integers(n, size=n)
            times = np.bincount(rows, minlength=n)
            return times, list(self._values(times.astype(np.float64), resampled=True).values())

        # What the patients share (sorted pairs, curves) is made once, before threads ask for it. Their undefined values
        # are told of together, by group.
        (own,) = in_parallel(lambda _: self._values(np.ones(n), resampled=False), 1, 1)
        draws, weights = np.empty((replicates, len(own))), np.empty((replicates, n), dtype=np.uint16)
        for row, (times, found) in enumerate(in_parallel(draw, replicates, threads, n)):
            weights[row], draws[row] = times, found
            advance()
        numbers = {}
        for (place, value), drawn in zip(own.items(), draws.T, strict=True):
            metric = CATALOGUE[place.metric]
            numbers[place] = Draws(value, drawn, *metric.bounds, metric.interval)
        return Sheet(numbers, weights)

    def _values(self, weight: FloatArray, *, resampled: bool) -> dict[Place, float]:
        """Numbers of all sets of patients, given the weights (n,): what is computed anew for every replicate."""
        found: dict[Place, float] = {}

        def of_set(attribute: str, label: str, patients: Patients, metrics: Sequence[Metric]) -> None:
            own = weight if patients.rows is None else weight[patients.rows]
            for metric in metrics:
                known = metric.resampled or not resampled
                value = value_of(metric, patients, own) if known else float("nan")
                found[Place(attribute, label, metric.name)] = value

        of_set(EVERYONE, ALL, self.everyone, self.of("patients"))
        read = {part for metric in self.of("everybody") for part in metric.reads}
        for name, attribute in self.partitions.items():
            if name != EVERYONE:
                for label in attribute.labels:
                    of_set(name, label, self.members[name, label], self._inside)
            for metric in self.of("groups"):
                if name != EVERYONE or metric.name in read:
                    own = weight[attribute.kept]
                    values = metric.function(self.kept[name], attribute.kept_groups, own).tolist()
                    places = [Place(name, label, metric.name) for label in attribute.labels]
                    found.update(zip(places, values, strict=True))
        return found

    def numbers(self, sheet: Sheet) -> dict[Key, Number]:
        """Attribute and metric to the number that compares its groups; under "overall", to that of everybody."""
        found: dict[Key, Number] = {}
        for metric in self.of("patients"):
            found[EVERYONE, metric.name] = sheet.numbers[Place(EVERYONE, ALL, metric.name)]
        for metric in self.of("everybody"):
            found[EVERYONE, metric.name] = self._compared(metric, EVERYONE, sheet, found)
        for attribute in self.attributes:
            for metric in self.metrics:
                key = attribute.name, metric.name
                if metric.of == "attribute":
                    found[key] = self._compared(metric, attribute.name, sheet, found)
                elif metric in self._inside and metric.resampled:
                    lowest, highest = metric.bounds
                    values = sheet.groups(attribute.name, attribute.labels, metric.name)
                    found[key] = largest_difference(*values, largest=highest - lowest)
        return found

    def _compared(self, metric: Metric, name: str, sheet: Sheet, known: Mapping[Key, Number]) -> Number:
        """A metric that compares, from what it reads: values of groups, and numbers that are known."""
        values, numbers = {}, {}
        for part in metric.reads:
            if CATALOGUE[part].of == "groups":
                values[part] = sheet.groups(name, self.partitions[name].labels, part)
            else:
                numbers[part] = known[(name, part) if (name, part) in known else (EVERYONE, part)]
        groups, patients = None, self.everyone
        if name != EVERYONE:
            groups, patients = self.partitions[name].kept_groups, self.kept[name]
        number: Number = metric.function(Between(patients, groups, values, numbers, sheet.weights))
        return number

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
        for name, metric in self.tests if permutations else ():
            assert metric.test is not None
            result = permutation_test(
                metric.test(self.kept[name]),
                self.partitions[name].kept_groups,
                permutations=permutations,
                random_state=random_state,
                threads=threads,
            )
            found[name, metric.name] = result.p_value
            advance()
        return found

    @cached_property
    def tests(self) -> list[tuple[str, Metric]]:
        """Partitions and metrics whose gaps are tested by permutation."""
        return [
            (name, metric)
            for name, attribute in self.partitions.items()
            for metric in self.metrics
            if metric.test is not None
            and (metric.of == "everybody") == (name == EVERYONE)
            and (name != EVERYONE or len(attribute.groups) > 1)
        ]

    @cached_property
    def _inside(self) -> list[Metric]:
        """Metrics that are also taken of every group on its own."""
        return [metric for metric in self.of("patients") if metric.by_group and self.inside_groups]


def value_of(metric: Metric, patients: Patients, weight: FloatArray) -> float:
    """A metric of a set of patients; NaN if nobody has weight, or no finite value is best."""
    if not weight.any():
        return float("nan")
    value = float(metric.function(patients, weight))
    return value if np.isfinite(value) else float("nan")


def replicates_of(name: str, value: Any) -> int:
    """A number of replicates or permutations: 0 for none."""
    if not isinstance(value, (int, float, np.integer)) or not value >= 0 or value % 1 != 0 or value == 1:
        raise ArgumentError.must(name, "be 0 or a whole number from 2", value)
    return int(value)
